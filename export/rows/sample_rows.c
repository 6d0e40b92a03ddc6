/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample_rows.h"
#include "recording_cost.h"
#include "wait_fields.h"

/*
 * Rows stand this far inside the ends of their band of the track; at its quarters if it is short,
 * and no farther from a border than those on the other side.
 */
#define EDGE_NS 500

#define NO_FOLD UINT32_MAX

#define LAST_ROOTS 16 /* a power of two */

/* Recording's share of running time is accumulated until it is worth two rows. */
#define RECORDING_LEAST_NS (NSEC_PER_MSEC / 2)

/* The weight of folded intervals and ticks of one stack that no row has yet. */
typedef struct Fold {
	uint32_t stack;
	uint64_t weight_ns;
	bool ready;    /* it reached the plan's fold_ns */
	uint32_t next; /* the next ready one of its category */
} Fold;

/*
 * What folding owes the track, per category. The track is painted up to painted_ns. Folded time
 * since then is debt, which is paid with stretches of one category when there is enough of it. So
 * the categories' totals stay right although intervals are not drawn one by one. Invariant: sum of
 * debts = now - painted_ns.
 */
typedef struct Paint {
	uint64_t painted_ns;
	int64_t debt[CATEGORY_COUNT];
	uint32_t stack[CATEGORY_COUNT]; /* the last one of that category */
	uint32_t ready[CATEGORY_COUNT]; /* first of Walk::folds, or NO_FOLD */
} Paint;

/* The last row of a band, until the distance of the next band's first row from its end is known. */
typedef struct Held {
	bool full, running;
	uint64_t end_ns, edge_ns, weight_ns, running_ns;
	uint32_t stack;
} Held;

/* Recording's share of the running time of one class that has no band yet. */
typedef struct Debt {
	uint64_t ns;
	bool is_paid; /* set until the share is 0 */
} Debt;

typedef struct Walk {
	StackTable *tables;
	const Timeline *timeline;
	const RowPlan *plan;
	const TickEnd *tick_end;
	const Thread *thread;
	RowVisitor visit;
	void *user;
	bool with_stacks;
	uint32_t root; /* the stack that those of the current interval are put below, or UINT32_MAX
			*/
	/* The roots that were made last: of the owner and the category. */
	struct last_root {
		bool used;
		uint32_t owner_root, root;
	} last_roots[CATEGORY_COUNT + 1][LAST_ROOTS];
	uint64_t last_ns;
	uint64_t running_ns;	   /* before the current interval or piece */
	uint64_t tick_running_ns;  /* at the last tick shown */
	size_t tick;		   /* the next one */
	uint64_t piece_ns;	   /* where the current piece began, with recording's part of it, */
	uint64_t piece_running_ns; /* and the running time before that */
	/* Recording's share of the weights that no row has yet. */
	uint64_t owed_ns;
	Debt debts[RECORDING_CLASSES];
	Stretch stretch;
	Held held;
	VEC(Fold) folds;
	Paint paint;
} Walk;

static uint32_t stack_of(Walk *walk, const StackRef *ref)
{
	if (!walk->with_stacks)
		return 0;
	return stack_table_below(walk->tables, walk->root, stack_table_stack(walk->tables, ref));
}

static uint32_t make_root(const Walk *walk, uint32_t owner_root, bool running,
			  enum category category)
{
	const char *name = running ? "Running" : category_info[category].name;

	return stack_table_named_stack(walk->tables, owner_root, name, category);
}

/* Returns the stack that those of interval i are put below: on the path, its thread and state. */
static uint32_t root_of(Walk *walk, size_t i)
{
	const Thread *path = &walk->timeline->path.track;
	const Interval *interval = &walk->thread->intervals.items[i];
	bool running = interval->state == STATE_RUNNING;
	enum category category = CATEGORY_USER;
	struct last_root *last;
	uint32_t owner_root;

	if (!walk->plan->path_roots || walk->thread != path)
		return UINT32_MAX;
	owner_root = walk->plan->path_roots[path->owners.items[i]];
	if (!running)
		category = reason_info[wait_reason(interval)].category;
	last = &walk->last_roots[running ? CATEGORY_COUNT : category][owner_root % LAST_ROOTS];
	if (!last->used || last->owner_root != owner_root)
		*last = (struct last_root){
			.used = true,
			.owner_root = owner_root,
			.root = make_root(walk, owner_root, running, category),
		};
	return last->root;
}

