/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "firefox_rows.h"

/* Rows stand this far inside the ends of their interval … */
#define EDGE_NS 500
/* … but at its quarters if it is shorter than this. */
#define SHORT_NS 2000
/* A wait has a row every 1/100 of it, and none closer than the plan's step; */
#define WAIT_PARTS 100
/* but from here on always so many that any 5 % of it hold one. */
#define LONG_WAIT_NS (10 * NSEC_PER_MSEC)
#define LONG_PARTS   25

/* What is folded under one stack and not shown yet. */
typedef struct Fold {
	uint32_t stack;
	uint64_t weight_ns; /* to be shown as weight */
	uint64_t paint_ns;  /* of intervals whose weight is on the ticks: only to be seen */
} Fold;

typedef struct Walk {
	Tables *tables;
	const Timeline *timeline;
	const RowPlan *plan;
	const struct TickEnd *tick_end;
	const Thread *thread;
	RowVisitor visit;
	void *user;
	bool with_stacks;
	uint64_t last_ns;
	uint64_t running_ns;	  /* before the current interval */
	uint64_t tick_running_ns; /* at the last tick shown */
	size_t tick;		  /* the next one */
	Map fold_index;		  /* stack -> folds */
	VEC(Fold) folds;
} Walk;

enum reason wait_reason(const Interval *interval)
{
	if (interval->reason > REASON_NONE && interval->reason < REASON_COUNT)
		return interval->reason;
	switch (interval->state) {
	case STATE_RUNNABLE:
		return REASON_WOKEN;
	case STATE_BLOCKED:
		return REASON_OTHER;
	default:
		return REASON_LOST;
	}
}

static uint32_t thread_ns_tgid(const Timeline *timeline, const Thread *thread)
{
	return timeline->processes.items[thread->process].ns_tgid;
}

StackRef wait_stack(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];

	return (StackRef){
		.ns = interval->start_ns,
		.ns_tgid = thread_ns_tgid(timeline, thread),
		.user_stack = interval->user_stack,
		.kernel_stack = interval->kernel_stack,
		.leaf = LEAF_REASON + wait_reason(interval),
	};
}

static StackRef tick_stack(const Walk *walk, const Tick *tick)
{
	return (StackRef){
		.ns = tick->ns,
		.ns_tgid = thread_ns_tgid(walk->timeline, walk->thread),
		.user_stack = tick->user_stack,
		.kernel_stack = tick->user_mode ? STACK_NONE : tick->kernel_stack,
		.leaf = tick->user_mode ? LEAF_TICK_USER : LEAF_TICK_KERNEL,
	};
}

/* The user frames of the switch-out at the end of running interval i. */
static StackRef switch_out_stack(const Walk *walk, size_t i)
{
	return (StackRef){
		.ns = interval_end(walk->thread, i),
		.ns_tgid = thread_ns_tgid(walk->timeline, walk->thread),
		.user_stack = walk->thread->intervals.items[i].user_stack,
		.kernel_stack = STACK_NONE,
		.leaf = LEAF_USER,
	};
}

/* Into how many parts a wait is cut; it has one row more. */
static uint64_t wait_parts(uint64_t duration, uint64_t step)
{
	if (step == 0)
		return 1;
	step = MAX(duration / WAIT_PARTS, step);
	if (duration >= LONG_WAIT_NS)
		step = MIN(step, duration / LONG_PARTS);
	return duration / step + (duration % step > 0);
}

static uint64_t edge_distance(uint64_t duration)
{
	return duration < SHORT_NS ? duration / 4 : EDGE_NS;
}

static void show(Walk *walk, uint64_t ns, uint64_t running_ns, uint64_t weight_ns, uint32_t stack)
{
	Row row = {.weight_ns = weight_ns, .running_ns = running_ns, .stack = stack};

	walk->last_ns = row.ns = MAX(ns, walk->last_ns);
	walk->visit(walk->user, &row);
}

static void fold(Walk *walk, uint64_t ns, uint64_t running_ns, const Fold *part)
{
	uint32_t number = map_get(&walk->fold_index, part->stack);
	Fold *sum;

	if (number == MAP_NONE) {
		number = walk->folds.count;
		map_set(&walk->fold_index, part->stack, number);
		*vec_push(&walk->folds) = (Fold){.stack = part->stack};
	}
	sum = &walk->folds.items[number];
	sum->weight_ns += part->weight_ns;
	sum->paint_ns += part->paint_ns;
	if (MAX(sum->weight_ns, sum->paint_ns) < walk->plan->fold_ns)
		return;
	show(walk, ns, running_ns, sum->weight_ns, sum->stack);
	sum->weight_ns = sum->paint_ns = 0;
}

