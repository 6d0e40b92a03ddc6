/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * percpu_offsets.h - where the kernel keeps some per-CPU variables, and how to read one, from its
 * BTF; see bpf/core/irq_context.bpf.h and bpf/probes/softirq.bpf.c for what they are for.
 */
#ifndef WALLPROF_PERCPU_OFFSETS_H
#define WALLPROF_PERCPU_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct PercpuOffsets {
	int32_t preempt_count; /* minus the offset of `runqueues` */
	uint32_t hardirq_mask; /* of preempt_count: how deep in hard interrupts */
	/* The interrupt stack: the variables that hold its upper end, and whether it is in use. */
	int32_t irq_stack, irq_stack_in_use;
	bool irq_stack_known;
} PercpuOffsets;

struct btf;

/* Returns false if this BTF of the kernel does not tell. */
bool percpu_offsets(const struct btf *kernel, PercpuOffsets *ret_offsets);

#endif
