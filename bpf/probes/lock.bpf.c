/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lock.bpf.c - the holder of the kernel lock that a thread is about to wait for.
 *
 * contention_begin (since 5.19) runs when a lock is not free, whether the thread spins for it or
 * sleeps. The next switch-out of the thread takes what is stored here. If that switch-out has
 * another reason, the reader sees by the system call and the stack that the wait is not for a
 * kernel lock.
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
/*
 * Set if readers hold an rwsem: the owner is the last reader that acquired it, which may have
 * released it since.
 */
#define READER_OWNED 1UL

/*
 * Returns the owner, which is at different offsets in struct mutex and struct rw_semaphore. 0:
 * none, or several.
 */
static __always_inline u64 owner_of(void *lock, u32 flags)
{
	u64 owner;

	if (flags & LCB_F_MUTEX)
		return BPF_CORE_READ((struct mutex *)lock, owner.counter) & ~OWNER_FLAGS;
	owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
	return owner & READER_OWNED ? 0 : owner & ~OWNER_FLAGS;
}

/*
 * Whether the lock has an owner and its waiters sleep. Semaphores have no owner; with PREEMPT_RT,
 * mutexes and rw_semaphores do not have one either.
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
	thread_slot(task->pid)->lock_owner =
		LOCK_OWNER(task->pid, tid, lock_kind((u64)lock, task, owner));
	cost_add(ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
