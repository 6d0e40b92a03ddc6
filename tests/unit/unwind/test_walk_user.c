/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk, step by step: each kind of rule, by which word of the stack it takes for what. */
#include "walk_fixture.h"
#include <ucontext.h>

static World world;

#define END                                                                                        \
	(struct unwind_rule)                                                                       \
	{                                                                                          \
		.cfa = CFA_END                                                                     \
	}
/* CFA = register + offset. */
#define AT(reg, offset)                                                                            \
	(struct unwind_rule)                                                                       \
	{                                                                                          \
		.cfa = CFA_REG, .cfa_reg = reg, .cfa_offset = offset                               \
	}
#define WITH(rule, ...)                                                                            \
	({                                                                                         \
		struct unwind_rule rule_ = rule;                                                   \
                                                                                                   \
		__VA_ARGS__;                                                                       \
		rule_;                                                                             \
	})

/* A leaf and its caller. */
static void begin(struct unwind_rule leaf, struct unwind_rule caller)
{
	world_begin(&world);
	world_map(&world, LEAF, leaf);
	world_map(&world, CALLERS, caller);
}

/* The frames behind the leaf are the return addresses of these words; -1 ends the list. */
static void check(int result, const int *words)
{
	size_t count = 0;

	while (words[count] >= 0)
		count++;
	assert_int_equal(world.result, result);
	assert_int_equal(world.count, 1 + count);
	assert_int_equal(world.frames[0], world.input.regs[DWARF_RETURN]);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(world.frames[1 + i], return_to(words[i]));
}
#define expect(result, ...)                                                                        \
	do {                                                                                       \
		world_walk(&world, MAX_FRAMES);                                                    \
		check(result, (const int[]){__VA_ARGS__});                                         \
	} while (0)
#define NONE -1

/* ---- the CFA and the return address ---------------------------------------------------------- */

static void test_cfa_register(void **state)
{
	(void)state;
	begin(AT(DWARF_RSP, 16), END);
	expect(STACK_COMPLETE, AT_SP + 1, NONE);
	begin(AT(DWARF_RBP, 16), END);
	expect(STACK_COMPLETE, AT_BP + 1, NONE);
	begin(AT(DWARF_RBX, -8), END);
	expect(STACK_COMPLETE, AT_BX - 2, NONE);
	begin(AT(12, 0), END);
	expect(STACK_COMPLETE, AT_R12 - 1, NONE);
}

static void test_cfa_dereferenced(void **state)
{
	struct unwind_rule rule = {
		.cfa = CFA_DEREF, .cfa_reg = DWARF_RSP, .cfa_offset = 8, .extra = 16};

	(void)state;
	begin(rule, END);
	world.stack[AT_SP + 1] = word_address(25);
	expect(STACK_COMPLETE, 26, NONE);
	/* It may be another stack, and lie below. */
	world.stack[AT_SP + 1] = word_address(2);
	expect(STACK_COMPLETE, 3, NONE);
	world.stack[AT_SP + 1] = word_address(25) + 4;
	expect(STACK_BAD_CFA, NONE);
	world.input.regs[DWARF_RSP] = FAR_AWAY;
	expect(STACK_FAULT, NONE);
}

static void test_cfa_plt(void **state)
{
	struct unwind_rule rule = {.cfa = CFA_PLT, .extra = 11};

	(void)state;
	begin(rule, END);
	world.input.regs[DWARF_RETURN] = LEAF + 0x20;
	expect(STACK_COMPLETE, AT_SP, NONE);
	world.input.regs[DWARF_RETURN] = LEAF + 0x2a;
	expect(STACK_COMPLETE, AT_SP, NONE);
	world.input.regs[DWARF_RETURN] = LEAF + 0x2b;
	expect(STACK_COMPLETE, AT_SP + 1, NONE);
	world.input.regs[DWARF_RETURN] = LEAF + 0x2f;
	expect(STACK_COMPLETE, AT_SP + 1, NONE);
}

