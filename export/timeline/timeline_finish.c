/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From lives to the timeline's threads and processes: where each ends, which of
 * them lie in the window, who belongs to whom.
 */
#include "timeline_builder.h"

static const BuildThread *command_target(const TimelineBuilder *builder)
{
	uint64_t tid;

	if (!timeline_meta_number(builder->timeline, "command_tid", &tid))
		return NULL;
	for (size_t i = 0; i < builder->lives.count; i++)
		if (builder->lives.items[i]->thread.ns_tid == tid)
			return builder->lives.items[i];
	return NULL;
}

/* What was asked for of the window is counted from its beginning. */
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
 * The command is let go by the recorder, for which it waits at a pipe when the window begins. That
 * is no wait of the program's: the window begins at that wake-up.
 */
static void skip_launch(TimelineBuilder *builder)
{
	Timeline *timeline = builder->timeline;
	const BuildThread *life = command_target(builder);
	uint64_t recorder, recorded_ns = timeline->start_ns - builder->filter.from_ns;
	size_t i = 1;

	if (!life || !timeline_meta_number(timeline, "recorder_pid", &recorder))
		return;
	while (i < life->thread.intervals.count &&
	       life->thread.intervals.items[i].start_ns <= recorded_ns)
		i++;
	if (i == life->thread.intervals.count)
		return;

	const Interval *wait = &life->thread.intervals.items[i - 1], *woken = wait + 1;

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
 * A process is over when the last of its threads that was seen to end has ended; but
 * one that exits as the window closes is not over yet.
 */
static void set_process_limit(const TimelineBuilder *builder, BuildProcess *process)
{
	uint64_t limit_ns = process->group_dead_ns;
	const BuildThread *last;

	if (!process->group_dead)
		return;
	last = builder->lives.items[process->last_target];
	if (!last->ended && !resolve_final_lost(builder, last))
		return;
	for (size_t i = 0; i < process->lives.count; i++) {
		const BuildThread *life = builder->lives.items[process->lives.items[i]];

		if (life->ended)
			limit_ns = MAX(limit_ns, life->end_ns);
	}
	process->limit_ns = MIN(process->limit_ns, limit_ns);
}

static bool finish_target(TimelineBuilder *builder, BuildThread *life)
{
	uint64_t end_ns = life->limit_ns;
	bool gone;

	if (life->ended)
		return resolve_target(builder, life, life->end_ns, false);
	if (life->process != INDEX_NONE)
		end_ns = MIN(end_ns, builder->processes.items[life->process].limit_ns);
	gone = end_ns != NS_NEVER || resolve_final_lost(builder, life);
	end_ns = MIN(end_ns, builder->timeline->end_ns);
	return resolve_target(builder, life, MAX(end_ns, chain_last(life)->start_ns), gone);
}

/* ---- the kernel's accounts ---------------------------------------------------------- */

static uint64_t difference(uint64_t final, uint64_t base)
{
	return final > base ? final - base : 0;
}

/* The same, less what lies between the readings but outside the window. */
static uint64_t inside(uint64_t final, uint64_t base, uint64_t outside)
{
	return difference(difference(final, base), outside);
}

static void set_account(const TimelineBuilder *builder, BuildThread *life)
{
	const KernelAccount *base = &life->base, *final = &life->final;

	/* They are about the whole of what was recorded. */
	if (builder->timeline->cut)
		return;
	if (!life->final_known || !(life->base_known || life->thread.born_in_window))
		return;
	life->thread.kernel = (KernelAccount){
		.known = true,
		.sum_exec_runtime = inside(final->sum_exec_runtime, base->sum_exec_runtime,
					   life->outside_running),
		.run_delay =
			final->run_delay == UINT64_MAX
				? UINT64_MAX
				: inside(final->run_delay, base->run_delay, life->outside_runnable),
		.utime = difference(final->utime, base->utime),
		.stime = difference(final->stime, base->stime),
		.nvcsw = inside(final->nvcsw, base->nvcsw,
				life->outside_at_final.voluntary - life->outside_at_base.voluntary),
		.nivcsw = inside(final->nivcsw, base->nivcsw,
				 life->outside_at_final.involuntary -
					 life->outside_at_base.involuntary),
		.min_flt = difference(final->min_flt, base->min_flt),
		.maj_flt = difference(final->maj_flt, base->maj_flt),
		.read_bytes = difference(final->read_bytes, base->read_bytes),
		.write_bytes = difference(final->write_bytes, base->write_bytes),
	};
}

/* ---- putting it together ------------------------------------------------------------- */

/* A thread that no record described is in a process of its own. */
static void adopt_undescribed(TimelineBuilder *builder, BuildThread *life)
{
	if (!life->thread.name)
		life->thread.name = xasprintf("TID %u", life->thread.tid);
	if (life->process != INDEX_NONE)
		return;
	life->process = builder->processes.count;
	*vec_push(&builder->processes) = (BuildProcess){
		.process = {.name = xstrdup("unknown")},
		.parent = INDEX_NONE,
		.limit_ns = NS_NEVER,
	};
	*vec_push(&builder->processes.items[life->process].lives) = life->index;
}

static void target_free(BuildThread *life)
{
	free(life->thread.name);
	vec_free(&life->thread.intervals);
	vec_free(&life->thread.ticks);
	vec_free(&life->thread.faults);
	vec_free(&life->thread.object_waits);
	vec_free(&life->thread.waker_stacks);
	vec_free(&life->thread.queue_moves);
	free(life);
}

/* Moves the threads that lived in the window. ret_numbers: life -> thread. */
static void move_threads(TimelineBuilder *builder, uint32_t *ret_numbers)
{
	Timeline *timeline = builder->timeline;

	for (size_t i = 0; i < builder->lives.count; i++) {
		BuildThread *life = builder->lives.items[i];

		ret_numbers[i] = THREAD_NONE;
		if (!finish_target(builder, life) || !filter_includes(builder, life))
			continue;
		adopt_undescribed(builder, life);
		set_account(builder, life);
		faults_finish(&life->thread);
		ret_numbers[i] = timeline->threads.count;
		*vec_push(&timeline->threads) = life->thread;
		life->thread.name = NULL;
		life->thread.intervals.items = NULL;
		life->thread.ticks.items = NULL;
		life->thread.faults.items = NULL;
		life->thread.object_waits.items = NULL;
		life->thread.waker_stacks.items = NULL;
		life->thread.queue_moves.items = NULL;
	}
	for (size_t i = 0; i < timeline->tasks.count; i++) {
		Task *task = &timeline->tasks.items[i];

		if (task->thread != THREAD_NONE)
			task->thread = ret_numbers[task->thread];
	}
}

/* The lives of a process that are threads of the timeline; the leader first. */
static void list_threads(TimelineBuilder *builder, BuildProcess *built, const uint32_t *numbers)
{
	Timeline *timeline = builder->timeline;
	Process *process = &built->process;

	for (size_t i = 0; i < built->lives.count; i++) {
		uint32_t number = numbers[built->lives.items[i]];
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

/* Threads of it that are not in the timeline may live on. */
static bool is_partial(const TimelineBuilder *builder)
{
	return builder->filter.threads || timeline_meta(builder->timeline, "attached_tids");
}

/* Of a process whose leader is not recorded: known as a stranger, or else by another thread. */
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
		vec_free(&built->lives);
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

void finish_timeline(TimelineBuilder *builder)
{
	_cleanup_free_ uint32_t *numbers = xmalloc(builder->lives.count * sizeof(*numbers));

	set_window(builder);
	spans_prepare(&builder->lost_switches);
	spans_prepare(&builder->lost_wakings);
	for (size_t i = 0; i < builder->processes.count; i++)
		set_process_limit(builder, &builder->processes.items[i]);
	move_threads(builder, numbers);
	move_processes(builder, numbers);
	set_command_thread(builder->timeline);
	cpus_finish(builder->timeline);
	losses_finish(builder->timeline);
	requests_finish(builder->timeline);
	objects_finish(builder->timeline);
	for (size_t i = 0; i < builder->lives.count; i++)
		target_free(builder->lives.items[i]);
}
