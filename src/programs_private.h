/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * programs_private.h - what the parts of programs.h share:
 *
 *   programs.c          loading, attaching, what the programs count
 *   programs_targets.c  iterators over tasks, which mark and describe who is recorded
 */
#ifndef WALLPROF_PROGRAMS_PRIVATE_H
#define WALLPROF_PROGRAMS_PRIVATE_H

#include "halves.h"
#include "rings.h"

/*
 * So many threads are described between two drains at most. Each takes 256 bytes of a ring, and a
 * copy of its stack in another.
 */
#define SNAPSHOT_PIECE_MAX 64

struct Programs {
	KernelFacts kernel; /* until the programs are loaded */
	struct wallprof *halves[HALVES];
	Rings *rings;
	struct cpu_account *accounts;
	UnwindMemory *unwind_memory;
	size_t cpu_count;
	FaultOptions faults;
	size_t snapshot_piece;
	BpfLinks followers, ticks;
	int stats_fd;
	ProgramsTimes times;
};

/* To be called before anything is attached: wallprof and what is of it are not recorded. */
int programs_learn_who_we_are(Programs *programs);

#endif
