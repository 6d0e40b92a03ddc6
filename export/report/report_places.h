/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_places.h - where threads spent their time: by leaf function, or kind of wait.
 */
#ifndef WALLPROF_REPORT_PLACES_H
#define WALLPROF_REPORT_PLACES_H

#include "sample_rows.h"

/* A leaf function, or a kind of wait, and the time that all threads spent there. */
typedef struct Place {
	uint32_t function; /* stack_table_leaf_function() */
	uint32_t stack;	   /* one that has it */
	enum category category;
	uint64_t ns;
} Place;

typedef struct Places {
	StackTable *tables;
	RowPlan plan;
	Map index; /* (function, category) -> list */
	VEC(Place) list;
	VEC(uint64_t) stack_ns; /* by number of the tables' stacks */
} Places;

void report_places_init(Places *places, const Timeline *timeline, Frames *frames);
void report_places_free(Places *places);

/* Adds all threads. */
void report_places_add_all(Places *places);
/* Adds a thread, by the weights of its rows; or the critical path (timeline_track()). */
void report_places_add(Places *places, uint32_t thread);
/* The largest first; nothing can be added any more. */
void report_places_sort(Places *places);
uint64_t report_places_time(const Places *places, enum category category);

/* A function and what it is in, fit for a terminal; library may be NULL. To be freed. */
char *report_place_text(const char *function, const char *library, bool kernel);
char *report_place_name(const Places *places, const Place *place);

#endif
