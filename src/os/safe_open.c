/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safe_open.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without /proc the path is opened a second time; it must still name the same file. */
static int reopen(int folder, const char *path, uint64_t resolve, const struct stat *wanted)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC, .resolve = resolve};
	_cleanup_close_ int fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
	struct stat st;
	int found;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (st.st_dev != wanted->st_dev || st.st_ino != wanted->st_ino)
		return -EAGAIN;
	found = fd;
	fd = -1;
	return found;
}

/*
 * Opens first only a reference (O_PATH), whose type can be checked; then that very file, whatever
 * the path names by then.
 */
static int open_at(int folder, const char *path, uint64_t resolve, struct stat *ret_stat)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
	_cleanup_close_ int path_fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
	char fd_path[64];
	int fd;

	if (path_fd < 0 || fstat(path_fd, ret_stat))
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -EINVAL;
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", path_fd);
	/*
	 * O_NONBLOCK: do not wait up to 45 s for a process that has a lease on the file, see
	 * fcntl(2).
	 */
	fd = open(fd_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? reopen(folder, path, resolve, ret_stat) : -errno;
}

int safe_open(const char *path, uint64_t resolve, struct stat *ret_stat)
{
	return open_at(AT_FDCWD, path, resolve, ret_stat);
}

int safe_open_in(int root_fd, const char *path, struct stat *ret_stat)
{
	return root_fd < 0
		       ? safe_open(path, 0, ret_stat)
		       : open_at(root_fd, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, ret_stat);
}

/* So many descriptors are left for symbols, sources, the capture and its profile. */
#define FDS_KEPT_FREE 256

bool safe_open_may_keep(int fd)
{
	struct rlimit limit;

	/* The kernel gives the lowest free descriptor, so fd shows how many are left. */
	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd + FDS_KEPT_FREE < limit.rlim_cur;
}

/* ---- with the rights of a recorded process ----------------------------------------------- */

/* No file belongs to it. 65534, the user `nobody`, owns files on some machines. */
#define NO_USER ((uid_t)-2)

/* The capabilities that read files without having the right to (capabilities(7)). */
#define READING (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH)

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

static void parse_groups(const char *text, OpenRights *rights)
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

int safe_open_rights_of(pid_t pid, OpenRights *ret_rights)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *status = NULL;
	uint64_t capabilities = 0;
	Ids uid, gid;
	char path[64];
	size_t room = 0;
	int found = 0;

	*ret_rights = (OpenRights){};
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	if (!status)
		return -errno;
	while (getline(&line, &room, status) > 0) {
		if (parse_ids(line, "Uid:", &uid) || parse_ids(line, "Gid:", &gid) ||
		    sscanf(line, "CapEff: %" SCNx64, &capabilities) == 1)
			found++;
		else if (!strncmp(line, "Groups:", 7))
			parse_groups(line + 7, ret_rights);
	}
	if (found < 3)
		return -ESRCH;
	ret_rights->uid = effective_id(&uid);
	ret_rights->gid = effective_id(&gid);
	/* Those of another user count only in its own user namespace. */
	ret_rights->reads_all = ret_rights->uid == 0 && capabilities & READING;
	return 0;
}

void safe_open_rights_of_nobody(OpenRights *ret_rights)
{
	*ret_rights = (OpenRights){.uid = NO_USER, .gid = NO_USER};
}

bool safe_open_rights_equal(const OpenRights *a, const OpenRights *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->reads_all == b->reads_all &&
	       a->group_count == b->group_count &&
	       !memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups));
}

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

static int enter_as_root(const OpenRights *rights)
{
	/* The user comes last: nothing else may be changed after that. */
	if (syscall(SYS_setgroups, rights->group_count, rights->groups))
		return -errno;
	if (!set_file_ids(rights->uid, rights->gid))
		return -EPERM;
	return rights->uid == 0 && !rights->reads_all ? change_capabilities(false) : 0;
}

int safe_open_enter(const OpenRights *rights, OwnRights *ret_own)
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
		safe_open_leave(ret_own);
	return error;
}

int safe_open_leave(const OwnRights *own)
{
	if (geteuid() != 0)
		return change_capabilities(true);
	if (!set_file_ids(0, own->gid) || syscall(SYS_setgroups, own->group_count, own->groups))
		return -EPERM;
	return change_capabilities(true);
}
