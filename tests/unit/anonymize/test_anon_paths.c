/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths, names and texts that contain them: which parts are kept, and what stands for the others.
 */
#include "anon_addresses.h"
#include "anon_meta.h"
#include "anon_texts.h"
#include "test_tools.h"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>

static void expect(AnonNames *names, const char *path, const char *wanted)
{
	_cleanup_free_ char *got = anon_paths_replace(names, path);

	assert_string_equal(got, wanted);
}

static void expect_kept(const char *path)
{
	_cleanup_(anon_names_free) AnonNames names = {};

	expect(&names, path, path);
	assert_true(anon_paths_is_kept(&names, path));
}

static void test_kept(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/bin/python3.11",
		"/lib64/ld-linux-x86-64.so.2",
		"/usr/include/c++/12/bits/stl_vector.h",
		"/usr/lib/python3.11/threading.py",
		"/usr/bin/old (deleted)",
		"/dev/null",
		"/dev/tty12",
		"/dev/pts/3",
		"/dev/nvme0n1p2",
		"/dev/sda1",
		"/dev/dri/card0",
		"/proc/cpuinfo",
		"/proc/123/status",
		"/proc/123/task/124/schedstat",
		"/proc/self/fd/7",
		"/proc/sys/vm/drop_caches",
		"/sys/devices/system/cpu/online",
		"/tmp/perf-1234.map",
		"/etc/ld.so.cache",
		"/home",
		"/run/systemd/notify",
		"/rustc/0123456789abcdef0123456789abcdef01234567/library/std/src/thread/mod.rs",
		"[heap]",
		"[vdso]",
		"//anon",
		"/dev/zero (deleted)",
		"/SYSV00000000 (deleted)",
		"pipe:[123]",
		"anon_inode:[eventpoll]",
		"<frozen importlib._bootstrap>",
		"<string>",
		"__init__",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		expect_kept(paths[i]);
}

