/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deep KIND DEPTH MS SEED - calls a function that calls itself, DEPTH calls deep, and there does
 * for MS milliseconds what KIND says:
 *
 *   wait    sleeps for a millisecond, repeatedly
 *   sync    writes to a file and flushes it, repeatedly: the kernel's stack is deep as well
 *   spin    uses the CPU
 *   wake    wakes another thread, which waits on a short stack, repeatedly
 *   vary    sleeps, and in between returns from some calls and calls again: the depth changes
 *   root    like wait, but each time from one of two functions of main, by turns
 *   fibers  two coroutines of one thread go so deep and then sleep by turns: from_one() on the
 *           higher stack in nap(), from_two() on the lower one in nap_below()
 *
 * With a "+" behind KIND the functions are several that call each other, in an order that SEED
 * decides. A line is written to standard output: {"depth":…,"calls":{"down":…,"down_a":…,…}} with
 * the number of frames from the outermost of these functions to the innermost.
 */
#include "frame.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static const char *kind;
static unsigned long milliseconds, calls[4], turns;
static uint64_t state;
static int mutual, file = -1;
static volatile int sink, over;
static sem_t request, answer;
static ucontext_t fibers[2], thread_itself;
static int fiber;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static uint64_t draw(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

FRAME static int nap(void)
{
	usleep(1000);
	return 1;
}

FRAME static int nap_below(void)
{
	usleep(1000);
	return 2;
}

FRAME static int nap_and_yield(uint64_t end)
{
	int mine = fiber;

	if (mine == 0)
		nap();
	else
		nap_below();
	fiber = !mine;
	if (now() < end)
		swapcontext(&fibers[mine], &fibers[fiber]);
	else
		setcontext(&thread_itself);
	return 1;
}

FRAME static int flush(void)
{
	char block[4096];

	memset(block, sink, sizeof(block));
	must(pwrite(file, block, sizeof(block), 0) == sizeof(block), "pwrite");
	must(!fsync(file), "fsync");
	return 1;
}

FRAME static int wake_other(void)
{
	must(!sem_post(&request), "sem_post");
	while (sem_wait(&answer) && errno == EINTR)
		continue;
	return 1;
}

FRAME static int spin(void)
{
	for (int i = 0; i < 100000; i++)
		sink += i;
	return 1;
}

FRAME static int innermost(uint64_t end)
{
	do {
		if (!strncmp(kind, "spin", 4))
			spin();
		else if (!strncmp(kind, "sync", 4))
			flush();
		else if (!strncmp(kind, "wake", 4))
			wake_other();
		else if (!strncmp(kind, "fibers", 6))
			nap_and_yield(end);
		else
			nap();
		if (!strncmp(kind, "vary", 4) || !strncmp(kind, "root", 4))
			break;
	} while (now() < end);
	return 1;
}

FRAME static int down(unsigned long left, uint64_t end);

#define DOWN(name)                                                                                 \
	FRAME static int name(unsigned long left, uint64_t end)                                    \
	{                                                                                          \
		return down(left, end) + 1;                                                        \
	}
DOWN(down_a)
DOWN(down_b)
DOWN(down_c)

/* In mutual recursion every second call is of one of three others. */
FRAME static int down(unsigned long left, uint64_t end)
{
	static int (*const others[])(unsigned long, uint64_t) = {down_a, down_b, down_c};
	int sum = 0;

	if (left <= 1)
		return innermost(end);
	do {
		if (!mutual) {
			sum += down(left - 1, end);
		} else if (left == 2) {
			sum += down(1, end);
		} else {
			unsigned long which = draw() % 3;

			calls[1 + which]++;
			sum += others[which](left - 2, end);
		}
		/* A call in sixteen is made again from here. */
	} while (!strncmp(kind, "vary", 4) && now() < end && left % 16 == 0 && draw() % 4 == 0);
	return sum + 1;
}

FRAME static int from_one(unsigned long depth, uint64_t end)
{
	return down(depth, end) + 1;
}

FRAME static int from_two(unsigned long depth, uint64_t end)
{
	return down(depth, end) + 2;
}

static unsigned long fiber_depth;
static uint64_t fiber_end;

static void begin_fiber(void)
{
	if (fiber == 0)
		from_one(fiber_depth, fiber_end);
	else
		from_two(fiber_depth, fiber_end);
}

static void run_fibers(unsigned long depth, uint64_t end)
{
	const size_t size = 16 << 20;
	char *stacks =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(stacks != MAP_FAILED, "mmap");
	fiber_depth = depth;
	fiber_end = end;
	for (int i = 0; i < 2; i++) {
		must(!getcontext(&fibers[i]), "getcontext");
		fibers[i].uc_stack.ss_sp = stacks + (i == 0 ? size : 0);
		fibers[i].uc_stack.ss_size = size;
		makecontext(&fibers[i], begin_fiber, 0);
	}
	must(!swapcontext(&thread_itself, &fibers[0]), "swapcontext");
}

static void *answers(void *unused)
{
	while (!over) {
		while (sem_wait(&request) && errno == EINTR)
			continue;
		must(!sem_post(&answer), "sem_post");
	}
	return unused;
}

FRAME static void *run(void *argument)
{
	unsigned long depth = *(unsigned long *)argument;
	uint64_t end = now() + milliseconds * 1000000;

	if (!strncmp(kind, "fibers", 6)) {
		run_fibers(depth, end);
		return NULL;
	}
	do {
		if (!strncmp(kind, "root", 4))
			(turns++ & 1 ? from_two : from_one)(depth, end);
		else
			down(depth, end);
	} while (now() < end);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread, other;
	pthread_attr_t attributes;
	unsigned long depth;

	must(argc == 5, "usage: deep KIND DEPTH MS SEED");
	kind = argv[1];
	mutual = strchr(kind, '+') != NULL;
	depth = strtoul(argv[2], NULL, 10);
	milliseconds = strtoul(argv[3], NULL, 10);
	state = strtoull(argv[4], NULL, 10);
	must(!sem_init(&request, 0, 0) && !sem_init(&answer, 0, 0), "sem_init");
	if (!strncmp(kind, "sync", 4)) {
		char path[] = "deep-XXXXXX";

		file = mkstemp(path);
		must(file >= 0, "mkstemp");
		unlink(path);
	}
	must(!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, 64 << 20),
	     "pthread_attr");
	if (!strncmp(kind, "wake", 4))
		must(!pthread_create(&other, NULL, answers, NULL), "pthread_create");
	must(!pthread_create(&thread, &attributes, run, &depth), "pthread_create");
	must(!pthread_join(thread, NULL), "pthread_join");
	over = 1;
	sem_post(&request);
	printf("{\"depth\":%lu,\"down_a\":%lu,\"down_b\":%lu,\"down_c\":%lu}\n", depth, calls[1],
	       calls[2], calls[3]);
	return 0;
}
