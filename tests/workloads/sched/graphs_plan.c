/* SPDX-License-Identifier: GPL-2.0-or-later */
/* graphs_plan.c - draws a graph of tasks from its seed. */
#include "graphs.h"
#include "truth.h"

#define DEPTH_MAX   3
#define FILE_BLOCKS 16

typedef struct Plan {
	Graph *graph;
	bool disk;
	int64_t left_us; /* the time that the graph may still take */
} Plan;

uint32_t graph_random(uint64_t *state, uint32_t from, uint32_t to)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return from + (uint32_t)((*state >> 33) % (to - from + 1));
}

static uint32_t draw(Plan *plan, uint32_t from, uint32_t to)
{
	return graph_random(&plan->graph->random, from, to);
}

static Op *add(Plan *plan, uint32_t task, OpKind kind, uint32_t arg)
{
	Task *owner = &plan->graph->tasks[task];
	Op *op = &owner->ops[owner->op_count++];

	truth_check(owner->op_count < OPS_MAX, "too many operations");
	*op = (Op){.kind = kind, .arg = arg};
	return op;
}

static void pass(Plan *plan, uint32_t from, uint32_t to)
{
	/* The giver of a mutex must hold it before the other task locks it. */
	bool has_all = to != TASK_RUN && (from == TASK_MAIN || plan->graph->tasks[from].is_pool);
	uint32_t number = plan->graph->object_count++;

	plan->graph->objects[number] = (Object){
		.kind = draw(plan, 0, has_all ? OBJECT_MUTEX : OBJECT_PIPE),
		.giver = from,
		.taker = to,
	};
	add(plan, from, OP_GIVE, number);
	add(plan, to, OP_TAKE, number);
}

/* Whether there is room for another piece, whichever it is. */
static bool has_room(const Plan *plan)
{
	if (plan->graph->task_count + 2 > TASKS_MAX || plan->graph->object_count + 4 > OBJECTS_MAX)
		return false;
	for (uint32_t i = 0; i < plan->graph->task_count; i++)
		if (plan->graph->tasks[i].op_count + 16 > OPS_MAX)
			return false;
	return true;
}

static void plan_act(Plan *plan, uint32_t task)
{
	static const OpKind kinds[] = {OP_COMPUTE, OP_COMPUTE, OP_SLEEP, OP_SLEEP, OP_DISK};
	OpKind kind = kinds[draw(plan, 0, plan->disk ? 4 : 3)];
	uint32_t us = draw(plan, 300, 3000);

	add(plan, task, kind, kind == OP_DISK ? us % FILE_BLOCKS : us)->has_token = true;
	plan->left_us -= us;
}

static void plan_block(Plan *plan, uint32_t task, int depth);

static uint32_t create(Plan *plan, uint32_t creator, bool as_child)
{
	uint32_t task = plan->graph->task_count++;

	plan->graph->tasks[task].creator = creator;
	add(plan, creator, as_child ? OP_CHILD : OP_THREAD, task);
	return task;
}

static void await_end(Plan *plan, uint32_t task, uint32_t ended, bool is_child)
{
	add(plan, task, is_child ? OP_REAP : OP_JOIN, ended);
}

/* Another task does a piece, and this one waits for its end. */
static void plan_call(Plan *plan, uint32_t task, int depth)
{
	bool as_child = draw(plan, 0, 1);
	uint32_t callee = create(plan, task, as_child);

	/* As long as the caller is awake, a sleep of the callee's is not on the path. */
	if (draw(plan, 0, 3) == 0)
		add(plan, task, OP_COMPUTE, draw(plan, 300, 2000));
	plan_block(plan, callee, depth + 1);
	await_end(plan, task, callee, as_child);
}

/* A task beside the callee ends well before that. */
static void plan_branches(Plan *plan, uint32_t task, int depth)
{
	bool short_child = draw(plan, 0, 1), long_child = draw(plan, 0, 1);
	bool short_first = draw(plan, 0, 1);
	uint32_t short_one = create(plan, task, short_child);
	uint32_t long_one = create(plan, task, long_child);

	add(plan, short_one, draw(plan, 0, 1) ? OP_COMPUTE : OP_SLEEP, 200);
	add(plan, long_one, draw(plan, 0, 1) ? OP_COMPUTE : OP_SLEEP, 6000)->has_token = true;
	plan->left_us -= 6000;
	plan_block(plan, long_one, depth + 1);
	if (short_first)
		await_end(plan, task, short_one, short_child);
	await_end(plan, task, long_one, long_child);
	if (!short_first)
		await_end(plan, task, short_one, short_child);
}

static uint32_t free_pool_task(Plan *plan)
{
	uint32_t found = 0, seen = 0;

	for (uint32_t i = 0; i < plan->graph->task_count; i++) {
		const Task *task = &plan->graph->tasks[i];

		if (task->is_pool && !task->is_busy && draw(plan, 0, seen++) == 0)
			found = i;
	}
	return found;
}

/* The token goes through one or more tasks of the pool, and back. */
static void plan_round(Plan *plan, uint32_t task, int depth)
{
	uint32_t at = task, members[3], count = 0, wanted = draw(plan, 1, 3);

	while (count < wanted && has_room(plan)) {
		uint32_t next = free_pool_task(plan);

		if (next == 0)
			break;
		pass(plan, at, next);
		plan->graph->tasks[next].is_busy = true;
		members[count++] = next;
		plan_block(plan, next, depth + 1);
		at = next;
	}
	if (at != task)
		pass(plan, at, task);
	while (count > 0)
		plan->graph->tasks[members[--count]].is_busy = false;
}

static void plan_block(Plan *plan, uint32_t task, int depth)
{
	plan_act(plan, task);
	for (uint32_t pieces = draw(plan, 0, 2); pieces > 0 && plan->left_us > 0; pieces--) {
		uint32_t choice = depth < DEPTH_MAX && has_room(plan) ? draw(plan, 0, 6) : 0;

		if (choice < 2)
			plan_act(plan, task);
		else if (choice < 4)
			plan_call(plan, task, depth);
		else if (choice < 6)
			plan_round(plan, task, depth);
		else
			plan_branches(plan, task, depth);
	}
}

/* They begin when all of them hold the mutexes that they pass on. */
static void plan_pool(Plan *plan)
{
	uint32_t first = plan->graph->task_count, end = first + draw(plan, 2, 4);

	while (plan->graph->task_count < end)
		create(plan, TASK_MAIN, false);
	for (uint32_t i = first; i < end; i++) {
		pass(plan, i, TASK_MAIN);
		plan->graph->tasks[i].is_pool = true;
	}
	for (uint32_t i = first; i < end; i++)
		pass(plan, TASK_MAIN, i);
}

void graph_plan(Graph *graph, uint64_t seed, bool disk)
{
	Plan plan = {.graph = graph, .disk = disk};

	graph->random = seed;
	graph->task_count = 1;
	create(&plan, TASK_RUN, true);
	plan_pool(&plan);
	graph->idle_count = draw(&plan, 0, 3);
	graph->ticker_count = draw(&plan, 0, 3);
	plan.left_us = draw(&plan, 10000, 25000);
	while (plan.left_us > 0)
		plan_block(&plan, TASK_MAIN, 0);
	pass(&plan, TASK_MAIN, TASK_RUN);
}
