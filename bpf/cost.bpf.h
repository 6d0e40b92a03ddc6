/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cost.bpf.h - what recording costs, clocked where it happens.
 *
 * The time of a program is that of the task that has the CPU meanwhile: the one that calls or is
 * interrupted. sched_switch is told with the time at which its program begins, so what the program
 * takes falls into the run of the task that comes in. Both sums go out with the next switch on the
 * CPU (switch_account()), which is where that run ends.
 *
 * Left out is what takes less than reading the clock does: programs that end at once since no
 * target is concerned, on_softirq, on_migrate, on_socket_state, and what the kernel does around
 * every program.
 */
#ifndef WALLPROF_COST_BPF_H
#define WALLPROF_COST_BPF_H

#include "wallprof.bpf.h"

#define CLOCK_MOST_NS 200 /* it was interrupted meanwhile */

/* A program that began at `begin_ns` is about to end; any but on_switch. */
static __always_inline void cost_add(u64 begin_ns)
{
	struct cpu_account *account = cpu_account();

	/* If the CPU was switched meanwhile (some may be preempted) the time is not its own. */
	if (account && account->switched_ns <= begin_ns)
		account->own_run_ns += bpf_ktime_get_ns() - begin_ns + clock_ns;
}

/* The same of on_switch. */
static __always_inline void cost_of_switch(u64 begin_ns)
{
	struct cpu_account *account = cpu_account();

	if (account)
		account->own_in_ns = bpf_ktime_get_ns() - begin_ns + clock_ns;
}

#endif
