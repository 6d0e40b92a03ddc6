/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_info.h - what is read from the running kernel's types (BTF) before programs are loaded.
 */
#ifndef WALLPROF_KERNEL_INFO_H
#define WALLPROF_KERNEL_INFO_H

#include "maps.h"
#include "percpu_offsets.h"

struct btf;

typedef struct KernelInfo {
	struct btf *types; /* all of them */
	bool offsets_known;
	PercpuOffsets offsets;
	bool names_known; /* the kernel has the names of its functions (CONFIG_KALLSYMS) */
	/*
	 * Whether the kernel may subtract time from the running time of tasks: for interrupts, if
	 * it is built so, or for a hypervisor.
	 */
	bool subtracts_time;
	struct kernel_type_ids type_ids; /* all 0: they cannot be used with this kernel; see
					    bpf/wait/fd.bpf.c */
	/*
	 * The types that the programs use, for bpf_object_open_opts::btf_custom_path; NULL: there
	 * is no room for such a file, and libbpf searches all types.
	 */
	const char *needed_path;
	char needed_room[32];
	int needed_fd;
	bool needed_written; /* see kernel_info_write_needed() */
} KernelInfo;

/* Returns 0 or a negative errno; the caller closes it in both cases. */
int kernel_info_read(KernelInfo *ret_info);

/*
 * Writes the types that objects with this BTF need to the file at needed_path, unless that is done
 * already; all types of the kernel if the needed ones cannot be found. Call it before such an
 * object is loaded, and keep the info open until then. Returns 0 or a negative errno.
 */
int kernel_info_write_needed(KernelInfo *info, const struct btf *program);

void kernel_info_close(KernelInfo *info);

#endif
