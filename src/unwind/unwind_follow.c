/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_follow.c - see unwind_follow.h.
 *
 * The code from one known function to the next is a window. Code in it that is not reached from its
 * first instruction is another function, or the cases of a switch.
 */
#include "unwind_follow.h"
#include "unwind_functions.h"
#include "unwind_state.h"

#define WINDOW_MAX (64u << 10) /* bytes; code after that is a window of its own */
#define TRIES_MAX  8	       /* for a function that may end earlier than it seems */
#define ENTRY_MAX  64	       /* bytes that count as the entry point if it is not understood */
/* Steps for each byte of a window: real code takes fewer than one, hostile code could take any
 * number. */
#define STEPS_MAX 64
#define SMALL	  512 /* bytes; code as small as _init or _fini begins with a function */

/* An undo record, for when a guess turns out to be wrong. */
typedef struct Change {
	uint32_t offset;
	UnwindState before;
} Change;

/* The address after a call, where another function may begin, and the stack there. */
typedef struct MayBegin {
	uint32_t offset;
	int32_t sp_to_cfa;
} MayBegin;

/* A jump within the function. All code between its ends belongs to the function. */
typedef struct Span {
	uint32_t from, to; /* ascending */
} Span;

typedef struct Follow {
	const UnwindCode *code;
	uint32_t from, size;	    /* the window */
	UnwindState *at;	    /* for each byte of the window: before the instruction there */
	bool *begins;		    /* for each byte: another function begins there */
	uint8_t *lengths;	    /* for each byte: of the instruction that was followed there */
	UnwindOffsets strong, weak; /* work lists of offsets; the weak ones come last */
	uint64_t steps;		    /* steps that are left for the window */
	VEC(Change) changes;
	/* The function. */
	uint32_t start, end; /* the range that is reached */
	bool known;	     /* a function begins at start for certain */
	bool wrong;	     /* the function was not understood */
	bool returns;	     /* it returns with the stack of its entry, so it was understood */
	uint32_t last_proof; /* the last offset that certainly belongs to this function */
	/* It jumps to an offset where no function begins, or calls with a misaligned stack. */
	bool odd;
	uint32_t misfit; /* the offset of a return with another stack, and that stack */
	int32_t misfit_to_cfa;
	/* Places where another function begins if the call before them does not return. */
	VEC(MayBegin) may_begin;
	VEC(Span) spans;
	UnwindState switched; /* the state at an indirect jump */
} Follow;

/* ---- a function -------------------------------------------------------------------------- */

static const uint8_t *byte_at(const Follow *follow, uint32_t offset)
{
	return follow->code->bytes + follow->from + offset;
}

/* Returns the instruction. Its length is kept, because each one is passed several times. */
static Instruction instruction_at(Follow *follow, uint32_t offset)
{
	Instruction instruction =
		unwind_instruction(byte_at(follow, offset), follow->size - offset);

	follow->lengths[offset] = instruction.length;
	return instruction;
}

static uint8_t length_at(Follow *follow, uint32_t offset)
{
	return follow->lengths[offset] ?: instruction_at(follow, offset).length;
}

static bool is_aligned(const Follow *follow, uint32_t offset)
{
	return (follow->code->address + follow->from + offset) % UNWIND_ALIGNMENT == 0;
}

static void set_stack(Follow *follow, uint32_t offset, const UnwindState *state)
{
	*vec_push(&follow->changes) = (Change){.offset = offset, .before = follow->at[offset]};
	follow->at[offset] = *state;
	*vec_push(state->weak ? &follow->weak : &follow->strong) = offset;
}

/* Merges a state into that of an offset, and puts the offset on a work list if it changed. */
static void enter(Follow *follow, uint32_t offset, const UnwindState *state)
{
	const UnwindState *known = &follow->at[offset];
	UnwindState merged;

	if (!known->known || (known->weak && !state->weak)) {
		/* A jump is better evidence than a call before the offset, which may not return. */
		if (!unwind_state_same(known, state))
			set_stack(follow, offset, state);
		return;
	}
	if (state->weak && !known->weak)
		return;
	merged = unwind_state_merge(known, state);
	if (!unwind_state_same(known, &merged))
		set_stack(follow, offset, &merged);
}

