/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "make_record.h"
#include "sources.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include <cmocka.h>

#define NOBODY	  65534
#define A_GROUP	  54321 /* a group that no user needs to have */
#define FOREVER_S 30	/* a wait for a FIFO or the end of a lease takes longer */

typedef struct Fixture {
	char *folder;
	Sources *sources;
	Invoker invoker;
	VEC(struct rec_source *) emitted;
	SourcesSummary summary;
	int sink_error;
} Fixture;

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));
	const char *folder = getenv("TMPDIR");
	SourcesOptions options = {.invoker = &fixture->invoker};

	fixture->folder = xasprintf("%s/wallprof-test-XXXXXX", folder ? folder : "/tmp");
	assert_non_null(mkdtemp(fixture->folder));
	assert_int_equal(chmod(fixture->folder, 0755), 0);
	fixture->sources = sources_new(&options);
	alarm(FOREVER_S);
	*state = fixture;
	return 0;
}

static int delete_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void forget_emitted(Fixture *fixture)
{
	for (size_t i = 0; i < fixture->emitted.count; i++)
		free(fixture->emitted.items[i]);
	vec_free(&fixture->emitted);
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	alarm(0);
	nftw(fixture->folder, delete_one, 8, FTW_DEPTH | FTW_PHYS);
	forget_emitted(fixture);
	sources_free(fixture->sources);
	free(fixture->folder);
	free(fixture);
	return 0;
}

/* A path in the fixture's folder, to be freed. */
static char *in_folder(const Fixture *fixture, const char *name)
{
	return xasprintf("%s/%s", fixture->folder, name);
}

static char *write_file(const Fixture *fixture, const char *name, const void *text, size_t size)
{
	char *path = in_folder(fixture, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, size), 0);
	close(fd);
	return path;
}

static void weigh(const Fixture *fixture, const char *name, uint64_t weight)
{
	_cleanup_free_ char *path = in_folder(fixture, name);

	sources_weigh(fixture->sources, path, weight, (SourceUser){});
}

/* A file of this text that weighs so much. */
static void give(const Fixture *fixture, const char *name, const char *text, uint64_t weight)
{
	free(write_file(fixture, name, text, strlen(text)));
	weigh(fixture, name, weight);
}

static void give_large(const Fixture *fixture, const char *name, size_t size, uint64_t weight)
{
	_cleanup_free_ char *text = xmalloc(size);

	memset(text, 'x', size);
	free(write_file(fixture, name, text, size));
	weigh(fixture, name, weight);
}

static int keep(void *user, const struct record *record)
{
	Fixture *fixture = user;

	assert_int_equal(record->kind, REC_SOURCE);
	assert_int_equal(record->len % 8, 0);
	*vec_push(&fixture->emitted) = memcpy(xmalloc(record->len), record, record->len);
	return fixture->sink_error;
}

static int write_all_sources(Fixture *fixture)
{
	return sources_write(fixture->sources, keep, fixture, &fixture->summary);
}

static const char *emitted_text(const Fixture *fixture, size_t i)
{
	const char *path = fixture->emitted.items[i]->data;

	return path + strlen(path) + 1;
}

static void check_emitted(const Fixture *fixture, size_t i, const char *name, const char *text)
{
	const struct rec_source *source = fixture->emitted.items[i];
	_cleanup_free_ char *path = in_folder(fixture, name);

	assert_string_equal(source->data, path);
	assert_int_equal(source->text_size, strlen(text));
	assert_memory_equal(emitted_text(fixture, i), text, strlen(text));
}

static void check_counts(const Fixture *fixture, uint32_t read, uint32_t unreadable,
			 uint32_t omitted)
{
	assert_int_equal(fixture->summary.read, read);
	assert_int_equal(fixture->summary.unreadable, unreadable);
	assert_int_equal(fixture->summary.omitted, omitted);
	assert_int_equal(fixture->emitted.count, read);
}

static void test_heaviest_first(void **state)
{
	Fixture *fixture = *state;

	give(fixture, "light.c", "light\n", 1);
	give(fixture, "b.c", "as heavy as a\r\n", 5);
	give(fixture, "sum.c", "caf\xe9 \xc3\xa9", 4); /* no valid UTF-8: recorded all the same */
	give(fixture, "a.c", "12345678", 5);
	weigh(fixture, "sum.c", 3);
	sources_weigh(fixture->sources, "", 100, (SourceUser){}); /* a frame without a source */
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 4, 0, 0);
	check_emitted(fixture, 0, "sum.c", "caf\xe9 \xc3\xa9");
	check_emitted(fixture, 1, "a.c", "12345678");
	check_emitted(fixture, 2, "b.c", "as heavy as a\r\n");
	check_emitted(fixture, 3, "light.c", "light\n");
	assert_int_equal(fixture->summary.bytes, 7 + 8 + 15 + 6);
}

