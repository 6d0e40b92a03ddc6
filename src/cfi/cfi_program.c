/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cfi_program.h"
#include <dwarf.h>
#include <errno.h>

/*
 * In these instructions the two highest bits of the first byte are the opcode, the others an
 * operand.
 */
#define HIGH_BITS 0xc0
#define LOW_BITS  0x3f

#ifndef DW_CFA_MIPS_advance_loc8
#define DW_CFA_MIPS_advance_loc8 0x1d
#endif

/*
 * The offsets at which the kernel saves registers in a signal frame, counted from rsp in the
 * restorer (rt_sigframe less the return address: struct ucontext, psABI numbers of the registers).
 */
#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160
#define UCONTEXT_RIP 168

typedef struct Run {
	const CfiCie *cie;
	const CfiState *initial; /* NULL = the CIE's own instructions are run */
	uint64_t pc, end;
	uint64_t to; /* the state holds up to there: after pc if the last instruction moves */
	CfiEmit emit;
	void *user;
	unsigned depth;
	CfiState now;
	CfiState saved[CFI_DEPTH_MAX];
} Run;

/* ---- from a state to a rule --------------------------------------------------- */

/* The words of a rule, which is built without being in memory. */
#define WORD_OF(field, value)                                                                      \
	((uint64_t)(value) << 8 * (offsetof(struct unwind_rule, field) % sizeof(uint64_t)))
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a word's first byte is its lowest");
_Static_assert(offsetof(struct unwind_rule, cfa_offset) == 4, "the low word's last");
_Static_assert(offsetof(struct unwind_rule, bp_offset) == 8, "the high word's first");

static UnwindRuleWords none(enum unwind_none why)
{
	return (UnwindRuleWords){.low = WORD_OF(cfa, CFA_NONE), .high = WORD_OF(extra, why)};
}

static bool fits_s32(int64_t value)
{
	return value == (int32_t)value;
}

static bool fits_s16(int64_t value)
{
	return value == (int16_t)value;
}

static bool is_at(const CfiReg *reg, int32_t rsp_offset)
{
	return reg->how == CFI_AT_REG && reg->reg == DWARF_RSP && reg->value == rsp_offset;
}

/* The rule for a signal frame, if all registers are saved where the kernel saves them. */
static UnwindRuleWords signal_rule(const CfiState *state)
{
	const CfiCfa *cfa = &state->cfa;

	if (cfa->kind != CFA_DEREF || cfa->reg != DWARF_RSP || cfa->offset != UCONTEXT_RSP ||
	    cfa->extra != 0 || !is_at(&state->regs[CFI_RA], UCONTEXT_RIP) ||
	    !is_at(&state->regs[CFI_BP], UCONTEXT_RBP))
		return none(NONE_EXPRESSION);
	return (UnwindRuleWords){.low = WORD_OF(cfa, CFA_SIGNAL)};
}

/* Where a register is saved, in the form of a rule. */
typedef struct Saved {
	uint8_t how; /* enum unwind_ra, unwind_bp or unwind_bx */
	int16_t offset;
} Saved;

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
 * If no rule exists for how rbp is saved, or its offset does not fit, the walk does not end: CFA
 * and return address are still right. The rule then says that rbp is not known, and the walk ends
 * only where a frame is found by rbp.
 */
static Saved saved_bp(const CfiReg *bp)
{
	uint8_t how = BP_LOST;

	switch (bp->how) {
	case CFI_UNSPECIFIED: /* by the psABI rbp belongs to the caller */
	case CFI_SAME:
		return (Saved){.how = BP_SAME};
	case CFI_IN_REG:
		if (bp->reg < DWARF_REGS)
			how = bp->reg == DWARF_RBP ? BP_SAME : BP_IN_REG + bp->reg;
		return (Saved){.how = how};
	case CFI_AT_CFA:
		how = BP_AT_CFA;
		break;
	case CFI_AT_REG:
		how = bp_by_register(bp);
		break;
	}
	return how != BP_LOST && fits_s16(bp->value) ? (Saved){how, bp->value}
						     : (Saved){.how = BP_LOST};
}

