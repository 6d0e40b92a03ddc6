/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_state.h"
#include <string.h>

#define DEPTH_MAX (1 << 30) /* bytes; larger frames are not followed */

const UnwindState unwind_state_entered = {
	.known = true, .sp_known = true, .sp_to_cfa = UNWIND_SLOT};

static bool same_saved(UnwindSaved a, UnwindSaved b)
{
	return a.saved_at == b.saved_at && a.changed == b.changed;
}

bool unwind_state_same(const UnwindState *a, const UnwindState *b)
{
	return a->known == b->known && a->guessed == b->guessed && a->outermost == b->outermost &&
	       a->system_call == b->system_call && a->sp_known == b->sp_known &&
	       a->weak == b->weak && a->broken == b->broken && a->bp_known == b->bp_known &&
	       a->ra == b->ra && (!a->sp_known || a->sp_to_cfa == b->sp_to_cfa) &&
	       (!a->bp_known || a->bp_to_cfa == b->bp_to_cfa) && same_saved(a->bp, b->bp) &&
	       same_saved(a->bx, b->bx);
}

static UnwindSaved merge_saved(UnwindSaved a, UnwindSaved b)
{
	return (UnwindSaved){.saved_at = a.saved_at == b.saved_at ? a.saved_at : 0,
			     .changed = a.changed || b.changed};
}

UnwindState unwind_state_merge(const UnwindState *a, const UnwindState *b)
{
	if (!a->known || !b->known)
		return a->known ? *a : *b;
	return (UnwindState){
		.known = true,
		.guessed = a->guessed || b->guessed,
		.outermost = a->outermost && b->outermost,
		.system_call = a->system_call || b->system_call,
		.weak = a->weak && b->weak,
		.broken = a->broken || b->broken,
		.sp_known = a->sp_known && b->sp_known && a->sp_to_cfa == b->sp_to_cfa,
		.bp_known = a->bp_known && b->bp_known && a->bp_to_cfa == b->bp_to_cfa,
		.ra = a->ra == b->ra ? a->ra : UNWIND_RA_LOST,
		.sp_to_cfa = a->sp_to_cfa,
		.bp_to_cfa = a->bp_to_cfa,
		.bp = merge_saved(a->bp, b->bp),
		.bx = merge_saved(a->bx, b->bx),
	};
}

static uint8_t dwarf_register(uint8_t reg)
{
	static const uint8_t numbers[] = {0, 2, 1, DWARF_RBX, DWARF_RSP, DWARF_RBP, 4, 5};

	return reg < ARRAY_LEN(numbers) ? numbers[reg] : reg;
}

static UnwindSaved *saved_register(UnwindState *state, uint8_t reg)
{
	return reg == X86_RBP ? &state->bp : reg == X86_RBX ? &state->bx : NULL;
}

/* The register gets an unknown value. */
static void change_register(UnwindState *state, uint8_t reg)
{
	UnwindSaved *saved = saved_register(state, reg);

	if (saved)
		saved->changed = true;
	if (reg == X86_RBP)
		state->bp_known = false;
	if (reg == X86_RSP)
		state->sp_known = false;
	if (state->ra == RA_REG + dwarf_register(reg))
		state->ra = UNWIND_RA_LOST;
}

static void change_registers(UnwindState *state, uint16_t registers)
{
	for (uint8_t reg = 0; registers; reg++, registers >>= 1)
		if (registers & 1)
			change_register(state, reg);
}

/* The stack slot of the saved value was freed or overwritten. */
static void forget_saved(UnwindSaved *saved)
{
	saved->saved_at = saved->changed ? UNWIND_SAVED_NOWHERE : 0;
}

/* A value that was saved below the new stack pointer is lost: a callee may overwrite it. */
static void free_slot(UnwindSaved *saved, int32_t sp_to_cfa)
{
	if (saved->saved_at < 0 && sp_to_cfa < -saved->saved_at)
		forget_saved(saved);
}

