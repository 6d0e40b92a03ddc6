/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "process_table.h"

/* With fewer entries the table is small. */
#define ENTRIES_MIN 8192

void process_table_free(ProcessTable *table)
{
	vec_free(&table->list);
	map_free(&table->by_ns_tgid);
	map_free(&table->by_tgid);
}

static Process *entry(const ProcessTable *table, uint32_t index)
{
	return index == MAP_NONE ? NULL : &table->list.items[index];
}

Process *process_table_find(const ProcessTable *table, uint32_t ns_tgid)
{
	return entry(table, map_get(&table->by_ns_tgid, ns_tgid));
}

Process *process_table_find_tgid(const ProcessTable *table, uint32_t tgid)
{
	Process *process = entry(table, map_get(&table->by_tgid, tgid));

	/* Its entry may have another process's ids by now. */
	return process && process->tgid == tgid ? process : NULL;
}

Process *process_table_get(ProcessTable *table, uint32_t ns_tgid)
{
	Process *process = process_table_find(table, ns_tgid);

	if (process)
		return process;
	map_set(&table->by_ns_tgid, ns_tgid, table->list.count);
	process = vec_push(&table->list);
	*process = (Process){.ns_tgid = ns_tgid};
	return process;
}

void process_table_describe(ProcessTable *table, const struct rec_task *task)
{
	Process *process = process_table_get(table, task->ns_tgid);

	if (process->tgid != task->tgid)
		process->start_boottime = 0;
	process->tgid = task->tgid;
	if (task->tid == task->tgid)
		process->start_boottime = task->start_boottime;
	map_set(&table->by_tgid, task->tgid, process - table->list.items);
}

bool process_table_want(ProcessTable *table, uint32_t ns_tgid, uint64_t ns)
{
	Process *process = process_table_get(table, ns_tgid);

	process->begun_ns = MAX(process->begun_ns, ns);
	if (process->state >= PROCESS_WANTED ||
	    (process->state == PROCESS_ENDED && ns <= process->ended_ns))
		return false;
	process->state = PROCESS_WANTED;
	return true;
}

void process_table_end(ProcessTable *table, uint32_t ns_tgid, uint64_t ns)
{
	Process *process = process_table_find(table, ns_tgid);

	if (!process || process->state == PROCESS_NOT_WANTED || ns < process->begun_ns)
		return;
	process->state = PROCESS_ENDED;
	process->ended_ns = ns;
}

static bool is_over(const Process *process, uint64_t before_ns)
{
	return process->state < PROCESS_WANTED && process->begun_ns < before_ns &&
	       process->ended_ns < before_ns;
}

void process_table_forget(ProcessTable *table, uint64_t before_ns)
{
	ProcessTable kept = {};

	if (table->list.count < MAX(table->enough, (size_t)ENTRIES_MIN))
		return;
	for (size_t i = 0; i < table->list.count; i++) {
		const Process *process = &table->list.items[i];

		if (is_over(process, before_ns))
			continue;
		map_set(&kept.by_ns_tgid, process->ns_tgid, kept.list.count);
		if (process->tgid && map_get(&table->by_tgid, process->tgid) == i)
			map_set(&kept.by_tgid, process->tgid, kept.list.count);
		*vec_push(&kept.list) = *process;
	}
	kept.enough = 2 * kept.list.count;
	process_table_free(table);
	*table = kept;
}
