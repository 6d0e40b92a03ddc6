/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup.bpf.h - whether a task is in the recorded cgroup.
 */
#ifndef WALLPROF_CGROUP_BPF_H
#define WALLPROF_CGROUP_BPF_H

#include "wallprof.bpf.h"

/* Whether the css_set (struct css_set *) has the recorded cgroup or one below it. */
extern int cgroup_has(u64 css_set);

/*
 * The css_set is passed as a number, because before 6.9 a global function takes no kernel pointer.
 */
static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	return setting_cgroup && bpf_core_field_exists(task->cgroups) &&
	       cgroup_has((u64)BPF_CORE_READ(task, cgroups));
}

#endif
