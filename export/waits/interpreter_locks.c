/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "interpreter_locks_private.h"

/* ---- waits without what BPF read ------------------------------------------------------------ */

/* A lock that was read in some waits. */
typedef struct KnownLock {
	uint64_t address;
	uint32_t process; /* Timeline::processes */
	uint8_t language;
} KnownLock;

typedef VEC(KnownLock) KnownLocks;

static int compare_known(const void *a, const void *b)
{
	const KnownLock *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Returns the lock that the word lies in, or NULL: the last one that does not begin after it. */
static const KnownLock *find_known(const KnownLocks *known, uint32_t process, uint64_t word)
{
	KnownLock wanted = {.process = process, .address = word};
	size_t i = partition_point(middle, known->count,
				   compare_known(&known->items[middle], &wanted) <= 0);

	return i > 0 && known->items[i - 1].process == process &&
			       word - known->items[i - 1].address < SCRIPT_LOCK_SIZE
		       ? &known->items[i - 1]
		       : NULL;
}

/* Returns the locks in order of process and address. */
static KnownLocks known_locks(const Timeline *timeline)
{
	KnownLocks known = {};
	Map seen = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->lock_waits.count; i++) {
			const LockWait *lock = &thread->lock_waits.items[i];
			uint64_t key = hash_mix(thread->process, lock->address);

			if (map_get(&seen, key) != MAP_NONE)
				continue;
			map_set(&seen, key, 0);
			*vec_push(&known) =
				(KnownLock){lock->address, thread->process, lock->language};
		}
	}
	map_free(&seen);
	if (known.count > 1)
		qsort(known.items, known.count, sizeof(*known.items), compare_known);
	return known;
}

static int compare_lock_waits(const void *a, const void *b)
{
	const LockWait *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void complete_thread(const Timeline *timeline, const KnownLocks *known, Thread *thread)
{
	size_t before = thread->lock_waits.count;
	VEC(LockWait) added = {};

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];
		const KnownLock *lock;
		uint32_t object;

		if (wait->state != STATE_BLOCKED || wait->syscall != SYSCALL_FUTEX ||
		    thread_lock_wait(thread, i))
			continue;
		object = thread_wait_object(thread, i);
		if (object == OBJECT_NONE ||
		    timeline->objects.list.items[object].kind != OBJECT_FUTEX)
			continue;
		lock = find_known(known, thread->process,
				  timeline->objects.list.items[object].number);
		if (lock)
			*vec_push(&added) = (LockWait){
				.start_ns = wait->start_ns,
				.address = lock->address,
				.holder = THREAD_NONE,
				.offset =
					timeline->objects.list.items[object].number - lock->address,
				.language = lock->language,
			};
	}
	for (size_t i = 0; i < added.count; i++)
		*vec_push(&thread->lock_waits) = added.items[i];
	if (thread->lock_waits.count > before && before)
		qsort(thread->lock_waits.items, thread->lock_waits.count, sizeof(LockWait),
		      compare_lock_waits);
	vec_free(&added);
}

void interpreter_locks_complete(Timeline *timeline)
{
	KnownLocks known = known_locks(timeline);

	for (size_t t = 0; known.count && t < timeline->threads.count; t++)
		complete_thread(timeline, &known, &timeline->threads.items[t]);
	vec_free(&known);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Returns what a wait is for in its lock; REASON_NONE: not in a lock, or it is not a named wait. */
static enum reason use_of_lock(const Interval *wait)
{
	return wait->state == STATE_BLOCKED &&
			       (wait->reason == REASON_GIL || wait->reason == REASON_GIL_HANDOVER)
		       ? wait->reason
		       : REASON_NONE;
}

void interpreter_locks_join_words(Timeline *timeline)
{
	Map first = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; thread->lock_waits.count && i < thread->intervals.count; i++) {
			enum reason use = use_of_lock(&thread->intervals.items[i]);
			uint32_t object = use ? thread_wait_object(thread, i) : OBJECT_NONE;
			const LockWait *lock = use ? thread_lock_wait(thread, i) : NULL;
			uint64_t key;

			if (!lock || object == OBJECT_NONE)
				continue;
			key = hash_mix(hash_mix(thread->process, lock->address), use);
			/* That one may have been joined already, for another process. */
			object = objects_alike(&timeline->objects,
					       objects_alike(&timeline->objects, object));
			if (map_get(&first, key) == MAP_NONE)
				map_set(&first, key, object);
			timeline->objects.list.items[thread_wait_object(thread, i)].alike =
				map_get(&first, key);
		}
	}
	map_free(&first);
}