static uint32_t recording_stack(Walk *walk)
{
	StackRef ref = {
		.user_stack = STACK_NONE, .kernel_stack = STACK_NONE, .leaf = LEAF_RECORDING};

	return stack_of(walk, &ref);
}

static uint64_t edge_distance(uint64_t duration)
{
	return duration < ROW_SHORT_NS ? duration / 4 : EDGE_NS;
}

static void show(Walk *walk, uint64_t ns, uint64_t running_ns, uint64_t weight_ns, uint32_t stack)
{
	Row row = {.weight_ns = weight_ns, .running_ns = running_ns, .stack = stack};

	walk->last_ns = row.ns = MAX(ns, walk->last_ns);
	walk->visit(walk->user, &row);
}

/* ---- borders -------------------------------------------------------------------- */

static void release(Walk *walk, uint64_t distance)
{
	Held *held = &walk->held;

	if (!held->full)
		return;
	held->full = false;
	show(walk, held->end_ns - distance, held->running_ns - (held->running ? distance : 0),
	     held->weight_ns, held->stack);
}

/*
 * Begins a band of one stack; returns the position of its first row. The viewer paints to the
 * middle between two rows, so those at a border must be equally far from it, or the border moves.
 */
static uint64_t begin_band(Walk *walk, uint64_t from, uint64_t edge)
{
	uint64_t distance = walk->held.full ? MIN(walk->held.edge_ns, edge) : edge;

	release(walk, distance);
	return from + distance;
}

/* running_ns is that at the band's end. */
static void end_band(Walk *walk, const Held *held)
{
	walk->held = *held;
	walk->held.full = true;
}

/* ---- folding -------------------------------------------------------------------- */

static void fold_weight(Walk *walk, uint32_t stack, uint64_t weight_ns)
{
	uint32_t number, *first;
	Fold *fold;

	while (walk->tables->folds.count <= stack)
		*vec_push(&walk->tables->folds) = NO_FOLD;
	number = walk->tables->folds.items[stack];
	if (number == NO_FOLD) {
		number = walk->tables->folds.items[stack] = walk->folds.count;
		*vec_push(&walk->folds) = (Fold){.stack = stack};
	}
	fold = &walk->folds.items[number];
	fold->weight_ns += weight_ns;
	if (fold->ready || fold->weight_ns < walk->plan->fold_ns)
		return;
	first = &walk->paint.ready[stack_table_leaf_category(walk->tables, stack)];
	fold->ready = true;
	fold->next = *first;
	*first = number;
}

/*
 * Removes and returns a ready weight of the category, and sets its stack; returns 0 and leaves
 * *stack as it is if there is none.
 */
static uint64_t pop_ready(Walk *walk, enum category category, uint32_t *stack)
{
	uint32_t number = walk->paint.ready[category];
	uint64_t weight_ns;
	Fold *fold;

	if (number == NO_FOLD)
		return 0;
	fold = &walk->folds.items[number];
	walk->paint.ready[category] = fold->next;
	weight_ns = fold->weight_ns;
	*stack = fold->stack;
	fold->weight_ns = 0;
	fold->ready = false;
	return weight_ns;
}

/* Adds rows for the ready weights of a category where it is being painted anyway. */
static void show_ready(Walk *walk, enum category category, uint64_t ns, uint64_t running_ns)
{
	if (walk->plan->fold_ns == 0)
		return;
	while (walk->paint.ready[category] != NO_FOLD) {
		uint32_t stack = 0;
		uint64_t weight_ns = pop_ready(walk, category, &stack);

		show(walk, ns, running_ns, weight_ns, stack);
	}
}

