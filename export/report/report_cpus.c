/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_rows.h"
#include "page_table.h"
#include "report_sections.h"
#include "text.h"

static const TableColumn columns[] = {
	{"CPU", 8, 0}, {"busy", 12, 0}, {"idle", 12, 1}, {"unknown", 12, 2}};

typedef struct TaskTime {
	uint32_t task;
	uint64_t ns;
} TaskTime;

typedef struct CpuSums {
	uint64_t busy_ns, idle_ns, unknown_ns;
	VEC(TaskTime) tasks; /* the largest first */
} CpuSums;

static int compare_times(const void *a, const void *b)
{
	const TaskTime *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->task < y->task ? -1 : 1;
}

static void add_run(CpuSums *sums, Map *numbers, uint32_t task, uint64_t ns)
{
	uint32_t number;

	if (task == CPU_IDLE || task == CPU_UNKNOWN) {
		*(task == CPU_IDLE ? &sums->idle_ns : &sums->unknown_ns) += ns;
		return;
	}
	sums->busy_ns += ns;
	number = map_get(numbers, task);
	if (number == MAP_NONE) {
		number = sums->tasks.count;
		map_set(numbers, task, number);
		*vec_push(&sums->tasks) = (TaskTime){.task = task};
	}
	sums->tasks.items[number].ns += ns;
}

/* The caller frees sums.tasks. */
static CpuSums sum_up(const Timeline *timeline, const Cpu *cpu)
{
	CpuSums sums = {};
	Map numbers = {};

	for (size_t i = 0; i < cpu->runs.count; i++)
		add_run(&sums, &numbers, cpu->runs.items[i].task,
			cpu_run_end(timeline, cpu, i) - cpu->runs.items[i].start_ns);
	map_free(&numbers);
	if (sums.tasks.count > 0)
		qsort(sums.tasks.items, sums.tasks.count, sizeof(TaskTime), compare_times);
	return sums;
}

void report_cpus_print(const Report *report)
{
	const Timeline *timeline = report->timeline;
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	if (timeline->cpus.count > 0)
		page_table_head(&table, "CPUs: used most by");
	for (size_t i = 0; i < timeline->cpus.count; i++) {
		if (timeline->cpus.items[i].runs.count == 0)
			continue;
		CpuSums sums = sum_up(timeline, &timeline->cpus.items[i]);
		const TaskTime *most = sums.tasks.count ? &sums.tasks.items[0] : NULL;
		_cleanup_free_ char *text = most ? cpu_run_text(timeline, most->task) : NULL;
		_cleanup_free_ char *name = text_printable(text);
		_cleanup_free_ char *used_by =
			most ? xasprintf("%s (%s)", name, DURATION(most->ns)) : xstrdup("");
		const char *cells[] = {COUNT(i), DURATION(sums.busy_ns), DURATION(sums.idle_ns),
				       DURATION(sums.unknown_ns)};

		page_table_row(&table, cells, used_by);
		vec_free(&sums.tasks);
	}
}

static void write_cpu(Json *json, const Timeline *timeline, size_t number)
{
	CpuSums sums = sum_up(timeline, &timeline->cpus.items[number]);

	json_begin_object(json);
	json_key_u64(json, "cpu", number);
	json_key_u64(json, "busy_ns", sums.busy_ns);
	json_key_u64(json, "idle_ns", sums.idle_ns);
	json_key_u64(json, "unknown_ns", sums.unknown_ns);
	json_key_array(json, "tasks");
	for (size_t i = 0; i < sums.tasks.count; i++) {
		const Task *task = &timeline->tasks.items[sums.tasks.items[i].task];
		_cleanup_free_ char *name = cpu_run_text(timeline, sums.tasks.items[i].task);

		json_begin_object(json);
		json_key_u64(json, "tid", task->ns_tid ? task->ns_tid : task->tid);
		json_key_string(json, "name", name);
		json_key_bool(json, "recorded", task->thread != THREAD_NONE);
		json_key_u64(json, "ns", sums.tasks.items[i].ns);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	vec_free(&sums.tasks);
}

void report_cpus(Json *json, const Timeline *timeline)
{
	json_key_array(json, "cpus");
	for (size_t i = 0; i < timeline->cpus.count; i++)
		if (timeline->cpus.items[i].runs.count > 0)
			write_cpu(json, timeline, i);
	json_end_array(json);
}
