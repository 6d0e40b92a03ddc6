/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cfi_program.h"
#include <dwarf.h>
#include <errno.h>

/* Instructions in whose first byte the two highest bits say what to do, the others with what. */
#define HIGH_BITS 0xc0
#define LOW_BITS  0x3f

#ifndef DW_CFA_MIPS_advance_loc8
#define DW_CFA_MIPS_advance_loc8 0x1d
#endif

/* Where the kernel puts registers into a signal frame, counted from rsp in the restorer
 * (rt_sigframe less the return address: struct ucontext, psABI numbers of the registers). */
#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160
#define UCONTEXT_RIP 168

typedef struct Run {
	const CfiCie *cie;
	const CfiState *initial; /* NULL = these are the CIE's own instructions */
	CfiBytes bytes;
	uint64_t pc, end;
	CfiEmit emit;
	void *user;
	unsigned depth;
	CfiState now;
	CfiState saved[CFI_DEPTH_MAX];
} Run;

/* ---- from a state to a rule --------------------------------------------------- */

static struct unwind_rule none(enum unwind_none why)
{
	return (struct unwind_rule){.cfa = CFA_NONE, .extra = why};
}

static bool fits_s32(int64_t value)
{
	return value == (int32_t)value;
}

static bool fits_s16(int64_t value)
{
	return value == (int16_t)value;
}

static bool is_at(const CfiReg *reg, int64_t rsp_offset)
{
	return reg->how == CFI_AT_REG && reg->reg == DWARF_RSP && reg->value == rsp_offset;
}

/* All registers are in the signal frame, if these are where the kernel puts them. */
static struct unwind_rule signal_rule(const CfiState *state)
{
	const CfiCfa *cfa = &state->cfa;

	if (cfa->kind != CFA_DEREF || cfa->reg != DWARF_RSP || cfa->offset != UCONTEXT_RSP ||
	    cfa->extra != 0 || !is_at(&state->ra, UCONTEXT_RIP) || !is_at(&state->bp, UCONTEXT_RBP))
		return none(NONE_EXPRESSION);
	return (struct unwind_rule){.cfa = CFA_SIGNAL};
}

static uint8_t bp_by_register(const CfiReg *bp)
{
	switch (bp->reg) {
	case DWARF_RBP:
		return BP_AT_BP;
	case DWARF_RSP:
		return BP_AT_SP;
	}
	return BP_LOST;
}

/*
 * A rule of rbp that none here stands for does not end the walk, nor does an offset that does not
 * fit: CFA and return address are as good as before. It says that rbp is not known from here on,
 * and only what is found by rbp ends.
 */
static void set_bp(const CfiReg *bp, struct unwind_rule *rule)
{
	rule->bp = BP_LOST;
	switch (bp->how) {
	case CFI_UNSPECIFIED: /* by the psABI rbp belongs to the caller */
	case CFI_SAME:
		rule->bp = BP_SAME;
		return;
	case CFI_IN_REG:
		if (bp->reg < DWARF_REGS)
			rule->bp = bp->reg == DWARF_RBP ? BP_SAME : BP_IN_REG + bp->reg;
		return;
	case CFI_AT_CFA:
	case CFI_AT_REG:
		if (!fits_s16(bp->value))
			return;
		rule->bp = bp->how == CFI_AT_CFA ? BP_AT_CFA : bp_by_register(bp);
		if (rule->bp != BP_LOST)
			rule->bp_offset = bp->value;
	}
}

/* As rbp, which compilers keep in many more ways. */
static void set_bx(const CfiReg *bx, struct unwind_rule *rule)
{
	rule->bx = BX_LOST;
	if (bx->how == CFI_UNSPECIFIED || bx->how == CFI_SAME ||
	    (bx->how == CFI_IN_REG && bx->reg == DWARF_RBX)) {
		rule->bx = BX_SAME;
	} else if (bx->how == CFI_AT_CFA && fits_s16(bx->value)) {
		rule->bx = BX_AT_CFA;
		rule->bx_offset = bx->value;
	}
}

static bool set_ra(const CfiReg *ra, struct unwind_rule *rule)
{
	if (ra->how == CFI_AT_CFA && ra->value == -8) {
		rule->ra = RA_AT_CFA;
		return true;
	}
	if (ra->how != CFI_IN_REG || ra->reg >= DWARF_REGS)
		return false;
	rule->ra = RA_REG + ra->reg;
	return true;
}

/* The caller's rsp is the CFA, or no rule stands for it. */
static bool is_sp_cfa(const CfiReg *sp)
{
	return sp->how == CFI_UNSPECIFIED || (sp->how == CFI_IS_CFA && sp->value == 0);
}

static struct unwind_rule rule_of(const CfiCie *cie, const CfiState *state)
{
	const CfiCfa *cfa = &state->cfa;
	struct unwind_rule rule = {
		.cfa = cfa->kind,
		.cfa_reg = cfa->reg,
		.cfa_offset = (int32_t)cfa->offset,
		.extra = (int16_t)cfa->extra,
	};

