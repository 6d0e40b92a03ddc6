/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sandboxed child tries to get out in many ways. Each way is first tried by a child that is not
 * confined, where it must work: else its failure in the sandbox would prove nothing.
 */
#include "sandbox.h"
#include "test_tools.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#define SECRET "what only the parent may read"

/* ---- ways out ------------------------------------------------------------------------- */

/* What the tries need; the child has it by fork. */
static struct {
	char *folder, *file;
	int secret_fd; /* open in the parent, not given */
	int listener;  /* a local socket that every user may connect to */
	pid_t parent;
	struct sockaddr_un address;
} here;

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

static int try_open(void)
{
	return error_of(open("/etc/passwd", O_RDONLY));
}

static int try_create(void)
{
	_cleanup_free_ char *path = xasprintf("%s/new", here.folder);

	return error_of(open(path, O_WRONLY | O_CREAT, 0600));
}

static int try_unlink(void)
{
	return error_of(unlink(here.file));
}

static int try_rename(void)
{
	_cleanup_free_ char *path = xasprintf("%s/moved", here.folder);

	return error_of(rename(here.file, path));
}

static int try_chmod(void)
{
	return error_of(chmod(here.file, 0777));
}

static int try_read_secret(void)
{
	char text[sizeof(SECRET)];

	return error_of(pread(here.secret_fd, text, sizeof(text), 0));
}

static int try_proc_fd(void)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/fd/%d", here.parent, here.secret_fd);

	return error_of(open(path, O_RDONLY));
}

static int try_socket(void)
{
	return error_of(socket(AF_INET, SOCK_STREAM, 0));
}

static int try_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return fd < 0 ? errno
		      : error_of(connect(fd, (struct sockaddr *)&here.address,
					 sizeof(here.address)));
}

static int try_fork(void)
{
	pid_t pid = syscall(SYS_fork);

	if (pid == 0)
		_exit(0);
	return error_of(pid);
}

static int try_clone(void)
{
	pid_t pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return error_of(pid);
}

/* It would not come back if it succeeded: so of a program that is not there. */
static int try_exec(void)
{
	char *none[] = {NULL};
	int error = error_of(execve("/nonexistent/program", none, none));

	return error == ENOENT ? 0 : error;
}

static int try_kill(void)
{
	return error_of(kill(here.parent, 0));
}

static int try_ptrace(void)
{
	return error_of(ptrace(PTRACE_SEIZE, here.parent, NULL, NULL));
}

static int try_peek(void)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {(void *)SECRET, 1};

	return error_of(process_vm_readv(here.parent, &to, 1, &from, 1, 0));
}

static int try_pidfd(void)
{
	return error_of(syscall(SYS_pidfd_open, here.parent, 0));
}

