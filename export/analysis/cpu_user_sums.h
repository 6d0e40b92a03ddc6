/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpu_user_sums.h - which tasks had the CPUs that threads waited for, summed over all waits. */
#ifndef WALLPROF_CPU_USER_SUMS_H
#define WALLPROF_CPU_USER_SUMS_H

#include "cpu_users.h"
#include "util.h"

/* The sums of the parts of all waits that belong to one task. */
typedef struct CpuUser {
	uint32_t task;		       /* as in CpuPart */
	uint64_t count, untimed_count; /* waits; those of which its part is unknown */
	uint64_t total_ns, longest_ns;
} CpuUser;

typedef struct CpuUserSums {
	Map index;	   /* task -> list */
	VEC(CpuUser) list; /* the largest total first */
} CpuUserSums;

/* Divides all waits for a CPU of all threads. cpu_user_sums_free() frees the memory. */
CpuUserSums cpu_user_sums_of(const Timeline *timeline);
void cpu_user_sums_free(CpuUserSums *sums);

#endif