/* ---- holders ------------------------------------------------------------------------------ */

bool interpreter_lock_is_handover(const Timeline *timeline, const Thread *thread,
				  const Interval *wait)
{
	uint32_t waker;

	if (wait->flags & (INTERVAL_WAKER_IRQ | INTERVAL_OPEN_END) ||
	    wait->waker >= timeline->tasks.count)
		return false;
	waker = timeline->tasks.items[wait->waker].thread;
	return waker < timeline->threads.count &&
	       timeline->threads.items[waker].process == thread->process;
}

static uint64_t address_of(const Thread *thread, size_t i)
{
	const LockWait *lock = thread_lock_wait(thread, i);

	return lock ? lock->address : 0;
}

static int compare_handovers(const void *a, const void *b)
{
	const Handover *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

Handovers interpreter_lock_handovers_collect(const Timeline *timeline)
{
	Handovers handovers = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *wait = &thread->intervals.items[i];

			if (interpreter_lock_is_wait(wait) &&
			    interpreter_lock_is_handover(timeline, thread, wait))
				*vec_push(&handovers) = (Handover){
					.process = thread->process,
					.task = wait->waker,
					.address = address_of(thread, i),
					.ns = interval_end(thread, i),
				};
		}
	}
	if (handovers.count > 1)
		qsort(handovers.items, handovers.count, sizeof(*handovers.items),
		      compare_handovers);
	return handovers;
}

size_t interpreter_lock_handovers_find(const Handovers *handovers, uint32_t process,
				       uint64_t address, uint64_t ns)
{
	Handover wanted = {.process = process, .address = address, .ns = ns};

	return partition_point(middle, handovers->count,
			       compare_handovers(&handovers->items[middle], &wanted) < 0);
}

bool interpreter_lock_handovers_match(const Handovers *handovers, size_t i, uint32_t process,
				      uint64_t address)
{
	return i < handovers->count && handovers->items[i].process == process &&
	       handovers->items[i].address == address;
}

/* Returns the task that next releases a lock that could not be read, at ns or later. */
static uint32_t next_release(const Handovers *handovers, const Thread *thread, uint64_t ns)
{
	size_t i = interpreter_lock_handovers_find(handovers, thread->process, 0, ns);

	return interpreter_lock_handovers_match(handovers, i, thread->process, 0)
		       ? handovers->items[i].task
		       : THREAD_NONE;
}

/* Returns the part of the same turn that follows part i, or i if that is the last. */
static size_t next_part(const Timeline *timeline, const Thread *thread, size_t i)
{
	uint64_t address = address_of(thread, i), ran_ns = 0;

	if (interpreter_lock_is_handover(timeline, thread, &thread->intervals.items[i]))
		return i;
	for (size_t k = i + 1; k < thread->intervals.count; k++) {
		const Interval *next = &thread->intervals.items[k];

		if (interpreter_lock_is_wait(next))
			return address_of(thread, k) == address ? k : i;
		if (next->state == STATE_RUNNING)
			ran_ns += interval_end(thread, k) - next->start_ns;
		if ((next->state != STATE_RUNNING && next->state != STATE_RUNNABLE) ||
		    ran_ns > LOCK_AGAIN_NS)
			return i;
	}
	return i;
}