/* Paints from painted_ns up to `to`. */
static void paint(Walk *walk, enum category category, uint64_t to)
{
	Paint *paint = &walk->paint;
	uint64_t from = paint->painted_ns, edge = edge_distance(to - from);
	uint32_t stack = paint->stack[category];
	uint64_t weight_ns = pop_ready(walk, category, &stack);
	uint64_t first = begin_band(walk, from, edge);

	show(walk, first, walk->running_ns, weight_ns, stack);
	show_ready(walk, category, first, walk->running_ns);
	end_band(walk, &(Held){.end_ns = to,
			       .edge_ns = edge,
			       .running_ns = walk->running_ns,
			       .stack = stack});
	paint->debt[category] -= to - from;
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
		enum category category = largest_debt(paint_state);
		uint64_t left = now - paint_state->painted_ns;

		if (paint_state->debt[category] <= 0)
			break;
		paint(walk, category,
		      paint_state->painted_ns + MIN((uint64_t)paint_state->debt[category], left));
	}
}

static void fold_interval(Walk *walk, uint32_t stack, uint64_t start, uint64_t end)
{
	enum category category = stack_table_leaf_category(walk->tables, stack);

	walk->paint.debt[category] += end - start;
	walk->paint.stack[category] = stack;
	pay_debts(walk, end, walk->plan->fold_ns);
}

/*
 * Returns from where on an unfolded interval is painted: where the last paint ended, after another
 * category's debt was paid with at most half of the interval.
 */
static uint64_t begin_interval(Walk *walk, uint32_t stack, uint64_t start, uint64_t end)
{
	Paint *paint_state = &walk->paint;
	uint64_t limit = start + (end - start) / 2, from;
	enum category own, other;

	if (walk->plan->fold_ns == 0)
		return start;
	own = stack_table_leaf_category(walk->tables, stack);
	paint_state->debt[own] += end - start;
	other = largest_debt(paint_state);
	if (other != own && paint_state->debt[other] >= (int64_t)walk->plan->fold_ns)
		paint(walk, other,
		      MIN(paint_state->painted_ns + (uint64_t)paint_state->debt[other], limit));
	from = paint_state->painted_ns;
	paint_state->debt[own] -= end - from;
	paint_state->painted_ns = end;
	return from;
}

static void show_weight(Walk *walk, uint64_t ns, uint64_t running, uint64_t weight, uint32_t stack,
			bool folded)
{
	if (folded || weight < walk->plan->fold_ns)
		fold_weight(walk, stack, weight);
	else
		show(walk, ns, running, weight, stack);
}

/* Adds one row for the weights that were subtracted for recording since its last row or band. */
static void show_owed(Walk *walk, uint64_t ns, uint64_t running, bool folded)
{
	if (walk->owed_ns > 0)
		show_weight(walk, ns, running, walk->owed_ns, recording_stack(walk), folded);
	walk->owed_ns = 0;
}

static void begin_folds(Walk *walk)
{
	walk->paint.painted_ns = walk->thread->start_ns;
	if (walk->thread->intervals.count > 0)
		walk->paint.painted_ns = walk->thread->intervals.items[0].start_ns;
	for (size_t i = 0; i < CATEGORY_COUNT; i++)
		walk->paint.ready[i] = NO_FOLD;
}

/* Weight that is left at the thread's end keeps the sums exact; it takes no room in the track. */
static void end_folds(Walk *walk)
{
	if (walk->plan->fold_ns > 0 && walk->thread->end_ns > walk->paint.painted_ns)
		pay_debts(walk, walk->thread->end_ns, 1);
	release(walk, walk->held.edge_ns);
	/* Only for a thread without ticks; otherwise the last tick has a row. */
	show_owed(walk, walk->thread->end_ns, walk->running_ns, /* folded= */ false);
	for (size_t i = 0; i < walk->folds.count; i++)
		if (walk->folds.items[i].weight_ns > 0)
			show(walk, walk->thread->end_ns, walk->running_ns,
			     walk->folds.items[i].weight_ns, walk->folds.items[i].stack);
	for (size_t i = 0; i < walk->folds.count; i++)
		walk->tables->folds.items[walk->folds.items[i].stack] = NO_FOLD;
	vec_free(&walk->folds);
}

/* ---- the rows of an interval ------------------------------------------------------ */