/* What is left at the thread's end keeps the weights exact; it takes no room in the picture. */
static void flush_folds(Walk *walk)
{
	for (size_t i = 0; i < walk->folds.count; i++) {
		const Fold *sum = &walk->folds.items[i];

		if (sum->weight_ns > 0)
			show(walk, walk->thread->end_ns, walk->running_ns, sum->weight_ns,
			     sum->stack);
	}
	vec_free(&walk->folds);
	map_free(&walk->fold_index);
}

static uint32_t stack_of(Walk *walk, const StackRef *ref)
{
	return walk->with_stacks ? tables_stack(walk->tables, ref) : 0;
}

static void walk_wait(Walk *walk, size_t i)
{
	uint64_t start = walk->thread->intervals.items[i].start_ns;
	uint64_t end = interval_end(walk->thread, i), duration = end - start;
	uint64_t edge = edge_distance(duration);
	StackRef ref = wait_stack(walk->timeline, walk->thread, i);
	uint32_t stack = stack_of(walk, &ref);

	if (duration < walk->plan->fold_ns) {
		fold(walk, start + duration / 2, walk->running_ns,
		     &(Fold){.stack = stack, .weight_ns = duration});
		return;
	}
	uint64_t parts = wait_parts(duration, walk->plan->step_ns), rows = parts + 1;
	uint64_t share = duration / rows, rest = duration % rows;
	for (uint64_t k = 0; k < rows; k++) {
		uint64_t ns = start + duration / parts * k + duration % parts * k / parts;

		ns = k == 0 ? start + edge : k == parts ? end - edge : ns;
		show(walk, ns, walk->running_ns, share + (k < rest), stack);
	}
}

/* A tick of the running interval that began at start, when running_ns were used before. */
static void walk_tick(Walk *walk, const Tick *tick, uint64_t start, uint64_t first, uint64_t last)
{
	uint64_t running = walk->running_ns + (tick->ns - start), weight;
	uint64_t ns = MIN(MAX(tick->ns, first), last);
	StackRef ref = tick_stack(walk, tick);
	uint32_t stack = stack_of(walk, &ref);

	if ((size_t)(tick - walk->thread->ticks.items) == walk->tick_end->last_tick)
		weight = walk->tick_end->running_ns - walk->tick_running_ns;
	else
		weight = running - MIN(running, walk->tick_running_ns);
	walk->tick_running_ns += weight;
	if (weight < walk->plan->fold_ns)
		fold(walk, ns, running, &(Fold){.stack = stack, .weight_ns = weight});
	else
		show(walk, ns, running, weight, stack);
}

/* The ticks inside [start, end): *ret_first to walk->tick, which is moved on. */
static size_t ticks_inside(const Thread *thread, size_t tick, uint64_t start, uint64_t end,
			   size_t *ret_first)
{
	while (tick < thread->ticks.count && thread->ticks.items[tick].ns < start)
		tick++;
	*ret_first = tick;
	while (tick < thread->ticks.count && thread->ticks.items[tick].ns >= start &&
	       thread->ticks.items[tick].ns < end)
		tick++;
	return tick;
}

static void walk_running(Walk *walk, size_t i)
{
	const Thread *thread = walk->thread;
	uint64_t start = thread->intervals.items[i].start_ns, end = interval_end(thread, i);
	uint64_t duration = end - start, edge = edge_distance(duration);
	/* A thread that no tick hit carries its running time on the rows at the ends. */
	uint64_t weight = walk->tick_end->last_tick == SIZE_MAX ? duration : 0;
	bool folded = duration < walk->plan->fold_ns;
	size_t first;

	walk->tick = ticks_inside(thread, walk->tick, start, end, &first);
	StackRef ref = first < walk->tick ? tick_stack(walk, &thread->ticks.items[first])
					  : switch_out_stack(walk, i);
	uint32_t stack = stack_of(walk, &ref);
	if (folded)
		fold(walk, start + duration / 2, walk->running_ns + duration / 2,
		     &(Fold){.stack = stack, .weight_ns = weight, .paint_ns = duration});
	else
		show(walk, start + edge, walk->running_ns + edge, weight / 2, stack);
	for (size_t k = first; k < walk->tick; k++)
		walk_tick(walk, &thread->ticks.items[k], start, start + edge, end - edge);
	if (!folded) {
		if (first < walk->tick) {
			ref = tick_stack(walk, &thread->ticks.items[walk->tick - 1]);
			stack = stack_of(walk, &ref);
		}
		show(walk, end - edge, walk->running_ns + duration - edge, weight - weight / 2,
		     stack);
	}
	walk->running_ns += duration;
}

