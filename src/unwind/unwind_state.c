/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_state.h"
#include <string.h>

#define DEPTH_MAX (1 << 30) /* bytes; larger frames are not followed */

const UnwindState unwind_state_entered = {
	.known = true, .sp_known = true, .sp_to_cfa = UNWIND_SLOT};

/* A place on the stack, by its distance from the CFA or from the address that rsp was aligned to.
 */
typedef struct Place {
	enum { PLACE_UNKNOWN, PLACE_BY_CFA, PLACE_BY_ALIGNED } by;
	int64_t to; /* the CFA or the aligned address, minus the place */
} Place;

static bool same_saved(UnwindSaved a, UnwindSaved b)
{
	return a.saved_at == b.saved_at && a.changed == b.changed;
}

/* What is not known of both is not compared. */
static bool same_copy(const UnwindAligned *a, const UnwindAligned *b)
{
	return a->copy_known && b->copy_known && a->copy == b->copy &&
	       a->copy_to_cfa == b->copy_to_cfa;
}

static bool same_slot(const UnwindAligned *a, const UnwindAligned *b)
{
	return a->slot_known && b->slot_known && a->slot == b->slot &&
	       a->slot_to_cfa == b->slot_to_cfa;
}

/* Compares with the state where the two join: nothing that a knows is unknown there. */
static bool same_aligned(const UnwindAligned *a, const UnwindAligned *b)
{
	return a->sp_known == b->sp_known && a->bp_known == b->bp_known &&
	       a->copy_known == b->copy_known && a->slot_known == b->slot_known &&
	       a->bp_saved == b->bp_saved && (!a->sp_known || a->sp_to == b->sp_to) &&
	       (!a->bp_known || a->bp_to == b->bp_to) && (!a->copy_known || same_copy(a, b)) &&
	       (!a->slot_known || same_slot(a, b)) && (!a->bp_saved || a->bp_at == b->bp_at);
}

static UnwindAligned merge_aligned(const UnwindAligned *a, const UnwindAligned *b)
{
	UnwindAligned both = *a;

	both.sp_known = a->sp_known && b->sp_known && a->sp_to == b->sp_to;
	both.bp_known = a->bp_known && b->bp_known && a->bp_to == b->bp_to;
	both.copy_known = same_copy(a, b);
	both.slot_known = same_slot(a, b);
	both.bp_saved = a->bp_saved && b->bp_saved && a->bp_at == b->bp_at;
	return both;
}