static void set_sp(UnwindState *state, bool known, int64_t to_cfa)
{
	/* A function never pops more than it has pushed. */
	state->broken |= known && to_cfa < 0;
	state->sp_known = known && to_cfa >= 0 && to_cfa < DEPTH_MAX;
	state->sp_to_cfa = state->sp_known ? to_cfa : 0;
	if (!state->sp_known)
		return;
	free_slot(&state->bp, state->sp_to_cfa);
	free_slot(&state->bx, state->sp_to_cfa);
	if (state->sp_to_cfa < UNWIND_SLOT && state->ra == RA_AT_CFA)
		state->ra = UNWIND_RA_LOST;
}

/* Sets *ret to CFA - (base + number). Returns false if the base is not known. */
static bool distance_of(const UnwindState *state, uint8_t base, int32_t number, int64_t *ret)
{
	*ret = (int64_t)(base == X86_RSP ? state->sp_to_cfa : state->bp_to_cfa) - number;
	return base == X86_RSP ? state->sp_known : state->bp_known;
}

/* A store to the slot of a saved value loses that value, unless it stores the same register. */
static void overwrite(UnwindState *state, uint8_t reg, int64_t to_cfa)
{
	if (state->bp.saved_at == -to_cfa && reg != X86_RBP)
		forget_saved(&state->bp);
	if (state->bx.saved_at == -to_cfa && reg != X86_RBX)
		forget_saved(&state->bx);
	if (to_cfa == UNWIND_SLOT && state->ra == RA_AT_CFA)
		state->ra = UNWIND_RA_LOST;
}

static void store(UnwindState *state, uint8_t reg, int64_t to_cfa)
{
	UnwindSaved *saved = saved_register(state, reg);

	overwrite(state, reg, to_cfa);
	/* The first word below the CFA is the return address. */
	if (saved && !saved->changed && !saved->saved_at && to_cfa > UNWIND_SLOT &&
	    to_cfa < DEPTH_MAX)
		saved->saved_at = -to_cfa;
}

static void load(UnwindState *state, uint8_t reg, bool known, int64_t to_cfa)
{
	UnwindSaved *saved = saved_register(state, reg);
	bool restored = saved && known && saved->saved_at < 0 && saved->saved_at == -to_cfa;

	change_register(state, reg);
	if (restored)
		*saved = (UnwindSaved){};
}

static void push(UnwindState *state, uint8_t reg)
{
	bool known = state->sp_known;

	set_sp(state, known, (int64_t)state->sp_to_cfa + UNWIND_SLOT);
	if (!known)
		return;
	if (reg == X86_NONE) {
		overwrite(state, reg, state->sp_to_cfa);
		return;
	}
	if (state->sp_to_cfa == UNWIND_SLOT && state->ra == RA_REG + dwarf_register(reg))
		state->ra = RA_AT_CFA;
	else
		store(state, reg, state->sp_to_cfa);
}

static void pop(UnwindState *state, uint8_t reg)
{
	bool known = state->sp_known;
	int32_t to_cfa = state->sp_to_cfa;

	if (reg == X86_RSP)
		known = false;
	else if (reg != X86_NONE)
		load(state, reg, known, to_cfa);
	if (known && to_cfa == UNWIND_SLOT && state->ra == RA_AT_CFA)
		state->ra = reg == X86_NONE ? UNWIND_RA_LOST : RA_REG + dwarf_register(reg);
	set_sp(state, known, (int64_t)to_cfa - UNWIND_SLOT);
}

static void set(UnwindState *state, const Instruction *instruction)
{
	int64_t to_cfa;
	bool known = distance_of(state, instruction->base, instruction->number, &to_cfa);

	change_register(state, instruction->reg);
	if (instruction->reg == X86_RSP)
		set_sp(state, known, to_cfa);
	if (instruction->reg == X86_RBP && known && to_cfa > -DEPTH_MAX && to_cfa < DEPTH_MAX) {
		state->bp_known = true;
		state->bp_to_cfa = to_cfa;
	}
}

/*
 * The psABI marks the outermost frame by a frame pointer of 0. A function that clears rbp without
 * saving it cannot return. It is the first function of a program, or, after the system call that
 * creates it, of a thread.
 */
static void zero(UnwindState *state, uint8_t reg)
{
	if (reg == X86_RBP && state->system_call && !state->bp.changed && !state->bp.saved_at)
		state->outermost = true;
	change_register(state, reg);
}

