/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes the records apart. Definitions, settings, losses and totals are kept here; events go to the
 * target that they belong to (timeline_tasks.c) and into its chain (timeline_chain.c).
 *
 * Cost: one map lookup per tid and stack of a record, one interval (32 bytes) per switch side or
 * effective wakeup.
 */
#include "timeline_builder_private.h"
#include <fnmatch.h>
#include <string.h>

TimelineBuilder *timeline_builder_new(void)
{
	TimelineBuilder *builder = xcalloc(1, sizeof(*builder));

	builder->timeline = xcalloc(1, sizeof(*builder->timeline));
	builder->timeline->end_ns = NS_NEVER;
	builder->timeline->command_thread = THREAD_NONE;
	builder->first_ns = NS_NEVER;
	return builder;
}

/* Adds the frames in their order, and where some are left out. */
static void add_frames(Timeline *timeline, StackDef *stack, const struct rec_stack *record)
{
	struct stack_gap gap = {};
	uint32_t root;

	stack->leaf = stack->left_out = 0;
	if (record->h.flags & STACK_DEEP) {
		memcpy(&gap, record->frames + record->count, sizeof(gap));
		stack->leaf = gap.leaf < record->count ? gap.leaf : 0;
		stack->left_out = gap.left_out;
	}
	for (uint32_t i = 0; i < (stack->leaf ? stack->leaf : record->count); i++)
		*vec_push(&timeline->frames) = record->frames[i];
	if (!stack->leaf)
		return;
	root = stack_gap_root(&gap, record->count);
	for (uint32_t i = root; i < record->count; i++)
		*vec_push(&timeline->frames) = record->frames[i];
	for (uint32_t i = gap.leaf; i < root; i++)
		*vec_push(&timeline->frames) = record->frames[i];
}

static void add_stack(TimelineBuilder *builder, const struct rec_stack *record)
{
	Timeline *timeline = builder->timeline;
	uint32_t index = stack_reference(builder, record->id);
	StackDef *stack;

	if (index == STACK_NONE || record->count + (record->h.flags & STACK_DEEP ? 1u : 0u) >
					   (record->h.len - sizeof(*record)) / sizeof(uint64_t))
		return;
	stack = &timeline->stacks.items[index];
	/*
	 * The first definition counts, unless the stack was walked again from a copy, which finds
	 * more.
	 */
	if (stack->defined &&
	    (stack->flags & STACK_FROM_COPY || !(record->h.flags & STACK_FROM_COPY)))
		return;
	stack->first = timeline->frames.count;
	stack->tables_ns = record->tables_ns;
	stack->count = record->count;
	stack->result = record->result;
	stack->flags = record->h.flags;
	stack->defined = true;
	add_frames(timeline, stack, record);
}

/*
 * Adds the recording cost of the run that the switch ends; target is NULL for a non-target's run.
 */
static void add_cost(TimelineBuilder *builder, BuildThread *target, const struct rec_switch *record)
{
	uint64_t switch_ns = SWITCH_NS(record->own_in);
	uint64_t others_ns = SWITCH_RUN_NS(record->own_run);

	/* A thread outside of the filter counts neither as a target nor as outside. */
	if (!in_window(builder, record->h.ns) || (!target && record->h.flags & SWITCH_PREV))
		return;
	if (!target) {
		builder->timeline->cost_outside_ns += switch_ns + others_ns;
		return;
	}
	target->thread.recording.switches_ns += switch_ns;
	target->thread.recording.others_ns += others_ns;
}

/* Adds when the thread was moved to another CPU's queue, in the wait that the switch ends. */
static void add_move(BuildThread *target, const SwitchSide *side, const struct rec_switch *record)
{
	const Interval *last = target->thread.intervals.count ? chain_last(target) : NULL;

	if (last && last->state == STATE_RUNNABLE)
		*vec_push(&target->thread.queue_moves) = (QueueMove){
			.start_ns = last->start_ns,
			.ns = side->ns - MIN(side->ns, SWITCH_NS(record->moved_before)),
			.cpu = side->cpu,
			.again = record->parts & SWITCH_MOVED_REPEATEDLY,
		};
}

