/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_go.h"
#include "unwind_code.h"
#include <string.h>

#define WORD 8
/* Of what returns from signal handlers: nothing else is in it but padding. */
#define SIGRETURN_MAX 32

static const struct unwind_rule outermost = {.cfa = CFA_END};
static const struct unwind_rule signal_frame = {.cfa = CFA_SIGNAL};
static const struct unwind_rule other_stack = {
	.cfa = CFA_REG,
	.cfa_reg = DWARF_RBP,
	.cfa_offset = 2 * WORD,
	.bp = BP_AT_CFA,
	.bp_offset = -2 * WORD,
	.guess = 1,
};
static const struct unwind_rule broken = {.cfa = CFA_NONE, .extra = NONE_BROKEN};

/* Whether and from where on the caller's rbp lies below the return address. */
typedef struct Saved {
	bool known; /* it has been looked whether it is */
	bool ever;
	uint64_t from;
} Saved;

typedef struct Run {
	const PclntabFunction *function;
	const uint8_t *code;
	CfiEmit emit;
	void *user;
	Saved saved;
} Run;

/* The length of mov %rbp,depth(%rsp), or 0. */
static unsigned stores_bp(const uint8_t *code, uint64_t size, int32_t depth)
{
	static const uint8_t near[] = {0x48, 0x89, 0x6c, 0x24}, far[] = {0x48, 0x89, 0xac, 0x24};

	if (size > sizeof(near) && !memcmp(code, near, sizeof(near)) &&
	    (int8_t)code[sizeof(near)] == depth)
		return sizeof(near) + 1;
	if (size >= sizeof(far) + sizeof(depth) && !memcmp(code, far, sizeof(far)) &&
	    !memcmp(code + sizeof(far), &depth, sizeof(depth)))
		return sizeof(far) + sizeof(depth);
	return 0;
}

/*
 * Where the stack first grows, rbp is saved or not at all: it is pushed (since Go 1.21) or stored
 * by the next instruction. Assemblers' functions may do neither.
 */
static void look_for_bp(Run *run, uint64_t at, int32_t depth)
{
	uint64_t place = at - run->function->start;
	unsigned length = 0;

	run->saved = (Saved){.known = true, .from = at};
	if (!run->code || place == 0)
		return;
	if (depth == WORD && run->code[place - 1] == 0x55)
		run->saved.ever = true;
	else
		length = stores_bp(run->code + place, run->function->end - at, depth - WORD);
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
	};

	if (from < to)
		run->emit(run->user, from, to, unwind_rule_words(&rule));
}

static void emit_depth(Run *run, const PclntabValues *values)
{
	int32_t depth = values->value;
	uint64_t saved_from = values->to;

	if (depth < 0 || depth > INT32_MAX - WORD) {
		run->emit(run->user, values->from, values->to, unwind_rule_words(&broken));
		return;
	}
	if (depth >= WORD && !run->saved.known)
		look_for_bp(run, values->from, depth);
	if (depth >= WORD && run->saved.ever)
		saved_from = MIN(MAX(values->from, run->saved.from), values->to);
	emit_part(run, values->from, saved_from, depth, /* saved= */ false);
	emit_part(run, saved_from, values->to, depth, /* saved= */ true);
}

/* Whether nothing but breakpoints follows: what was before holds on, as in any other hole. */
static bool is_padding(const Run *run, uint64_t from)
{
	static const uint8_t breakpoint = 0xcc;

	for (uint64_t at = from; at < run->function->end; at++)
		if (!run->code || run->code[at - run->function->start] != breakpoint)
			return false;
	return true;
}

static void emit_depths(Run *run, const Pclntab *table)
{
	PclntabValues values = pclntab_stack(table, run->function);
	uint64_t end = run->function->start;

	while (pclntab_next(&values)) {
		emit_depth(run, &values);
		end = values.to;
	}
	if (end < run->function->end && !is_padding(run, end))
		run->emit(run->user, end, run->function->end, unwind_rule_words(&broken));
}

static bool is_sigreturn(const PclntabFunction *function, const uint8_t *code)
{
	uint64_t size = function->end - function->start;

	return code && size <= SIGRETURN_MAX && unwind_code_sigreturn(code, size) == code;
}

/* Of a function with one rule; NULL: it has depths. */
static const struct unwind_rule *rule_of(const Pclntab *table, const PclntabFunction *function,
					 const uint8_t *code)
{
	if (function->is_top)
		return &outermost;
	if (is_sigreturn(function, code))
		return &signal_frame;
	if (!function->moves_stack)
		return NULL;
	return !strcmp(pclntab_name(table, function->name), "runtime.mcall") ? &outermost
									     : &other_stack;
}

void unwind_go_run(const Pclntab *table, const PclntabFunction *function, const uint8_t *code,
		   CfiEmit emit, void *user)
{
	Run run = {.function = function, .code = code, .emit = emit, .user = user};
	const struct unwind_rule *rule = rule_of(table, function, code);

	if (rule)
		emit(user, function->start, function->end, unwind_rule_words(rule));
	else
		emit_depths(&run, table);
}
