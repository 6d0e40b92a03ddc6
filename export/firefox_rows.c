/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "firefox_rows.h"

/* Rows stand this far inside the ends of their interval … */
#define EDGE_NS 500
/* … but at its quarters if it is shorter than this. */
#define SHORT_NS 2000
/* A wait has a row every 1/100 of it, and none closer than the plan's step; */
#define WAIT_PARTS 100
/*
 * but in a stretch off the CPU that is so long always so many that any 5 % of it hold one: a
 * user's wait is the whole stretch, the time between waking and running included.
 */
#define LONG_WAIT_NS (10 * NSEC_PER_MSEC)
#define LONG_PARTS   25

#define NO_FOLD UINT32_MAX

/* The weight of folded intervals and ticks of one stack that no row has shown yet. */
typedef struct Fold {
	uint32_t stack;
	uint64_t weight_ns;
	bool ready;    /* reached the plan's fold_ns */
	uint32_t next; /* the next ready one of its colour */
} Fold;

/*
 * What folding owes the picture, per colour (user and kernel count as one: running). The
 * strip is painted up to painted_ns; what came since is debt, which is paid with stretches of
 * one colour as soon as there is enough of it, so the colours' totals stay right although
 * intervals are not drawn one by one. Always: sum of debts = now - painted_ns.
 */
typedef struct Paint {
	uint64_t painted_ns;
	int64_t debt[CATEGORY_COUNT];
	uint32_t stack[CATEGORY_COUNT]; /* the last one of that colour */
	uint32_t ready[CATEGORY_COUNT]; /* first of Walk::folds, or NO_FOLD */
} Paint;

/* Intervals up to `end` (not included) without a running one between them. */
typedef struct Stretch {
	size_t end;
	uint64_t ns;
} Stretch;

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
	Stretch stretch;
	Map fold_index; /* stack -> folds */
	VEC(Fold) folds;
	Paint paint;
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

/* The length of the stretch off the CPU that interval i is in; to be asked in order. */
static uint64_t stretch_length(const Thread *thread, size_t i, Stretch *stretch)
{
	const Interval *intervals = thread->intervals.items;

	if (i < stretch->end)
		return stretch->ns;
	stretch->end = i;
	while (stretch->end < thread->intervals.count &&
	       intervals[stretch->end].state != STATE_RUNNING)
		stretch->end++;
	stretch->ns = interval_end(thread, stretch->end - 1) - intervals[i].start_ns;
	return stretch->ns;
}