	if (cie->return_register != DWARF_RETURN)
		return none(NONE_REGISTER);
	if (state->ra.how == CFI_UNDEFINED)
		return (struct unwind_rule){.cfa = CFA_END};
	if (cie->signal)
		return signal_rule(state);
	if (cfa->kind == CFA_NONE)
		return none(cfa->none);
	if (cfa->reg >= DWARF_REGS || !set_ra(&state->ra, &rule) || !is_sp_cfa(&state->sp))
		return none(NONE_REGISTER);
	if (!fits_s32(cfa->offset) || !fits_s16(cfa->extra))
		return none(NONE_OVERFLOW);
	set_bp(&state->bp, &rule);
	set_bx(&state->bx, &rule);
	return rule;
}

/* ---- instructions ------------------------------------------------------------- */

static uint8_t small(uint64_t reg)
{
	return MIN(reg, (uint64_t)UINT8_MAX);
}

/* Also below: what is too large for its type is beyond all that fits into a rule. */
static int64_t read_offset(CfiBytes *bytes)
{
	uint64_t value = cfi_uleb(bytes);

	return MIN(value, (uint64_t)INT64_MAX);
}

static int64_t factored(const Run *run, int64_t value)
{
	int64_t product;

	return __builtin_mul_overflow(value, run->cie->data_align, &product) ? INT64_MAX : product;
}

/* The register's place in a state, or NULL if it is none of those that are kept. */
static CfiReg *kept(CfiState *state, uint64_t reg)
{
	switch (reg) {
	case DWARF_RBX:
		return &state->bx;
	case DWARF_RBP:
		return &state->bp;
	case DWARF_RSP:
		return &state->sp;
	case DWARF_RETURN:
		return &state->ra;
	}
	return NULL;
}

static bool set(Run *run, uint64_t reg, CfiReg rule)
{
	CfiReg *place = kept(&run->now, reg);

	if (place)
		*place = rule;
	return !run->bytes.bad;
}

static bool set_offset(Run *run, uint64_t reg, int64_t value)
{
	return set(run, reg, (CfiReg){.how = CFI_AT_CFA, .value = value});
}

static bool restore(Run *run, uint64_t reg)
{
	CfiReg *place = kept(&run->now, reg);

	if (!run->initial || run->bytes.bad)
		return false;
	if (place)
		*place = *kept((CfiState *)run->initial, reg);
	return true;
}

static bool set_cfa(Run *run, uint64_t reg, int64_t offset)
{
	run->now.cfa =
		(CfiCfa){.kind = CFA_REG, .reg = small(reg), .plain = true, .offset = offset};
	return !run->bytes.bad;
}

/* Changes half of a CFA that was given as a register and a number. */
static bool set_cfa_offset(Run *run, int64_t offset)
{
	run->now.cfa.offset = offset;
	return run->now.cfa.plain && !run->bytes.bad;
}

static bool set_cfa_register(Run *run, uint64_t reg)
{
	run->now.cfa.reg = small(reg);
	return run->now.cfa.plain && !run->bytes.bad;
}

static CfiBytes take_block(Run *run)
{
	uint64_t size = cfi_uleb(&run->bytes);
	const uint8_t *at = cfi_take(&run->bytes, size);

	return (CfiBytes){.at = at, .end = at ? at + size : NULL};
}

/* Where the expression says that the register is saved. */
static bool set_expression(Run *run, uint64_t reg)
{
	CfiBytes expression = take_block(run);
	CfiReg rule = {.how = CFI_ELSEWHERE};
	CfiCfa place;

	if (run->bytes.bad)
		return false;
	if (!kept(&run->now, reg))
		return true;
	place = cfi_expression(expression);
	if (place.kind == CFA_REG)
		rule = (CfiReg){.how = CFI_AT_REG, .reg = place.reg, .value = place.offset};
	return set(run, reg, rule);
}

static bool set_value_expression(Run *run, uint64_t reg)
{
	take_block(run);
	return set(run, reg, (CfiReg){.how = CFI_ELSEWHERE});
}

static bool set_cfa_expression(Run *run)
{
	CfiBytes expression = take_block(run);

	if (run->bytes.bad)
		return false;
	run->now.cfa = cfi_expression(expression);
	return true;
}

static bool remember(Run *run)
{
	if (run->depth == CFI_DEPTH_MAX)
		return false;
	run->saved[run->depth++] = run->now;
	return true;
}

static bool recall(Run *run)
{
	if (run->depth == 0)
		return false;
	run->now = run->saved[--run->depth];
	return true;
}

/* What holds so far holds up to pc. */
static bool go_to(Run *run, uint64_t pc)
{
	struct unwind_rule rule;

	if (!run->initial || run->bytes.bad || pc < run->pc)
		return false;
	pc = MIN(pc, run->end);
	if (pc == run->pc)
		return true;
	rule = rule_of(run->cie, &run->now);
	run->emit(run->user, run->pc, pc, &rule);
	run->pc = pc;
	return true;
}