static void test_cfa_below(void **state)
{
	(void)state;
	begin(AT(DWARF_RSP, 0), END);
	expect(STACK_BAD_CFA, NONE);
	begin(AT(DWARF_RSP, -8), END);
	expect(STACK_BAD_CFA, NONE);
	begin(AT(DWARF_RSP, 12), END);
	expect(STACK_BAD_CFA, NONE);
	begin(AT(DWARF_RBP, 0), END);
	world.input.regs[DWARF_RBP] = word_address(AT_SP - 1);
	expect(STACK_BAD_CFA, NONE);
}

static void test_return_in_register(void **state)
{
	(void)state;
	/* The stack need not change: vfork has taken the return address off. */
	begin(WITH(AT(DWARF_RSP, 0), rule_.ra = RA_REG + 5), AT(DWARF_RSP, 8));
	world.input.regs[5] = return_to(55);
	world_walk(&world, 3);
	check(STACK_TRUNCATED, (const int[]){55, AT_SP, NONE});
	/* Only the leaf's registers are known. */
	begin(AT(DWARF_RSP, 8), WITH(AT(DWARF_RSP, 8), rule_.ra = RA_REG + 5));
	world.input.regs[5] = return_to(55);
	expect(STACK_REGISTER, AT_SP, NONE);
	begin(AT(DWARF_RSP, 8), AT(12, 8));
	expect(STACK_REGISTER, AT_SP, NONE);
}

