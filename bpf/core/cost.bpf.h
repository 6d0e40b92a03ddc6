/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cost.bpf.h - measures the recording cost where it arises.
 *
 * The time of a program belongs to the task that has the CPU meanwhile: the caller or the
 * interrupted task. The record of a switch has the time at which its program begins, so the
 * program's own time falls into the run of the task that is switched in. The next switch record of
 * the CPU carries both sums (switch_account()), because it ends that run.
 *
 * What takes less time than reading the clock is not measured: programs that end at once because no
 * target is concerned, on_softirq, on_migrate, on_socket_state, on_folio_dirtied for a further page
 * of the same file, and the kernel's code around every program.
 */
#ifndef WALLPROF_COST_BPF_H
#define WALLPROF_COST_BPF_H

#include "wallprof.bpf.h"

#define CLOCK_MAX_NS 200    /* more: the measurement was interrupted */
#define TICK_MAX_NS  200000 /* more: the hypervisor had the CPU meanwhile */

/*
 * Adds the time of a program that began at `begin_ns` and is about to end; for all but on_switch.
 */
static __always_inline void cost_add(u64 begin_ns)
{
	struct cpu_account *account = cpu_account();

	/*
	 * Some programs may be preempted. If the CPU switched meanwhile, the time is not the
	 * program's own.
	 */
	if (account && account->switched_ns <= begin_ns)
		account->own_run_ns += bpf_ktime_get_ns() - begin_ns + clock_ns;
}

/* Adds the time of a program of a tick. It is also kept apart: the rate of ticks depends on it. */
static __always_inline void cost_add_tick(struct cpu_account *account, u64 ns)
{
	account->own_run_ns += ns;
	account->ticks_ns += ns < TICK_MAX_NS ? ns : TICK_MAX_NS;
}

/* Does the same as cost_add() for on_tick. */
static __always_inline void cost_of_tick(struct cpu_account *account, u64 begin_ns)
{
	if (account)
		cost_add_tick(account, bpf_ktime_get_ns() - begin_ns + clock_ns);
}

/* Does the same for on_switch. */
static __always_inline void cost_of_switch(u64 begin_ns)
{
	struct cpu_account *account = cpu_account();

	if (account)
		account->own_in_ns = bpf_ktime_get_ns() - begin_ns + clock_ns;
}

/* Begins to measure the phases of a program. */
static __always_inline void cost_phases_begin(enum cost_program program, u64 begin_ns)
{
	struct cpu_account *account;

	if (!setting_cost)
		return;
	account = cpu_account();
	if (!account)
		return;
	account->phase_program = program;
	account->phase_ns = begin_ns;
}

/* Ends a phase. Interrupts are off, so no other program runs on this CPU meanwhile. */
static __always_inline void cost_phase(enum cost_phase phase)
{
	struct cpu_account *account;
	u64 *counts, now;
	u32 program;

	if (!setting_cost)
		return;
	account = cpu_account();
	if (!account)
		return;
	program = account->phase_program & 3;
	if (program == COST_NONE) /* stacks are taken by other programs, too */
		return;
	now = bpf_ktime_get_ns();
	counts = account->phases[program][phase];
	counts[0]++;
	counts[1] += now - account->phase_ns;
	account->phase_ns = now;
}

/* Ends the last phase, and the program. */
static __always_inline void cost_phases_end(enum cost_phase phase)
{
	struct cpu_account *account;

	if (!setting_cost)
		return;
	cost_phase(phase);
	account = cpu_account();
	if (account)
		account->phase_program = COST_NONE;
}

#endif
