/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot.bpf.c - the state of each thread when a recording starts and when it ends. The recorder
 * runs these iterators over all tasks, in its own context.
 */
#include "budget.bpf.h"
#include "futex.bpf.h"
#include "object.bpf.h"
#include "stack_copy.bpf.h"
#include "syscall.bpf.h"
#include "user_side.bpf.h"
#include "user_stack.bpf.h"

static __always_inline u16 seq_of(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/*
 * The kernel stack of a task that is off CPU. A running task's stack is garbage, so the stack is
 * used only if the task was off CPU before and after and did not switch.
 */
static __always_inline u64 sleeping_stack(struct task_struct *task, u64 ns)
{
	struct stack_slot *slot;
	u16 seq = seq_of(task);
	long bytes;
	u64 id;

	if (setting_kernel_stacks == KERNEL_STACKS_NONE || task->on_cpu)
		return 0;
	slot = slot_acquire_accounted(ns);
	if (!slot)
		return 0;
	bytes = bpf_get_task_stack(task, slot->stack.frames, frames_size(), 0);
	if (task->on_cpu || seq_of(task) != seq)
		bytes = 0;
	id = slot_finish(slot, bytes, 0, 0, 0, 0, ns);
	slot_release(slot);
	return id;
}

static __always_inline bool is_visited(struct task_struct *task, u64 ns)
{
	return !setting_budget || !snapshot_sleepers || budget_lacks_stacks(task, ns);
}

static __always_inline bool has_user_stack(struct task_struct *task)
{
	return setting_user_stacks == USER_STACKS_TABLES && !tables_pending && !task->on_cpu &&
	       !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER | PF_EXITING));
}

/*
 * The state of copying a stack. The size so far is in the copy, because the verifier does not track
 * it there.
 */
struct copy_state {
	struct task_struct *task;
	struct rec_stack_copy *copy;
	u64 sp;
};

static long copy_page(u32 index, void *context)
{
	struct copy_state *state = context;
	struct rec_stack_copy *copy = state->copy;
	u64 size = copy->size;

	if (size > COPY_SIZE - PAGE_SIZE ||
	    bpf_copy_from_user_task(copy->stack + size, PAGE_SIZE, (void *)(state->sp + size),
				    state->task, 0))
		return 1;
	copy->size = size + PAGE_SIZE;
	return 0;
}

/* The same as copy_own_stack(), for another task. size 0: nothing was copied. */
static __always_inline void copy_sleeping_stack(struct task_struct *task,
						struct rec_stack_copy *copy, u64 sp)
{
	struct copy_state state = {.task = task, .copy = copy, .sp = sp};
	u64 size = PAGE_SIZE - (sp & (PAGE_SIZE - 1));

	barrier_var(size);
	copy->size = 0;
	copy->absent = 0;
	if (bpf_copy_from_user_task(copy->stack, size, (void *)sp, task, 0))
		return;
	copy->size = size;
	bpf_loop(COPY_SIZE / PAGE_SIZE - 1, copy_page, &state, 0);
}

/* The stack id that both iterators compute, as long as the thread does not switch in between. */
static __always_inline u64 sleeping_id(struct task_struct *task)
{
	return ((u64)task->pid << 32 | seq_of(task)) * 0x9e3779b97f4a7c15ULL ^ snapshot_ns;
}

static __always_inline u32 sent_mark(struct task_struct *task)
{
	return task->pid ^ (u32)seq_of(task) << 22;
}

/*
 * Sends a stack of one frame. The recorder adds the other frames, because BPF does not know any
 * mapping of the process yet.
 */
static __always_inline int send_leaf(struct stack_slot *slot, struct task_struct *task, u64 ns)
{
	struct rec_stack *stack = &slot->stack;
	u32 size = sizeof(*stack) + sizeof(stack->frames[0]);

	record_init(&stack->h, REC_STACK, STACK_USER | (slot->walk.exact ? 0 : STACK_SYSCALL_PC),
		    size, ns);
	stack->id = sleeping_id(task);
	stack->tgid = task->tgid;
	stack->tables_ns = ns;
	stack->frames[0] = slot->walk.pc;
	stack->count = 1;
	stack->result = STACK_NO_TABLE;
	return emit(RING_BULK, &stack->h, size);
}

/*
 * Copies the user stack of a task that is off CPU. The recorder walks the copy when it knows the
 * process's mappings. Like the kernel stack, it is used only if the task did not switch meanwhile.
 */
static __always_inline void copy_stack_of(struct task_struct *task, struct stack_slot *slot, u64 ns)
{
	struct rec_stack_copy *copy = copy_take(slot);
	u16 seq = seq_of(task);

	if (!copy)
		return;
	load_registers(&slot->walk, (struct pt_regs *)bpf_task_pt_regs(task));
	copy->start_boottime = BPF_CORE_READ(task, group_leader, start_boottime);
	copy->tables_ns = ns;
	copy->fs_base = task->thread.fsbase;
	copy_sleeping_stack(task, copy, slot->walk.sp);
	if (copy->size && !task->on_cpu && seq_of(task) == seq && !send_leaf(slot, task, ns)) {
		thread_slot(task->pid)->stack_sent = sent_mark(task);
		send_copy(slot, copy, task, ns);
	}
	copy->fs_base = 0;
	copy_release(copy);
}

/*
 * Sends the futex word that a sleeping thread waits for, and stores the lock holder if the word is
 * a lock. It runs in the sleepable iterator, where a page of memory may be waited for.
 */
