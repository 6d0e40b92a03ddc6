/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "as_invoker.h"
#include "util.h"
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

static int find_own_groups(AsInvoker *as)
{
	int count = getgroups(0, NULL);

	if (count < 0)
		return -errno;
	as->own_groups = xcalloc(count + 1, sizeof(*as->own_groups));
	as->own_group_count = getgroups(count, as->own_groups);
	return as->own_group_count < 0 ? -errno : 0;
}

/*
 * Finds the groups that the user has after logging in; for a user without a name only the given
 * one.
 */
static void find_groups(const Invoker *invoker, AsInvoker *as)
{
	int room = 0;

	as->groups = xcalloc(1, sizeof(*as->groups));
	as->groups[0] = invoker->gid;
	as->group_count = 1;
	if (!invoker->name)
		return;
	getgrouplist(invoker->name, invoker->gid, NULL, &room); /* returns how many there are */
	as->groups = xrealloc(as->groups, (room + 1) * sizeof(*as->groups));
	if (getgrouplist(invoker->name, invoker->gid, as->groups, &room) > 0)
		as->group_count = room;
}

int as_invoker_prepare(const Invoker *invoker, AsInvoker *ret_as)
{
	*ret_as = (AsInvoker){.change = invoker->change};
	if (!invoker->change)
		return 0;
	ret_as->uid = invoker->uid;
	ret_as->gid = invoker->gid;
	ret_as->own_gid = getegid();
	find_groups(invoker, ret_as);
	return find_own_groups(ret_as);
}

void as_invoker_free(AsInvoker *as)
{
	free(as->groups);
	free(as->own_groups);
	*as = (AsInvoker){};
}

int as_invoker_enter(const AsInvoker *as)
{
	int error;

	if (!as->change)
		return 0;
	/* The user comes last: nothing else may be changed after that. */
	if (!setgroups(as->group_count, as->groups) && !setegid(as->gid) && !seteuid(as->uid))
		return 0;
	error = -errno;
	as_invoker_leave(as);
	return error;
}

int as_invoker_leave(const AsInvoker *as)
{
	if (!as->change)
		return 0;
	if (seteuid(0) || setegid(as->own_gid) || setgroups(as->own_group_count, as->own_groups))
		return -errno;
	return 0;
}