static void test_return_address(void **state)
{
	static const struct {
		uint64_t address;
		int result;
		size_t count;
	} cases[] = {
		{0, STACK_END_ZERO, 1},
		{1, STACK_BAD_PC, 1},
		{0xfff, STACK_BAD_PC, 1},
		{0x1000, STACK_NO_MAPPING, 2},
		{(1ULL << 56) - 1, STACK_NO_MAPPING, 2},
		{1ULL << 56, STACK_BAD_PC, 1},
		{UINT64_MAX, STACK_BAD_PC, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin(AT(DWARF_RSP, 8), END);
		world.stack[AT_SP] = cases[i].address;
		world_walk(&world, MAX_FRAMES);
		assert_int_equal(world.result, cases[i].result);
		assert_int_equal(world.count, cases[i].count);
	}
	begin(AT(DWARF_RSP, 8), END);
	world.input.regs[DWARF_RSP] = word_address(STACK_WORDS);
	expect(STACK_FAULT, NONE);
	world.input.regs[DWARF_RSP] = word_address(STACK_WORDS) - 8;
	expect(STACK_COMPLETE, STACK_WORDS - 1, NONE);
}

/* ---- what has no rule ------------------------------------------------------------------------ */

static void test_no_rule(void **state)
{
	(void)state;
	begin(END, END);
	expect(STACK_COMPLETE, NONE);
	for (int why = NONE_GAP; why <= NONE_TOO_MANY_RULES; why++) {
		begin((struct unwind_rule){.cfa = CFA_NONE, .extra = why}, END);
		expect(why == NONE_GAP ? STACK_GAP : STACK_UNSUPPORTED, NONE);
	}
}

static void test_no_table(void **state)
{
	(void)state;
	world_begin(&world);
	expect(STACK_NO_MAPPING, NONE);
	world.input.regs[DWARF_RETURN] = 0; /* called through a null pointer */
	expect(STACK_NO_MAPPING, NONE);
	begin(END, END);
	world.no_rules = true;
	expect(STACK_NO_TABLE, NONE);
	begin(END, END);
	world.mappings[0].table = 0;
	world.mappings[0].row = NO_TABLE_YET;
	expect(STACK_NO_TABLE, NONE);
	/* Further from the table's object than its rows can express. */
	begin(END, END);
	world.mappings[0].load = LEAF - (1ULL << 32);
	expect(STACK_GAP, NONE);
	world.mappings[0].load++;
	expect(STACK_COMPLETE, NONE);
	world.mappings[0].load = LEAF + 1;
	expect(STACK_GAP, NONE);
}

/* ---- rbp and rbx ----------------------------------------------------------------------------- */

static void test_bp(void **state)
{
	struct unwind_rule leaf = AT(DWARF_RSP, 16), by_bp = AT(DWARF_RBP, 16);

	(void)state;
	/* From the third frame on, the same rbp leads nowhere. */
	begin(leaf, by_bp);
	expect(STACK_BAD_CFA, AT_SP + 1, AT_BP + 1, NONE);
	begin(WITH(leaf, (rule_.bp = BP_AT_CFA, rule_.bp_offset = -16)), by_bp);
	world.stack[AT_SP] = word_address(44);
	expect(STACK_BAD_CFA, AT_SP + 1, 45, NONE);
	begin(WITH(leaf, (rule_.bp = BP_AT_BP, rule_.bp_offset = 8)), by_bp);
	world.stack[AT_BP + 1] = word_address(46);
	expect(STACK_BAD_CFA, AT_SP + 1, 47, NONE);
	begin(WITH(leaf, (rule_.bp = BP_AT_SP, rule_.bp_offset = 24)), by_bp);
	world.stack[AT_SP + 3] = word_address(48);
	expect(STACK_BAD_CFA, AT_SP + 1, 49, NONE);
	begin(WITH(leaf, rule_.bp = BP_IN_REG + 13), by_bp);
	world.input.regs[13] = word_address(50);
	expect(STACK_BAD_CFA, AT_SP + 1, 51, NONE);
	begin(WITH(leaf, rule_.bp = BP_LOST), by_bp);
	expect(STACK_REGISTER, AT_SP + 1, NONE);
	begin(WITH(leaf, (rule_.bp = BP_AT_BP, rule_.bp_offset = 8)), by_bp);
	world.input.regs[DWARF_RBP] = FAR_AWAY;
	expect(STACK_FAULT, NONE);
}

static void test_bx(void **state)
{
	struct unwind_rule leaf = AT(DWARF_RSP, 16), by_bx = AT(DWARF_RBX, 8);

	(void)state;
	begin(leaf, by_bx);
	expect(STACK_BAD_CFA, AT_SP + 1, AT_BX, NONE);
	begin(WITH(leaf, (rule_.bx = BX_AT_CFA, rule_.bx_offset = -16)), by_bx);
	world.stack[AT_SP] = word_address(44);
	expect(STACK_BAD_CFA, AT_SP + 1, 44, NONE);
	begin(WITH(leaf, rule_.bx = BX_LOST), by_bx);
	expect(STACK_REGISTER, AT_SP + 1, NONE);
	/* That it cannot be read matters only to rules that need it. */
	begin(WITH(leaf, (rule_.bx = BX_AT_CFA, rule_.bx_offset = -0x7000)), by_bx);
	expect(STACK_REGISTER, AT_SP + 1, NONE);
	begin(WITH(leaf, (rule_.bx = BX_AT_CFA, rule_.bx_offset = -0x7000)), END);
	expect(STACK_COMPLETE, AT_SP + 1, NONE);
}

/* A third frame, whose code begins behind that of words below 32. */
static void begin_three(struct unwind_rule leaf, struct unwind_rule caller,
			struct unwind_rule third)
{
	begin(leaf, caller);
	world_row(&world, 32, third);
	world_row(&world, 64, END);
	world.stack[AT_SP + 1] = return_to(33);
}

static void test_over_frames(void **state)
{
	struct unwind_rule plain = AT(DWARF_RSP, 8), by_bp = AT(DWARF_RBP, 16);
	struct unwind_rule by_bx = AT(DWARF_RBX, 8);
	struct unwind_rule saved = WITH(plain, (rule_.bp = BP_AT_CFA, rule_.bp_offset = 16,
						rule_.bx = BX_AT_CFA, rule_.bx_offset = 24));
	struct unwind_rule lost = WITH(plain, (rule_.bp = BP_LOST, rule_.bx = BX_LOST));

	(void)state;
	/* Saved by the leaf, left alone by its caller. */
	begin_three(saved, plain, by_bp);
	world.stack[AT_SP + 3] = word_address(70);
	expect(STACK_COMPLETE, AT_SP, 33, 71, NONE);
	begin_three(saved, plain, by_bx);
	world.stack[AT_SP + 4] = word_address(72);
	expect(STACK_COMPLETE, AT_SP, 33, 72, NONE);
	/* Lost by the leaf, and still so behind a caller that would find it by itself. */
	begin_three(lost, plain, by_bp);
	expect(STACK_REGISTER, AT_SP, 33, NONE);
	begin_three(lost, plain, by_bx);
	expect(STACK_REGISTER, AT_SP, 33, NONE);
	begin_three(lost, WITH(plain, rule_.bp = BP_AT_BP), by_bp);
	expect(STACK_REGISTER, AT_SP, 33, NONE);
	begin_three(plain, WITH(plain, rule_.bp = BP_IN_REG + 12), by_bp);
	expect(STACK_REGISTER, AT_SP, 33, NONE);
	/* Lost by the leaf, saved by its caller. */
	begin_three(lost, WITH(saved, rule_.bp_offset = 8), by_bp);
	world.stack[AT_SP + 3] = word_address(74);
	expect(STACK_COMPLETE, AT_SP, 33, 75, NONE);
}

/* ---- frame pointers -------------------------------------------------------------------------- */

static void begin_guess(int why)
{
	begin((struct unwind_rule){.cfa = CFA_NONE, .extra = NONE_UNKNOWN_CODE}, END);
	if (why == NONE_UNKNOWN_CODE)
		return;
	world.mappings[0].table = 0;
	world.mappings[0].row = why;
}

static void test_guess(void **state)
{
	static const int kinds[] = {NONE_UNKNOWN_CODE, NO_TABLE_JIT, NO_TABLE_NONE};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		begin_guess(kinds[i]);
		world_walk(&world, MAX_FRAMES);
		assert_int_equal(world.result, STACK_COMPLETE);
		assert_int_equal(world.count, 2);
		assert_int_equal(world.frames[1], return_to(AT_BP + 1) | FRAME_GUESSED);
	}
	/* What a table says of the guessed frame's caller is no guess; rbp went on, rbx did not. */
	begin_guess(NO_TABLE_JIT);
	world.rules[1] = AT(DWARF_RBP, 16);
	world.stack[AT_BP] = word_address(60);
	world_walk(&world, 3);
	assert_int_equal(world.frames[1], return_to(AT_BP + 1) | FRAME_GUESSED);
	assert_int_equal(world.frames[2], return_to(61));
	world.rules[1] = AT(DWARF_RSP, 8);
	world_walk(&world, 3);
	assert_int_equal(world.frames[2], return_to(AT_BP + 2));
	world.rules[1] = AT(DWARF_RBX, 8);
	world_walk(&world, 3);
	assert_int_equal(world.result, STACK_REGISTER);
}

