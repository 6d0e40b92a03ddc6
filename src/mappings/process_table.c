/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "process_table.h"

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
