/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Debug files from a server: a small one on the loopback interface, which has what it is given. */
#include "debuginfod.h"
#include "file_server.h"
#include "signals.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#define CONTENT "\177ELF as the server has it"
#define LENGTH	20

typedef struct Fixture {
	char *folder; /* of the server, and the client's cache */
	char *cache;
	uint8_t build_id[LENGTH];
	FileServer server;
} Fixture;

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));
	char hex[2 * LENGTH + 1];

	for (size_t i = 0; i < LENGTH; i++) {
		fixture->build_id[i] = random_below(256);
		sprintf(hex + 2 * i, "%02x", fixture->build_id[i]);
	}
	fixture->folder = make_folder();
	fixture->cache = xasprintf("%s/cache", fixture->folder);
	run("cd '%s' && mkdir -m 777 cache && mkdir -p buildid/%s && printf '" CONTENT
	    "' > buildid/%s/debuginfo",
	    fixture->folder, hex, hex);
	start_server(&fixture->server, fixture->folder);
	setenv("DEBUGINFOD_URLS", fixture->server.url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", fixture->cache, 1);
	setenv("DEBUGINFOD_TIMEOUT", "5", 1);
	setenv("no_proxy", "*", 1);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	stop_server(&fixture->server);
	unsetenv("DEBUGINFOD_URLS");
	remove_folder(fixture->folder);
	free(fixture->cache);
	free(fixture);
	return 0;
}

static void expect_content(Fixture *fixture, const Invoker *invoker)
{
	char text[sizeof(CONTENT)] = "";
	int fd = debuginfod_find(fixture->build_id, LENGTH, "/bin/x", invoker, 0);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, text, sizeof(text), 0), sizeof(CONTENT) - 1);
	assert_string_equal(text, CONTENT);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void test_wanted(void **state)
{
	(void)state;
	assert_true(debuginfod_enabled());
	setenv("DEBUGINFOD_URLS", "", 1);
	assert_false(debuginfod_enabled());
	unsetenv("DEBUGINFOD_URLS");
	assert_false(debuginfod_enabled());
}

