/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "functions.h"
#include "interpreter_locks_private.h"

/* ---- pieces of turns --------------------------------------------------------------------- */

/* A piece of a thread's wait for a lock: another thread had the lock, in one function. */
typedef struct Piece {
	uint64_t start_ns, end_ns;
	uint32_t lock, task, function;
} Piece;

/* When threads began and ended to wait for a lock, so that the time of all before any moment is
 * known. */
typedef struct Moments {
	VEC(uint64_t) ns;   /* sorted */
	VEC(uint64_t) sums; /* of those up to this one */
} Moments;

typedef struct Summer {
	const Timeline *timeline;
	Frames *frames;
	InterpreterLocks *result;
	Handovers handovers;
	Map lock_of;	 /* (process, address) -> locks */
	Map function_of; /* (stack, process) -> functions, or UINT32_MAX */
	Map waiter_of;	 /* (lock, thread) -> waiters */
	Map kept_of;	 /* (lock, task, function, reason) -> kept */
	VEC(Piece) pieces;
	VEC(Moments) starts, ends; /* by lock */
} Summer;

static uint32_t lock_number(Summer *summer, uint32_t process, uint64_t address, uint8_t language)
{
	uint64_t key = hash_mix(process, address);
	uint32_t number = map_get(&summer->lock_of, key);

	if (number != MAP_NONE)
		return number;
	number = summer->result->locks.count;
	map_set(&summer->lock_of, key, number);
	*vec_push(&summer->result->locks) = (InterpreterLock){
		.process = process,
		.address = address,
		.language = language,
	};
	*vec_push(&summer->starts) = (Moments){};
	*vec_push(&summer->ends) = (Moments){};
	return number;
}

/* Returns the innermost function of a program that an interpreter runs, or else of any. */
static uint32_t resolve_function(Summer *summer, const LockPlace *place)
{
	const uint32_t *list;
	size_t count = frames_resolve(summer->frames, summer->timeline, place->ns_tgid, place->ns,
				      place->user_stack, STACK_NONE, false, &list);
	const Frame *found = NULL;
	_cleanup_free_ char *text = NULL;

	for (size_t i = count; i-- > 0 && (!found || !found->script);) {
		const Frame *frame = &summer->frames->list.items[list[i]];

		if (frame->script || (!found && frame->lib != LIBRARY_NONE))
			found = frame;
	}
	if (!found)
		return UINT32_MAX;
	text = function_text(strings_get(&summer->frames->strings, found->function),
			     found->lib == LIBRARY_NONE
				     ? NULL
				     : summer->frames->libraries.items[found->lib].name);
	return strings_intern(&summer->result->functions, text);
}

/* Returns UINT32_MAX if it is not known. */
static uint32_t function_at(Summer *summer, const LockPlace *place)
{
	uint64_t key = (uint64_t)place->user_stack << 32 | place->ns_tgid;
	uint32_t number;

	if (place->user_stack == STACK_NONE)
		return UINT32_MAX;
	number = map_get(&summer->function_of, key);
	if (number == MAP_NONE) {
		number = resolve_function(summer, place);
		map_set(&summer->function_of, key, number);
	}
	return number;
}

static void add_piece(Summer *summer, const Piece *piece)
{
	if (piece->end_ns > piece->start_ns)
		*vec_push(&summer->pieces) = *piece;
}

static void add_place(Summer *summer, Piece piece, const LockPlace *place, uint64_t start_ns,
		      uint64_t end_ns)
{
	piece.function = function_at(summer, place);
	piece.start_ns = start_ns;
	piece.end_ns = end_ns;
	add_piece(summer, &piece);
}

/*
 * Divides a part of a running interval by the ticks in it: each stands for the time since the one
 * before, the last one also for the rest. Without ticks it has the place where the interval ends,
 * or else where it began.
 */
