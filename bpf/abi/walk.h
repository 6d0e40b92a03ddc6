/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk.h - finds the caller of a frame by unwind tables. The same code runs in BPF (unwind.bpf.c)
 * and in user space (src/unwind/walk_user.c).
 *
 * A file that includes it must first define WALK_SELF, the declaration of a parameter `self` with a
 * member `struct walk walk`, and these functions:
 *
 * - bool walk_read(self, address, *ret): reads a word of memory.
 * - bool walk_read_saved(self, address, *ret, *ret_word): reads a saved register, whose value the
 *   walk may never use; *ret_word identifies the word for walk_word_used(), 0 = nothing to
 *   identify.
 * - void walk_word_used(self, word): the walk depends on that word.
 * - bool walk_read_signal(self, address): reads WALK_SIGNAL_REGS words into self->signal_regs.
 * - int walk_find_mapping(self, pc): returns WALK_CONTINUE and sets walk.mapping, or returns an
 *   enum stack_result.
 * - bool walk_find_rule(self, pc, *ret): finds the rule in walk.mapping's table, which has one for
 *   every pc; false if the table was removed.
 *
 * It follows the x86-64 psABI, 3.6 (registers), and the kernel's struct rt_sigframe.
 */
#ifndef WALLPROF_WALK_H
#define WALLPROF_WALK_H

#include "walk_state.h"

#define USER_LIMIT   (1ULL << 56) /* with five-level paging */
#define USER_LOWEST  0x1000
#define FP_FRAME_MAX (1ULL << 20) /* the largest frame of code made at run time */

static __always_inline bool walk_is_user(u64 pc)
{
	return pc >= USER_LOWEST && pc < USER_LIMIT;
}

static __always_inline void walk_load_signal(struct walk *walk, const u64 *saved)
{
	for (u32 i = 0; i < 8; i++)
		walk->regs[8 + i] = saved[i];
	walk->regs[5] = saved[8];
	walk->regs[4] = saved[9];
	walk->regs[6] = saved[10];
	walk->regs[3] = saved[11];
	walk->regs[1] = saved[12];
	walk->regs[0] = saved[13];
	walk->regs[2] = saved[14];
	walk->regs[7] = saved[15];
	walk->regs[DWARF_RETURN] = saved[16];
	walk->pc = saved[16];
	walk->sp = walk->low = saved[15];
	walk->bp = saved[10];
	walk->bx = saved[11];
	walk->exact = walk->inner = true;
	walk->known = WALK_ALL_REGS;
	walk->guessed = false;
	walk->bp_lost = walk->bx_lost = false;
	walk->bp_word = walk->bx_word = 0;
	walk->used |= WALK_USED_OTHERS;
}

/* Sets pc and sp to the caller's; rbp and rbx are set elsewhere. */
static __always_inline void walk_set_caller(struct walk *walk, u64 pc, u64 sp)
{
	walk->pc = pc;
	walk->sp = sp;
	walk->exact = walk->inner = walk->guessed = false;
	walk->known &= WALK_SCRATCH_REGS;
}

/* Notes that the walk depends on rbp: the leaf's, or the word that it was read from. */
static __always_inline void walk_use_bp(WALK_SELF)
{
	self->walk.used |= self->walk.bp_from_leaf * WALK_USED_BP;
	walk_word_used(self, self->walk.bp_word);
}

static __always_inline int walk_register(WALK_SELF, u32 number, u64 *ret)
{
	struct walk *walk = &self->walk;

	if (number == DWARF_RSP) {
		*ret = walk->sp;
	} else if (number == DWARF_RBP) {
		if (walk->bp_lost)
			return STACK_REGISTER;
		walk_use_bp(self);
		*ret = walk->bp;
	} else if (number == DWARF_RBX) {
		if (walk->bx_lost)
			return STACK_REGISTER;
		walk->used |= walk->bx_from_leaf * WALK_USED_BX;
		walk_word_used(self, walk->bx_word);
		*ret = walk->bx;
	} else {
		number &= DWARF_REGS - 1;
		if (!(walk->known >> number & 1))
			return STACK_REGISTER;
		walk->used |= WALK_USED_OTHERS;
		*ret = walk->regs[number];
	}
	return WALK_CONTINUE;
}

