/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk_fixture.h - a made-up process for the walk: a leaf's code, callers' code and a stack. Each
 * word of the stack is a return address that says which word it is, if it is not set to something
 * else.
 */
#ifndef WALLPROF_TEST_WALK_FIXTURE_H
#define WALLPROF_TEST_WALK_FIXTURE_H

#include "test_tools.h"
#include "walk_user.h"

#define LEAF	    0x400000ULL /* the leaf's pc, and where its mapping begins */
#define CALLERS	    0x600000ULL
#define CODE_SIZE   0x100000ULL
#define STACK	    0x7ffe00000000ULL
#define STACK_WORDS ((1 << 17) + 64)
#define FAR_AWAY    0x100000000000ULL /* nothing is there */

/* Words that the leaf's registers point to. */
#define AT_SP  10
#define AT_BP  20
#define AT_BX  30
#define AT_R12 40

#define ROWS_MAX 16

typedef struct World {
	struct unwind_mapping mappings[4];
	size_t mapping_count;
	struct unwind_row rows[ROWS_MAX];
	struct unwind_rule rules[ROWS_MAX]; /* of the rows */
	uint32_t row_count;
	uint64_t stack[STACK_WORDS];
	WalkInput input;
	bool no_rules; /* the tables are gone */
	/* What the walk made of it. */
	uint64_t frames[MAX_FRAMES];
	size_t count;
	int result;
} World;

uint64_t word_address(uint64_t number);

/* Returns what word number holds. The byte before that address is CALLERS + number. */
uint64_t return_to(uint64_t number);

/* Adds a mapping with a table of one row. */
void world_map(World *world, uint64_t start, struct unwind_rule rule);

/* Adds a row to the mapping that was added last. */
void world_row(World *world, uint32_t pc, struct unwind_rule rule);

/* There are no mappings yet. The leaf's pc is LEAF. */
void world_begin(World *world);

/* Of a stack of more than max frames, the first ones count. max is at most LEAF_FRAMES, or
 * MAX_FRAMES. */
void world_walk(World *world, size_t max);

#endif
