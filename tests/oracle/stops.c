/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stops.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |     \
	 PTRACE_O_EXITKILL)

typedef struct Stops {
	VEC(pid_t) tids;
	pid_t wanted; /* asked to stop, 0 = none */
	int count;
	StopFunction stop;
	void *user;
} Stops;

static void add_task(Stops *stops, pid_t tid)
{
	for (size_t i = 0; i < stops->tids.count; i++)
		if (stops->tids.items[i] == tid)
			return;
	*vec_push(&stops->tids) = tid;
}

static void remove_task(Stops *stops, pid_t tid)
{
	for (size_t i = 0; i < stops->tids.count; i++)
		if (stops->tids.items[i] == tid)
			stops->tids.items[i--] = stops->tids.items[--stops->tids.count];
	if (stops->wanted == tid)
		stops->wanted = 0;
}

static void take_event(Stops *stops, pid_t tid, int event)
{
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message);
	if (event == PTRACE_EVENT_EXEC && (pid_t)message != tid)
		remove_task(stops, (pid_t)message); /* it goes on as tid */
	else if (event != PTRACE_EVENT_EXEC)
		add_task(stops, (pid_t)message);
}

static void take_status(Stops *stops, pid_t tid, int status)
{
	int event = status >> 16, number = WSTOPSIG(status);

	if (!WIFSTOPPED(status)) {
		remove_task(stops, tid);
		return;
	}
	add_task(stops, tid);
	if (event == PTRACE_EVENT_STOP && number != SIGTRAP) {
		ptrace(PTRACE_LISTEN, tid, NULL, NULL); /* stopped by a signal, as a whole */
		return;
	}
	if (event == PTRACE_EVENT_STOP && tid == stops->wanted) {
		stops->wanted = 0;
		stops->count++;
		stops->stop(stops->user, tid);
	} else if (event != 0 && event != PTRACE_EVENT_STOP) {
		take_event(stops, tid, event);
	}
	ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)(event ? 0 : number));
}

/* Takes what there is; if wait, waits for one thing. Returns false if there is no task left. */
static bool take_all(Stops *stops, bool wait)
{
	for (;;) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL | (wait ? 0 : WNOHANG));

		if (tid < 0)
			return errno == EINTR;
		if (tid == 0)
			return true;
		take_status(stops, tid, status);
		wait = false;
	}
}

static void pause_us(unsigned int us)
{
	struct timespec t = {.tv_nsec = us * 1000L};

	nanosleep(&t, NULL);
}

static bool stop_one(Stops *stops)
{
	if (stops->tids.count == 0)
		return take_all(stops, true);
	stops->wanted = stops->tids.items[(size_t)rand() % stops->tids.count];
	if (ptrace(PTRACE_INTERRUPT, stops->wanted, NULL, NULL) != 0)
		stops->wanted = 0; /* it is just ending, or is stopped */
	while (stops->wanted)
		if (!take_all(stops, true))
			return false;
	return true;
}

static void run_silently(char **command)
{
	int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	execvp(command[0], command);
}

static pid_t start(char **command, int *ret_go)
{
	int go[2];
	pid_t child;
	char byte;

	if (pipe(go) != 0)
		return -errno;
	child = fork();
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 1) {
			close(go[0]);
			run_silently(command);
		}
		_exit(127);
	}
	close(go[0]);
	*ret_go = go[1];
	return child < 0 ? -errno : child;
}

int stops_run(char **command, unsigned int seed, int count, unsigned int max_us, StopFunction stop,
	      void *user)
{
	Stops stops = {.stop = stop, .user = user};
	bool left = true;
	int go = -1;
	pid_t child = start(command, &go);

	if (child < 0)
		return child;
	srand(seed);
	if (ptrace(PTRACE_SEIZE, child, NULL, (void *)OPTIONS) != 0)
		return -errno;
	add_task(&stops, child);
	if (write(go, "", 1) != 1)
		return -errno;
	close(go);
	while (left && stops.count < count) {
		for (unsigned int us = (unsigned int)rand() % max_us; left && us >= 100;
		     us -= 100) {
			pause_us(100); /* what happens meanwhile must not wait */
			left = take_all(&stops, false);
		}
		left = left && stop_one(&stops);
	}
	for (size_t i = 0; i < stops.tids.count; i++)
		kill(stops.tids.items[i], SIGKILL);
	while (left)
		left = take_all(&stops, true);
	vec_free(&stops.tids);
	return stops.count;
}