static void walk_wait(Walk *walk, size_t i)
{
	uint64_t start = walk->thread->intervals.items[i].start_ns;
	uint64_t end = interval_end(walk->thread, i), duration = end - start;
	StackRef ref = wait_stack(walk->timeline, walk->thread, i);
	uint64_t stretch_ns = row_stretch_length(walk->thread, i, &walk->stretch);
	uint32_t stack = stack_of(walk, &ref);

	if (duration < walk->plan->fold_ns) {
		fold_weight(walk, stack, duration);
		fold_interval(walk, stack, start, end);
		return;
	}
	uint64_t from = begin_interval(walk, stack, start, end), edge = edge_distance(end - from);
	uint64_t parts = row_wait_parts(duration, stretch_ns, walk->plan->step_ns),
		 rows = parts + 1;
	uint64_t share = duration / rows, rest = duration % rows;
	uint64_t first = begin_band(walk, from, edge);
	for (uint64_t k = 0; k < parts; k++) {
		uint64_t ns = start + duration / parts * k + duration % parts * k / parts;

		show(walk, k == 0 ? first : ns, walk->running_ns, share + (k < rest), stack);
		if (k == 0)
			show_ready(walk, stack_table_leaf_category(walk->tables, stack), first,
				   walk->running_ns);
	}
	end_band(walk, &(Held){.end_ns = end,
			       .edge_ns = edge,
			       .weight_ns = share,
			       .running_ns = walk->running_ns,
			       .stack = stack});
}

/* Subtracts recording's share from a weight (of a tick; NULL: of a switch-out). */
static uint64_t own_weight(Walk *walk, const Tick *tick, uint64_t weight)
{
	uint64_t part = recording_cost_share(walk->timeline, tick) * weight;

	part = MIN(part, weight);
	walk->owed_ns += part;
	return weight - part;
}

/*
 * The rows of ticks between `first` and `last`; if they are folded, their weights are not in these
 * rows.
 */
static void walk_ticks(Walk *walk, const Piece *piece, uint64_t first, uint64_t last, bool folded)
{
	for (size_t k = piece->first; k < piece->last; k++) {
		const Tick *tick = &walk->thread->ticks.items[k];
		uint64_t running = walk->piece_running_ns + (tick->ns - walk->piece_ns);
		uint64_t ns = MIN(MAX(tick->ns, first), last), until = running, weight;
		StackRef ref = tick_stack(walk->timeline, walk->thread, tick);
		uint32_t stack = stack_of(walk, &ref);

		if (k == walk->tick_end->last_tick)
			until = walk->tick_end->running_ns;
		weight = until - MIN(until, walk->tick_running_ns);
		walk->tick_running_ns += weight;
		weight = own_weight(walk, tick, weight);
		running = MAX(running, walk->running_ns);
		show_weight(walk, ns, running, weight, stack, folded);
		if (k == walk->tick_end->last_tick && walk->owed_ns > 0) {
			/* A row between two rows of the same time takes no room in the track. */
			show_owed(walk, ns, running, folded);
			show_weight(walk, ns, running, 0, stack, folded);
		}
		if (!folded)
			show_ready(walk, stack_table_leaf_category(walk->tables, stack), ns,
				   running);
	}
}

/*
 * Adds the rows at the ends of a piece, which share `weight`, and between them those of its ticks.
 * walk->running_ns grows by the piece's length.
 */
static void walk_band(Walk *walk, const Piece *piece, uint32_t stack, uint32_t end_stack,
		      uint64_t weight)
{
	uint64_t duration = piece->end - piece->start, from, edge, first;

	if (duration < walk->plan->fold_ns) {
		walk_ticks(walk, piece, piece->start, piece->end, /* folded= */ true);
		fold_weight(walk, stack, weight);
		walk->running_ns += duration;
		fold_interval(walk, stack, piece->start, piece->end);
		return;
	}
	from = begin_interval(walk, stack, piece->start, piece->end);
	edge = edge_distance(piece->end - from);
	first = begin_band(walk, from, edge);
	show(walk, first, walk->running_ns + (first - MIN(first, piece->start)), weight / 2, stack);
	walk_ticks(walk, piece, first, piece->end - edge, /* folded= */ false);
	walk->running_ns += duration;
	end_band(walk, &(Held){.running = true,
			       .end_ns = piece->end,
			       .edge_ns = edge,
			       .weight_ns = weight - weight / 2,
			       .running_ns = walk->running_ns,
			       .stack = end_stack});
}

