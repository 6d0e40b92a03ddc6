/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stops.h - runs a program under ptrace and stops its threads, those of its children, too, at
 * random instants. What it prints is lost.
 */
#ifndef WALLPROF_STOPS_H
#define WALLPROF_STOPS_H

#include <stdint.h>
#include <sys/types.h>

/* Called while the thread stands still; others may run on. */
typedef void (*StopFunction)(void *user, pid_t tid);

/*
 * Stops count times, a random time of at most max_us between two, or until the program ends.
 * Ends the program then. Returns how often it stopped one, or -errno.
 */
int stops_run(char **command, unsigned int seed, int count, unsigned int max_us, StopFunction stop,
	      void *user);

#endif
