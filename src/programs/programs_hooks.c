/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "programs_private.h"
#include "util.h"
#include <string.h>

static const Hook hooks[] = {
	{"on_fault_begin", "fentry/handle_mm_fault", "page faults", HOOK_OPTIONAL},
	{"on_fault_end", "fexit/handle_mm_fault", "page faults", HOOK_OPTIONAL},
	{"on_fault_end_stack", "fexit/handle_mm_fault", "page faults, with stacks", HOOK_OPTIONAL},
	{"on_file_fault", "fexit/filemap_fault", "what page faults found of files", HOOK_OPTIONAL},
	{"on_fault_user", "tp_btf/page_fault_user", "page faults", HOOK_OPTIONAL},
	{"on_fault_kernel", "tp_btf/page_fault_kernel", "page faults", HOOK_OPTIONAL},
	{"on_fault_accounted", "perf_event/page-faults-maj", "page faults", HOOK_OPTIONAL},
	{"on_fault_accounted_stack", "perf_event/page-faults-min", "page faults, with stacks",
	 HOOK_OPTIONAL},
	{"on_bio_queued", "tp_btf/block_bio_queue", "block I/O", HOOK_OPTIONAL},
	{"on_bio_limited", "fentry/__blk_throtl_bio", "block I/O that a cgroup limits",
	 HOOK_DISPENSABLE},
	{"on_bio_remapped", "tp_btf/block_bio_remap", "block I/O of md and dm", HOOK_OPTIONAL},
	{"on_bio_split", "tp_btf/block_split", "block I/O", HOOK_OPTIONAL},
	{"on_bio_completed", "tp_btf/block_bio_complete", "block I/O of md, dm and zram",
	 HOOK_OPTIONAL},
	{"on_request_inserted", "tp_btf/block_rq_insert", "block I/O", HOOK_OPTIONAL},
	{"on_request_merged", "tp_btf/block_rq_merge", "block I/O", HOOK_OPTIONAL},
	{"on_request_issued", "tp_btf/block_rq_issue", "block I/O", HOOK_OPTIONAL},
	{"on_request_completed", "tp_btf/block_rq_complete", "block I/O", HOOK_OPTIONAL},
	{"on_ring_work", "tp_btf/io_uring_queue_async_work", "block I/O of io_uring's workers",
	 HOOK_DISPENSABLE},
	{"on_ring_poll", "tp_btf/io_uring_poll_arm", "what io_uring's requests wait for",
	 HOOK_DISPENSABLE},
	{"on_contention", "tp_btf/contention_begin", "who has the kernel's locks",
	 HOOK_DISPENSABLE},
	{"on_socket_state", "tp_btf/inet_sock_set_state", "sockets that are closed",
	 HOOK_DISPENSABLE},
	{"on_softirq", "tp_btf/softirq_entry", "soft interrupts as wakers", HOOK_NEEDED},
	{"on_migrate", "tp_btf/sched_migrate_task", "what has the CPUs that targets wait for",
	 HOOK_NEEDED},
	{"on_switch", "tp_btf/sched_switch", "context switches", HOOK_NEEDED},
	{"on_waking", "tp_btf/sched_waking", "wake-ups", HOOK_NEEDED},
	{"on_wakeup_new", "tp_btf/sched_wakeup_new", "new processes and threads", HOOK_NEEDED},
	{"on_exec", "tp_btf/sched_process_exec", "exec", HOOK_NEEDED},
	{"on_rename", "tp_btf/task_rename", "thread names", HOOK_NEEDED},
	{"on_tick", "perf_event/cpu-clock", "CPU samples", HOOK_NEEDED},
	{"on_cgroup_entered", "tp_btf/cgroup_attach_task", "processes that enter a cgroup",
	 HOOK_OPTIONAL},
	{"learn_who_we_are", "iter/task", "telling wallprof from others", HOOK_NEEDED},
	{"mark_target", "iter/task", "finding targets", HOOK_NEEDED},
	{"mark_unnamed", "iter/task", "finding all processes, or those of a cgroup", HOOK_NEEDED},
	{"mark_command", "iter/task", "finding the command", HOOK_NEEDED},
	{"mark_descendants", "iter/task", "finding processes of targets", HOOK_NEEDED},
	{"snapshot_stacks", "iter.s/task", "stacks of threads asleep at the start", HOOK_NEEDED},
	{"snapshot", "iter.s/task", "threads asleep at the start", HOOK_NEEDED},
};

const Hook *programs_hook(size_t i)
{
	return i < ARRAY_LEN(hooks) ? &hooks[i] : NULL;
}

const Hook *programs_hook_of(const char *program)
{
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++)
		if (!strcmp(program, hooks[i].program))
			return &hooks[i];
	return NULL;
}
