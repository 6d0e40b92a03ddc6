/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * as_invoker.h - doing one thing with the rights of the user who called wallprof, and no more.
 *
 * Under sudo, root must not read for that user what the user could not read. Between
 * as_invoker_enter() and as_invoker_leave() the effective user, group and supplementary groups are
 * the user's; the kernel then takes the effective capabilities away, too, and gives them back
 * with the effective user 0 (capabilities(7)). Only for a process with one thread.
 */
#ifndef WALLPROF_AS_INVOKER_H
#define WALLPROF_AS_INVOKER_H

#include "launch.h"

typedef struct AsInvoker {
	bool change; /* as Invoker's: if not, nothing here does anything */
	uid_t uid;
	gid_t gid, own_gid;
	gid_t *groups, *own_groups;
	int group_count, own_group_count;
} AsInvoker;

/* Returns 0 or a negative errno. To be freed in any case. */
int as_invoker_prepare(const Invoker *invoker, AsInvoker *ret_as);
void as_invoker_free(AsInvoker *as);

/* Returns 0, or a negative errno with everything as it was. */
int as_invoker_enter(const AsInvoker *as);

/* Returns 0, or a negative errno if some of the own identity did not come back. */
int as_invoker_leave(const AsInvoker *as);

#endif
