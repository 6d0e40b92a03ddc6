/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proc_maps.h - parses a line of /proc/PID/maps; see proc_pid_maps(5). The process can choose the
 * path in it.
 */
#ifndef WALLPROF_PROC_MAPS_H
#define WALLPROF_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ProcMapping {
	uint64_t start, end; /* AVMA; end is above start */
	uint64_t pgoff;	     /* bytes */
	uint64_t inode;	     /* 0 = there is no file */
	bool read, write, exec, shared;
	const char *path; /* points into the line; "" = there is none */
} ProcMapping;

/*
 * Changes the line (NUL-terminated, with or without a newline). Returns false if it is malformed.
 */
bool proc_maps_parse(char *line, ProcMapping *ret_mapping);

/*
 * Calls each() for the mappings of a living thread, until it returns what is not 0. Returns that,
 * 0, or a negative errno if they cannot be read.
 */
int proc_maps_each(pid_t tid, int (*each)(void *user, const ProcMapping *mapping), void *user);

/* Returns whether no file is behind a mapping with this path: [heap], //anon, /dev/zero, … */
bool proc_maps_is_anonymous(const char *path);

#endif
