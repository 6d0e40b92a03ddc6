/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup.h - how the kernel identifies a cgroup, and what it limits (cgroups(7)).
 */
#ifndef WALLPROF_CGROUP_H
#define WALLPROF_CGROUP_H

#include "util.h"
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

/* ---- limits on CPU time ------------------------------------------------------------------ */

/* A cgroup whose processes may use so much CPU time: cpu.max, or cpu.cfs_quota_us of version 1. */
typedef struct CgroupCpuLimit {
	char *folder, *path; /* the path is that of /proc/PID/cgroup; owned */
	uint64_t quota_us, period_us;
	uint64_t throttled_ns; /* how long it had been throttled when it was first seen */
} CgroupCpuLimit;

/* All zeros is an empty one. */
typedef struct CgroupCpuLimits {
	const char *proc, *root; /* NULL: /proc and /sys/fs/cgroup */
	Strings seen;		 /* folders that were looked at */
	VEC(CgroupCpuLimit) list;
} CgroupCpuLimits;

/*
 * Looks at the cgroup of a process, and at those above it, unless that was done before. If the
 * process has ended, nothing happens.
 */
void cgroup_cpu_limits_add(CgroupCpuLimits *limits, uint32_t ns_tgid);

/*
 * Returns the cgroup that was throttled longest since it was first seen, and sets how long; NULL:
 * none was.
 */
const CgroupCpuLimit *cgroup_cpu_limits_most(const CgroupCpuLimits *limits, uint64_t *ret_ns);
void cgroup_cpu_limits_free(CgroupCpuLimits *limits);

#endif
