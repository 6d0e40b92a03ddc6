/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits - one thread for each kind of wait, all at once. Each waits once, for what another
 * thread lets happen after --ms and a random part of it (--seed); the truth's kind is the
 * reason that a profile must have. What this kernel does not offer is not in the truth.
 *
 * Locks of the kernel are held by a thread that writes from memory whose page is not there yet
 * (userfaultfd): of a file, a pipe, a socket, which are locked meanwhile.
 */
#include "waits.h"
#include "frame.h"
#include "truth.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static uint64_t ms = 30, seed = 1;

typedef struct Run {
	const WaitCase *kind;
	struct wait_state state;
	uint64_t ns;
	sem_t held;
	pthread_t helper;
} Run;

static uint64_t random_part(uint64_t number)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ULL + number * 0xbf58476d1ce4e5b9ULL;

	x ^= x >> 29;
	x *= 0x94d049bb133111ebULL;
	return (x >> 33) % (ms + 1);
}

static void *help(void *arg)
{
	Run *run = arg;

	pthread_setname_np(pthread_self(), "helper");
	if (run->kind->hold)
		run->kind->hold(&run->state);
	sem_post(&run->held);
	truth_sleep(run->ns);
	if (run->kind->release)
		run->kind->release(&run->state);
	return NULL;
}

static TruthThread *wait_once(uint64_t number)
{
	TruthThread *self = truth_begin("wait %lu", number);
	Run run = {.kind = &wait_cases[number], .ns = (ms + random_part(number)) * NSEC_PER_MSEC};
	char object[TRUTH_OBJECT_SIZE] = "";
	uint64_t begin;

	run.state.ns = run.ns;
	sem_init(&run.held, 0, 0);
	if (run.kind->set_up && !run.kind->set_up(&run.state)) {
		fprintf(stderr, "waits: not here: %s: %m\n", run.kind->name);
		return self;
	}
	/* Before anything is locked. */
	if (run.kind->object)
		run.kind->object(&run.state, object);
	truth_object(self, object);
	truth_check(pthread_create(&run.helper, NULL, help, &run) == 0, "pthread_create");
	run.state.helper = run.helper;
	while (sem_wait(&run.held) != 0)
		;
	begin = truth_now();
	run.kind->wait(&run.state);
	truth_wait(self, run.kind->name, begin);
	if (run.kind->wait != wait_join)
		pthread_join(run.helper, NULL);
	return self;
}

/*
 * Threads that wait at one place look like a pool between jobs, and several cases wait in one
 * function. So they wait too deep in the program for an outermost loop (docs/user/waits.md).
 */
#define DEPTH 20

static FRAME TruthThread *go_deep(uint64_t number, int depth)
{
	TruthThread *self = depth > 0 ? go_deep(number, depth - 1) : wait_once(number);

	__asm__ volatile(""); /* no tail call */
	return self;
}

static void *begin(void *arg)
{
	truth_park(go_deep((uintptr_t)arg, DEPTH));
}

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(argc, argv, (TruthOption[]){{"ms", &ms}, {"seed", &seed}, {}});
	self = truth_begin("waits");
	for (uint64_t i = 0; i < wait_case_count; i++)
		truth_spawn(begin, i);
	truth_finish(self);
}
