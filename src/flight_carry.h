/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flight_carry.h - what is left of the events that a flight recorder has let go: of each thread
 * that lives, who it is and what it did last. From there its chain of states goes on.
 */
#ifndef WALLPROF_FLIGHT_CARRY_H
#define WALLPROF_FLIGHT_CARRY_H

#include "loss.h"

typedef struct FlightCarry FlightCarry;

FlightCarry *flight_carry_new(void);
void flight_carry_free(FlightCarry *carry);

/* Takes note of an event, in order of time, which will be forgotten. */
void flight_carry_take(FlightCarry *carry, const struct record *record);

/*
 * Hands on what there is to know, in order of time, as if none of it were older than least_ns.
 * Returns 0 or the sink's error.
 */
int flight_carry_write(const FlightCarry *carry, uint64_t least_ns, RecordSink sink, void *user);

#endif