static int guess_at(uint64_t bp)
{
	begin_guess(NO_TABLE_JIT);
	world.input.regs[DWARF_RBP] = bp;
	world_walk(&world, MAX_FRAMES);
	return world.result;
}

static void test_guess_bounds(void **state)
{
	uint64_t sp = word_address(AT_SP), far = 1 << 20;

	(void)state;
	assert_int_equal(guess_at(sp), STACK_COMPLETE);
	assert_int_equal(guess_at(sp - 8), STACK_NO_CFI);
	assert_int_equal(guess_at(sp + 4), STACK_NO_CFI);
	assert_int_equal(guess_at(sp + far), STACK_COMPLETE);
	assert_int_equal(guess_at(sp + far + 8), STACK_NO_CFI);
	assert_int_equal(guess_at(0), STACK_NO_CFI);
	assert_int_equal(guess_at(UINT64_MAX - 7), STACK_NO_CFI);
	begin_guess(NO_TABLE_JIT);
	world.input.regs[DWARF_RSP] = world.input.regs[DWARF_RBP] = word_address(STACK_WORDS) - 8;
	expect(STACK_NO_CFI, NONE);
	world.input.regs[DWARF_RSP] = world.input.regs[DWARF_RBP] -= 8;
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_COMPLETE);
}

