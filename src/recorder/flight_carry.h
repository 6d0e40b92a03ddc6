/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flight_carry.h - the state that dropped events of a flight recorder leave behind: for each living
 * thread, its description and its last state. Its chain of states continues from there, as far as
 * nothing was lost; of losses, the order relative to the threads' last records is kept.
 */
#ifndef WALLPROF_FLIGHT_CARRY_H
#define WALLPROF_FLIGHT_CARRY_H

#include "loss.h"
#include <stdbool.h>

typedef struct FlightCarry FlightCarry;

FlightCarry *flight_carry_new(void);
void flight_carry_free(FlightCarry *carry);

/* Adds an event that will be dropped. Events are added in the order of the file. */
void flight_carry_add(FlightCarry *carry, const struct record *record);

/* Notes that events up to ns are dropped that were not added. */
void flight_carry_add_gap(FlightCarry *carry, uint64_t ns);

/*
 * Checks each thread that may have ended when events were lost. is_alive gets its ID in wallprof's
 * PID namespace.
 */
void flight_carry_check_alive(FlightCarry *carry, uint64_t now_ns,
			      bool (*is_alive)(uint32_t ns_tid));

/* Forgets threads that are known to have ended by ns although their exit was lost. */
void flight_carry_drop_ended(FlightCarry *carry, uint64_t ns);

/*
 * Writes the kept records in order of time, none of them older than least_ns, and losses between
 * them in the same order. Returns 0 or the sink's error.
 */
int flight_carry_write(const FlightCarry *carry, uint64_t least_ns, RecordSink sink, void *user);

#endif
