/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When a file's table is made, dropped and made again. Files, the service that makes tables, and
 * their memory are the test's own.
 */
#include "table_registry.h"
#include "test_tools.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>

#define FILES 4

static struct {
	int fd;
	bool used[FILES];
	bool closed, gone; /* all files */
	uint32_t asked[FILES], waiting[FILES];
	uint32_t tables, removed; /* in memory */
	uint32_t objects, room;	  /* in BPF's map */
	ElfIdentity identity;	  /* of all files */
} world;

/* ---- in the place of others --------------------------------------------------------------------
 */

int table_service_new(const TableServiceOptions *options, TableService **ret_service)
{
	assert_non_null(options);
	*ret_service = NULL;
	return 0;
}

void table_service_free(TableService *service)
{
	assert_null(service);
}

void table_service_request(TableService *service, const TableRequest *request)
{
	assert_null(service);
	world.asked[request->id]++;
	world.waiting[request->id]++;
}

void table_service_process(TableService *service, TableReady ready, void *user)
{
	UnwindTable table = {};

	assert_null(service);
	for (uint32_t file = 1; file < FILES; file++)
		for (; world.waiting[file]; world.waiting[file]--)
			ready(user, file, &table, 0, 0);
}

size_t table_service_wait(TableService *service, uint64_t deadline_ns, TableReady ready, void *user)
{
	assert_true(deadline_ns > 0);
	table_service_process(service, ready, user);
	return 0;
}

const char *table_error_text(int error)
{
	return error ? "no" : "yes";
}

int table_service_fd(const TableService *service)
{
	assert_null(service);
	return -1;
}

int table_memory_add_table(TableMemory *memory, const UnwindTable *table, TableHandle *ret_place)
{
	assert_null(memory);
	assert_non_null(table);
	*ret_place = (TableHandle){.row = 400, .table = ++world.tables};
	return 0;
}

uint64_t table_memory_cells(size_t rows)
{
	return 1 + rows;
}

uint64_t table_memory_spare(const TableMemory *memory)
{
	assert_null(memory);
	return 100;
}

void table_memory_remove_table(TableMemory *memory, TableHandle place)
{
	assert_null(memory);
	world.removed = place.table;
}

/* All files have one key here, so that only the number of objects counts. */
int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	if (!fd || !key || !value || flags)
		return -EINVAL;
	if (world.objects == world.room)
		return -E2BIG;
	world.objects++;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	if (!fd || !key)
		return -EINVAL;
	world.objects--;
	return 0;
}

void mapped_files_pin(MappedFiles *files, uint32_t file, bool pinned)
{
	assert_null(files);
	assert_uint_in_range(file, 1, FILES - 1);
	assert_int_equal(pinned, world.waiting[file] == 0); /* from the request to the answer */
}

FileView mapped_files_view(MappedFiles *files, uint32_t file)
{
	assert_null(files);
	assert_uint_in_range(file, 1, FILES - 1);
	return (FileView){.fd = world.closed || world.gone ? -1 : world.fd,
			  .closed = world.closed,
			  .gone = world.gone,
			  .identity = &world.identity,
			  .path = "/lib/libfoo.so"};
}

int mapped_files_open_beside(void *user, const MappedFile *file, const char *path)
{
	assert_null(user);
	return file && path ? -ENOENT : -EINVAL;
}

static bool is_used(void *user, uint32_t file)
{
	assert_null(user);
	return world.used[file];
}

/* ---- the test -----------------------------------------------------------------------------------
 */

static struct unwind_mapping map(TableRegistry *tables, uint32_t file)
{
	return table_registry_mapping(tables, file, 0x1000, 0x1fff, 0);
}

/*
 * A parent ends before its child's fork is reported: until then no process maps the file, and its
 * table is dropped. No mapping will be reported for the child, which has it from the parent.
 */
