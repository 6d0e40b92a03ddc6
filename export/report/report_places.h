/* SPDX-License-Identifier: GPL-2.0-or-later */
/* report_places.h - where threads spent their time: leaf functions, and reasons of waits. */
#ifndef WALLPROF_REPORT_PLACES_H
#define WALLPROF_REPORT_PLACES_H

#include "sample_rows.h"

/* A leaf function, or the reason of a wait, and the time that all threads spent there. */
typedef struct Place {
	uint32_t function; /* stack_table_leaf_function() */
	uint32_t stack;	   /* a stack that has it */
	enum category category;
	uint64_t ns;
} Place;

typedef struct Places {
	StackTable *tables;
	RowPlan plan;
	Map index; /* (function, category) -> list */
	VEC(Place) list;
	VEC(uint64_t) stack_ns; /* by index of the tables' stacks */
} Places;

void report_places_init(Places *places, const Timeline *timeline, Frames *frames);
void report_places_free(Places *places);

/* Adds all threads. */
void report_places_add_all(Places *places);
/* Adds a thread, or the critical path (timeline_track()), by the weights of its rows. */
void report_places_add(Places *places, uint32_t thread);
/* Sorts the largest first; nothing can be added afterwards. */
void report_places_sort(Places *places);
uint64_t report_places_time(const Places *places, enum category category);

/*
 * Returns a function and its library, fit for a terminal; library may be NULL. The caller frees it.
 */
char *report_place_text(const char *function, const char *library, bool kernel);
char *report_place_name(const Places *places, const Place *place);

#endif
