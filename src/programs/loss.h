/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loss.h - from the BPF programs' counters to REC_LOSS and REC_TOTAL records.
 *
 * Counts are exact: the programs count every attempt and every failure. A loss's
 * span is known to the nanosecond if one poll saw all of it, and else covers it.
 */
#ifndef WALLPROF_LOSS_H
#define WALLPROF_LOSS_H

#include "maps.h"
#include "record_sink.h"
#include <stddef.h>

typedef struct LossMeter LossMeter;

LossMeter *loss_meter_new(struct cpu_account *accounts, size_t cpu_count);
void loss_meter_free(LossMeter *meter);

/* Emits a REC_LOSS for what was lost since the last poll. Returns 0 or sink's error. */
int loss_poll(LossMeter *meter, RecordSink sink, void *user);

/* Emits a REC_TOTAL per kind. Call after the last loss_poll. */
int loss_totals(LossMeter *meter, RecordSink sink, void *user);

/*
 * Records of a kind that were lost since since_ns without BPF's counting it. LOSS_RECURSION: they
 * were never tried, and count as sent, too. A kind has one such cause.
 */
void loss_add(LossMeter *meter, uint32_t kind, enum loss_cause cause, uint64_t count,
	      uint64_t since_ns);

/* All losses seen so far. */
uint64_t loss_count(const LossMeter *meter);

#endif
