/* SPDX-License-Identifier: GPL-2.0-or-later */
/* invoker.h - the user who called wallprof, also by sudo. */
#ifndef WALLPROF_INVOKER_H
#define WALLPROF_INVOKER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The user that the files and the command belong to. Under sudo that is the user who called it,
 * unless as_root.
 */
typedef struct Invoker {
	bool change; /* run the command as this user, and give the files to this user */
	uid_t uid;
	gid_t gid;
	const char *name; /* from the environment or the user database; valid until exit */
	const char *home;
} Invoker;

/* Finds it by the environment that sudo sets. */
void invoker_find(bool as_root, Invoker *ret_invoker);

/*
 * If change is set, makes this process the user's for good, environment included. Returns 0 or a
 * positive errno.
 */
int invoker_become(const Invoker *invoker);

#endif
