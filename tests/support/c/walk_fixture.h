/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk_fixture.h - a made-up process for the walk: a leaf's code, callers' code and a stack, each
 * word of which is, unless it is set to something else, a return address that says which word it
 * is.
 */
#ifndef WALLPROF_TEST_WALK_WORLD_H
#define WALLPROF_TEST_WALK_WORLD_H

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

static inline uint64_t word_address(uint64_t number)
{
	return STACK + 8 * number;
}

/* The return address that word number holds. The byte before it is CALLERS + number. */
static inline uint64_t return_to(uint64_t number)
{
	return CALLERS + number + 1;
}

static inline bool world_read(void *user, uint64_t address, void *to, size_t size)
{
	const World *world = user;
	uint64_t into = address - STACK;

	if (into > sizeof(world->stack) || sizeof(world->stack) - into < size)
		return false;
	memcpy(to, (const char *)world->stack + into, size);
	return true;
}

static inline int world_find_mapping(void *user, uint64_t pc, struct unwind_mapping *ret_mapping)
{
	const World *world = user;

	for (size_t i = 0; i < world->mapping_count; i++) {
		if (pc < world->mappings[i].start || pc > world->mappings[i].last)
			continue;
		*ret_mapping = world->mappings[i];
		return WALK_CONTINUE;
	}
	return STACK_NO_MAPPING;
}

static inline bool world_find_rule(void *user, const struct unwind_mapping *mapping, uint32_t pc,
				   struct unwind_rule *ret_rule)
{
	const World *world = user;
	const struct unwind_row *row =
		walk_user_search(world->rows + mapping->row, mapping->table, pc);

	if (world->no_rules)
		return false;
	*ret_rule = world->rules[row->rule];
	return true;
}

/* A mapping with a table of one row. */
static inline void world_map(World *world, uint64_t start, struct unwind_rule rule)
{
	world->rules[world->row_count] = rule;
	world->rows[world->row_count] = (struct unwind_row){.pc = 0, .rule = world->row_count};
	world->mappings[world->mapping_count++] = (struct unwind_mapping){
		.start = start,
		.last = start + CODE_SIZE - 1,
		.load = start,
		.row = world->row_count,
		.table = 1, /* here: how many rows */
	};
	world->row_count++;
}

/* One more row for the mapping that was made last. */
static inline void world_row(World *world, uint32_t pc, struct unwind_rule rule)
{
	world->rules[world->row_count] = rule;
	world->rows[world->row_count] = (struct unwind_row){.pc = pc, .rule = world->row_count};
	world->mappings[world->mapping_count - 1].table++;
	world->row_count++;
}

/* Without mappings; the leaf's pc is LEAF. */
static inline void world_begin(World *world)
{
	uint64_t *regs = world->input.regs;

	memset(world, 0, offsetof(World, stack));
	for (size_t i = 0; i < STACK_WORDS; i++)
		world->stack[i] = return_to(i);
	for (size_t i = 0; i < DWARF_REGS; i++)
		regs[i] = FAR_AWAY;
	regs[DWARF_RSP] = word_address(AT_SP);
	regs[DWARF_RBP] = word_address(AT_BP);
	regs[DWARF_RBX] = word_address(AT_BX);
	regs[12] = word_address(AT_R12);
	regs[DWARF_RETURN] = LEAF;
	world->input.in_syscall = false;
	world->input.read = world_read;
	world->input.find_mapping = world_find_mapping;
	world->input.find_rule = world_find_rule;
	world->input.user = world;
	world->no_rules = false;
}

static inline void world_walk(World *world, size_t max)
{
	world->result = walk_user(&world->input, world->frames, max, &world->count);
}

#endif