/* Each begins like a path that is kept, and has a name of a user. */
static void test_replaced(void **state)
{
	static const char *const paths[][2] = {
		{"/home"
		 "/alice/acme.py",
		 "/home"
		 "/dir1/file1.py"},
		{"/usr/local/bin/acme", "/usr/local/bin/file1"},
		{"/usr/share/acme/x", "/usr/share/dir1/file1"},
		{"/usr/share/zoneinfo/Europe/Berlin", "/usr/share/zoneinfo/dir1/file1"},
		{"/usr/src/acme/main.c", "/usr/src/dir1/file1.c"},
		{"/usr/lib/debug/srv/acme.debug", "/usr/lib/debug/dir1/file1"},
		{"/usr/lib/debug/.build-id/12/34.debug", "/usr/lib/debug/dir1/dir2/file1"},
		{"/usr/binary", "/usr/file1"},
		{"/usr/lib/node_modules/acme/index.js", "/usr/lib/node_modules/dir1/file1.js"},
		{"/usr/lib/python3.11/site-packages/acme.py",
		 "/usr/lib/python3.11/site-packages/file1.py"},
		{"/usr/bin/../../home/alice", "/dir1/dir2/../../dir3/file1"},
		{"/usr/lib/..", "/dir1/dir2/.."},
		{"/usr/bin/file7", "/usr/bin/file1"},
		{"/dev/shm/acme", "/dev/shm/file1"},
		{"/dev/mapper/acme", "/dev/mapper/file1"},
		{"/dev/nullx", "/dev/file1"},
		{"/dev/sdacme", "/dev/file1"},
		{"/proc/12/root/secret", "/proc/12/dir1/file1"},
		{"/proc/12/cwd/secret", "/proc/12/dir1/file1"},
		{"/proc/self/fd/7/secret/x", "/proc/self/fd/7/dir1/file1"},
		{"/proc/12/task/13/fd/7/secret", "/proc/12/task/13/fd/7/file1"},
		{"/proc/self/net/bonding/secret", "/proc/self/net/bonding/file1"},
		{"/proc/ACME", "/proc/file1"},
		{"/proc/driver/acme", "/proc/driver/file1"},
		{"/run/user/1000/bus", "/run/user/dir1/file1"},
		{"/sys/fs/cgroup/user.slice/acme.service",
		 "/sys/fs/cgroup/user.slice/file1.service"},
		{"/rustc/acme/library/x.rs", "/rustc/dir1/dir2/file1.rs"},
		{"/memfd:acme (deleted)", "/memfd:file1 (deleted)"},
		{"/memfd:/usr/bin/x", "/memfd:file1"},
		{"/dmabuf:acme", "/dmabuf:file1"},
		{"/SYSV0a0b0c0d", "/SYSVfile1"},
		{"[anon:acme]", "[anon:file1]"},
		{"[acme]", "[file1]"},
		{"<acme>", "<file1>"},
		{"<frozen ACME>", "<file1>"},
		{"<frozen acme.billing>", "<file1>"},
		{"acme:[Secret]", "file1"},
		{"libacme.so.1.2", "file1.so.1.2"},
		{"libacme.so.2024061112345", "file1"},
		{"libc-acme.so", "file1.so"},
		{"libc.so.6x", "file1"},
		{"python3.acme", "file1"},
		{"acme.secretextension", "file1"},
		{"a.tar.gz", "file1.tar.gz"},
		{".so.1", "file1"},
		{"/srv//x/", "/srv//dir1/"},
		{"/srv/\xff\x01 \n", "/srv/file1"},
		{"/srv/a/lib/python3.11/threading.py", "/srv/dir1/dir2/python3.11/threading.py"},
		{"/srv/python3.11/acme.py", "/srv/python3.11/file1.py"},
		{"/srv/python3.x/threading.py", "/srv/dir1/file1.py"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		_cleanup_(anon_names_free) AnonNames names = {};

		expect(&names, paths[i][0], paths[i][1]);
		assert_false(anon_paths_is_kept(&names, paths[i][0]));
		expect(&names, paths[i][0], paths[i][1]);
	}
}

/* A name has one replacement in all roles; a name like a replacement has another one. */
static void test_consistent(void **state)
{
	_cleanup_(anon_names_free) AnonNames names = {.is_learning = true};
	_cleanup_free_ char *before = anon_names_comm(&names, "acme"), *comm = NULL, *cut = NULL;
	_cleanup_free_ char *shell = NULL;

	(void)state;
	assert_string_equal(before, "");
	free(anon_paths_replace(&names, "/home"
					"/acme/acme-with-a-long-name.py"));
	free(anon_paths_replace(&names, "/usr/bin/mysh"));
	anon_names_learned(&names);
	expect(&names, "/srv/acme", "/srv/dir1");
	comm = anon_names_comm(&names, "acme");
	assert_string_equal(comm, "dir1");
	/* The kernel cuts it to 15 bytes. */
	cut = anon_names_comm(&names, "acme-with-a-lon");
	expect(&names, "acme-with-a-long-name.py", "file1.py");
	assert_string_equal(cut, "file1");
	shell = anon_names_comm(&names, "mysh");
	assert_string_equal(shell, "mysh");
	expect(&names,
	       "/home"
	       "/acme/mysh",
	       "/home"
	       "/dir1/mysh");
	expect(&names, "file1", "file2");
	expect(&names, "dir1", "file3");
	expect(&names, "file1.py", "file2.py");
	expect(&names, "file4", "file4");
	/* The last one is a coincidence: its number is that of its order. */
	assert_true(anon_names_is_replacement("thread12.c"));
	assert_false(anon_names_is_replacement("threads"));
}

/* Different names get different replacements, also where there are many; it is not quadratic. */
static void test_many(void **state)
{
	_cleanup_(anon_names_free) AnonNames names = {.is_learning = true};
	enum { COUNT = 100000 };

	(void)state;
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < COUNT; i++) {
			char path[64], wanted[64];
			_cleanup_free_ char *got = NULL;

			snprintf(path, sizeof(path), "/srv/acme/x%u.c", i * 7919);
			snprintf(wanted, sizeof(wanted), "/srv/dir1/file%u.c", i + 1);
			got = anon_paths_replace(&names, path);
			if (pass > 0)
				assert_string_equal(got, wanted);
		}
		if (pass == 0)
			anon_names_learned(&names);
	}
	assert_int_equal(names.replaced[ANON_FILE], COUNT);
	assert_int_equal(names.replaced[ANON_FOLDER], 1);
}

