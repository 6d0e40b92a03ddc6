/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot.bpf.c - what each thread does when a recording starts, and again when it ends: run by
 * the recorder over all tasks, in its own context.
 */
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
	slot = slot_acquire_accounted(ns);
	if (!slot)
		return 0;
	bytes = bpf_get_task_stack(task, slot->stack.frames, frames_size(), 0);
	if (task->on_cpu || seq_of(task) != seq)
		bytes = 0;
	id = slot_finish(slot, bytes, 0, 0, 0, ns);
	slot_release(slot);
	return id;
}

static __always_inline bool has_user_stack(struct task_struct *task)
{
	return setting_user_stacks == USER_STACKS_TABLES && !tables_pending && !task->on_cpu &&
	       !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER | PF_EXITING));
}

/* Where a copy is made; how far it is stands in the copy, of which the verifier believes nothing.
 */
struct copying {
	struct task_struct *task;
	struct rec_stack_copy *copy;
	u64 sp;
};

static long copy_page(u32 index, void *context)
{
	struct copying *copying = context;
	struct rec_stack_copy *copy = copying->copy;
	u64 size = copy->size;

	if (size > COPY_SIZE - PAGE_SIZE ||
	    bpf_copy_from_user_task(copy->stack + size, PAGE_SIZE, (void *)(copying->sp + size),
				    copying->task, 0))
		return 1;
	copy->size = size + PAGE_SIZE;
	return 0;
}

/* As copy_stack(), in a loop that the verifier goes through once; size 0: there was nothing. */
static __always_inline void copy_sleeping_stack(struct task_struct *task,
						struct rec_stack_copy *copy, u64 sp)
{
	struct copying copying = {.task = task, .copy = copy, .sp = sp};
	u64 size = PAGE_SIZE - (sp & (PAGE_SIZE - 1));

	barrier_var(size);
	copy->size = 0;
	if (bpf_copy_from_user_task(copy->stack, size, (void *)sp, task, 0))
		return;
	copy->size = size;
	bpf_loop(COPY_SIZE / PAGE_SIZE - 1, copy_page, &copying, 0);
}

/* The two iterators know each other's stack by it: of a thread that has not switched in between. */
static __always_inline u64 sleeping_id(struct task_struct *task)
{
	return ((u64)task->pid << 32 | seq_of(task)) * 0x9e3779b97f4a7c15ULL ^ snapshot_ns;
}

static __always_inline u32 sent_mark(struct task_struct *task)
{
	return task->pid ^ (u32)seq_of(task) << 22;
}

/* To which the recorder finds the rest: not one mapping of the process is known to BPF yet. */
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
	return emit(&bulk_ring, &stack->h, size);
}

/*
 * The user stack of a task that sleeps, as a copy that the recorder walks when it knows what the
 * process maps. As the kernel's, it counts only if the task did not switch meanwhile.
 */
static __always_inline void copy_stack_of(struct task_struct *task, struct stack_slot *slot, u64 ns)
{
	struct rec_stack_copy *copy;
	u32 number = slot->number;
	u16 seq = seq_of(task);

	copy = bpf_map_lookup_elem(&copies, &number);
	if (!copy)
		return;
	load_registers(&slot->walk, (struct pt_regs *)bpf_task_pt_regs(task));
	copy->start_boottime = BPF_CORE_READ(task, group_leader, start_boottime);
	copy->tables_ns = ns;
	copy_sleeping_stack(task, copy, slot->walk.sp);
	if (!copy->size || task->on_cpu || seq_of(task) != seq || send_leaf(slot, task, ns))
		return;
	stacks_sent[task->pid & (SLEEP_SLOTS - 1)] = sent_mark(task);
	send_copy(slot, copy, task, ns);
}

/*
 * What a sleeping thread's word of memory is, and who has the lock if it is one's. That is read
 * here, where memory may be waited for that is not there at once.
 */
static __noinline int find_owner(struct task_struct *task)
{
	struct syscall_info facts;
	u32 owner = 0;
	u64 address;

	syscall_info(task, &facts);
	if (facts.number == SYSCALL_FUTEX_WAITV)
		timeout_info(task, ANY_TASK, &facts);
	address = futex_word(facts.number, facts.args[0], facts.timeout_ns);
	if (!address)
		return 0;
	futex_emit_word(task, address);
	if (facts.number != SYSCALL_FUTEX)
		return 0;
	address = lock_owner_address(&facts);
	if (address && !bpf_copy_from_user_task(&owner, sizeof(owner), (void *)address, task, 0))
		owners_found[task->pid & (SLEEP_SLOTS - 1)] =
			(u64)sent_mark(task) << 32 | (owner & FUTEX_TID);
	return 0;
}

/*
 * Who find_owner() has found; 0 = nobody, or the thread has switched since. A global function: the
 * verifier of 6.1 would follow both ways through all that comes.
 */
__noinline u32 snapshot_owner(u32 tid, u32 mark)
{
	u64 found = owners_found[tid & (SLEEP_SLOTS - 1)];

	return found >> 32 == mark ? (u32)found : 0;
}

/* Of a thread that is recorded alone: who its process is. */
static __always_inline int describe_leader(struct task_struct *task, u64 ns)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	if (!is_target_id(task->tgid))
		describe_non_target(leader, ns);
	return 0;
}

/* Before snapshot(): by itself, for the verifier of 6.1 would be too long at both. */
SEC("iter.s/task")
int snapshot_stacks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct stack_slot *slot;
	u64 ns;

	if (!task || !is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
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

/* What snapshot_stacks() has sent of it; 0 = nothing, or it has switched since. */
static __always_inline u64 sleeping_user_stack(struct task_struct *task)
{
	return stacks_sent[task->pid & (SLEEP_SLOTS - 1)] == sent_mark(task) ? sleeping_id(task)
									     : 0;
}

/*
 * As switch_call() and switch_object() of sched.bpf.c, of a task that is asleep. Not inlined, as
 * what follows: what they need on the stack would lie under others' calls.
 */
static __noinline int snapshot_call(struct task_struct *task, struct rec_snapshot *record)
{
	struct syscall_info facts;

	syscall_info(task, &facts);
	if (!snapshot_at_end && !task->on_cpu && facts.number >= 0)
		descriptor_info(task, ANY_TASK, &facts);
	record->h.flags = facts.compat ? SNAPSHOT_COMPAT : 0;
	record->args[0] = facts.args[0];
	record->args[1] = facts.args[1];
	record->args[2] = facts.args[2];
	record->syscall = facts.number;
	record->fd_kind = facts.fd_kind;
	record->fd_count = facts.fd_count;
	record->timeout_ns = facts.timeout_ns;
	return facts.fd;
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

	if (!task || !is_target(task))
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