/* A frame pointer into another stack, be that below. */
static void test_other_stack(void **state)
{
	struct unwind_rule rule = WITH(AT(DWARF_RBP, 16), rule_.bp = BP_AT_CFA,
				       rule_.bp_offset = -16, rule_.stack = STACK_OTHER);

	(void)state;
	begin(rule, AT(DWARF_RBP, 8));
	world.input.regs[DWARF_RBP] = word_address(2);
	world.stack[2] = word_address(70);
	world_walk(&world, 3);
	assert_int_equal(world.count, 3);
	assert_int_equal(world.frames[1], return_to(3));
	assert_int_equal(world.frames[2], return_to(70));
	for (uint8_t stack = STACK_GUESS; stack <= STACK_SAME_GUESS; stack++) {
		world.rules[0].stack = stack;
		world_walk(&world, 2);
		assert_int_equal(world.frames[1], return_to(3) | FRAME_GUESSED);
	}
	world.input.regs[DWARF_RBP] = 0;
	expect(STACK_BAD_CFA, NONE); /* this guess does not lead to another stack */
	begin(WITH(AT(DWARF_RSP, 8), rule_.bp = BP_LOST), rule);
	expect(STACK_REGISTER, AT_SP, NONE);
}

static void test_guess_leads_nowhere(void **state)
{
	static const struct {
		uint64_t address;
		int result;
	} nowhere[] = {
		{0, STACK_NO_CFI},
		{0xfff, STACK_NO_CFI},
		{FAR_AWAY, STACK_NO_MAPPING}, /* a copy may give more */
		{CALLERS + CODE_SIZE + 1, STACK_NO_MAPPING},
		{1ULL << 56, STACK_NO_CFI},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(nowhere); i++) {
		begin_guess(NO_TABLE_JIT);
		world.stack[AT_BP + 1] = nowhere[i].address;
		expect(nowhere[i].result, NONE);
	}
	/* A table that could not be made is no reason to guess. */
	begin_guess(NO_TABLE_LOST);
	expect(STACK_NO_CFI, NONE);
	begin_guess(NO_TABLE_JIT);
	world.stack[AT_BP + 1] = CALLERS + CODE_SIZE; /* behind a call that is the last */
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.count, 2);
	begin(WITH(AT(DWARF_RSP, 8), rule_.bp = BP_LOST), END);
	world.mappings[1].table = 0;
	world.mappings[1].row = NO_TABLE_NONE;
	expect(STACK_NO_CFI, AT_SP, NONE);
}

/* ---- signals --------------------------------------------------------------------------------- */

#define RESTORER 0x800000ULL

/* In the order of DWARF's numbers (psABI, figure 3.36), as the C library names what is saved. */
static const int saved_names[DWARF_REGS] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
	REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

#define SAVED(number) ((number) == 7 ? 300 : 310 + 2 * (number)) /* where it points to */

/* A handler, and what it interrupted at the callers' first byte; rsp there is at word 300. */
static void begin_signal(struct unwind_rule interrupted)
{
	static ucontext_t context;

	_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs) == SIGNAL_CONTEXT, "as in C");
	begin(WITH(AT(DWARF_RSP, 8), (rule_.bp = BP_LOST, rule_.bx = BX_LOST)), interrupted);
	world_map(&world, RESTORER, (struct unwind_rule){.cfa = CFA_SIGNAL});
	world.stack[AT_SP] = RESTORER + 1;
	for (int i = 0; i < DWARF_REGS; i++)
		context.uc_mcontext.gregs[saved_names[i]] = word_address(SAVED(i));
	context.uc_mcontext.gregs[REG_RIP] = CALLERS;
	memcpy(&world.stack[AT_SP + 1], &context,
	       SIGNAL_CONTEXT + sizeof(context.uc_mcontext.gregs));
}

static void test_signal(void **state)
{
	(void)state;
	/* All are known again, as in a leaf: also rbp and rbx, which the handler's rule lost. */
	for (int i = 0; i < DWARF_REGS; i++) {
		begin_signal(AT(i, 8));
		world_walk(&world, 4);
		assert_int_equal(world.count, 4);
		assert_int_equal(world.frames[1], RESTORER + 1);
		assert_int_equal(world.frames[2], CALLERS | FRAME_EXACT);
		assert_int_equal(world.frames[3], return_to(SAVED(i)));
	}
}

static void test_signal_ends(void **state)
{
	(void)state;
	begin_signal(END);
	world.input.regs[DWARF_RSP] = word_address(STACK_WORDS - 20);
	world.stack[STACK_WORDS - 20] = RESTORER + 1;
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_FAULT);
	assert_int_equal(world.count, 2);
	begin_signal(END);
	world.stack[AT_SP + 1 + SIGNAL_CONTEXT / 8 + REG_RIP] = 0;
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_BAD_PC);
	assert_int_equal(world.count, 2);
}

