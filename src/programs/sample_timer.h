/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample_timer.h - the timers of the CPU samples, one for each CPU.
 *
 * perf's timer costs the CPU that it interrupts about 2 us (20 us in a virtual machine), and on a
 * CPU without targets it records nothing. So it is disabled on a CPU where no target ran for a
 * second. The first switch to a target wakes the recorder, which enables it again (in the programs:
 * target_has_cpu() in sched.bpf.c). A target that wakes up now and then would run before that each
 * time, so after a pause of a target, the timer waits twice that long. The timer continues its
 * period where it stopped (perf_swevent_start_hrtimer()), so no part of the code is more likely to
 * be sampled.
 */
#ifndef WALLPROF_SAMPLE_TIMER_H
#define WALLPROF_SAMPLE_TIMER_H

#include "maps.h"
#include "software_events.h"

typedef struct SampleTimer SampleTimer;

/*
 * Attaches the program to the event on each CPU that is online. `accounts` has one entry for each
 * possible CPU; the caller keeps it mapped until sample_timer_stop(). Returns 0 or a negative
 * errno, -ENODEV if no CPU is online; *ret_cpus is the number of CPUs that have a timer.
 */
int sample_timer_start(struct bpf_program *program, const SoftwareEvent *event,
		       struct cpu_account *accounts, size_t cpu_count, SampleTimer **ret_ticks,
		       size_t *ret_cpus);

/*
 * Replaces the timer of a CPU that has come online since since_ns, or adds one: the kernel has
 * removed its event. It has the period in force. What is missing since then is counted. Returns 0
 * or a negative errno, -ENODEV if the CPU is offline again.
 */
int sample_timer_reopen(SampleTimer *ticks, size_t cpu, uint64_t since_ns);

/*
 * Is called often: disables timers on CPUs without targets, and enables them where a target runs.
 */
void sample_timer_review(SampleTimer *ticks);

/*
 * Changes the period of all timers, in ns, from now on. Returns 0 or a negative errno; then the
 * period is unchanged.
 */
int sample_timer_set_period(SampleTimer *ticks, uint64_t period);

/* Returns whether the timer of any CPU is enabled. */
bool sample_timer_is_running(const SampleTimer *ticks);

/* Enables all timers: a task that became a target at since_ns may be running. */
void sample_timer_enable_all(SampleTimer *ticks, uint64_t since_ns);

/* What disabled timers have missed. */
typedef struct SampleTimerCounts {
	uint64_t begun;	    /* how often a timer was enabled again for a target */
	uint64_t missed_ns; /* sum of the times from a target's arrival until then */
	double missed;	    /* the ticks that these times would have had */
} SampleTimerCounts;

/* Returns the counts since since_ns. Very old gaps are counted as a whole. */
SampleTimerCounts sample_timer_counts(const SampleTimer *ticks, uint64_t since_ns);

/* Detaches the program. The counts remain valid. */
void sample_timer_stop(SampleTimer *ticks);
void sample_timer_free(SampleTimer *ticks);

#endif
