/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "walk_fixture.h"

uint64_t word_address(uint64_t number)
{
	return STACK + 8 * number;
}

uint64_t return_to(uint64_t number)
{
	return CALLERS + number + 1;
}

static bool world_read(void *user, uint64_t address, void *to, size_t size)
{
	const World *world = user;
	uint64_t into = address - STACK;

	if (into > sizeof(world->stack) || sizeof(world->stack) - into < size)
		return false;
	memcpy(to, (const char *)world->stack + into, size);
	return true;
}

static int world_find_mapping(void *user, uint64_t pc, struct unwind_mapping *ret_mapping)
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

static bool world_find_rule(void *user, const struct unwind_mapping *mapping, uint32_t pc,
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

void world_map(World *world, uint64_t start, struct unwind_rule rule)
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

void world_row(World *world, uint32_t pc, struct unwind_rule rule)
{
	world->rules[world->row_count] = rule;
	world->rows[world->row_count] = (struct unwind_row){.pc = pc, .rule = world->row_count};
	world->mappings[world->mapping_count - 1].table++;
	world->row_count++;
}

void world_begin(World *world)
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

void world_walk(World *world, size_t max)
{
	uint32_t left_out;

	world->result = walk_user(&world->input, world->frames, &world->count, &left_out);
	if (world->count <= max && !left_out)
		return;
	world->count = max;
	world->result = STACK_TRUNCATED;
}
