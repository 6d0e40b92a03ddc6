/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * programs_private.h - the programs, shared by:
 *
 *   programs.c          loading, attaching, counts of the programs
 *   programs_probe.c    checks for `doctor`
 *   programs_targets.c  iterators over tasks, which mark and describe targets
 */
#ifndef WALLPROF_PROGRAMS_PRIVATE_H
#define WALLPROF_PROGRAMS_PRIVATE_H

#include "deferred_free.h"
#include "load_groups.h"
#include "ring_buffers.h"
#include "sample_timer.h"
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

/*
 * The maximum number of threads that are described between two drains. Each takes 256 bytes of a
 * ring, and a copy of its stack in another.
 */
#define SNAPSHOT_PIECE_MAX 64

struct Programs {
	KernelInfo kernel; /* valid until the programs are loaded */
	struct wallprof *groups[LOAD_GROUPS];
	RingBuffers *rings;
	struct cpu_account *accounts;
	TableMemory *unwind_memory;
	size_t cpu_count;
	FaultOptions faults;
	size_t snapshot_piece;
	bool one_cpu; /* see ProgramsOptions */
	DeferredFree held;
	BpfLinks hook_links;
	SampleTimer *ticks; /* NULL: not started yet */
	int stats_fd;
	ProgramsTimes times;
};

/* Returns the event that on_tick is attached to. */
static inline SoftwareEvent programs_tick(unsigned int frequency)
{
	return (SoftwareEvent){.config = PERF_COUNT_SW_CPU_CLOCK,
			       .period = NSEC_PER_SEC / frequency};
}

/* Prints libbpf's messages if -v was given. */
int programs_print_libbpf(enum libbpf_print_level level, const char *format, va_list args);

/*
 * Excludes wallprof itself and its helpers from the recording. It is called before anything is
 * attached.
 */
int programs_init_own_ids(Programs *programs);

#endif
