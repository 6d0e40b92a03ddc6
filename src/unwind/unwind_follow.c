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
	uint32_t place;
	UnwindState before;
} Change;

/* The address after a call, where another function may begin, and the stack there. */
typedef struct MayBegin {
	uint32_t place;
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
	UnwindOffsets strong, weak; /* work lists of places; the weak ones come last */
	uint64_t steps;		    /* steps that are left for the window */
	VEC(Change) changes;
	/* The function. */
	uint32_t start, end; /* the range that is reached */
	bool known;	     /* a function begins at start for certain */
	bool wrong;	     /* the function was not understood */
	bool returns;	     /* it returns with the stack of its entry, so it was understood */
	uint32_t last_proof; /* the last place that certainly belongs to this function */
	/* It jumps to a place where no function begins, or calls with a misaligned stack. */
	bool odd;
	uint32_t misfit; /* the place of a return with another stack, and that stack */
	int32_t misfit_to_cfa;
	/* Places where another function begins if the call before them does not return. */
	VEC(MayBegin) may_begin;
	VEC(Span) spans;
	UnwindState switched; /* the state at an indirect jump */
} Follow;

/* ---- a function -------------------------------------------------------------------------- */

static const uint8_t *byte_at(const Follow *follow, uint32_t place)
{
	return follow->code->bytes + follow->from + place;
}

static Instruction instruction_at(const Follow *follow, uint32_t place)
{
	return unwind_instruction(byte_at(follow, place), follow->size - place);
}

static bool is_aligned(const Follow *follow, uint32_t place)
{
	return (follow->code->address + follow->from + place) % UNWIND_ALIGNMENT == 0;
}

static void set_stack(Follow *follow, uint32_t place, const UnwindState *state)
{
	*vec_push(&follow->changes) = (Change){.place = place, .before = follow->at[place]};
	follow->at[place] = *state;
	*vec_push(state->weak ? &follow->weak : &follow->strong) = place;
}

/* Merges a state into that of a place, and puts the place on a work list if it changed. */
static void enter(Follow *follow, uint32_t place, const UnwindState *state)
{
	const UnwindState *known = &follow->at[place];
	UnwindState merged;

	if (!known->known || (known->weak && !state->weak)) {
		/* A jump is better evidence than a call before the place, which may not return. */
		if (!unwind_state_same(known, state))
			set_stack(follow, place, state);
		return;
	}
	if (state->weak && !known->weak)
		return;
	merged = unwind_state_merge(known, state);
	if (!unwind_state_same(known, &merged))
		set_stack(follow, place, &merged);
}

static bool function_begins_at(const Follow *follow, int64_t offset)
{
	const UnwindCode *code = follow->code;
	size_t i = partition_point(middle, code->start_count, code->starts[middle] < offset);

	return i < code->start_count && code->starts[i] == offset;
}

/* Returns whether another function than this one begins at place. */
static bool is_other(const Follow *follow, int64_t place)
{
	return follow->begins[place] && place != follow->start;
}

static void find_misfit(Follow *follow, uint32_t place, const UnwindState *state)
{
	if (follow->wrong)
		return;
	follow->wrong = true;
	follow->misfit = place;
	follow->misfit_to_cfa = state->sp_to_cfa;
}

/*
 * A return, or a tail call. If the stack is not that of the entry, either this function was not
 * understood, or another function begins before this place and was not noticed.
 */