static void test_symbol_weighs_all_its_frames(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *outer = write_file(fixture, "outer.c", "o", 1);
	_cleanup_free_ char *inner = write_file(fixture, "inner.h", "i", 1);
	_cleanup_free_ struct rec_symbol *symbol = NULL;
	VEC(char) text = {};

	for (int i = 0; i < 3; i++) {
		const char *path = i == 0 ? outer : i == 1 ? "" : inner;

		for (size_t k = 0; k < sizeof(u32) + sizeof("name"); k++)
			*vec_push(&text) = k < sizeof(u32) ? 1 : "name"[k - sizeof(u32)];
		for (size_t k = 0; k <= strlen(path); k++)
			*vec_push(&text) = path[k];
	}
	symbol = make_record(REC_SYMBOL, 0, 0, offsetof(struct rec_symbol, text), text.items,
			     text.count);
	vec_free(&text);
	symbol->count = 3;
	give(fixture, "between.c", "b", 3);
	sources_weigh(fixture->sources, inner, 2, (SourceUser){});
	sources_weigh_symbol(fixture->sources, symbol, 2, 0);
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 3, 0, 0);
	check_emitted(fixture, 0, "inner.h", "i");
	check_emitted(fixture, 1, "between.c", "b");
	check_emitted(fixture, 2, "outer.c", "o");
}

static void test_budget(void **state)
{
	Fixture *fixture = *state;
	size_t large = SOURCES_FILE_MAX - 1000;

	for (int i = 0; i < 6; i++) {
		char name[] = {'0' + i, '\0'};

		give_large(fixture, name, large, 100 - i);
	}
	give_large(fixture, "more than one may have", SOURCES_FILE_MAX + 1, 1000);
	give_large(fixture, "the rest", SOURCES_BUDGET - 5 * large, 2);
	give(fixture, "one byte too many", "x", 1);
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 6, 0, 3);
	assert_int_equal(fixture->summary.bytes, SOURCES_BUDGET);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fixture->emitted.items[i]->text_size, large);
}

static void test_largest_file(void **state)
{
	Fixture *fixture = *state;

	give_large(fixture, "as large as may be", SOURCES_FILE_MAX, 1);
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 1, 0, 0);
}

/* None of these may be read, waited for, or take the others with it. */
static void test_what_is_no_source(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *fifo = in_folder(fixture, "fifo"), *loop = in_folder(fixture, "loop");
	_cleanup_free_ char *folder = in_folder(fixture, "folder");
	_cleanup_free_ char *leased = write_file(fixture, "leased", "x", 1);
	_cleanup_close_ int lease = open(leased, O_RDWR | O_CLOEXEC);

	signal(SIGIO, SIG_IGN); /* a process waits for the lease */
	assert_int_equal(fcntl(lease, F_SETLEASE, F_WRLCK), 0);
	weigh(fixture, "leased", 9);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_int_equal(symlink("loop", loop), 0);
	assert_int_equal(mkdir(folder, 0755), 0);
	weigh(fixture, "fifo", 9);
	weigh(fixture, "loop", 9);
	weigh(fixture, "folder", 9);
	weigh(fixture, "missing", 9);
	give(fixture, "empty", "", 9);
	free(write_file(fixture, "binary",
			"\x7f"
			"ELF\0",
			5));
	weigh(fixture, "binary", 9);
	sources_weigh(fixture->sources, "/dev/zero", 9, (SourceUser){});
	sources_weigh(fixture->sources, "/proc/self/maps", 9, (SourceUser){});
	sources_weigh(fixture->sources, "<built-in>", 9, (SourceUser){});
	give(fixture, "good.c", "good", 1);
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 1, 10, 0);
	check_emitted(fixture, 0, "good.c", "good");
}

static void test_relative_paths_are_not_guessed(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int here = open(".", O_PATH | O_CLOEXEC);

	free(write_file(fixture, "main.c", "another main.c", 14));
	assert_int_equal(chdir(fixture->folder), 0);
	sources_weigh(fixture->sources, "./main.c", 1, (SourceUser){});
	sources_weigh(fixture->sources, "main.c", 1, (SourceUser){});
	assert_int_equal(write_all_sources(fixture), 0);
	assert_int_equal(fchdir(here), 0);
	check_counts(fixture, 0, 2, 0);
}

