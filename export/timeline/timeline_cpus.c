/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline_cpus.c - which task had which CPU: at all times if the whole system was recorded, else
 * while a thread waited for the CPU (cpus_prove()).
 *
 * A switch names the task that had the CPU before it and the task that has it after it. If the
 * first one is not the task that the previous switch put there, a switch between them is missing
 * (or the task changed its tid in between, by exec), and the CPU's user is unknown.
 *
 * A CPU without a switch had the same task, or none, all the time: the one that a tick or a
 * snapshot found there. Else it was idle, if the recorder says that it was idle at some time (META
 * cpus_idle).
 */
#include "timeline_builder_private.h"

#define CPUS_MAX 8192 /* of a kernel for x86-64 */

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

/* A task that had the CPU before the first switch had it since the window began. */
void cpus_seen(TimelineBuilder *builder, uint16_t number, uint32_t tid)
{
	Cpu *cpu = cpu_at(builder->timeline, number);

	if (cpu->runs.count == 0)
		*vec_push(&cpu->runs) = (CpuRun){builder->timeline->start_ns, who(builder, tid)};
}

void cpus_switch(TimelineBuilder *builder, const struct rec_switch *record)
{
	Timeline *timeline = builder->timeline;
	Cpu *cpu = cpu_at(timeline, record->h.cpu);
	uint64_t start_ns;
	CpuRun *last;

	if (record->h.ns > timeline->end_ns) {
		cpus_seen(builder, record->h.cpu, record->prev_tid);
		return;
	}
	/* The record of the window's end may precede the last events before it. */
	if (record->h.ns <= timeline->start_ns) {
		cpu->runs.count = 0;
		*vec_push(&cpu->runs) =
			(CpuRun){timeline->start_ns, who(builder, record->next_tid)};
		return;
	}
	cpus_seen(builder, record->h.cpu, record->prev_tid);
	last = &cpu->runs.items[cpu->runs.count - 1];
	if (last->task != CPU_UNKNOWN && tid_of(timeline, last->task) != record->prev_tid)
		last->task = CPU_UNKNOWN;
	/* A record may come late. */
	start_ns = MAX(record->h.ns, last->start_ns);
	*vec_push(&cpu->runs) = (CpuRun){start_ns, who(builder, record->next_tid)};
}

/* How late a time may be that is computed from a switch's units. */
#define ROUNDED_NS SWITCH_NS(1)

/*
 * If not all switches are recorded, proves that another task, or the idle task, had the CPU up to
 * this switch: since the last switch, or since all switches have records. A recorded thread that
 * the filter excludes has all of its switches, as their sequence numbers show.
 */
static void prove_other(TimelineBuilder *builder, const struct rec_switch *record,
			const LastSwitch *last, ProvenCpu *cpu)
{
	uint64_t for_ns = MIN(SWITCH_NS(record->complete_for), record->h.ns);
	uint64_t since_ns = record->h.ns - for_ns;
	bool follows = last->ns && last->next_tid == record->prev_tid;

	if (record->h.flags & SWITCH_PREV) {
		if (!follows || record->prev_seq != (uint16_t)(last->next_seq + 1))
			return;
		since_ns = last->ns;
	} else if (for_ns == 0) {
		return;
	} else if (last->ns + ROUNDED_NS > since_ns) {
		if (!follows)
			return; /* a switch between them was not traced */
		since_ns = last->ns;
	}
	if (since_ns < record->h.ns)
		*vec_push(&cpu->runs) =
			(ProvenRun){since_ns, record->h.ns, who(builder, record->prev_tid)};
}

static bool is_filtered(const TimelineBuilder *builder)
{
	return builder->filter.processes || builder->filter.threads;
}

void cpus_prove(TimelineBuilder *builder, const struct rec_switch *record)
{
	Timeline *timeline = builder->timeline;
	LastSwitch *last;
	ProvenCpu *cpu;

	while (builder->last_switches.count <= record->h.cpu)
		*vec_push(&builder->last_switches) = (LastSwitch){};
	while (timeline->proven_cpus.count <= record->h.cpu)
		*vec_push(&timeline->proven_cpus) = (ProvenCpu){};
	last = &builder->last_switches.items[record->h.cpu];
	cpu = &timeline->proven_cpus.items[record->h.cpu];
	if (record->h.ns < last->ns)
		return; /* the record came late */
	if (!timeline->whole_system && (!(record->h.flags & SWITCH_PREV) || is_filtered(builder)))
		prove_other(builder, record, last, cpu);
	if (last->ns && record->h.ns > last->ns && (record->interrupts_ns || record->stolen_ns))
		*vec_push(&cpu->taken) = (TakenTime){last->ns, record->h.ns, record->interrupts_ns,
						     record->stolen_ns};
	*last = (LastSwitch){record->h.ns, record->next_tid, record->next_seq};
}

/* Returns the first run that ends after ns. */
static size_t run_at(const Timeline *timeline, const Cpu *cpu, uint64_t ns)
{
	return partition_point(middle, cpu->runs.count, cpu_run_end(timeline, cpu, middle) <= ns);
}

/*
 * Within the span of a loss there may have been switches that ended with the same task as before.
 */