/* Does the same for rbx, which compilers save in many more ways. */
static Saved saved_bx(const CfiReg *bx)
{
	if (bx->how == CFI_UNSPECIFIED || bx->how == CFI_SAME ||
	    (bx->how == CFI_IN_REG && bx->reg == DWARF_RBX))
		return (Saved){.how = BX_SAME};
	return bx->how == CFI_AT_CFA && fits_s16(bx->value) ? (Saved){BX_AT_CFA, bx->value}
							    : (Saved){.how = BX_LOST};
}

static bool has_ra(const CfiReg *ra)
{
	return (ra->how == CFI_AT_CFA && ra->value == -8) ||
	       (ra->how == CFI_IN_REG && ra->reg < DWARF_REGS);
}

/* The caller's rsp must be the CFA; there is no other rule. */
static bool is_sp_cfa(const CfiReg *sp)
{
	return sp->how == CFI_UNSPECIFIED || (sp->how == CFI_IS_CFA && sp->value == 0);
}

static UnwindRuleWords words_of_regs(const CfiState *state)
{
	const CfiReg *ra = &state->regs[CFI_RA];
	Saved bp = saved_bp(&state->regs[CFI_BP]), bx = saved_bx(&state->regs[CFI_BX]);

	return (UnwindRuleWords){
		.low = WORD_OF(ra, ra->how == CFI_AT_CFA ? RA_AT_CFA : RA_REG + ra->reg) |
		       WORD_OF(bp, bp.how),
		.high = WORD_OF(bp_offset, (uint16_t)bp.offset) |
			WORD_OF(bx_offset, (uint16_t)bx.offset) | WORD_OF(bx, bx.how),
	};
}

static UnwindRuleWords add_cfa(UnwindRuleWords rule, const CfiCfa *cfa)
{
	rule.low |= WORD_OF(cfa, cfa->kind) |
		    WORD_OF(cfa_reg, cfa->reg | cfa->index << CFA_INDEX_SHIFT) |
		    WORD_OF(cfa_offset, (uint32_t)cfa->offset);
	rule.high |= WORD_OF(extra, (uint16_t)cfa->extra);
	return rule;
}

static UnwindRuleWords any_rule(const CfiCie *cie, const CfiState *state)
{
	const CfiReg *ra = &state->regs[CFI_RA];
	const CfiCfa *cfa = &state->cfa;

	if (cie->return_register != DWARF_RETURN)
		return none(NONE_REGISTER);
	if (ra->how == CFI_UNDEFINED)
		return (UnwindRuleWords){.low = WORD_OF(cfa, CFA_END)};
	if (cie->signal)
		return signal_rule(state);
	if (cfa->kind == CFA_NONE)
		return none(cfa->none);
	if (cfa->reg >= DWARF_REGS || !has_ra(ra) || !is_sp_cfa(&state->regs[CFI_SP]))
		return none(NONE_REGISTER);
	if (!fits_s32(cfa->offset) || !fits_s16(cfa->extra))
		return none(NONE_OVERFLOW);
	return add_cfa(words_of_regs(state), cfa);
}

/* Determines whether only the CFA decides which rule this is. */
static void classify_regs(const CfiCie *cie, CfiState *state)
{
	const CfiReg *ra = &state->regs[CFI_RA];

	state->how = CFI_UNUSUAL;
	if (cie->return_register != DWARF_RETURN || cie->signal || !has_ra(ra) ||
	    !is_sp_cfa(&state->regs[CFI_SP]))
		return;
	state->how = CFI_USUAL;
	state->saved = words_of_regs(state);
}

/* Most instructions change only the CFA, of all that is tracked. */
static inline bool is_usual(const CfiCie *cie, CfiState *state)
{
	const CfiCfa *cfa = &state->cfa;

	if (state->how == CFI_CHANGED)
		classify_regs(cie, state);
	return state->how == CFI_USUAL && cfa->plain && cfa->reg < DWARF_REGS &&
	       fits_s32(cfa->offset);
}

/* ---- instructions ------------------------------------------------------------- */

/* What is missing reads as 0 (cfi.h); step() checks once whether something was missing. */

static uint8_t small(uint64_t reg)
{
	return MIN(reg, (uint64_t)UINT8_MAX);
}

/* A value that exceeds its type, also below, exceeds all that fits into a rule. */
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