static void divide_running(Summer *summer, const Piece *piece, const Thread *holder, size_t i,
			   uint64_t start_ns, uint64_t end_ns)
{
	const Timeline *timeline = summer->timeline;
	size_t t = partition_point(middle, holder->ticks.count,
				   holder->ticks.items[middle].ns < start_ns);
	LockPlace place = interpreter_lock_no_place();

	for (; t < holder->ticks.count && holder->ticks.items[t].ns < end_ns; t++) {
		const Tick *tick = &holder->ticks.items[t];

		if (!tick->has_lock)
			continue;
		if (place.user_stack != STACK_NONE) {
			add_place(summer, *piece, &place, start_ns, place.ns);
			start_ns = place.ns;
		}
		place = interpreter_lock_place_at(timeline, holder, tick->ns, tick->user_stack);
	}
	if (place.user_stack == STACK_NONE && i + 1 < holder->intervals.count &&
	    holder->intervals.items[i + 1].start_ns < end_ns + LOCK_AGAIN_NS)
		place = interpreter_lock_place_off_cpu(timeline, holder, i + 1);
	if (place.user_stack == STACK_NONE && i > 0)
		place = interpreter_lock_place_off_cpu(timeline, holder, i - 1);
	add_place(summer, *piece, &place, start_ns, end_ns);
}

/* Divides time in which a thread had the lock among the functions in which it was. */
static void divide(Summer *summer, Piece piece)
{
	const Thread *holder = interpreter_lock_thread_of(summer->timeline, piece.task);
	LockPlace place = interpreter_lock_no_place();
	uint64_t end_ns = piece.end_ns;
	size_t i = holder ? interpreter_lock_interval_after(holder, piece.start_ns) : 0;

	if (!holder || i == 0)
		return add_place(summer, piece, &place, piece.start_ns, end_ns);
	for (i--; i < holder->intervals.count && piece.start_ns < end_ns; i++) {
		uint64_t until_ns = MIN(interval_end(holder, i), end_ns);

		if (until_ns <= piece.start_ns)
			continue;
		if (holder->intervals.items[i].state == STATE_RUNNING) {
			divide_running(summer, &piece, holder, i, piece.start_ns, until_ns);
		} else {
			place = interpreter_lock_place_off_cpu(summer->timeline, holder, i);
			add_place(summer, piece, &place, piece.start_ns, until_ns);
		}
		piece.start_ns = until_ns;
	}
	place = interpreter_lock_no_place();
	add_place(summer, piece, &place, piece.start_ns, end_ns);
}

static void add_waiter(Summer *summer, uint32_t lock, uint32_t thread, uint64_t ns)
{
	uint64_t key = (uint64_t)lock << 32 | thread;
	uint32_t number = map_get(&summer->waiter_of, key);
	LockWaiter *waiter;

	if (number == MAP_NONE) {
		number = summer->result->waiters.count;
		map_set(&summer->waiter_of, key, number);
		*vec_push(&summer->result->waiters) = (LockWaiter){.lock = lock, .thread = thread};
	}
	waiter = &summer->result->waiters.items[number];
	waiter->ns += ns;
	waiter->longest_ns = MAX(waiter->longest_ns, ns);
	waiter->count++;
}

/* Cuts a turn where a thread released the lock: until then that thread had it. */
static void cut_turn(Summer *summer, const Thread *thread, const LockTurn *turn, Piece piece,
		     uint64_t address)
{
	const Handovers *handovers = &summer->handovers;
	uint64_t end_ns = piece.end_ns;
	size_t i = interpreter_lock_handovers_find(handovers, thread->process, address,
						   piece.start_ns + 1);

	for (; interpreter_lock_handovers_match(handovers, i, thread->process, address) &&
	       handovers->items[i].ns < end_ns;
	     i++) {
		piece.end_ns = handovers->items[i].ns;
		piece.task = handovers->items[i].task;
		if (piece.task == thread->task)
			piece.task = THREAD_NONE;
		divide(summer, piece);
		piece.start_ns = piece.end_ns;
	}
	piece.end_ns = end_ns;
	piece.task =
		interpreter_lock_holder_at_end(summer->timeline, handovers, thread, turn->last);
	if (piece.task == thread->task)
		piece.task = THREAD_NONE;
	divide(summer, piece);
}

