/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task.bpf.c - names: exec and rename; and finding the tasks that already live when a
 * recording starts. Births and ends are told where tasks are switched (sched.bpf.c).
 */
#include "object.bpf.h"
#include "syscall.bpf.h"

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct rec_exec record = {};
	struct stack_slot *slot;

	if (!is_target(task->tgid))
		return 0;
	record_init(&record.h, REC_EXEC, 0, sizeof(record), bpf_ktime_get_ns());
	record.tid = task->pid;
	record.old_tid = old_pid;
	record.tgid = task->tgid;
	record.exec_id = task->self_exec_id;
	BPF_CORE_READ_STR_INTO(&record.comm, task, comm);
	bpf_probe_read_kernel_str(record.path, sizeof(record.path), bprm->filename);
	/* First the tables: the recorder publishes its own after this record. */
	if (setting_user_stacks == USER_STACKS_TABLES) {
		slot = slot_take_accounted(record.h.ns);
		if (slot) {
			unwind_exec(slot->number);
			slot_release(slot);
		}
	}
	emit(&sched_ring, &record.h, sizeof(record));
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	struct rec_task record = {};

	if (!is_target(task->tgid))
		return 0;
	record_init(&record.h, REC_TASK, TASK_RENAME, sizeof(record), bpf_ktime_get_ns());
	record.tid = task->pid;
	record.tgid = task->tgid;
	record.ns_tid = ns_pid(task);
	record.ns_tgid = ns_pid(BPF_CORE_READ(task, group_leader));
	record.parent_tgid = BPF_CORE_READ(task, real_parent, tgid);
	record.start_boottime = task->start_boottime;
	record.exec_id = task->self_exec_id;
	record.own_tid = own_pid(task);
	/* The tracepoint fires before task->comm changes. */
	bpf_probe_read_kernel_str(record.comm, sizeof(record.comm), comm);
	emit(&sched_ring, &record.h, sizeof(record));
	return 0;
}

/* ---- iterators: run by the recorder, in its own context ---------------------- */

/* Marks the process that the iterator was opened on; also learns where wallprof lives. */
SEC("iter/task")
int mark_target(struct bpf_iter__task *ctx)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	pid_ns_level = BPF_CORE_READ(self, thread_pid, level);
	target_add(task->tgid);
	return 0;
}

/* As mark_target, for the one process that wallprof launched. */
SEC("iter/task")
int mark_command(struct bpf_iter__task *ctx)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	pid_ns_level = BPF_CORE_READ(self, thread_pid, level);
	command_tgid = task->tgid;
	__sync_fetch_and_add(&command_threads, 1);
	target_add(task->tgid);
	return 0;
}

#define ANCESTORS_LOOKED_AT 64

/* Marks processes that have a target among their ancestors. */
SEC("iter/task")
int mark_descendants(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *ancestor;

	if (!task || task->pid != task->tgid || is_target(task->tgid))
		return 0;
	if ((u32)task->tgid == bpf_get_current_pid_tgid() >> 32)
		return 0; /* wallprof itself, when its shell is recorded */
	ancestor = BPF_CORE_READ(task, real_parent);
	for (int i = 0; i < ANCESTORS_LOOKED_AT; i++) {
		u32 tgid = BPF_CORE_READ(ancestor, tgid);

		if (tgid <= 1)
			break;
		if (is_target(tgid)) {
			target_add(task->tgid);
			break;
		}
		ancestor = BPF_CORE_READ(ancestor, real_parent);
	}
	return 0;
}

static __always_inline u16 seq_of(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/*
 * The kernel stack of a task that sleeps. A running task's stack is garbage, so it
 * counts only if the task was off CPU before and after and did not switch.
 */
static __always_inline u64 sleeping_stack(struct task_struct *task, u64 ns)
{
	struct stack_slot *slot;
	u16 seq = seq_of(task);
	long bytes;
	u64 id;

	if (setting_kernel_stacks == KERNEL_STACKS_NONE || task->on_cpu)
		return 0;
	slot = slot_take_accounted(ns);
	if (!slot)
		return 0;
	bytes = bpf_get_task_stack(task, slot->stack.frames, frames_size(), 0);
	if (task->on_cpu || seq_of(task) != seq)
		bytes = 0;
	id = slot_finish(slot, bytes, 0, 0, 0, ns);
	slot_release(slot);
	return id;
}

/*
 * As switch_call() and switch_object() of sched.bpf.c, of a task that is asleep. Not inlined, as
 * what follows: what they need on the stack would lie under others' calls.
 */
static __noinline int snapshot_call(struct task_struct *task, struct rec_snapshot *record)
{
	struct syscall_facts facts;

	syscall_facts(task, &facts);
	if (!snapshot_at_end && !task->on_cpu && facts.number >= 0)
		descriptor_facts(task, ANY_TASK, &facts);
	record->h.flags = facts.compat ? SNAPSHOT_COMPAT : 0;
	record->args[0] = facts.args[0];
	record->args[1] = facts.args[1];
	record->args[2] = facts.args[2];
	record->syscall = facts.number;
	record->fd_kind = facts.fd_kind;
	record->fd_count = facts.fd_count;
	record->timeout_ns = facts.timeout_ns;
	record->generation = facts.fd;
	return 0;
}

static __noinline int snapshot_object(struct task_struct *task, struct rec_snapshot *record)
{
	s32 fd = record->generation;
	u64 file = fd >= 0 ? fd_file(files_of(task), fd) : 0;

	record->generation = 0;
	if (file)
		object_tell_all(file, call_on_many(record->syscall) == MANY_EPOLL,
				OBJECT_KEY(record));
	return 0;
}

static __noinline int emit_snapshot(struct task_struct *task, u64 ns)
{
	struct rec_snapshot record = {};
	u8 flags = snapshot_at_end ? SNAPSHOT_END : 0;

	record.seq = seq_of(task);
	record.state = task->__state;
	if (task->on_cpu)
		flags |= SNAPSHOT_ON_CPU;
	else if (task->on_rq)
		flags |= SNAPSHOT_QUEUED;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		flags |= SNAPSHOT_IOWAIT;
	snapshot_call(task, &record);
	snapshot_object(task, &record);
	flags |= record.h.flags;
	record.tid = task->pid;
	if (!snapshot_at_end)
		record.kstack = sleeping_stack(task, ns);
	record.ns_after = bpf_ktime_get_ns();
	record_init(&record.h, REC_SNAPSHOT, flags, sizeof(record), ns);
	return emit(&sched_ring, &record.h, sizeof(record));
}

static __noinline int emit_description(struct task_struct *task, u64 ns)
{
	return emit_task(task, 0, 0, ns);
}

static __noinline int emit_accounts(struct task_struct *task, u64 ns)
{
	emit_stats(task, ns);
	return 0;
}

/* Tells every thread of every target: who it is, what it does, its accounts. */
SEC("iter.s/task")
int snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u64 ns;

	if (!task || !is_target(task->tgid))
		return 0;
	ns = bpf_ktime_get_ns();
	emit_description(task, ns);
	emit_snapshot(task, ns);
	emit_accounts(task, bpf_ktime_get_ns());
	/* So that the recorder's read returns now and then, and it can drain the rings. */
	bpf_seq_write(ctx->meta->seq, "", 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