bool unwind_state_same(const UnwindState *a, const UnwindState *b)
{
	return a->known == b->known && a->guessed == b->guessed && a->outermost == b->outermost &&
	       a->system_call == b->system_call && a->sp_known == b->sp_known &&
	       a->weak == b->weak && a->broken == b->broken && a->bp_known == b->bp_known &&
	       a->ra == b->ra && (!a->sp_known || a->sp_to_cfa == b->sp_to_cfa) &&
	       (!a->bp_known || a->bp_to_cfa == b->bp_to_cfa) && same_saved(a->bp, b->bp) &&
	       same_saved(a->bx, b->bx) && same_aligned(&a->aligned, &b->aligned);
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
		.aligned = merge_aligned(&a->aligned, &b->aligned),
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
		state->bp_known = state->aligned.bp_known = false;
	if (reg == X86_RSP)
		state->sp_known = state->aligned.sp_known = false;
	if (reg == state->aligned.copy)
		state->aligned.copy_known = false;
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

static void set_sp_by_cfa(UnwindState *state, int64_t to_cfa)
{
	/* A function never pops more than it has pushed. */
	state->broken |= to_cfa < 0;
	state->sp_known = to_cfa >= 0 && to_cfa < DEPTH_MAX;
	state->sp_to_cfa = state->sp_known ? to_cfa : 0;
	if (!state->sp_known)
		return;
	state->aligned.slot_known = state->aligned.bp_saved = false;
	free_slot(&state->bp, state->sp_to_cfa);
	free_slot(&state->bx, state->sp_to_cfa);
	if (state->sp_to_cfa < UNWIND_SLOT && state->ra == RA_AT_CFA)
		state->ra = UNWIND_RA_LOST;
}

/* Words below the new stack pointer are lost here, too. */
static void set_sp_by_aligned(UnwindAligned *aligned, int64_t to)
{
	aligned->sp_known = to >= 0 && to < DEPTH_MAX;
	aligned->sp_to = aligned->sp_known ? to : 0;
	aligned->slot_known &= !aligned->sp_known || aligned->slot <= to;
	aligned->bp_saved &= !aligned->sp_known || aligned->bp_at <= to;
}

static Place place_of(const UnwindState *state, uint8_t reg)
{
	const UnwindAligned *aligned = &state->aligned;

	if (reg == X86_RSP && state->sp_known)
		return (Place){PLACE_BY_CFA, state->sp_to_cfa};
	if (reg == X86_RBP && state->bp_known)
		return (Place){PLACE_BY_CFA, state->bp_to_cfa};
	if (reg == aligned->copy && aligned->copy_known)
		return (Place){PLACE_BY_CFA, aligned->copy_to_cfa};
	if (reg == X86_RSP && aligned->sp_known)
		return (Place){PLACE_BY_ALIGNED, aligned->sp_to};
	if (reg == X86_RBP && aligned->bp_known)
		return (Place){PLACE_BY_ALIGNED, aligned->bp_to};
	return (Place){PLACE_UNKNOWN, 0};
}

/* Returns the place of base + number. */
static Place place_from(const UnwindState *state, uint8_t base, int32_t number)
{
	Place place = place_of(state, base);

	place.to -= number;
	return place;
}

static void set_register(UnwindState *state, uint8_t reg, Place place)
{
	bool near = place.to > -DEPTH_MAX && place.to < DEPTH_MAX;

	change_register(state, reg);
	if (reg == X86_RSP && place.by == PLACE_BY_CFA) {
		set_sp_by_cfa(state, place.to);
	} else if (reg == X86_RSP && place.by == PLACE_BY_ALIGNED) {
		set_sp_by_aligned(&state->aligned, place.to);
	} else if (reg == X86_RBP && place.by == PLACE_BY_CFA && near) {
		state->bp_known = true;
		state->bp_to_cfa = place.to;
	} else if (reg == X86_RBP && place.by == PLACE_BY_ALIGNED && near) {
		state->aligned.bp_known = true;
		state->aligned.bp_to = place.to;
	} else if (place.by == PLACE_BY_CFA && near) {
		state->aligned.copy_known = true;
		state->aligned.copy = reg;
		state->aligned.copy_to_cfa = place.to;
	}
}

/*
 * The distance from the CFA is lost, and that from an address to which rsp was aligned before. What
 * was saved at a known distance from the CFA stays.
 */
static void align(UnwindState *state)
{
	UnwindAligned *aligned = &state->aligned;

	change_register(state, X86_RSP);
	aligned->bp_known = aligned->slot_known = aligned->bp_saved = false;
	aligned->sp_known = true;
	aligned->sp_to = 0;
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

static void store_by_cfa(UnwindState *state, uint8_t reg, int64_t to_cfa)
{
	UnwindSaved *saved = saved_register(state, reg);

	overwrite(state, reg, to_cfa);
	/* The first word below the CFA is the return address. */
	if (saved && !saved->changed && !saved->saved_at && to_cfa > UNWIND_SLOT &&
	    to_cfa < DEPTH_MAX)
		saved->saved_at = -to_cfa;
}

static void store_by_aligned(UnwindState *state, uint8_t reg, int64_t to)
{
	UnwindAligned *aligned = &state->aligned;
	Place place = place_of(state, reg);

	aligned->slot_known &= aligned->slot != to;
	aligned->bp_saved &= aligned->bp_at != to;
	if (to <= -DEPTH_MAX || to >= DEPTH_MAX)
		return;
	if (reg == X86_RBP && !state->bp.changed && !state->bp.saved_at && !aligned->bp_saved) {
		aligned->bp_saved = true;
		aligned->bp_at = to;
	} else if (place.by == PLACE_BY_CFA && !aligned->slot_known) {
		aligned->slot_known = true;
		aligned->slot = to;
		aligned->slot_to_cfa = place.to;
	}
}

/* reg is X86_NONE: something else than a register is stored. */
static void store(UnwindState *state, uint8_t reg, Place place)
{
	if (place.by == PLACE_BY_CFA)
		store_by_cfa(state, reg, place.to);
	else if (place.by == PLACE_BY_ALIGNED)
		store_by_aligned(state, reg, place.to);
}

static void load(UnwindState *state, uint8_t reg, Place place)
{
	const UnwindAligned *aligned = &state->aligned;
	UnwindSaved *saved = saved_register(state, reg);
	bool by_aligned = place.by == PLACE_BY_ALIGNED;
	bool restored = saved && place.by == PLACE_BY_CFA && saved->saved_at < 0 &&
			saved->saved_at == -place.to;
	Place value = {PLACE_UNKNOWN, 0};

	if (by_aligned && aligned->slot_known && aligned->slot == place.to)
		value = (Place){PLACE_BY_CFA, aligned->slot_to_cfa};
	restored |= by_aligned && reg == X86_RBP && aligned->bp_saved && aligned->bp_at == place.to;
	set_register(state, reg, value);
	if (restored)
		*saved = (UnwindSaved){};
}

static void push(UnwindState *state, uint8_t reg)
{
	Place place = place_from(state, X86_RSP, -UNWIND_SLOT);

	if (place.by == PLACE_BY_CFA)
		set_sp_by_cfa(state, place.to);
	else if (place.by == PLACE_BY_ALIGNED)
		set_sp_by_aligned(&state->aligned, place.to);
	if (place.by == PLACE_BY_CFA && state->sp_to_cfa == UNWIND_SLOT && reg != X86_NONE &&
	    state->ra == RA_REG + dwarf_register(reg))
		state->ra = RA_AT_CFA;
	else
		store(state, reg, place);
}

static void pop(UnwindState *state, uint8_t reg)
{
	Place place = place_of(state, X86_RSP);

	if (reg != X86_NONE)
		load(state, reg, place);
	if (place.by == PLACE_BY_CFA && place.to == UNWIND_SLOT && state->ra == RA_AT_CFA)
		state->ra = reg == X86_NONE || reg == X86_RSP ? UNWIND_RA_LOST
							      : RA_REG + dwarf_register(reg);
	if (reg == X86_RSP)
		return;
	place.to -= UNWIND_SLOT;
	if (place.by == PLACE_BY_CFA)
		set_sp_by_cfa(state, place.to);
	else if (place.by == PLACE_BY_ALIGNED)
		set_sp_by_aligned(&state->aligned, place.to);
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
	set_register(state, X86_RSP, place_of(state, X86_RBP));
	pop(state, X86_RBP);
}

/* The psABI, 3.2.1: a callee may change the other registers than these. */
#define KEPT_BY_CALLEES (1u << X86_RBX | 1u << X86_RBP | 0xf000u) /* r12 to r15 */

static void call(UnwindState *state)
{
	if (state->ra != RA_AT_CFA)
		state->ra = UNWIND_RA_LOST;
	state->aligned.copy_known &= KEPT_BY_CALLEES >> state->aligned.copy & 1;
}

void unwind_state_change(UnwindState *state, const Instruction *instruction)
{
	Place place = place_from(state, instruction->base, instruction->number);

	change_registers(state, instruction->writes);
	switch ((enum instruction_does)instruction->does) {
	case DOES_PUSH:
		push(state, instruction->reg);
		break;
	case DOES_POP:
		pop(state, instruction->reg);
		break;
	case DOES_SET:
		set_register(state, instruction->reg, place);
		break;
	case DOES_ALIGN:
		align(state);
		break;
	case DOES_STORE:
		store(state, instruction->reg, place);
		break;
	case DOES_LOAD:
		load(state, instruction->reg, place);
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

/* By the aligned address, the CFA is where its copy is. Returns false if no copy is known. */
static bool put_aligned(const UnwindState *state, struct unwind_rule *rule)
{
	const UnwindAligned *aligned = &state->aligned;
	bool by_bp = aligned->bp_known;

	if (aligned->slot_known && (by_bp || aligned->sp_known) &&
	    aligned->slot_to_cfa >= INT16_MIN && aligned->slot_to_cfa <= INT16_MAX) {
		rule->cfa = CFA_DEREF;
		rule->cfa_reg = by_bp ? DWARF_RBP : DWARF_RSP;
		rule->cfa_offset = (by_bp ? aligned->bp_to : aligned->sp_to) - aligned->slot;
		rule->extra = aligned->slot_to_cfa;
	} else if (aligned->copy_known) {
		rule->cfa_reg = dwarf_register(aligned->copy);
		rule->cfa_offset = aligned->copy_to_cfa;
	} else {
		return false;
	}
	return true;
}

/* The caller's rbp, if it was saved after the stack was aligned. */
static void put_aligned_bp(const UnwindState *state, struct unwind_rule *rule)
{
	const UnwindAligned *aligned = &state->aligned;
	bool by_bp = aligned->bp_known;
	int32_t offset = (by_bp ? aligned->bp_to : aligned->sp_to) - aligned->bp_at;

	if (rule->bp != BP_LOST || !aligned->bp_saved || !(by_bp || aligned->sp_known) ||
	    offset < INT16_MIN || offset > INT16_MAX)
		return;
	rule->bp = by_bp ? BP_AT_BP : BP_AT_SP;
	rule->bp_offset = offset;
}

struct unwind_rule unwind_state_rule(const UnwindState *state, const struct unwind_rule *unknown)
{
	struct unwind_rule rule = {.cfa = CFA_REG};
	bool by_bp = has_frame_pointer(state) || !state->sp_known;

	if (state->outermost)
		return state->guessed ? *unknown : (struct unwind_rule){.cfa = CFA_END};
	if (state->ra == UNWIND_RA_LOST ||
	    !put_saved(&state->bp, BP_SAME, BP_AT_CFA, BP_LOST, &rule.bp, &rule.bp_offset) ||
	    !put_saved(&state->bx, BX_SAME, BX_AT_CFA, BX_LOST, &rule.bx, &rule.bx_offset))
		return *unknown;
	if (state->sp_known || state->bp_known) {
		rule.cfa_reg = by_bp ? DWARF_RBP : DWARF_RSP;
		rule.cfa_offset = by_bp ? state->bp_to_cfa : state->sp_to_cfa;
	} else if (!put_aligned(state, &rule)) {
		return *unknown;
	}
	put_aligned_bp(state, &rule);
	rule.ra = state->ra;
	rule.stack = state->guessed ? STACK_SAME_GUESS : STACK_SAME;
	return rule;
}
