/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "process_tables.h"
#include "proc_maps.h"
#include "unwind_table.h"
#include "vdso.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 32
#define IMAGE_MAX    (64u << 20)

/* A file that is mapped. */
typedef struct Object {
	/* device 0: read in memory. Of the process itself, the vDSO; of a core file, inode is where
	 * it begins. */
	uint64_t device, inode;
	ElfIdentity identity;
	UnwindTable table; /* no rows: it has none */
} Object;

typedef struct Mapping {
	uint64_t start, end, load;
	Object *object; /* NULL: no file */
} Mapping;

/* A part of a file that is mapped, and the file. */
typedef struct FilePart {
	uint64_t start, end, offset;
	int fd; /* -1: none */
} FilePart;

struct ProcessTables {
	VEC(Object *) objects;
	VEC(Mapping) mappings;
	char *text; /* the lines of the mappings */
	pid_t pid;
	int memory;
	const CoreFile *core; /* NULL: it is a living process */
	FilePart beside;      /* while the mappings are read: the last one of a file */
	Object *vsyscall;
};

ProcessTables *process_tables_new(void)
{
	ProcessTables *tables = calloc(1, sizeof(*tables));

	if (tables)
		tables->memory = tables->beside.fd = -1;
	return tables;
}

void process_tables_free(ProcessTables *tables)
{
	for (size_t i = 0; i < tables->objects.count; i++) {
		unwind_table_free(&tables->objects.items[i]->table);
		elf_identity_free(&tables->objects.items[i]->identity);
		free(tables->objects.items[i]);
	}
	vec_free(&tables->objects);
	vec_free(&tables->mappings);
	if (tables->memory >= 0)
		close(tables->memory);
	free(tables->text);
	free(tables);
}

static void build(Object *object, ElfMap *map)
{
	if (elf_file_identify(map->elf, &object->identity) == 0)
		unwind_table_build(map, NULL, object->identity.base_svma, &object->table);
}

static void build_image(Object *object, const void *image, size_t size)
{
	ElfMap map = {.image = (void *)image, .size = size};

	if (image && elf_file_open_image(image, size, &map.elf) == 0)
		build(object, &map);
	elf_end(map.elf);
}

static void build_vdso(Object *object)
{
	size_t size;
	const void *image = vdso_image(&size);

	build_image(object, image, size);
}

static Object *find_object(ProcessTables *tables, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < tables->objects.count; i++)
		if (tables->objects.items[i]->device == device &&
		    tables->objects.items[i]->inode == inode)
			return tables->objects.items[i];
	return NULL;
}

static Object *add_object(ProcessTables *tables, uint64_t device, uint64_t inode)
{
	Object *object = calloc(1, sizeof(*object));

	object->device = device;
	object->inode = inode;
	*vec_push(&tables->objects) = object;
	return object;
}

static Object *object_of_fd(ProcessTables *tables, int fd)
{
	struct stat st;
	Object *object;
	ElfMap map;

	if (fstat(fd, &st) != 0)
		return NULL;
	object = find_object(tables, st.st_dev, st.st_ino);
	if (object)
		return object;
	object = add_object(tables, st.st_dev, st.st_ino);
	if (elf_map_open(fd, &map) == 0) {
		build(object, &map);
		elf_map_close(&map);
	}
	return object;
}

static void forget_file(FilePart *part)
{
	if (part->fd >= 0)
		close(part->fd);
	part->fd = -1;
}

/* The kernel carries out what is called there, so the return address is where rsp points to. */
static Object *vsyscall_object(ProcessTables *tables)
{
	Object *object = tables->vsyscall;

	if (object)
		return object;
	object = add_object(tables, 0, VSYSCALL_PAGE);
	*vec_push(&object->table.rules) =
		(struct unwind_rule){.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset = 8};
	*vec_push(&object->table.rows) = (struct unwind_row){};
	tables->vsyscall = object;
	return object;
}

/*
 * A program may have moved its text to anonymous memory. The file that is mapped right before says
 * what was there; *ret_offset is where in the file. Returns whether all bytes are the same.
 */
static bool is_moved_text(const ProcessTables *tables, const ProcMapping *mapping,
			  uint64_t *ret_offset)
{
	const FilePart *beside = &tables->beside;
	size_t size = mapping->end - mapping->start;
	_cleanup_free_ char *memory = NULL, *bytes = NULL;

	if (beside->fd < 0 || beside->end != mapping->start || size > IMAGE_MAX)
		return false;
	*ret_offset = beside->offset + (mapping->start - beside->start);
	memory = malloc(size);
	bytes = malloc(size);
	return process_tables_read(tables, mapping->start, memory, size) &&
	       pread(beside->fd, bytes, size, *ret_offset) == (ssize_t)size &&
	       memcmp(memory, bytes, size) == 0;
}

