/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output files of root in a folder where another user may write. Each attack ends in "victim", a
 * file of root's elsewhere, if a link of that user is followed.
 */
#include "atomic_file.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define OTHER  65534 /* the user who attacks */
#define SECRET "what must stay"

static char *work; /* of root; the folder "theirs" in it is the attacker's */

static char *in_work(const char *name)
{
	return xasprintf("%s/%s", work, name);
}

static void put_file(const char *name, const char *text)
{
	_cleanup_free_ char *path = in_work(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static bool is_intact(const char *name)
{
	_cleanup_free_ char *path = in_work(name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) == strlen(SECRET) &&
	       !strcmp(text, SECRET);
}

/* A link that belongs to the given user. */
static void make_link(const char *to, const char *name, uid_t user)
{
	_cleanup_free_ char *path = in_work(name), *target = in_work(to);

	unlink(path);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(lchown(path, user, user), 0);
}

static void add_folder(const char *name, uid_t user, mode_t mode)
{
	_cleanup_free_ char *path = in_work(name);

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, user, user), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* Writes as an output is written. Returns the error. */
static int write_output_for(const char *name, const Invoker *invoker, bool in_place)
{
	_cleanup_free_ char *path = in_work(name);
	AtomicFile file;
	int error = atomic_file_open(path, invoker, in_place, &file);

	if (error)
		return error;
	assert_int_equal(write(file.fd, "output", 6), 6);
	if (file.temp_path)
		error = atomic_file_commit(&file, /* keep_old= */ true);
	atomic_file_discard(&file);
	return error;
}

static int write_output(const char *name)
{
	return write_output_for(name, NULL, /* in_place= */ true);
}

static bool exists(const char *name)
{
	_cleanup_free_ char *path = in_work(name);
	struct stat st;

	return lstat(path, &st) == 0;
}

static int set_up(void **state)
{
	(void)state;
	work = make_folder();
	assert_int_equal(chmod(work, 0755), 0);
	if (geteuid() == 0)
		add_folder("theirs", OTHER, 0755);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	remove_folder(work);
	return 0;
}

static void needs_root(void)
{
	if (geteuid() != 0)
		skip();
}

/* The kernel follows the link here even with fs.protected_symlinks: the folder is its owner's. */
static void test_link_of_the_folders_owner(void **state)
{
	(void)state;
	needs_root();
	put_file("victim", SECRET);
	make_link("victim", "theirs/link", OTHER);
	assert_int_equal(write_output("theirs/link"), -ENOLINK);
	assert_true(is_intact("victim"));
	make_link("victim-to-be", "theirs/link", OTHER);
	assert_int_equal(write_output("theirs/link"), -ENOLINK);
	assert_false(exists("victim-to-be"));
	/* The owner may replace a link of root's. */
	make_link("victim", "theirs/link", 0);
	assert_int_equal(write_output("theirs/link"), -ENOLINK);
	assert_true(is_intact("victim"));
}

static void test_folder_of_all(void **state)
{
	static const mode_t modes[] = {0777, 01777, 0775};
	_cleanup_free_ char *path = in_work("shared");
	struct stat st;

	(void)state;
	needs_root();
	put_file("victim", SECRET);
	add_folder("shared", 0, 0755);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(chown(path, 0, modes[i] == 0775 ? OTHER : 0), 0);
		assert_int_equal(chmod(path, modes[i]), 0);
		make_link("victim", "shared/link", OTHER);
		/* With fs.protected_symlinks the kernel refuses the sticky folder's. */
		assert_true(write_output("shared/link") < 0);
		assert_true(is_intact("victim"));
	}
	/* No other user can have made this one, or replaced it. */
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(chmod(path, 01777), 0);
	put_file("own", "old");
	make_link("own", "shared/own", 0);
	assert_int_equal(write_output("shared/own"), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(exists("own.old"));
}

static void test_link_to_a_folder(void **state)
{
	(void)state;
	needs_root();
	add_folder("roots", 0, 0755);
	make_link("roots", "theirs/folder", OTHER);
	assert_int_equal(write_output("theirs/folder/new"), -ENOLINK);
	assert_int_equal(write_output("theirs/folder/../theirs/folder/new"), -ENOLINK);
	assert_false(exists("roots/new"));
	/* Links of root's in root's folders are followed. */
	make_link("roots", "to-roots", 0);
	assert_int_equal(write_output("to-roots/new"), 0);
	assert_true(exists("roots/new"));
}

/* A user who runs wallprof by sudo may have links. */
static void test_invokers_link(void **state)
{
	Invoker invoker = {.change = true, .uid = OTHER, .gid = OTHER};

	(void)state;
	needs_root();
	add_folder("data", OTHER, 0755);
	make_link("data", "theirs/data", OTHER);
	assert_int_equal(write_output_for("theirs/data/new", &invoker, true), 0);
	assert_true(exists("data/new"));
	put_file("victim", SECRET);
	make_link("victim", "theirs/link", OTHER);
	assert_int_equal(write_output_for("theirs/link", &invoker, true), -EPERM);
	assert_true(is_intact("victim"));
}

/* NAME and NAME.old are renamed and replaced, never followed. */
static void test_old_names(void **state)
{
	(void)state;
	needs_root();
	put_file("victim", SECRET);
	make_link("victim", "theirs/plain.old", OTHER);
	put_file("theirs/plain", "of an earlier run");
	assert_int_equal(write_output("theirs/plain"), 0);
	assert_true(is_intact("victim"));
	assert_true(exists("theirs/plain.old"));
}

/* Who reads a FIFO gets the profile. */
static void test_fifo(void **state)
{
	_cleanup_free_ char *path = in_work("theirs/fifo"), *own = in_work("fifo");
	int reader;

	(void)state;
	needs_root();
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chown(path, OTHER, OTHER), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write_output("theirs/fifo"), -ENOLINK);
	close(reader);
	assert_int_equal(mkfifo(own, 0600), 0);
	reader = open(own, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write_output("fifo"), 0);
	assert_int_equal(write_output_for("fifo", NULL, /* in_place= */ false), -ENOTSUP);
	close(reader);
}

static void test_descriptors_by_path(void **state)
{
	_cleanup_free_ char *path = in_work("by-descriptor");
	_cleanup_free_ char *link = NULL, *pipe_link = NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), ends[2];
	AtomicFile file;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pipe(ends), 0);
	link = xasprintf("/proc/self/fd/%d", fd);
	pipe_link = xasprintf("/dev/fd/%d", ends[1]);
	assert_int_equal(atomic_file_open(link, NULL, true, &file), 0);
	assert_string_equal(file.place.name, "by-descriptor");
	atomic_file_discard(&file);
	assert_int_equal(atomic_file_open(pipe_link, NULL, true, &file), 0);
	assert_null(file.temp_path);
	assert_int_equal(write(file.fd, "x", 1), 1);
	atomic_file_discard(&file);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* ---- files of killed runs ------------------------------------------------------------- */

