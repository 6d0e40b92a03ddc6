/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * launch.h - starting the command that is to be recorded: made first, let go
 * when recording is ready.
 */
#ifndef WALLPROF_LAUNCH_H
#define WALLPROF_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct Launch {
	pid_t pid;
	int go_fd;    /* closing or writing it lets the child exec */
	int error_fd; /* readable with an errno if exec failed, EOF if it succeeded */
} Launch;

/*
 * Who files and command belong to. Under sudo that is the user who called it, unless
 * as_root.
 */
typedef struct Invoker {
	bool change; /* run the command as this user, give it the files */
	uid_t uid;
	gid_t gid;
	const char *name; /* from the environment or the user data base; kept until exit */
	const char *home;
} Invoker;

void invoker_find(bool as_root, Invoker *ret_invoker);

/*
 * Makes this process that user's for good, environment included, if it is to be changed. Returns 0
 * or a positive errno.
 */
int invoker_become(const Invoker *invoker);

/* Forks a child that waits for launch_go. argv ends in NULL. Returns 0 or a negative errno. */
int launch_prepare(char *const argv[], const Invoker *invoker, Launch *ret_launch);

/*
 * Lets the child exec and waits until it has. Returns 0; or a positive errno of the exec, in
 * which case the child is gone and reaped.
 */
int launch_go(Launch *launch);

/* Ends a child that was never let go. */
void launch_cancel(Launch *launch);

#endif