static size_t previous_part(const Timeline *timeline, const Thread *thread, size_t i)
{
	for (size_t k = i; k-- > 0;) {
		const Interval *before = &thread->intervals.items[k];

		if (interpreter_lock_is_wait(before))
			return next_part(timeline, thread, k) == i ? k : i;
		if (before->state != STATE_RUNNING && before->state != STATE_RUNNABLE)
			return i;
	}
	return i;
}

uint32_t interpreter_lock_holder_at_end(const Timeline *timeline, const Handovers *handovers,
					const Thread *thread, size_t i)
{
	const LockWait *lock = thread_lock_wait(thread, i), *next = NULL;
	size_t after = next_part(timeline, thread, i);

	if (interpreter_lock_is_handover(timeline, thread, &thread->intervals.items[i]))
		return thread->intervals.items[i].waker;
	if (!lock)
		return next_release(handovers, thread, interval_end(thread, i));
	if (after != i)
		next = thread_lock_wait(thread, after);
	if (next && next->held)
		return next->holder;
	return lock->held ? lock->holder : THREAD_NONE;
}

void interpreter_locks_find_holders(Timeline *timeline)
{
	Handovers handovers = interpreter_lock_handovers_collect(timeline);

	for (size_t t = 0; t < timeline->threads.count; t++) {
		Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const LockWait *lock;
			uint32_t holder;

			if (!interpreter_lock_is_wait(&thread->intervals.items[i]))
				continue;
			lock = thread_lock_wait(thread, i);
			holder = lock && lock->held ? lock->holder : THREAD_NONE;
			if (holder == THREAD_NONE)
				holder = interpreter_lock_holder_at_end(timeline, &handovers,
									thread, i);
			/* The waiter itself took the lock just when its time-out expired. */
			thread->intervals.items[i].lock_holder =
				holder == thread->task ? THREAD_NONE : holder;
		}
	}
	vec_free(&handovers);
}

/* ---- turns -------------------------------------------------------------------------------- */

LockTurn interpreter_lock_turn(const Timeline *timeline, const Thread *thread, size_t i)
{
	LockTurn turn = {.thread = thread - timeline->threads.items, .parts = 1};
	size_t at = i;

	for (size_t before; (before = previous_part(timeline, thread, at)) != at; at = before)
		turn.parts++;
	turn.first = at;
	at = i;
	for (size_t next; (next = next_part(timeline, thread, at)) != at; at = next)
		turn.parts++;
	turn.last = at;
	return turn;
}

LockPlace interpreter_lock_no_place(void)
{
	return (LockPlace){.user_stack = STACK_NONE};
}

LockPlace interpreter_lock_place_at(const Timeline *timeline, const Thread *thread, uint64_t ns,
				    uint32_t user_stack)
{
	return (LockPlace){
		.ns = ns,
		.ns_tgid = thread->process < timeline->processes.count
				   ? timeline->processes.items[thread->process].ns_tgid
				   : 0,
		.user_stack = user_stack,
	};
}

size_t interpreter_lock_interval_after(const Thread *thread, uint64_t ns)
{
	return partition_point(middle, thread->intervals.count,
			       thread->intervals.items[middle].start_ns <= ns);
}

/* Whether a switch-out shows a thread where it had the lock, or just after it released it. */
static bool shows_holder(const Thread *thread, size_t i)
{
	const LockWait *lock = interval_is_switch_out(&thread->intervals.items[i])
				       ? thread_lock_wait(thread, i)
				       : NULL;

	return lock && ((lock->held && lock->own) ||
			thread->intervals.items[i].reason == REASON_GIL_HANDOVER);
}

LockPlace interpreter_lock_place_of_release(const Timeline *timeline, const Thread *thread,
					    uint64_t ns)
{
	size_t i = interpreter_lock_interval_after(thread, ns);
	const Interval *wait = &thread->intervals.items[i];

	if (i == 0 || i == thread->intervals.count || wait->state != STATE_BLOCKED ||
	    wait->reason != REASON_GIL_HANDOVER || wait[-1].state != STATE_RUNNING ||
	    wait->start_ns - ns >= LOCK_AGAIN_NS)
		return interpreter_lock_no_place();
	return interpreter_lock_place_at(timeline, thread, wait->start_ns, wait->user_stack);
}

