/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debuginfod.h"
#include "as_invoker.h"
#include "privileges.h"
#include "sandbox.h"
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
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

bool debuginfod_enabled(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

bool debuginfod_is_installed(void)
{
	return dlopen(LIBRARY, RTLD_NOW) != NULL; /* and it stays loaded */
}

static int ask(const uint8_t *build_id, size_t length)
{
	void *library = dlopen(LIBRARY, RTLD_NOW);
	Begin begin = library ? (Begin)dlsym(library, "debuginfod_begin") : NULL;
	FindDebuginfo find =
		library ? (FindDebuginfo)dlsym(library, "debuginfod_find_debuginfo") : NULL;
	debuginfod_client *client = begin && find ? begin() : NULL;

	return client ? find(client, build_id, length, NULL) : -ENOSYS;
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
	uint8_t answer;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
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

static int receive(int socket)
{
	uint8_t answer;
	int fd, r = sandbox_receive(socket, &answer, 1, &fd);

	if (r < 0 || fd >= 0)
		return r < 0 ? r : fd;
	return answer ? -answer : -ENOENT;
}

int debuginfod_find(const uint8_t *build_id, size_t length, const char *path,
		    const Invoker *invoker)
{
	int sockets[2], r, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	log_info("requesting the debug information of %s from debuginfod", path);
	pid = fork();
	if (pid == 0)
		run_child(sockets[1], build_id, length, invoker);
	close(sockets[1]);
	r = pid < 0 ? -EAGAIN : receive(sockets[0]);
	close(sockets[0]);
	if (pid > 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	if (r == -ENOSYS)
		log_warn("DEBUGINFOD_URLS is set, but " LIBRARY " is not installed");
	else if (r < 0)
		log_verbose("debuginfod has no debug information for %s: %s", path, strerror(-r));
	else
		log_fetched(r, path);
	return r;
}