static pid_t dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

/* What a run that is killed leaves. Returns its name in `work`. */
static char *left_by_killed_run(const char *name)
{
	_cleanup_free_ char *path = in_work(name);
	pid_t pid = fork();

	if (pid == 0) {
		AtomicFile file;

		atomic_file_open(path, NULL, false, &file);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	return xasprintf("%s.tmp-%d-0", name, (int)pid);
}

static void test_killed_runs(void **state)
{
	_cleanup_free_ char *left = left_by_killed_run("out"), *other = left_by_killed_run("out2");
	_cleanup_free_ char *link = xasprintf("out.tmp-%d-1", (int)dead_pid());
	_cleanup_free_ char *own = xasprintf("out.tmp-%d-7", (int)getpid());
	_cleanup_free_ char *further = xasprintf("%s.txt", left);

	(void)state;
	assert_true(exists(left));
	assert_true(exists(other));
	put_file("victim", SECRET);
	put_file(own, "of a living process");
	put_file(further, "of another program");
	make_link("victim", link, geteuid());
	assert_int_equal(write_output("out"), 0);
	assert_false(exists(left));
	assert_true(exists(other)); /* that is another output's */
	assert_true(exists(own));
	assert_true(exists(further));
	assert_true(exists(link));
	assert_true(is_intact("victim"));
}

/* A run in another PID namespace has an ID that no process has here. */
static void test_living_run_elsewhere(void **state)
{
	_cleanup_free_ char *path = in_work("out"), *temp = NULL, *renamed = NULL;
	_cleanup_free_ char *name = xasprintf("out.tmp-%d-0", (int)dead_pid());
	AtomicFile file;

	(void)state;
	assert_int_equal(atomic_file_open(path, NULL, false, &file), 0);
	temp = in_work(file.temp_name);
	renamed = in_work(name);
	assert_int_equal(rename(temp, renamed), 0);
	assert_int_equal(write_output("out"), 0);
	assert_true(exists(name));
	atomic_file_discard(&file);
	assert_int_equal(write_output("out"), 0);
	assert_false(exists(name));
}

/* ---- between a look and the open ---------------------------------------------------- */

#define EXCHANGES 30000

static volatile bool over;
static volatile uint64_t exchanges;

/* Exchanges two names as fast as it can. */
static void *exchange(void *names)
{
	char **both = names;

	while (!over)
		exchanges += syscall(SYS_renameat2, AT_FDCWD, both[0], AT_FDCWD, both[1],
				     RENAME_EXCHANGE) == 0;
	return NULL;
}

static void attack(const char *name, const char *other, const char *output)
{
	_cleanup_free_ char *path = in_work(name), *other_path = in_work(other);
	char *both[] = {path, other_path};
	pthread_t thread;

	over = false;
	exchanges = 0;
	assert_int_equal(pthread_create(&thread, NULL, exchange, both), 0);
	while (exchanges < EXCHANGES && is_intact("victim") && !exists("roots2/new"))
		write_output(output);
	over = true;
	pthread_join(thread, NULL);
	assert_true(is_intact("victim"));
	assert_false(exists("roots2/new"));
}

static void test_exchanged(void **state)
{
	_cleanup_free_ char *fifo = in_work("theirs/x-fifo");
	int reader;

	(void)state;
	needs_root();
	put_file("victim", SECRET);
	add_folder("roots2", 0, 0755);
	add_folder("theirs/real", OTHER, 0755);
	make_link("roots2", "theirs/other", OTHER);
	attack("theirs/real", "theirs/other", "theirs/real/new");
	/* Only root's own FIFO is written to, in whatever folder. */
	assert_int_equal(mkfifo(fifo, 0600), 0);
	reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	make_link("victim", "theirs/x-link", OTHER);
	attack("theirs/x-fifo", "theirs/x-link", "theirs/x-fifo");
	close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_link_of_the_folders_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_folder_of_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_link_to_a_folder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_invokers_link, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fifo, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_descriptors_by_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_killed_runs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_living_run_elsewhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_exchanged, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
