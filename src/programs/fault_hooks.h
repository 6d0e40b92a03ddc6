/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault_hooks.h - chooses the kernel's hooks by which page faults are observed
 * (bpf/probes/fault.bpf.c).
 */
#ifndef WALLPROF_FAULT_HOOKS_H
#define WALLPROF_FAULT_HOOKS_H

#include "maps.h"
#include "program_table.h"
#include "software_events.h"
#include <stdbool.h>

struct btf;
struct bpf_object;

typedef struct FaultOptions {
	enum fault_source source;
	uint64_t threshold_ns; /* or FAULT_THRESHOLD_NONE */
} FaultOptions;

/*
 * Returns FAULT_SOURCE_FENTRY if a program can be attached to the kernel's function that handles
 * faults, otherwise FAULT_SOURCE_EVENTS. `kernel` is the kernel's BTF. Needs the capabilities to
 * load programs.
 */
enum fault_source fault_hooks_best(const struct btf *kernel);

/* Returns whether a program of page faults is loaded with these options. */
bool fault_hooks_use(const FaultOptions *options, const ProgramInfo *info);

/*
 * Attaches the programs that bpf_program__attach() cannot attach: to the software events of the
 * kernel's fault accounting on these CPUs. Returns 0 or a negative errno.
 */
int fault_hooks_attach(const FaultOptions *options, struct bpf_object *object, CpuRange cpus,
		       BpfLinks *links);

#endif
