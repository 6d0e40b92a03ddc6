/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_facts.h - what is read of the running kernel's types (BTF) before programs are loaded.
 */
#ifndef WALLPROF_KERNEL_FACTS_H
#define WALLPROF_KERNEL_FACTS_H

#include "kallsyms.h"
#include "maps.h"
#include "percpu_offsets.h"

struct btf;

typedef struct KernelInfo {
	struct btf *types; /* all of them */
	bool offsets_known;
	PercpuOffsets offsets;
	/*
	 * The functions that run soft interrupts on behalf of a task; all 0: addresses are hidden.
	 */
	KallsymsRange softirq_callers[SOFTIRQ_CALLERS];
	/*
	 * Whether the kernel may subtract time from that of tasks: for interrupts, if it is built
	 * so, or for a hypervisor.
	 */
	bool subtracts_time;
	struct kernel_type_ids
		type_ids; /* all 0: of no use with this kernel; see bpf/wait/kernel_read.bpf.h */
	/*
	 * The types that the programs look into, for bpf_object_open_opts::btf_custom_path; NULL:
	 * there is no room for such a file, and libbpf is to look for itself.
	 */
	const char *needed_path;
	char needed_room[32];
	int needed_fd;
	bool needed_written; /* see kernel_info_write_needed() */
} KernelInfo;

/* Returns 0 or a negative errno; to be closed either way. */
int kernel_info_read(KernelInfo *ret_facts);

/*
 * Fills the file at needed_path for objects of this BTF, if it is not yet; with all of the kernel's
 * types if those needed cannot be told apart. It has to be done before such an object is loaded,
 * and the facts must not be closed until then. Returns 0 or a negative errno.
 */
int kernel_info_write_needed(KernelInfo *facts, const struct btf *program);

void kernel_info_close(KernelInfo *facts);

#endif
