/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_groups.h - the BPF programs, loaded in two halves at once.
 *
 * Most of what loading takes is libbpf's reading of the kernel's types and the verifier's work,
 * each in one thread. So the object is opened twice, each time with other programs of it, and
 * both are loaded side by side, on the same maps, which are made before.
 */
#ifndef WALLPROF_LOAD_GROUPS_H
#define WALLPROF_LOAD_GROUPS_H

#include "kernel_facts.h"
#include "programs.h"
#include "wallprof.skel.h"

enum half {
	HALF_SWITCH, /* most of what hangs on tracepoints; asked for all maps and variables, too */
	HALF_TICK,   /* births, ticks and iterators: as long to load as the others together */
	HALVES,
};

/*
 * Opens the object with these settings, with all its programs. Returns NULL and sets errno if
 * that fails.
 */
struct wallprof *halves_open_whole(const ProgramsOptions *options, size_t cpu_count,
				   KernelFacts *kernel);

/* Opens both halves. Returns 0 or a negative errno; those opened are to be closed either way. */
int halves_open(const ProgramsOptions *options, const FaultOptions *faults, size_t cpu_count,
		KernelFacts *kernel, struct wallprof *ret_halves[static HALVES]);

/*
 * Makes the maps that HALF_SWITCH does not have yet (bpf_map__reuse_fd()), and loads both;
 * at_once: side by side. Returns 0 or a negative errno.
 */
int halves_load(struct wallprof *const halves[static HALVES], bool at_once);

void halves_close(struct wallprof *halves[static HALVES]);

#endif
