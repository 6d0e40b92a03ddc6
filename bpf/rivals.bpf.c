/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rivals.bpf.c - counts the targets that wait for each CPU; see rivals.bpf.h. Global functions: the
 * verifier goes through them once, and not at every call.
 */
#include "rivals.bpf.h"

static __always_inline void count_down(u32 cpu)
{
	struct cpu_account *account = bpf_map_lookup_elem(&accounts, &cpu);

	if (!account || account->waiting <= 0)
		return;
	if (__sync_fetch_and_add(&account->waiting, -1) == 1)
		account->waiting_since_ns = 0;
}

static __always_inline void count_up(u32 cpu, u64 ns)
{
	struct cpu_account *account = bpf_map_lookup_elem(&accounts, &cpu);

	if (account && __sync_fetch_and_add(&account->waiting, 1) == 0)
		account->waiting_since_ns = ns;
}

__noinline int rivals_wait_ended(u32 tid)
{
	u32 *word = &waits_on[tid & (SLEEPERS - 1)];

	if (!*word)
		return 0;
	count_down(WAITS_ON_CPU(*word));
	*word = 0;
	return 0;
}

__noinline int rivals_wait(u32 tid, u32 cpu, u64 ns)
{
	u32 *word = &waits_on[tid & (SLEEPERS - 1)];

	if (*word == WAITS_ON(cpu))
		return 0;
	/* Of another CPU, or of another target, which is not counted any more. */
	if (*word)
		count_down(WAITS_ON_CPU(*word));
	*word = WAITS_ON(cpu);
	count_up(cpu, ns);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int cpu)
{
	u32 at = task->pid & (SLEEPERS - 1);
	u64 ns;

	if (!is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	if (task->on_rq)
		moved[at] = MOVED(ns, !!moved[at]);
	if (!setting_whole_system && waits_on[at])
		rivals_wait(task->pid, cpu, ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