/* What a signal frame contains is no guess, even if a guess led there. */
static void test_signal_behind_guess(void **state)
{
	(void)state;
	begin_signal(END);
	world.mappings[0].table = 0;
	world.mappings[0].row = NO_TABLE_JIT;
	world.input.regs[DWARF_RBP] = word_address(AT_SP - 1);
	world.input.regs[DWARF_RSP] = word_address(AT_SP - 1);
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_COMPLETE);
	assert_int_equal(world.count, 3);
	assert_int_equal(world.frames[1], (RESTORER + 1) | FRAME_GUESSED);
	assert_int_equal(world.frames[2], CALLERS | FRAME_EXACT);
}

/* ---- edges and limits ------------------------------------------------------------------------ */

static void test_edges(void **state)
{
	struct unwind_rule gap = {.cfa = CFA_NONE, .extra = NONE_GAP};

	(void)state;
	/* The leaf is where its pc is, unless it is in a system call. */
	begin(gap, END);
	expect(STACK_GAP, NONE);
	world.input.in_syscall = true;
	expect(STACK_NO_MAPPING, NONE);
	world.input.regs[DWARF_RETURN] = LEAF + CODE_SIZE;
	expect(STACK_GAP, NONE);
	world.input.in_syscall = false;
	expect(STACK_NO_MAPPING, NONE);
	/* A row begins at 32: the caller that returns there called in the row before. */
	begin(AT(DWARF_RSP, 8), END);
	world_row(&world, 32, gap);
	world.stack[AT_SP] = CALLERS + 32;
	expect(STACK_COMPLETE, 31, NONE);
	world.stack[AT_SP] = CALLERS + 33;
	expect(STACK_GAP, 32, NONE);
	world.input.regs[DWARF_RETURN] = CALLERS + 31;
	expect(STACK_COMPLETE, NONE);
	world.input.regs[DWARF_RETURN] = CALLERS + 32;
	expect(STACK_GAP, NONE);
	/* The same at a mapping's. */
	begin(AT(DWARF_RSP, 8), END);
	world.stack[AT_SP] = CALLERS;
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_NO_MAPPING);
	assert_int_equal(world.count, 2);
	world.stack[AT_SP] = CALLERS + CODE_SIZE;
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_COMPLETE);
}

static void test_limit(void **state)
{
	(void)state;
	begin(AT(DWARF_RSP, 8), AT(DWARF_RSP, 8));
	world_row(&world, AT_SP + 4, END);
	world_walk(&world, 0);
	assert_int_equal(world.result, STACK_TRUNCATED);
	assert_int_equal(world.count, 0);
	world_walk(&world, 5);
	check(STACK_TRUNCATED, (const int[]){AT_SP, AT_SP + 1, AT_SP + 2, AT_SP + 3, NONE});
	world_walk(&world, 6); /* as many as there are */
	check(STACK_COMPLETE,
	      (const int[]){AT_SP, AT_SP + 1, AT_SP + 2, AT_SP + 3, AT_SP + 4, NONE});
	begin(AT(DWARF_RSP, 8), AT(DWARF_RSP, 8));
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_TRUNCATED);
	assert_int_equal(world.count, MAX_FRAMES);
}

static void test_search(void **state)
{
	struct unwind_row rows[100];

	(void)state;
	for (int round = 0; round < 200; round++) {
		size_t count = 1 + random_below(ARRAY_LEN(rows)), last = 0;
		uint32_t pc = round % 10 ? random_below(1000) : UINT32_MAX;

		for (size_t i = 0; i < count; i++)
			rows[i].pc = i ? rows[i - 1].pc + 1 + random_below(10) : 0;
		for (size_t i = 0; i < count; i++)
			last = rows[i].pc <= pc ? i : last;
		assert_ptr_equal(walk_user_search(rows, count, pc), &rows[last]);
	}
}

/* ---- random stacks --------------------------------------------------------------------------- */

#define DEPTH	  40
#define FUNCTIONS 15

