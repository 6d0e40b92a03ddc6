/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_info.h - what is read from the running kernel's types (BTF) before programs are loaded.
 */
#ifndef WALLPROF_KERNEL_INFO_H
#define WALLPROF_KERNEL_INFO_H

#include "maps.h"
#include "percpu_offsets.h"
#include "util.h"

struct btf;

/* A tracepoint, whose arguments the type `btf_trace_NAME` has. */
typedef struct Tracepoint {
	const char *name; /* belongs to KernelInfo::types, or to KeptHooks */
	uint32_t id;
} Tracepoint;

typedef struct KernelInfo {
	struct btf *types; /* all of them; NULL after kernel_info_shrink() */
	VEC(Tracepoint) tracepoints;
	VEC(Tracepoint) functions; /* after kernel_info_shrink() */
	uint32_t task_iterator_id; /* of the function that stands for iterators; 0: none */
	/* Of bpf_rdonly_cast(); 0: it cannot be used with this kernel; see bpf/wait/fd.bpf.c. */
	uint32_t rdonly_cast_id;
	bool offsets_known;
	PercpuOffsets offsets;
	bool names_known; /* the kernel has the names of its functions (CONFIG_KALLSYMS) */
	/*
	 * Whether the kernel may subtract time from the running time of tasks: for interrupts, if
	 * it is built so, or for a hypervisor.
	 */
	bool subtracts_time;
	struct kernel_type_ids type_ids; /* all 0 with rdonly_cast_id */
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

/* Returns the type of the tracepoint of this name, or -ENOENT. */
int kernel_info_tracepoint_id(const KernelInfo *info, const char *name);

/* Returns the type of the function of this name, or a negative errno. */
int kernel_info_function_id(const KernelInfo *info, const char *name);

/* The types of these hooks are kept: names that outlive the info. */
typedef struct KeptHooks {
	const char *const *tracepoints, *const *functions;
	size_t tracepoint_count, function_count;
} KeptHooks;

/*
 * Frees the types, which take some megabytes and long to read. What is left is enough to load
 * other objects that are attached to these hooks and use no other types than those in the file at
 * needed_path.
 */
void kernel_info_shrink(KernelInfo *info, const KeptHooks *kept);

/*
 * Writes the types that objects with this BTF need to the file at needed_path, unless that is done
 * already; all types of the kernel if the needed ones cannot be found. Call it before such an
 * object is loaded, and keep the info open until then. Returns 0 or a negative errno.
 */
int kernel_info_write_needed(KernelInfo *info, const struct btf *program);

void kernel_info_close(KernelInfo *info);

#endif
