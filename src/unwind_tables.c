/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_tables.h"
#include "debug_files.h"
#include "vdso.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* A table is not written over before every program that may have found it has ended. */
#define GRACE_NS NSEC_PER_SEC

enum table_state { TABLE_UNKNOWN, TABLE_WANTED, TABLE_READY, TABLE_NONE };

typedef struct FileTable {
	enum table_state state;
	uint32_t row, rows;
	uint64_t base_svma;
	uint64_t used_ns;	   /* a process was published that maps it */
	enum unwind_no_table none; /* TABLE_NONE: why */
	bool fresh;
	bool has_object;
	struct unwind_object_key object;
} FileTable;

/* Removed, but maybe still read. */
typedef struct Removed {
	uint32_t row, rows;
	uint64_t ns;
} Removed;

struct UnwindTables {
	const UnwindMaps *maps;
	Files *files;
	TableService *service;
	VEC(FileTable) list; /* by FILE id */
	VEC(Removed) removed;
	VEC(uint32_t) fresh;
	uint32_t vdso_row, vdso_rows;
	UnwindTablesCounts counts;
};

static FileTable *file_table(UnwindTables *tables, uint32_t file)
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

/* What of the object is executable and where it is in the file. */
static int describe_object(const ElfIdentity *identity, const FileTable *table,
			   struct unwind_object *ret_object)
{
	struct unwind_object object = {
		.row = table->row, .rows = table->rows, .exec_start = UINT64_MAX};

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

static void add_object(UnwindTables *tables, uint32_t file)
{
	FileTable *table = file_table(tables, file);
	FileView view = files_view(tables->files, file);
	struct unwind_object object;
	struct stat st;
	int error;

	if (fstat(view.fd, &st))
		return;
	error = describe_object(view.identity, table, &object);
	if (error) {
		tables->counts.objects_lost += error == -ENOSPC;
		return;
	}
	table->object = (struct unwind_object_key){
		.inode = st.st_ino,
		.size = st.st_size,
		/* MKDEV() of include/linux/kdev_t.h, not dev_t as user space has it. */
		.device = major(st.st_dev) << 20 | minor(st.st_dev),
	};
	table->has_object =
		!bpf_map_update_elem(tables->maps->objects_fd, &table->object, &object, BPF_ANY);
	tables->counts.objects_lost += !table->has_object;
}

static void set_fresh(UnwindTables *tables, uint32_t file)
{
	file_table(tables, file)->fresh = true;
	*vec_push(&tables->fresh) = file;
}

/* ---- tables -------------------------------------------------------------------------------- */

static void ask(UnwindTables *tables, uint32_t file, const FileView *view)
{
	table_service_want(tables->service, &(TableRequest){
						    .id = file,
						    .fd = view->fd,
						    .base_svma = view->identity->base_svma,
						    .build_id = view->identity->build_id,
						    .build_id_len = view->identity->build_id_len,
					    });
}

/* A TableFindDebug: where the processes that map the file would find it. */
static int find_debug(void *user, uint32_t file, const char *debuglink)
{
	UnwindTables *tables = user;
	FileView view = files_view(tables->files, file);
	_cleanup_free_ char *path = xstrdup(view.path);
	MappedFile mapped = {.id = file, .path = path, .build_id_len = view.identity->build_id_len};
	DebugFiles debug = {.file = &mapped, .open = files_open_beside, .open_user = tables->files};
	int fd;

	memcpy(mapped.build_id, view.identity->build_id, sizeof(mapped.build_id));
	fd = debuglink ? debug_files_by_link(&debug, debuglink) : debug_files_by_build_id(&debug);
	debug_files_free(&debug);
	return fd;
}

static void note_debug_file(UnwindTables *tables, uint32_t file, int debug)
{
	if (debug >= 0)
		return;
	tables->counts.debug_unused++;
	log_verbose("the debug file of %s gives no unwind table: %s",
		    files_view(tables->files, file).path, table_error_text(debug));
}

/* TableReady */
static void take_table(void *user, uint32_t file, const UnwindTable *built, int error, int debug)
{
	UnwindTables *tables = user;
	FileTable *table = file_table(tables, file);

	note_debug_file(tables, file, debug);
	set_fresh(tables, file);
	if (!error)
		error = unwind_memory_add_table(tables->maps->memory, built, &table->row);
	if (error) {
		table->state = TABLE_NONE;
		table->none = error == -ENODATA ? NO_TABLE_NONE : NO_TABLE_LOST;
		tables->counts.failed++;
		tables->counts.no_room += error == -ENOSPC;
		tables->counts.unread += error != -ENOSPC && error != -ENODATA;
		return;
	}
	table->rows = built->rows.count;
	table->state = TABLE_READY;
	table->used_ns = now_ns();
	tables->counts.ready++;
	add_object(tables, file);
}

/* Our own image is everyone's. */
static int add_vdso(UnwindTables *tables)
{
	ElfMap map = {};
	UnwindTable built = {};
	ElfIdentity identity;
	struct unwind_object object;
	size_t size;
	const void *image = vdso_image(&size);
	FileTable table = {};
	int error;

	if (!image)
		return 0;
	error = vdso_identify(&identity);
	if (!error)
		error = elf_file_open_image(image, size, &map.elf);
	if (!error)
		error = unwind_table_build(&map, NULL, identity.base_svma, &built);
	if (!error)
		error = unwind_memory_add_table(tables->maps->memory, &built, &table.row);
	table.rows = built.rows.count;
	if (!error && !describe_object(&identity, &table, &object)) {
		tables->vdso_row = table.row;
		tables->vdso_rows = table.rows;
		*tables->maps->vdso = object;
	}
	unwind_table_free(&built);
	elf_end(map.elf);
	elf_identity_free(&identity);
	return error == -ENODATA || error == -ENOEXEC ? 0 : error;
}

int unwind_tables_new(const UnwindMaps *maps, Files *files, const Invoker *invoker,
		      UnwindTables **ret_tables)
{
	UnwindTables *tables = xcalloc(1, sizeof(*tables));
	TableServiceOptions options = {
		.invoker = invoker, .find_debug = find_debug, .find_user = tables};
	int error = table_service_new(&options, &tables->service);

	tables->maps = maps;
	tables->files = files;
	if (!error)
		error = add_vdso(tables);
	if (error) {
		unwind_tables_free(tables);
		return error;
	}
	*ret_tables = tables;
	return 0;
}

void unwind_tables_free(UnwindTables *tables)
{
	if (!tables)
		return;
	table_service_free(tables->service);
	vec_free(&tables->list);
	vec_free(&tables->removed);
	vec_free(&tables->fresh);
	free(tables);
}

void unwind_tables_want(UnwindTables *tables, uint32_t file)
{
	FileTable *table = file_table(tables, file);
	FileView view = files_view(tables->files, file);

	if (table->state != TABLE_UNKNOWN)
		return;
	table->base_svma = view.identity->base_svma;
	if (view.flags & FILE_VDSO) {
		table->row = tables->vdso_row;
		table->rows = tables->vdso_rows;
		table->state = table->rows ? TABLE_READY : TABLE_NONE;
		table->none = NO_TABLE_LOST;
	} else if (view.fd < 0) {
		table->none = view.flags & FILE_ANON ? NO_TABLE_JIT : NO_TABLE_LOST;
		table->state = TABLE_NONE;
	} else {
		table->state = TABLE_WANTED;
		tables->counts.wanted++;
		ask(tables, file, &view);
	}
}

int unwind_tables_fd(const UnwindTables *tables)
{
	return table_service_fd(tables->service);
}

static void release_removed(UnwindTables *tables)
{
	uint64_t now = now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < tables->removed.count; i++) {
		Removed removed = tables->removed.items[i];

		if (removed.ns + GRACE_NS > now)
			tables->removed.items[kept++] = removed;
		else
			unwind_memory_remove_table(tables->maps->memory, removed.row, removed.rows);
	}
	tables->removed.count = kept;
}