static void test_inherited(void **state)
{
	struct unwind_object vdso;
	struct unwind_mapping vsyscall = {};
	UnwindMaps maps = {.objects_fd = 1, .vdso = &vdso, .vsyscall = &vsyscall};
	TableRegistry *tables;

	(void)state;
	world.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(table_registry_new(&maps, NULL, NULL, is_used, NULL, &tables), 0);
	world.used[1] = world.used[2] = true;
	table_registry_request(tables, 1);
	table_registry_request(tables, 2);
	assert_int_equal(map(tables, 1).row, NO_TABLE_YET);
	table_registry_process(tables);
	assert_true(map(tables, 1).table && map(tables, 2).table);
	assert_false(table_registry_drop_one(tables));
	world.used[1] = false;
	assert_true(table_registry_drop_one(tables));
	assert_false(table_registry_drop_one(tables));
	assert_true(world.removed);
	assert_int_equal(world.asked[1], 1);

	world.used[1] = true; /* by the child */
	assert_int_equal(map(tables, 1).row, NO_TABLE_YET);
	assert_int_equal(map(tables, 1).table, 0);
	table_registry_process(tables);
	assert_true(table_registry_is_changed(tables, 1));
	assert_true(map(tables, 1).table);
	assert_int_equal(world.asked[1], 2);
	assert_int_equal(world.asked[2], 1);
	table_registry_free(tables);
	close(world.fd);
}

/* BPF's map is full: the object of a file that no process maps makes room, until it is mapped. */
static void test_objects(void **state)
{
	struct unwind_object vdso;
	struct unwind_mapping vsyscall = {};
	UnwindMaps maps = {.objects_fd = 1, .vdso = &vdso, .vsyscall = &vsyscall};
	ElfSegment segment = {.file_size = 4096, .exec = true};
	TableRegistry *tables;

	(void)state;
	memset(&world, 0, sizeof(world));
	world.room = 2;
	*vec_push(&world.identity.loads) = segment;
	world.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(table_registry_new(&maps, NULL, NULL, is_used, NULL, &tables), 0);
	for (uint32_t file = 1; file <= 2; file++) {
		world.used[file] = true;
		table_registry_request(tables, file);
	}
	table_registry_process(tables);
	assert_int_equal(world.objects, 2);
	world.used[3] = true;
	table_registry_request(tables, 3);
	table_registry_process(tables);
	assert_int_equal(table_registry_counts(tables).objects_lost, 1); /* all are used */

	world.used[1] = false;
	world.room = 3;
	assert_true(map(tables, 2).table);
	assert_int_equal(world.objects, 2);
	world.room = 2;
	world.used[1] = true;
	world.used[2] = false;
	table_registry_drop_one(
		tables); /* of 2, whose table is requested again when it is mapped */
	world.used[2] = true;
	assert_int_equal(map(tables, 2).row, NO_TABLE_YET);
	world.used[1] = false;
	world.objects = 2;
	table_registry_process(tables);
	assert_int_equal(world.objects, 2);
	assert_int_equal(table_registry_counts(tables).objects_lost, 1); /* that of 1 made room */
	world.used[1] = true;
	world.used[2] = false;
	assert_true(map(tables, 1).table); /* added again, and that of 2 makes room */
	assert_int_equal(world.objects, 2);
	assert_int_equal(table_registry_counts(tables).objects_lost, 1);
	table_registry_free(tables);
	vec_free(&world.identity.loads);
	close(world.fd);
}

/*
 * A file was closed because descriptors are scarce, and none is free when its table is needed. The
 * table is made when one is free, although its processes map nothing more.
 */
