/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_go.h"
#include "unwind_code.h"
#include <string.h>

#define WORD 8
/* A signal restorer has nothing but these bytes and padding. */
#define SIGRETURN_MAX 32

static const struct unwind_rule outermost = {.cfa = CFA_END};
static const struct unwind_rule signal_frame = {.cfa = CFA_SIGNAL};
static const struct unwind_rule unknown = {.cfa = CFA_NONE, .extra = NONE_REGISTER};
static const struct unwind_rule broken = {.cfa = CFA_NONE, .extra = NONE_BROKEN};

/* Whether the caller's rbp is saved below the return address, and from where on. */
typedef struct Saved {
	bool known; /* it is determined whether it is saved */
	bool ever;
	uint64_t from;
} Saved;

typedef struct Run {
	const PclntabFunction *function;
	const uint8_t *code;
	uint64_t end; /* the depths are known up to there */
	CfiEmit emit;
	void *user;
	Saved saved;
} Run;

/* Returns the length of mov %rbp,depth(%rsp), or 0. */
static unsigned stores_bp(const uint8_t *code, uint64_t size, int32_t depth)
{
	static const uint8_t none[] = {0x48, 0x89, 0x2c, 0x24}, near[] = {0x48, 0x89, 0x6c, 0x24},
			     far[] = {0x48, 0x89, 0xac, 0x24};

	if (depth == 0 && size >= sizeof(none) && !memcmp(code, none, sizeof(none)))
		return sizeof(none);
	if (size > sizeof(near) && !memcmp(code, near, sizeof(near)) &&
	    (int8_t)code[sizeof(near)] == depth)
		return sizeof(near) + 1;
	if (size >= sizeof(far) + sizeof(depth) && !memcmp(code, far, sizeof(far)) &&
	    !memcmp(code + sizeof(far), &depth, sizeof(depth)))
		return sizeof(far) + sizeof(depth);
	return 0;
}

/* Returns whether push %rbp ends there, and mov %rsp,%rbp follows. */
static bool pushes_bp(const uint8_t *code, uint64_t size)
{
	static const uint8_t sets_bp[] = {0x48, 0x89, 0xe5};

	return code[-1] == 0x55 && size >= sizeof(sets_bp) &&
	       !memcmp(code, sets_bp, sizeof(sets_bp));
}

/*
 * Where the stack first grows, rbp is saved or not at all: it is pushed (since Go 1.21) or stored
 * by the next instruction. Functions in assembly may do neither.
 */
static void find_saved_bp(Run *run, uint64_t at, int32_t depth)
{
	uint64_t offset = at - run->function->start, size = run->function->end - at;
	unsigned length = 0;

	run->saved = (Saved){.known = true, .from = at};
	if (offset == 0)
		return;
	if (depth == WORD && pushes_bp(run->code + offset, size))
		run->saved.ever = true;
	else
		length = stores_bp(run->code + offset, size, depth - WORD);
	run->saved.ever |= length > 0;
	run->saved.from += length;
}

static void emit_part(const Run *run, uint64_t from, uint64_t to, int32_t depth, bool saved)
{
	struct unwind_rule rule = {
		.cfa = CFA_REG,
		.cfa_reg = DWARF_RSP,
		.cfa_offset = depth + WORD,
		.bp = saved ? BP_AT_CFA : BP_SAME,
		.bp_offset = saved ? -2 * WORD : 0,
		.bx = BX_LOST, /* Go's functions save no registers but rbp */
	};

	if (from < to)
		run->emit(run->user, from, to, unwind_rule_words(&rule));
}

/* Matches a pop into one of r8 to r15. Returns the register, or 0. */
static unsigned pops(const uint8_t *code)
{
	return code[-2] == 0x41 && (code[-1] & 0xf8) == 0x58 ? 8 + (code[-1] & 7) : 0;
}

/*
 * The return address is in a register, as around vfork (syscall.rawVforkSyscall): the child would
 * overwrite it on the stack that it shares with its parent.
 */
static void emit_popped(const Run *run, uint64_t from, uint64_t to)
{
	uint64_t offset = from - run->function->start;
	unsigned reg = offset >= 2 ? pops(run->code + offset) : 0;
	struct unwind_rule rule = {
		.cfa = CFA_REG,
		.cfa_reg = DWARF_RSP,
		.ra = RA_REG + reg,
		.bp = BP_SAME,
		.bx = BX_LOST,
	};

	run->emit(run->user, from, to, unwind_rule_words(reg ? &rule : &broken));
}

static void emit_depth(Run *run, const PclntabValues *values)
{
	int32_t depth = values->value;
	uint64_t to = MIN(values->to, run->end), saved_from = to;

	if (depth == -WORD) {
		emit_popped(run, values->from, to);
		return;
	}
	if (depth < 0 || depth > INT32_MAX - WORD) {
		run->emit(run->user, values->from, to, unwind_rule_words(&broken));
		return;
	}
	if (depth >= WORD && !run->saved.known)
		find_saved_bp(run, values->from, depth);
	if (depth >= WORD && run->saved.ever)
		saved_from = MIN(MAX(values->from, run->saved.from), to);
	emit_part(run, values->from, saved_from, depth, /* saved= */ false);
	emit_part(run, saved_from, to, depth, /* saved= */ true);
}

