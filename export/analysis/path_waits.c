/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "path_waits.h"
#include "interpreter_locks.h"
#include "wait_fields.h"

/*
 * A wait that the path followed to its waker. A turn of waits for an interpreter's lock is one wait
 * for the path, which goes from holder to holder until the turn began.
 */
typedef struct Sleeper {
	uint32_t thread;
	uint32_t interval; /* the wait; of a turn: the latest part that is not charged yet */
	uint32_t first;	   /* the first part of the turn, else `interval` */
} Sleeper;

typedef struct Charger {
	const Timeline *timeline;
	VEC(Sleeper) sleepers; /* the innermost last; each thread once */
	bool *sleeps;	       /* Timeline::threads -> whether it is one of them */
	/*
	 * Timeline::threads -> the thread's wait in `waits` that was charged last, or WAIT_NONE.
	 * The path is walked back in time, so a thread's earlier waits follow, and none comes
	 * again.
	 */
	uint32_t *last;
	PathWaits waits;
} Charger;

static void charge(Charger *charger, uint32_t thread, uint32_t interval, uint64_t ns,
		   uint64_t other_ns)
{
	uint32_t number = charger->last[thread];

	if (ns + other_ns == 0)
		return;
	if (number == WAIT_NONE || charger->waits.items[number].interval != interval) {
		number = charger->last[thread] = charger->waits.count;
		*vec_push(&charger->waits) = (PathWait){thread, interval, 0, 0};
	}
	charger->waits.items[number].ns += ns;
	charger->waits.items[number].other_ns += other_ns;
}

