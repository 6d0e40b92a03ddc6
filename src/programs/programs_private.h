/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * programs_private.h - the programs, shared by:
 *
 *   programs.c          attaching, counts of the programs
 *   load_groups.c       opening and loading them
 *   programs_probe.c    checks for `doctor`
 *   programs_targets.c  iterators over tasks, which mark and describe targets
 *   programs_budget.c   what --budget sets and reads, and what --cost prints
 */
#ifndef WALLPROF_PROGRAMS_PRIVATE_H
#define WALLPROF_PROGRAMS_PRIVATE_H

#include "deferred_free.h"
#include "kernel_info.h"
#include "program_table.h"
#include "programs.h"
#include "ring_buffers.h"
#include "sample_timer.h"
#include "wallprof.skel.h"
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

/*
 * The maximum number of threads that are described between two drains. Each takes 256 bytes of a
 * ring, and a copy of its stack in another.
 */
#define SNAPSHOT_PIECE_MAX 64

struct Programs {
	KernelInfo kernel; /* its types are freed when the programs are loaded */
	struct wallprof *groups[LOAD_GROUPS];
	RingBuffers *rings;
	struct cpu_account *accounts;
	const volatile uint64_t *budget_sleeps; /* the map of that name; NULL: no budget */
	TableMemory *unwind_memory;
	size_t cpu_count;
	FaultOptions faults;
	size_t snapshot_piece;
	bool one_cpu; /* see ProgramsOptions */
	DeferredFree held;
	BpfLinks hook_links;
	struct scripts *scripts; /* NULL: not needed yet */
	SampleTimer *ticks;	 /* NULL: not started yet */
	int stats_fd;
	ProgramsTimes times;
};

/* Returns the event that on_tick is attached to. */
static inline SoftwareEvent programs_tick(unsigned int frequency)
{
	return (SoftwareEvent){.config = PERF_COUNT_SW_CPU_CLOCK,
			       .period = NSEC_PER_SEC / frequency};
}

/* ---- loading in two groups at the same time: load_groups.c ------------------------------ */

/*
 * Opens the object with these settings and all its programs. Returns NULL and sets errno on
 * failure.
 */
struct wallprof *load_groups_open_whole(const ProgramsOptions *options, size_t cpu_count,
					KernelInfo *kernel);

/* Opens both groups. Returns 0 or a negative errno; the caller closes them in either case. */
int load_groups_open(const ProgramsOptions *options, const FaultOptions *faults, size_t cpu_count,
		     KernelInfo *kernel, struct wallprof *ret_groups[static LOAD_GROUPS]);

/*
 * Creates the maps that LOAD_GROUP_SWITCH does not have yet (bpf_map__reuse_fd()) and loads both
 * groups, in parallel if at_once is set. Returns 0 or a negative errno.
 */
int load_groups_load(struct wallprof *const groups[static LOAD_GROUPS], bool at_once);

/*
 * Frees the kernel's types, when both groups are loaded. What programs_load_scripts() needs is
 * kept.
 */
void load_groups_keep_kernel(KernelInfo *kernel, const FaultOptions *faults);

void load_groups_close(struct wallprof *groups[static LOAD_GROUPS]);

/* ---- programs_budget.c ------------------------------------------------------------------- */

/* Maps what is shared with the loaded programs. Returns 0 or a negative errno. */
int programs_map_budget(Programs *programs);
void programs_unmap_budget(Programs *programs);

/* Frees what programs_load_scripts() has loaded. */
void programs_unload_scripts(Programs *programs);

/* ---- programs.c, programs_targets.c ------------------------------------------------------- */

/* Prints libbpf's messages if -v was given. */
int programs_print_libbpf(enum libbpf_print_level level, const char *format, va_list args);

/*
 * Excludes wallprof itself and its helpers from the recording. It is called before anything is
 * attached.
 */
int programs_init_own_ids(Programs *programs);

#endif
