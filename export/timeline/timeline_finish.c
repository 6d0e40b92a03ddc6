/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From targets to the timeline's threads and processes: where each ends, which of them lie in the
 * window, and which thread belongs to which process. And the losses as they are shown.
 */
#include "timeline_builder_private.h"
#include <string.h>

#define LOSSES_MAX   500
#define FIRST_GAP_NS (50 * NSEC_PER_MSEC) /* two drains of the recorder */
#define LAST_GAP_NS  (UINT64_MAX / 4)

static const BuildThread *command_target(const TimelineBuilder *builder)
{
	uint64_t tid;

	if (!timeline_meta_number(builder->timeline, "command_tid", &tid))
		return NULL;
	for (size_t i = 0; i < builder->targets.count; i++)
		if (builder->targets.items[i]->thread.ns_tid == tid)
			return builder->targets.items[i];
	return NULL;
}

/* The requested window is relative to the recorded one's start. */
static void move_start(TimelineBuilder *builder, uint64_t ns)
{
	Timeline *timeline = builder->timeline;

	timeline->realtime_start_ns += ns;
	timeline->start_ns += ns;
	if (builder->filter.to_ns)
		timeline->end_ns = MIN(timeline->end_ns + ns, builder->recorded_end_ns);
	timeline->end_ns = MAX(timeline->end_ns, timeline->start_ns);
}

/*
 * The command waits at a pipe until the recorder releases it when the window begins. That is not a
 * wait of the program, so the window begins at that wakeup.
 */
static void skip_launch(TimelineBuilder *builder)
{
	Timeline *timeline = builder->timeline;
	const BuildThread *target = command_target(builder);
	uint64_t recorder, recorded_ns = timeline->start_ns - builder->filter.from_ns;
	size_t i = 1;

	if (!target || !timeline_meta_number(timeline, "recorder_pid", &recorder))
		return;
	while (i < target->thread.intervals.count &&
	       target->thread.intervals.items[i].start_ns <= recorded_ns)
		i++;
	if (i == target->thread.intervals.count)
		return;

	const Interval *wait = &target->thread.intervals.items[i - 1], *woken = wait + 1;

	if (wait->state == STATE_BLOCKED && wait->start_ns <= recorded_ns &&
	    woken->flags & MARK_WAKING && woken->start_ns < timeline->end_ns &&
	    wait->waker != THREAD_NONE && timeline->tasks.items[wait->waker].ns_tgid == recorder)
		move_start(builder, woken->start_ns - recorded_ns);
}

static void set_window(TimelineBuilder *builder)
{
	Timeline *timeline = builder->timeline;

	if (!builder->start_known && builder->first_ns != NS_NEVER)
		timeline->start_ns = builder->first_ns;
	if (!builder->end_known)
		timeline->end_ns = MIN(timeline->end_ns, builder->last_ns);
	timeline->end_ns = MAX(timeline->end_ns, timeline->start_ns);
	skip_launch(builder);
}

/* ---- ends ------------------------------------------------------------------------ */

/*
 * A process ends with the last of its threads that has a recorded end. One that exits as the window
 * closes has not ended yet.
 */
static void set_process_limit(const TimelineBuilder *builder, BuildProcess *process)
{
	uint64_t limit_ns = process->group_dead_ns;
	const BuildThread *last;

	if (!process->group_dead)
		return;
	last = builder->targets.items[process->last_target];
	if (!last->ended && !resolve_final_lost(builder, last))
		return;
	for (size_t i = 0; i < process->targets.count; i++) {
		const BuildThread *target = builder->targets.items[process->targets.items[i]];

		if (target->ended)
			limit_ns = MAX(limit_ns, target->end_ns);
	}
	process->limit_ns = MIN(process->limit_ns, limit_ns);
}

static bool finish_target(TimelineBuilder *builder, BuildThread *target)
{
	uint64_t end_ns = target->limit_ns;
	bool gone;

	if (target->ended)
		return resolve_target(builder, target, target->end_ns, false);
	if (target->process != INDEX_NONE)
		end_ns = MIN(end_ns, builder->processes.items[target->process].limit_ns);
	gone = end_ns != NS_NEVER || resolve_final_lost(builder, target);
	end_ns = MIN(end_ns, builder->timeline->end_ns);
	return resolve_target(builder, target, MAX(end_ns, chain_last(target)->start_ns), gone);
}

