/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of a cache folder keep within its bound, and are listed only when they may exceed it.
 */
#include "cache_dir.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SIZE_MAX_TOTAL 1000 /* bytes */

typedef struct Fixture {
	char *home;
	char *folder; /* of the cache */
	Invoker invoker;
} Fixture;

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->home = make_folder();
	fixture->folder = xasprintf("%s/wallprof/things", fixture->home);
	setenv("XDG_CACHE_HOME", fixture->home, 1);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	remove_folder(fixture->home);
	free(fixture->folder);
	free(fixture);
	return 0;
}

/* A run that writes `count` files of `size` bytes, which are named by numbers from `first` on. */
static void run_once(Fixture *fixture, int first, int count, size_t size)
{
	CacheDir *folder = cache_dir_open(&fixture->invoker, "things", SIZE_MAX_TOTAL);
	_cleanup_free_ char *bytes = xcalloc(1, size);
	const struct iovec part = {bytes, size};

	assert_non_null(folder);
	for (int i = first; i < first + count; i++) {
		_cleanup_free_ char *name = xasprintf("%d", i);
		_cleanup_free_ char *path = xasprintf("%s/%s", fixture->folder, name);
		const struct timespec times[] = {{1000 + i, 0}, {1000 + i, 0}};

		assert_int_equal(cache_dir_replace(folder, name, &part, 1), 0);
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	}
	cache_dir_close(folder);
}

/* Which files there are, in order of their numbers. */
static void expect_files(Fixture *fixture, const char *names)
{
	_cleanup_free_ char *found = output_of("cd '%s' && echo $(ls | sort -n)", fixture->folder);

	found[strcspn(found, "\n")] = '\0';
	assert_string_equal(found, names);
}

static void expect_size(Fixture *fixture, const char *size)
{
	_cleanup_free_ char *found = output_of("cat '%s/.size'", fixture->folder);

	assert_string_equal(found, size);
}

static void test_bound(void **state)
{
	Fixture *fixture = *state;

	run_once(fixture, 0, 6, 100);
	expect_size(fixture, "600\n");
	run_once(fixture, 6, 4, 100);
	expect_files(fixture, "0 1 2 3 4 5 6 7 8 9");
	expect_size(fixture, "1000\n");
	/* The oldest go, until three quarters are left. */
	run_once(fixture, 10, 1, 50);
	expect_files(fixture, "3 4 5 6 7 8 9 10");
	expect_size(fixture, "750\n");
}

/* A file that is used is young again. */
static void test_use(void **state)
{
	Fixture *fixture = *state;
	CacheDir *folder;
	struct stat st;
	int fd;

	run_once(fixture, 0, 10, 100);
	folder = cache_dir_open(&fixture->invoker, "things", SIZE_MAX_TOTAL);
	fd = cache_dir_read(folder, "0", &st);
	assert_int_equal(st.st_size, 100);
	closep(&fd);
	cache_dir_close(folder);
	run_once(fixture, 10, 1, 100);
	expect_files(fixture, "0 5 6 7 8 9 10");
}

/*
 * The files are listed when the size is missing, no number or too large, and not otherwise: what
 * another program has put there is not noticed before.
 */
static void test_rarely_listed(void **state)
{
	Fixture *fixture = *state;

	run_once(fixture, 0, 2, 100);
	run("truncate -s 5000 '%s/1000' && touch -d @1 '%s/1000'", fixture->folder,
	    fixture->folder);
	run_once(fixture, 2, 2, 100);
	run_once(fixture, 4, 0, 100);
	expect_files(fixture, "0 1 2 3 1000");
	expect_size(fixture, "400\n");
	for (int i = 0; i < 3; i++) {
		static const char *const commands[] = {"rm .size", "echo no >.size",
						       "echo 999 >.size"};

		run("truncate -s 5000 '%s/1000' && touch -d @1 '%s/1000'", fixture->folder,
		    fixture->folder);
		run("cd '%s' && %s", fixture->folder, commands[i]);
		run_once(fixture, 4, 0, 100);
		expect_files(fixture, "0 1 2 3 1000");
		run_once(fixture, 0, 1, 100);
		expect_files(fixture, "0 1 2 3");
		expect_size(fixture, "400\n");
	}
}

/* A number that cannot be written: the files are listed each time. */
static void test_no_number(void **state)
{
	Fixture *fixture = *state;

	run("mkdir -p '%s/.size'", fixture->folder);
	run_once(fixture, 0, 10, 100);
	expect_files(fixture, "0 1 2 3 4 5 6 7 8 9");
	run_once(fixture, 10, 1, 100);
	expect_files(fixture, "4 5 6 7 8 9 10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bound, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rarely_listed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_number, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