static bool function_begins_at(const Follow *follow, int64_t offset)
{
	const UnwindCode *code = follow->code;
	size_t i = partition_point(middle, code->start_count, code->starts[middle] < offset);

	return i < code->start_count && code->starts[i] == offset;
}

/* Returns whether another function than this one begins at offset. */
static bool is_other(const Follow *follow, int64_t offset)
{
	return follow->begins[offset] && offset != follow->start;
}

static void find_misfit(Follow *follow, uint32_t offset, const UnwindState *state)
{
	if (follow->wrong)
		return;
	follow->wrong = true;
	follow->misfit = offset;
	follow->misfit_to_cfa = state->sp_to_cfa;
}

/*
 * A return, or a tail call. If the stack is not that of the entry, either this function was not
 * understood, or another function begins before this offset and was not noticed.
 */
static void return_from(Follow *follow, uint32_t offset, const UnwindState *state)
{
	if (state->outermost || !state->sp_known)
		return;
	if (!unwind_state_returns(state)) {
		find_misfit(follow, offset, state);
		return;
	}
	follow->returns = true;
	follow->last_proof = MAX(follow->last_proof, offset);
}

static void go_on(Follow *follow, int64_t to, UnwindState state, bool weak)
{
	if (to >= follow->size || is_other(follow, to))
		return;
	state.weak = weak;
	if (weak && is_aligned(follow, to) && !follow->at[to].known) {
		/* The last call of the entry point does not return: code after it may be another
		 * function's. */
		if (state.outermost)
			return;
		*vec_push(&follow->may_begin) =
			(MayBegin){.offset = to, .sp_to_cfa = state.sp_to_cfa};
	}
	enter(follow, to, &state);
}

/* only: the jump is unconditional. */
static void jump_to(Follow *follow, uint32_t from, int64_t to, UnwindState state, bool only)
{
	bool inside = to >= 0 && to < follow->size;

	state.weak = false;
	if (inside && !is_other(follow, to)) {
		*vec_push(&follow->spans) =
			(Span){MIN(from, (uint32_t)to), MAX(from, (uint32_t)to)};
		enter(follow, to, &state);
	} else if (!inside && !function_begins_at(follow, follow->from + to))
		follow->odd = true; /* perhaps a jump to its cold part, which lies elsewhere */
	else if (only)
		return_from(follow, from, &state);
}

/*
 * The psABI aligns the stack to 16 bytes at a call. If the function had in fact begun at an earlier
 * offset, the stack would seem to be misaligned here.
 */
static void call(Follow *follow, uint32_t offset, const UnwindState *state)
{
	/* The entry point is not called: its stack is aligned on entry. */
	if (!state->sp_known || state->outermost)
		return;
	if (state->sp_to_cfa % UNWIND_ALIGNMENT)
		follow->odd = true;
	else
		follow->last_proof = MAX(follow->last_proof, offset);
}

/*
 * A switch and an indirect tail call can only be told apart by the stack: a tail call has that of
 * the entry. If a switch has it, too, code after the function's end counts as a case only if it is
 * not aligned, as a function would be.
 */
static bool may_be_case(const Follow *follow, uint32_t offset)
{
	return follow->switched.known &&
	       (offset < follow->end ||
		(follow->switched.sp_known && follow->switched.ra == RA_AT_CFA)) &&
	       (offset < follow->end || !unwind_state_returns(&follow->switched) ||
		!is_aligned(follow, offset));
}

static void step(Follow *follow, uint32_t offset)
{
	Instruction instruction = instruction_at(follow, offset);
	UnwindState state = follow->at[offset];
	int64_t after = (int64_t)offset + instruction.length;

	follow->end = MAX(follow->end, (uint32_t)after);
	unwind_state_change(&state, &instruction);
	if (state.broken) {
		find_misfit(follow, offset, &state);
		return;
	}
	switch ((enum instruction_does)instruction.does) {
	case DOES_UNKNOWN:
		follow->wrong = true;
		break;
	case DOES_STOP:
		break;
	case DOES_RETURN:
		return_from(follow, offset, &state);
		break;
	case DOES_JUMP:
		jump_to(follow, offset, after + instruction.number, state, /* only= */ true);
		break;
	case DOES_JUMP_SOMEWHERE: /* a switch, or an indirect tail call */
		follow->switched = state;
		break;
	case DOES_BRANCH:
		jump_to(follow, offset, after + instruction.number, state, /* only= */ false);
		go_on(follow, after, state, /* weak= */ false);
		break;
	case DOES_CALL:
	case DOES_CALL_SOMEWHERE:
		call(follow, offset, &state);
		go_on(follow, after, state, /* weak= */ true);
		break;
	case DOES_NOP:
		go_on(follow, after, state, state.weak);
		break;
	default:
		go_on(follow, after, state, /* weak= */ false);
		break;
	}
}

