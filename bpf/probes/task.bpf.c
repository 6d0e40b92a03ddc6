/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task.bpf.c - exec and rename, and marking the targets when a recording starts. Births and ends
 * are in sched.bpf.c.
 */
#include "cgroup.bpf.h"
#include "cost.bpf.h"
#include "unwind_process.bpf.h"
#include "user_stack.bpf.h"

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct rec_exec record = {};
	struct stack_slot *slot;

	/* A thread other than the leader has called exec and got the leader's tid. */
	if (setting_threads && is_target_id(old_pid))
		target_add(task);
	if (!is_target(task))
		return 0;
	record_init(&record.h, REC_EXEC, 0, sizeof(record), bpf_ktime_get_ns());
	record.tid = task->pid;
	record.old_tid = old_pid;
	record.tgid = task->tgid;
	record.exec_id = task->self_exec_id;
	BPF_CORE_READ_STR_INTO(&record.comm, task, comm);
	bpf_probe_read_kernel_str(record.path, sizeof(record.path), bprm->filename);
	/*
	 * The entry is made before the record is sent, because the recorder publishes its own after
	 * the record.
	 */
	if (setting_user_stacks == USER_STACKS_TABLES) {
		slot = slot_acquire_accounted(record.h.ns);
		if (slot) {
			unwind_exec(slot->index);
			slot_release(slot);
		}
	}
	emit(RING_SCHED, &record.h, sizeof(record));
	cost_add(record.h.ns);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	/* The tracepoint fires before task->comm changes. */
	u64 ns;

	if (!is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	emit_task_named(task, comm, TASK_RENAME, 0, ns);
	cost_add(ns);
	return 0;
}

/* ---- iterators: run by the recorder, in its own context ---------------------- */

#define CLOCK_READINGS 64

/*
 * Measures the time of one clock reading. A measured interval lacks half a reading at each end
 * (cost.bpf.h).
 */
static __always_inline void measure_clock_ns(void)
{
	u64 begin_ns = bpf_ktime_get_ns(), end_ns = begin_ns;

	for (u32 i = 0; i < CLOCK_READINGS; i++)
		end_ns = bpf_ktime_get_ns();
	clock_ns = (end_ns - begin_ns) / CLOCK_READINGS;
	if (clock_ns > CLOCK_MAX_NS)
		clock_ns = CLOCK_MAX_NS;
}

/* wallprof runs it on its own process. */
SEC("iter/task")
int init_own_ids(struct bpf_iter__task *ctx)
{
	struct task_struct *self = bpf_get_current_task_btf();

	pid_ns_level = BPF_CORE_READ(self, thread_pid, level);
	own_tgid = self->tgid;
	measure_clock_ns();
	return 0;
}

/* Marks the process that the iterator was opened on, or a thread of it. */
SEC("iter/task")
int mark_target(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || (setting_threads && ns_pid(task) != wanted_tid))
		return 0;
	wanted_found = 1;
	target_add(task);
	return 0;
}

/* Marks the one process that wallprof launched. */
SEC("iter/task")
int mark_command(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	command_tgid = task->tgid;
	__sync_fetch_and_add(&command_threads, 1);
	target_add(task);
	return 0;
}

#define ANCESTORS_MAX 64

enum ancestry { ANCESTRY_NONE, ANCESTRY_TARGET, ANCESTRY_OURS };

/* The nearest ancestor that is a target or wallprof. */
static __always_inline enum ancestry ancestry_of(struct task_struct *task)
{
	struct task_struct *ancestor = BPF_CORE_READ(task, real_parent);

	for (int i = 0; i < ANCESTORS_MAX; i++) {
		u32 tgid = BPF_CORE_READ(ancestor, tgid);

		if (tgid <= 1)
			break;
		if (tgid == own_tgid)
			return ANCESTRY_OURS;
		if (is_target_id(tgid))
			return ANCESTRY_TARGET;
		ancestor = BPF_CORE_READ(ancestor, real_parent);
	}
	return ANCESTRY_NONE;
}

/* Marks processes that have a target among their ancestors, except wallprof's own. */
SEC("iter/task")
int mark_descendants(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || task->pid != task->tgid || is_target(task) || (u32)task->tgid == own_tgid)
		return 0;
	if (ancestry_of(task) == ANCESTRY_TARGET)
		target_add(task);
	return 0;
}

/*
 * Marks the targets that were not given one by one: all processes, those of a cgroup, or kernel
 * threads. wallprof and its children are not marked; the command is marked already.
 */
SEC("iter/task")
int mark_scope_targets(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || task->pid != task->tgid)
		return 0;
	if (task->flags & PF_KTHREAD) {
		if (setting_kernel_threads)
			target_add(task);
		return 0;
	}
	if (is_target(task) || (u32)task->tgid == own_tgid)
		return 0;
	if ((setting_whole_system || is_in_cgroup(task)) && ancestry_of(task) != ANCESTRY_OURS)
		target_add(task);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
