/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * die - ends after `--ms` with status `--status`, or by signal `--signal`, while
 * another thread sleeps; with `--linger-ms` only the main thread ends, and the
 * other one that much later.
 */
#include "truth.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t ms = 20, status, signal_number, linger_ms;

static void *bystander(void *arg)
{
	truth_sleep((ms + linger_ms) * NSEC_PER_MSEC);
	if (!linger_ms)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	truth_options(argc, argv,
		      (TruthOption[]){{"ms", &ms},
				      {"status", &status},
				      {"signal", &signal_number},
				      {"linger-ms", &linger_ms},
				      {}});
	truth_check(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) == 0, "setrlimit");
	truth_check(pthread_create(&thread, NULL, bystander, NULL) == 0, "pthread_create");
	truth_sleep(ms * NSEC_PER_MSEC);
	if (linger_ms)
		pthread_exit(NULL);
	if (signal_number == SIGABRT)
		abort();
	if (signal_number)
		truth_check(kill(getpid(), (int)signal_number) == 0, "kill");
	exit((int)status);
}