static void add_switch(TimelineBuilder *builder, const struct rec_switch *record)
{
	SwitchSide side = {.ns = record->h.ns, .cpu = record->h.cpu};
	bool preempt = record->h.flags & SWITCH_PREEMPT;
	BuildThread *target = NULL;

	if (record->h.flags & SWITCH_PREV) {
		side.tid = record->prev_tid;
		side.seq = record->prev_seq;
		side.out = true;
		side.dead = record->prev_state & 0x80 && !preempt; /* TASK_DEAD */
		side.cpu_user = record->next_tid;
		builder->timeline->events += in_window(builder, side.ns);
		target = tasks_target_switch(builder, &side);
		if (target)
			chain_switch_out(builder, target, &side, record);
	}
	add_cost(builder, target, record);
	if (record->h.flags & SWITCH_NEXT) {
		side.tid = record->next_tid;
		side.seq = record->next_seq;
		side.out = side.dead = false;
		side.cpu_user = record->prev_tid;
		builder->timeline->events += in_window(builder, side.ns);
		target = tasks_target_switch(builder, &side);
		if (target && record->moved_before)
			add_move(target, &side, record);
		if (target)
			chain_switch_in(builder, target, &side);
	}
	if (builder->timeline->whole_system)
		cpus_switch(builder, record);
	cpus_prove(builder, record);
}

static void add_waking(TimelineBuilder *builder, const struct rec_waking *record)
{
	BuildThread *target;

	builder->timeline->events += in_window(builder, record->h.ns);
	if (record->h.flags & WAKING_NEW)
		target = tasks_target_waking_new(builder, record->tid, record->h.ns);
	else
		target = tasks_target(builder, record->tid, record->h.ns);
	chain_waking(builder, target, record);
}

/* The task that runs at the end has run since the last switch on that CPU. */
static void add_snapshot(TimelineBuilder *builder, const struct rec_snapshot *record)
{
	/* Captures of older versions have no CPU here. */
	bool has_cpu = timeline_meta(builder->timeline, "cpus_online");
	uint8_t both = SNAPSHOT_END | SNAPSHOT_ON_CPU;

	if (builder->timeline->whole_system && has_cpu && (record->h.flags & both) == both)
		cpus_seen(builder, record->task_cpu, record->tid);
	chain_snapshot(builder, tasks_target(builder, record->tid, record->h.ns), record);
}

static void add_sample(TimelineBuilder *builder, const struct rec_sample *record)
{
	Timeline *timeline = builder->timeline;
	BuildThread *target;

	if (!in_window(builder, record->h.ns))
		return;
	timeline->events++;
	if (timeline->whole_system)
		cpus_seen(builder, record->h.cpu, record->tid);
	target = tasks_target_tick(builder, record->tid, record->h.cpu, record->h.ns);
	if (!target ||
	    (target->thread.ticks.count &&
	     target->thread.ticks.items[target->thread.ticks.count - 1].ns > record->h.ns)) {
		timeline->orphan_ticks++;
		return;
	}
	*vec_push(&target->thread.ticks) = (Tick){
		.ns = record->h.ns,
		.user_stack = scripts_stack(builder, stack_reference(builder, record->ustack),
					    record->tid, record->h.ns),
		.kernel_stack = stack_reference(builder, record->kstack),
		.user_mode = record->h.flags & SAMPLE_USER,
		.has_lock = scripts_tick(builder, target, record->h.ns),
	};
}

/* ---- which part of the capture is included -------------------------------------------------- */

void timeline_builder_filter(TimelineBuilder *builder, const TimelineFilter *filter)
{
	builder->filter = *filter;
}

/* Returns whether a word selects something by its id or name. */
static bool is_selected(const char *word, uint32_t number, const char *name)
{
	uint64_t wanted;

	if (parse_u64(word, &wanted) == 0 && wanted == number)
		return true;
	return name && fnmatch(word, name, 0) == 0;
}

/* Returns whether one of the words, separated by commas, selects it by either of its names. */
static bool is_among(const char *words, uint32_t number, const char *name, const char *other_name)
{
	_cleanup_free_ char *copy = xstrdup(words);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));)
		if (is_selected(word, number, name) || is_selected(word, number, other_name))
			return true;
	return false;
}