static bool advance(Run *run, uint64_t count)
{
	uint64_t distance, pc;

	if (__builtin_mul_overflow(count, run->cie->code_align, &distance) ||
	    __builtin_add_overflow(run->pc, distance, &pc))
		pc = run->end;
	return go_to(run, pc);
}

/* An absolute place, which unlike a distance can't be meant to be behind the function. */
static bool set_location(Run *run)
{
	uint64_t pc;

	return !cfi_pointer(run->cie->section, &run->bytes, run->cie->encoding, /* data_base= */ 0,
			    &pc) &&
	       pc <= run->end && go_to(run, pc);
}

/* Those that say where something is. */
static bool step_register(Run *run, uint8_t op, uint64_t reg)
{
	CfiBytes *bytes = &run->bytes;

	switch (op) {
	case DW_CFA_offset_extended:
		return set_offset(run, reg, factored(run, read_offset(bytes)));
	case DW_CFA_offset_extended_sf:
		return set_offset(run, reg, factored(run, cfi_sleb(bytes)));
	case DW_CFA_GNU_negative_offset_extended:
		return set_offset(run, reg, factored(run, -read_offset(bytes)));
	case DW_CFA_val_offset:
		return set(run, reg,
			   (CfiReg){.how = CFI_IS_CFA, .value = factored(run, read_offset(bytes))});
	case DW_CFA_val_offset_sf:
		return set(run, reg,
			   (CfiReg){.how = CFI_IS_CFA, .value = factored(run, cfi_sleb(bytes))});
	case DW_CFA_register:
		return set(run, reg, (CfiReg){.how = CFI_IN_REG, .reg = small(cfi_uleb(bytes))});
	case DW_CFA_undefined:
		return set(run, reg, (CfiReg){.how = CFI_UNDEFINED});
	case DW_CFA_same_value:
		return set(run, reg, (CfiReg){.how = CFI_SAME});
	case DW_CFA_restore_extended:
		return restore(run, reg);
	case DW_CFA_expression:
		return set_expression(run, reg);
	case DW_CFA_val_expression:
		return set_value_expression(run, reg);
	case DW_CFA_def_cfa:
		return set_cfa(run, reg, read_offset(bytes));
	case DW_CFA_def_cfa_sf:
		return set_cfa(run, reg, factored(run, cfi_sleb(bytes)));
	case DW_CFA_def_cfa_register:
		return set_cfa_register(run, reg);
	}
	return false;
}

static bool step_low(Run *run, uint8_t op)
{
	CfiBytes *bytes = &run->bytes;

	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
		return set_location(run);
	case DW_CFA_advance_loc1:
		return advance(run, cfi_fixed(bytes, 1));
	case DW_CFA_advance_loc2:
		return advance(run, cfi_fixed(bytes, 2));
	case DW_CFA_advance_loc4:
		return advance(run, cfi_fixed(bytes, 4));
	case DW_CFA_MIPS_advance_loc8:
		return advance(run, cfi_fixed(bytes, 8));
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return recall(run);
	case DW_CFA_def_cfa_offset:
		return set_cfa_offset(run, read_offset(bytes));
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa_offset(run, factored(run, cfi_sleb(bytes)));
	case DW_CFA_def_cfa_expression:
		return set_cfa_expression(run);
	case DW_CFA_GNU_args_size: /* for those who throw */
		cfi_uleb(bytes);
		return !bytes->bad;
	}
	return step_register(run, op, cfi_uleb(bytes));
}

/* One instruction. False: it cannot be read, or makes no sense. */
static bool step(Run *run)
{
	uint8_t op = cfi_u8(&run->bytes), low = op & LOW_BITS;

	switch (op & HIGH_BITS) {
	case DW_CFA_advance_loc:
		return advance(run, low);
	case DW_CFA_offset:
		return set_offset(run, low, factored(run, read_offset(&run->bytes)));
	case DW_CFA_restore:
		return restore(run, low);
	}
	return step_low(run, op);
}

int cfi_program_begin(const CfiCie *cie, CfiState *ret_initial)
{
	Run run;

	/* Not all of it: what is remembered is large, and written before it is read. */
	memset(&run, 0, offsetof(Run, saved));
	run.cie = cie;
	run.bytes = cie->program;
	run.now.cfa.none = NONE_BROKEN;
	while (cfi_left(&run.bytes) > 0)
		if (!step(&run))
			return -EBADMSG;
	*ret_initial = run.now;
	return 0;
}

void cfi_program_run(const CfiCie *cie, const CfiState *initial, const CfiFde *fde, CfiEmit emit,
		     void *user)
{
	const struct unwind_rule broken = none(NONE_BROKEN);
	bool good = true;
	Run run;

	memset(&run, 0, offsetof(Run, saved));
	run.cie = cie;
	run.initial = initial;
	run.bytes = fde->program;
	run.pc = fde->pc;
	run.end = fde->pc + fde->size;
	run.emit = emit;
	run.user = user;
	run.now = *initial;
	while (good && run.pc < run.end && cfi_left(&run.bytes) > 0)
		good = step(&run);
	if (good)
		go_to(&run, run.end);
	else if (run.pc < run.end)
		emit(user, run.pc, run.end, &broken);
}