void unwind_tables_take(UnwindTables *tables)
{
	for (size_t i = 0; i < tables->fresh.count; i++)
		tables->list.items[tables->fresh.items[i]].fresh = false;
	tables->fresh.count = 0;
	release_removed(tables);
	table_service_take(tables->service, take_table, tables);
}

bool unwind_tables_any_fresh(const UnwindTables *tables)
{
	return tables->fresh.count > 0;
}

bool unwind_tables_is_fresh(const UnwindTables *tables, uint32_t file)
{
	return file < tables->list.count && tables->list.items[file].fresh;
}

bool unwind_tables_wait(UnwindTables *tables, uint64_t deadline_ns)
{
	return table_service_wait(tables->service, deadline_ns, take_table, tables) == 0;
}

struct unwind_mapping unwind_tables_mapping(UnwindTables *tables, uint32_t file, uint64_t start,
					    uint64_t last, uint64_t bias)
{
	FileTable *table = file_table(tables, file);
	struct unwind_mapping mapping = {
		.start = start, .last = last, .load = bias + table->base_svma};

	table->used_ns = now_ns();
	switch (table->state) {
	case TABLE_READY:
		mapping.row = table->row;
		mapping.rows = table->rows;
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

/* ---- room --------------------------------------------------------------------------------------
 */

static void evict(UnwindTables *tables, FileTable *table)
{
	if (table->has_object)
		bpf_map_delete_elem(tables->maps->objects_fd, &table->object);
	*vec_push(&tables->removed) =
		(Removed){.row = table->row, .rows = table->rows, .ns = now_ns()};
	*table = (FileTable){};
	tables->counts.evicted++;
}

static FileTable *oldest_unused(UnwindTables *tables, bool (*used)(void *user, uint32_t file),
				void *user)
{
	FileTable *oldest = NULL;

	for (uint32_t i = 0; i < tables->list.count; i++) {
		FileTable *table = &tables->list.items[i];

		if (table->state != TABLE_READY || table->row == tables->vdso_row ||
		    (oldest && table->used_ns >= oldest->used_ns) || used(user, i))
			continue;
		oldest = table;
	}
	return oldest;
}

void unwind_tables_make_room(UnwindTables *tables, bool (*used)(void *user, uint32_t file),
			     void *user)
{
	UnwindMemoryCounts memory = unwind_memory_counts(tables->maps->memory);
	uint64_t limit = (uint64_t)CHUNKS_MAX * CHUNK_CELLS;
	uint64_t free_cells = limit - memory.cells_used;
	FileTable *table;

	/* Those on their way out have been counted before. */
	for (size_t i = 0; i < tables->removed.count; i++)
		free_cells += tables->removed.items[i].rows / CELL_ROWS;
	if (free_cells >= limit / 8)
		return;
	while (free_cells < limit / 4 && (table = oldest_unused(tables, used, user))) {
		free_cells += table->rows / CELL_ROWS;
		evict(tables, table);
	}
}

UnwindTablesCounts unwind_tables_counts(const UnwindTables *tables)
{
	return tables->counts;
}