/* Adds the rule's index, if it has one; false: the value of its register is not known. */
static __always_inline bool walk_index(WALK_SELF, const struct unwind_rule *rule, u64 *cfa)
{
	struct walk *walk = &self->walk;
	u32 number = rule->cfa_reg >> CFA_INDEX_SHIFT & (DWARF_REGS - 1);

	if (number == 0)
		return true;
	if (!(walk->known >> number & 1))
		return false;
	walk->used |= WALK_USED_OTHERS;
	*cfa += walk->regs[number] * sizeof(u64);
	return true;
}

static __always_inline bool walk_stays_on_stack(const struct unwind_rule *rule)
{
	return rule->stack == STACK_SAME || rule->stack == STACK_SAME_GUESS;
}

static __always_inline int walk_cfa(WALK_SELF, const struct unwind_rule *rule, u64 *ret_cfa)
{
	struct walk *walk = &self->walk;
	u64 cfa = 0;
	int result;

	if (rule->cfa == CFA_PLT) {
		cfa = walk->sp + 8;
		if ((s32)(walk->pc & 15) >= rule->extra)
			cfa += 8;
	} else {
		result = walk_register(self, rule->cfa_reg & (DWARF_REGS - 1), &cfa);
		if (result != WALK_CONTINUE)
			return result;
		cfa += (s64)rule->cfa_offset;
		if (rule->cfa == CFA_DEREF) {
			if (!walk_index(self, rule, &cfa))
				return STACK_REGISTER;
			if (!walk_read(self, cfa, &cfa))
				return STACK_FAULT;
			cfa += (s64)rule->extra;
		}
	}
	if (cfa & 7)
		return STACK_BAD_CFA;
	/*
	 * The stack grows downwards. But a CFA that is read from memory may lie on another stack,
	 * and if the return address has been popped into a register (vfork), the CFA equals sp.
	 */
	if (rule->cfa == CFA_DEREF || !walk_stays_on_stack(rule))
		walk->low = cfa;
	else if (cfa < walk->sp || (cfa == walk->sp && rule->ra < RA_REG))
		return STACK_BAD_CFA;
	*ret_cfa = cfa;
	return WALK_CONTINUE;
}

/* Sets rbp to the caller's; false if it could not be read. */
static __always_inline bool walk_bp(WALK_SELF, const struct unwind_rule *rule, u64 cfa)
{
	struct walk *walk = &self->walk;
	u64 at;

	if (rule->bp == BP_SAME)
		return true;
	if (rule->bp == BP_AT_CFA) {
		at = cfa;
	} else if (rule->bp == BP_AT_BP && !walk->bp_lost) {
		walk_use_bp(self);
		at = walk->bp;
	} else if (rule->bp == BP_AT_SP) {
		at = walk->sp;
	} else if (rule->bp >= BP_IN_REG && walk->inner) {
		walk->used |= WALK_USED_OTHERS;
		walk->bp = walk->regs[rule->bp & (DWARF_REGS - 1)];
		walk->bp_lost = walk->bp_from_leaf = false;
		walk->bp_word = 0;
		return true;
	} else {
		walk->bp_lost = true;
		return true;
	}
	walk->bp_lost = walk->bp_from_leaf = false;
	return walk_read_saved(self, at + (s64)rule->bp_offset, &walk->bp, &walk->bp_word);
}

static __always_inline void walk_bx(WALK_SELF, const struct unwind_rule *rule, u64 cfa)
{
	struct walk *walk = &self->walk;

	if (rule->bx != BX_SAME)
		walk->bx_from_leaf = false;
	if (rule->bx == BX_AT_CFA)
		walk->bx_lost = !walk_read_saved(self, cfa + (s64)rule->bx_offset, &walk->bx,
						 &walk->bx_word);
	else if (rule->bx == BX_LOST)
		walk->bx_lost = true;
}

/*
 * Finds the caller of code without a table by its frame pointer, if that is plausible and leads to
 * code. The frame is marked as guessed.
 */