/* Compilers name files like this: the path is opened, and kept as it is. */
static void test_dots_and_links(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *folder = in_folder(fixture, "real"),
			    *link = in_folder(fixture, "link");
	_cleanup_free_ char *climbing = xasprintf("/../..%s/gone/./..//a.c", fixture->folder);

	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(symlink("real", link), 0);
	give(fixture, "real/../a.c", "a", 9);
	weigh(fixture, "gone/../a.c", 8);
	weigh(fixture, "gone/deep/../..//./a.c", 7);
	weigh(fixture, "link/../a.c", 6);
	sources_weigh(fixture->sources, climbing, 5, (SourceUser){});
	give(fixture, "link/b.c", "b", 4);
	weigh(fixture, "gone/../a.c/..", 3);
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 6, 1, 0);
	check_emitted(fixture, 0, "real/../a.c", "a");
	check_emitted(fixture, 1, "gone/../a.c", "a");
	check_emitted(fixture, 2, "gone/deep/../..//./a.c", "a");
	check_emitted(fixture, 3, "link/../a.c", "a");
	assert_string_equal(fixture->emitted.items[4]->data, climbing);
	check_emitted(fixture, 5, "link/b.c", "b");
}

static void test_newer_than_the_program(void **state)
{
	Fixture *fixture = *state;
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 5}};
	static const struct {
		const char *name;
		uint64_t programs[2];
	} cases[] = {
		{"just newer", {1000 * NSEC_PER_SEC + 4, 0}},
		{"than the oldest of two", {2000 * NSEC_PER_SEC, 900 * NSEC_PER_SEC}},
		{"same time", {1000 * NSEC_PER_SEC + 5, 0}},
		{"older", {1001 * NSEC_PER_SEC, 0}},
		{"unknown", {0, 0}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *path = write_file(fixture, cases[i].name, "x", 1);

		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
		for (int k = 0; k < 2; k++)
			sources_weigh(fixture->sources, path, 1,
				      (SourceUser){.mtime_ns = cases[i].programs[k]});
	}
	sources_weigh(fixture->sources, "/missing", 1, (SourceUser){.mtime_ns = 1});
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 5, 1, 0);
	assert_int_equal(fixture->summary.newer, 2);
}

/*
 * As of a program in a container: what file 7 calls "/app/X" is X in a folder. The file gets
 * shorter meanwhile.
 */
static int open_elsewhere(void *user, uint32_t file, const char *path, struct stat *ret_stat)
{
	_cleanup_free_ char *real = NULL;
	int fd;

	if (strncmp(path, "/app/", 5) || file != 7)
		return -ENOENT;
	real = in_folder(user, path + 5);
	fd = sources_open_by_path(NULL, file, real, ret_stat);
	ret_stat->st_size += 100;
	return fd;
}

static void test_opened_by_the_caller(void **state)
{
	Fixture *fixture = *state;
	SourcesOptions options = {&fixture->invoker, open_elsewhere, fixture};

	sources_free(fixture->sources);
	fixture->sources = sources_new(&options);
	free(write_file(fixture, "a.c", "text", 4));
	free(write_file(fixture, "b.c", "text", 4));
	sources_weigh(fixture->sources, "/app/a.c", 2, (SourceUser){.file = 7});
	sources_weigh(fixture->sources, "/app/a.c", 2, (SourceUser){.file = 8});
	sources_weigh(fixture->sources, "/app/b.c", 1, (SourceUser){.file = 8});
	sources_weigh(fixture->sources, "/a.c", 1, (SourceUser){.file = 7});
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 1, 2, 0);
	assert_string_equal(fixture->emitted.items[0]->data, "/app/a.c");
	assert_int_equal(fixture->emitted.items[0]->text_size, 4);
	assert_int_equal(fixture->summary.bytes, 4);
}

static void test_sink_error(void **state)
{
	Fixture *fixture = *state;

	fixture->sink_error = -ENOSPC;
	give(fixture, "a.c", "a", 2);
	give(fixture, "b.c", "b", 1);
	assert_int_equal(write_all_sources(fixture), -ENOSPC);
	assert_int_equal(fixture->emitted.count, 1);
}

/* ---- rights ------------------------------------------------------------------ */

