/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * accounts.h - the sums that show whether a recording's numbers add up: time by state, the kernel's
 * own account of the same threads, what recording cost, steal time, and what was lost.
 */
#ifndef WALLPROF_ACCOUNTS_H
#define WALLPROF_ACCOUNTS_H

#include "timeline.h"
#include <stdio.h>

typedef struct Accounts {
	uint64_t lifetime, ledger[STATE_COUNT]; /* of all threads, ns */
	/* of threads whose kernel account is known: the kernel's sums and ours */
	size_t known;
	uint64_t kernel_running, kernel_delay, running, runnable;
	bool delay_known;
	/*
	 * Of these, threads for which it is known by how many ns the scheduler's clock was ahead
	 * (KernelAccount::clock_ahead): their sums.
	 */
	size_t clocked;
	int64_t clock_ahead;
	uint64_t clocked_kernel_running, clocked_running;
} Accounts;

Accounts accounts_of(const Timeline *timeline);

/*
 * Prints how long the command took, "real 1.000 s = user … + sys … + waited …", by its main thread;
 * without a command the length of the window.
 */
void accounts_print_times(FILE *file, const Timeline *timeline);

/* Prints time by state and the kernel's account. */
void accounts_print_states(FILE *file, const Timeline *timeline, const Accounts *accounts);

/*
 * Returns how the kernel's account of the running time, less what its clock was ahead, disagrees
 * with the timeline's, as a sentence for the user; NULL: it agrees to 1 % and 10 ms, or is not
 * known. Captures that lack the state of the clock: 3 % and 10 ms. The caller frees it.
 */
char *accounts_disagreement(const Timeline *timeline, const Accounts *accounts);

/* Prints what recording cost, and the steal time if it is more than 1 % of the CPU time. */
void accounts_print_costs(FILE *file, const Timeline *timeline);

/* Prints what was lost or not traced ("no events lost"), and the notes of the recorder. */
void accounts_print_losses(FILE *file, const Timeline *timeline);

/*
 * Returns the same in one line, "12 switches of 4000 lost; …"; NULL if nothing was lost and less
 * than 0.1 % of the time is unknown. The caller frees it.
 */
char *accounts_loss_text(const Timeline *timeline);

/*
 * Returns "only these states: running, blocked", where others are hidden (1 << enum thread_state);
 * NULL: none is. The caller frees it.
 */
char *accounts_states_text(uint32_t hidden);

/*
 * Returns the steal time if it is certainly more than 1 % of the CPU time, else 0; sets *ret_share
 * to its share.
 */
uint64_t accounts_steal_ns(const Timeline *timeline, double *ret_share);

#endif
