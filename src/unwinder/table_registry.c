/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_registry.h"
#include "debug_files.h"
#include "vdso.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum table_state { TABLE_UNKNOWN, TABLE_WANTED, TABLE_READY, TABLE_NONE };

typedef struct FileTable {
	enum table_state state;
	TableHandle handle;
	uint64_t cells;	      /* that it takes */
	uint64_t retry_cells; /* there was no room for it: retry when so many cells can be had */
	uint64_t base_svma;
	uint64_t used_ns;	   /* when a process that maps it was last published */
	enum unwind_no_table none; /* if table is TABLE_NONE: why */
	bool changed;
	bool has_object;
	bool forgotten; /* its object made room for another one */
	bool deferred;	/* it is in waiting_for_fd */
	struct unwind_object_key object;
} FileTable;

struct TableRegistry {
	const UnwindMaps *maps;
	MappedFiles *files;
	TableService *service;
	FileUsed used;
	void *user;
	VEC(FileTable) list;		/* by FILE id */
	VEC(uint32_t) waiting_for_room; /* files whose table had no room */
	VEC(uint32_t) waiting_for_fd;	/* files that could not be opened again yet */
	VEC(uint32_t) changed;
	uint64_t round_ns;     /* when this round began */
	size_t next_to_forget; /* in list */
	TableHandle vdso;
	TableRegistryCounts counts;
};

static FileTable *file_table(TableRegistry *tables, uint32_t file)
{
	while (tables->list.count <= file)
		*vec_push(&tables->list) = (FileTable){};
	return &tables->list.items[file];
}

/* ---- objects, by which BPF finds a table itself --------------------------------------------- */

static uint64_t page_down(uint64_t x)
{
	return x & ~4095ULL;
}

/* Finds what of the object is executable, and where it is in the file. */
static int describe_object(const ElfIdentity *identity, const FileTable *table,
			   struct unwind_object *ret_object)
{
	struct unwind_object object = {
		.row = table->handle.row, .table = table->handle.table, .exec_start = UINT64_MAX};

	for (size_t i = 0; i < identity->loads.count; i++) {
		const ElfSegment *load = &identity->loads.items[i];
		uint64_t relative = load->vaddr - identity->base_svma;
		uint64_t ahead = load->offset - page_down(load->offset);

		if ((i > 0 && !load->exec) || load->file_size == 0)
			continue;
		if (object.load_count == OBJECT_LOADS_MAX)
			return -ENOSPC;
		object.loads[object.load_count].offset = load->offset - ahead;
		object.loads[object.load_count].size = load->file_size + ahead;
		object.loads[object.load_count].relative = relative - ahead;
		object.loads[object.load_count].exec = load->exec;
		object.load_count++;
		if (!load->exec)
			continue;
		object.exec_start = MIN(object.exec_start, page_down(relative));
		object.exec_last =
			MAX(object.exec_last, page_down(relative + load->file_size + 4095) - 1);
	}
	*ret_object = object;
	return object.exec_start < object.exec_last ? 0 : -ENODATA;
}

/* ---- room ---------------------------------------------------------------------------------- */

static bool may_go(const TableRegistry *tables, uint32_t file)
{
	const FileTable *table = &tables->list.items[file];

	return table->state == TABLE_READY && table->handle.table != tables->vdso.table &&
	       !tables->used(tables->user, file);
}

static FileTable *oldest_unused(TableRegistry *tables)
{
	FileTable *oldest = NULL;

	for (uint32_t i = 0; i < tables->list.count; i++) {
		FileTable *table = &tables->list.items[i];

		if ((!oldest || table->used_ns < oldest->used_ns) && may_go(tables, i))
			oldest = table;
	}
	return oldest;
}

/*
 * The map of objects is full: BPF no longer finds the table of a file that no process maps. The
 * object is added again when the file is mapped again.
 */
static bool forget_object(TableRegistry *tables)
{
	for (size_t looks = tables->list.count; looks > 0; looks--) {
		uint32_t file = tables->next_to_forget++ % tables->list.count;
		FileTable *table = &tables->list.items[file];

		if (!table->has_object || !may_go(tables, file))
			continue;
		bpf_map_delete_elem(tables->maps->objects_fd, &table->object);
		table->has_object = false;
		table->forgotten = true;
		return true;
	}
	return false;
}

