/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flight_carry.h - what is left of the events that a flight recorder has let go: of each thread
 * that lives, who it is and what it did last. From there its chain of states goes on, as far as
 * nothing was lost: of losses it is left which threads' last records they came after.
 */
#ifndef WALLPROF_FLIGHT_CARRY_H
#define WALLPROF_FLIGHT_CARRY_H

#include "loss.h"
#include <stdbool.h>

typedef struct FlightCarry FlightCarry;

FlightCarry *flight_carry_new(void);
void flight_carry_free(FlightCarry *carry);

/* Takes note of an event, in the order of the file, which will be forgotten. */
void flight_carry_add(FlightCarry *carry, const struct record *record);

/* Events up to that time will be forgotten that nobody has taken. */
void flight_carry_add_gap(FlightCarry *carry, uint64_t ns);

/*
 * Asks of each thread that may have ended when events were lost whether it lives, at now_ns.
 * `lives` is given its number in wallprof's PID namespace.
 */
void flight_carry_check_alive(FlightCarry *carry, uint64_t now_ns, bool (*lives)(uint32_t ns_tid));

/* Forgets who is known to have ended by that time, though its exit was lost. */
void flight_carry_drop_ended(FlightCarry *carry, uint64_t ns);

/*
 * Hands on what there is to know, in order of time, as if none of it were older than least_ns; and
 * where events were lost in between, in that order, too. Returns 0 or the sink's error.
 */
int flight_carry_write(const FlightCarry *carry, uint64_t least_ns, RecordSink sink, void *user);

#endif