static void return_from(Follow *follow, uint32_t place, const UnwindState *state)
{
	if (state->outermost || !state->sp_known)
		return;
	if (!unwind_state_returns(state)) {
		find_misfit(follow, place, state);
		return;
	}
	follow->returns = true;
	follow->last_proof = MAX(follow->last_proof, place);
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
			(MayBegin){.place = to, .sp_to_cfa = state.sp_to_cfa};
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

/* A switch, or an indirect tail call. */
static void jump_somewhere(Follow *follow, const UnwindState *state)
{
	follow->switched = *state;
}

/*
 * The psABI aligns the stack to 16 bytes at a call. If the function had in fact begun at an earlier
 * place, the stack would seem to be misaligned here.
 */
static void call(Follow *follow, uint32_t place, const UnwindState *state)
{
	/* The entry point is not called: its stack is aligned on entry. */
	if (!state->sp_known || state->outermost)
		return;
	if (state->sp_to_cfa % UNWIND_ALIGNMENT)
		follow->odd = true;
	else
		follow->last_proof = MAX(follow->last_proof, place);
}

/*
 * A switch and an indirect tail call can only be told apart by the stack: a tail call has that of
 * the entry. If a switch has it, too, code after the function's end counts as a case only if it is
 * not aligned, as a function would be.
 */
static bool may_be_case(const Follow *follow, uint32_t place)
{
	return follow->switched.known &&
	       (place < follow->end ||
		(follow->switched.sp_known && follow->switched.ra == RA_AT_CFA)) &&
	       (place < follow->end || !unwind_state_returns(&follow->switched) ||
		!is_aligned(follow, place));
}

static void step(Follow *follow, uint32_t place)
{
	Instruction instruction = instruction_at(follow, place);
	UnwindState state = follow->at[place];
	int64_t behind = (int64_t)place + instruction.length;

	follow->end = MAX(follow->end, (uint32_t)behind);
	unwind_state_change(&state, &instruction);
	if (state.broken) {
		find_misfit(follow, place, &state);
		return;
	}
	switch ((enum instruction_does)instruction.does) {
	case DOES_UNKNOWN:
		follow->wrong = true;
		break;
	case DOES_STOP:
		break;
	case DOES_RETURN:
		return_from(follow, place, &state);
		break;
	case DOES_JUMP:
		jump_to(follow, place, behind + instruction.number, state, /* only= */ true);
		break;
	case DOES_JUMP_SOMEWHERE:
		jump_somewhere(follow, &state);
		break;
	case DOES_BRANCH:
		jump_to(follow, place, behind + instruction.number, state, /* only= */ false);
		go_on(follow, behind, state, /* weak= */ false);
		break;
	case DOES_CALL:
	case DOES_CALL_SOMEWHERE:
		call(follow, place, &state);
		go_on(follow, behind, state, /* weak= */ true);
		break;
	case DOES_NOP:
		go_on(follow, behind, state, state.weak);
		break;
	default:
		go_on(follow, behind, state, /* weak= */ false);
		break;
	}
}

/* Processes the work lists until they are empty or the function is wrong. */
static void explore(Follow *follow)
{
	UnwindOffsets *places;

	while (!follow->wrong) {
		places = follow->strong.count ? &follow->strong : &follow->weak;
		if (places->count == 0)
			return;
		if (follow->steps == 0) {
			follow->wrong = true;
			break;
		}
		follow->steps--;
		step(follow, places->items[--places->count]);
	}
	follow->strong.count = follow->weak.count = 0;
}

static void take_back(Follow *follow, size_t changes)
{
	while (follow->changes.count > changes) {
		const Change *last = &follow->changes.items[--follow->changes.count];

		follow->at[last->place] = last->before;
	}
}

/* Returns the first place from `place` on that is neither reached nor padding. */
static uint32_t next_unreached(const Follow *follow, uint32_t place)
{
	while (place < follow->size) {
		uint8_t padding;

		if (follow->at[place].known) {
			uint8_t length = instruction_at(follow, place).length;

			place += MAX(length, 1);
			continue;
		}
		padding = unwind_padding_length(byte_at(follow, place), follow->size - place);
		if (!padding)
			break;
		place += padding;
	}
	return place;
}

/*
 * In a function with an indirect jump, code that no direct jump reaches counts as a case of a
 * switch, if the function is still understood with it. If not, and it lies after all code that is
 * reached, it is another function.
 */
static void try_cases(Follow *follow)
{
	uint32_t place = follow->start;

	while ((place = next_unreached(follow, place)) < follow->size && !follow->begins[place] &&
	       may_be_case(follow, place)) {
		uint32_t end = follow->end, last_proof = follow->last_proof;
		bool returns = follow->returns;
		size_t changes = follow->changes.count;
		UnwindState state = follow->switched;

		state.guessed = true;
		state.weak = false;
		enter(follow, place, &state);
		explore(follow);
		if (!follow->wrong)
			continue;
		take_back(follow, changes);
		follow->wrong = false;
		follow->end = end;
		follow->returns = returns;
		follow->last_proof = last_proof;
		if (place >= end)
			break;
		place++;
		while (place < end && !follow->at[place].known)
			place++;
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

		if (begin->place <= follow->misfit && begin->sp_to_cfa == follow->misfit_to_cfa &&
		    !follow->begins[begin->place])
			found = MAX(found, begin->place);
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
		take_back(follow, 0);
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

static bool is_spanned(const Follow *follow, uint32_t place)
{
	size_t i = partition_point(middle, follow->spans.count,
				   follow->spans.items[middle].from < place);

	return i > 0 && follow->spans.items[i - 1].to >= place;
}

/*
 * Returns the first place from which on the code may belong to another function: after a call, with
 * no later proof that it still is this one (a return or a call with its stack, a jump across it).
 */
static uint32_t uncertain_from(Follow *follow)
{
	uint32_t from = UINT32_MAX;

	if (follow->may_begin.count > 0)
		join_spans(follow);
	for (size_t i = 0; i < follow->may_begin.count; i++) {
		const MayBegin *begin = &follow->may_begin.items[i];

		if (begin->place > follow->last_proof && begin->sp_to_cfa != UNWIND_SLOT &&
		    !is_spanned(follow, begin->place))
			from = MIN(from, begin->place);
	}
	return from;
}

/* Emits the rows of the function. Code in it that is not reached is unknown. */
static void put_rows(Follow *follow, UnwindCodeRows *rows)
{
	const struct unwind_rule *unknown = &follow->code->unknown;
	uint32_t doubtful = uncertain_from(follow);

	if (follow->wrong) {
		put_wrong(follow, rows);
		return;
	}
	for (uint32_t place = follow->start; place < follow->end;) {
		UnwindState state = follow->at[place];
		struct unwind_rule rule;
		uint8_t length;

		if (!state.known) {
			length =
				unwind_padding_length(byte_at(follow, place), follow->size - place);
			if (!length)
				put_row(rows, follow->from + place, unknown);
			place += MAX(length, 1);
			continue;
		}
		state.guessed |= place >= doubtful ||
				 (!follow->returns && (!follow->known || follow->odd)) ||
				 (!follow->known && follow->odd);
		rule = unwind_state_rule(&state, unknown);
		put_row(rows, follow->from + place, &rule);
		length = instruction_at(follow, place).length;
		place += MAX(length, 1);
	}
}

/* Functions begin at aligned places after padding or a return. */
static bool looks_like_begin(const Follow *follow, uint32_t place)
{
	static const uint8_t before[] = {0x00, 0x90, 0xc3, 0xcc};

	return is_aligned(follow, place) &&
	       memchr(before, *byte_at(follow, place - 1), sizeof(before));
}

/* Returns where the next function may begin. The rest of a function that was not understood must
 * not be mistaken for one. */
static uint32_t next_function_start(const Follow *follow)
{
	uint32_t place = MAX(follow->end, follow->start + 1);

	if (!follow->wrong)
		return place;
	if (follow->from + follow->start == follow->code->entry)
		place = MAX(place, follow->start + ENTRY_MAX);
	while (place < follow->size && !follow->begins[place] && !looks_like_begin(follow, place))
		place++;
	return MIN(place, follow->size);
}

/* Whether a function begins at the start of a window. */
enum begin { BEGINS, BEGINS_PERHAPS, BEGINS_NOWHERE };

static uint32_t first_begin(const Follow *follow)
{
	uint32_t place = 1;

	while (place < follow->size && !looks_like_begin(follow, place))
		place++;
	return MIN(place, follow->size);
}

/* A known function may begin with a nop, which is padding elsewhere. */
static void follow_window(Follow *follow, enum begin begin, UnwindCodeRows *rows)
{
	uint32_t place = 0;

	follow->steps = (uint64_t)STEPS_MAX * follow->size;
	memset(follow->at, 0, follow->size * sizeof(*follow->at));
	memset(follow->begins, 0, follow->size * sizeof(*follow->begins));
	if (begin == BEGINS_NOWHERE) {
		put_row(rows, follow->from, &follow->code->unknown);
		place = first_begin(follow);
	}
	if (begin != BEGINS)
		place = next_unreached(follow, place);
	while (follow->steps > 0 && place < follow->size) {
		follow_function(follow, place, place == 0 && begin == BEGINS);
		put_rows(follow, rows);
		follow->begins[place] |= !follow->wrong;
		place = next_unreached(follow, next_function_start(follow));
	}
	if (place < follow->size)
		put_row(rows, follow->from + place, &follow->code->unknown);
}

/* ---- all ----------------------------------------------------------------------------------- */

/* Returns the first place after padding; UINT32_MAX: a function need not begin there. */
static uint32_t first_function(const UnwindCode *code)
{
	uint32_t place = 0;

	while (place < code->size) {
		uint8_t padding = unwind_padding_length(code->bytes + place, code->size - place);

		if (!padding)
			break;
		place += padding;
	}
	if (place >= code->size ||
	    ((place > 0 || !code->function_begins) && (code->address + place) % UNWIND_ALIGNMENT))
		return UINT32_MAX;
	return place;
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
	/* Large code may begin with cold parts of functions. */
	if (first < next)
		follow_windows(&follow, first, next, code->size <= SMALL ? BEGINS : BEGINS_PERHAPS,
			       ret_rows);
	for (size_t i = 0; i < code->start_count; i++) {
		next = i + 1 < code->start_count ? code->starts[i + 1] : code->size;
		follow_windows(&follow, code->starts[i], next, BEGINS, ret_rows);
	}
	free(follow.at);
	free(follow.begins);
	vec_free(&follow.strong);
	vec_free(&follow.weak);
	vec_free(&follow.changes);
	vec_free(&follow.may_begin);
	vec_free(&follow.spans);
}
