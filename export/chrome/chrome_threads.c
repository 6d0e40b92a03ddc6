/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome_threads.c - a thread's intervals: slices, states, and flows from its wakers.
 *
 * Slices follow each other without a gap, as the intervals do. If there are too many, sequences of
 * intervals that are shorter than a threshold are folded: one slice for each reason among them
 * replaces them, as long as they were together. So every sum stays exact and only the order within
 * some milliseconds is lost.
 */
#include "chrome_parts.h"
#include "wait_fields.h"

#define WAKE_UP	      "wake-up"
#define FOLD_START_NS 1000
/* Intervals are folded in pieces of this many thresholds, within which the order is lost. */
#define FOLD_PIECE 16

typedef struct Slice {
	uint64_t start_ns, end_ns;
	/* Of the thread; of a fold: the last one of its state and reason. */
	size_t interval;
	uint64_t folded; /* how many intervals it stands for; 0 = it is one interval */
} Slice;

typedef void (*SliceVisitor)(void *user, const Thread *thread, const Slice *slice);

/* One for each reason; REASON_NONE stands for running. */
typedef struct Sums {
	uint64_t ns[REASON_COUNT], intervals[REASON_COUNT];
	size_t last[REASON_COUNT];
} Sums;

static bool is_short(const Thread *thread, size_t i, uint64_t fold_ns)
{
	return interval_end(thread, i) - thread->intervals.items[i].start_ns < fold_ns;
}

/* Returns the first interval after the piece that begins with i. */
static size_t piece_end(const Thread *thread, size_t i, uint64_t fold_ns)
{
	uint64_t start = thread->intervals.items[i].start_ns;

	do
		i++;
	while (i < thread->intervals.count && is_short(thread, i, fold_ns) &&
	       interval_end(thread, i) - start < FOLD_PIECE * fold_ns);
	return i;
}

static void show_fold(const Thread *thread, size_t first, size_t end, SliceVisitor visit,
		      void *user)
{
	uint64_t ns = thread->intervals.items[first].start_ns;
	Sums sums = {};

	for (size_t i = first; i < end; i++) {
		const Interval *interval = &thread->intervals.items[i];
		enum reason key =
			interval->state == STATE_RUNNING ? REASON_NONE : wait_reason(interval);

		sums.ns[key] += interval_end(thread, i) - interval->start_ns;
		sums.intervals[key]++;
		sums.last[key] = i;
	}
	for (size_t key = 0; key < REASON_COUNT; key++) {
		Slice slice = {.start_ns = ns,
			       .end_ns = ns + sums.ns[key],
			       .interval = sums.last[key],
			       .folded = sums.intervals[key]};

		if (sums.ns[key] > 0)
			visit(user, thread, &slice);
		ns = slice.end_ns;
	}
}

/* Passes the slices of a thread to the visitor, in order of time. */
static void slices_walk(const Thread *thread, uint64_t fold_ns, SliceVisitor visit, void *user)
{
	for (size_t i = 0, end; i < thread->intervals.count; i = end) {
		Slice slice = {.start_ns = thread->intervals.items[i].start_ns,
			       .end_ns = interval_end(thread, i),
			       .interval = i};

		end = is_short(thread, i, fold_ns) ? piece_end(thread, i, fold_ns) : i + 1;
		if (end > i + 1)
			show_fold(thread, i, end, visit, user);
		else if (slice.end_ns > slice.start_ns)
			visit(user, thread, &slice);
	}
}

static void count_slice(void *user, const Thread *thread, const Slice *slice)
{
	uint64_t *count = user;

	(void)thread;
	(void)slice;
	++*count;
}

static uint64_t count_slices(const Timeline *timeline, uint64_t fold_ns)
{
	uint64_t count = 0;

	for (size_t i = 0; i < timeline->threads.count; i++)
		slices_walk(&timeline->threads.items[i], fold_ns, count_slice, &count);
	return count;
}

uint64_t chrome_slices_fit(const Timeline *timeline, uint64_t budget)
{
	uint64_t window = timeline_time(timeline, timeline->end_ns), fold_ns = 0;

	while (count_slices(timeline, fold_ns) > budget && fold_ns <= window)
		fold_ns = fold_ns ? fold_ns * 2 : FOLD_START_NS;
	return fold_ns;
}

/* ---- events of a slice ------------------------------------------------------------------- */

static void write_data(Chrome *chrome, const Thread *thread, const Slice *slice)
{
	FieldSink sink = chrome_field_sink(chrome);

	chrome_begin_data(chrome);
	if (slice->folded)
		json_key_u64(&chrome->json, "waits", slice->folded);
	else if (thread->intervals.items[slice->interval].state == STATE_UNKNOWN)
		event_fields_unknown(&sink, thread, slice->interval);
	else
		event_fields_wait(&sink, thread, slice->interval);
	chrome_end_data(chrome);
}

static void write_slice(Chrome *chrome, const Thread *thread, const Slice *slice)
{
	const Interval *interval = &thread->intervals.items[slice->interval];
	bool running = interval->state == STATE_RUNNING;
	const ReasonInfo *reason = &reason_info[wait_reason(interval)];
	Json *json = &chrome->json;

	chrome_begin_of(chrome, "X", running ? CHROME_RUNNING : reason->marker, thread);
	json_key_string(json, "cat",
			running ? CHROME_RUNNING : category_info[reason->category].name);
	chrome_key_time(chrome, slice->start_ns);
	json_key_us(json, "dur", slice->end_ns - slice->start_ns);
	if (!running) {
		StackRef ref = wait_stack(chrome->timeline, thread, slice->interval);

		json_key_u64(json, "sf", stack_table_stack(chrome->tables, &ref));
		write_data(chrome, thread, slice);
	}
	json_end_object(json);
}