LockPlace interpreter_lock_place_off_cpu(const Timeline *timeline, const Thread *thread, size_t i)
{
	if (thread->intervals.items[i].state == STATE_RUNNABLE && i > 0 &&
	    !interval_is_switch_out(&thread->intervals.items[i]))
		i--; /* it was woken, where it slept */
	return shows_holder(thread, i)
		       ? interpreter_lock_place_at(timeline, thread,
						   thread->intervals.items[i].start_ns,
						   thread->intervals.items[i].user_stack)
		       : interpreter_lock_no_place();
}

/* Finds the first tick or switch-out of a thread between two times at which it had the lock. */
static LockPlace place_after(const Timeline *timeline, const Thread *thread, uint64_t from_ns,
			     uint64_t to_ns)
{
	size_t i = partition_point(middle, thread->intervals.count,
				   thread->intervals.items[middle].start_ns < from_ns);
	size_t t = partition_point(middle, thread->ticks.count,
				   thread->ticks.items[middle].ns < from_ns);
	uint64_t wait_ns = UINT64_MAX, tick_ns = UINT64_MAX;

	while (i < thread->intervals.count && thread->intervals.items[i].start_ns <= to_ns &&
	       !shows_holder(thread, i))
		i++;
	while (t < thread->ticks.count && thread->ticks.items[t].ns <= to_ns &&
	       !thread->ticks.items[t].has_lock)
		t++;
	if (i < thread->intervals.count && thread->intervals.items[i].start_ns <= to_ns)
		wait_ns = thread->intervals.items[i].start_ns;
	if (t < thread->ticks.count && thread->ticks.items[t].ns <= to_ns)
		tick_ns = thread->ticks.items[t].ns;
	if (wait_ns == UINT64_MAX && tick_ns == UINT64_MAX)
		return interpreter_lock_no_place();
	return wait_ns < tick_ns ? interpreter_lock_place_at(timeline, thread, wait_ns,
							     thread->intervals.items[i].user_stack)
				 : interpreter_lock_place_at(timeline, thread, tick_ns,
							     thread->ticks.items[t].user_stack);
}

const Thread *interpreter_lock_thread_of(const Timeline *timeline, uint32_t task)
{
	uint32_t thread =
		task < timeline->tasks.count ? timeline->tasks.items[task].thread : THREAD_NONE;

	return thread < timeline->threads.count ? &timeline->threads.items[thread] : NULL;
}

LockPlace interpreter_lock_place(const Timeline *timeline, const Thread *thread, size_t part)
{
	const Interval *wait = &thread->intervals.items[part];
	const Thread *holder = interpreter_lock_thread_of(timeline, wait->lock_holder);
	uint64_t end_ns = interval_end(thread, part);
	LockPlace place = interpreter_lock_no_place();
	size_t at;

	if (!holder)
		return place;
	at = interpreter_lock_interval_after(holder, wait->start_ns);
	if (at > 0)
		place = interpreter_lock_place_off_cpu(timeline, holder, at - 1);
	if (place.user_stack == STACK_NONE)
		place = place_after(timeline, holder, wait->start_ns, end_ns);
	return place.user_stack == STACK_NONE && wait->waker == wait->lock_holder
		       ? interpreter_lock_place_of_release(timeline, holder, end_ns)
		       : place;
}

/* ---- tenures ------------------------------------------------------------------------------ */

/* Returns the last part of the turn that begins before ns, which is after the first one does. */
static size_t part_before(const Thread *thread, const LockTurn *turn, uint64_t ns)
{
	size_t i = partition_point(middle, thread->intervals.count,
				   thread->intervals.items[middle].start_ns < ns);

	for (i = MIN(i, (size_t)turn->last + 1); i-- > turn->first;)
		if (interpreter_lock_is_wait(&thread->intervals.items[i]))
			return i;
	return turn->first;
}