static __always_inline int walk_by_frame_pointer(WALK_SELF)
{
	struct walk *walk = &self->walk;
	u64 fp = walk->bp, pc = 0, bp = 0;
	int result;

	walk_use_bp(self);
	if (walk->bp_lost || fp & 7 || fp < walk->sp || fp - walk->sp > FP_FRAME_MAX)
		return STACK_NO_CFI;
	if (!walk_read(self, fp + 8, &pc) || !walk_read_saved(self, fp, &bp, &walk->bp_word))
		return STACK_NO_CFI;
	if (!walk_is_user(pc))
		return STACK_NO_CFI;
	result = walk_find_mapping(self, pc - 1);
	if (result != WALK_CONTINUE)
		return result == STACK_NO_MAPPING ? STACK_NO_MAPPING : STACK_NO_CFI;
	walk_set_caller(walk, pc, fp + 16);
	walk->bp = bp;
	walk->bp_from_leaf = walk->bx_from_leaf = false;
	walk->bx_lost = walk->guessed = true;
	walk->known = 0;
	return WALK_CONTINUE;
}

static __always_inline int walk_by_rule(WALK_SELF, const struct unwind_rule *rule)
{
	struct walk *walk = &self->walk;
	u64 cfa = 0, pc = 0;
	int result;

	if (rule->cfa == CFA_END)
		return STACK_COMPLETE;
	if (rule->cfa == CFA_NONE) {
		if (rule->extra == NONE_UNKNOWN_CODE)
			return walk_by_frame_pointer(self);
		return rule->extra == NONE_GAP ? STACK_GAP : STACK_UNSUPPORTED;
	}
	if (rule->cfa == CFA_SIGNAL) {
		if (!walk_read_signal(self, walk->sp + SIGNAL_CONTEXT))
			return STACK_FAULT;
		walk_load_signal(walk, self->signal_regs);
		return walk_is_user(walk->pc) ? WALK_CONTINUE : STACK_BAD_PC;
	}
	result = walk_cfa(self, rule, &cfa);
	if (result != WALK_CONTINUE)
		return result;
	if (rule->ra >= RA_REG) {
		if (!walk->inner)
			return STACK_REGISTER;
		walk->used |= WALK_USED_OTHERS;
		pc = walk->regs[rule->ra & (DWARF_REGS - 1)];
	} else if (!walk_read(self, cfa - 8, &pc)) {
		return STACK_FAULT;
	}
	if (!walk_bp(self, rule, cfa))
		return STACK_FAULT;
	walk_bx(self, rule, cfa);
	if (pc == 0)
		return STACK_END_ZERO;
	if (!walk_is_user(pc))
		return STACK_BAD_PC;
	walk_set_caller(walk, pc, cfa);
	walk->guessed = rule->stack >= STACK_GUESS;
	return WALK_CONTINUE;
}

/* Goes to the caller's frame. Returns WALK_CONTINUE, or the result with which the walk ends. */
static __always_inline int walk_step(WALK_SELF)
{
	struct walk *walk = &self->walk;
	u64 pc = walk->exact ? walk->pc : walk->pc - 1;
	struct unwind_rule rule;
	int result;

	/*
	 * A pc of 0, which a call through a null pointer leads to, is in no mapping; an empty
	 * walk.mapping would contain it.
	 */
	if (pc < walk->mapping.start || pc > walk->mapping.last || pc == 0) {
		result = walk_find_mapping(self, pc);
		if (result != WALK_CONTINUE)
			return result;
	}
	if (walk->mapping.table == 0) {
		if (walk->mapping.row == NO_TABLE_YET)
			return STACK_NO_TABLE;
		if (walk->mapping.row == NO_TABLE_LOST)
			return STACK_NO_CFI;
		return walk_by_frame_pointer(self);
	}
	pc -= walk->mapping.load;
	if (pc >> 32)
		return STACK_GAP;
	if (!walk_find_rule(self, pc, &rule))
		return STACK_NO_TABLE;
	return walk_by_rule(self, &rule);
}

#endif
