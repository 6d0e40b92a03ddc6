/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_users.h"
#include "text.h"
#include "wait_fields.h"

#define PARTS_IN_TEXT 4
#define SLOTS_FIRST   16 /* a power of two */

/* ---- the index ----------------------------------------------------------------------------- */

/* Returns the end of the ascending runs that begin at index first. */
static size_t ascending_end(const ProvenRun *runs, size_t first, size_t count)
{
	size_t end = first + 1;

	while (end < count && runs[end - 1].start_ns <= runs[end].start_ns)
		end++;
	return end;
}

/* Appends the runs of a and b in order; those of a first, if they begin at the same time. */
static void merge_runs(ProvenRuns *to, const ProvenRun *a, size_t a_count, const ProvenRun *b,
		       size_t b_count)
{
	size_t i = 0, j = 0;

	while (i < a_count && j < b_count)
		*vec_push(to) = b[j].start_ns < a[i].start_ns ? b[j++] : a[i++];
	vec_append(to, a + i, a_count - i);
	vec_append(to, b + j, b_count - j);
}

/*
 * Merges neighbours among the ascending parts, of which each thread has one, until there is one.
 * Arrays are read and written from front to back, as suits those that do not fit into memory
 * (spill.h); qsort(3) copies all.
 */
static void sort_runs(ProvenCpu *cpu)
{
	size_t count = cpu->runs.count;
	ProvenRuns sorted = {};

	while (count > 0 && ascending_end(cpu->runs.items, 0, count) < count) {
		const ProvenRun *runs = cpu->runs.items;

		vec_reserve(&sorted, count);
		for (size_t first = 0; first < count;) {
			size_t middle = ascending_end(runs, first, count);
			size_t end = middle < count ? ascending_end(runs, middle, count) : middle;

			merge_runs(&sorted, runs + first, middle - first, runs + middle,
				   end - middle);
			first = end;
		}
		vec_free(&cpu->runs);
		cpu->runs = sorted;
		sorted = (ProvenRuns){};
	}
}

/* Removes times that two threads claim, because they prove neither, and empty runs. */
static void part_overlaps(ProvenCpu *cpu)
{
	uint64_t claimed_ns = 0;
	size_t count = 0;

	for (size_t i = 0; i < cpu->runs.count; i++) {
		ProvenRun run = cpu->runs.items[i];
		ProvenRun *last = count ? &cpu->runs.items[count - 1] : NULL;

		/* Only what changes is written; see spill.h. */
		if (last && last->end_ns > MAX(last->start_ns, run.start_ns))
			last->end_ns = MAX(last->start_ns, run.start_ns);
		run.start_ns = MAX(run.start_ns, claimed_ns);
		claimed_ns = MAX(claimed_ns, run.end_ns);
		if (run.start_ns >= run.end_ns)
			continue;
		if (count != i || run.start_ns != cpu->runs.items[i].start_ns)
			cpu->runs.items[count] = run;
		count++;
	}
	cpu->runs.count = count;
}

static void add_proven_run(Timeline *timeline, size_t cpu, uint64_t start_ns, uint64_t end_ns,
			   uint32_t task)
{
	/* Late records are out of order. */
	if (start_ns >= end_ns)
		return;
	while (timeline->proven_cpus.count <= cpu)
		*vec_push(&timeline->proven_cpus) = (ProvenCpu){};
	*vec_push(&timeline->proven_cpus.items[cpu].runs) = (ProvenRun){start_ns, end_ns, task};
}

static void drop_threads(const Timeline *timeline, ProvenCpu *cpu)
{
	size_t kept = 0;

	for (size_t i = 0; i < cpu->runs.count; i++) {
		uint32_t task = cpu->runs.items[i].task;

		if (task < timeline->tasks.count &&
		    timeline->tasks.items[task].thread != THREAD_NONE)
			continue;
		if (kept != i)
			cpu->runs.items[kept] = cpu->runs.items[i];
		kept++;
	}
	cpu->runs.count = kept;
}

/*
 * Adds, without the switches of all CPUs, the times in which recorded threads ran, and those in
 * which other tasks provably ran.
 */
static void index_threads(Timeline *timeline)
{
	for (size_t c = 0; c < timeline->proven_cpus.count; c++)
		drop_threads(timeline, &timeline->proven_cpus.items[c]);
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *interval = &thread->intervals.items[i];

			if (interval->state == STATE_RUNNING)
				add_proven_run(timeline, interval->cpu, interval->start_ns,
					       interval_end(thread, i), thread->task);
		}
	}
}

/* Adds what the thread's chain proves of a run on the CPU. */
static void add_proven(Timeline *timeline, const Thread *thread, size_t cpu, uint64_t from_ns,
		       uint64_t to_ns)
{
	size_t i = partition_point(middle, thread->intervals.count,
				   interval_end(thread, middle) <= from_ns);

	for (; i < thread->intervals.count && thread->intervals.items[i].start_ns < to_ns; i++) {
		const Interval *interval = &thread->intervals.items[i];

		if (interval->state == STATE_RUNNING && interval->cpu == cpu)
			add_proven_run(timeline, cpu, MAX(interval->start_ns, from_ns),
				       MIN(interval_end(thread, i), to_ns), thread->task);
	}
}