static void test_found(void **state)
{
	Fixture *fixture = *state;
	Invoker invoker = {};

	NEEDS_LIBRARY();
	expect_content(fixture, &invoker);
	run("grep -q 'GET /buildid/.*/debuginfo.* 200' '%s/log'", fixture->folder);
	/* The second time from the client's own cache: there is no server any more. */
	stop_server(&fixture->server);
	expect_content(fixture, &invoker);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_not_found(void **state)
{
	Fixture *fixture = *state;
	Invoker invoker = {};

	NEEDS_LIBRARY();
	fixture->build_id[random_below(LENGTH)] ^= 1;
	assert_int_equal(debuginfod_find(fixture->build_id, LENGTH, "/bin/x", &invoker, 0),
			 -ENOENT);
	run("grep -q ' 404 ' '%s/log'", fixture->folder);
}

static void test_no_server(void **state)
{
	Fixture *fixture = *state;
	Invoker invoker = {};

	NEEDS_LIBRARY();
	stop_server(&fixture->server);
	assert_true(debuginfod_find(fixture->build_id, LENGTH, "/bin/x", &invoker, 0) < 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_as_invoker(void **state)
{
	Fixture *fixture = *state;
	Invoker invoker = {.change = true, .uid = 12345, .gid = 23456, .home = "/nonexistent"};
	_cleanup_free_ char *owners = NULL;

	NEEDS_LIBRARY();
	if (geteuid())
		skip_because("not root");
	expect_content(fixture, &invoker);
	owners = output_of("find '%s' -name debuginfo -printf '%%U:%%G\\n'", fixture->cache);
	assert_string_equal(owners, "12345:23456\n");
	assert_int_equal(geteuid(), 0);
	/* Where only root may write nothing comes. */
	run("rm -r '%s' && mkdir -m 700 '%s'", fixture->cache, fixture->cache);
	assert_true(debuginfod_find(fixture->build_id, LENGTH, "/bin/x", &invoker, 0) < 0);
	run("test -z \"$(ls -A '%s')\"", fixture->cache);
}

/*
 * While it waits for a server that does not answer, it is the invoker in every respect, has
 * nothing open that is ours, and dies with us.
 */
static void test_what_it_is(void **state)
{
	Fixture *fixture = *state;
	Invoker invoker = {.change = true, .uid = 12345, .gid = 23456, .home = "/nonexistent"};
	_cleanup_free_ char *child = NULL, *ids = NULL, *files = NULL;
	pid_t parent;
	int status;

	NEEDS_LIBRARY();
	if (geteuid())
		skip_because("not root");
	kill(fixture->server.pid, SIGSTOP);
	parent = fork();
	if (parent == 0) {
		int secret = fcntl(open("/etc/passwd", O_RDONLY), F_DUPFD, 50);

		debuginfod_find(fixture->build_id, LENGTH, "/bin/x", &invoker, 0);
		_exit(secret < 0);
	}
	for (int i = 0; i < 300 && !ids; i++) {
		usleep(10000);
		free(child);
		child = try_output("pgrep -P %d | tr -d '\\n'", parent);
		if (child && *child)
			ids = try_output("grep -q '^Uid:.12345' /proc/%s/status && sleep 0.3 && "
					 "sed -n 's/^[UG]id:.//p' /proc/%s/status",
					 child, child);
	}
	assert_non_null(ids);
	files = output_of("readlink /proc/%s/fd/* | grep -c passwd || true", child);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_string_equal(ids, "12345\t12345\t12345\t12345\n23456\t23456\t23456\t23456\n");
	assert_string_equal(files, "0\n");
	/* It is gone, or a zombie. */
	run("for i in $(seq 100); do test -e /proc/%s/stat || exit 0; "
	    "grep -qs ') Z ' /proc/%s/stat && exit 0; sleep 0.1; done; exit 1",
	    child, child);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* ---- hostile servers -------------------------------------------------------------------- */

#define TIMEOUT_NS (2 * NSEC_PER_SEC)
#define SLACK_NS   (8 * NSEC_PER_SEC) /* on a busy machine */

/* argv: how it answers, and the file for its port. */
static const char hostile[] =
	"import socket, sys, threading, time\n"
	"HEAD = b'HTTP/1.1 200 OK\\r\\nContent-Type: application/octet-stream\\r\\n\\r\\n'\n"
	"def serve(client):\n"
	"    try:\n"
	"        client.recv(4096)\n"
	"        if sys.argv[1] == 'redirects':\n"
	"            client.sendall(b'HTTP/1.1 302 Found\\r\\nLocation: /x%d\\r\\n'\n"
	"                           b'Content-Length: 0\\r\\n\\r\\n' % time.monotonic_ns())\n"
	"        elif sys.argv[1] != 'silent':\n"
	"            client.sendall(HEAD)\n"
	"            while True:\n"
	"                client.sendall(b'x' * (1 if sys.argv[1] == 'trickle' else 65536))\n"
	"                time.sleep(0.3 if sys.argv[1] == 'trickle' else 0.001)\n"
	"        else:\n"
	"            time.sleep(1000)\n"
	"        client.close()\n"
	"    except OSError:\n"
	"        pass\n"
	"server = socket.create_server(('127.0.0.1', 0))\n"
	"open(sys.argv[2], 'w').write('http://127.0.0.1:%d/\\n' % server.getsockname()[1])\n"
	"while True:\n"
	"    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()\n";

static pid_t start_hostile(const Fixture *fixture, const char *how)
{
	_cleanup_free_ char *file = xasprintf("%s/port-%s", fixture->folder, how), *url = NULL;
	pid_t pid = fork();

	if (pid == 0) {
		execlp("python3", "python3", "-c", hostile, how, file, NULL);
		_exit(1);
	}
	for (int i = 0; i < 1000 && !url; i++) {
		usleep(10000);
		url = try_output("grep -s http '%s'", file);
	}
	assert_non_null(url);
	url[strcspn(url, "\n")] = '\0';
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_TIMEOUT", "100", 1);
	return pid;
}

static uint64_t time_of_find(const Fixture *fixture, uint64_t timeout_ns, int *ret_error)
{
	Invoker invoker = {};
	uint64_t begin = now_ns();

	*ret_error = debuginfod_find(fixture->build_id, LENGTH, "/bin/x", &invoker,
				     timeout_ns ? begin + timeout_ns : 0);
	return now_ns() - begin;
}

static void check_hostile(Fixture *fixture, const char *how)
{
	pid_t server = start_hostile(fixture, how);
	uint64_t ns;
	int error;

	ns = time_of_find(fixture, TIMEOUT_NS, &error);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	/* The client itself may give up earlier, but it has no file. */
	assert_true(error < 0);
	assert_true(ns < TIMEOUT_NS + SLACK_NS);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	/* Nothing unfinished is left in the cache. */
	run("test -z \"$(find '%s' -name '*debuginfo*' -size +0)\"", fixture->cache);
}

static void test_hostile_servers(void **state)
{
	Fixture *fixture = *state;

	NEEDS_LIBRARY();
	stop_server(&fixture->server);
	check_hostile(fixture, "silent");
	check_hostile(fixture, "trickle");
	check_hostile(fixture, "redirects");
	check_hostile(fixture, "endless");
}

/* A time limit of wallprof's is what ends it: the client would wait on. */
static void test_hostile_without_limit(void **state)
{
	Fixture *fixture = *state;
	pid_t server, other;
	int error, status;

	NEEDS_LIBRARY();
	server = start_hostile(fixture, "trickle");
	other = fork();
	if (other == 0) {
		time_of_find(fixture, 0, &error);
		_exit(0);
	}
	usleep((TIMEOUT_NS + NSEC_PER_SEC) / 1000);
	assert_int_equal(waitpid(other, &status, WNOHANG), 0);
	kill(other, SIGKILL);
	kill(server, SIGKILL);
	waitpid(other, NULL, 0);
	waitpid(server, NULL, 0);
}

/* The signal's handler only sets a flag, and the wait returns. */
static void test_interrupted(void **state)
{
	Fixture *fixture = *state;
	pid_t server, other;
	uint64_t ns;
	int error;

	NEEDS_LIBRARY();
	server = start_hostile(fixture, "silent");
	signals_guard("x.capture");
	signals_begin_lookup();
	other = fork();
	if (other == 0) {
		sleep(1);
		kill(getppid(), SIGINT);
		_exit(0);
	}
	ns = time_of_find(fixture, 0, &error);
	assert_int_equal(error, -EINTR);
	assert_true(ns < NSEC_PER_SEC + SLACK_NS);
	assert_true(signals_lookup_stopped());
	signals_end_lookup();
	signals_release();
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	waitpid(other, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_wanted),	    WITH_FIXTURE(test_found),
		WITH_FIXTURE(test_not_found),	    WITH_FIXTURE(test_no_server),
		WITH_FIXTURE(test_as_invoker),	    WITH_FIXTURE(test_what_it_is),
		WITH_FIXTURE(test_hostile_servers), WITH_FIXTURE(test_hostile_without_limit),
		WITH_FIXTURE(test_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
