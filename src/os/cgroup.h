/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup.h - what the kernel calls a cgroup by (cgroups(7)).
 */
#ifndef WALLPROF_CGROUP_H
#define WALLPROF_CGROUP_H

#include <stdint.h>

typedef struct Cgroup {
	uint64_t id;	    /* 0 = none; of one hierarchy: */
	uint32_t hierarchy; /* as /proc/PID/cgroup numbers them: 0 is version 2 */
} Cgroup;

/*
 * Finds one by its folder, or by its path below the mount of version 2 (or, beside version 1, of
 * that which systemd keeps). Returns 0 or a negative errno after saying what is wrong.
 */
int cgroup_find(const char *path, Cgroup *ret_cgroup);

#endif