static void add_object(TableRegistry *tables, uint32_t file)
{
	FileTable *table = file_table(tables, file);
	FileView view = mapped_files_view(tables->files, file);
	struct unwind_object object;
	struct stat st;
	int error;

	if (view.flags & FILE_MEMORY) /* the kernel shows another one in its place */
		return;
	error = describe_object(view.identity, table, &object);
	if (error) {
		tables->counts.objects_lost += error == -ENOSPC;
		return;
	}
	/* A file that was closed since has the same key, whatever its path leads to now. */
	if (!table->object.inode && !fstat(view.fd, &st))
		table->object = (struct unwind_object_key){
			.inode = st.st_ino,
			.size = st.st_size,
			/* This is MKDEV() of include/linux/kdev_t.h, not user space's dev_t. */
			.device = major(st.st_dev) << 20 | minor(st.st_dev),
		};
	if (!table->object.inode) {
		tables->counts.objects_lost++;
		return;
	}
	do {
		error = bpf_map_update_elem(tables->maps->objects_fd, &table->object, &object,
					    BPF_ANY);
	} while (error == -E2BIG && forget_object(tables));
	table->has_object = !error;
	tables->counts.objects_lost += !table->has_object;
}

/* Returns how many cells tables may still take, including those of tables that may be dropped. */
static uint64_t cells_obtainable(const TableRegistry *tables)
{
	uint64_t cells = table_memory_spare(tables->maps->memory);

	for (uint32_t i = 0; i < tables->list.count; i++)
		if (may_go(tables, i))
			cells += tables->list.items[i].cells;
	return cells;
}

/* The table is requested again when the file is next mapped. */
bool table_registry_drop_one(TableRegistry *tables)
{
	FileTable *table = oldest_unused(tables);

	if (!table)
		return false;
	if (table->has_object)
		bpf_map_delete_elem(tables->maps->objects_fd, &table->object);
	table_memory_remove_table(tables->maps->memory, table->handle);
	*table = (FileTable){.changed = table->changed, .deferred = table->deferred};
	tables->counts.evicted++;
	return true;
}

/*
 * Drops other tables if there is no room. Each of them makes room, unless the holes are too small.
 */
static int allocate_table(TableRegistry *tables, uint32_t file, const UnwindTable *built)
{
	FileTable *table = file_table(tables, file);
	TableMemory *memory = tables->maps->memory;
	int error = table_memory_add_table(memory, built, &table->handle);
	uint64_t to_be_had;

	table->cells = table_memory_cells(built->rows.count);
	if (error == -ENOSPC && table->cells <= cells_obtainable(tables))
		while (error == -ENOSPC && table_registry_drop_one(tables))
			error = table_memory_add_table(memory, built, &table->handle);
	if (error != -ENOSPC)
		return error;
	to_be_had = cells_obtainable(tables);
	table->retry_cells = table->cells + (to_be_had < table->cells ? 0 : to_be_had);
	*vec_push(&tables->waiting_for_room) = file;
	return error;
}

/* ---- tables -------------------------------------------------------------------------------- */

/* A TableFindDebug: looks where the processes that map the file would find it. */
static int find_debug(void *user, uint32_t file, const char *debuglink, unsigned candidate)
{
	TableRegistry *tables = user;
	FileView view = mapped_files_view(tables->files, file);
	_cleanup_free_ char *path = xstrdup(view.path);
	MappedFile mapped = {.id = file, .path = path, .build_id_len = view.identity->build_id_len};
	DebugFiles debug = {
		.file = &mapped, .open = mapped_files_open_beside, .open_user = tables->files};
	int fd;

	memcpy(mapped.build_id, view.identity->build_id, sizeof(mapped.build_id));
	fd = debuglink ? debug_files_by_link(&debug, debuglink, candidate)
		       : debug_files_by_build_id(&debug);
	debug_files_free(&debug);
	return fd;
}

static void note_debug_file(TableRegistry *tables, uint32_t file, int debug)
{
	if (debug >= 0)
		return;
	tables->counts.debug_unused++;
	log_verbose("the debug file of %s is not used for its unwind table: %s",
		    mapped_files_view(tables->files, file).path, table_error_text(debug));
}

/* A TableReady. */
static void on_table_ready(void *user, uint32_t file, const UnwindTable *built, int error,
			   int debug)
{
	TableRegistry *tables = user;
	FileTable *table = file_table(tables, file);

	mapped_files_pin(tables->files, file, false);
	note_debug_file(tables, file, debug);
	table->changed = true;
	*vec_push(&tables->changed) = file;
	if (!error)
		error = allocate_table(tables, file, built);
	if (error) {
		table->state = TABLE_NONE;
		table->none = error == -ENODATA ? NO_TABLE_NONE : NO_TABLE_LOST;
		tables->counts.failed++;
		tables->counts.no_room += error == -ENOSPC;
		tables->counts.unread += error != -ENOSPC && error != -ENODATA;
		return;
	}
	table->state = TABLE_READY;
	table->used_ns = now_ns();
	tables->counts.ready++;
	add_object(tables, file);
}

