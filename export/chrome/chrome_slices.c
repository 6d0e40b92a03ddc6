/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chrome_slices.h"
#include "wait_fields.h"

#define FOLD_START_NS 1000
/* Intervals are folded in pieces of this many thresholds, within which the order is lost. */
#define FOLD_PIECE 16

/* One for each reason; REASON_NONE stands for running. */
typedef struct Sums {
	uint64_t ns[REASON_COUNT], intervals[REASON_COUNT];
	size_t last[REASON_COUNT];
} Sums;

static enum reason key_of(const Interval *interval)
{
	return interval->state == STATE_RUNNING ? REASON_NONE : wait_reason(interval);
}

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
		enum reason key = key_of(&thread->intervals.items[i]);

		sums.ns[key] += interval_end(thread, i) - thread->intervals.items[i].start_ns;
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

void slices_walk(const Thread *thread, uint64_t fold_ns, SliceVisitor visit, void *user)
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

uint64_t slices_fit(const Timeline *timeline, uint64_t budget)
{
	uint64_t window = timeline_time(timeline, timeline->end_ns), fold_ns = 0;

	while (count_slices(timeline, fold_ns) > budget && fold_ns <= window)
		fold_ns = fold_ns ? fold_ns * 2 : FOLD_START_NS;
	return fold_ns;
}
