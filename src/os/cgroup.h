/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup.h - how the kernel identifies a cgroup, and what it limits (cgroups(7)).
 */
#ifndef WALLPROF_CGROUP_H
#define WALLPROF_CGROUP_H

#include <stdint.h>

typedef struct Cgroup {
	uint64_t id;	    /* 0 = none; unique in one hierarchy: */
	uint32_t hierarchy; /* the number in /proc/PID/cgroup: 0 is version 2 */
} Cgroup;

/*
 * Finds a cgroup by its folder, or by its path below the mount of version 2 (or, beside version 1,
 * of the one that systemd keeps). Returns 0 or a negative errno after reporting the error.
 */
int cgroup_find(const char *path, Cgroup *ret_cgroup);

/*
 * Returns the smallest limit on memory of this process's cgroups and those above them, in bytes;
 * UINT64_MAX if there is none, or none can be read.
 */
uint64_t cgroup_memory_limit(void);

#endif