/* All processes have the same vDSO as wallprof. */
static int add_vdso(TableRegistry *tables)
{
	_cleanup_(elf_map_close) ElfMap map = {};
	_cleanup_(unwind_table_free) UnwindTable built = {};
	_cleanup_(elf_identity_free) ElfIdentity identity = {};
	struct unwind_object object;
	size_t size;
	const void *image = vdso_image(&size);
	FileTable table = {};
	int error;

	if (!image)
		return 0;
	error = vdso_identify(&identity);
	if (error)
		return error;
	error = elf_file_open_image(image, size, &map.elf);
	if (error)
		return error;
	error = unwind_table_build(&map, NULL, identity.base_svma, &built);
	if (error)
		return error;
	error = table_memory_add_table(tables->maps->memory, &built, &table.handle);
	if (!error && !describe_object(&identity, &table, &object)) {
		tables->vdso = table.handle;
		*tables->maps->vdso = object;
	}
	return error;
}

/*
 * The kernel carries out what is called in the vsyscall page, so each address there is a function
 * that has pushed nothing.
 */
static int add_vsyscall(TableRegistry *tables)
{
	_cleanup_(unwind_table_free) UnwindTable built = {};
	struct unwind_mapping mapping = {.start = VSYSCALL_PAGE << VSYSCALL_SHIFT};
	TableHandle handle;
	int error;

	*vec_push(&built.rules) =
		(struct unwind_rule){.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset = 8};
	*vec_push(&built.rows) = (struct unwind_row){};
	error = table_memory_add_table(tables->maps->memory, &built, &handle);
	if (error)
		return error;
	mapping.last = mapping.start + ((1ULL << VSYSCALL_SHIFT) - 1);
	mapping.load = mapping.start;
	mapping.row = handle.row;
	mapping.table = handle.table;
	*tables->maps->vsyscall = mapping;
	return 0;
}

int table_registry_new(const UnwindMaps *maps, MappedFiles *files, const Invoker *invoker,
		       FileUsed used, void *user, TableRegistry **ret_tables)
{
	_cleanup_(table_registry_freep) TableRegistry *tables = xcalloc(1, sizeof(*tables));
	TableServiceOptions options = {
		.invoker = invoker,
		.find_debug = find_debug,
		.find_user = tables,
		.is_used = used,
		.used_user = user,
	};
	int error = table_service_new(&options, &tables->service);

	if (error)
		return error;
	tables->maps = maps;
	tables->files = files;
	tables->used = used;
	tables->user = user;
	error = add_vdso(tables);
	if (error && error != -ENODATA && error != -ENOEXEC)
		return error;
	error = add_vsyscall(tables);
	if (error)
		return error;
	*ret_tables = take_pointer(tables);
	return 0;
}

void table_registry_free(TableRegistry *tables)
{
	if (!tables)
		return;
	table_service_free(tables->service);
	vec_free(&tables->list);
	vec_free(&tables->waiting_for_room);
	vec_free(&tables->waiting_for_fd);
	vec_free(&tables->changed);
	free(tables);
}

/* Returns whether the file's state is decided now, or will be by the table service. */
static bool request_table(TableRegistry *tables, uint32_t file)
{
	FileTable *table = file_table(tables, file);
	TableRequest request;
	FileView view;

	if (table->state != TABLE_UNKNOWN)
		return true;
	view = mapped_files_view(tables->files, file);
	table->base_svma = view.identity->base_svma;
	if (view.flags & FILE_VDSO) {
		table->handle = tables->vdso;
		table->state = table->handle.table ? TABLE_READY : TABLE_NONE;
		table->none = NO_TABLE_LOST;
	} else if (view.closed) {
		return false;
	} else if (view.gone) {
		table->none = NO_TABLE_LOST;
		table->state = TABLE_NONE;
		tables->counts.gone++;
	} else if (view.fd < 0) {
		table->none = view.flags & FILE_ANON || view.not_elf ? NO_TABLE_JIT : NO_TABLE_LOST;
		table->state = TABLE_NONE;
	} else if (view.identity->is_32) {
		table->none = NO_TABLE_LOST; /* stacks of 32-bit code are not walked */
		table->state = TABLE_NONE;
	} else {
		table->state = TABLE_WANTED;
		tables->counts.wanted++;
		request = (TableRequest){
			.id = file,
			.fd = view.fd,
			.base_svma = view.identity->base_svma,
			.build_id = view.identity->build_id,
			.build_id_len = view.identity->build_id_len,
		};
		mapped_files_pin(tables->files, file, true);
		table_service_request(tables->service, &request);
	}
	return true;
}

