/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * programs_private.h - what the parts of programs.h share:
 *
 *   programs.c          loading, attaching, what the programs count
 *   programs_probe.c    what `doctor` asks
 *   programs_targets.c  iterators over tasks, which mark and describe who is recorded
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
 * So many threads are described between two drains at most. Each takes 256 bytes of a ring, and a
 * copy of its stack in another.
 */
#define SNAPSHOT_PIECE_MAX 64

struct Programs {
	KernelInfo kernel; /* until the programs are loaded */
	struct wallprof *groups[LOAD_GROUPS];
	RingBuffers *rings;
	struct cpu_account *accounts;
	TableMemory *unwind_memory;
	size_t cpu_count;
	FaultOptions faults;
	size_t snapshot_piece;
	bool one_cpu; /* as in ProgramsOptions */
	DeferredFree held;
	BpfLinks hook_links;
	SampleTimer *ticks; /* NULL: not begun yet */
	int stats_fd;
	ProgramsTimes times;
};

/* The event that on_tick is attached to. */
static inline SoftwareEvent programs_tick(unsigned int frequency)
{
	return (SoftwareEvent){.config = PERF_COUNT_SW_CPU_CLOCK,
			       .period = NSEC_PER_SEC / frequency};
}

/* Only what is asked for by -v. */
int programs_print_libbpf(enum libbpf_print_level level, const char *format, va_list args);

/* To be called before anything is attached: wallprof and what is of it are not recorded. */
int programs_init_own_ids(Programs *programs);

#endif