void rows_walk(Tables *tables, const RowPlan *plan, uint32_t thread, bool with_stacks,
	       RowVisitor visit, void *user)
{
	const Timeline *timeline = tables_timeline(tables);
	Walk walk = {
		.tables = tables,
		.timeline = timeline,
		.plan = plan,
		.tick_end = &plan->tick_ends[thread],
		.thread = &timeline->threads.items[thread],
		.visit = visit,
		.user = user,
		.with_stacks = with_stacks || plan->fold_ns > 0,
	};

	for (size_t i = 0; i < walk.thread->intervals.count; i++) {
		const Interval *interval = &walk.thread->intervals.items[i];

		if (interval_end(walk.thread, i) <= interval->start_ns)
			continue;
		if (interval->state == STATE_RUNNING)
			walk_running(&walk, i);
		else
			walk_wait(&walk, i);
	}
	flush_folds(&walk);
}

/* ---- the plan --------------------------------------------------------------- */

static struct TickEnd find_tick_end(const Thread *thread)
{
	struct TickEnd found = {.last_tick = SIZE_MAX};
	size_t tick = 0, first;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		uint64_t start = thread->intervals.items[i].start_ns, end = interval_end(thread, i);

		if (thread->intervals.items[i].state != STATE_RUNNING || end <= start)
			continue;
		found.running_ns += end - start;
		tick = ticks_inside(thread, tick, start, end, &first);
		if (tick > first)
			found.last_tick = tick - 1;
	}
	return found;
}

void row_plan_init(RowPlan *plan, const Timeline *timeline, uint64_t step_ns)
{
	*plan = (RowPlan){.step_ns = step_ns};
	plan->tick_ends = xcalloc(timeline->threads.count, sizeof(*plan->tick_ends));
	for (size_t i = 0; i < timeline->threads.count; i++)
		plan->tick_ends[i] = find_tick_end(&timeline->threads.items[i]);
}

void row_plan_free(RowPlan *plan)
{
	free(plan->tick_ends);
	plan->tick_ends = NULL;
}

/* Ticks weigh about the same: either all of a thread's are folded or none. */
static uint64_t estimate_ticks(const RowPlan *plan, const Thread *thread, size_t number)
{
	uint64_t ticks = thread->ticks.count, running = plan->tick_ends[number].running_ns;

	if (ticks == 0 || plan->fold_ns == 0 || running / ticks >= plan->fold_ns)
		return ticks;
	return running / plan->fold_ns;
}

/* Counts rows under the plan; returns how many of them are fillers. */
static uint64_t estimate(RowPlan *plan, const Timeline *timeline)
{
	uint64_t fillers = 0;

	plan->rows = plan->folded = plan->folded_ns = 0;
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		plan->rows += estimate_ticks(plan, thread, t);
		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *interval = &thread->intervals.items[i];
			uint64_t end = interval_end(thread, i);
			uint64_t duration = end > interval->start_ns ? end - interval->start_ns : 0;

			if (duration == 0)
				continue;
			if (duration < plan->fold_ns) {
				plan->folded++;
				plan->folded_ns += duration;
				continue;
			}
			plan->rows += 2;
			if (interval->state != STATE_RUNNING)
				fillers += wait_parts(duration, plan->step_ns) - 1;
		}
	}
	plan->rows += fillers;
	if (plan->fold_ns > 0)
		plan->rows += plan->folded_ns / plan->fold_ns;
	return fillers;
}

static void count_row(void *user, const Row *row)
{
	(void)row;
	++*(uint64_t *)user;
}

static uint64_t count_rows(Tables *tables, const RowPlan *plan)
{
	const Timeline *timeline = tables_timeline(tables);
	uint64_t rows = 0;

	for (size_t i = 0; i < timeline->threads.count; i++)
		rows_walk(tables, plan, i, false, count_row, &rows);
	return rows;
}

/*
 * First fillers go, until they are few or only those of long waits are left;
 * then short intervals are folded, at a limit that doubles.
 */
void row_plan_fit(RowPlan *plan, Tables *tables, uint64_t budget)
{
	const Timeline *timeline = tables_timeline(tables);
	uint64_t window = timeline->end_ns - timeline->start_ns;
	uint64_t fillers = estimate(plan, timeline);

	while (plan->rows > budget && fillers > budget / 10 &&
	       plan->step_ns < window / LONG_PARTS) {
		plan->step_ns *= 2;
		fillers = estimate(plan, timeline);
	}
	while (plan->rows > budget && plan->fold_ns < window) {
		plan->fold_ns = plan->fold_ns ? plan->fold_ns * 2 : SHORT_NS;
		estimate(plan, timeline);
		/* The estimate leaves out what each stack has left at a thread's end. */
		if (plan->rows <= budget)
			plan->rows = count_rows(tables, plan);
	}
}