/* ---- the kernel's accounts ---------------------------------------------------------- */

static uint64_t difference(uint64_t final, uint64_t base)
{
	return final > base ? final - base : 0;
}

/* The same, without the time between the readings that is outside the window. */
static uint64_t inside(uint64_t final, uint64_t base, uint64_t outside)
{
	return difference(difference(final, base), outside);
}

static void set_account(const TimelineBuilder *builder, BuildThread *target)
{
	const KernelAccount *base = &target->base, *final = &target->final;
	int64_t clock_ahead;
	/* A difference that no clock can reach is a damaged capture's. */
	bool is_clock =
		!__builtin_sub_overflow(final->clock_ahead, base->clock_ahead, &clock_ahead);

	/* They cover the whole recording. */
	if (builder->timeline->cut)
		return;
	if (!target->final_known || !(target->base_known || target->thread.born_in_window))
		return;
	target->thread.kernel = (KernelAccount){
		.known = true,
		.sum_exec_runtime = inside(final->sum_exec_runtime, base->sum_exec_runtime,
					   target->outside_running),
		.run_delay = final->run_delay == UINT64_MAX
				     ? UINT64_MAX
				     : inside(final->run_delay, base->run_delay,
					      target->outside_runnable),
		.utime = difference(final->utime, base->utime),
		.stime = difference(final->stime, base->stime),
		.nvcsw = inside(final->nvcsw, base->nvcsw,
				target->outside_at_final.voluntary -
					target->outside_at_base.voluntary),
		.nivcsw = inside(final->nivcsw, base->nivcsw,
				 target->outside_at_final.involuntary -
					 target->outside_at_base.involuntary),
		.min_flt = difference(final->min_flt, base->min_flt),
		.maj_flt = difference(final->maj_flt, base->maj_flt),
		.read_bytes = difference(final->read_bytes, base->read_bytes),
		.write_bytes = difference(final->write_bytes, base->write_bytes),
		.clock_known = is_clock && final->clock_known &&
			       (base->clock_known || !target->base_known),
		.clock_ahead = is_clock ? clock_ahead : 0,
	};
}

/* ---- putting it together ------------------------------------------------------------- */

/* A thread that no record describes is in a process of its own. */
static void adopt_undescribed(TimelineBuilder *builder, BuildThread *target)
{
	if (!target->thread.name)
		target->thread.name = xasprintf("TID %u", target->thread.tid);
	if (target->process != INDEX_NONE)
		return;
	target->process = builder->processes.count;
	*vec_push(&builder->processes) = (BuildProcess){
		.process = {.name = xstrdup("unknown")},
		.parent = INDEX_NONE,
		.limit_ns = NS_NEVER,
	};
	*vec_push(&builder->processes.items[target->process].targets) = target->index;
}

static void target_free(BuildThread *target)
{
	free(target->thread.name);
	vec_free(&target->thread.intervals);
	vec_free(&target->thread.ticks);
	vec_free(&target->thread.faults);
	vec_free(&target->thread.object_waits);
	vec_free(&target->thread.waker_stacks);
	vec_free(&target->thread.lock_waits);
	vec_free(&target->thread.queue_moves);
	vec_free(&target->places);
	free(target);
}

/* Moves the threads that were alive in the window. ret_numbers: target -> thread. */
static void move_threads(TimelineBuilder *builder, uint32_t *ret_numbers)
{
	Timeline *timeline = builder->timeline;

	for (size_t i = 0; i < builder->targets.count; i++) {
		BuildThread *target = builder->targets.items[i];

		ret_numbers[i] = THREAD_NONE;
		if (!finish_target(builder, target) || !filter_includes(builder, target))
			continue;
		adopt_undescribed(builder, target);
		set_account(builder, target);
		faults_finish(&target->thread);
		ret_numbers[i] = timeline->threads.count;
		*vec_push(&timeline->threads) = target->thread;
		target->thread.name = NULL;
		target->thread.intervals.items = NULL;
		target->thread.ticks.items = NULL;
		target->thread.faults.items = NULL;
		target->thread.object_waits.items = NULL;
		target->thread.waker_stacks.items = NULL;
		target->thread.lock_waits.items = NULL;
		target->thread.queue_moves.items = NULL;
	}
	for (size_t i = 0; i < timeline->tasks.count; i++) {
		Task *task = &timeline->tasks.items[i];

		if (task->thread != THREAD_NONE)
			task->thread = ret_numbers[task->thread];
	}
}

