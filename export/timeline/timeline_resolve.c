/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resolves a chain when all losses are known.
 *
 * It works in place, front to back: a mark takes the room of one interval and leaves at most one,
 * of STATE_UNKNOWN.
 */
#include "timeline_builder_private.h"

/* ---- spans of loss -------------------------------------------------------------- */

static int compare_spans(const void *a, const void *b)
{
	const struct span *left = a, *right = b;

	return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

void spans_prepare(Spans *spans)
{
	size_t count = 0;

	if (!spans->count)
		return;
	qsort(spans->items, spans->count, sizeof(*spans->items), compare_spans);
	for (size_t i = 1; i < spans->count; i++) {
		struct span *last = &spans->items[count], next = spans->items[i];

		if (next.from_ns <= last->to_ns)
			last->to_ns = MAX(last->to_ns, next.to_ns);
		else
			spans->items[++count] = next;
	}
	spans->count = count + 1;
}

/* Returns when the first loss within [from_ns, to_ns] began; NS_NEVER if there was none. */
static uint64_t spans_first(const Spans *spans, uint64_t from_ns, uint64_t to_ns)
{
	size_t at = partition_point(middle, spans->count, spans->items[middle].to_ns < from_ns);

	if (at == spans->count || spans->items[at].from_ns > to_ns)
		return NS_NEVER;
	return MAX(spans->items[at].from_ns, from_ns);
}

/* ---- marks ---------------------------------------------------------------------- */

/* The part of a chain that is resolved: it has at least one interval when a mark is met. */
typedef struct Decided {
	TimelineBuilder *builder;
	Interval *items;
	size_t count;
} Decided;

/*
 * The state is unknown from ns on. If a recorded wakeup ends a wait there, its waker is still
 * known.
 */
static void cut_back(Decided *decided, uint64_t ns)
{
	bool woken = false;

	while (decided->count && decided->items[decided->count - 1].start_ns >= ns) {
		const Interval *cut = &decided->items[--decided->count];

		woken = cut->start_ns == ns && cut->flags & MARK_WAKING;
	}
	if (!decided->count)
		return;

	Interval *last = &decided->items[decided->count - 1];

	if (last->state == STATE_BLOCKED && !woken) {
		last->waker = THREAD_NONE;
		last->flags &= ~INTERVAL_WAKER_IRQ;
	}
}

static void push_unknown(Decided *decided, uint64_t ns, enum reason reason)
{
	if (decided->count && decided->items[decided->count - 1].state == STATE_UNKNOWN)
		return;
	decided->items[decided->count++] = (Interval){
		.start_ns = ns,
		.user_stack = STACK_NONE,
		.kernel_stack = STACK_NONE,
		.waker = THREAD_NONE,
		.cpu_user = THREAD_NONE,
		.syscall = -1,
		.state = STATE_UNKNOWN,
		.reason = reason,
	};
}

/*
 * Returns from when on the last interval is uncertain, a wait that lasts until end_ns without a
 * wakeup in it; NS_NEVER if it is certain. A wakeup may have been lost in the wait or, if it came
 * before the thread slept, while it still ran.
 */
static uint64_t wait_uncertain_since(const Decided *decided, uint64_t end_ns)
{
	const Interval *wait = &decided->items[decided->count - 1];
	bool early = wait->flags & MARK_EARLY;
	uint64_t from_ns = wait->start_ns, lost_ns;

	if (wait->state == STATE_BLOCKED && early)
		return wait->start_ns;
	if (wait->state != STATE_BLOCKED && !early)
		return NS_NEVER;
	if (decided->count > 1 &&
	    (wait[-1].state == STATE_RUNNING || wait[-1].state == STATE_UNKNOWN))
		from_ns = wait[-1].start_ns;
	/* It was running, and may have been woken, since before the first record of the run. */
	if (decided->count > 2 && wait[-1].flags & MARK_SWITCH_IN)
		from_ns = wait[-2].start_ns;
	lost_ns = spans_first(&decided->builder->lost_wakings, from_ns, end_ns);
	if (lost_ns == NS_NEVER)
		return NS_NEVER;
	return early ? wait->start_ns : MAX(lost_ns, wait->start_ns);
}

static void resolve_unwoken(Decided *decided, uint64_t ns)
{
	uint64_t uncertain_ns = wait_uncertain_since(decided, ns);

	if (uncertain_ns == NS_NEVER)
		return;
	cut_back(decided, uncertain_ns);
	push_unknown(decided, uncertain_ns, REASON_LOST);
}

/*
 * Something is missing before ns: the state is known only up to the first loss. If no loss was
 * reported, it is known up to the last switch or, if only a switch-in is missing, up to the wakeup
 * before it.
 */
static void resolve_gap(Decided *decided, uint64_t ns, bool only_switch_in)
{
	TimelineBuilder *builder = decided->builder;
	size_t proven = decided->count - 1;
	enum reason reason = REASON_LOST;
	uint64_t from_ns, lost_ns, uncertain_ns;

	while (proven && decided->items[proven].flags & MARK_WAKING)
		proven--;
	from_ns = decided->items[proven].start_ns;
	lost_ns = spans_first(&builder->lost_switches, from_ns, ns);
	if (lost_ns == NS_NEVER) {
		builder->timeline->missed_switches += in_window(builder, ns);
		reason = REASON_NOT_TRACED;
		lost_ns = only_switch_in ? decided->items[decided->count - 1].start_ns : from_ns;
	}
	cut_back(decided, lost_ns);
	if (decided->count > proven) {
		uncertain_ns = wait_uncertain_since(decided, lost_ns);
		if (uncertain_ns != NS_NEVER) {
			lost_ns = uncertain_ns;
			cut_back(decided, lost_ns);
		}
	}
	push_unknown(decided, lost_ns, reason);
}

/* Writes only what changes: memory that is not written need not be saved again (spill.h). */
static void put_interval(Interval *items, size_t i, const Interval *interval)
{
	if (memcmp(&items[i], interval, sizeof(*interval)) != 0)
		items[i] = *interval;
}

static void resolve_marks(TimelineBuilder *builder, BuildThread *target)
{
	Decided decided = {builder, target->thread.intervals.items, 0};

	for (size_t i = 0; i < target->thread.intervals.count; i++) {
		Interval interval = target->thread.intervals.items[i];

		if (interval.flags & MARK_GAP)
			resolve_gap(&decided, interval.start_ns, interval.flags & MARK_SWITCH_IN);
		else if (interval.flags & MARK_UNWOKEN)
			resolve_unwoken(&decided, interval.start_ns);
		else
			put_interval(decided.items, decided.count++, &interval);
	}
	target->thread.intervals.count = decided.count;
}

/* ---- the open end --------------------------------------------------------------- */

static uint64_t last_switch_ns(const BuildThread *target)
{
	const Thread *thread = &target->thread;
	size_t i = thread->intervals.count - 1;

	while (i && thread->intervals.items[i].flags & MARK_WAKING)
		i--;
	return thread->intervals.items[i].start_ns;
}

bool resolve_final_lost(const TimelineBuilder *builder, const BuildThread *target)
{
	if (!target->exiting || target->ended || target->end_seen)
		return false;
	return spans_first(&builder->lost_switches, last_switch_ns(target),
			   builder->timeline->end_ns) != NS_NEVER;
}

/* The snapshot at the end of the window proves the state since the last switch, or disproves it. */
static void check_end_snapshot(BuildThread *target, uint64_t end_ns)
{
	Interval *last = chain_last(target);
	bool on_cpu = target->end_flags & SNAPSHOT_ON_CPU;

	if (target->end_seq != target->seq || on_cpu != (last->state == STATE_RUNNING)) {
		chain_push(target, end_ns, STATE_UNKNOWN)->flags = MARK_GAP;
		return;
	}
	if (last->state != STATE_BLOCKED)
		return;
	if (!(target->end_flags & SNAPSHOT_QUEUED)) {
		last->flags &= ~MARK_EARLY;
		return;
	}
	if (last->flags & MARK_EARLY && target->woken_early) {
		last->state = STATE_RUNNABLE;
		last->reason = REASON_WOKEN;
		last->rule = RULE_SCHEDULER;
		last->syscall = -1;
		last->cpu_user = THREAD_NONE;
		last->waker = target->early.task;
		last->flags |= target->early.irq ? INTERVAL_WAKER_IRQ : 0;
	}
	chain_push(target, end_ns, STATE_UNKNOWN)->flags = MARK_UNWOKEN;
}

/* The end of this chain has no record: finds out whether its last state holds until end_ns. */
static void close_chain(TimelineBuilder *builder, BuildThread *target, uint64_t end_ns, bool gone)
{
	if (!target->seq_known)
		return;
	if (gone) {
		chain_push(target, end_ns, STATE_UNKNOWN)->flags = MARK_GAP;
		return;
	}
	if (target->end_seen) {
		check_end_snapshot(target, end_ns);
		return;
	}
	if (spans_first(&builder->lost_switches, last_switch_ns(target), end_ns) != NS_NEVER)
		chain_push(target, end_ns, STATE_UNKNOWN)->flags = MARK_GAP;
	else if (chain_last(target)->state == STATE_BLOCKED)
		chain_push(target, end_ns, STATE_UNKNOWN)->flags = MARK_UNWOKEN;
}

/* ---- cutting and adding up --------------------------------------------------------- */

static void account(Thread *thread, const Interval *interval, uint64_t ns)
{
	thread->ledger[interval->state] += ns;
	if (interval->state == STATE_BLOCKED || interval->state == STATE_RUNNABLE)
		thread->reason_ledger[interval->reason] += ns;
}

static uint64_t overlap(uint64_t from_ns, uint64_t to_ns, uint64_t begin_ns, uint64_t end_ns)
{
	from_ns = MAX(from_ns, begin_ns);
	to_ns = MIN(to_ns, end_ns);
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* Counts what the kernel's accounts include from before and after the window. */
static void account_outside(BuildThread *target, uint64_t chain_end_ns)
{
	const Thread *thread = &target->thread;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t from_ns = interval->start_ns;
		uint64_t to_ns =
			i + 1 < thread->intervals.count ? interval[1].start_ns : chain_end_ns;
		uint64_t ns = 0;

		if (target->base_known)
			ns += overlap(from_ns, to_ns, target->base_ns, thread->start_ns);
		if (target->final_known)
			ns += overlap(from_ns, to_ns, thread->end_ns, target->final_ns);
		if (interval->state == STATE_RUNNING)
			target->outside_running += ns;
		else if (interval->state == STATE_RUNNABLE)
			target->outside_runnable += ns;
	}
}

/* The details of a wait are found by its start, which has changed. */
static void move_notes(Thread *thread, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < thread->object_waits.count; i++)
		if (thread->object_waits.items[i].start_ns == from_ns)
			thread->object_waits.items[i].start_ns = to_ns;
	for (size_t i = 0; i < thread->waker_stacks.count; i++)
		if (thread->waker_stacks.items[i].start_ns == from_ns)
			thread->waker_stacks.items[i].start_ns = to_ns;
	for (size_t i = 0; i < thread->lock_waits.count; i++)
		if (thread->lock_waits.items[i].start_ns == from_ns)
			thread->lock_waits.items[i].start_ns = to_ns;
	for (size_t i = 0; i < thread->queue_moves.count; i++)
		if (thread->queue_moves.items[i].start_ns == from_ns)
			thread->queue_moves.items[i].start_ns = to_ns;
}