static void add_turn(Summer *summer, const Thread *thread, const LockTurn *turn)
{
	const LockWait *known = thread_lock_wait(thread, turn->first);
	uint64_t address = known ? known->address : 0;
	uint64_t start_ns = thread->intervals.items[turn->first].start_ns;
	uint64_t end_ns = interval_end(thread, turn->last);
	uint32_t number = lock_number(summer, thread->process, address,
				      known ? known->language : SCRIPT_NONE);
	InterpreterLock *lock = &summer->result->locks.items[number];
	Piece piece = {.start_ns = start_ns, .end_ns = end_ns, .lock = number};

	lock->ns += end_ns - start_ns;
	lock->count++;
	*vec_push(&summer->starts.items[number].ns) = start_ns;
	*vec_push(&summer->ends.items[number].ns) = end_ns;
	add_waiter(summer, number, turn->thread, end_ns - start_ns);
	cut_turn(summer, thread, turn, piece, address);
}

static void add_turns(Summer *summer)
{
	for (size_t t = 0; t < summer->timeline->threads.count; t++) {
		const Thread *thread = &summer->timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			LockTurn turn;

			if (!interpreter_lock_is_wait(&thread->intervals.items[i]))
				continue;
			turn = interpreter_lock_turn(summer->timeline, thread, i);
			add_turn(summer, thread, &turn);
			i = turn.last;
		}
	}
}

/* ---- holdings ------------------------------------------------------------------------------ */

