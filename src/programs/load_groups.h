/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_groups.h - the BPF programs, loaded in two groups at the same time.
 *
 * Most of what loading takes is libbpf's reading of the kernel's types and the verifier's work,
 * each in one thread. So the object is opened twice, each time with other programs of it, and
 * both are loaded side by side, on the same maps, which are made before.
 */
#ifndef WALLPROF_LOAD_GROUPS_H
#define WALLPROF_LOAD_GROUPS_H

#include "kernel_info.h"
#include "program_table.h"
#include "programs.h"
#include "wallprof.skel.h"

/*
 * Opens the object with these settings, with all its programs. Returns NULL and sets errno if
 * that fails.
 */
struct wallprof *load_groups_open_whole(const ProgramsOptions *options, size_t cpu_count,
					KernelInfo *kernel);

/* Opens both groups. Returns 0 or a negative errno; those opened are to be closed either way. */
int load_groups_open(const ProgramsOptions *options, const FaultOptions *faults, size_t cpu_count,
		     KernelInfo *kernel, struct wallprof *ret_groups[static LOAD_GROUPS]);

/*
 * Makes the maps that LOAD_GROUP_SWITCH does not have yet (bpf_map__reuse_fd()), and loads both;
 * at_once: side by side. Returns 0 or a negative errno.
 */
int load_groups_load(struct wallprof *const groups[static LOAD_GROUPS], bool at_once);

void load_groups_close(struct wallprof *groups[static LOAD_GROUPS]);

#endif
