/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process_rights.h - opens files with the rights that a recorded process has.
 *
 * The process chooses the paths, and root must not read for it what it could not read itself. A
 * user with capabilities must not read by them what a process names: there only the user's own
 * rights count, whoever is recorded. Between enter and leave the calling thread, and no other, has
 * the rights to files that are described here; everything else stays.
 */
#ifndef WALLPROF_PROCESS_RIGHTS_H
#define WALLPROF_PROCESS_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

#define RIGHTS_GROUPS_MAX 64 /* further groups are ignored, which can only mean fewer rights */

typedef struct ProcessRights {
	uid_t uid; /* for files; the real one if a program is set-user-id root */
	gid_t gid;
	bool reads_all; /* root with CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH */
	int group_count;
	gid_t groups[RIGHTS_GROUPS_MAX];
} ProcessRights;

/* Reads those of a living process, or of one that nobody has waited for. Returns 0 or a negative
 * errno. */
int process_rights_read(pid_t pid, ProcessRights *ret_rights);

/* The rights of a user of whom nothing is known: what everybody may read. */
void process_rights_of_nobody(ProcessRights *ret_rights);

bool process_rights_equal(const ProcessRights *a, const ProcessRights *b);

typedef struct OwnRights {
	gid_t gid;
	gid_t groups[RIGHTS_GROUPS_MAX];
	int group_count;
} OwnRights;

/* Returns 0, or a negative errno; then nothing has changed. */
int process_rights_enter(const ProcessRights *rights, OwnRights *ret_own);

/* Returns 0, or a negative errno if a part of the own rights could not be restored. */
int process_rights_leave(const OwnRights *own);

#endif