/* Sets the targets of a process that are threads of the timeline; the leader comes first. */
static void list_threads(TimelineBuilder *builder, BuildProcess *built, const uint32_t *numbers)
{
	Timeline *timeline = builder->timeline;
	Process *process = &built->process;

	for (size_t i = 0; i < built->targets.count; i++) {
		uint32_t number = numbers[built->targets.items[i]];
		uint32_t *slot;

		if (number == THREAD_NONE)
			continue;
		slot = vec_push(&process->threads);
		*slot = number;
		if (timeline->threads.items[number].is_main) {
			*slot = process->threads.items[0];
			process->threads.items[0] = number;
		}
	}
}

/* Threads of the process that are not in the timeline may live on. */
static bool is_partial(const TimelineBuilder *builder)
{
	return builder->filter.threads || timeline_meta(builder->timeline, "attached_tids");
}

/*
 * The name of a process whose leader is not recorded: that of the leader as a non-target, or of
 * another thread.
 */
static const char *leader_name(const TimelineBuilder *builder, const Process *process)
{
	const Timeline *timeline = builder->timeline;
	uint32_t task = map_get(&builder->task_of_tid, process->tgid);

	if (task != MAP_NONE && timeline->tasks.items[task].comm[0])
		return timeline->tasks.items[task].comm;
	return timeline->threads.items[process->threads.items[0]].name;
}

static void describe_process(const TimelineBuilder *builder, BuildProcess *built)
{
	const Timeline *timeline = builder->timeline;
	Process *process = &built->process;
	bool all_exited = !is_partial(builder) || built->group_dead;

	process->start_ns = NS_NEVER;
	for (size_t i = 0; i < process->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[process->threads.items[i]];

		process->start_ns = MIN(process->start_ns, thread->start_ns);
		process->end_ns = MAX(process->end_ns, thread->end_ns);
		process->born_in_window |= thread->is_main && thread->born_in_window;
		all_exited &= thread->exited_in_window;
	}
	process->exited_in_window = all_exited;
	process->exit_code = built->exit_code;
	if (!process->name)
		process->name = xstrdup(leader_name(builder, process));
	process->label = process_make_label(process);
}

static uint32_t parent_number(const TimelineBuilder *builder, const BuildProcess *process,
			      const uint32_t *numbers)
{
	uint32_t parent = process->parent;

	/* Its description may have come later. */
	if (parent == INDEX_NONE)
		parent = map_get(&builder->process_of_tgid, process->parent_tgid);
	if (parent == INDEX_NONE || &builder->processes.items[parent] == process)
		return THREAD_NONE;
	return numbers[parent];
}

static void move_processes(TimelineBuilder *builder, const uint32_t *thread_numbers)
{
	Timeline *timeline = builder->timeline;
	size_t count = builder->processes.count;
	_cleanup_free_ uint32_t *numbers = xmalloc(count * sizeof(*numbers));

	for (size_t i = 0; i < count; i++) {
		BuildProcess *built = &builder->processes.items[i];

		list_threads(builder, built, thread_numbers);
		numbers[i] = THREAD_NONE;
		if (!built->process.threads.count) {
			free(built->process.name);
			free(built->process.path);
			free((char *)built->process.args.text);
			continue;
		}
		describe_process(builder, built);
		numbers[i] = timeline->processes.count;
		*vec_push(&timeline->processes) = built->process;
	}
	for (size_t i = 0; i < count; i++) {
		BuildProcess *built = &builder->processes.items[i];

		if (numbers[i] != THREAD_NONE) {
			Process *process = &timeline->processes.items[numbers[i]];

			process->parent = parent_number(builder, built, numbers);
			for (size_t j = 0; j < process->threads.count; j++)
				timeline->threads.items[process->threads.items[j]].process =
					numbers[i];
		}
		vec_free(&built->targets);
	}
}

static void set_command_thread(Timeline *timeline)
{
	uint64_t ns_tid;

	if (!timeline_meta_number(timeline, "command_tid", &ns_tid))
		return;
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		if (thread->ns_tid == ns_tid) {
			/* exec may have made another thread the main one. */
			timeline->command_thread =
				timeline->processes.items[thread->process].threads.items[0];
			return;
		}
	}
}