void table_registry_request(TableRegistry *tables, uint32_t file)
{
	FileTable *table;

	if (request_table(tables, file))
		return;
	table = file_table(tables, file);
	if (table->deferred)
		return;
	table->deferred = true;
	tables->counts.deferred++;
	*vec_push(&tables->waiting_for_fd) = file;
}

/*
 * The processes that map such a file may never map anything again, so it is not left to their next
 * mapping. If one file finds no descriptor, the next one does not either.
 */
static void retry_descriptors(TableRegistry *tables)
{
	size_t kept = 0;
	bool scarce = false;

	for (size_t i = 0; i < tables->waiting_for_fd.count; i++) {
		uint32_t file = tables->waiting_for_fd.items[i];
		bool used = tables->used(tables->user, file);

		scarce = scarce || (used && !request_table(tables, file));
		if (used && scarce) {
			tables->waiting_for_fd.items[kept++] = file;
			continue;
		}
		file_table(tables, file)->deferred = false;
		file_table(tables, file)->changed = true;
		*vec_push(&tables->changed) = file;
	}
	tables->waiting_for_fd.count = kept;
}

static void retry_room(TableRegistry *tables)
{
	uint64_t cells = tables->waiting_for_room.count ? cells_obtainable(tables) : 0;
	size_t kept = 0;

	for (size_t i = 0; i < tables->waiting_for_room.count; i++) {
		uint32_t file = tables->waiting_for_room.items[i];
		FileTable *table = file_table(tables, file);
		uint64_t needed = table->cells;
		bool used = tables->used(tables->user, file);

		if (used && table->retry_cells > cells) {
			tables->waiting_for_room.items[kept++] = file;
			continue;
		}
		*table = (FileTable){.changed = table->changed, .deferred = table->deferred};
		if (!used) /* the table is requested again when the file is next mapped */
			continue;
		cells -= needed;
		table_registry_request(tables, file);
	}
	tables->waiting_for_room.count = kept;
}

void table_registry_retry(TableRegistry *tables)
{
	retry_descriptors(tables);
	retry_room(tables);
}

int table_registry_fd(const TableRegistry *tables)
{
	return table_service_fd(tables->service);
}

void table_registry_process(TableRegistry *tables)
{
	for (size_t i = 0; i < tables->changed.count; i++)
		tables->list.items[tables->changed.items[i]].changed = false;
	tables->changed.count = 0;
	tables->round_ns = now_ns();
	table_service_process(tables->service, on_table_ready, tables);
}

bool table_registry_any_changed(const TableRegistry *tables)
{
	return tables->changed.count > 0;
}

bool table_registry_is_changed(const TableRegistry *tables, uint32_t file)
{
	return file < tables->list.count && tables->list.items[file].changed;
}

bool table_registry_wait(TableRegistry *tables, uint64_t deadline_ns)
{
	return table_service_wait(tables->service, deadline_ns, on_table_ready, tables) == 0;
}

struct unwind_mapping table_registry_mapping(TableRegistry *tables, uint32_t file, uint64_t start,
					     uint64_t last, uint64_t bias)
{
	FileTable *table;
	struct unwind_mapping mapping = {.start = start, .last = last};

	/* A child inherits mappings without a record: the table may have been dropped before. */
	table_registry_request(tables, file);
	table = file_table(tables, file);
	mapping.load = bias + table->base_svma;
	table->used_ns = tables->round_ns;
	if (table->forgotten) {
		table->forgotten = false;
		add_object(tables, file);
	}
	switch (table->state) {
	case TABLE_READY:
		mapping.row = table->handle.row;
		mapping.table = table->handle.table;
		break;
	case TABLE_NONE:
		mapping.row = table->none;
		break;
	case TABLE_UNKNOWN:
	case TABLE_WANTED:
		mapping.row = NO_TABLE_YET;
		break;
	}
	return mapping;
}

TableRegistryCounts table_registry_counts(const TableRegistry *tables)
{
	return tables->counts;
}
