/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * open_mapped_file.h - from a mapping of a living process to the file behind it.
 */
#ifndef WALLPROF_OPEN_MAPPED_FILE_H
#define WALLPROF_OPEN_MAPPED_FILE_H

#include <stdint.h>
#include <sys/stat.h>

typedef struct MappedRange {
	uint32_t ns_tgid;
	uint64_t start, end; /* AVMA, all of the mapping */
	int root_fd;	     /* of the process, as for safe_open_in() */
	const char *path;    /* in that root */
} MappedRange;

/* In the order in which they are tried. Only the first leads to the mapped file for certain. */
enum mapped_method {
	MAPPED_BY_LINK, /* /proc/PID/map_files, for CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN alone */
	MAPPED_BY_PATH,
	MAPPED_BY_EXE, /* /proc/PID/exe: of a program that was deleted or replaced */
	MAPPED_METHODS
};

/* Whether that is the mapped file: 0 or a negative errno. fd stays open_mapped_file()'s. */
typedef int (*MappedFits)(void *user, enum mapped_method way, int fd, const struct stat *st);

/*
 * The first regular file that fits, open for reading; *ret_stat is its. Else a negative errno:
 * -EPERM if the link is refused (proc(5)) and nothing else leads there, -EACCES if a right is
 * missing that another user's files take.
 */
int open_mapped_file(const MappedRange *place, MappedFits fits, void *user, struct stat *ret_stat);

#endif
