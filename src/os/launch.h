/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * launch.h - starts the command that is recorded: its process is made first, and execs when the
 * recording is ready.
 */
#ifndef WALLPROF_LAUNCH_H
#define WALLPROF_LAUNCH_H

#include "invoker.h"

typedef struct Launch {
	pid_t pid;
	int go_fd;    /* a byte that is written here lets the child exec */
	int error_fd; /* gives an errno if exec failed, and EOF if it succeeded */
} Launch;

/* Forks a child that waits for launch_go(). argv ends in NULL. Returns 0 or a negative errno. */
int launch_prepare(char *const argv[], const Invoker *invoker, Launch *ret_launch);

/*
 * Lets the child exec, and waits until it has. Returns 0, or the positive errno of the exec; then
 * the child has ended and is reaped.
 */
int launch_go(Launch *launch);

/* Ends a child that has not been let go. */
void launch_cancel(Launch *launch);

#endif