static void mark_uncertain(Timeline *timeline, const LossSpan *loss)
{
	Cpu *cpu = &timeline->cpus.items[loss->cpu];

	for (size_t i = run_at(timeline, cpu, loss->from_ns);
	     i < cpu->runs.count && cpu->runs.items[i].start_ns <= loss->to_ns; i++)
		cpu->runs.items[i].task = CPU_UNKNOWN;
}

/* Drops runs that lie within a loss; both lists are sorted by time. */
static void drop_unproven(ProvenCpu *cpu, const LossSpan *losses, size_t count)
{
	size_t kept = 0, at = 0;

	for (size_t i = 0; i < cpu->runs.count; i++) {
		const ProvenRun *run = &cpu->runs.items[i];

		while (at < count && losses[at].to_ns < run->start_ns)
			at++;
		if (at == count || losses[at].from_ns > run->end_ns)
			cpu->runs.items[kept++] = *run;
	}
	cpu->runs.count = kept;
	kept = at = 0;
	for (size_t i = 0; i < cpu->taken.count; i++) {
		const TakenTime *taken = &cpu->taken.items[i];

		while (at < count && losses[at].to_ns < taken->start_ns)
			at++;
		if (at == count || losses[at].from_ns > taken->end_ns)
			cpu->taken.items[kept++] = *taken;
	}
	cpu->taken.count = kept;
}

static int compare_losses(const void *a, const void *b)
{
	const LossSpan *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Merges the overlapping losses of one CPU; returns how many are left. */
static size_t merge_losses(LossSpan *losses, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		LossSpan *last = kept ? &losses[kept - 1] : NULL;

		if (last && last->cpu == losses[i].cpu && losses[i].from_ns <= last->to_ns)
			last->to_ns = MAX(last->to_ns, losses[i].to_ns);
		else
			losses[kept++] = losses[i];
	}
	return kept;
}

/* A program that the kernel did not run has no CPU, and its time span is the whole recording. */
static bool is_of_cpu(const LossSpan *loss)
{
	return loss->kind == REC_SWITCH && loss->cause != LOSS_RECURSION;
}

/* Only runs of other tasks: the chains of threads already take losses into account. */
static void drop_all_unproven(Timeline *timeline)
{
	_cleanup_free_ LossSpan *losses = xmalloc((timeline->losses.count + 1) * sizeof(*losses));
	size_t count = 0, next;

	for (size_t i = 0; i < timeline->losses.count; i++)
		if (is_of_cpu(&timeline->losses.items[i]))
			losses[count++] = timeline->losses.items[i];
	if (count > 1)
		qsort(losses, count, sizeof(*losses), compare_losses);
	count = merge_losses(losses, count);
	for (size_t i = 0; i < count; i = next) {
		for (next = i; next < count && losses[next].cpu == losses[i].cpu;)
			next++;
		if (losses[i].cpu < timeline->proven_cpus.count)
			drop_unproven(&timeline->proven_cpus.items[losses[i].cpu], &losses[i],
				      next - i);
	}
}

/* Drops what was recorded outside of the window, before the window was known. */
static void cut(const Timeline *timeline, Cpu *cpu)
{
	size_t before = 0;

	if (cpu->runs.count == 0)
		return;
	while (before + 1 < cpu->runs.count &&
	       cpu->runs.items[before + 1].start_ns <= timeline->start_ns)
		before++;
	cpu->runs.count -= before;
	memmove(cpu->runs.items, cpu->runs.items + before,
		cpu->runs.count * sizeof(*cpu->runs.items));
	cpu->runs.items[0].start_ns = MAX(cpu->runs.items[0].start_ns, timeline->start_ns);
	while (cpu->runs.count > 0 &&
	       cpu->runs.items[cpu->runs.count - 1].start_ns >= timeline->end_ns)
		cpu->runs.count--;
}

/* Gives the whole window of CPUs without a run, "0-3,8", to one task. */
static void fill_unused_cpus(Timeline *timeline, const char *list, uint32_t task)
{
	_cleanup_free_ char *copy = xstrdup(list ? list : "");
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));) {
		char *dash = strchr(word, '-');
		uint64_t first, last;

		if (dash)
			*dash++ = '\0';
		if (parse_u64(word, &first) || parse_u64(dash ? dash : word, &last))
			continue;
		for (uint64_t i = first; i <= last && i < CPUS_MAX; i++) {
			Cpu *cpu = cpu_at(timeline, i);

			if (cpu->runs.count == 0)
				*vec_push(&cpu->runs) = (CpuRun){timeline->start_ns, task};
		}
	}
}

void cpus_finish(Timeline *timeline)
{
	for (size_t i = 0; i < timeline->cpus.count; i++)
		cut(timeline, &timeline->cpus.items[i]);
	if (timeline->whole_system) {
		fill_unused_cpus(timeline, timeline_meta(timeline, "cpus_idle"), CPU_IDLE);
		fill_unused_cpus(timeline, timeline_meta(timeline, "cpus_online"), CPU_UNKNOWN);
	}
	for (size_t i = 0; i < timeline->losses.count; i++)
		if (is_of_cpu(&timeline->losses.items[i]) &&
		    timeline->losses.items[i].cpu < timeline->cpus.count)
			mark_uncertain(timeline, &timeline->losses.items[i]);
	drop_all_unproven(timeline);
}