/* Processes the work lists until they are empty or the function is wrong. */
static void explore(Follow *follow)
{
	UnwindOffsets *offsets;

	while (!follow->wrong) {
		offsets = follow->strong.count ? &follow->strong : &follow->weak;
		if (offsets->count == 0)
			return;
		if (follow->steps == 0) {
			follow->wrong = true;
			break;
		}
		follow->steps--;
		step(follow, offsets->items[--offsets->count]);
	}
	follow->strong.count = follow->weak.count = 0;
}

static void undo(Follow *follow, size_t changes)
{
	while (follow->changes.count > changes) {
		const Change *last = &follow->changes.items[--follow->changes.count];

		follow->at[last->offset] = last->before;
	}
}

/* Returns the first offset from `offset` on that is neither reached nor padding. */
static uint32_t next_unreached(Follow *follow, uint32_t offset)
{
	while (offset < follow->size) {
		uint8_t padding;

		if (follow->at[offset].known) {
			uint8_t length = length_at(follow, offset);

			offset += MAX(length, 1);
			continue;
		}
		padding = unwind_padding_length(byte_at(follow, offset), follow->size - offset);
		if (!padding)
			break;
		offset += padding;
	}
	return offset;
}

/*
 * In a function with an indirect jump, code that no direct jump reaches counts as a case of a
 * switch, if the function is still understood with it. If not, and it lies after all code that is
 * reached, it is another function.
 */
static void try_cases(Follow *follow)
{
	uint32_t offset = follow->start;

	while ((offset = next_unreached(follow, offset)) < follow->size &&
	       !follow->begins[offset] && may_be_case(follow, offset)) {
		uint32_t end = follow->end, last_proof = follow->last_proof;
		bool returns = follow->returns;
		size_t changes = follow->changes.count;
		UnwindState state = follow->switched;

		state.guessed = true;
		state.weak = false;
		enter(follow, offset, &state);
		explore(follow);
		if (!follow->wrong)
			continue;
		undo(follow, changes);
		follow->wrong = false;
		follow->end = end;
		follow->returns = returns;
		follow->last_proof = last_proof;
		if (offset >= end)
			break;
		offset++;
		while (offset < end && !follow->at[offset].known)
			offset++;
	}
}

/*
 * For another try: finds where the function ends because another one begins. The other function
 * returns with the stack of its entry, so it begins at the last candidate before the misfit that
 * has the stack of the misfit.
 */
static bool find_begin(Follow *follow)
{
	uint32_t found = 0;

	for (size_t i = 0; i < follow->may_begin.count; i++) {
		const MayBegin *begin = &follow->may_begin.items[i];

		if (begin->offset <= follow->misfit && begin->sp_to_cfa == follow->misfit_to_cfa &&
		    !follow->begins[begin->offset])
			found = MAX(found, begin->offset);
	}
	if (found)
		follow->begins[found] = true;
	return found;
}

/* known: a function begins at start for certain. */
static void follow_function(Follow *follow, uint32_t start, bool known)
{
	follow->known = known;
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		UnwindState state = unwind_state_entered;

		state.guessed = !known && !is_aligned(follow, start);
		state.outermost = follow->from + start == follow->code->entry;
		follow->start = follow->end = start;
		follow->wrong = follow->returns = follow->odd = false;
		follow->switched.known = false;
		follow->misfit = follow->last_proof = 0;
		follow->may_begin.count = follow->changes.count = follow->spans.count = 0;
		enter(follow, start, &state);
		explore(follow);
		if (!follow->wrong)
			try_cases(follow);
		if (!follow->wrong)
			return;
		undo(follow, 0);
		if (!follow->misfit || !find_begin(follow))
			return;
	}
}

