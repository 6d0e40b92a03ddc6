/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * software_events.h - attaches BPF programs to perf's software events, which exist for each CPU.
 */
#ifndef WALLPROF_SOFTWARE_EVENTS_H
#define WALLPROF_SOFTWARE_EVENTS_H

#include "util.h"
#include <stddef.h>
#include <stdint.h>

struct bpf_link;
struct bpf_program;

typedef VEC(struct bpf_link *) BpfLinks;

typedef struct CpuRange {
	size_t first, count;
} CpuRange;

typedef struct SoftwareEvent {
	uint64_t config; /* PERF_COUNT_SW_* */
	uint64_t period; /* in the unit of the event */
	uint64_t cookie; /* what bpf_get_attach_cookie() returns in the program */
} SoftwareEvent;

/*
 * Opens the event on that CPU and attaches the program. Returns the event's descriptor, which
 * belongs to the link, or a negative errno, -ENODEV if the CPU is not online.
 */
int software_event_attach_on(struct bpf_program *program, const SoftwareEvent *event, int cpu,
			     struct bpf_link **ret_link);

/*
 * Opens the event on each of these CPUs that is online and attaches the program there. The
 * links are added to `links`, for bpf_links_destroy(). Returns 0 or a negative errno, -ENODEV if no
 * CPU is online.
 */
int software_event_attach(struct bpf_program *program, const SoftwareEvent *event, CpuRange cpus,
			  BpfLinks *links);

/* Detaches all of them. */
void bpf_links_destroy(BpfLinks *links);

#endif
