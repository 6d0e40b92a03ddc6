/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lock.bpf.c - who has the lock of the kernel that a thread is about to wait for.
 *
 * contention_begin (since 5.19) comes when a lock is not free, be it that the thread spins for it
 * or sleeps; the switch-out that follows takes what is noted here. If it sleeps for another reason
 * before it contends again, the reader sees by its stack that it waits for no lock.
 */
#include "wallprof.bpf.h"

/* uapi-like flags of the tracepoint: trace/events/lock.h */
#define LCB_F_SPIN   (1U << 0)
#define LCB_F_RT     (1U << 3)
#define LCB_F_PERCPU (1U << 4)
#define LCB_F_MUTEX  (1U << 5)
/* The low bits of an owner's address are flags: kernel/locking/mutex.c, rwsem.c. */
#define OWNER_FLAGS 7UL

/* struct mutex and struct rw_semaphore, by address: their owners are at different places. */
static __always_inline u64 owner_of(void *lock, u32 flags)
{
	if (flags & LCB_F_MUTEX)
		return BPF_CORE_READ((struct mutex *)lock, owner.counter);
	return BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void *lock, unsigned int flags)
{
	struct task_struct *task = bpf_get_current_task_btf(), *owner;
	u32 tid = 0;

	if (!is_target(task->tgid) || flags & (LCB_F_SPIN | LCB_F_RT | LCB_F_PERCPU))
		return 0;
	owner = (struct task_struct *)(owner_of(lock, flags) & ~OWNER_FLAGS);
	if (owner &&
	    !bpf_probe_read_kernel(&tid, sizeof(tid),
				   (void *)owner +
					   bpf_core_field_offset(struct task_struct, pid)) &&
	    !is_target(BPF_CORE_READ(owner, tgid)))
		describe_foreign(owner, bpf_ktime_get_ns());
	lock_owners[task->pid & (SLEEPERS - 1)] = LOCK_OWNER(task->pid, tid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