static enum cfi_reg_index kept(uint64_t reg)
{
	static const uint8_t places[] = {
		[DWARF_RBX] = CFI_BX,
		[DWARF_RBP] = CFI_BP,
		[DWARF_RSP] = CFI_SP,
		[DWARF_RETURN] = CFI_RA,
	};

	return reg < sizeof(places) ? places[reg] : CFI_UNTRACKED;
}

static int32_t nearest(int64_t value)
{
	return MAX(MIN(value, (int64_t)INT32_MAX), (int64_t)INT32_MIN);
}

static bool set(Run *run, uint64_t reg, CfiReg rule)
{
	enum cfi_reg_index place = kept(reg);

	run->now.regs[place] = rule;
	if (place != CFI_UNTRACKED)
		run->now.how = CFI_CHANGED;
	return true;
}

static bool set_offset(Run *run, uint64_t reg, int64_t value)
{
	return set(run, reg, (CfiReg){.how = CFI_AT_CFA, .value = nearest(value)});
}

static bool set_value(Run *run, uint64_t reg, int64_t value)
{
	return set(run, reg, (CfiReg){.how = CFI_IS_CFA, .value = nearest(value)});
}

static bool restore(Run *run, uint64_t reg)
{
	return run->initial && set(run, reg, run->initial->regs[kept(reg)]);
}

static bool set_cfa(Run *run, uint64_t reg, int64_t offset)
{
	run->now.cfa =
		(CfiCfa){.kind = CFA_REG, .reg = small(reg), .plain = true, .offset = offset};
	return true;
}

/* Changes one half of a CFA that was given as a register and an offset. */
static bool set_cfa_offset(Run *run, int64_t offset)
{
	run->now.cfa.offset = offset;
	return run->now.cfa.plain;
}

static bool set_cfa_register(Run *run, uint64_t reg)
{
	run->now.cfa.reg = small(reg);
	return run->now.cfa.plain;
}

static CfiBytes read_block(CfiBytes *bytes)
{
	uint64_t size = cfi_uleb(bytes);
	const uint8_t *at = cfi_consume(bytes, size);

	return (CfiBytes){.at = at, .end = at ? at + size : NULL};
}

/* The expression gives the address at which the register is saved. */
static bool set_expression(Run *run, uint64_t reg, CfiBytes expression)
{
	CfiReg rule = {.how = CFI_UNSUPPORTED};
	CfiCfa place;

	if (kept(reg) == CFI_UNTRACKED)
		return true;
	place = cfi_expression(expression);
	if (place.kind == CFA_REG)
		rule = (CfiReg){
			.how = CFI_AT_REG, .reg = place.reg, .value = nearest(place.offset)};
	return set(run, reg, rule);
}

static bool set_value_expression(Run *run, uint64_t reg, CfiBytes *bytes)
{
	read_block(bytes);
	return set(run, reg, (CfiReg){.how = CFI_UNSUPPORTED});
}