static int try_map_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int try_make_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? 0 : error_of(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

/* RLIMIT_DATA does not count it. */
static int try_share_memory(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int try_memfd(void)
{
	return error_of(memfd_create("x", 0));
}

static int try_bpf(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	return error_of(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int try_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY};

	return error_of(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int try_raise_limit(void)
{
	struct rlimit limit = {64, 64};

	return error_of(setrlimit(RLIMIT_NOFILE, &limit));
}

static int try_change_user(void)
{
	return error_of(syscall(SYS_setresuid, getuid(), geteuid(), -1));
}

static int try_new_namespace(void)
{
	return error_of(unshare(CLONE_NEWUSER));
}

static int try_ioctl(void)
{
	int waiting;

	return error_of(ioctl(here.listener, FIONREAD, &waiting)) == EPERM ? EPERM : 0;
}

static int try_prctl(void)
{
	return error_of(prctl(PR_SET_NAME, "innocent"));
}

static int try_signal_handler(void)
{
	return error_of(sigaction(SIGXCPU, &(struct sigaction){.sa_handler = SIG_IGN}, NULL));
}

static const struct way {
	const char *name;
	int (*try)(void);		  /* 0 = it worked, else an errno */
	enum { COMMON, PRIVILEGED } kind; /* some machines forbid the latter to all */
} ways[] = {
	{"open a file", try_open, COMMON},
	{"create a file", try_create, COMMON},
	{"remove a file", try_unlink, COMMON},
	{"rename a file", try_rename, COMMON},
	{"chmod a file", try_chmod, COMMON},
	{"read a descriptor that was not given", try_read_secret, COMMON},
	{"open a descriptor of the parent", try_proc_fd, COMMON},
	{"make a socket", try_socket, COMMON},
	{"connect", try_connect, COMMON},
	{"fork", try_fork, COMMON},
	{"clone", try_clone, COMMON},
	{"exec", try_exec, COMMON},
	{"signal the parent", try_kill, COMMON},
	{"trace the parent", try_ptrace, PRIVILEGED},
	{"read the parent's memory", try_peek, PRIVILEGED},
	{"open the parent as a pidfd", try_pidfd, COMMON},
	{"map executable memory", try_map_executable, COMMON},
	{"make memory executable", try_make_executable, COMMON},
	{"share memory", try_share_memory, COMMON},
	{"make a memory file", try_memfd, COMMON},
	{"bpf", try_bpf, PRIVILEGED},
	{"perf_event_open", try_perf, PRIVILEGED},
	{"change a limit", try_raise_limit, COMMON},
	{"change the user", try_change_user, COMMON},
	{"make a namespace", try_new_namespace, PRIVILEGED},
	{"ioctl", try_ioctl, COMMON},
	{"prctl", try_prctl, COMMON},
	{"ignore a signal", try_signal_handler, COMMON},
};

static int set_up(void **state)
{
	int fd;

	(void)state;
	here.parent = getpid();
	here.folder = make_folder();
	here.file = xasprintf("%s/file", here.folder);
	write_file(here.folder, "file", SECRET);
	fd = open(here.file, O_RDONLY);
	/* A number that the child gives to nothing of its own. */
	here.secret_fd = fcntl(fd, F_DUPFD, 100);
	close(fd);
	here.address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(here.address.sun_path, sizeof(here.address.sun_path), "%s/socket", here.folder);
	here.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(
		bind(here.listener, (struct sockaddr *)&here.address, sizeof(here.address)), 0);
	assert_int_equal(chmod(here.address.sun_path, 0777), 0);
	assert_int_equal(listen(here.listener, 64), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(here.secret_fd);
	close(here.listener);
	free(here.file);
	remove_folder(here.folder);
	return 0;
}

/* ---- helpers ---------------------------------------------------------------------------- */

static void send_bytes(int socket, const void *data, size_t size)
{
	sandbox_send(socket, data, size, -1);
}

/* Waits ten seconds for it at most. */
static void hear(const Sandbox *sandbox, void *data, size_t size)
{
	char *p = data;

	while (size > 0) {
		struct pollfd polled = {.fd = sandbox->socket, .events = POLLIN};
		ssize_t got;

		assert_int_equal(poll(&polled, 1, 10000), 1);
		got = recv(sandbox->socket, p, size, 0);
		assert_true(got > 0);
		p += got;
		size -= got;
	}
}

static bool is_gone(pid_t pid)
{
	_cleanup_free_ char *stat = try_output("cat /proc/%d/stat 2>/dev/null", pid);

	return !stat || strstr(stat, ") Z ");
}

/* Until it is gone: five seconds at most. */
static bool goes_away(pid_t pid)
{
	for (int i = 0; i < 500 && !is_gone(pid); i++)
		usleep(10000);
	return is_gone(pid);
}

/* The value of a line of its /proc/PID/status, allocated. */
static char *status_of(pid_t pid, const char *key)
{
	return output_of("sed -n 's/^%s:[[:space:]]*//p' /proc/%d/status | tr -d '\\n'", key, pid);
}

static void wait_for_end(int socket)
{
	uint8_t byte;
	int fd;

	send_bytes(socket, "", 1);
	sandbox_receive(socket, &byte, 1, &fd);
}

/* ---- tests ------------------------------------------------------------------------------ */

static void try_one(int socket, const int *fds, const void *argument)
{
	uint8_t answer = (*(const struct way *const *)argument)->try();

	(void)fds;
	send_bytes(socket, &answer, 1);
}

/* An ordinary child. */
static uint8_t try_outside(const struct way *way)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(way->try());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_no_way_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		const struct way *way = &ways[i];
		uint8_t outside, inside;
		SandboxLimits limits = {};
		Sandbox sandbox;

		assert_int_equal(sandbox_start(try_one, NULL, 0, &way, &limits, &sandbox), 0);
		hear(&sandbox, &inside, 1);
		sandbox_end(&sandbox);
		write_file(here.folder, "file", SECRET);
		outside = try_outside(way);
		write_file(here.folder, "file", SECRET);
		if (inside != EPERM && (way->try != try_read_secret || inside != EBADF))
			fail_msg("the child may %s (%s)", way->name, strerror(inside));
		if (outside && way->kind == PRIVILEGED)
			print_message("unproven: no process here may %s\n", way->name);
		else if (outside)
			fail_msg("no process here may %s: %s", way->name, strerror(outside));
	}
}

static void wait_main(int socket, const int *fds, const void *argument)
{
	(void)fds;
	(void)argument;
	wait_for_end(socket);
}

static void test_who_it_is(void **state)
{
	static const struct {
		const char *key, *value;
	} wanted[] = {
		{"CapEff", "0000000000000000"},
		{"CapPrm", "0000000000000000"},
		{"CapInh", "0000000000000000"},
		{"NoNewPrivs", "1"},
		{"Seccomp", "2"},
		{"SigBlk", "0000000000000000"},
		{"SigCgt", "0000000000000000"},
		{"SigIgn", "0000000000004003"}, /* SIGHUP, SIGINT and SIGTERM */
		{"Uid", "65534\t65534\t65534\t65534"},
		{"Gid", "65534\t65534\t65534\t65534"},
		{"Groups", ""},
	};
	int fds[] = {-1, here.secret_fd};
	SandboxLimits limits = {};
	Sandbox sandbox;
	uint8_t byte;

	(void)state;
	assert_int_equal(sandbox_start(wait_main, fds, ARRAY_LEN(fds), NULL, &limits, &sandbox), 0);
	hear(&sandbox, &byte, 1);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		_cleanup_free_ char *found = status_of(sandbox.pid, wanted[i].key);

		/* A process that is not root keeps its user. */
		if (!geteuid() || !strchr("UG", *wanted[i].key))
			assert_string_equal(found, wanted[i].value);
	}
	if (!geteuid()) {
		_cleanup_free_ char *numbers =
			output_of("ls /proc/%d/fd | sort -n | tr '\\n' ' '", sandbox.pid);

		/* Three times /dev/null, the socket, no first, the second. */
		assert_string_equal(numbers, "0 1 2 3 5 ");
	}
	sandbox_end(&sandbox);
	assert_true(fcntl(here.secret_fd, F_GETFD) >= 0);
}

/* What was given is there, for reading; a byte comes with a descriptor, and another without. */
static void read_given(int socket, const int *fds, const void *argument)
{
	char answer[3][sizeof(SECRET)] = {};
	uint8_t byte;
	int fd;

	(void)argument;
	if (fds[0] == -1 && pread(fds[1], answer[0], sizeof(SECRET), 0) != sizeof(SECRET) - 1)
		memset(answer[0], 0, sizeof(SECRET));
	if (!sandbox_receive(socket, &byte, 1, &fd) && byte == 1 &&
	    pread(fd, answer[1], sizeof(SECRET), 0) < 0)
		memset(answer[1], 0, sizeof(SECRET));
	if (!sandbox_receive(socket, &byte, 1, &fd) && byte == 2 && fd == -1)
		strcpy(answer[2], "none");
	send_bytes(socket, answer, sizeof(answer));
}

static void test_what_it_is_given(void **state)
{
	int fds[] = {-1, here.secret_fd};
	char answer[3][sizeof(SECRET)];
	SandboxLimits limits = {};
	Sandbox sandbox;

	(void)state;
	assert_int_equal(sandbox_start(read_given, fds, ARRAY_LEN(fds), NULL, &limits, &sandbox),
			 0);
	assert_int_equal(sandbox_send(sandbox.socket, "\1", 1, here.secret_fd), 0);
	assert_int_equal(sandbox_send(sandbox.socket, "\2", 1, -1), 0);
	hear(&sandbox, answer, sizeof(answer));
	assert_string_equal(answer[0], SECRET);
	assert_string_equal(answer[1], SECRET);
	assert_string_equal(answer[2], "none");
	sandbox_end(&sandbox);
}

/* It may not even write to a file that it was given for writing. */
static void write_given(int socket, const int *fds, const void *argument)
{
	(void)socket;
	(void)argument;
	if (write(fds[0], "x", 1) == 1)
		_exit(3);
}

static void test_writes_no_file(void **state)
{
	_cleanup_close_ int fd = open(here.file, O_RDWR);
	_cleanup_free_ char *text = NULL;
	SandboxLimits limits = {};
	Sandbox sandbox;

	(void)state;
	assert_int_equal(sandbox_start(write_given, &fd, 1, NULL, &limits, &sandbox), 0);
	assert_true(goes_away(sandbox.pid));
	assert_int_equal(WTERMSIG(sandbox_end(&sandbox)), SIGXFSZ);
	text = output_of("cat '%s'", here.file);
	assert_string_equal(text, SECRET);
}

#define MEMORY_BOUND (64ULL << 20)

/* How much it gets, in every way that there is to get some. */
static void take_memory(int socket, const int *fds, const void *argument)
{
	static const int kinds[] = {MAP_PRIVATE, MAP_SHARED, MAP_PRIVATE | MAP_GROWSDOWN};
	size_t piece = 1 << 20;
	uint64_t total = 0;

	(void)fds;
	(void)argument;
	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++)
		for (int i = 0; i < 1024; i++) {
			char *p = mmap(NULL, piece, PROT_READ | PROT_WRITE,
				       kinds[kind] | MAP_ANONYMOUS, -1, 0);

			if (p != MAP_FAILED)
				total += piece;
		}
	send_bytes(socket, &total, sizeof(total));
}

static void test_memory_bound(void **state)
{
	SandboxLimits limits = {.memory = MEMORY_BOUND};
	Sandbox sandbox;
	uint64_t total;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip_because("AddressSanitizer's own memory is beyond all bounds");
#endif
	for (int round = 0; round < 3; round++) {
		/* What the parent has is not the child's: it gets as much beside that. */
		char *own = xcalloc(round + 1, MEMORY_BOUND);

		assert_int_equal(sandbox_start(take_memory, NULL, 0, NULL, &limits, &sandbox), 0);
		hear(&sandbox, &total, sizeof(total));
		sandbox_end(&sandbox);
		assert_uint_in_range(total, limits.memory / 2, limits.memory);
		limits.memory += MEMORY_BOUND;
		free(own);
	}
}

static void spin(int socket, const int *fds, const void *argument)
{
	(void)socket;
	(void)fds;
	(void)argument;
	for (;;)
		__asm__ volatile("");
}

static void test_cpu_bound(void **state)
{
	SandboxLimits limits = {.cpu_seconds = 1};
	struct rusage before, after;
	Sandbox sandbox;
	int status;

	(void)state;
	getrusage(RUSAGE_CHILDREN, &before);
	assert_int_equal(sandbox_start(spin, NULL, 0, NULL, &limits, &sandbox), 0);
	for (int i = 0; i < 30 && !is_gone(sandbox.pid); i++)
		usleep(500000);
	assert_true(is_gone(sandbox.pid));
	status = sandbox_end(&sandbox);
	getrusage(RUSAGE_CHILDREN, &after);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
	assert_uint_in_range(after.ru_utime.tv_sec - before.ru_utime.tv_sec, 0, 3);
}

/* It is ended while it sleeps, or spins, and leaves nothing. */
static void test_end(void **state)
{
	static const SandboxMain mains[] = {wait_main, spin};
	SandboxLimits limits = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(mains); i++) {
		Sandbox sandbox;
		pid_t pid;
		int socket;

		assert_int_equal(sandbox_start(mains[i], NULL, 0, NULL, &limits, &sandbox), 0);
		pid = sandbox.pid;
		socket = sandbox.socket;
		assert_int_equal(WTERMSIG(sandbox_end(&sandbox)), SIGKILL);
		assert_int_equal(kill(pid, 0), -1);
		assert_int_equal(fcntl(socket, F_GETFD), -1);
		assert_int_equal(sandbox_end(&sandbox), 0);
	}
}