static void explain_unknown(Interval *interval)
{
	if (interval->reason != REASON_NOT_TRACED)
		interval->reason = REASON_LOST;
	interval->rule = interval->reason == REASON_LOST ? RULE_LOSS : RULE_NUMBERS;
}

/*
 * Returns, for interval i of the whole chain, the CPU that the thread got after it or, if the
 * recording ended before, the CPU of its run queue then.
 */
static uint16_t cpu_after(const BuildThread *target, size_t i)
{
	const Interval *next = &target->thread.intervals.items[i + 1];

	if (i + 1 < target->thread.intervals.count)
		return next->state == STATE_RUNNING ? next->cpu : INTERVAL_CPU_UNKNOWN;
	return target->end_seen && !target->ended ? target->end_cpu : INTERVAL_CPU_UNKNOWN;
}

/*
 * A wakeup does not say into which queue it puts the thread, so the CPU that the thread got is
 * taken as the one that it waited for. A preempted thread began in the queue of its CPU. If it got
 * another one it was moved; thread_queue_move() may have the time.
 */
static void assign_cpu(Interval *wait, uint16_t after)
{
	if (wait->reason == REASON_WOKEN || after == INTERVAL_CPU_UNKNOWN)
		wait->cpu = after;
	else if (wait->cpu != after)
		wait->flags |= INTERVAL_MIGRATED;
}