static const char *file_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

bool filter_includes(const TimelineBuilder *builder, const BuildThread *target)
{
	const TimelineFilter *filter = &builder->filter;
	const Process *process = target->process == INDEX_NONE
					 ? NULL
					 : &builder->processes.items[target->process].process;

	if (filter->threads &&
	    !is_among(filter->threads, target->thread.ns_tid, target->thread.name, NULL))
		return false;
	if (!filter->processes)
		return true;
	return process && is_among(filter->processes, process->ns_tgid, process->name,
				   file_name(process->path));
}

/* Replaces the recorded window by the requested one. */
static void filter_window(TimelineBuilder *builder)
{
	const TimelineFilter *filter = &builder->filter;
	Timeline *timeline = builder->timeline;

	if (filter->to_ns)
		timeline->end_ns = timeline->start_ns + filter->to_ns;
	timeline->cut = filter->from_ns || filter->to_ns;
	timeline->start_ns += filter->from_ns;
	timeline->realtime_start_ns += filter->from_ns;
}

/* Clears what was counted before the window. */
static void start_window(TimelineBuilder *builder, const struct rec_window *record)
{
	Timeline *timeline = builder->timeline;

	timeline->start_ns = record->h.ns;
	timeline->realtime_start_ns = record->realtime_ns;
	timeline->attached = record->h.flags & WINDOW_ATTACHED;
	timeline->whole_system = record->h.flags & WINDOW_SYSTEM;
	builder->start_known = true;
	filter_window(builder);
	timeline->events = timeline->orphan_ticks = 0;
	for (size_t i = 0; i < builder->targets.count; i++) {
		Thread *thread = &builder->targets.items[i]->thread;

		thread->switch_outs = 0;
		thread->ticks.count = 0;
	}
}

static void add_window(TimelineBuilder *builder, const struct rec_window *record)
{
	if (record->h.flags & WINDOW_START && !builder->start_known)
		start_window(builder, record);
	if (record->h.flags & WINDOW_END && !builder->end_known) {
		builder->timeline->end_ns = MIN(builder->timeline->end_ns, record->h.ns);
		builder->recorded_end_ns = record->h.ns;
		builder->end_known = true;
	}
}

static void add_meta(TimelineBuilder *builder, const struct rec_meta *record)
{
	Timeline *timeline = builder->timeline;
	size_t room = record->h.len - sizeof(*record);
	const char *equals = memchr(record->text, '=', strnlen(record->text, room));
	_cleanup_free_ char *key = NULL;
	char *value;
	uint32_t index;

	if (!equals)
		return;
	key = xasprintf("%.*s", (int)(equals - record->text), record->text);
	room -= equals + 1 - record->text;
	value = xasprintf("%.*s", (int)room, equals + 1);
	if (!strcmp(key, "own-code")) {
		own_code_parse(&timeline->own_code, value, strlen(value));
		free(value);
		return;
	}
	index = strings_intern(&timeline->meta_keys, key);
	if (index == timeline->meta_values.count) {
		*vec_push(&timeline->meta_values) = value;
	} else {
		free(timeline->meta_values.items[index]);
		timeline->meta_values.items[index] = value;
	}
}

static void add_loss(TimelineBuilder *builder, const struct rec_loss *record)
{
	struct span span = {MIN(record->from_ns, record->to_ns),
			    MAX(record->from_ns, record->to_ns)};

	if (record->count > 0)
		*vec_push(&builder->timeline->losses) = (LossSpan){
			.kind = record->lost_kind,
			.cause = record->cause,
			.cpu = record->h.cpu,
			.count = record->count,
			.from_ns = span.from_ns,
			.to_ns = span.to_ns,
		};
	if (record->lost_kind == REC_SWITCH)
		*vec_push(&builder->lost_switches) = span;
	else if (record->lost_kind == REC_WAKING)
		*vec_push(&builder->lost_wakings) = span;
}

