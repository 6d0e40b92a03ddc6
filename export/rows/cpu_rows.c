/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_rows.h"

/* The same distance from a run's ends as the rows of a thread's intervals have. */
#define EDGE_NS 500

/* The folded time of a task since its last row. */
typedef struct FoldedTime {
	uint32_t task;
	uint64_t ns;
} FoldedTime;

typedef struct CpuWalk {
	StackTable *tables;
	const Timeline *timeline;
	uint64_t fold_ns;
	RowVisitor visit;
	void *user;
	uint64_t running_ns;
	Map folded_time_of_task; /* -> folded_times */
	VEC(FoldedTime) folded_times;
} CpuWalk;

static const char *or_unknown(const char *name)
{
	return name && *name ? name : "unknown";
}

char *cpu_run_text(const Timeline *timeline, uint32_t task)
{
	const Task *who;

	if (task == CPU_IDLE || task == CPU_UNKNOWN)
		return xstrdup(task == CPU_IDLE ? "idle" : "unknown");
	who = &timeline->tasks.items[task];
	return xstrdup(or_unknown(who->thread == THREAD_NONE
					  ? who->comm
					  : timeline->threads.items[who->thread].name));
}

char *cpu_run_label(const Timeline *timeline, uint32_t task)
{
	uint32_t thread = task == CPU_IDLE || task == CPU_UNKNOWN
				  ? THREAD_NONE
				  : timeline->tasks.items[task].thread;

	if (thread == THREAD_NONE)
		return cpu_run_text(timeline, task);
	return xstrdup(thread_label(timeline, &timeline->threads.items[thread]));
}

static const char *process_text(const Timeline *timeline, const Task *task)
{
	const Thread *thread;

	if (task->thread == THREAD_NONE)
		return task->kernel ? "kernel threads" : or_unknown(task->comm);
	thread = &timeline->threads.items[task->thread];
	return or_unknown(timeline->processes.items[thread->process].name);
}

static uint32_t stack_of(CpuWalk *walk, uint32_t number)
{
	_cleanup_free_ char *name = cpu_run_text(walk->timeline, number), *leaf = NULL;
	const Task *task;
	enum category category;
	uint32_t stack;

	if (number == CPU_IDLE)
		return stack_table_pseudo_stack(walk->tables, UINT32_MAX, "[idle]", CATEGORY_IDLE);
	if (number == CPU_UNKNOWN)
		return stack_table_pseudo_stack(walk->tables, UINT32_MAX, "[events lost]",
						CATEGORY_UNKNOWN);
	task = &walk->timeline->tasks.items[number];
	category = task->kernel ? CATEGORY_KERNEL : CATEGORY_USER;
	stack = stack_table_named_stack(walk->tables, UINT32_MAX,
					process_text(walk->timeline, task), category);
	leaf = xasprintf("%s (%u)", name, task->ns_tid ? task->ns_tid : task->tid);
	return stack_table_named_stack(walk->tables, stack, leaf, category);
}

static void show(CpuWalk *walk, uint32_t task, uint64_t ns, uint64_t weight_ns)
{
	Row row = {.ns = ns, .weight_ns = weight_ns};

	if (task != CPU_IDLE && task != CPU_UNKNOWN)
		walk->running_ns += weight_ns;
	row.running_ns = walk->running_ns;
	row.stack = stack_of(walk, task);
	walk->visit(walk->user, &row);
}

static void fold(CpuWalk *walk, uint32_t task, uint64_t start_ns, uint64_t ns)
{
	uint32_t number = map_get(&walk->folded_time_of_task, task);
	FoldedTime *folded;

	if (number == MAP_NONE) {
		number = walk->folded_times.count;
		map_set(&walk->folded_time_of_task, task, number);
		*vec_push(&walk->folded_times) = (FoldedTime){.task = task};
	}
	folded = &walk->folded_times.items[number];
	folded->ns += ns;
	if (folded->ns < walk->fold_ns)
		return;
	show(walk, task, start_ns + ns / 2, folded->ns);
	folded->ns = 0;
}

static void show_run(CpuWalk *walk, uint32_t task, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t ns = end_ns - start_ns;

	if (ns < walk->fold_ns) {
		fold(walk, task, start_ns, ns);
	} else if (ns < 4 * EDGE_NS) {
		show(walk, task, start_ns + ns / 2, ns);
	} else {
		show(walk, task, start_ns + EDGE_NS, ns / 2);
		show(walk, task, end_ns - EDGE_NS, ns - ns / 2);
	}
}

void cpu_rows_walk(StackTable *tables, const CpuPlan *plan, uint32_t cpu, RowVisitor visit,
		   void *user)
{
	const Timeline *timeline = tables->timeline;
	const Cpu *runs = &timeline->cpus.items[cpu];
	CpuWalk walk = {
		.tables = tables,
		.timeline = timeline,
		.fold_ns = plan->fold_ns,
		.visit = visit,
		.user = user,
	};

	for (size_t i = 0; i < runs->runs.count; i++) {
		uint64_t end_ns = cpu_run_end(timeline, runs, i);

		if (end_ns > runs->runs.items[i].start_ns)
			show_run(&walk, runs->runs.items[i].task, runs->runs.items[i].start_ns,
				 end_ns);
	}
	for (size_t i = 0; i < walk.folded_times.count; i++)
		if (walk.folded_times.items[i].ns > 0)
			show(&walk, walk.folded_times.items[i].task, timeline->end_ns,
			     walk.folded_times.items[i].ns);
	map_free(&walk.folded_time_of_task);
	vec_free(&walk.folded_times);
}

/* Counts the rows by the plan, without those for the time that is left of each task at the end. */
static uint64_t estimate(CpuPlan *plan, const Timeline *timeline)
{
	uint64_t rows = 0, folded_ns = 0;

	plan->folded = 0;
	for (size_t c = 0; c < timeline->cpus.count; c++) {
		const Cpu *cpu = &timeline->cpus.items[c];

		for (size_t i = 0; i < cpu->runs.count; i++) {
			uint64_t ns = cpu_run_end(timeline, cpu, i) - cpu->runs.items[i].start_ns;

			if (ns >= plan->fold_ns) {
				rows += 2;
				continue;
			}
			plan->folded++;
			folded_ns += ns;
		}
	}
	return rows + (plan->fold_ns ? folded_ns / plan->fold_ns : 0);
}

void cpu_plan_fit(CpuPlan *plan, const Timeline *timeline, uint64_t budget)
{
	uint64_t window = timeline->end_ns - timeline->start_ns;

	*plan = (CpuPlan){};
	while (estimate(plan, timeline) > budget && plan->fold_ns < window)
		plan->fold_ns = plan->fold_ns ? plan->fold_ns * 2 : 4 * EDGE_NS;
}