/* Returns whether only breakpoints follow: the previous rule then holds on, as in any other gap. */
static bool is_padding(const Run *run, uint64_t from)
{
	static const uint8_t breakpoint = 0xcc;

	for (uint64_t at = from; at < run->end; at++)
		if (run->code[at - run->function->start] != breakpoint)
			return false;
	return true;
}

static void emit_depths(Run *run, const Pclntab *table)
{
	PclntabValues values = pclntab_stack(table, run->function);
	uint64_t end = run->function->start;

	while (end < run->end && pclntab_next(&values)) {
		emit_depth(run, &values);
		end = values.to;
	}
	if (end < run->end && !is_padding(run, end))
		run->emit(run->user, end, run->end, unwind_rule_words(&broken));
}

/* ---- from one stack to another ------------------------------------------------------ */

/* Returns the length of an instruction that sets rsp other than by adding a number. */
static unsigned sets_stack(const uint8_t *code, uint64_t size)
{
	if (size < 4 || (code[0] & 0xf8) != 0x48)
		return 0;
	if (code[1] == 0x8b && (code[0] & 6) == 0 && (code[2] & 0xf8) == 0x60 && code[2] != 0x64)
		return 4; /* mov number(%any),%rsp */
	if (code[1] == 0x8b && (code[0] & 6) == 0 && (code[2] & 0xf8) == 0xe0)
		return 3; /* mov %any,%rsp */
	if (code[1] == 0x89 && (code[0] & 3) == 0 && (code[2] & 0xc7) == 0xc4)
		return 3; /* the same */
	if (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xe4)
		return 4; /* and $number,%rsp */
	return 0;
}

/* Returns the address after the first one of a function; the function's start if there is none. */
static uint64_t after_switch(const PclntabFunction *function, const uint8_t *code)
{
	uint64_t size = function->end - function->start;

	for (uint64_t at = 0; at < size; at++) {
		unsigned length = sets_stack(code + at, size - at);

		if (length)
			return function->start + at + length;
	}
	return function->start;
}

/* Returns the rule that holds after the switch. */
static struct unwind_rule rule_after_switch(const Run *run, const char *name)
{
	/* The scheduler has left the goroutine for good. */
	if (!strcmp(name, "runtime.mcall"))
		return outermost;
	/*
	 * It continues in a goroutine whose stack has been moved by then; rbp is 0, or of the old
	 * one.
	 */
	if (!strcmp(name, "runtime.morestack"))
		return unknown;
	return (struct unwind_rule){
		.cfa = CFA_REG,
		.cfa_reg = DWARF_RBP,
		.cfa_offset = 2 * WORD,
		.bp = BP_AT_CFA,
		.bp_offset = -2 * WORD,
		.bx = BX_LOST,
		.stack = run->saved.ever ? STACK_OTHER : STACK_GUESS,
	};
}

/*
 * Where a function that has saved rbp returns, with nothing on the stack any more, it is back on
 * the caller's stack, and rbp is the caller's too.
 */
static void emit_after_switch(const Run *run, const Pclntab *table, const struct unwind_rule *rule)
{
	PclntabValues values = pclntab_stack(table, run->function);
	uint64_t from = run->end;

	while (run->saved.ever && pclntab_next(&values)) {
		if (values.value != 0 || values.from < from)
			continue;
		if (from < values.from)
			run->emit(run->user, from, values.from, unwind_rule_words(rule));
		emit_part(run, values.from, values.to, 0, /* saved= */ false);
		from = values.to;
	}
	if (from < run->function->end)
		run->emit(run->user, from, run->function->end, unwind_rule_words(rule));
}

static void run_switch(Run *run, const Pclntab *table)
{
	struct unwind_rule rule;

	run->end = after_switch(run->function, run->code);
	emit_depths(run, table);
	rule = rule_after_switch(run, pclntab_name(table, run->function->name));
	emit_after_switch(run, table, &rule);
}

/* ---- all of a function ---------------------------------------------------------------- */

static bool is_sigreturn(const PclntabFunction *function, const uint8_t *code)
{
	uint64_t size = function->end - function->start;

	return size <= SIGRETURN_MAX && unwind_code_sigreturn(code, size) == code;
}

/*
 * Returns whether the function is the outermost one, or continues with another goroutine and does
 * not return.
 */
static bool is_outermost(const PclntabFunction *function, const char *name)
{
	static const char *const others[] = {"_rt0_amd64", "_rt0_amd64_linux",
					     "runtime.gopreempt_m", "runtime.goschedImpl",
					     "runtime.preemptPark"};

	/* It is a signal handler's: the interrupted code follows. */
	if (function->is_top)
		return strcmp(name, "runtime.sigtramp") != 0;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (!strcmp(name, others[i]))
			return true;
	return false;
}

void unwind_go_run(const Pclntab *table, const PclntabFunction *function, const uint8_t *code,
		   CfiEmit emit, void *user)
{
	Run run = {.function = function,
		   .code = code,
		   .end = function->end,
		   .emit = emit,
		   .user = user};
	const struct unwind_rule *rule = NULL;

	if (is_outermost(function, pclntab_name(table, function->name)))
		rule = &outermost;
	else if (is_sigreturn(function, code))
		rule = &signal_frame;
	if (rule)
		emit(user, function->start, function->end, unwind_rule_words(rule));
	else if (function->moves_stack)
		run_switch(&run, table);
	else
		emit_depths(&run, table);
}
