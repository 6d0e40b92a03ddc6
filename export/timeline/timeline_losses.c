/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Merges losses. The recorder reports one for each drain, CPU, kind and cause: a machine that is
 * overloaded for a minute makes hundreds of thousands, which would leave no room for other markers.
 * So losses of one kind, cause and CPU that are close to each other are merged. The gap grows until
 * at most LOSSES_MAX are left. Unknown intervals are resolved before this, by each single loss.
 */
#include "timeline_builder.h"

#define LOSSES_MAX   500
#define FIRST_GAP_NS (50 * NSEC_PER_MSEC) /* two drains of the recorder */
#define LAST_GAP_NS  (UINT64_MAX / 4)

static int by_origin(const LossSpan *x, const LossSpan *y)
{
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int compare_origins(const void *a, const void *b)
{
	const LossSpan *x = a, *y = b;
	int order = by_origin(x, y);

	return order ? order : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int compare_times(const void *a, const void *b)
{
	const LossSpan *x = a, *y = b;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return compare_origins(a, b);
}

/* Merges spans that are no farther apart than the gap; they are sorted by origin and time. */
static size_t merge(LossSpan *spans, size_t count, uint64_t gap_ns)
{
	size_t kept = 0;

	for (size_t i = 1; i < count; i++) {
		LossSpan *last = &spans[kept];

		if (by_origin(last, &spans[i]) || spans[i].from_ns > last->to_ns + gap_ns) {
			spans[++kept] = spans[i];
			continue;
		}
		last->count += spans[i].count;
		last->to_ns = MAX(last->to_ns, spans[i].to_ns);
	}
	return count ? kept + 1 : 0;
}

void losses_finish(Timeline *timeline)
{
	LossSpan *spans = timeline->losses.items;
	size_t count = timeline->losses.count;

	if (count > LOSSES_MAX) {
		qsort(spans, count, sizeof(*spans), compare_origins);
		for (uint64_t gap_ns = FIRST_GAP_NS; count > LOSSES_MAX && gap_ns < LAST_GAP_NS;
		     gap_ns *= 2)
			count = merge(spans, count, gap_ns);
		qsort(spans, count, sizeof(*spans), compare_times);
		timeline->losses.count = count;
	}
}

uint64_t timeline_lost(const Timeline *timeline, uint32_t kind)
{
	uint64_t count = 0;

	for (size_t i = 0; i < timeline->losses.count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];

		if (loss->kind == kind && loss->to_ns >= timeline->start_ns &&
		    loss->from_ns <= timeline->end_ns)
			count += loss->count;
	}
	return count;
}
