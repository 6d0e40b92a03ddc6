/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_groups.h - loads the BPF programs in two groups at the same time.
 *
 * Loading is mostly libbpf's reading of the kernel's types and the verifier's work, each in one
 * thread. So the object is opened twice, each time with other programs enabled, and both are loaded
 * in parallel on the same maps, which are created before.
 */
#ifndef WALLPROF_LOAD_GROUPS_H
#define WALLPROF_LOAD_GROUPS_H

#include "kernel_info.h"
#include "program_table.h"
#include "programs.h"
#include "wallprof.skel.h"

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

void load_groups_close(struct wallprof *groups[static LOAD_GROUPS]);

#endif