/* Returns the holder when a part began, or THREAD_NONE. */
static uint32_t holder_at_begin(const Thread *thread, size_t part)
{
	const LockWait *lock = thread_lock_wait(thread, part);

	return lock && lock->held ? lock->holder : THREAD_NONE;
}

/* Returns the holder just before ns. release: the first release at ns or later. */
static uint32_t holder_before(const Timeline *timeline, const Handovers *handovers,
			      const LockTurn *turn, size_t release, uint64_t ns)
{
	const Thread *thread = &timeline->threads.items[turn->thread];
	uint64_t address = address_of(thread, turn->first);
	size_t part = part_before(thread, turn, ns);
	uint32_t holder = holder_at_begin(thread, part);
	bool follows =
		interpreter_lock_handovers_match(handovers, release, thread->process, address) &&
		handovers->items[release].ns <= interval_end(thread, turn->last);
	bool changed = release > 0 &&
		       interpreter_lock_handovers_match(handovers, release - 1, thread->process,
							address) &&
		       handovers->items[release - 1].ns > thread->intervals.items[part].start_ns;

	if (follows && (changed || holder == THREAD_NONE ||
			handovers->items[release].ns <= interval_end(thread, part)))
		return handovers->items[release].task;
	return changed || holder == THREAD_NONE
		       ? interpreter_lock_holder_at_end(timeline, handovers, thread, part)
		       : holder;
}

/*
 * Returns the beginning of the first of the parts before ns at which the task had the lock, if
 * another one had it at the part before that; else since_ns. A release is not seen if it was meant
 * for a thread that had reached its time limit and had no CPU yet.
 */
static uint64_t since_part(const Thread *thread, const LockTurn *turn, uint32_t task,
			   uint64_t since_ns, uint64_t ns)
{
	size_t part = part_before(thread, turn, ns);
	uint64_t first_ns = thread->intervals.items[part].start_ns;

	for (size_t i = part + 1; i-- > turn->first && interval_end(thread, i) > since_ns;) {
		uint32_t holder = interpreter_lock_is_wait(&thread->intervals.items[i])
					  ? holder_at_begin(thread, i)
					  : THREAD_NONE;

		if (holder == THREAD_NONE)
			continue;
		if (holder != task)
			return MAX(first_ns, since_ns);
		first_ns = thread->intervals.items[i].start_ns;
	}
	return since_ns;
}

bool interpreter_lock_is_same(const Timeline *timeline, const LockTurn *a, const LockTurn *b)
{
	const Thread *x = &timeline->threads.items[a->thread];
	const Thread *y = &timeline->threads.items[b->thread];

	return x->process == y->process && address_of(x, a->first) == address_of(y, b->first);
}

LockTenure interpreter_lock_tenure(const Timeline *timeline, const Handovers *handovers,
				   const LockTurn *turn, uint64_t ns)
{
	const Thread *thread = &timeline->threads.items[turn->thread];
	uint64_t address = address_of(thread, turn->first);
	LockTenure tenure = {.since_ns = thread->intervals.items[turn->first].start_ns};
	size_t i = interpreter_lock_handovers_find(handovers, thread->process, address, ns);

	tenure.task = holder_before(timeline, handovers, turn, i, ns);
	if (tenure.task == thread->task)
		tenure.task = THREAD_NONE;
	while (i-- > 0 &&
	       interpreter_lock_handovers_match(handovers, i, thread->process, address) &&
	       handovers->items[i].ns > tenure.since_ns) {
		if (handovers->items[i].task == tenure.task ||
		    handovers->items[i].task == thread->task)
			continue;
		tenure.since_ns = handovers->items[i].ns;
		break;
	}
	tenure.since_ns = since_part(thread, turn, tenure.task, tenure.since_ns, ns);
	return tenure;
}
