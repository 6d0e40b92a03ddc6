/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "process_rights.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No file belongs to it. 65534, the user `nobody`, does have files on some machines. */
#define NO_USER ((uid_t)-2)

/* The capabilities that read files without having the right to (capabilities(7)). */
#define READING (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH)

/* ---- reading ----------------------------------------------------------------------------- */

/* Fields of /proc/PID/status: real, effective, saved, file system (proc(5)). */
typedef struct Ids {
	unsigned int real, files;
} Ids;

static bool parse_ids(const char *line, const char *name, Ids *ids)
{
	size_t length = strlen(name);

	return !strncmp(line, name, length) &&
	       sscanf(line + length, "%u %*u %*u %u", &ids->real, &ids->files) == 2;
}

static void parse_groups(const char *text, ProcessRights *rights)
{
	unsigned int group;
	int length;

	while (rights->group_count < RIGHTS_GROUPS_MAX &&
	       sscanf(text, "%u%n", &group, &length) == 1) {
		rights->groups[rights->group_count++] = group;
		text += length;
	}
}

/*
 * A program that is set-user-id root reads only what it means to, but here its user names the file.
 */
static unsigned int effective_id(const Ids *ids)
{
	return ids->files == 0 ? ids->real : ids->files;
}

int process_rights_read(pid_t pid, ProcessRights *ret_rights)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *status = NULL;
	uint64_t capabilities = 0;
	Ids uid, gid;
	char path[64];
	size_t room = 0;
	int found = 0;

	*ret_rights = (ProcessRights){};
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	if (!status)
		return -errno;
	while (getline(&line, &room, status) > 0) {
		if (parse_ids(line, "Uid:", &uid) || parse_ids(line, "Gid:", &gid))
			found++;
		else if (!strncmp(line, "Groups:", 7))
			parse_groups(line + 7, ret_rights);
		else if (sscanf(line, "CapEff: %" SCNx64, &capabilities) == 1)
			found++;
	}
	if (found < 3)
		return -ESRCH;
	ret_rights->uid = effective_id(&uid);
	ret_rights->gid = effective_id(&gid);
	/* Those of another user count only in its own user namespace. */
	ret_rights->reads_all = ret_rights->uid == 0 && capabilities & READING;
	return 0;
}

void process_rights_of_nobody(ProcessRights *ret_rights)
{
	*ret_rights = (ProcessRights){.uid = NO_USER, .gid = NO_USER};
}

bool process_rights_equal(const ProcessRights *a, const ProcessRights *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->reads_all == b->reads_all &&
	       a->group_count == b->group_count &&
	       !memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups));
}

/* ---- having them --------------------------------------------------------------------------- */

/* The C library would change all threads: these are of the calling one (capset(2), setfsuid(2)). */

static int change_capabilities(bool reading)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, words))
		return -errno;
	if (reading)
		words[0].effective |= words[0].permitted & READING;
	else
		words[0].effective &= ~READING;
	return syscall(SYS_capset, &header, words) ? -errno : 0;
}

/* setfsuid(2) returns no error, but the id that was set before. */
static bool set_file_ids(uid_t uid, gid_t gid)
{
	syscall(SYS_setfsgid, gid);
	syscall(SYS_setfsuid, uid);
	return (gid_t)syscall(SYS_setfsgid, -1) == gid && (uid_t)syscall(SYS_setfsuid, -1) == uid;
}

static int enter_as_root(const ProcessRights *rights)
{
	/* The user comes last: nothing else may be changed after that. */
	if (syscall(SYS_setgroups, rights->group_count, rights->groups))
		return -errno;
	if (!set_file_ids(rights->uid, rights->gid))
		return -EPERM;
	return rights->uid == 0 && !rights->reads_all ? change_capabilities(false) : 0;
}

int process_rights_enter(const ProcessRights *rights, OwnRights *ret_own)
{
	int error;

	*ret_own = (OwnRights){.gid = getegid()};
	if (geteuid() != 0)
		return change_capabilities(false);
	ret_own->group_count = getgroups(RIGHTS_GROUPS_MAX, ret_own->groups);
	if (ret_own->group_count < 0)
		return -errno;
	error = enter_as_root(rights);
	if (error)
		process_rights_leave(ret_own);
	return error;
}

int process_rights_leave(const OwnRights *own)
{
	if (geteuid() != 0)
		return change_capabilities(true);
	if (!set_file_ids(0, own->gid) || syscall(SYS_setgroups, own->group_count, own->groups))
		return -EPERM;
	return change_capabilities(true);
}
