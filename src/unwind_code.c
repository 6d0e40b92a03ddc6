/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_code.h"
#include "unwind_instruction.h"

#define WORD	  8
#define DEPTH_MAX (8 * WORD)
#define ALIGNMENT 16 /* of functions */

static const uint8_t sigreturn[UNWIND_SIGRETURN_SIZE] = {0x48, 0xc7, 0xc0, 0x0f, 0,
							 0,    0,    0x0f, 0x05};

/* ---- following functions ---------------------------------------------------------- */

typedef struct Stack {
	bool known;
	bool bp_saved; /* below the return address */
	uint8_t depth; /* bytes below the return address */
} Stack;

static const Stack entered = {.known = true};

typedef struct Follow {
	const uint8_t *bytes;
	size_t size;
	Stack at[UNWIND_CODE_MAX];    /* before the instruction there, or by a jump to there */
	bool begins[UNWIND_CODE_MAX]; /* an instruction */
	Stack now;		      /* not known: behind a function's end */
	size_t jumped;		      /* behind the last place that something jumps to */
} Follow;

static bool same(Stack a, Stack b)
{
	return a.known == b.known && a.bp_saved == b.bp_saved && a.depth == b.depth;
}

static bool has_only_bp(const Stack *stack)
{
	return stack->bp_saved && stack->depth == WORD;
}

/* To another function's begin, as far as can be told. */
static bool leave(Follow *follow)
{
	bool whole = same(follow->now, entered);

	follow->now.known = false;
	return whole;
}

/* The same stack must be wherever two ways meet. */
static bool jump_to(Follow *follow, size_t from, int64_t place)
{
	if (place < 0 || (size_t)place >= follow->size)
		return false;
	if (place <= (int64_t)from && !follow->begins[place])
		return false;
	if (follow->at[place].known)
		return same(follow->at[place], follow->now);
	follow->at[place] = follow->now;
	follow->jumped = MAX(follow->jumped, (size_t)place + 1);
	return true;
}

static bool jump(Follow *follow, size_t from, int64_t place)
{
	bool inside = place >= 0 && (size_t)place < follow->size;
	bool good = inside ? jump_to(follow, from, place) : same(follow->now, entered);

	follow->now.known = false;
	return good;
}

static bool shrink(Stack *stack)
{
	if (stack->depth == 0 || has_only_bp(stack))
		return false;
	stack->depth -= WORD;
	return true;
}

static bool push_bp(Stack *stack)
{
	bool first = stack->depth == 0;

	*stack = (Stack){.known = true, .bp_saved = true, .depth = WORD};
	return first;
}

static bool pop_bp(Stack *stack)
{
	bool good = has_only_bp(stack);

	*stack = entered;
	return good;
}

/* What the instruction does to the stack. False: that is not known. */
static bool follow_one(Follow *follow, size_t place, const Instruction *instruction)
{
	Stack *now = &follow->now;
	int64_t target = (int64_t)place + instruction->length + instruction->distance;

	switch (instruction->does) {
	case DOES_UNKNOWN:
		return false;
	case DOES_NOTHING:
	case DOES_NOP:
		return true;
	case DOES_GROW:
		now->depth += WORD;
		return now->depth <= DEPTH_MAX;
	case DOES_SHRINK:
		return shrink(now);
	case DOES_PUSH_BP:
		return push_bp(now);
	case DOES_POP_BP:
		return pop_bp(now);
	case DOES_SET_BP:
		return now->bp_saved;
	case DOES_BRANCH:
		return jump_to(follow, place, target);
	case DOES_JUMP:
		return jump(follow, place, target);
	case DOES_JUMP_SOMEWHERE:
	case DOES_RETURN:
		return leave(follow);
	}
	return false;
}

/* Comes to an instruction. False: two ways lead there with two stacks, or none does. */
static bool arrive(Follow *follow, size_t place)
{
	Stack *known = &follow->at[place];

	if (follow->now.known && known->known && !same(*known, follow->now))
		return false;
	if (!follow->now.known)
		follow->now = *known;
	*known = follow->now;
	follow->begins[place] = true;
	return known->known;
}

/* A jump into the middle of an instruction. */
static bool is_jumped_into(const Follow *follow, size_t place, uint8_t length)
{
	for (size_t i = place + 1; i < place + length; i++)
		if (follow->at[i].known)
			return true;
	return false;
}

