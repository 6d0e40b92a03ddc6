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

/* A file that is mapped; device 0 is the vDSO. */
typedef struct Object {
	uint64_t device, inode;
	ElfIdentity identity;
	UnwindTable table; /* no rows: it has none */
} Object;

typedef struct Mapping {
	uint64_t start, end, load;
	Object *object; /* NULL: no file */
} Mapping;

struct ProcessTables {
	VEC(Object *) objects;
	VEC(Mapping) mappings;
	char *text; /* the lines of the mappings */
	pid_t pid;
	int memory;
};

ProcessTables *process_tables_new(void)
{
	ProcessTables *tables = calloc(1, sizeof(*tables));

	if (tables)
		tables->memory = -1;
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

static void build(Object *object, const ElfMap *map)
{
	if (elf_file_identify(map->elf, &object->identity) == 0)
		unwind_table_build(map, NULL, object->identity.base_svma, &object->table);
}

static void build_vdso(Object *object)
{
	ElfMap map = {0};

	map.image = (void *)vdso_image(&map.size);
	if (map.image && elf_file_open_image(map.image, map.size, &map.elf) == 0)
		build(object, &map);
	elf_end(map.elf);
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

static Object *object_of(ProcessTables *tables, const ProcMapping *mapping)
{
	char path[80];
	struct stat st;
	Object *object = NULL;
	ElfMap map;
	int fd;

	if (strcmp(mapping->path, "[vdso]") == 0) {
		object = find_object(tables, 0, 0);
		if (!object)
			build_vdso(object = add_object(tables, 0, 0));
		return object;
	}
	if (mapping->inode == 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", tables->pid, mapping->start,
		 mapping->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0) {
		object = find_object(tables, st.st_dev, st.st_ino);
		if (!object) {
			object = add_object(tables, st.st_dev, st.st_ino);
			if (elf_map_open(fd, &map) == 0) {
				build(object, &map);
				elf_map_close(&map);
			}
		}
	}
	close(fd);
	return object;
}

static void add_mapping(ProcessTables *tables, const ProcMapping *found)
{
	Mapping mapping = {.start = found->start, .end = found->end};
	uint64_t bias;

	mapping.object = object_of(tables, found);
	if (mapping.object && elf_mapping_bias(&mapping.object->identity, found->start,
					       found->end - found->start, found->pgoff, &bias) == 0)
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
	while ((line = strsep(&rest, "\n")))
		if (proc_maps_parse(line, &mapping))
			add_mapping(tables, &mapping);
	free(copy);
	return 1;
}

static bool read_memory(void *user, uint64_t address, void *to, size_t size)
{
	const ProcessTables *tables = user;

	return pread(tables->memory, to, size, (off_t)address) == (ssize_t)size;
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
	const Mapping *mapping = mapping_at(user, pc);

	if (!mapping)
		return STACK_NO_MAPPING;
	*ret_mapping = (struct unwind_mapping){
		.start = mapping->start,
		.last = mapping->end - 1,
		.load = mapping->load,
		.table = mapping->object ? (uint32_t)mapping->object->table.rows.count : 0,
	};
	return WALK_ON;
}

static bool find_rule(void *user, const struct unwind_mapping *mapping, uint32_t pc,
		      struct unwind_rule *ret_rule)
{
	const UnwindTable *table = &mapping_at(user, mapping->start)->object->table;
	const struct unwind_row *row = walk_search(table->rows.items, table->rows.count, pc);

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

	memcpy(input.regs, regs, sizeof(input.regs));
	return walk_user(&input, ret_frames, max, ret_count);
}