/* They are as Linux's tools write them: Perfetto recognizes these. */
static const char *sleep_name(enum sleep_state sleep)
{
	static const char *const names[] = {
		[SLEEP_INTERRUPTIBLE] = "S", [SLEEP_UNINTERRUPTIBLE] = "D", [SLEEP_FOR_DISK] = "D",
		[SLEEP_IDLE] = "I",	     [SLEEP_STOPPED] = "T",	    [SLEEP_TRACED] = "t",
	};

	return names[sleep];
}

/* Returns NULL if the state is unknown. */
static const char *state_name(const Interval *interval)
{
	switch (interval->state) {
	case STATE_RUNNING:
		return CHROME_RUNNING;
	case STATE_RUNNABLE:
		return interval->reason == REASON_WOKEN ? "R" : "R+";
	case STATE_BLOCKED:
		return sleep_name(interval->sleep);
	default:
		return NULL;
	}
}

/*
 * As in /proc/PID/wchan: the function that called the scheduler, whose own functions are in
 * .sched.text.
 */
static bool is_of_scheduler(const char *function)
{
	static const char *const prefixes[] = {"schedule", "__schedule", "io_schedule",
					       "preempt_schedule", "do_task_dead"};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(function, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * Returns the innermost kernel function of a wait that is not the scheduler's, NULL if there is
 * none.
 */
static const char *blocked_function(Chrome *chrome, const Thread *thread, size_t i)
{
	StackRef ref = wait_stack(chrome->timeline, thread, i);
	uint32_t stack = stack_table_stack(chrome->tables, &ref);

	do {
		stack = stack_table_stack_prefix(chrome->tables, stack);
		if (stack == UINT32_MAX ||
		    stack_table_leaf_category(chrome->tables, stack) != CATEGORY_KERNEL)
			return NULL;
	} while (is_of_scheduler(stack_table_leaf_name(chrome->tables, stack)));
	return stack_table_leaf_name(chrome->tables, stack);
}

static void write_state(Chrome *chrome, const Thread *thread, const Slice *slice)
{
	const Interval *interval = &thread->intervals.items[slice->interval];
	const char *state = state_name(interval), *function;
	Json *json = &chrome->json;

	if (!state)
		return;
	chrome_begin_of(chrome, "T", state, thread);
	chrome_key_time(chrome, slice->start_ns);
	json_key_us(json, "dur", slice->end_ns - slice->start_ns);
	json_key_object(json, "args");
	if (interval->state == STATE_RUNNING && !slice->folded)
		json_key_u64(json, "cpu", interval->cpu);
	if (interval->state == STATE_BLOCKED && !slice->folded) {
		json_key_bool(json, "io_wait", interval->sleep == SLEEP_FOR_DISK);
		function = blocked_function(chrome, thread, slice->interval);
		if (function)
			json_key_string(json, "blocked_function", function);
	}
	json_end_object(json);
	json_end_object(json);
}

static void write_flow_end(Chrome *chrome, const char *phase, const Thread *thread, uint64_t ns)
{
	Json *json = &chrome->json;

	chrome_begin_of(chrome, phase, WAKE_UP, thread);
	json_key_string(json, "cat", WAKE_UP);
	json_key_u64(json, "id", chrome->flows);
	chrome_key_time(chrome, ns);
	if (*phase == 'f')
		json_key_string(json, "bp", "e"); /* binds to the slice at that time */
	json_end_object(json);
}

/*
 * Writes a flow from the slice in which another thread woke this one to the slice that begins then.
 */
static void write_flow(Chrome *chrome, const Thread *thread, const Slice *slice)
{
	const Timeline *timeline = chrome->timeline;
	const Interval *interval = &thread->intervals.items[slice->interval];
	const Thread *waker;

	if (slice->folded || interval->state != STATE_BLOCKED ||
	    interval->flags & (INTERVAL_WAKER_IRQ | INTERVAL_OPEN_END) ||
	    interval->waker >= timeline->tasks.count ||
	    timeline->tasks.items[interval->waker].thread >= timeline->threads.count ||
	    slice->end_ns + 1 >= thread->end_ns)
		return;
	waker = &timeline->threads.items[timeline->tasks.items[interval->waker].thread];
	if (slice->end_ns < waker->start_ns || slice->end_ns >= waker->end_ns)
		return;
	chrome->flows++;
	write_flow_end(chrome, "s", waker, slice->end_ns);
	/* One nanosecond later the slice has begun in every reader's order of events. */
	write_flow_end(chrome, "f", thread, slice->end_ns + 1);
}

static void visit_slice(void *user, const Thread *thread, const Slice *slice)
{
	Chrome *chrome = user;

	if (chrome->hidden >> thread->intervals.items[slice->interval].state & 1)
		return;
	write_slice(chrome, thread, slice);
	write_state(chrome, thread, slice);
	write_flow(chrome, thread, slice);
	chrome->folded += slice->folded;
}

void chrome_write_thread(Chrome *chrome, const Thread *thread)
{
	slices_walk(thread, chrome->fold_ns, visit_slice, chrome);
}