/* Cuts the chain to [start_ns, end_ns) of the thread and drops empty intervals. */
static void cut_chain(BuildThread *target, uint64_t chain_end_ns, bool alive)
{
	Thread *thread = &target->thread;
	Interval *items = thread->intervals.items;
	size_t count = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		Interval interval = items[i];
		uint64_t end_ns =
			i + 1 < thread->intervals.count ? items[i + 1].start_ns : chain_end_ns;
		uint64_t from_ns = MAX(interval.start_ns, thread->start_ns);
		uint64_t to_ns = MIN(end_ns, thread->end_ns);

		if (from_ns >= to_ns)
			continue;
		interval.flags &= ~MARKS_ALL;
		if (interval.state == STATE_RUNNABLE)
			assign_cpu(&interval, cpu_after(target, i));
		if (interval.start_ns < from_ns) {
			interval.flags |= INTERVAL_OPEN_START;
			move_notes(thread, interval.start_ns, from_ns);
		}
		if (end_ns > to_ns || (alive && end_ns == chain_end_ns))
			interval.flags |= INTERVAL_OPEN_END;
		interval.start_ns = from_ns;
		if (interval.state == STATE_UNKNOWN)
			explain_unknown(&interval);
		account(thread, &interval, to_ns - from_ns);
		if (count && interval.state == STATE_UNKNOWN &&
		    items[count - 1].state == STATE_UNKNOWN)
			items[count - 1].flags |= interval.flags;
		else
			put_interval(items, count++, &interval);
	}
	thread->intervals.count = count;
}