/* *ret_offset is where in the object the mapping begins. */
static Object *object_of(ProcessTables *tables, const ProcMapping *mapping, uint64_t *ret_offset)
{
	char path[80];
	Object *object = NULL;
	int fd;

	*ret_offset = mapping->pgoff;

	if (strcmp(mapping->path, "[vdso]") == 0) {
		object = find_object(tables, 0, 0);
		if (!object)
			build_vdso(object = add_object(tables, 0, 0));
		return object;
	}
	if (mapping->inode == 0)
		return is_moved_text(tables, mapping, ret_offset)
			       ? object_of_fd(tables, tables->beside.fd)
			       : NULL;
	forget_file(&tables->beside);
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", tables->pid, mapping->start,
		 mapping->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	object = object_of_fd(tables, fd);
	tables->beside = (FilePart){mapping->start, mapping->end, mapping->pgoff, fd};
	return object;
}

/* object: NULL = none is known. */
static void add_mapping(ProcessTables *tables, uint64_t start, uint64_t end, uint64_t offset,
			Object *object)
{
	Mapping mapping = {.start = start, .end = end, .object = object};
	uint64_t bias;

	if (object && elf_mapping_bias(&object->identity, start, end - start, offset, &bias) == 0)
		mapping.load = bias + mapping.object->identity.base_svma;
	else
		mapping.object = NULL;
	*vec_push(&tables->mappings) = mapping;
}

/* Only lines of what is executable: heaps and stacks grow all the time. */
static int read_maps(pid_t pid, char **ret_text)
{
	char path[40], *line = NULL;
	size_t room = 0, size = 0;
	FILE *file, *out;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	out = open_memstream(ret_text, &size);
	while (getline(&line, &room, file) > 0) {
		const char *flags = strchr(line, ' ');

		if (flags && flags[3] == 'x')
			fputs(line, out);
	}
	free(line);
	fclose(file);
	fclose(out);
	return 0;
}

int process_tables_load(ProcessTables *tables, pid_t pid)
{
	char path[40], *text = NULL, *copy, *rest, *line;
	ProcMapping mapping;
	int result = read_maps(pid, &text);

	if (result < 0)
		return result;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	if (tables->memory >= 0)
		close(tables->memory);
	tables->memory = open(path, O_RDONLY | O_CLOEXEC); /* another one after exec */
	if (tables->pid == pid && tables->text && strcmp(tables->text, text) == 0) {
		free(text);
		return 0;
	}
	free(tables->text);
	tables->text = text;
	tables->pid = pid;
	tables->mappings.count = 0;
	rest = copy = strdup(text);
	while ((line = strsep(&rest, "\n"))) {
		uint64_t offset;
		Object *object;

		if (!proc_maps_parse(line, &mapping))
			continue;
		object = object_of(tables, &mapping, &offset);
		add_mapping(tables, mapping.start, mapping.end, offset, object);
	}
	forget_file(&tables->beside);
	free(copy);
	return 1;
}

/* ---- a core file ------------------------------------------------------------------------- */

/* Section headers are in no segment; the vDSO's are in its pages. */
static void forget_sections(void *image, size_t size)
{
	Elf64_Ehdr *header = image;

	if (header->e_shoff <= size &&
	    header->e_shnum * sizeof(Elf64_Shdr) <= size - header->e_shoff)
		return;
	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
}

/* Where an ELF file's segments were, from its beginning in memory on. Returns how many, 0 = none.
 */
static size_t read_segments(const CoreFile *core, uint64_t start, Elf64_Phdr segments[SEGMENTS_MAX])
{
	Elf64_Ehdr header;

	if (!core_file_read(core, start, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phnum > SEGMENTS_MAX ||
	    !core_file_read(core, start + header.e_phoff, segments,
			    header.e_phnum * sizeof(Elf64_Phdr)))
		return 0;
	return header.e_phnum;
}

/* The file whose beginning is mapped there, put together from the memory of its segments. */
static void build_from_memory(Object *object, const CoreFile *core, const CoreMapping *first)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	size_t count = read_segments(core, first->start, segments);
	size_t whole = first->end - first->start, size = whole;
	uint64_t base = UINT64_MAX;
	bool good;
	char *image;

	for (size_t i = 0; i < count; i++) {
		if (segments[i].p_type != PT_LOAD)
			continue;
		base = MIN(base, segments[i].p_vaddr & ~4095ULL);
		size = MAX(size, segments[i].p_offset + segments[i].p_filesz);
	}
	if (count == 0 || size > IMAGE_MAX)
		return;
	image = calloc(1, size);
	good = core_file_read(core, first->start, image, whole);
	for (size_t i = 0; i < count && good; i++)
		if (segments[i].p_type == PT_LOAD)
			good = core_file_read(core, first->start + segments[i].p_vaddr - base,
					      image + segments[i].p_offset, segments[i].p_filesz);
	if (good) {
		forget_sections(image, size);
		build_image(object, image, size);
	}
	free(image);
}

