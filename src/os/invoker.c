/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "invoker.h"
#include "util.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

void invoker_find(bool as_root, Invoker *ret_invoker)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	const struct passwd *user;
	uint64_t uid, gid;

	*ret_invoker = (Invoker){};
	if (as_root || geteuid() != 0 || !uid_text || !gid_text)
		return;
	if (parse_u64(uid_text, &uid) || parse_u64(gid_text, &gid) || uid == 0)
		return;
	ret_invoker->change = true;
	ret_invoker->uid = uid;
	ret_invoker->gid = gid;
	user = getpwuid(uid);
	if (user) {
		ret_invoker->name = xstrdup(user->pw_name);
		ret_invoker->home = xstrdup(user->pw_dir);
	}
}

int invoker_become(const Invoker *invoker)
{
	if (!invoker->change)
		return 0;
	if (invoker->name ? initgroups(invoker->name, invoker->gid) : setgroups(1, &invoker->gid))
		return errno;
	if (setgid(invoker->gid) || setuid(invoker->uid))
		return errno;
	if (invoker->name) {
		setenv("USER", invoker->name, 1);
		setenv("LOGNAME", invoker->name, 1);
		setenv("HOME", invoker->home, 1);
	}
	unsetenv("SUDO_COMMAND");
	return 0;
}
