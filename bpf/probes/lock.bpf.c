/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lock.bpf.c - who has the lock of the kernel that a thread is about to wait for.
 *
 * contention_begin (since 5.19) comes when a lock is not free, be it that the thread spins for it
 * or sleeps; the switch-out that follows takes what is noted here. If that is for another reason,
 * the reader sees by system call and stack that it waits for no lock of the kernel.
 */
#include "cost.bpf.h"

/* The tracepoint's flags: trace/events/lock.h */
#define LCB_F_SPIN   (1U << 0)
#define LCB_F_READ   (1U << 1)
#define LCB_F_WRITE  (1U << 2)
#define LCB_F_RT     (1U << 3)
#define LCB_F_PERCPU (1U << 4)
#define LCB_F_MUTEX  (1U << 5)
/* The low bits of an owner's address are flags: kernel/locking/mutex.c, rwsem.c. */
#define OWNER_FLAGS 7UL
/* An rwsem that readers have: the last one that took it, which may have left it since. */
#define READER_OWNED 1UL

/* struct mutex and struct rw_semaphore have it at different places. 0: nobody, or many. */
static __always_inline u64 owner_of(void *lock, u32 flags)
{
	u64 owner;

	if (flags & LCB_F_MUTEX)
		return BPF_CORE_READ((struct mutex *)lock, owner.counter) & ~OWNER_FLAGS;
	owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
	return owner & READER_OWNED ? 0 : owner & ~OWNER_FLAGS;
}

/* Others have no owner (semaphores), or do not sleep; with PREEMPT_RT neither of the two has one.
 */
static __always_inline bool has_owner(u32 flags)
{
	return bpf_core_field_exists(((struct mutex *)0)->owner) &&
	       bpf_core_field_exists(((struct rw_semaphore *)0)->owner) &&
	       flags & (LCB_F_MUTEX | LCB_F_READ | LCB_F_WRITE) &&
	       !(flags & (LCB_F_SPIN | LCB_F_RT | LCB_F_PERCPU));
}

static __always_inline u64 mmap_lock_of(struct task_struct *task)
{
	return (u64)BPF_CORE_READ(task, mm) + bpf_core_field_offset(struct mm_struct, mmap_lock);
}

static __always_inline enum switch_lock lock_kind(u64 lock, struct task_struct *task,
						  struct task_struct *owner)
{
	if (lock == mmap_lock_of(task))
		return SWITCH_LOCK_MMAP;
	return owner && lock == mmap_lock_of(owner) ? SWITCH_LOCK_MMAP_HOLDER : SWITCH_LOCK_OTHER;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void *lock, unsigned int flags)
{
	struct task_struct *task = bpf_get_current_task_btf(), *owner;
	u32 tid = 0;
	u64 ns;

	if (!has_owner(flags) || !is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	owner = (struct task_struct *)owner_of(lock, flags);
	if (owner &&
	    !bpf_probe_read_kernel(&tid, sizeof(tid),
				   (void *)owner +
					   bpf_core_field_offset(struct task_struct, pid)) &&
	    !is_target_id(setting_threads ? tid : (u32)BPF_CORE_READ(owner, tgid)))
		describe_non_target(owner, ns);
	lock_owners[task->pid & (SLEEP_SLOTS - 1)] =
		LOCK_OWNER(task->pid, tid, lock_kind((u64)lock, task, owner));
	cost_add(ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