/*
 * The recorder reports a loss for each drain, CPU, kind and cause: a machine that is overloaded for
 * a minute makes hundreds of thousands, which would leave no room for other markers. So losses of
 * one kind, cause and CPU that are close to each other are merged. The gap grows until at most
 * LOSSES_MAX are left. Unknown intervals are resolved before this, by each single loss.
 */
static int by_origin(const LossSpan *x, const LossSpan *y)
{
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int compare_origins(const void *a, const void *b)
{
	const LossSpan *x = a, *y = b;
	int order = by_origin(x, y);

	return order ? order : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int compare_times(const void *a, const void *b)
{
	const LossSpan *x = a, *y = b;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return compare_origins(a, b);
}

/* Merges spans that are no farther apart than the gap; they are sorted by origin and time. */
static size_t merge(LossSpan *spans, size_t count, uint64_t gap_ns)
{
	size_t kept = 0;

	for (size_t i = 1; i < count; i++) {
		LossSpan *last = &spans[kept];

		if (by_origin(last, &spans[i]) || spans[i].from_ns > last->to_ns + gap_ns) {
			spans[++kept] = spans[i];
			continue;
		}
		last->count += spans[i].count;
		last->to_ns = MAX(last->to_ns, spans[i].to_ns);
	}
	return count ? kept + 1 : 0;
}

void losses_finish(Timeline *timeline)
{
	LossSpan *spans = timeline->losses.items;
	size_t count = timeline->losses.count;

	if (count <= LOSSES_MAX)
		return;
	qsort(spans, count, sizeof(*spans), compare_origins);
	for (uint64_t gap_ns = FIRST_GAP_NS; count > LOSSES_MAX && gap_ns < LAST_GAP_NS;
	     gap_ns *= 2)
		count = merge(spans, count, gap_ns);
	qsort(spans, count, sizeof(*spans), compare_times);
	timeline->losses.count = count;
}

/*
 * Adds a note about what is unknown about wakers, because of the kernel or of the wallprof version
 * that made the recording.
 */
static void note_unknown_wakers(Timeline *timeline)
{
	const char *version = timeline_meta(timeline, "version");
	const char *context = timeline_meta(timeline, "waking-context");
	char *note = NULL;

	if (version && !context)
		note = xasprintf(
			"wallprof %s, which made this recording, reports the thread that a soft "
			"interrupt interrupted as the waker; on a busy machine wakers and the "
			"critical path may be wrong",
			version);
	else if (context && !strcmp(context, "unknown"))
		note = xstrdup("this kernel does not distinguish interrupts from tasks; wakers are "
			       "unknown");
	else if (context && !strcmp(context, "vectors"))
		note = xstrdup("names of kernel functions were not known; a thread that a network "
			       "interrupt interrupted may be reported as the waker");
	if (note)
		*vec_push(&timeline->notes) = note;
}

/* Closes all chains and moves the result into builder->timeline. */
static void finish_timeline(TimelineBuilder *builder)
{
	_cleanup_free_ uint32_t *numbers = xmalloc(builder->targets.count * sizeof(*numbers));

	set_window(builder);
	builder->timeline->partial = is_partial(builder);
	spans_prepare(&builder->lost_switches);
	spans_prepare(&builder->lost_wakings);
	for (size_t i = 0; i < builder->processes.count; i++)
		set_process_limit(builder, &builder->processes.items[i]);
	move_threads(builder, numbers);
	unsampled_fill(builder, numbers);
	move_processes(builder, numbers);
	set_command_thread(builder->timeline);
	cpus_finish(builder->timeline);
	losses_finish(builder->timeline);
	requests_finish(builder->timeline);
	objects_finish(builder->timeline);
	for (size_t i = 0; i < builder->targets.count; i++)
		target_free(builder->targets.items[i]);
}

Timeline *timeline_builder_finish(TimelineBuilder *builder)
{
	Timeline *timeline = builder->timeline;

	scripts_finish(builder);
	finish_timeline(builder);
	note_unknown_wakers(timeline);
	timeline->cost_known = timeline_meta(timeline, "recording-cost");
	vec_free(&builder->targets);
	vec_free(&builder->processes);
	vec_free(&builder->lost_switches);
	vec_free(&builder->lost_wakings);
	vec_free(&builder->last_switches);
	map_free(&builder->target_of_tid);
	map_free(&builder->target_of_own_tid);
	map_free(&builder->process_of_tgid);
	map_free(&builder->task_of_tid);
	map_free(&builder->stack_of_id);
	free(builder);
	return timeline;
}
