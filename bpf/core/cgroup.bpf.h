/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup.bpf.h - who is in the cgroup that is recorded.
 */
#ifndef WALLPROF_CGROUP_BPF_H
#define WALLPROF_CGROUP_BPF_H

#include "wallprof.bpf.h"

/* Is it, or a cgroup below it, in that set (struct css_set *)? */
extern int cgroup_has(u64 css_set);

/* A number, because a global function takes no pointer to a task before 6.9. */
static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	return setting_cgroup && bpf_core_field_exists(task->cgroups) &&
	       cgroup_has((u64)BPF_CORE_READ(task, cgroups));
}

#endif
