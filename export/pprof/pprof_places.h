/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof_places.h - mappings, locations and functions of a pprof profile.
 *
 * A location is an address with the functions at it: the function, and those that are inlined
 * there. A pseudo frame, such as the reason of a wait, is a location without a mapping.
 */
#ifndef WALLPROF_PPROF_PLACES_H
#define WALLPROF_PPROF_PLACES_H

#include "proto_writer.h"
#include "stack_table.h"

typedef struct PprofMapping {
	uint64_t start, end, offset;
	uint32_t lib;  /* StackTable::libs */
	uint32_t next; /* another one of this library, or UINT32_MAX */
} PprofMapping;

/* Frames at one address, from the function to the innermost inlined one. */
typedef struct PprofChain {
	uint32_t outer;	   /* the chain without its innermost frame, or UINT32_MAX */
	uint32_t frame;	   /* StackTable::frame_rows */
	uint32_t location; /* its ID; 0: it is only a part of others */
} PprofChain;

/* What a stack ends with. */
typedef struct PprofEnd {
	uint32_t chain_after; /* PprofPlaces::chains, plus 1; 0: not known yet */
	bool inlined;	      /* its location also has the frame before it */
} PprofEnd;

typedef struct PprofPlaces {
	StackTable *tables;
	VEC(PprofEnd) ends; /* StackTable::stacks */
	VEC(PprofChain) chains;
	Map chain_index;	 /* (outer, frame) -> chains */
	VEC(uint32_t) locations; /* ID - 1 -> chains */
	VEC(PprofMapping) mappings;
	VEC(uint32_t) lib_mappings; /* StackTable::libs -> the first mapping, or UINT32_MAX */
	VEC(uint64_t) ids;	    /* of pprof_places_ids() */
} PprofPlaces;

void pprof_places_init(PprofPlaces *places, StackTable *tables);
void pprof_places_free(PprofPlaces *places);

/*
 * Returns the IDs of the locations of a stack, the leaf's first; they are valid until the next
 * call.
 */
const uint64_t *pprof_places_ids(PprofPlaces *places, uint32_t stack, size_t *ret_count);

/*
 * Writes all locations that have IDs, their functions and their mappings. Strings are those of the
 * tables, see pprof_string().
 */
void pprof_places_write(PprofPlaces *places, Output *out);

/* Returns the index of a text in the profile's string table; the first one there is "". */
uint64_t pprof_string(StackTable *tables, const char *text);
/* Does the same for a string of the tables. */
static inline uint64_t pprof_interned(uint32_t string)
{
	return (uint64_t)string + 1;
}

#endif
