/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "interrupt_cost.h"
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERIOD_NS (100 * NSEC_PER_USEC)
#define SLICE_NS  NSEC_PER_MSEC
/* On a busy machine many slices are cut short, or have other interrupts where the event's are. */
#define SLICES_MAX     200
#define INTERRUPTS_MIN 30
#define INTERRUPTS_MAX 80
#define GAPS_MAX       128
#define TURNS	       100
/* A gap is longer than two readings of the clock by this: no interrupt takes less. */
#define GAP_MIN_NS 300
/* A longer gap is another task's, or the hypervisor's. */
#define GAP_MAX_NS (500 * NSEC_PER_USEC)
/*
 * The event's gaps of one slice begin within this time of its period, and are at least so many.
 * Other gaps, at ten in a slice, do that in one of a hundred slices.
 */
#define JITTER_NS (6 * NSEC_PER_USEC)
#define SAME_MIN  5

static uint32_t measure_turn(void)
{
	uint64_t least = UINT32_MAX, last = now_ns();

	for (int i = 0; i < TURNS; i++) {
		uint64_t now = now_ns();

		least = MIN(least, now - last);
		last = now;
	}
	return MAX(least, 1);
}

/*
 * An event of a task would switch on perf's code at every context switch of the machine
 * (perf_sched_events), so the event is the CPU's.
 */
static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/*
 * Reads the clock for a slice and stores the gaps; returns their number. It ends early if the loop
 * lost its CPU: otherwise the event would interrupt another task if that happens again.
 */
static size_t watch_clock(uint32_t turn_ns, InterruptGap gaps[GAPS_MAX])
{
	uint64_t begin = now_ns(), last = begin, least = 2 * turn_ns + GAP_MIN_NS;
	size_t count = 0;

	while (last < begin + SLICE_NS && count < GAPS_MAX) {
		uint64_t now = now_ns(), gap = now - last;

		if (gap > GAP_MAX_NS)
			break;
		if (gap > least)
			gaps[count++] = (InterruptGap){last - begin, gap - turn_ns};
		last = now;
	}
	return count;
}

/* Returns whether a gap begins where the period does, or up to JITTER_NS later. */
static bool is_at(const InterruptGap *gap, uint32_t begin_ns)
{
	uint32_t phase = (gap->begin_ns + PERIOD_NS - begin_ns % PERIOD_NS) % PERIOD_NS;

	return phase <= JITTER_NS;
}

void interrupt_cost_add(InterruptCost *cost, const InterruptGap *gaps, size_t count)
{
	size_t most = 0, best = 0;

	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		for (size_t k = 0; k < count; k++)
			same += is_at(&gaps[k], gaps[i].begin_ns);
		if (same > most) {
			most = same;
			best = i;
		}
	}
	cost->slices++;
	if (most < SAME_MIN)
		return;
	for (size_t k = 0; k < count; k++)
		if (is_at(&gaps[k], gaps[best].begin_ns))
			*vec_push(&cost->interrupts) = gaps[k].ns;
}

bool interrupt_cost_step(InterruptCost *cost)
{
	InterruptGap gaps[GAPS_MAX];
	size_t count = 0;
	int fd;

	if (cost->slices >= SLICES_MAX || cost->interrupts.count >= INTERRUPTS_MAX)
		return true;
	if (cost->turn_ns == 0)
		cost->turn_ns = measure_turn();
	fd = open_event(sched_getcpu());
	if (fd >= 0) {
		count = watch_clock(cost->turn_ns, gaps);
		close(fd);
	}
	interrupt_cost_add(cost, gaps, count);
	return false;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

uint64_t interrupt_cost_ns(InterruptCost *cost)
{
	if (cost->interrupts.count < INTERRUPTS_MIN)
		return 0;
	qsort(cost->interrupts.items, cost->interrupts.count, sizeof(*cost->interrupts.items),
	      compare_u32);
	return cost->interrupts.items[cost->interrupts.count / 2];
}

void interrupt_cost_free(InterruptCost *cost)
{
	vec_free(&cost->interrupts);
}
