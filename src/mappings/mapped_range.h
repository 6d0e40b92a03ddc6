/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped_range.h - opens the file behind a mapping of a living process.
 */
#ifndef WALLPROF_MAPPED_RANGE_H
#define WALLPROF_MAPPED_RANGE_H

#include <stdint.h>
#include <sys/stat.h>

typedef struct MappedRange {
	uint32_t ns_tgid;
	uint64_t start, end; /* AVMA, of the whole mapping */
	int root_fd;	     /* of the process, as for safe_open_in() */
	const char *path;    /* below that root */
} MappedRange;

/* In the order in which they are tried. Only the first leads to the mapped file for certain. */
enum mapped_method {
	MAPPED_BY_LINK, /* /proc/PID/map_files, which needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN
			 */
	MAPPED_BY_PATH,
	MAPPED_BY_EXE, /* /proc/PID/exe: for a program that was deleted or replaced */
	MAPPED_METHODS
};

/* Returns 0 if this is the mapped file, or a negative errno. It does not close fd. */
typedef int (*MappedFits)(void *user, enum mapped_method way, int fd, const struct stat *st);

/*
 * Opens the first regular file that fits, for reading; *ret_stat is its state. Otherwise returns a
 * negative errno: -EPERM if the link is refused (proc(5)) and no other way leads to the file,
 * -EACCES if the files of another user need a right that is missing.
 */
int mapped_range_open(const MappedRange *range, MappedFits fits, void *user, struct stat *ret_stat);

#endif
