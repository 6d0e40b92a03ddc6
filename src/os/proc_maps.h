/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proc_maps.h - reads a line of /proc/PID/maps; see proc_pid_maps(5). The path in it is of
 * the process's own choosing.
 *
 * Works on memory and touches nothing else.
 */
#ifndef WALLPROF_PROC_MAPS_H
#define WALLPROF_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ProcMapping {
	uint64_t start, end; /* AVMA; end is above start */
	uint64_t pgoff;	     /* bytes */
	uint64_t inode;	     /* 0 = no file */
	bool exec;
	const char *path; /* in the line; "" = nothing is told */
} ProcMapping;

/* The line (NUL-terminated; a newline at its end will do) is changed. Returns false if it is none.
 */
bool proc_maps_parse(char *line, ProcMapping *ret_mapping);

#endif