/* No part of random paths gets through, whatever they begin with. */
static void test_random(void **state)
{
	static const char *const begins[] = {"",
					     "/",
					     "/home/",
					     "/usr/local/",
					     "/dev/shm/",
					     "/proc/1/root/",
					     "[anon:",
					     "/memfd:",
					     "/srv/python3.11/",
					     "/usr/bin/../",
					     "<"};

	(void)state;
	for (int i = 0; i < 2000; i++) {
		_cleanup_(anon_names_free) AnonNames names = {.is_learning = random_below(2)};
		char secret[] = "zqxxxxxx", path[4200];
		_cleanup_free_ char *got = NULL, *again = NULL;
		size_t length = 0, parts = 1 + random_below(4);

		for (size_t k = 2; secret[k]; k++)
			secret[k] = 'b' + (char)random_below(24);
		length =
			snprintf(path, sizeof(path), "%s", begins[random_below(ARRAY_LEN(begins))]);
		for (size_t k = 0; k < parts; k++)
			length += snprintf(path + length, sizeof(path) - length, "%s%s%c%s",
					   k ? "/" : "", secret, (char)(1 + random_below(255)),
					   random_below(2) ? ".py" : "");
		if (random_below(20) == 0) {
			memset(path + length, 'x', sizeof(path) - length - 1);
			path[sizeof(path) - 1] = '\0';
		}
		free(anon_paths_replace(&names, path));
		if (names.is_learning)
			anon_names_learned(&names);
		got = anon_paths_replace(&names, path);
		again = anon_paths_replace(&names, path);
		assert_null(strstr(got, secret));
		assert_string_equal(got, again);
	}
}

static void expect_args(const char *args, size_t size, const char *wanted, size_t wanted_size)
{
	_cleanup_(anon_names_free) AnonNames names = {};
	AnonText text = {};

	anon_texts_args(&names, args, size, &text);
	assert_int_equal(text.count, wanted_size);
	if (wanted_size > 0)
		assert_memory_equal(text.items, wanted, wanted_size);
	vec_free(&text);
}

#define EXPECT_ARGS(args, wanted) expect_args(args, sizeof(args) - 1, wanted, sizeof(wanted) - 1)

static void test_args(void **state)
{
	(void)state;
	EXPECT_ARGS("", "");
	EXPECT_ARGS("acme\0--key=secret\0-c\0x y\0", "file1\0--arg1\0-c\0arg2\0");
	/* What is an option and what is not: titles of processes are made by it. */
	EXPECT_ARGS("node\0--acme-on\0-acme\0app.js\0", "node\0--arg1\0-arg2\0arg3.js\0");
	EXPECT_ARGS("java\0-cp\0acme\0-jar\0acme.jar\0", "java\0-cp\0arg1\0-jar\0arg1.jar\0");
	EXPECT_ARGS("bash\0-lc\0acme\0+x\0---acme\0-eve\0", "bash\0-lc\0arg1\0+x\0--arg2\0-arg3\0");
	EXPECT_ARGS("/usr/bin/python3\0/srv/acme.py\0", "/usr/bin/python3\0/srv/file1.py\0");
	EXPECT_ARGS("-bash\0", "-bash\0");
	EXPECT_ARGS("-acme\0", "-file1\0");
	EXPECT_ARGS("python3\0-m\0acme\0\0\0", "python3\0-m\0arg1\0\0\0");
	/* A title begins like a path that is kept; the last argument may be cut. */
	EXPECT_ARGS("/usr/sbin/daemon: job of alice", "file1");
	EXPECT_ARGS("x\0/bin/secret?token\0/lib/alice@host\0/srv/a@b/c",
		    "file1\0arg1\0arg2\0/srv/dir1/file2");
	EXPECT_ARGS("/usr/bin/x\0/usr/bin/x=alice\0-abc", "/usr/bin/x\0arg1\0-arg2");
}

static void expect_command(const char *command, const char *wanted)
{
	_cleanup_(anon_names_free) AnonNames names = {};
	_cleanup_free_ char *got = anon_texts_command(&names, command);

	assert_string_equal(got, wanted);
}

static void test_command(void **state)
{
	(void)state;
	expect_command("", "");
	expect_command("./acme -v secret", "./file1 -v arg1");
	expect_command("sh -c 'it'\\''s secret; /usr/bin/x'", "sh -c arg1");
	expect_command("/usr/bin/env a 'b", "/usr/bin/env arg1 arg2");
	expect_command("a\\", "file1");
}

