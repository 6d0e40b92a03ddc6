/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was built is kept, and used while its file is the same. */
#include "table_fixture.h"
#include "table_job.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>

#define CACHED_OBJECTS 5

/* On a disk, with a name and a build id: what of it does not change can be kept. */
static void want_file(Fixture *fixture, uint32_t id, const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/object%u", folder, id);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t build_id[20] = {id};

	assert_true(fd >= 0);
	table_service_request(fixture->service, &(TableRequest){.id = id,
								.fd = fd,
								.base_svma = BASE_SVMA,
								.build_id = build_id,
								.build_id_len = sizeof(build_id)});
}

static void make_files(Fixture *fixture, const char *folder)
{
	for (uint32_t id = 1; id <= CACHED_OBJECTS; id++) {
		Object *object = &fixture->objects[id];
		_cleanup_close_ int fd = -1;

		object->behaviour = (struct behaviour){
			.what = id == CACHED_OBJECTS ? 'u' : 'g', .rows = 100 * id, .seed = id};
		fd = make_object(&object->behaviour);
		run("cp /proc/%d/fd/%d '%s/object%u'", getpid(), fd, folder, id);
	}
}

/* Returns how many came from the cache. */
static size_t ask_for_files(Fixture *fixture, const char *folder)
{
	TableServiceCounts counts;

	for (uint32_t id = 1; id <= CACHED_OBJECTS; id++)
		fixture->objects[id].answers = 0;
	fixture->answered = 0;
	start_service(fixture);
	for (uint32_t id = 1; id <= CACHED_OBJECTS; id++)
		want_file(fixture, id, folder);
	await_all(fixture);
	for (uint32_t id = 1; id < CACHED_OBJECTS; id++)
		check_answer(fixture, id, 0);
	check_answer(fixture, CACHED_OBJECTS, -EBADMSG);
	counts = table_service_counts(fixture->service);
	assert_int_equal(counts.failed, 1);
	assert_int_equal(counts.built + counts.cached, CACHED_OBJECTS - 1);
	stop_service(fixture);
	return counts.cached;
}

static void test_cache(void **state)
{
	Fixture *fixture = *state;
	Invoker invoker = {};
	char *folder = make_folder();

	setenv("XDG_CACHE_HOME", folder, 1);
	fixture->options.invoker = &invoker;
	fixture->options.timeout_ns = 0;
	make_files(fixture, folder);
	/* Not of files that have changed right now. */
	assert_int_equal(ask_for_files(fixture, folder), 0);
	assert_int_equal(ask_for_files(fixture, folder), 0);
	usleep(2200000);
	assert_int_equal(ask_for_files(fixture, folder), 0);
	assert_int_equal(ask_for_files(fixture, folder), CACHED_OBJECTS - 1);
	/* A changed one is built again, a damaged entry, too. */
	fixture->objects[2].behaviour.seed = 77;
	{
		_cleanup_close_ int fd = make_object(&fixture->objects[2].behaviour);

		run("cat /proc/%d/fd/%d > '%s/object2'", getpid(), fd, folder);
	}
	run("cd '%s/wallprof/tables' && for f in 03*; do truncate -s -1 $f; done", folder);
	assert_int_equal(ask_for_files(fixture, folder), CACHED_OBJECTS - 3);
	assert_int_equal(ask_for_files(fixture, folder), CACHED_OBJECTS - 2);
	remove_folder(folder);
}

/* A table that was built is written when there is time, before the service ends. */
static void test_cache_is_filled(void **state)
{
	Fixture *fixture = *state;
	Invoker invoker = {};
	char *folder = make_folder();

	setenv("XDG_CACHE_HOME", folder, 1);
	fixture->options.invoker = &invoker;
	fixture->options.timeout_ns = 0;
	make_files(fixture, folder);
	usleep(2200000);
	start_service(fixture);
	for (uint32_t id = 1; id <= CACHED_OBJECTS; id++)
		want_file(fixture, id, folder);
	await_all(fixture);
	while (is_readable(fixture, 20))
		table_service_process(fixture->service, on_ready, fixture);
	run("test $(ls '%s/wallprof/tables' | wc -l) = %d", folder, CACHED_OBJECTS - 1);
	stop_service(fixture);
	remove_folder(folder);
}

static bool is_odd(void *user, uint32_t id)
{
	(void)user;
	return id % 2;
}

/* The largest one of those that are used, then the largest one of the others. */
static void test_largest(void **state)
{
	static const uint32_t all[] = {4, 3, 2, 1, 0}, odd[] = {3, 1, 4, 2, 0};

	(void)state;
	for (int used = 0; used < 2; used++) {
		TableQueue queue = {};

		for (uint32_t i = 0; i < 5; i++)
			table_queue_put(&queue, &(TableJob){.id = i, .size = 10 + i});
		for (size_t i = 0; i < 5; i++)
			assert_int_equal(
				table_queue_get_largest(&queue, used ? is_odd : NULL, NULL).id,
				(used ? odd : all)[i]);
		assert_true(table_queue_empty(&queue));
		vec_free(&queue.jobs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_cache),
		WITH_FIXTURE(test_cache_is_filled),
		cmocka_unit_test(test_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