/* ---- rows --------------------------------------------------------------------------------- */

static void put_row(UnwindCodeRows *rows, uint32_t at, const struct unwind_rule *rule)
{
	if (rows->count > 0 && rows->items[rows->count - 1].at == at)
		rows->count--;
	if (rows->count == 0 || memcmp(&rows->items[rows->count - 1].rule, rule, sizeof(*rule)))
		*vec_push(rows) = (UnwindCodeRow){.at = at, .rule = *rule};
}

/* The entry point is the outermost frame, even if it is not understood. */
static void put_wrong(const Follow *follow, UnwindCodeRows *rows)
{
	static const struct unwind_rule outermost = {.cfa = CFA_END};
	uint32_t start = follow->start;

	if (follow->from + start == follow->code->entry) {
		put_row(rows, follow->from + start, &outermost);
		start = MIN(start + ENTRY_MAX, follow->size);
	}
	if (start < follow->size)
		put_row(rows, follow->from + start, &follow->code->unknown);
}

static int compare_spans(const void *a, const void *b)
{
	const Span *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorts the spans, and lets each reach at least as far as those before it, for bisection. */
static void join_spans(Follow *follow)
{
	Span *spans = follow->spans.items;

	if (follow->spans.count == 0)
		return;
	qsort(spans, follow->spans.count, sizeof(*spans), compare_spans);
	for (size_t i = 1; i < follow->spans.count; i++)
		spans[i].to = MAX(spans[i].to, spans[i - 1].to);
}

static bool is_spanned(const Follow *follow, uint32_t offset)
{
	size_t i = partition_point(middle, follow->spans.count,
				   follow->spans.items[middle].from < offset);

	return i > 0 && follow->spans.items[i - 1].to >= offset;
}

/*
 * Returns the first offset from which on the code may belong to another function: after a call, if
 * nothing after it proves that it still is this one (a return or a call with its stack, a jump
 * across it).
 */
static uint32_t uncertain_from(Follow *follow)
{
	uint32_t from = UINT32_MAX;

	if (follow->may_begin.count > 0)
		join_spans(follow);
	for (size_t i = 0; i < follow->may_begin.count; i++) {
		const MayBegin *begin = &follow->may_begin.items[i];

		if (begin->offset > follow->last_proof && begin->sp_to_cfa != UNWIND_SLOT &&
		    !is_spanned(follow, begin->offset))
			from = MIN(from, begin->offset);
	}
	return from;
}

/* Emits the rows of the function. Code in it that is not reached is unknown. */
static void put_rows(Follow *follow, UnwindCodeRows *rows)
{
	const struct unwind_rule *unknown = &follow->code->unknown;
	uint32_t uncertain = uncertain_from(follow);

	if (follow->wrong) {
		put_wrong(follow, rows);
		return;
	}
	for (uint32_t offset = follow->start; offset < follow->end;) {
		UnwindState state = follow->at[offset];
		struct unwind_rule rule;
		uint8_t length;

		if (!state.known) {
			length = unwind_padding_length(byte_at(follow, offset),
						       follow->size - offset);
			if (!length)
				put_row(rows, follow->from + offset, unknown);
			offset += MAX(length, 1);
			continue;
		}
		state.guessed |= offset >= uncertain ||
				 (!follow->returns && (!follow->known || follow->odd)) ||
				 (!follow->known && follow->odd);
		rule = unwind_state_rule(&state, unknown);
		put_row(rows, follow->from + offset, &rule);
		length = length_at(follow, offset);
		offset += MAX(length, 1);
	}
}

/* Functions begin at aligned addresses after padding or a return. */
static bool looks_like_begin(const Follow *follow, uint32_t offset)
{
	static const uint8_t before[] = {0x00, 0x90, 0xc3, 0xcc};

	return is_aligned(follow, offset) &&
	       memchr(before, *byte_at(follow, offset - 1), sizeof(before));
}

/* Returns where the next function may begin. The rest of a function that was not understood must
 * not be mistaken for one. */
static uint32_t next_function_start(const Follow *follow)
{
	uint32_t offset = MAX(follow->end, follow->start + 1);

	if (!follow->wrong)
		return offset;
	if (follow->from + follow->start == follow->code->entry)
		offset = MAX(offset, follow->start + ENTRY_MAX);
	while (offset < follow->size && !follow->begins[offset] &&
	       !looks_like_begin(follow, offset))
		offset++;
	return MIN(offset, follow->size);
}

/* Whether a function begins at the start of a window. */
enum begin { BEGINS, BEGINS_PERHAPS, BEGINS_NOWHERE };

static uint32_t first_begin(const Follow *follow)
{
	uint32_t offset = 1;

	while (offset < follow->size && !looks_like_begin(follow, offset))
		offset++;
	return MIN(offset, follow->size);
}

/* A known function may begin with a nop, which is padding elsewhere. */
static void follow_window(Follow *follow, enum begin begin, UnwindCodeRows *rows)
{
	uint32_t offset = 0;

	follow->steps = (uint64_t)STEPS_MAX * follow->size;
	memset(follow->at, 0, follow->size * sizeof(*follow->at));
	memset(follow->lengths, 0, follow->size);
	memset(follow->begins, 0, follow->size * sizeof(*follow->begins));
	if (begin == BEGINS_NOWHERE) {
		put_row(rows, follow->from, &follow->code->unknown);
		offset = first_begin(follow);
	}
	if (begin != BEGINS)
		offset = next_unreached(follow, offset);
	while (follow->steps > 0 && offset < follow->size) {
		follow_function(follow, offset, offset == 0 && begin == BEGINS);
		put_rows(follow, rows);
		follow->begins[offset] |= !follow->wrong;
		offset = next_unreached(follow, next_function_start(follow));
	}
	if (offset < follow->size)
		put_row(rows, follow->from + offset, &follow->code->unknown);
}

/* ---- all ----------------------------------------------------------------------------------- */

/* Returns the first offset after padding; UINT32_MAX: a function need not begin there. */
static uint32_t first_function(const UnwindCode *code)
{
	uint32_t offset = 0;

	while (offset < code->size) {
		uint8_t padding = unwind_padding_length(code->bytes + offset, code->size - offset);

		if (!padding)
			break;
		offset += padding;
	}
	if (offset >= code->size ||
	    ((offset > 0 || !code->function_begins) && (code->address + offset) % UNWIND_ALIGNMENT))
		return UINT32_MAX;
	return offset;
}

/* Follows the code from one known function to the next, in windows. */
static void follow_windows(Follow *follow, uint32_t from, uint32_t to, enum begin begin,
			   UnwindCodeRows *rows)
{
	for (follow->from = from; follow->from < to; follow->from += follow->size) {
		follow->size = MIN(to - follow->from, WINDOW_MAX);
		follow_window(follow, follow->from == from ? begin : BEGINS_NOWHERE, rows);
	}
}

void unwind_follow_code(const UnwindCode *code, UnwindCodeRows *ret_rows)
{
	uint32_t window = MIN(code->size, WINDOW_MAX), first = first_function(code);
	uint32_t next = code->start_count > 0 ? code->starts[0] : code->size;
	Follow follow = {.code = code};

	*ret_rows = (UnwindCodeRows){};
	follow.begins = xcalloc(window, sizeof(*follow.begins));
	follow.at = xcalloc(window, sizeof(*follow.at));
	follow.lengths = xcalloc(window, 1);
	/* Large code may begin with cold parts of functions. */
	if (first < next)
		follow_windows(&follow, first, next, code->size <= SMALL ? BEGINS : BEGINS_PERHAPS,
			       ret_rows);
	for (size_t i = 0; i < code->start_count; i++) {
		next = i + 1 < code->start_count ? code->starts[i + 1] : code->size;
		follow_windows(&follow, code->starts[i], next, BEGINS, ret_rows);
	}
	free(follow.at);
	free(follow.lengths);
	free(follow.begins);
	vec_free(&follow.strong);
	vec_free(&follow.weak);
	vec_free(&follow.changes);
	vec_free(&follow.may_begin);
	vec_free(&follow.spans);
}
