/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault_hooks.h - by which of the kernel's hooks page faults are seen (bpf/probes/fault.bpf.c).
 */
#ifndef WALLPROF_FAULT_HOOKS_H
#define WALLPROF_FAULT_HOOKS_H

#include "maps.h"
#include "software_events.h"
#include <stdbool.h>

struct btf;
struct bpf_object;

typedef struct FaultOptions {
	enum fault_source source;
	uint64_t threshold_ns; /* or FAULT_THRESHOLD_NONE */
} FaultOptions;

/*
 * FAULT_SOURCE_FENTRY if a program can be attached to the function that handles faults, as `kernel`
 * has it; else FAULT_SOURCE_EVENTS. Needs the rights to load programs.
 */
enum fault_source fault_hooks_best(const struct btf *kernel);

/* Is this program of the object one of another choice, and not to be loaded? */
bool fault_hooks_leave_out(const FaultOptions *options, const char *program);

/*
 * Attaches what is not attached as all others are: to the events of the kernel's accounting.
 * Returns 0 or a negative errno.
 */
int fault_hooks_attach(const FaultOptions *options, struct bpf_object *object, size_t cpu_count,
		       BpfLinks *links);

/* "handle_mm_fault (fentry, fexit)", …: static; NULL: off. */
const char *fault_hooks_text(const FaultOptions *options);

#endif
