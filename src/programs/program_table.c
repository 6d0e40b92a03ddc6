/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "program_table.h"
#include "records.h"
#include "util.h"
#include <string.h>

/* ROW(name, section, purpose, need, load group, further members…) */
#define ROW(n, s, p, need_, group_, ...)                                                           \
	{                                                                                          \
		.name = (n), .section = (s), .purpose = (p), .need = PROGRAM_##need_,              \
		.group = LOAD_GROUP_##group_, __VA_ARGS__                                          \
	}
/* When a program of page faults is loaded, with fentry and with events. */
#define FAULTS(fentry_, events_)                                                                   \
	.for_faults = true, .fentry = FAULT_USE_##fentry_, .events = FAULT_USE_##events_

static const ProgramInfo programs[] = {
	/* bpf/probes/fault.bpf.c */
	ROW("on_fault_begin", "fentry/handle_mm_fault", "page faults", OPTIONAL, TICK,
	    FAULTS(ALWAYS, NEVER)),
	ROW("on_fault_end", "fexit/handle_mm_fault", "page faults", OPTIONAL, TICK,
	    FAULTS(WITHOUT_THRESHOLD, NEVER), .lost_kind = REC_FAULT),
	ROW("on_fault_end_stack", "fexit/handle_mm_fault", "page faults, with stacks", OPTIONAL,
	    TICK, FAULTS(WITH_THRESHOLD, NEVER), .lost_kind = REC_FAULT),
	ROW("on_file_fault", "fexit/filemap_fault", "page faults in files", OPTIONAL, TICK,
	    FAULTS(ALWAYS, NEVER)),
	ROW("on_fault_user", "tp_btf/page_fault_user", "page faults", OPTIONAL, TICK,
	    FAULTS(WITH_THRESHOLD, ALWAYS)),
	ROW("on_fault_kernel", "tp_btf/page_fault_kernel", "page faults", OPTIONAL, TICK,
	    FAULTS(WITH_THRESHOLD, ALWAYS)),
	ROW("on_fault_accounted", "perf_event/page-faults-maj", "page faults", OPTIONAL, TICK,
	    FAULTS(NEVER, WITHOUT_THRESHOLD), .lost_kind = REC_FAULT),
	ROW("on_fault_accounted_stack", "perf_event/page-faults-min", "page faults, with stacks",
	    OPTIONAL, TICK, FAULTS(NEVER, WITH_THRESHOLD), .lost_kind = REC_FAULT),
	/* bpf/probes/block.bpf.c */
	ROW("on_bio_queued", "tp_btf/block_bio_queue", "block I/O", OPTIONAL, TICK,
	    .missed_requests = "requests have no thread (submitted while the program was busy)"),
	ROW("on_bio_limited", "fentry/__blk_throtl_bio", "block I/O that a cgroup limits",
	    DISPENSABLE, TICK,
	    .missed_requests = "requests that a cgroup's limit may have delayed have no thread "
			       "(submitted while the program was busy)"),
	ROW("on_bio_remapped", "tp_btf/block_bio_remap", "block I/O of md and dm", OPTIONAL, TICK,
	    .missed_requests =
		    "requests of md or dm count twice (mapped while the program was busy)"),
	ROW("on_bio_split", "tp_btf/block_split", "block I/O", OPTIONAL, TICK,
	    .missed_requests =
		    "requests may have parts without a thread (split while the program was "
		    "busy)"),
	ROW("on_bio_completed", "tp_btf/block_bio_complete", "block I/O of md, dm and zram",
	    OPTIONAL, TICK, .lost_kind = REC_REQUEST),
	ROW("on_request_inserted", "tp_btf/block_rq_insert", "block I/O", OPTIONAL, TICK),
	ROW("on_request_merged", "tp_btf/block_rq_merge", "block I/O", OPTIONAL, TICK),
	ROW("on_request_issued", "tp_btf/block_rq_issue", "block I/O", OPTIONAL, TICK,
	    .missed_requests =
		    "requests have their time on the device counted as time in the queue "
		    "(issued while the program was busy)"),
	ROW("on_request_completed", "tp_btf/block_rq_complete", "block I/O", OPTIONAL, TICK,
	    .lost_kind = REC_REQUEST),
	ROW("on_folio_dirtied", "tp_btf/writeback_dirty_folio", "names of files written later",
	    DISPENSABLE, TICK, .for_names = true),
	/* bpf/probes/io_uring.bpf.c */
	ROW("on_ring_work", "tp_btf/io_uring_queue_async_work", "block I/O of io_uring workers",
	    DISPENSABLE, SWITCH),
	ROW("on_ring_poll", "tp_btf/io_uring_poll_arm", "waits of io_uring requests", DISPENSABLE,
	    TICK),
	ROW("on_contention", "tp_btf/contention_begin", "kernel lock owners", DISPENSABLE, TICK),
	ROW("on_socket_state", "tp_btf/inet_sock_set_state", "closing sockets", DISPENSABLE, TICK),
	ROW("on_softirq", "tp_btf/softirq_entry", "soft interrupts as wakers", REQUIRED, TICK),
	ROW("on_migrate", "tp_btf/sched_migrate_task", "CPU users", REQUIRED, TICK),
	ROW("on_switch", "tp_btf/sched_switch", "context switches", REQUIRED, SWITCH,
	    .lost_kind = REC_SWITCH),
	ROW("on_waking", "tp_btf/sched_waking", "wakeups", REQUIRED, SWITCH,
	    .lost_kind = REC_WAKING),
	ROW("on_wakeup_new", "tp_btf/sched_wakeup_new", "new processes and threads", REQUIRED, TICK,
	    .lost_kind = REC_TASK),
	ROW("on_exec", "tp_btf/sched_process_exec", "exec", REQUIRED, TICK, .lost_kind = REC_EXEC),
	ROW("on_exec_args", "tp_btf/sched_process_exec", "arguments", OPTIONAL, TICK,
	    .for_args = true, .lost_kind = REC_ARGS),
	ROW("on_rename", "tp_btf/task_rename", "thread names", REQUIRED, TICK,
	    .lost_kind = REC_TASK),
	ROW("on_tick", "perf_event/cpu-clock", "CPU samples", REQUIRED, TICK,
	    .lost_kind = REC_SAMPLE),
	ROW("on_cgroup_entered", "tp_btf/cgroup_attach_task", "processes that enter a cgroup",
	    OPTIONAL, TICK, .for_cgroups = true),
	ROW("init_own_ids", "iter/task", "excluding wallprof itself", REQUIRED, TICK),
	ROW("mark_target", "iter/task", "finding targets", REQUIRED, TICK, .for_running = true),
	ROW("mark_scope_targets", "iter/task", "finding all processes, or those of a cgroup",
	    REQUIRED, TICK, .for_running = true),
	ROW("mark_command", "iter/task", "finding the command", REQUIRED, TICK),
	ROW("mark_descendants", "iter/task", "finding descendants of targets", REQUIRED, TICK,
	    .for_running = true),
	ROW("snapshot_stacks", "iter.s/task", "stacks of threads asleep at the start", REQUIRED,
	    TICK, .for_running = true),
	ROW("snapshot", "iter.s/task", "threads asleep at the start", REQUIRED, TICK),
};

const ProgramInfo *program_info(size_t i)
{
	return i < ARRAY_LEN(programs) ? &programs[i] : NULL;
}

const ProgramInfo *program_info_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (!strcmp(name, programs[i].name))
			return &programs[i];
	return NULL;
}