static const CoreMapping *first_mapping(const CoreFile *core, const CoreMapping *mapping)
{
	for (size_t i = 0; i < core->mappings.count && mapping->path; i++)
		if (core->mappings.items[i].path &&
		    strcmp(core->mappings.items[i].path, mapping->path) == 0)
			return &core->mappings.items[i];
	return mapping;
}

static Object *object_in_core(ProcessTables *tables, const CoreMapping *mapping)
{
	const CoreMapping *first = first_mapping(tables->core, mapping);
	Object *object;

	if (mapping->fd >= 0)
		return object_of_fd(tables, mapping->fd);
	object = find_object(tables, 0, first->start);
	if (!object)
		build_from_memory(object = add_object(tables, 0, first->start), tables->core,
				  first);
	return object;
}

void process_tables_load_core(ProcessTables *tables, const CoreFile *core)
{
	tables->core = core;
	tables->mappings.count = 0;
	for (size_t i = 0; i < core->mappings.count; i++) {
		const CoreMapping *mapping = &core->mappings.items[i];

		add_mapping(tables, mapping->start, mapping->end, mapping->offset,
			    object_in_core(tables, mapping));
	}
}

/* ---- the walk ------------------------------------------------------------------------------ */

bool process_tables_read(const ProcessTables *tables, uint64_t address, void *to, size_t size)
{
	if (tables->core)
		return core_file_read(tables->core, address, to, size);
	return pread(tables->memory, to, size, (off_t)address) == (ssize_t)size;
}

static bool read_memory(void *user, uint64_t address, void *to, size_t size)
{
	return process_tables_read(user, address, to, size);
}

/* A process has the page even if its mappings do not list it. */
static Mapping vsyscall_mapping(ProcessTables *tables)
{
	uint64_t start = VSYSCALL_PAGE << VSYSCALL_SHIFT;

	return (Mapping){.start = start,
			 .end = start + (1ULL << VSYSCALL_SHIFT),
			 .load = start,
			 .object = vsyscall_object(tables)};
}

static const Mapping *mapping_at(const ProcessTables *tables, uint64_t pc)
{
	for (size_t i = 0; i < tables->mappings.count; i++)
		if (pc >= tables->mappings.items[i].start && pc < tables->mappings.items[i].end)
			return &tables->mappings.items[i];
	return NULL;
}

static int find_mapping(void *user, uint64_t pc, struct unwind_mapping *ret_mapping)
{
	Mapping page = vsyscall_mapping(user);
	const Mapping *mapping = IS_VSYSCALL(pc) ? &page : mapping_at(user, pc);

	if (!mapping)
		return STACK_NO_MAPPING;
	*ret_mapping = (struct unwind_mapping){
		.start = mapping->start,
		.last = mapping->end - 1,
		.load = mapping->load,
		.table = mapping->object ? (uint32_t)mapping->object->table.rows.count : 0,
	};
	return WALK_CONTINUE;
}

static bool find_rule(void *user, const struct unwind_mapping *mapping, uint32_t pc,
		      struct unwind_rule *ret_rule)
{
	const Object *object = IS_VSYSCALL(mapping->start)
				       ? vsyscall_object(user)
				       : mapping_at(user, mapping->start)->object;
	const UnwindTable *table = &object->table;
	const struct unwind_row *row = walk_user_search(table->rows.items, table->rows.count, pc);

	*ret_rule = table->rules.items[row->rule];
	return true;
}

int process_tables_walk(ProcessTables *tables, const uint64_t regs[DWARF_REGS + 1], bool in_syscall,
			uint64_t *ret_frames, size_t max, size_t *ret_count)
{
	WalkInput input = {.in_syscall = in_syscall,
			   .read = read_memory,
			   .find_mapping = find_mapping,
			   .find_rule = find_rule,
			   .user = tables};

	uint64_t kept[MAX_FRAMES];
	uint32_t left_out;
	size_t count, depth;
	int result;

	memcpy(input.regs, regs, sizeof(input.regs));
	result = walk_user(&input, kept, &count, &left_out);
	depth = count + left_out;
	for (size_t i = 0; i < MIN(depth, max); i++)
		ret_frames[i] = i < LEAF_FRAMES || i >= depth - ROOT_FRAMES
					? kept[stack_frame_index(i)]
					: FRAME_NOT_KEPT;
	*ret_count = MIN(depth, max);
	return depth > max ? STACK_TRUNCATED : result;
}