/*
 * Returns how much of the piece is painted as recording's: 0 until that is long enough to be
 * visible.
 */
static uint64_t pay_debt(Walk *walk, const Tick *tick, uint64_t duration)
{
	Debt *debt = &walk->debts[tick ? tick->recording : RECORDING_ELSEWHERE];
	uint64_t part;

	debt->ns += recording_cost_share(walk->timeline, tick) * duration;
	if (debt->ns >= RECORDING_LEAST_NS || walk->plan->fold_ns > 0)
		debt->is_paid = true;
	if (!debt->is_paid)
		return 0;
	part = MIN(debt->ns, duration);
	debt->ns -= part;
	debt->is_paid = debt->ns > 0;
	return part;
}

/*
 * Subtracts recording's share of the piece's class from the beginning of the piece (tick: the tick
 * that stands for it; NULL: a switch-out). The band's weight is what was subtracted from weights
 * since the last band.
 */
static void walk_recording(Walk *walk, Piece *piece, const Tick *tick)
{
	uint64_t part = pay_debt(walk, tick, piece->end - piece->start), weight = walk->owed_ns;
	Piece band = {.start = piece->start, .end = piece->start + part};
	uint32_t stack;

	if (part == 0)
		return;
	stack = recording_stack(walk);
	walk->owed_ns = 0;
	piece->start = band.end;
	walk_band(walk, &band, stack, stack, weight);
}

/*
 * stack is that of its first row, end_stack that of its last row, and weight that of both if no
 * tick of the thread has it.
 */
static void walk_piece(Walk *walk, const Piece *piece, uint32_t stack, uint32_t end_stack,
		       uint64_t weight)
{
	if (piece->end > piece->start) {
		walk_band(walk, piece, stack, end_stack, weight);
		return;
	}
	if (walk->plan->fold_ns > 0) {
		walk_ticks(walk, piece, piece->start, piece->end, /* folded= */ true);
		fold_weight(walk, stack, weight);
		return;
	}
	if (piece->first == piece->last && weight == 0)
		return;
	/* Rows between two rows of recording's at the same time take no room in the track. */
	release(walk, walk->held.edge_ns);
	walk_ticks(walk, piece, walk->last_ns, walk->last_ns, /* folded= */ false);
	if (weight > 0)
		show(walk, walk->last_ns, walk->running_ns, weight, stack);
	show(walk, walk->last_ns, walk->running_ns, 0, recording_stack(walk));
}

static void walk_running(Walk *walk, size_t i)
{
	const Thread *thread = walk->thread;
	const Tick *ticks = thread->ticks.items;
	Pieces pieces = tick_pieces_begin(thread, walk->tick_end, walk->tick, i);
	Piece piece;

	walk->tick = pieces.ticks_end;
	while (tick_pieces_next(&pieces, &piece)) {
		const Tick *tick = piece.first < piece.last ? &ticks[piece.first] : piece.rest;
		StackRef ref = tick ? tick_stack(walk->timeline, thread, tick)
				    : wait_switch_out_stack(walk->timeline, thread, i);
		uint32_t stack = stack_of(walk, &ref), end_stack = stack;
		uint64_t weight;

		if (piece.first < piece.last) {
			ref = tick_stack(walk->timeline, thread,
					 piece.end < pieces.end ? &ticks[piece.last - 1]
								: piece.rest);
			end_stack = stack_of(walk, &ref);
		}
		walk->piece_ns = piece.start;
		walk->piece_running_ns = walk->running_ns;
		weight = tick ? 0 : own_weight(walk, NULL, piece.end - piece.start);
		walk_recording(walk, &piece, tick);
		walk_piece(walk, &piece, stack, end_stack, weight);
	}
}

