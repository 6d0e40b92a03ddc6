/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debuginfod.h"
#include "as_invoker.h"
#include "privileges.h"
#include "sandbox.h"
#include "signals.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* From elfutils/debuginfod.h, whose package is then not needed to build. */
#define LIBRARY "libdebuginfod.so.1"
#define SOCKET	3 /* in the child: behind standard input, output and error */
typedef struct debuginfod_client debuginfod_client;
typedef debuginfod_client *(*Begin)(void);
typedef int (*FindDebuginfo)(debuginfod_client *client, const unsigned char *build_id, int length,
			     char **ret_path);
typedef int (*Progress)(debuginfod_client *client, long done, long all);
typedef void (*SetProgress)(debuginfod_client *client, Progress progress);

#define FILE_MAX  (4ULL << 30)
#define ENDING_MS 1500 /* the time that the child has to remove what it did not complete */
#define POLL_MS	  10

bool debuginfod_enabled(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

bool debuginfod_is_installed(void)
{
	return dlopen(LIBRARY, RTLD_NOW) != NULL; /* and it stays loaded */
}

/*
 * The client calls it about every second, also while no data comes. The parent sends nothing: it
 * closes its end when the answer is no longer needed. Then the client deletes its unfinished file.
 */
static int is_unneeded(debuginfod_client *client, long done, long all)
{
	struct pollfd polled = {.fd = SOCKET, .events = POLLIN};

	(void)client;
	(void)done;
	(void)all;
	return poll(&polled, 1, 0) != 0;
}

static int ask(const uint8_t *build_id, size_t length)
{
	void *library = dlopen(LIBRARY, RTLD_NOW);
	Begin begin = library ? (Begin)dlsym(library, "debuginfod_begin") : NULL;
	FindDebuginfo find =
		library ? (FindDebuginfo)dlsym(library, "debuginfod_find_debuginfo") : NULL;
	SetProgress set_progress =
		library ? (SetProgress)dlsym(library, "debuginfod_set_progressfn") : NULL;
	debuginfod_client *client = begin && find && set_progress ? begin() : NULL;

	if (!client)
		return -ENOSYS;
	set_progress(client, is_unneeded);
	return find(client, build_id, length, NULL);
}

/*
 * This is for good, unlike as_invoker_enter() alone: code that reads the answers of servers must
 * not be able to become root again.
 */
static int become_invoker(const Invoker *invoker)
{
	AsInvoker as;
	int r = as_invoker_prepare(invoker, &as);

	if (r == 0)
		r = as_invoker_enter(&as);
	if (r < 0 || !invoker->change)
		return r;
	if (setresgid(as.gid, as.gid, as.gid) || setresuid(as.uid, as.uid, as.uid) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL)) /* the change of user has reset it */
		return -errno;
	if (invoker->home)
		setenv("HOME", invoker->home, 1);
	unsetenv("XDG_CACHE_HOME"); /* it may be root's */
	return 0;
}

/* Never returns. The answer is a byte: an errno, or 0 with the descriptor. */
static void run_child(int socket, const uint8_t *build_id, size_t length, const Invoker *invoker)
{
	struct rlimit limit = {FILE_MAX, FILE_MAX};
	uint8_t answer;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	sandbox_ignore_group_signals();
	/* The recorder's descriptors must not be open in code that talks to servers. */
	if (dup2(socket, SOCKET) < 0 || close_range(SOCKET + 1, ~0U, 0))
		_exit(1);
	fd = become_invoker(invoker);
	if (fd == 0)
		fd = privileges_keep(0);
	if (fd == 0)
		fd = ask(build_id, length);
	answer = fd < 0 ? -fd : 0;
	sandbox_send(SOCKET, &answer, 1, fd);
	_exit(0);
}

static void log_fetched(int fd, const char *path)
{
	struct stat st;

	if (!fstat(fd, &st))
		log_info("debuginfod has %.1f MB of debug information for %s", st.st_size / 1e6,
			 path);
}

static int await_answer(int socket, uint64_t deadline_ns)
{
	struct pollfd polled = {.fd = socket, .events = POLLIN};

	for (;;) {
		uint64_t now = now_ns();
		uint64_t left = deadline_ns ? (deadline_ns - MIN(now, deadline_ns)) / NSEC_PER_MSEC
					    : SIGNALS_LOOKUP_POLL_MS;

		if (signals_lookup_stopped())
			return -EINTR;
		if (deadline_ns && now >= deadline_ns)
			return -ETIMEDOUT;
		if (poll(&polled, 1, MIN(left + 1, SIGNALS_LOOKUP_POLL_MS)) > 0)
			return 0;
	}
}

/* Ends the child, which may need a moment to clean up. */
static void end_child(pid_t pid)
{
	for (int ms = 0; ms < ENDING_MS; ms += POLL_MS) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		usleep(POLL_MS * 1000);
	}
	kill(pid, SIGKILL);
	TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
}

static int receive(int socket, uint64_t deadline_ns)
{
	uint8_t answer;
	int fd, r = await_answer(socket, deadline_ns);

	if (r == 0)
		r = sandbox_receive(socket, &answer, 1, &fd);
	if (r < 0 || fd >= 0)
		return r < 0 ? r : fd;
	return answer ? -answer : -ENOENT;
}

int debuginfod_find(const uint8_t *build_id, size_t length, const char *path,
		    const Invoker *invoker, uint64_t deadline_ns)
{
	int sockets[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	log_info("requesting the debug information of %s from debuginfod", path);
	pid = fork();
	if (pid == 0)
		run_child(sockets[1], build_id, length, invoker);
	close(sockets[1]);
	r = pid < 0 ? -EAGAIN : receive(sockets[0], deadline_ns);
	close(sockets[0]);
	if (pid > 0)
		end_child(pid);
	if (r == -ENOSYS)
		log_warn("DEBUGINFOD_URLS is set, but " LIBRARY " is not installed");
	else if (r < 0)
		log_verbose("debuginfod has no debug information for %s: %s", path, strerror(-r));
	else
		log_fetched(r, path);
	return r;
}
