/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * safe_open.h - opens files by paths that are not trusted.
 */
#ifndef WALLPROF_SAFE_OPEN_H
#define WALLPROF_SAFE_OPEN_H

#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Opens path for reading if it is a regular file. Nothing else is opened, so that it never waits
 * for a FIFO and wakes no device. resolve: RESOLVE_* of openat2(2); 0 = all links are followed.
 * Returns a descriptor or a negative errno (-EINVAL: not a regular file; -EWOULDBLOCK: a process
 * has a lease on it, and its end is not waited for).
 */
int safe_open(const char *path, uint64_t resolve, struct stat *ret_stat);

/*
 * The same below the folder root_fd (O_PATH is enough), as if that were "/": neither links nor ".."
 * lead out of it. root_fd -1 is wallprof's own root.
 */
int safe_open_in(int root_fd, const char *path, struct stat *ret_stat);

/*
 * Whether a descriptor that was just opened may stay open for the whole recording: enough others
 * are left for what is done at its end.
 */
bool safe_open_may_keep(int fd);

/* ---- with the rights of a recorded process ----------------------------------------------- */

/*
 * The process chooses the paths, and root must not read for it what it could not read itself. A
 * user with capabilities must not read by them what a process names: there only the user's own
 * rights count, whatever is recorded. Between enter and leave the calling thread, and no other, has
 * the rights to files that are described here; everything else stays.
 */

#define RIGHTS_GROUPS_MAX 64 /* further groups are ignored, which can only mean fewer rights */

typedef struct OpenRights {
	uid_t uid; /* for files; the real one if a program is set-user-id root */
	gid_t gid;
	bool reads_all; /* root with CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH */
	int group_count;
	gid_t groups[RIGHTS_GROUPS_MAX];
} OpenRights;

/*
 * Reads those of a process that lives, or that its parent has not waited for. Returns 0 or a
 * negative errno.
 */
int safe_open_rights_of(pid_t pid, OpenRights *ret_rights);

/* The rights of an unknown user, who may read what all users may read. */
void safe_open_rights_of_nobody(OpenRights *ret_rights);

bool safe_open_rights_equal(const OpenRights *a, const OpenRights *b);

typedef struct OwnRights {
	gid_t gid;
	gid_t groups[RIGHTS_GROUPS_MAX];
	int group_count;
} OwnRights;

/* Returns 0, or a negative errno; then nothing has changed. */
int safe_open_enter(const OpenRights *rights, OwnRights *ret_own);

/* Returns 0, or a negative errno if a part of the own rights could not be restored. */
int safe_open_leave(const OwnRights *own);

#endif