static bool set_cfa_expression(Run *run, CfiBytes expression)
{
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

/* The present state holds up to pc. */
static bool go_to(Run *run, uint64_t pc)
{
	if (!run->initial || pc < run->pc)
		return false;
	run->to = MIN(pc, run->end);
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

/* An absolute address after the function's end is an error; a distance may lead there. */
static bool set_location(Run *run, CfiBytes *bytes)
{
	uint64_t pc;

	return !cfi_pointer(run->cie->section, bytes, run->cie->encoding, /* data_base= */ 0,
			    &pc) &&
	       pc <= run->end && go_to(run, pc);
}

/* Runs the instructions that say where a register is saved. */
static bool step_register(Run *run, CfiBytes *bytes, uint8_t op, uint64_t reg)
{
	switch (op) {
	case DW_CFA_offset_extended:
		return set_offset(run, reg, factored(run, read_offset(bytes)));
	case DW_CFA_offset_extended_sf:
		return set_offset(run, reg, factored(run, cfi_sleb(bytes)));
	case DW_CFA_GNU_negative_offset_extended:
		return set_offset(run, reg, factored(run, -read_offset(bytes)));
	case DW_CFA_val_offset:
		return set_value(run, reg, factored(run, read_offset(bytes)));
	case DW_CFA_val_offset_sf:
		return set_value(run, reg, factored(run, cfi_sleb(bytes)));
	case DW_CFA_register:
		return set(run, reg, (CfiReg){.how = CFI_IN_REG, .reg = small(cfi_uleb(bytes))});
	case DW_CFA_undefined:
		return set(run, reg, (CfiReg){.how = CFI_UNDEFINED});
	case DW_CFA_same_value:
		return set(run, reg, (CfiReg){.how = CFI_SAME});
	case DW_CFA_restore_extended:
		return restore(run, reg);
	case DW_CFA_expression:
		return set_expression(run, reg, read_block(bytes));
	case DW_CFA_val_expression:
		return set_value_expression(run, reg, bytes);
	case DW_CFA_def_cfa:
		return set_cfa(run, reg, read_offset(bytes));
	case DW_CFA_def_cfa_sf:
		return set_cfa(run, reg, factored(run, cfi_sleb(bytes)));
	case DW_CFA_def_cfa_register:
		return set_cfa_register(run, reg);
	}
	return false;
}

/*
 * These are a tenth of all instructions; kept out of line so that the others in step() are inlined.
 */
static __attribute__((noinline)) bool step_low(Run *run, CfiBytes *bytes, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
		return set_location(run, bytes);
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
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa_offset(run, factored(run, cfi_sleb(bytes)));
	case DW_CFA_def_cfa_expression:
		return set_cfa_expression(run, read_block(bytes));
	case DW_CFA_GNU_args_size: /* for exceptions */
		cfi_uleb(bytes);
		return true;
	}
	return step_register(run, bytes, op, cfi_uleb(bytes));
}

/*
 * Runs one instruction. Returns false if it cannot be read or is invalid. The address of bytes is
 * not passed on, so that the compiler keeps the position in registers.
 */
static inline bool step(Run *run, CfiBytes *bytes)
{
	uint8_t op = cfi_u8(bytes), low = op & LOW_BITS;
	CfiBytes rest;
	bool good;

	switch (op & HIGH_BITS) {
	case DW_CFA_advance_loc:
		return advance(run, low);
	case DW_CFA_offset:
		return set_offset(run, low, factored(run, read_offset(bytes))) && !bytes->bad;
	case DW_CFA_restore:
		return restore(run, low);
	}
	if (op == DW_CFA_def_cfa_offset)
		return set_cfa_offset(run, read_offset(bytes)) && !bytes->bad;
	rest = (CfiBytes){.at = bytes->at, .end = bytes->end};
	good = step_low(run, &rest, op);
	bytes->at = rest.at;
	return good && !rest.bad;
}

int cfi_program_begin(const CfiCie *cie, CfiState *ret_initial)
{
	CfiBytes bytes = cie->program;
	Run run;

	/* `saved` is not cleared: it is large, and is written before it is read. */
	memset(&run, 0, offsetof(Run, saved));
	run.cie = cie;
	run.now.cfa.none = NONE_BROKEN;
	while (cfi_left(&bytes) > 0)
		if (!step(&run, &bytes))
			return -EBADMSG;
	classify_regs(cie, &run.now);
	*ret_initial = run.now;
	return 0;
}

/* Emits the range that the last instruction has passed. */
static inline void emit_passed(Run *run)
{
	if (run->to == run->pc)
		return;
	if (is_usual(run->cie, &run->now))
		run->emit(run->user, run->pc, run->to, add_cfa(run->now.saved, &run->now.cfa));
	else
		run->emit(run->user, run->pc, run->to, any_rule(run->cie, &run->now));
	run->pc = run->to;
}

void cfi_program_run(const CfiCie *cie, const CfiState *initial, const CfiFde *fde, CfiEmit emit,
		     void *user)
{
	CfiBytes bytes = {.at = fde->program, .end = fde->end};
	bool good = true;
	Run run;

	run.cie = cie;
	run.initial = initial;
	run.pc = run.to = fde->pc;
	run.end = fde->pc + fde->size;
	run.emit = emit;
	run.user = user;
	run.depth = 0;
	run.now = *initial;
	while (good && run.pc < run.end && cfi_left(&bytes) > 0) {
		good = step(&run, &bytes);
		emit_passed(&run);
	}
	if (good)
		run.to = run.end;
	emit_passed(&run);
	if (run.pc < run.end)
		emit(user, run.pc, run.end, none(NONE_BROKEN));
}