/* A tick that hit no running interval has no place in the thread's track. */
static void drop_orphan_ticks(TimelineBuilder *builder, Thread *thread)
{
	Timeline *timeline = builder->timeline;
	size_t interval = 0, count = 0;

	for (size_t i = 0; i < thread->ticks.count; i++) {
		Tick tick = thread->ticks.items[i];

		while (interval < thread->intervals.count &&
		       interval_end(thread, interval) <= tick.ns)
			interval++;
		if (interval < thread->intervals.count &&
		    thread->intervals.items[interval].start_ns <= tick.ns &&
		    thread->intervals.items[interval].state == STATE_RUNNING)
			thread->ticks.items[count++] = tick;
		else
			timeline->orphan_ticks += in_window(builder, tick.ns);
	}
	thread->ticks.count = count;
}

bool resolve_target(TimelineBuilder *builder, BuildThread *target, uint64_t end_ns, bool gone)
{
	Timeline *timeline = builder->timeline;
	Thread *thread = &target->thread;
	bool alive = !target->ended && !gone;
	uint64_t begin_ns = thread->intervals.items[0].start_ns;

	if (!target->ended)
		close_chain(builder, target, end_ns, gone);
	resolve_marks(builder, target);
	thread->start_ns = MAX(begin_ns, timeline->start_ns);
	thread->end_ns = MIN(end_ns, timeline->end_ns);
	thread->born_in_window = target->born && begin_ns >= timeline->start_ns;
	thread->exited_in_window = !alive && end_ns <= timeline->end_ns;
	if (thread->start_ns >= thread->end_ns)
		return false;
	account_outside(target, end_ns);
	cut_chain(target, end_ns, alive);
	vec_shrink(&thread->intervals);
	drop_orphan_ticks(builder, thread);
	return true;
}