/* Returns the index of the interval of a thread that contains ns; SIZE_MAX: there is none. */
static size_t interval_at(const Thread *thread, uint64_t ns)
{
	size_t low = 0, high = thread->intervals.count;

	if (high == 0 || ns < thread->intervals.items[0].start_ns || ns >= thread->end_ns)
		return SIZE_MAX;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (thread->intervals.items[middle].start_ns <= ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint64_t start_of(const Charger *charger, const Sleeper *sleeper, uint32_t interval)
{
	return charger->timeline->threads.items[sleeper->thread].intervals.items[interval].start_ns;
}

/*
 * Goes back to the last part of the sleeper's turn that began before ns, and returns its end; 0:
 * there is none. Between two parts the thread was awake.
 */
static uint64_t go_back_to_part(const Charger *charger, Sleeper *sleeper, uint64_t ns)
{
	const Thread *thread = &charger->timeline->threads.items[sleeper->thread];

	while (sleeper->interval > sleeper->first &&
	       (start_of(charger, sleeper, sleeper->interval) >= ns ||
		!interpreter_lock_is_wait(&thread->intervals.items[sleeper->interval])))
		sleeper->interval--;
	return start_of(charger, sleeper, sleeper->interval) < ns
		       ? interval_end(thread, sleeper->interval)
		       : 0;
}

/*
 * Charges the end of a part of the path, from from_ns to to_ns, to the innermost sleeper that slept
 * then, and returns where that one's share begins. ret_slept: whether there is one.
 */
static uint64_t charge_end(Charger *charger, uint64_t from_ns, uint64_t to_ns, bool *ret_slept)
{
	*ret_slept = false;
	for (size_t i = charger->sleepers.count; i-- > 0;) {
		Sleeper *sleeper = &charger->sleepers.items[i];
		uint64_t end_ns = go_back_to_part(charger, sleeper, to_ns);

		if (end_ns < to_ns) {
			from_ns = MAX(from_ns, end_ns);
			continue;
		}
		from_ns = MAX(from_ns, start_of(charger, sleeper, sleeper->interval));
		charge(charger, sleeper->thread, sleeper->interval, to_ns - from_ns, 0);
		*ret_slept = true;
		break;
	}
	return from_ns;
}

/*
 * Charges a part of the path, from from_ns to to_ns, to the sleepers, the innermost first. Returns
 * what is left: none of them slept then.
 */
static uint64_t charge_sleepers(Charger *charger, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t left_ns = 0;

	while (to_ns > from_ns) {
		bool slept;
		uint64_t begin_ns = charge_end(charger, from_ns, to_ns, &slept);

		left_ns += slept ? 0 : to_ns - begin_ns;
		to_ns = begin_ns;
	}
	return left_ns;
}

/*
 * Returns whether what a blocked thread waits for is outside of the program: a disk, a file, a
 * peer. Of some waits for disks it is not known for which file they are.
 */
static bool waits_outside(const Timeline *timeline, const Thread *thread, size_t wait)
{
	enum reason reason = wait_reason(&thread->intervals.items[wait]);
	uint32_t object = wait_object(timeline, thread, wait);
	uint8_t kind;

	if (reason_info[reason].category == CATEGORY_DISK)
		return true;
	if (object == OBJECT_NONE)
		return false;
	kind = timeline->objects.list.items[object].kind;
	return kind == OBJECT_FILE || kind == OBJECT_PIPE || kind == OBJECT_SOCKET;
}

/* Charges interval i of the path. */
static void charge_interval(Charger *charger, size_t i)
{
	const Timeline *timeline = charger->timeline;
	const Thread *track = &timeline->path.track;
	const Interval *interval = &track->intervals.items[i];
	uint32_t owner = track->owners.items[i];
	const Thread *thread = &timeline->threads.items[owner];
	uint64_t end_ns = interval_end(track, i), left_ns;
	size_t wait = SIZE_MAX;

	/* A request in flight is like a running thread: its submitter may do anything then. */
	if (interval->state == STATE_BLOCKED && interval->reason != REASON_ON_DEVICE)
		wait = interval_at(thread, interval->start_ns);
	if (wait != SIZE_MAX && waits_outside(timeline, thread, wait)) {
		charge(charger, owner, wait, end_ns - interval->start_ns, 0);
		return;
	}
	left_ns = charge_sleepers(charger, interval->start_ns, end_ns);
	if (wait != SIZE_MAX)
		charge(charger, owner, wait, left_ns, end_ns - interval->start_ns - left_ns);
}

/*
 * What began to sleep after ns does not delay what was before. Those that are not the innermost are
 * left: charge_sleepers() passes over them.
 */
static void drop_later(Charger *charger, uint64_t ns)
{
	while (charger->sleepers.count > 0) {
		const Sleeper *last = &charger->sleepers.items[charger->sleepers.count - 1];

		if (start_of(charger, last, last->first) < ns)
			return;
		charger->sleeps[last->thread] = false;
		charger->sleepers.count--;
	}
}

/* The path goes on at a thread: what that thread slept for later did not delay it. */
static void drop_sleeper(Charger *charger, uint32_t thread)
{
	Sleeper *items = charger->sleepers.items;
	size_t i = charger->sleepers.count;

	if (!charger->sleeps[thread])
		return;
	while (items[--i].thread != thread)
		;
	charger->sleeps[thread] = false;
	charger->sleepers.count--;
	memmove(&items[i], &items[i + 1], (charger->sleepers.count - i) * sizeof(*items));
}

/* The path came to a thread at ns, where its sleep ended, unless it was created then. */
static void add_sleeper(Charger *charger, uint32_t thread, uint64_t ns)
{
	const Thread *sleeper = &charger->timeline->threads.items[thread];
	size_t next = ns > 0 ? interval_at(sleeper, ns - 1) : SIZE_MAX;
	const Interval *wait;

	if (next == SIZE_MAX)
		return;
	wait = &sleeper->intervals.items[next];
	if (wait->state != STATE_BLOCKED || interval_end(sleeper, next) != ns ||
	    category_is_idle(reason_info[wait_reason(wait)].category))
		return;
	*vec_push(&charger->sleepers) = (Sleeper){
		.thread = thread,
		.interval = next,
		.first = interpreter_lock_is_wait(wait)
				 ? interpreter_lock_turn(charger->timeline, sleeper, next).first
				 : next,
	};
	charger->sleeps[thread] = true;
}

PathWaits path_waits_find(const Timeline *timeline)
{
	const Thread *track = &timeline->path.track;
	Charger charger = {.timeline = timeline};
	size_t threads = timeline->threads.count;
	_cleanup_free_ bool *sleeps = xcalloc(threads + 1, sizeof(*sleeps));
	_cleanup_free_ uint32_t *last = xcalloc(threads + 1, sizeof(*last));

	charger.sleeps = sleeps;
	charger.last = memset(last, 0xff, threads * sizeof(*last));
	for (size_t i = track->intervals.count; i-- > 0;) {
		charge_interval(&charger, i);
		drop_later(&charger, track->intervals.items[i].start_ns);
		if (i > 0 && track->owners.items[i - 1] != track->owners.items[i]) {
			add_sleeper(&charger, track->owners.items[i],
				    track->intervals.items[i].start_ns);
			drop_sleeper(&charger, track->owners.items[i - 1]);
		}
	}
	vec_free(&charger.sleepers);
	return charger.waits;
}
