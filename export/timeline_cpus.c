/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline_cpus.c - who had which CPU, when every switch was recorded.
 *
 * A switch tells who had the CPU before it and who has it from then on. If that is not whom the
 * switch before it had left there, one between them is missing (or the task has taken another
 * number meanwhile, by exec), and nobody knows who had it.
 */
#include "timeline_private.h"

static Cpu *cpu_at(Timeline *timeline, uint16_t number)
{
	while (timeline->cpus.count <= number)
		*vec_push(&timeline->cpus) = (Cpu){};
	return &timeline->cpus.items[number];
}

static uint32_t who(TimelineBuilder *builder, uint32_t tid)
{
	return tid ? tasks_reference(builder, tid) : CPU_IDLE;
}

static uint32_t tid_of(const Timeline *timeline, uint32_t task)
{
	return task == CPU_IDLE ? 0 : timeline->tasks.items[task].tid;
}

void cpus_switch(TimelineBuilder *builder, const struct rec_switch *record)
{
	Timeline *timeline = builder->timeline;
	Cpu *cpu = cpu_at(timeline, record->h.cpu);
	CpuRun *last;

	if (record->h.ns > timeline->end_ns)
		return;
	/* The window is told before the last events that came before it. */
	if (record->h.ns <= timeline->start_ns) {
		cpu->runs.count = 0;
		*vec_push(&cpu->runs) =
			(CpuRun){timeline->start_ns, who(builder, record->next_tid)};
		return;
	}
	/* The first switch ends what was there since the window began. */
	if (cpu->runs.count == 0)
		*vec_push(&cpu->runs) =
			(CpuRun){timeline->start_ns, who(builder, record->prev_tid)};
	last = &cpu->runs.items[cpu->runs.count - 1];
	if (last->task != CPU_UNKNOWN && tid_of(timeline, last->task) != record->prev_tid)
		last->task = CPU_UNKNOWN;
	*vec_push(&cpu->runs) = (CpuRun){record->h.ns, who(builder, record->next_tid)};
}

/* The first run that ends after ns. */
static size_t run_at(const Timeline *timeline, const Cpu *cpu, uint64_t ns)
{
	size_t low = 0, high = cpu->runs.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cpu_run_end(timeline, cpu, middle) <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Within the span of a loss there may have been switches that came back to where they began. */
static void doubt(Timeline *timeline, const LossSpan *loss)
{
	Cpu *cpu = &timeline->cpus.items[loss->cpu];

	for (size_t i = run_at(timeline, cpu, loss->from_ns);
	     i < cpu->runs.count && cpu->runs.items[i].start_ns <= loss->to_ns; i++)
		cpu->runs.items[i].task = CPU_UNKNOWN;
}

/* What the kernel left out has no CPU, and no more of a time than the whole recording. */
static bool is_of_cpu(const Timeline *timeline, const LossSpan *loss)
{
	return loss->kind == REC_SWITCH && loss->cause != LOSS_RECURSION &&
	       loss->cpu < timeline->cpus.count;
}

/* What was recorded behind the window's end, before that was known. */
static void cut(Timeline *timeline, Cpu *cpu)
{
	while (cpu->runs.count > 0 &&
	       cpu->runs.items[cpu->runs.count - 1].start_ns >= timeline->end_ns)
		cpu->runs.count--;
}

void cpus_finish(Timeline *timeline)
{
	for (size_t i = 0; i < timeline->cpus.count; i++)
		cut(timeline, &timeline->cpus.items[i]);
	for (size_t i = 0; i < timeline->losses.count; i++)
		if (is_of_cpu(timeline, &timeline->losses.items[i]))
			doubt(timeline, &timeline->losses.items[i]);
}