static void put_row(UnwindCodeRows *rows, uint32_t at, const Stack *stack)
{
	struct unwind_rule rule = {
		.cfa = CFA_REG,
		.cfa_reg = DWARF_RSP,
		.cfa_offset = WORD + stack->depth,
		.bp = stack->bp_saved ? BP_AT_CFA : BP_SAME,
		.bp_offset = stack->bp_saved ? -2 * WORD : 0,
	};

	if (rows->count == 0 || memcmp(&rows->items[rows->count - 1].rule, &rule, sizeof(rule)))
		rows->items[rows->count++] = (UnwindCodeRow){.at = at, .rule = rule};
}

static size_t skip_padding(const Follow *follow, size_t place)
{
	Instruction instruction;

	while (place < follow->size && !follow->at[place].known &&
	       (instruction = unwind_instruction(follow->bytes + place, follow->size - place))
			       .does == DOES_NOP)
		place += instruction.length;
	return place;
}

/* One function, up to where nothing goes on nor jumps to. False: it is not followed so far. */
static bool follow_function(Follow *follow, size_t *place, UnwindCodeRows *rows)
{
	follow->now = entered;
	while (follow->now.known || follow->jumped > *place) {
		Instruction instruction =
			unwind_instruction(follow->bytes + *place, follow->size - *place);

		if (*place >= follow->size || !arrive(follow, *place))
			return false;
		put_row(rows, *place, &follow->now);
		if (!follow_one(follow, *place, &instruction) ||
		    is_jumped_into(follow, *place, instruction.length))
			return false;
		*place += instruction.length;
		if (!follow->now.known)
			*place = skip_padding(follow, *place);
	}
	return true;
}

void unwind_code_follow(const uint8_t *bytes, size_t size, uint64_t address, bool function_begins,
			UnwindCodeRows *ret_rows)
{
	Follow follow = {.bytes = bytes, .size = MIN(size, (size_t)UNWIND_CODE_MAX)};
	size_t place = skip_padding(&follow, 0);

	ret_rows->count = ret_rows->end = 0;
	if ((place > 0 || !function_begins) && (address + place) % ALIGNMENT)
		return;
	while (place < follow.size) {
		size_t before = ret_rows->count;

		if (!follow_function(&follow, &place, ret_rows)) {
			ret_rows->count = before;
			return;
		}
		ret_rows->end = place;
	}
}

/* ---- others --------------------------------------------------------------------------- */

/* Most gaps align a function: memmem() would take longer to prepare than this takes. */
const uint8_t *unwind_code_sigreturn(const uint8_t *bytes, size_t size)
{
	if (size >= 64)
		return memmem(bytes, size, sigreturn, sizeof(sigreturn));
	for (; size >= sizeof(sigreturn); bytes++, size--)
		if (!memcmp(bytes, sigreturn, sizeof(sigreturn)))
			return bytes;
	return NULL;
}

/* Zeros, breakpoints, and what nops of all lengths are made of. */
static bool is_filling(const uint8_t *bytes, size_t size)
{
	static const uint8_t filling[] = {0x00, 0x90, 0xcc, 0x66, 0x2e, 0x0f,
					  0x1f, 0x40, 0x44, 0x80, 0x84};

	for (size_t i = 0; i < size; i++)
		if (!memchr(filling, bytes[i], sizeof(filling)))
			return false;
	return true;
}

bool unwind_code_filling(const uint8_t *bytes, size_t size)
{
	const size_t samples = 64, sample = 16;
	size_t filled = 0;

	if (size < samples * sample)
		return is_filling(bytes, size);
	for (size_t i = 0; i < samples; i++)
		filled += is_filling(bytes + size / samples * i, sample);
	return filled > samples / 2;
}

/* Whether FF /2 (a call by a register or memory) of one of its lengths ends there. */
static bool may_end_indirect_call(const uint8_t *bytes, const uint8_t *end)
{
	for (ptrdiff_t length = 2; length <= 7 && length <= end - bytes; length++)
		if (end[-length] == 0xff && (end[1 - length] >> 3 & 7) == 2)
			return true;
	return false;
}

bool unwind_code_may_be_frame(const uint8_t *bytes, const uint8_t *end)
{
	/* What a function can end with, in one byte: ret, retf, iret, hlt. */
	static const uint8_t ends[] = {0xc3, 0xcb, 0xcf, 0xf4};

	return end <= bytes || memchr(ends, end[-1], sizeof(ends)) ||
	       (end - bytes >= 5 && end[-5] == 0xe8) || may_end_indirect_call(bytes, end);
}
