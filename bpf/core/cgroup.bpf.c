/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup.bpf.c - whether a task is in the recorded cgroup or below it, and a program that adds
 * tasks which enter it. The program is loaded only if a cgroup is recorded.
 */
#include "cgroup.bpf.h"

#define HIERARCHIES_MAX 32
#define CGROUP_DEPTH	32

/*
 * cgroup::self is at offset 0, so the address of a parent's state is the address of the parent
 * cgroup.
 */
static __always_inline bool is_in_recorded_cgroup(struct cgroup *cgroup)
{
	for (u32 i = 0; i < CGROUP_DEPTH && cgroup; i++) {
		if (BPF_CORE_READ(cgroup, kn, id) == setting_cgroup)
			return true;
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return false;
}

/*
 * A cgroup id is unique within one hierarchy only; there are several hierarchies where cgroup v1 is
 * in use.
 */
static __always_inline bool is_in_hierarchy(struct cgroup *cgroup)
{
	return (u32)BPF_CORE_READ(cgroup, root, hierarchy_id) == setting_cgroup_hierarchy;
}

/*
 * The list changes only when a hierarchy is mounted or a css_set is created. It is read without a
 * lock, so the loop is bounded and each pointer is read by the helper, which survives bad
 * addresses.
 */
__noinline int cgroup_has(u64 css_set)
{
	struct list_head *first =
		(void *)css_set + bpf_core_field_offset(struct css_set, cgrp_links);
	struct list_head *at = first;

	for (u32 i = 0; i < HIERARCHIES_MAX; i++) {
		struct cgrp_cset_link *link;
		struct cgroup *cgroup;

		at = BPF_CORE_READ(at, next);
		if (!at || at == first)
			return 0;
		link = (void *)at - bpf_core_field_offset(struct cgrp_cset_link, cgrp_link);
		cgroup = BPF_CORE_READ(link, cgrp);
		if (cgroup && is_in_hierarchy(cgroup))
			return is_in_recorded_cgroup(cgroup);
	}
	return 0;
}

/* A task that enters is recorded from now on; the recorder then reads its threads and mappings. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_entered, struct cgroup *cgroup, const char *path, struct task_struct *task)
{
	u32 kthread = task->flags & PF_KTHREAD;

	if (is_target(task) || (kthread && !setting_kernel_threads) ||
	    (u32)task->tgid == own_tgid || !is_in_hierarchy(cgroup) ||
	    !is_in_recorded_cgroup(cgroup))
		return 0;
	target_add(task);
	emit_task(task, TASK_JOINED, 0, bpf_ktime_get_ns());
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