/* What a function does: its frame in words, and where it keeps its caller's rbp and rbx. */
typedef struct Function {
	int words;
	int bp_word, bx_word; /* below the CFA; 0: it leaves them alone */
	bool by_bp;	      /* its CFA is found by rbp, which it sets to CFA - 16 */
} Function;

static struct unwind_rule rule_of(const Function *function)
{
	struct unwind_rule rule = AT(DWARF_RSP, 8 * function->words);

	if (function->by_bp)
		rule = AT(DWARF_RBP, 16);
	if (function->bp_word) {
		rule.bp = BP_AT_CFA;
		rule.bp_offset = -8 * function->bp_word;
	}
	if (function->bx_word) {
		rule.bx = BX_AT_CFA;
		rule.bx_offset = -8 * function->bx_word;
	}
	return rule;
}

static Function random_function(void)
{
	Function function = {.words = 4 + random_below(20), .by_bp = random_below(3) == 0};

	if (function.by_bp || random_below(2))
		function.bp_word = 2;
	if (random_below(2))
		function.bx_word = 3;
	return function;
}

/*
 * Calls from the outermost one inwards, as a processor would do them; then the walk must find the
 * same way back. Function 0 is the outermost. Returns how many return addresses there are, and in
 * which words.
 */
static size_t make_calls(const Function *functions, int *ret_called, size_t *ret_words)
{
	uint64_t *regs = world.input.regs, word = STACK_WORDS - 2, count = 0, bp = FAR_AWAY;

	for (int i = 0; i < DEPTH; i++) {
		int callee = 1 + random_below(FUNCTIONS - 1);
		const Function *function = &functions[callee];

		ret_called[i] = callee;
		/* Back to its caller, which is the one before. */
		world.stack[word - 1] = CALLERS + (i ? 16 * ret_called[i - 1] : 0) + 8;
		ret_words[count++] = word - 1;
		if (function->bp_word)
			world.stack[word - function->bp_word] = bp;
		if (function->by_bp)
			bp = word_address(word - 2);
		word -= function->words;
	}
	regs[DWARF_RSP] = word_address(word);
	regs[DWARF_RBP] = bp;
	regs[DWARF_RETURN] = CALLERS + 16 * ret_called[DEPTH - 1] + 4;
	return count;
}

static bool is_as_called(const int *called)
{
	world_walk(&world, MAX_FRAMES);
	if (world.result != STACK_COMPLETE || world.count != DEPTH + 1)
		return false;
	for (size_t i = 1; i < world.count; i++) {
		int caller = i == DEPTH ? 0 : called[DEPTH - 1 - i];

		if (world.frames[i] != CALLERS + 16 * caller + 8)
			return false;
	}
	return true;
}

static void test_random(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		Function functions[FUNCTIONS];
		int called[DEPTH];
		size_t words[DEPTH], count;

		world_begin(&world);
		world_map(&world, CALLERS, END);
		for (int i = 1; i < FUNCTIONS; i++) {
			functions[i] = random_function();
			world_row(&world, 16 * i, rule_of(&functions[i]));
		}
		count = make_calls(functions, called, words);
		if (!is_as_called(called)) {
			print_error("WALLPROF_SEED=%s: round %d\n", getenv("WALLPROF_SEED") ?: "1",
				    round);
			fail();
		}
		/* If any of the return addresses is altered, it is another stack. */
		world.stack[words[random_below(count)]] += 1;
		assert_false(is_as_called(called));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cfa_register),
		cmocka_unit_test(test_cfa_dereferenced),
		cmocka_unit_test(test_cfa_plt),
		cmocka_unit_test(test_cfa_below),
		cmocka_unit_test(test_return_in_register),
		cmocka_unit_test(test_return_address),
		cmocka_unit_test(test_no_rule),
		cmocka_unit_test(test_no_table),
		cmocka_unit_test(test_bp),
		cmocka_unit_test(test_bx),
		cmocka_unit_test(test_over_frames),
		cmocka_unit_test(test_guess),
		cmocka_unit_test(test_guess_bounds),
		cmocka_unit_test(test_other_stack),
		cmocka_unit_test(test_guess_leads_nowhere),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_signal_ends),
		cmocka_unit_test(test_signal_behind_guess),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
