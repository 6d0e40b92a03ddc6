/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_wait.bpf.c - counts the targets that wait for each CPU; see cpu_wait.bpf.h. The functions are
 * global, so that the verifier checks them once and not at every call.
 */
#include "cpu_wait.bpf.h"

/* Other CPUs rarely change the word at the same time. */
#define TRIES 8

static __always_inline void count_down(u32 cpu)
{
	struct cpu_account *account = bpf_map_lookup_elem(&accounts, &cpu);

	for (int i = 0; account && i < TRIES; i++) {
		u64 old = account->waiting;
		u64 new = CPU_WAITS(old) > 1 ? old - 1 : 0;

		if (!old || __sync_val_compare_and_swap(&account->waiting, old, new) == old)
			return;
	}
}

/*
 * The first target reads the clock after it has been counted, because each later switch on that CPU
 * has a record. So the time is stored after the count, and is unknown until then.
 */
static __always_inline void count_up(u32 cpu, u64 ns)
{
	struct cpu_account *account = bpf_map_lookup_elem(&accounts, &cpu);

	for (int i = 0; account && i < TRIES; i++) {
		u64 old = account->waiting, new = old + 1;

		if (CPU_WAITS(old) == CPU_WAITS_MAX)
			return;
		if (__sync_val_compare_and_swap(&account->waiting, old, new) != old)
			continue;
		if (old)
			return;
		ns = ns ? CPU_WAIT_TIME(ns) : CPU_WAIT_TIME(bpf_ktime_get_ns()) + 1;
		__sync_val_compare_and_swap(&account->waiting, new, new | ns << CPU_WAITS_BITS);
		return;
	}
}

__noinline int cpu_wait_end(u32 tid)
{
	u32 *word = &thread_slot(tid)->waits_on, old;

	if (!*word)
		return 0;
	old = __sync_lock_test_and_set(word, 0);
	if (old)
		count_down(WAITS_ON_CPU(old));
	return 0;
}

__noinline int cpu_wait_begin(u32 tid, u32 cpu, u64 ns)
{
	u32 *word = &thread_slot(tid)->waits_on, old;

	if (*word == WAITS_ON(cpu))
		return 0;
	old = __sync_lock_test_and_set(word, WAITS_ON(cpu));
	if (old == WAITS_ON(cpu))
		return 0;
	/* The slot has another CPU, or another target, which is no longer counted. */
	if (old)
		count_down(WAITS_ON_CPU(old));
	count_up(cpu, ns);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int cpu)
{
	struct thread_slot *slot = thread_slot(task->pid);

	if (!is_target(task))
		return 0;
	if (!setting_whole_system && slot->waits_on)
		cpu_wait_begin(task->pid, cpu, 0);
	if (!task->on_rq)
		return 0; /* it is being woken, and enters one queue only */
	slot->moved =
		MOVED(task->pid, bpf_ktime_get_ns(), MOVED_TID(slot->moved) == (u32)task->pid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