static void test_closed(void **state)
{
	struct unwind_object vdso;
	struct unwind_mapping vsyscall = {};
	UnwindMaps maps = {.objects_fd = 1, .vdso = &vdso, .vsyscall = &vsyscall};
	TableRegistry *tables;

	(void)state;
	memset(&world, 0, sizeof(world));
	world.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	world.used[1] = world.used[2] = true;
	world.closed = true;
	assert_int_equal(table_registry_new(&maps, NULL, NULL, is_used, NULL, &tables), 0);
	for (uint32_t file = 1; file <= 3; file++) {
		table_registry_request(tables, file);
		table_registry_request(tables, file);
		assert_int_equal(map(tables, file).row, NO_TABLE_YET);
	}
	assert_int_equal(table_registry_counts(tables).deferred, 3);
	table_registry_process(tables);
	table_registry_retry(tables);
	assert_int_equal(world.asked[1], 0);

	world.closed = false;
	table_registry_process(tables);
	table_registry_retry(tables);
	assert_int_equal(world.asked[1], 1);
	assert_int_equal(world.asked[2], 1);
	assert_int_equal(world.asked[3], 0); /* no process maps it any more */
	table_registry_process(tables);
	assert_true(table_registry_is_changed(tables, 1));
	assert_true(map(tables, 1).table && map(tables, 2).table);
	assert_int_equal(table_registry_counts(tables).deferred, 3);
	table_registry_free(tables);
	close(world.fd);
}

/* Such a file has been replaced: no table can be made, and the mappings and a count say so. */
static void test_gone(void **state)
{
	struct unwind_object vdso;
	struct unwind_mapping vsyscall = {};
	UnwindMaps maps = {.objects_fd = 1, .vdso = &vdso, .vsyscall = &vsyscall};
	TableRegistry *tables;

	(void)state;
	memset(&world, 0, sizeof(world));
	world.used[1] = world.used[2] = true;
	world.gone = true;
	assert_int_equal(table_registry_new(&maps, NULL, NULL, is_used, NULL, &tables), 0);
	table_registry_request(tables, 1);
	assert_int_equal(map(tables, 1).row, NO_TABLE_LOST);
	assert_int_equal(table_registry_counts(tables).gone, 1);

	/* This one is replaced while its table waits for a descriptor. */
	world.gone = false;
	world.closed = true;
	table_registry_request(tables, 2);
	assert_int_equal(map(tables, 2).row, NO_TABLE_YET);
	world.closed = false;
	world.gone = true;
	table_registry_process(tables);
	table_registry_retry(tables);
	assert_true(table_registry_is_changed(tables, 2)); /* its processes get the new reason */
	assert_int_equal(map(tables, 2).row, NO_TABLE_LOST);
	assert_int_equal(table_registry_counts(tables).gone, 2);
	table_registry_free(tables);
}

/* A file is closed after its table was made: BPF finds the table by the file that it was. */
static void test_object_of_closed_file(void **state)
{
	struct unwind_object vdso;
	struct unwind_mapping vsyscall = {};
	UnwindMaps maps = {.objects_fd = 1, .vdso = &vdso, .vsyscall = &vsyscall};
	ElfSegment segment = {.file_size = 4096, .exec = true};
	TableRegistry *tables;

	(void)state;
	memset(&world, 0, sizeof(world));
	world.room = 1;
	*vec_push(&world.identity.loads) = segment;
	world.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(table_registry_new(&maps, NULL, NULL, is_used, NULL, &tables), 0);
	table_registry_request(tables, 1);
	table_registry_process(tables);
	table_registry_request(tables, 2);
	table_registry_process(tables); /* takes the room of the first file */
	assert_int_equal(world.objects, 1);
	world.gone = true;
	world.used[1] = true;
	assert_true(map(tables, 1).table);
	assert_int_equal(world.objects, 1);
	assert_int_equal(table_registry_counts(tables).objects_lost, 0);
	world.room = 2;
	world.used[2] = true;
	assert_true(map(tables, 2).table);
	assert_int_equal(world.objects, 2); /* both again */
	table_registry_free(tables);
	vec_free(&world.identity.loads);
	close(world.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inherited),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_object_of_closed_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