static void index_cpu(Timeline *timeline, size_t number)
{
	const Cpu *cpu = &timeline->cpus.items[number];

	for (size_t i = 0; i < cpu->runs.count; i++) {
		uint32_t task = cpu->runs.items[i].task, thread = THREAD_NONE;
		uint64_t start_ns = cpu->runs.items[i].start_ns;
		uint64_t end_ns = cpu_run_end(timeline, cpu, i);

		if (task == CPU_UNKNOWN)
			continue;
		if (task != CPU_IDLE)
			thread = timeline->tasks.items[task].thread;
		if (thread == THREAD_NONE)
			add_proven_run(timeline, number, start_ns, end_ns, task);
		else
			add_proven(timeline, &timeline->threads.items[thread], number, start_ns,
				   end_ns);
	}
}

void cpu_users_index(Timeline *timeline)
{
	if (timeline->cpus.count == 0)
		index_threads(timeline);
	for (size_t c = 0; c < timeline->cpus.count; c++)
		index_cpu(timeline, c);
	for (size_t c = 0; c < timeline->proven_cpus.count; c++) {
		ProvenCpu *cpu = &timeline->proven_cpus.items[c];

		sort_runs(cpu);
		part_overlaps(cpu);
	}
}

/* ---- parts --------------------------------------------------------------------------------- */

void cpu_parts_free(CpuParts *parts)
{
	vec_free(parts);
	free(parts->slots);
	*parts = (CpuParts){};
}

/* Returns the slot of the task, or the free slot for it. */
static struct cpu_part_slot *slot_of(const CpuParts *parts, uint32_t task)
{
	for (size_t at = hash_mix(task, 0);; at++) {
		struct cpu_part_slot *slot = &parts->slots[at & parts->mask];

		if (slot->division != parts->division || parts->items[slot->part].task == task)
			return slot;
	}
}

static void grow_slots(CpuParts *parts)
{
	size_t count = parts->mask ? 2 * (parts->mask + 1) : SLOTS_FIRST;

	free(parts->slots);
	parts->slots = xcalloc(count, sizeof(*parts->slots));
	parts->mask = count - 1;
	for (size_t i = 0; i < parts->count; i++)
		*slot_of(parts, parts->items[i].task) = (struct cpu_part_slot){parts->division, i};
}

static CpuPart *part_of(CpuParts *parts, uint32_t task)
{
	struct cpu_part_slot *slot;

	if (2 * parts->count >= parts->mask)
		grow_slots(parts);
	slot = slot_of(parts, task);
	if (slot->division != parts->division) {
		*slot = (struct cpu_part_slot){parts->division, parts->count};
		*vec_push(parts) = (CpuPart){.task = task};
	}
	return &parts->items[slot->part];
}