static void restrict_file(const Fixture *fixture, const char *name, uid_t uid, gid_t gid,
			  mode_t mode)
{
	_cleanup_free_ char *path = in_folder(fixture, name);

	assert_int_equal(chown(path, uid, gid), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* Files of others, in the order of their weights; the last two are the invoker's to read. */
static void give_restricted(const Fixture *fixture, int held_fd)
{
	_cleanup_free_ char *folder = in_folder(fixture, "closed");
	_cleanup_free_ char *held = xasprintf("/proc/self/fd/%d", held_fd);
	_cleanup_free_ char *link = in_folder(fixture, "link");

	give(fixture, "0600.c", "root's", 9);
	restrict_file(fixture, "0600.c", 0, 0, 0600);
	give(fixture, "0060.c", "root's group's", 8);
	restrict_file(fixture, "0060.c", 1, 0, 0060);
	assert_int_equal(mkdir(folder, 0700), 0);
	give(fixture, "closed/0644.c", "in a closed folder", 7);
	/* A way into it that is no way by the rights of folders. */
	sources_weigh(fixture->sources, "/proc/self/cwd/0644.c", 6, (SourceUser){});
	sources_weigh(fixture->sources, held, 5, (SourceUser){});
	assert_int_equal(symlink(held, link), 0);
	weigh(fixture, "link", 4);
	give(fixture, "own.c", "own", 2);
	restrict_file(fixture, "own.c", NOBODY, 0, 0400);
	give(fixture, "group.c", "group", 1);
	restrict_file(fixture, "group.c", 0, A_GROUP, 0040);
}

/* Root is among the groups, which must not help the user `nobody`. */
static void test_rights_are_the_invokers(void **state)
{
	Fixture *fixture = *state;
	gid_t groups[] = {0, 7}, after[64];
	_cleanup_free_ char *closed = in_folder(fixture, "closed");
	_cleanup_free_ char *secret = in_folder(fixture, "closed/0644.c");
	_cleanup_free_ char *held_path = write_file(fixture, "held", "held open", 9);
	_cleanup_close_ int here = open(".", O_PATH | O_CLOEXEC);
	_cleanup_close_ int held = open(held_path, O_RDONLY | O_CLOEXEC);

	if (geteuid() != 0)
		skip();
	unlink(held_path);
	assert_int_equal(setgroups(ARRAY_LEN(groups), groups), 0);
	fixture->invoker = (Invoker){.change = true, .uid = NOBODY, .gid = A_GROUP};
	give_restricted(fixture, held);
	assert_int_equal(chdir(closed), 0);
	assert_int_equal(write_all_sources(fixture), 0);
	assert_int_equal(fchdir(here), 0);
	check_counts(fixture, 2, 6, 0);
	check_emitted(fixture, 0, "own.c", "own");
	check_emitted(fixture, 1, "group.c", "group");
	/* Root is root again. */
	assert_int_equal(geteuid(), 0);
	assert_int_equal(getegid(), 0);
	assert_int_equal(getgroups(ARRAY_LEN(after), after), ARRAY_LEN(groups));
	assert_memory_equal(after, groups, sizeof(groups));
	assert_int_equal(access(secret, R_OK), 0);
	closep(&here);
	here = open(secret, O_RDONLY | O_CLOEXEC);
	assert_true(here >= 0);
}

/*
 * The same files when root asks for itself, and nothing is known of the recorded processes: only
 * files that all users may read are opened.
 */
static void test_root_reads_what_all_may_read(void **state)
{
	Fixture *fixture = *state;

	if (geteuid() != 0)
		skip();
	give_restricted(fixture, -1);
	give(fixture, "public.c", "for all", 1);
	assert_int_equal(write_all_sources(fixture), 0);
	check_counts(fixture, 1, 8, 0);
	check_emitted(fixture, 0, "public.c", "for all");
}

static void test_groups_by_name(void **state)
{
	Fixture *fixture = *state;
	struct group *group;

	if (geteuid() != 0)
		skip();
	/* A user who is in another group, too, by the group database. */
	setgrent();
	while ((group = getgrent()) && !group->gr_mem[0])
		;
	if (!group) {
		endgrent();
		skip();
	}
	fixture->invoker = (Invoker){.change = true, .uid = NOBODY, .gid = A_GROUP};
	fixture->invoker.name = group->gr_mem[0];
	give(fixture, "group.c", "group", 1);
	restrict_file(fixture, "group.c", 0, group->gr_gid, 0040);
	assert_int_equal(write_all_sources(fixture), 0);
	endgrent();
	check_counts(fixture, 1, 0, 0);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_heaviest_first),
		WITH_FIXTURE(test_symbol_weighs_all_its_frames),
		WITH_FIXTURE(test_budget),
		WITH_FIXTURE(test_largest_file),
		WITH_FIXTURE(test_what_is_no_source),
		WITH_FIXTURE(test_relative_paths_are_not_guessed),
		WITH_FIXTURE(test_dots_and_links),
		WITH_FIXTURE(test_newer_than_the_program),
		WITH_FIXTURE(test_opened_by_the_caller),
		WITH_FIXTURE(test_sink_error),
		WITH_FIXTURE(test_rights_are_the_invokers),
		WITH_FIXTURE(test_root_reads_what_all_may_read),
		WITH_FIXTURE(test_groups_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