static __noinline int find_owner(struct task_struct *task)
{
	struct syscall_info info;
	u32 owner = 0;
	u64 address;

	syscall_info(task, &info);
	if (info.number == SYSCALL_FUTEX_WAITV)
		timeout_info(task, ANY_TASK, &info);
	address = futex_word(info.number, info.args[0], info.timeout_ns);
	if (!address)
		return 0;
	futex_emit_word(task, address);
	if (info.number != SYSCALL_FUTEX)
		return 0;
	address = lock_owner_address(&info);
	if (address && !bpf_copy_from_user_task(&owner, sizeof(owner), (void *)address, task, 0))
		owners_found[task->pid & (SLEEP_SLOTS - 1)] =
			(u64)sent_mark(task) << 32 | (owner & FUTEX_TID);
	return 0;
}

/*
 * The holder that find_owner() has found; 0 = none, or the thread has switched since. This is a
 * global function because the verifier of 6.1 would follow both branches through the rest of the
 * program.
 */
__noinline u32 snapshot_owner(u32 tid, u32 mark)
{
	u64 found = owners_found[tid & (SLEEP_SLOTS - 1)];

	return found >> 32 == mark ? (u32)found : 0;
}

/* Describes the process of a thread that is recorded alone. */
static __always_inline int describe_leader(struct task_struct *task, u64 ns)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	if (!is_target_id(task->tgid))
		describe_non_target(leader, ns);
	return 0;
}

/*
 * Runs before snapshot(). It is a program of its own, because the verifier of 6.1 rejects one that
 * does both.
 */
SEC("iter.s/task")
int snapshot_stacks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct stack_slot *slot;
	u64 ns;

	if (!task || !is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	if (!is_visited(task, ns))
		return 0;
	if (setting_threads)
		describe_leader(task, ns);
	if (!task->on_cpu)
		find_owner(task);
	if (!has_user_stack(task) || user_cs((struct pt_regs *)bpf_task_pt_regs(task)) != USER_CS)
		return 0;
	slot = slot_acquire_accounted(ns);
	if (!slot)
		return 0;
	copy_stack_of(task, slot, ns);
	slot_release(slot);
	bpf_seq_write(ctx->meta->seq, "", 1); /* as in snapshot() */
	return 0;
}

/* The stack that snapshot_stacks() has sent; 0 = none, or the thread has switched since. */
static __always_inline u64 sleeping_user_stack(struct task_struct *task)
{
	return thread_slot(task->pid)->stack_sent == sent_mark(task) ? sleeping_id(task) : 0;
}

/*
 * Does what switch_call() and switch_object() of sched.bpf.c do, for a task that sleeps. This
 * function and the next ones are not inlined, because their variables would be on the stack during
 * other calls.
 */
static __noinline int snapshot_call(struct task_struct *task, struct rec_snapshot *record)
{
	struct syscall_info info;

	syscall_info(task, &info);
	if (!snapshot_at_end && !task->on_cpu && info.number >= 0)
		descriptor_info(task, ANY_TASK, &info);
	record->h.flags = info.compat ? SNAPSHOT_COMPAT : 0;
	record->args[0] = info.args[0];
	record->args[1] = info.args[1];
	record->args[2] = info.args[2];
	record->syscall = info.number;
	record->fd_kind = info.fd_kind;
	record->fd_count = info.fd_count;
	record->timeout_ns = info.timeout_ns;
	return info.fd;
}

static __noinline int snapshot_object(struct task_struct *task, struct rec_snapshot *record, s32 fd)
{
	u64 file = fd >= 0 ? fd_file(files_of(task), fd) : 0;

	if (file)
		object_emit_all(file, syscall_multi_fd(record->syscall) == MULTI_FD_EPOLL,
				OBJECT_KEY(record));
	return 0;
}

static __noinline int emit_snapshot(struct task_struct *task, u64 ns)
{
	struct rec_snapshot record = {};
	u8 flags = snapshot_at_end ? SNAPSHOT_END : 0;

	record.ustack = sleeping_user_stack(task);
	record.seq = seq_of(task);
	record.state = task->__state;
	if (bpf_core_field_exists(task->thread_info.cpu))
		record.task_cpu = BPF_CORE_READ(task, thread_info.cpu);
	if (task->on_cpu)
		flags |= SNAPSHOT_ON_CPU;
	else if (task->on_rq)
		flags |= SNAPSHOT_QUEUED;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		flags |= SNAPSHOT_IOWAIT;
	snapshot_object(task, &record, snapshot_call(task, &record));
	flags |= record.h.flags;
	record.tid = task->pid;
	record.parts = SNAPSHOT_HAS_OBJECT | SNAPSHOT_HAS_OWNER;
	record.owner = snapshot_owner(task->pid, sent_mark(task));
	if (!snapshot_at_end)
		record.kstack = sleeping_stack(task, ns);
	record.ns_after = bpf_ktime_get_ns();
	record_init(&record.h, REC_SNAPSHOT, flags, sizeof(record), ns);
	return emit(RING_SCHED, &record.h, sizeof(record));
}

static __noinline int emit_description(struct task_struct *task, u64 ns)
{
	return emit_task(task, 0, 0, ns);
}

static __noinline int emit_accounts(struct task_struct *task, u64 ns)
{
	emit_stats(task, !snapshot_at_end, ns);
	return 0;
}

/*
 * Describes every thread of every target, and sends its state and its accounts; or only the states
 * of those that lack stacks.
 */
SEC("iter.s/task")
int snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	bool all;
	u64 ns;

	if (!task || !is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	if (!is_visited(task, ns))
		return 0;
	all = !setting_budget || !snapshot_sleepers;
	if (all)
		emit_description(task, ns);
	emit_snapshot(task, ns);
	if (all)
		emit_accounts(task, bpf_ktime_get_ns());
	else
		budget_has_stacks(task);
	/*
	 * Without output the recorder's read would not return in between, and it could not drain
	 * the ring buffers.
	 */
	bpf_seq_write(ctx->meta->seq, "", 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