static void add_total(TimelineBuilder *builder, const struct rec_total *record)
{
	if (record->counted_kind >= REC_BPF_MAX)
		return;
	builder->timeline->totals[record->counted_kind].sent = record->sent;
	builder->timeline->totals[record->counted_kind].lost = record->lost;
}

/* Records of kinds that BPF sends may also be the recorder's own, which has read /proc or memory.
 */
static bool is_of_recorder(const struct record *record)
{
	return (record->kind == REC_ARGS && record->flags) ||
	       ((record->kind == REC_SCRIPT_STACK || record->kind == REC_SCRIPT_CODE) &&
		record->flags & SCRIPT_SLEEPER);
}

static void add_event(TimelineBuilder *builder, const struct record *record)
{
	/* The recorder sends the stack that it found in a stack copy as a record of its own. */
	if (record->kind == REC_STACK && record->flags & STACK_FROM_COPY)
		builder->timeline->totals[REC_STACK_COPY].received++;
	else if (!is_of_recorder(record))
		builder->timeline->totals[record->kind].received++;
	if (record->kind != REC_STACK && record->kind != REC_SCRIPT_STACK &&
	    record->kind != REC_SCRIPT_CODE) {
		builder->first_ns = MIN(builder->first_ns, record->ns);
		builder->last_ns = MAX(builder->last_ns, record->ns);
	}
	switch (record->kind) {
	case REC_SWITCH:
		return add_switch(builder, (const struct rec_switch *)record);
	case REC_WAKING:
		return add_waking(builder, (const struct rec_waking *)record);
	case REC_TASK:
		return tasks_task(builder, (const struct rec_task *)record);
	case REC_EXEC:
		return tasks_exec(builder, (const struct rec_exec *)record);
	case REC_ARGS:
		return tasks_args(builder, (const struct rec_args *)record);
	case REC_EXIT:
		return tasks_exit(builder, (const struct rec_exit *)record);
	case REC_STATS:
		return tasks_stats(builder, (const struct rec_stats *)record);
	case REC_SNAPSHOT:
		return add_snapshot(builder, (const struct rec_snapshot *)record);
	case REC_SAMPLE:
		return add_sample(builder, (const struct rec_sample *)record);
	case REC_FAULT:
		return faults_add(builder, (const struct rec_fault *)record);
	case REC_INODE:
		return objects_add_inode(&builder->timeline->objects,
					 (const struct rec_inode *)record);
	case REC_SOCKET:
		return objects_add_socket(&builder->timeline->objects,
					  (const struct rec_socket *)record);
	case REC_WATCH:
		return objects_add_watch(&builder->timeline->objects,
					 (const struct rec_watch *)record);
	case REC_FUTEX:
		return objects_add_futex(&builder->timeline->objects,
					 (const struct rec_futex *)record);
	case REC_REQUEST:
		return requests_add(builder, (const struct rec_request *)record);
	case REC_STACK:
		return add_stack(builder, (const struct rec_stack *)record);
	case REC_SCRIPT:
		return scripts_add(builder, (const struct rec_script *)record);
	case REC_SCRIPT_STACK:
		return scripts_add_stack(builder, (const struct rec_script_stack *)record);
	}
}

void timeline_builder_add(TimelineBuilder *builder, const struct record *record)
{
	if (record->kind < REC_BPF_MAX)
		return add_event(builder, record);
	switch (record->kind) {
	case REC_WATERMARK:
		/* All events before this moment are known. */
		builder->last_ns = MAX(builder->last_ns, record->ns);
		return;
	case REC_META:
		return add_meta(builder, (const struct rec_meta *)record);
	case REC_WINDOW:
		return add_window(builder, (const struct rec_window *)record);
	case REC_LOSS:
		return add_loss(builder, (const struct rec_loss *)record);
	case REC_TOTAL:
		return add_total(builder, (const struct rec_total *)record);
	case REC_DEVICE:
		return requests_add_device(&builder->timeline->requests,
					   (const struct rec_device *)record);
	case REC_NOTE:
		*vec_push(&builder->timeline->notes) =
			xstrdup(((const struct rec_note *)record)->text);
		return;
	case REC_END:
		builder->timeline->complete = true;
	}
}
