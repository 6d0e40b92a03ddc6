/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * contend - three threads want one CPU. "victim" is woken, and before that "hog" (real time, 50)
 * has begun to burn `--hog` ms. Meanwhile "blip" (real time, 10) is woken, which burns `--blip` ms
 * when hog is done. So victim waits for both, and blip is the last task that has the CPU before it.
 * This begins `--start` ms after all threads are ready, and with `--wait 1` after a SIGUSR1, too.
 */
#include "truth.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

enum thread { HOG, BLIP, VICTIM, THREADS };

static const struct {
	const char *name;
	int priority;
	uint64_t woken_ns; /* since hog */
} kinds[] = {
	[HOG] = {"hog", 50, 0},
	[BLIP] = {"blip", 10, 20 * NSEC_PER_MSEC},
	[VICTIM] = {"victim", 0, 10 * NSEC_PER_MSEC},
};

static uint64_t burn_ms[] = {[HOG] = 150, [BLIP] = 10, [VICTIM] = 5};
static uint64_t start_ms = 50, wait_for_signal;
static pthread_barrier_t ready;
static uint64_t start_ns;

static void *contend(void *arg)
{
	enum thread kind = (uintptr_t)arg;
	struct sched_param parameters = {.sched_priority = kinds[kind].priority};
	TruthThread *self = truth_begin("%s", kinds[kind].name);
	uint64_t begin, end;

	if (parameters.sched_priority > 0)
		truth_check(sched_setscheduler(0, SCHED_FIFO, &parameters) == 0,
			    "sched_setscheduler");
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready); /* start_ns is set between the two */
	begin = truth_now();
	if (begin < start_ns + kinds[kind].woken_ns)
		truth_sleep(start_ns + kinds[kind].woken_ns - begin);
	begin = truth_now();
	/* Not by the CPU's clock, which leaves out what a hypervisor takes. */
	end = begin + burn_ms[kind] * NSEC_PER_MSEC;
	while (truth_now() < end)
		;
	truth_wait(self, "burn", begin);
	truth_park(self);
}

int main(int argc, char **argv)
{
	TruthThread *self;
	sigset_t signals;
	int number;

	truth_options(argc, argv,
		      (TruthOption[]){{"hog", &burn_ms[HOG]},
				      {"blip", &burn_ms[BLIP]},
				      {"start", &start_ms},
				      {"wait", &wait_for_signal},
				      {}});
	truth_confine(1);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	pthread_barrier_init(&ready, NULL, THREADS + 1);
	self = truth_begin("contend");
	for (uint64_t kind = 0; kind < THREADS; kind++)
		truth_spawn(contend, kind);
	if (wait_for_signal)
		truth_check(sigwait(&signals, &number) == 0, "sigwait");
	pthread_barrier_wait(&ready);
	start_ns = truth_now() + start_ms * NSEC_PER_MSEC;
	pthread_barrier_wait(&ready);
	truth_finish(self);
}
