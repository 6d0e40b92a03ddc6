/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-orphan MS FIRST LIBRARY… - loads each library once, then forks a child from within a
 * function of the library FIRST, where the child spins on until its parent has ended, and MS
 * milliseconds more. Around the fork a thread switches all the time, so that a recorder with
 * small buffers misses it. The parent then closes FIRST and loads the others in turn, for MS
 * milliseconds, mostly to the same address; it knows them by enter_NAME, where LIBRARY is a path to
 * NAME.so. The child's calls are announced (announce.h).
 */
#include "announce.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPIN_MS	 10
#define STORM_MS 60 /* before the fork, and after it */
#define NAP_NS	 5000

typedef void (*Enter)(void (*callback)(void));

static uint64_t ms;
static int stop;

static void sleep_ns(uint64_t ns)
{
	struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	nanosleep(&time, NULL);
}

static void *switch_always(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		sleep_ns(NAP_NS);
	return unused;
}

FRAME static void child(pid_t parent)
{
	const char *chain = "main visit enter_first within_first fork_here child";
	uint64_t end = 0;

	while (!end || announce_now() < end) {
		announce_spin(SPIN_MS, chain);
		if (!end && getppid() != parent)
			end = announce_now() + ms * NSEC_PER_MSEC;
	}
	_exit(0);
}

static void fork_here(void)
{
	pthread_t storm;
	pid_t parent = getpid(), pid;

	announce_check(pthread_create(&storm, NULL, switch_always, NULL) == 0, "pthread_create");
	sleep_ns(STORM_MS * NSEC_PER_MSEC);
	pid = fork();
	announce_check(pid >= 0, "fork");
	if (pid == 0) {
		child(parent);
		__asm__ volatile("");
	}
	announce_value("child", pid);
	sleep_ns(STORM_MS * NSEC_PER_MSEC);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	announce_check(pthread_join(storm, NULL) == 0, "pthread_join");
}

static void nothing(void)
{
	sleep_ns(5 * NSEC_PER_MSEC);
}

FRAME static void visit(const char *path, void (*callback)(void))
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *base = strrchr(path, '/');
	char symbol[80];
	Enter enter;

	base = base ? base + 1 : path;
	snprintf(symbol, sizeof(symbol), "enter_%.*s", (int)strcspn(base, "-."), base);
	announce_check(library != NULL, path);
	enter = (Enter)dlsym(library, symbol);
	announce_check(enter != NULL, symbol);
	enter(callback);
	announce_check(dlclose(library) == 0, "dlclose");
}

int main(int argc, char **argv)
{
	uint64_t end;

	announce_check(argc >= 4, "usage: unwind-orphan MS FIRST LIBRARY…:");
	ms = strtoull(argv[1], NULL, 10);
	announce_open();
	for (int i = 2; i < argc; i++)
		visit(argv[i], nothing);
	visit(argv[2], fork_here);
	end = announce_now() + ms * NSEC_PER_MSEC;
	for (int i = 0; announce_now() < end; i++)
		visit(argv[3 + i % (argc - 3)], nothing);
	return 0;
}