/* A hidden state has one row, without a reason. */
static void walk_hidden(Walk *walk, size_t i)
{
	uint64_t start = walk->thread->intervals.items[i].start_ns;
	uint64_t end = interval_end(walk->thread, i), from, edge;
	StackRef ref = {.user_stack = STACK_NONE, .kernel_stack = STACK_NONE, .leaf = LEAF_HIDDEN};
	uint32_t stack = stack_of(walk, &ref);

	if (end - start < walk->plan->fold_ns) {
		fold_interval(walk, stack, start, end);
		return;
	}
	from = begin_interval(walk, stack, start, end);
	edge = edge_distance(end - from);
	show(walk, begin_band(walk, from, edge), walk->running_ns, 0, stack);
	end_band(walk, &(Held){.end_ns = end,
			       .edge_ns = edge,
			       .running_ns = walk->running_ns,
			       .stack = stack});
}

static void make_rows(StackTable *tables, const RowPlan *plan, uint32_t thread, bool with_stacks,
		      RowVisitor visit, void *user)
{
	const Timeline *timeline = tables->timeline;
	Walk walk = {
		.tables = tables,
		.timeline = timeline,
		.plan = plan,
		.tick_end = &plan->tick_ends[thread],
		.thread = timeline_track(timeline, thread),
		.visit = visit,
		.user = user,
		.with_stacks = with_stacks || plan->fold_ns > 0,
		.root = UINT32_MAX,
	};

	begin_folds(&walk);
	for (size_t i = 0; i < walk.thread->intervals.count; i++) {
		const Interval *interval = &walk.thread->intervals.items[i];

		if (interval_end(walk.thread, i) <= interval->start_ns)
			continue;
		walk.root = root_of(&walk, i);
		if (plan->hidden >> interval->state & 1)
			walk_hidden(&walk, i);
		else if (interval->state == STATE_RUNNING)
			walk_running(&walk, i);
		else
			walk_wait(&walk, i);
	}
	end_folds(&walk);
}

void sample_rows_walk(StackTable *tables, const RowPlan *plan, uint32_t thread, bool with_stacks,
		      RowVisitor visit, void *user)
{
	if (plan->kept.ends.count > 0)
		kept_rows_visit(&plan->kept, thread, visit, user);
	else
		make_rows(tables, plan, thread, with_stacks, visit, user);
}

typedef struct Keeping {
	KeptRows kept;
	uint64_t rows, most;
} Keeping;

static void keep_row(void *user, const Row *row)
{
	Keeping *keeping = user;

	if (keeping->rows++ < keeping->most)
		kept_rows_add(&keeping->kept, row);
}

/* Makes the rows of the plan, and keeps them if they are within the budget. */
static void keep_rows(RowPlan *plan, StackTable *tables, uint64_t budget)
{
	Keeping keeping = {.most = budget};

	for (size_t i = 0; i < timeline_track_count(tables->timeline); i++) {
		make_rows(tables, plan, i, /* with_stacks= */ true, keep_row, &keeping);
		kept_rows_end_thread(&keeping.kept);
	}
	plan->rows = keeping.rows;
	if (plan->rows > budget) {
		kept_rows_free(&keeping.kept);
		return;
	}
	vec_shrink(&keeping.kept.bytes);
	plan->kept = keeping.kept;
}

/*
 * Reduces fillers first, until they are few or only those of long waits are left; then folds short
 * intervals, below a limit that doubles.
 */
void sample_rows_fit(RowPlan *plan, StackTable *tables, uint64_t budget)
{
	const Timeline *timeline = tables->timeline;
	uint64_t window = timeline->end_ns - timeline->start_ns;
	uint64_t fillers = row_plan_estimate(plan, timeline);

	while (plan->rows > budget && fillers > budget / 10 &&
	       plan->step_ns < window / ROW_LONG_PARTS) {
		plan->step_ns *= 2;
		fillers = row_plan_estimate(plan, timeline);
	}
	while (plan->rows > budget && plan->fold_ns < window) {
		row_plan_fold(plan, timeline, plan->fold_ns ? plan->fold_ns * 2 : ROW_SHORT_NS);
		/*
		 * The estimate does not include the rows for what is left of each stack at a
		 * thread's end.
		 */
		if (plan->rows <= budget)
			keep_rows(plan, tables, budget);
	}
}
