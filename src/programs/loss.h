/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loss.h - makes REC_LOSS and REC_TOTAL records from the counters of the BPF programs.
 *
 * Counts are exact: the programs count every attempt and every failure. The span of a loss is exact
 * if one poll covers all of it; otherwise it is longer.
 */
#ifndef WALLPROF_LOSS_H
#define WALLPROF_LOSS_H

#include "maps.h"
#include "record_info.h"
#include <stddef.h>

typedef struct LossMeter LossMeter;

LossMeter *loss_meter_new(struct cpu_account *accounts, size_t cpu_count);
void loss_meter_free(LossMeter *meter);

/* Emits a REC_LOSS for what was lost since the last poll. Returns 0 or sink's error. */
int loss_poll(LossMeter *meter, RecordSink sink, void *user);

/* Emits a REC_TOTAL for each kind. It is called after the last loss_poll(). */
int loss_totals(LossMeter *meter, RecordSink sink, void *user);

/*
 * Adds records of a kind that were lost since since_ns and that BPF does not count. With
 * LOSS_RECURSION the program did not run, so they count as sent as well. A kind has only one such
 * cause.
 */
void loss_add(LossMeter *meter, uint32_t kind, enum loss_cause cause, uint64_t count,
	      uint64_t since_ns);

/* Returns the number of all losses seen so far. */
uint64_t loss_count(const LossMeter *meter);

#endif