static int compare_parts(const void *a, const void *b)
{
	const CpuPart *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

void cpu_parts_sort(CpuParts *parts)
{
	if (parts->count > 1)
		qsort(parts->items, parts->count, sizeof(CpuPart), compare_parts);
}

/* ---- the division -------------------------------------------------------------------------- */

typedef struct Division {
	const Timeline *timeline;
	CpuParts *parts;
	uint64_t seen_ns;
} Division;

static void add_part(Division *division, uint32_t task, uint64_t ns)
{
	if (ns == 0)
		return;
	part_of(division->parts, task)->ns += ns;
	division->seen_ns += ns;
}

/*
 * Returns the time taken between the switches around the run, which may have begun before it, or
 * NULL.
 */
static const TakenTime *taken_of(const ProvenCpu *cpu, const ProvenRun *run)
{
	size_t i = partition_point(middle, cpu->taken.count,
				   cpu->taken.items[middle].end_ns < run->end_ns);

	return i < cpu->taken.count && cpu->taken.items[i].start_ns <= run->start_ns
		       ? &cpu->taken.items[i]
		       : NULL;
}

/* Adds `ns` of the wait to the task, without what was taken of the run that contains them. */
static void add_run(Division *division, const TakenTime *taken, uint32_t task, uint64_t ns)
{
	uint64_t outside_ns = taken->end_ns - taken->start_ns - ns;
	uint64_t interrupts_ns = taken->interrupts_ns, stolen_ns = taken->stolen_ns;
	uint64_t most_ns = MIN(interrupts_ns + stolen_ns, ns);

	add_part(division, task, ns - most_ns);
	/* The rest of most_ns gets no part, so it is "not seen". */
	interrupts_ns = MIN(interrupts_ns - MIN(interrupts_ns, outside_ns), most_ns);
	stolen_ns = MIN(stolen_ns - MIN(stolen_ns, outside_ns), most_ns - interrupts_ns);
	add_part(division, CPU_INTERRUPTS, interrupts_ns);
	add_part(division, CPU_STOLEN, stolen_ns);
}

/* Divides [start_ns, end_ns) of the wait, in which the thread was in the queue of that CPU. */
static void add_runs(Division *division, uint16_t number, uint64_t start_ns, uint64_t end_ns)
{
	const ProvenCpu *cpu;
	size_t i;

	if (number >= division->timeline->proven_cpus.count)
		return;
	cpu = &division->timeline->proven_cpus.items[number];
	i = partition_point(middle, cpu->runs.count, cpu->runs.items[middle].end_ns <= start_ns);
	for (; i < cpu->runs.count && cpu->runs.items[i].start_ns < end_ns; i++) {
		const ProvenRun *run = &cpu->runs.items[i];
		const TakenTime *taken = taken_of(cpu, run);
		uint64_t ns = MIN(run->end_ns, end_ns) - MAX(run->start_ns, start_ns);

		if (taken && run->task != CPU_IDLE)
			add_run(division, taken, run->task, ns);
		else
			add_part(division, run->task, ns);
	}
}

/* Divides a wait in which the thread was moved to another CPU. */
static void add_moved(Division *division, const Thread *thread, size_t i, uint64_t start_ns,
		      uint64_t end_ns)
{
	const Interval *wait = &thread->intervals.items[i];
	const QueueMove *move = thread_queue_move(thread, i);
	uint64_t moved_ns = move ? MIN(MAX(move->ns, start_ns), end_ns) : end_ns;

	if (move && !move->again && wait->reason != REASON_WOKEN)
		add_runs(division, wait->cpu, start_ns, moved_ns);
	else
		add_part(division, CPU_MIGRATED, moved_ns - start_ns);
	if (moved_ns < end_ns)
		add_runs(division, move->cpu, moved_ns, end_ns);
}

void cpu_users_divide(const Timeline *timeline, const Thread *thread, size_t i, CpuParts *parts)
{
	const Interval *wait = &thread->intervals.items[i];
	uint64_t start_ns = wait->start_ns, end_ns = interval_end(thread, i);
	Division division = {.timeline = timeline, .parts = parts};

	parts->count = 0;
	parts->division++;
	if (wait->state != STATE_RUNNABLE || wait_reason(wait) == REASON_THROTTLED)
		return;
	if (wait->flags & INTERVAL_MIGRATED || thread_queue_move(thread, i))
		add_moved(&division, thread, i, start_ns, end_ns);
	else
		add_runs(&division, wait->cpu, start_ns, end_ns);
	add_part(&division, CPU_UNKNOWN, end_ns - start_ns - division.seen_ns);
	/*
	 * The switch at one end of the wait names a task that had the CPU, even if only for an
	 * instant.
	 */
	if (wait->cpu_user != THREAD_NONE)
		part_of(parts, wait->cpu_user);
}

/* ---- in words ------------------------------------------------------------------------------ */

const char *cpu_user_name(const Timeline *timeline, uint32_t task, char name[COMM_LEN + 1])
{
	switch (task) {
	case CPU_IDLE:
		return "CPU idle";
	case CPU_UNKNOWN:
		return "not seen";
	case CPU_MIGRATED:
		return "migrated";
	case CPU_INTERRUPTS:
		return "interrupts";
	case CPU_STOLEN:
		return "the hypervisor";
	default:
		return task_name(timeline, task, name);
	}
}

/* Returns text with part appended, after a comma if it is not the first; frees both. */
static char *append(char *text, char *part)
{
	char *longer = xasprintf("%s%s%s", text, *text ? ", " : "", part);

	free(text);
	free(part);
	return longer;
}

char *cpu_users_text(const Timeline *timeline, const CpuParts *parts)
{
	char *text = xstrdup("");
	uint64_t others_ns = 0;
	size_t others = 0;

	for (size_t i = 0; i < parts->count; i++) {
		const CpuPart *part = &parts->items[i];
		char comm[COMM_LEN + 1];
		const char *name = cpu_user_name(timeline, part->task, comm);

		if (part->ns > 0 && i < PARTS_IN_TEXT) {
			text = append(text, xasprintf("%s %s", name, DURATION(part->ns)));
		} else if (part->ns > 0) {
			others++;
			others_ns += part->ns;
		}
	}
	if (others > 0) {
		_cleanup_free_ char *what = text_others(others, /* files= */ false);

		text = append(text, xasprintf("%s %s", what, DURATION(others_ns)));
	}
	for (size_t i = 0; i < parts->count; i++) {
		char comm[COMM_LEN + 1];

		if (parts->items[i].ns == 0)
			text = append(text, xasprintf("%s for an unknown time",
						      cpu_user_name(timeline, parts->items[i].task,
								    comm)));
	}
	return text;
}