/* A command may have as many arguments as execve() takes; it is not quadratic. */
static void test_long_command(void **state)
{
	_cleanup_(anon_names_free) AnonNames names = {};
	enum { SIZE = 2 << 20 };
	_cleanup_free_ char *command = xcalloc(1, SIZE + 1), *got = NULL;
	clock_t begin = clock();

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		command[i] = i % 2 ? ' ' : 'x';
	got = anon_texts_command(&names, command);
	assert_int_equal(strlen(got), SIZE / 2 * strlen("file1 ") - 1);
	/* It takes less than 1 s; copies of what is before each word would have 3 TB. */
	assert_true(clock() - begin < 20 * CLOCKS_PER_SEC);
}

static void expect_function(const char *name, const char *wanted)
{
	_cleanup_(anon_names_free) AnonNames names = {};
	_cleanup_free_ char *got = anon_texts_function(&names, name);

	assert_string_equal(got, wanted);
}

static void test_functions(void **state)
{
	static const char *const kept[] = {
		"main",
		"operator/",
		"operator/=(A const&, B const&)",
		"std::ratio<1/2>",
		"net/http.(*conn).serve",
		"github.com/acme/x.(*T).F",
		"Lcom/acme/X;::run",
		"[no symbols 0x1000-0x2000]",
		"node:internal/timers:1:2",
		"a::b<c>::d",
		"",
		"JS:*run node:internal/process/task_queues:68:35",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		expect_function(kept[i], kept[i]);
	expect_function("f<(lambda at /home"
			"/alice/x.cc:12:3)>()",
			"f<(lambda at /home"
			"/dir1/file1.cc:12:3)>()");
	expect_function("(lambda at ../alice/x.cc:12:3)", "(lambda at ../dir1/file1.cc:12:3)");
	expect_function("(lambda at acme.cc:12:3)", "(lambda at file1.cc:12:3)");
	expect_function("JS:*run file:///srv/a b/acme.js:3:1",
			"JS:*run file:///srv/dir1/file1.js:3:1");
	expect_function("LazyCompile:~run acme.js:3:1", "LazyCompile:~run file1.js:3:1");
	expect_function("LazyCompile:~run lib/acme.js:3:1", "LazyCompile:~run dir1/file1.js:3:1");
	/* A script may be called anything. */
	expect_function("JS:*run acme:3:1", "JS:*run file1:3:1");
	expect_function("JS:^get run acme page.tpl:3:1", "JS:^get run file1:3:1");
	expect_function("Script:~ acme:1:1", "Script:~ file1:1:1");
	expect_function("JS:*get run node:vm:3:1", "JS:*get run node:vm:3:1");
	expect_function("py::A.run:acme.py", "py::A.run:file1.py");
	expect_function("TRACE_7::acme.lua:12", "TRACE_7::file1.lua:12");
	expect_function("TRACE_7::/srv/acme.lua:12", "TRACE_7::/srv/file1.lua:12");
	expect_function("_GLOBAL__sub_I_acme.cpp", "_GLOBAL__sub_I_file1.cpp");
	expect_function("static initializers for acme.cpp", "static initializers for file1.cpp");
	expect_function("_GLOBAL__sub_I_main", "_GLOBAL__sub_I_main");
	expect_function("RegExp:^acme/x$", "RegExp:arg1");
	expect_function("py::run:/srv/acme.py", "py::run:/srv/file1.py");
	expect_function("py::run:/usr/lib/python3.12/threading.py",
			"py::run:/usr/lib/python3.12/threading.py");
}

static void expect_address(AnonNames *names, uint16_t family, const char *from, const char *wanted)
{
	uint8_t address[16] = {};
	char text[INET6_ADDRSTRLEN];

	assert_int_equal(inet_pton(family, from, address), 1);
	anon_addresses_replace(names, family, address);
	assert_non_null(inet_ntop(family, address, text, sizeof(text)));
	assert_string_equal(text, wanted);
}

static void test_addresses(void **state)
{
	_cleanup_(anon_names_free) AnonNames names = {};

	(void)state;
	expect_address(&names, AF_INET, "0.0.0.0", "0.0.0.0");
	expect_address(&names, AF_INET, "127.0.0.1", "127.0.0.1");
	expect_address(&names, AF_INET, "192.168.1.7", "240.0.0.1");
	expect_address(&names, AF_INET, "127.9.8.7", "240.0.0.2");
	expect_address(&names, AF_INET, "192.168.1.7", "240.0.0.1");
	expect_address(&names, AF_INET6, "::", "::");
	expect_address(&names, AF_INET6, "::1", "::1");
	expect_address(&names, AF_INET6, "fe80::1:2", "2001:db8::3");
	expect_address(&names, AF_INET6, "::ffff:192.168.1.7", "::ffff:240.0.0.1");
	expect_address(&names, AF_INET6, "::ffff:127.0.0.1", "::ffff:127.0.0.1");
}

static void expect_meta(const char *text, const char *wanted)
{
	_cleanup_(anon_names_free) AnonNames names = {};
	_cleanup_free_ char *got = anon_meta_replace(&names, text);

	if (!wanted)
		assert_null(got);
	else
		assert_string_equal(got, wanted);
}

/* Names of kernel threads in which a user has chosen a part. */
static void test_kernel_threads(void **state)
{
	static const char *const kept[] = {"kworker/u8:2-flush-253:0",
					   "jbd2/dm-0-8",
					   "ksoftirqd/1",
					   "nfsd",
					   "scsi_eh_0",
					   "kdamond.0",
					   "md127_raid1",
					   ""};
	static const char *const users[] = {"192.168.7.9-man", "10.0.0.1-manage", "fe80::1:2-manag",
					    "2001:db8:7:9-ma", "drbd_w_acme",	  "dlm_acme",
					    "wg-crypt-acme",   "napi/acme-12"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		_cleanup_(anon_names_free) AnonNames names = {};
		_cleanup_free_ char *got = anon_names_kernel_comm(&names, kept[i]);

		assert_string_equal(got, kept[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		_cleanup_(anon_names_free) AnonNames names = {};
		_cleanup_free_ char *got = anon_names_kernel_comm(&names, users[i]);

		assert_string_equal(got, "thread1");
	}
}

static void test_meta(void **state)
{
	(void)state;
	expect_meta("hostname=acme", "hostname=host1");
	expect_meta("command=./acme secret", "command=./file1 arg1");
	expect_meta("cgroup=/user.slice/acme.service", "cgroup=/user.slice/file1.service");
	expect_meta("kernel=6.1.0", "kernel=6.1.0");
	expect_meta("boot_id=123", NULL);
	expect_meta("future=secret", NULL);
	expect_meta("kernelx=secret", NULL);
	expect_meta("secret", NULL);
	expect_meta("", NULL);
}

/* Names of C++ have any length. Each is read in one pass: two would be 10^12 steps here. */
static void test_long_functions(void **state)
{
	static const char *const parts[] = {"a::", " at ", "x.js:", "std::f<1>"};
	enum { SIZE = 1 << 20 };
	clock_t begin = clock();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		_cleanup_(anon_names_free) AnonNames names = {};
		_cleanup_free_ char *name = xcalloc(1, SIZE + 1), *got = NULL;

		for (size_t k = 0; k < SIZE; k++)
			name[k] = parts[i][k % strlen(parts[i])];
		got = anon_texts_function(&names, name);
		assert_string_equal(got, name);
	}
	assert_true(clock() - begin < 20 * CLOCKS_PER_SEC);
}

/* What the kernel calls a file without an inode of its own. */
static void test_objects(void **state)
{
	static const char *const names_of[][2] = {{"[eventfd]", "[eventfd]"},
						  {"kvm-vcpu:3", "kvm-vcpu:3"},
						  {"[acme]", "file1"},
						  {"[", "file1"},
						  {"", ""}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names_of); i++) {
		_cleanup_(anon_names_free) AnonNames names = {};
		_cleanup_free_ char *got = anon_paths_object(&names, names_of[i][0]);

		assert_string_equal(got, names_of[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),	     cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_consistent),   cmocka_unit_test(test_many),
		cmocka_unit_test(test_random),	     cmocka_unit_test(test_args),
		cmocka_unit_test(test_command),	     cmocka_unit_test(test_functions),
		cmocka_unit_test(test_addresses),    cmocka_unit_test(test_meta),
		cmocka_unit_test(test_objects),	     cmocka_unit_test(test_kernel_threads),
		cmocka_unit_test(test_long_command), cmocka_unit_test(test_long_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