/* Into how many parts a wait is cut; it has one row more. */
static uint64_t wait_parts(uint64_t duration, uint64_t stretch_ns, uint64_t step)
{
	if (step == 0)
		return 1;
	step = MAX(duration / WAIT_PARTS, step);
	if (stretch_ns >= LONG_WAIT_NS)
		step = MIN(step, stretch_ns / LONG_PARTS);
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

/* ---- folding -------------------------------------------------------------------- */

static enum category colour(const Walk *walk, uint32_t stack)
{
	enum category category = tables_leaf_category(walk->tables, stack);

	return category == CATEGORY_KERNEL ? CATEGORY_USER : category;
}

static void fold_weight(Walk *walk, uint32_t stack, uint64_t weight_ns)
{
	uint32_t number = map_get(&walk->fold_index, stack);
	Fold *fold;

	if (number == MAP_NONE) {
		number = walk->folds.count;
		map_set(&walk->fold_index, stack, number);
		*vec_push(&walk->folds) = (Fold){.stack = stack};
	}
	fold = &walk->folds.items[number];
	fold->weight_ns += weight_ns;
	if (!fold->ready && fold->weight_ns >= walk->plan->fold_ns) {
		uint32_t *first = &walk->paint.ready[colour(walk, stack)];

		fold->ready = true;
		fold->next = *first;
		*first = number;
	}
}

/* Takes a ready weight of this colour and its stack; 0 and *stack as it was if there is none. */
static uint64_t take_ready(Walk *walk, enum category colour, uint32_t *stack)
{
	uint32_t number = walk->paint.ready[colour];
	uint64_t weight_ns;
	Fold *fold;

	if (number == NO_FOLD)
		return 0;
	fold = &walk->folds.items[number];
	walk->paint.ready[colour] = fold->next;
	weight_ns = fold->weight_ns;
	*stack = fold->stack;
	fold->weight_ns = 0;
	fold->ready = false;
	return weight_ns;
}

/* Shows the ready weights of a colour where that colour is being painted anyway. */
static void show_ready(Walk *walk, enum category colour, uint64_t ns, uint64_t running_ns)
{
	while (walk->paint.ready[colour] != NO_FOLD) {
		uint32_t stack = 0;
		uint64_t weight_ns = take_ready(walk, colour, &stack);

		show(walk, ns, running_ns, weight_ns, stack);
	}
}

/* Paints from painted_ns up to `to`. */
static void paint(Walk *walk, enum category colour, uint64_t to)
{
	Paint *paint = &walk->paint;
	uint64_t from = paint->painted_ns, edge = edge_distance(to - from), weight_ns;
	uint32_t stack = paint->stack[colour];

	weight_ns = take_ready(walk, colour, &stack);
	show(walk, from + edge, walk->running_ns, weight_ns, stack);
	while (paint->ready[colour] != NO_FOLD &&
	       walk->folds.items[paint->ready[colour]].next != NO_FOLD) {
		weight_ns = take_ready(walk, colour, &stack);
		show(walk, from + edge, walk->running_ns, weight_ns, stack);
	}
	weight_ns = take_ready(walk, colour, &stack);
	show(walk, to - edge, walk->running_ns, weight_ns, stack);
	paint->debt[colour] -= to - from;
	paint->painted_ns = to;
}

static enum category largest_debt(const Paint *paint)
{
	enum category largest = 0;

	for (size_t i = 1; i < CATEGORY_COUNT; i++)
		if (paint->debt[i] > paint->debt[largest])
			largest = i;
	return largest;
}

/* Pays debts until less than least_ns up to now is unpainted. */
static void pay_debts(Walk *walk, uint64_t now, uint64_t least_ns)
{
	Paint *paint_state = &walk->paint;

	while (now > paint_state->painted_ns && now - paint_state->painted_ns >= least_ns) {
		enum category colour = largest_debt(paint_state);
		uint64_t left = now - paint_state->painted_ns;

		if (paint_state->debt[colour] <= 0)
			break;
		paint(walk, colour,
		      paint_state->painted_ns + MIN((uint64_t)paint_state->debt[colour], left));
	}
}

static void fold_interval(Walk *walk, uint32_t stack, uint64_t start, uint64_t end)
{
	enum category c = colour(walk, stack);

	walk->paint.debt[c] += end - start;
	walk->paint.stack[c] = stack;
	pay_debts(walk, end, walk->plan->fold_ns);
}

/*
 * From where on an interval that is not folded is painted: where the last paint ended,
 * after another colour's debt was paid at the cost of at most half of the interval.
 */
static uint64_t begin_interval(Walk *walk, uint32_t stack, uint64_t start, uint64_t end)
{
	Paint *paint_state = &walk->paint;
	uint64_t limit = start + (end - start) / 2, from;
	enum category own, other;

	if (walk->plan->fold_ns == 0)
		return start;
	own = colour(walk, stack);
	paint_state->debt[own] += end - start;
	other = largest_debt(paint_state);
	if (other != own && paint_state->debt[other] >= (int64_t)walk->plan->fold_ns)
		paint(walk, other,
		      MIN(paint_state->painted_ns + (uint64_t)paint_state->debt[other], limit));
	from = paint_state->painted_ns;
	paint_state->debt[own] -= end - from;
	paint_state->painted_ns = end;
	show_ready(walk, own, from + edge_distance(end - from), walk->running_ns);
	return from;
}

static void begin_folds(Walk *walk)
{
	walk->paint.painted_ns = walk->thread->start_ns;
	if (walk->thread->intervals.count > 0)
		walk->paint.painted_ns = walk->thread->intervals.items[0].start_ns;
	for (size_t i = 0; i < CATEGORY_COUNT; i++)
		walk->paint.ready[i] = NO_FOLD;
}

/* What is left at the thread's end keeps the weights exact; it takes no room in the picture. */
static void end_folds(Walk *walk)
{
	if (walk->plan->fold_ns > 0 && walk->thread->end_ns > walk->paint.painted_ns)
		pay_debts(walk, walk->thread->end_ns, 1);
	for (size_t i = 0; i < walk->folds.count; i++)
		if (walk->folds.items[i].weight_ns > 0)
			show(walk, walk->thread->end_ns, walk->running_ns,
			     walk->folds.items[i].weight_ns, walk->folds.items[i].stack);
	vec_free(&walk->folds);
	map_free(&walk->fold_index);
}

/* ---- the rows of an interval ------------------------------------------------------ */

static uint32_t stack_of(Walk *walk, const StackRef *ref)
{
	return walk->with_stacks ? tables_stack(walk->tables, ref) : 0;
}

static void walk_wait(Walk *walk, size_t i)
{
	uint64_t start = walk->thread->intervals.items[i].start_ns;
	uint64_t end = interval_end(walk->thread, i), duration = end - start;
	StackRef ref = wait_stack(walk->timeline, walk->thread, i);
	uint64_t stretch_ns = stretch_length(walk->thread, i, &walk->stretch);
	uint32_t stack = stack_of(walk, &ref);

	if (duration < walk->plan->fold_ns) {
		fold_weight(walk, stack, duration);
		fold_interval(walk, stack, start, end);
		return;
	}
	uint64_t from = begin_interval(walk, stack, start, end), edge = edge_distance(end - from);
	uint64_t parts = wait_parts(duration, stretch_ns, walk->plan->step_ns), rows = parts + 1;
	uint64_t share = duration / rows, rest = duration % rows;
	for (uint64_t k = 0; k < rows; k++) {
		uint64_t ns = start + duration / parts * k + duration % parts * k / parts;

		ns = k == 0 ? from + edge : k == parts ? end - edge : ns;
		show(walk, ns, walk->running_ns, share + (k < rest), stack);
	}
}

/* A running interval while its rows are shown. */
typedef struct Run {
	uint64_t start, end;
	uint64_t first, last; /* between which its ticks are shown */
	bool folded;
} Run;

static void walk_tick(Walk *walk, const Tick *tick, const Run *run)
{
	uint64_t running = walk->running_ns + (tick->ns - run->start), weight;
	uint64_t ns = MIN(MAX(tick->ns, run->first), run->last);
	StackRef ref = tick_stack(walk, tick);
	uint32_t stack = stack_of(walk, &ref);

	if ((size_t)(tick - walk->thread->ticks.items) == walk->tick_end->last_tick)
		weight = walk->tick_end->running_ns - walk->tick_running_ns;
	else
		weight = running - MIN(running, walk->tick_running_ns);
	walk->tick_running_ns += weight;
	if (!run->folded && weight >= walk->plan->fold_ns) {
		show(walk, ns, running, weight, stack);
		return;
	}
	fold_weight(walk, stack, weight);
	if (!run->folded)
		show_ready(walk, colour(walk, stack), ns, running);
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
	Run run = {.start = thread->intervals.items[i].start_ns, .end = interval_end(thread, i)};
	uint64_t duration = run.end - run.start, from, edge;
	/* A thread that no tick hit carries its running time on the rows at the ends. */
	uint64_t weight = walk->tick_end->last_tick == SIZE_MAX ? duration : 0;
	size_t first;

	walk->tick = ticks_inside(thread, walk->tick, run.start, run.end, &first);
	StackRef ref = first < walk->tick ? tick_stack(walk, &thread->ticks.items[first])
					  : switch_out_stack(walk, i);
	uint32_t stack = stack_of(walk, &ref);
	run.folded = duration < walk->plan->fold_ns;
	if (run.folded) {
		for (size_t k = first; k < walk->tick; k++)
			walk_tick(walk, &thread->ticks.items[k], &run);
		fold_weight(walk, stack, weight);
		walk->running_ns += duration;
		fold_interval(walk, stack, run.start, run.end);
		return;
	}
	from = begin_interval(walk, stack, run.start, run.end);
	edge = edge_distance(run.end - from);
	run.first = from + edge;
	run.last = run.end - edge;
	show(walk, run.first, walk->running_ns + (run.first - MIN(run.first, run.start)),
	     weight / 2, stack);
	for (size_t k = first; k < walk->tick; k++)
		walk_tick(walk, &thread->ticks.items[k], &run);
	if (first < walk->tick) {
		ref = tick_stack(walk, &thread->ticks.items[walk->tick - 1]);
		stack = stack_of(walk, &ref);
	}
	show(walk, run.last, walk->running_ns + duration - edge, weight - weight / 2, stack);
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

	begin_folds(&walk);
	for (size_t i = 0; i < walk.thread->intervals.count; i++) {
		const Interval *interval = &walk.thread->intervals.items[i];

		if (interval_end(walk.thread, i) <= interval->start_ns)
			continue;
		if (interval->state == STATE_RUNNING)
			walk_running(&walk, i);
		else
			walk_wait(&walk, i);
	}
	end_folds(&walk);
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

/* Adds up the rows of a thread's intervals, but for fillers, which it returns, and ticks. */
static uint64_t estimate_intervals(RowPlan *plan, const Thread *thread)
{
	uint64_t fillers = 0, stretch_ns = 0;
	Stretch stretch = {};

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t end = interval_end(thread, i);
		uint64_t duration = end > interval->start_ns ? end - interval->start_ns : 0;

		if (duration == 0)
			continue;
		if (interval->state != STATE_RUNNING)
			stretch_ns = stretch_length(thread, i, &stretch);
		if (duration < plan->fold_ns) {
			plan->folded++;
			plan->folded_ns += duration;
			continue;
		}
		plan->rows += 2;
		if (interval->state != STATE_RUNNING)
			fillers += wait_parts(duration, stretch_ns, plan->step_ns) - 1;
	}
	return fillers;
}

/* Counts rows under the plan; returns how many of them are fillers. */
static uint64_t estimate(RowPlan *plan, const Timeline *timeline)
{
	uint64_t fillers = 0;

	plan->rows = plan->folded = plan->folded_ns = 0;
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		plan->rows += estimate_ticks(plan, thread, t);
		fillers += estimate_intervals(plan, thread);
	}
	plan->rows += fillers;
	if (plan->fold_ns > 0)
		plan->rows += 2 * (plan->folded_ns / plan->fold_ns);
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