static void leave_frame(UnwindState *state)
{
	set_sp(state, state->bp_known, state->bp_to_cfa);
	pop(state, X86_RBP);
}

/* Call-clobbered registers are not tracked, except for a return address in a register. */
static void call(UnwindState *state)
{
	if (state->ra != RA_AT_CFA)
		state->ra = UNWIND_RA_LOST;
}

void unwind_state_change(UnwindState *state, const Instruction *instruction)
{
	int64_t to_cfa;
	bool known;

	change_registers(state, instruction->writes);
	switch ((enum instruction_does)instruction->does) {
	case DOES_PUSH:
		push(state, instruction->reg);
		break;
	case DOES_POP:
		pop(state, instruction->reg);
		break;
	case DOES_SET:
		set(state, instruction);
		break;
	case DOES_STORE:
		if (distance_of(state, instruction->base, instruction->number, &to_cfa))
			store(state, instruction->reg, to_cfa);
		break;
	case DOES_LOAD:
		known = distance_of(state, instruction->base, instruction->number, &to_cfa);
		load(state, instruction->reg, known, to_cfa);
		break;
	case DOES_ZERO:
		zero(state, instruction->reg);
		break;
	case DOES_LEAVE:
		leave_frame(state);
		break;
	case DOES_ADDRESS:
		change_register(state, instruction->reg);
		break;
	case DOES_SYSTEM_CALL:
		state->system_call = true;
		break;
	case DOES_CALL:
	case DOES_CALL_SOMEWHERE:
		call(state);
		break;
	case DOES_UNKNOWN:
	case DOES_NOTHING:
	case DOES_NOP:
	case DOES_BRANCH:
	case DOES_JUMP:
	case DOES_JUMP_SOMEWHERE:
	case DOES_RETURN:
	case DOES_STOP:
		break;
	}
}

static bool is_lost(const UnwindSaved *saved)
{
	return saved->changed && saved->saved_at;
}

bool unwind_state_returns(const UnwindState *state)
{
	return state->sp_known && state->sp_to_cfa == UNWIND_SLOT && state->ra == RA_AT_CFA &&
	       !is_lost(&state->bp) && !is_lost(&state->bx);
}

/* ---- rules ---------------------------------------------------------------------------------- */

static bool put_saved(const UnwindSaved *saved, uint8_t same_rule, uint8_t at_cfa, uint8_t lost,
		      uint8_t *ret_rule, int16_t *ret_offset)
{
	*ret_offset = 0;
	*ret_rule = saved->changed ? lost : same_rule;
	if (!saved->changed || saved->saved_at >= 0)
		return true;
	if (saved->saved_at < INT16_MIN)
		return false;
	*ret_rule = at_cfa;
	*ret_offset = saved->saved_at;
	return true;
}

/* A frame begins with push %rbp; mov %rsp,%rbp. */
static bool has_frame_pointer(const UnwindState *state)
{
	return state->bp_known && state->bp_to_cfa == 2 * UNWIND_SLOT &&
	       state->bp.saved_at == -2 * UNWIND_SLOT;
}

struct unwind_rule unwind_state_rule(const UnwindState *state, const struct unwind_rule *unknown)
{
	struct unwind_rule rule = {.cfa = CFA_REG};
	bool by_bp = has_frame_pointer(state) || !state->sp_known;

	if (state->outermost)
		return state->guessed ? *unknown : (struct unwind_rule){.cfa = CFA_END};
	if ((!state->sp_known && !state->bp_known) || state->ra == UNWIND_RA_LOST ||
	    !put_saved(&state->bp, BP_SAME, BP_AT_CFA, BP_LOST, &rule.bp, &rule.bp_offset) ||
	    !put_saved(&state->bx, BX_SAME, BX_AT_CFA, BX_LOST, &rule.bx, &rule.bx_offset))
		return *unknown;
	rule.cfa_reg = by_bp ? DWARF_RBP : DWARF_RSP;
	rule.cfa_offset = by_bp ? state->bp_to_cfa : state->sp_to_cfa;
	rule.ra = state->ra;
	rule.stack = state->guessed ? STACK_SAME_GUESS : STACK_SAME;
	return rule;
}
