/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample_timer.h - the timer of the CPU samples, on every CPU where a target may run.
 *
 * perf's timer costs the CPU that it interrupts some 2 us, in a virtual machine 20, and on a
 * CPU that others have it tells nothing. So where no target was seen for a second it rests, and the
 * first switch to one wakes the recorder, which begins it again (the programs' part:
 * target_has_cpu(), in sched.bpf.c). A target that wakes up now and then would run before that each
 * time: once it was away for so long, twice as long is waited for it there. The timer goes on
 * where it stopped in its period (perf_swevent_start_hrtimer()), so no part of what runs is more
 * likely to be hit.
 */
#ifndef WALLPROF_SAMPLE_TIMER_H
#define WALLPROF_SAMPLE_TIMER_H

#include "maps.h"
#include "software_events.h"

typedef struct SampleTimer SampleTimer;

/*
 * Attaches the program to the event on each CPU that is online. `accounts`: one for each CPU there
 * may be, which the caller keeps mapped until sample_timer_stop(). Returns 0 or a negative errno,
 * -ENODEV if no CPU is online; *ret_cpus is on how many it was begun.
 */
int sample_timer_start(struct bpf_program *program, const SoftwareEvent *event,
		       struct cpu_account *accounts, size_t cpu_count, SampleTimer **ret_ticks,
		       size_t *ret_cpus);

/* To be called often: lets them rest, and begins them where a target has come. */
void sample_timer_review(SampleTimer *ticks);

/* Begins them everywhere: somebody has become a target then, who may be running. */
void sample_timer_enable_all(SampleTimer *ticks, uint64_t since_ns);

/* What resting has cost. */
typedef struct SampleTimerCounts {
	uint64_t begun;	    /* times that they began again since a target had come */
	uint64_t missed_ns; /* between its coming and then, together: so much may lack samples */
} SampleTimerCounts;

/* From since_ns on; of what is long ago, all. */
SampleTimerCounts sample_timer_counts(const SampleTimer *ticks, uint64_t since_ns);

/* Detaches the program. The counts stay. */
void sample_timer_stop(SampleTimer *ticks);
void sample_timer_free(SampleTimer *ticks);

#endif
