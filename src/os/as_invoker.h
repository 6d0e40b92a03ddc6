/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * as_invoker.h - does one thing with the rights of the user who called wallprof, and no more.
 *
 * Under sudo, root must not read for that user what the user could not read. Between
 * as_invoker_enter() and as_invoker_leave() the effective user, group and supplementary groups are
 * the user's. The kernel then removes the effective capabilities as well, and restores them with
 * the effective user 0 (capabilities(7)). Only for a process with one thread.
 */
#ifndef WALLPROF_AS_INVOKER_H
#define WALLPROF_AS_INVOKER_H

#include "invoker.h"

typedef struct AsInvoker {
	bool change; /* as in Invoker: if false, the functions do nothing */
	uid_t uid;
	gid_t gid, own_gid;
	gid_t *groups, *own_groups;
	int group_count, own_group_count;
} AsInvoker;

/* Returns 0 or a negative errno. The caller frees it in any case. */
int as_invoker_prepare(const Invoker *invoker, AsInvoker *ret_as);
void as_invoker_free(AsInvoker *as);

/* Returns 0, or a negative errno; then nothing has changed. */
int as_invoker_enter(const AsInvoker *as);

/* Returns 0, or a negative errno if a part of the own identity could not be restored. */
int as_invoker_leave(const AsInvoker *as);

#endif