static int compare_pieces(const void *a, const void *b)
{
	const Piece *x = a, *y = b;

	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool is_same_holding(const LockHolding *holding, const Piece *piece)
{
	return holding->lock == piece->lock && holding->task == piece->task &&
	       holding->function == piece->function;
}

/* Several threads may wait at one time: then it was held once. */
static void add_holdings(Summer *summer)
{
	InterpreterLocks *result = summer->result;
	uint64_t until_ns = 0;

	if (summer->pieces.count > 1)
		qsort(summer->pieces.items, summer->pieces.count, sizeof(Piece), compare_pieces);
	for (size_t i = 0; i < summer->pieces.count; i++) {
		const Piece *piece = &summer->pieces.items[i];
		LockHolding *last = result->holdings.count
					    ? &result->holdings.items[result->holdings.count - 1]
					    : NULL;

		if (!last || !is_same_holding(last, piece)) {
			last = vec_push(&result->holdings);
			*last = (LockHolding){piece->lock, piece->task, piece->function, 0, 0};
			until_ns = 0;
		}
		last->waited_ns += piece->end_ns - piece->start_ns;
		if (piece->end_ns > until_ns)
			last->held_ns += piece->end_ns - MAX(piece->start_ns, until_ns);
		until_ns = MAX(until_ns, piece->end_ns);
	}
}

/* ---- waits of the holder ------------------------------------------------------------------- */

static int compare_ns(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sort_moments(Moments *moments)
{
	uint64_t sum = 0;

	if (moments->ns.count > 1)
		qsort(moments->ns.items, moments->ns.count, sizeof(uint64_t), compare_ns);
	for (size_t i = 0; i < moments->ns.count; i++) {
		sum += moments->ns.items[i];
		*vec_push(&moments->sums) = sum;
	}
}

/* Returns the sum of min(moment, ns). */
static uint64_t sum_until(const Moments *moments, uint64_t ns)
{
	size_t before = partition_point(middle, moments->ns.count, moments->ns.items[middle] <= ns);

	return (before ? moments->sums.items[before - 1] : 0) + (moments->ns.count - before) * ns;
}

/* Returns the time that all threads together waited for a lock until a moment. */
static uint64_t waited_until(const Summer *summer, uint32_t lock, uint64_t ns)
{
	return sum_until(&summer->ends.items[lock], ns) -
	       sum_until(&summer->starts.items[lock], ns);
}

/* The list is short: a thread has few reasons to wait while it has the lock. */
static LockKept *kept_of(Summer *summer, const LockKept *new)
{
	uint64_t key = hash_mix(hash_mix((uint64_t) new->lock << 32 | new->task, new->function),
				new->reason);
	uint32_t number = map_get(&summer->kept_of, key);

	if (number == MAP_NONE) {
		number = summer->result->kept.count;
		map_set(&summer->kept_of, key, number);
		*vec_push(&summer->result->kept) = *new;
	}
	return &summer->result->kept.items[number];
}

static void add_kept(Summer *summer, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const LockWait *lock = thread_lock_wait(thread, i);
	uint64_t end_ns = interval_end(thread, i), ns = end_ns - wait->start_ns;
	LockPlace place = interpreter_lock_place_at(summer->timeline, thread, wait->start_ns,
						    wait->user_stack);
	LockKept new = {.task = thread->task, .reason = wait->reason}, *kept;
	uint64_t waited_ns;

	if (!lock || !lock->held || !lock->own || lock->offset != LOCK_NO_WORD)
		return;
	new.lock = map_get(&summer->lock_of, hash_mix(thread->process, lock->address));
	if (new.lock == MAP_NONE) /* no thread ever waited for it */
		return;
	waited_ns = waited_until(summer, new.lock, end_ns) -
		    waited_until(summer, new.lock, wait->start_ns);
	if (!waited_ns) /* no thread wanted the lock */
		return;
	new.function = function_at(summer, &place);
	kept = kept_of(summer, &new);
	kept->ns += ns;
	kept->count++;
	kept->longest_ns = MAX(kept->longest_ns, ns);
	kept->waited_ns += waited_ns;
}

static void add_all_kept(Summer *summer)
{
	for (size_t t = 0; t < summer->timeline->threads.count; t++) {
		const Thread *thread = &summer->timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count && thread->lock_waits.count; i++)
			if (interval_is_switch_out(&thread->intervals.items[i]))
				add_kept(summer, thread, i);
	}
}

/* ---- the result ---------------------------------------------------------------------------- */

static int compare_holdings(const void *a, const void *b)
{
	const LockHolding *x = a, *y = b;

	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static int compare_kept(const void *a, const void *b)
{
	const LockKept *x = a, *y = b;

	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

static int compare_waiters(const void *a, const void *b)
{
	const LockWaiter *x = a, *y = b;

	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

#define SORT(list, compare)                                                                        \
	do {                                                                                       \
		if ((list).count > 1)                                                              \
			qsort((list).items, (list).count, sizeof(*(list).items), compare);         \
	} while (0)

InterpreterLocks interpreter_locks_sum(const Timeline *timeline, Frames *frames)
{
	InterpreterLocks result = {};
	Summer summer = {
		.timeline = timeline,
		.frames = frames,
		.result = &result,
		.handovers = interpreter_lock_handovers_collect(timeline),
	};

	add_turns(&summer);
	for (size_t i = 0; i < summer.starts.count; i++) {
		sort_moments(&summer.starts.items[i]);
		sort_moments(&summer.ends.items[i]);
	}
	add_holdings(&summer);
	if (result.locks.count)
		add_all_kept(&summer);
	SORT(result.holdings, compare_holdings);
	SORT(result.kept, compare_kept);
	SORT(result.waiters, compare_waiters);
	for (size_t i = 0; i < summer.starts.count; i++) {
		vec_free(&summer.starts.items[i].ns);
		vec_free(&summer.starts.items[i].sums);
		vec_free(&summer.ends.items[i].ns);
		vec_free(&summer.ends.items[i].sums);
	}
	vec_free(&summer.starts);
	vec_free(&summer.ends);
	vec_free(&summer.pieces);
	vec_free(&summer.handovers);
	map_free(&summer.lock_of);
	map_free(&summer.function_of);
	map_free(&summer.waiter_of);
	map_free(&summer.kept_of);
	return result;
}

void interpreter_locks_free(InterpreterLocks *locks)
{
	vec_free(&locks->locks);
	vec_free(&locks->holdings);
	vec_free(&locks->kept);
	vec_free(&locks->waiters);
	strings_free(&locks->functions);
}
