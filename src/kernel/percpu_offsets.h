/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * percpu_offsets.h - where the kernel keeps some per-CPU variables, and how to read one, by its
 * BTF; for their use see bpf/core/irq_context.bpf.h and bpf/probes/softirq.bpf.c.
 */
#ifndef WALLPROF_PERCPU_OFFSETS_H
#define WALLPROF_PERCPU_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct PercpuOffsets {
	int32_t preempt_count; /* minus the offset of `runqueues` */
	uint32_t hardirq_mask; /* of preempt_count: the depth of hard interrupts */
	/*
	 * The interrupt stack: a variable with its upper end, and one that says whether it is in
	 * use.
	 */
	int32_t irq_stack, irq_stack_in_use;
	bool irq_stack_known;
} PercpuOffsets;

struct btf;

/* Returns false if this BTF of the kernel does not have them. */
bool percpu_offsets(const struct btf *kernel, PercpuOffsets *ret_offsets);

#endif