/* A child that reads nothing does not make its parent wait. */
static void test_never_blocks_the_parent(void **state)
{
	_cleanup_free_ char *much = xcalloc(1, 16 << 20);
	SandboxLimits limits = {};
	Sandbox sandbox;

	(void)state;
	assert_int_equal(sandbox_start(spin, NULL, 0, NULL, &limits, &sandbox), 0);
	assert_int_equal(sandbox_send(sandbox.socket, much, 16 << 20, -1), -EAGAIN);
	sandbox_end(&sandbox);
}

static void test_dies_with_its_parent(void **state)
{
	int pipes[2], status;
	pid_t parent, child;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	parent = fork();
	if (parent == 0) {
		SandboxLimits limits = {};
		Sandbox sandbox;
		uint8_t byte = 0;

		if (sandbox_start(wait_main, NULL, 0, NULL, &limits, &sandbox))
			_exit(1);
		/* It has come as far as its main function. */
		while (recv(sandbox.socket, &byte, 1, 0) != 1)
			usleep(1000);
		if (write(pipes[1], &sandbox.pid, sizeof(pid_t)) != sizeof(pid_t))
			_exit(1);
		pause();
	}
	assert_int_equal(read(pipes[0], &child, sizeof(child)), sizeof(child));
	assert_false(is_gone(child));
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_true(goes_away(child));
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_way_out),
		cmocka_unit_test(test_who_it_is),
		cmocka_unit_test(test_what_it_is_given),
		cmocka_unit_test(test_writes_no_file),
		cmocka_unit_test(test_memory_bound),
		cmocka_unit_test(test_cpu_bound),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_never_blocks_the_parent),
		cmocka_unit_test(test_dies_with_its_parent),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
