/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline_scripts.c - the script frames of switch-outs, ticks and other events, and which thread
 * had the interpreter's lock. A user stack with script frames is a stack of its own in the
 * timeline: it has the definition of the user stack, and says which script frames belong to it.
 */
#include "timeline_builder_private.h"

/* Returns the index in Timeline::scripts, which may be defined later. */
static uint32_t script_reference(TimelineBuilder *builder, uint64_t id)
{
	uint32_t index = map_get(&builder->script_of_id, id);

	if (index != MAP_NONE)
		return index;
	index = builder->timeline->scripts.count;
	*vec_push(&builder->timeline->scripts) = (ScriptStack){};
	map_set(&builder->script_of_id, id, index);
	return index;
}

/* The id is that of a user stack, which no other record of script frames refers to. */
static uint32_t sleeper_reference(TimelineBuilder *builder, const struct rec_script_stack *record)
{
	uint32_t index = builder->timeline->scripts.count;

	*vec_push(&builder->timeline->scripts) = (ScriptStack){};
	*vec_push(&builder->script_sleepers) = (ScriptSleeper){
		.ns = record->h.ns,
		.stack_id = record->id,
		.script = index,
	};
	return index;
}

static uint64_t request_key(uint32_t tid, uint64_t ns)
{
	return hash_mix(tid, ns);
}

void scripts_add(TimelineBuilder *builder, const struct rec_script *record)
{
	uint32_t at = map_get(&builder->script_of_tid, record->tid);
	LastScript *last;

	if (at == MAP_NONE) {
		at = builder->last_scripts.count;
		*vec_push(&builder->last_scripts) = (LastScript){};
		map_set(&builder->script_of_tid, record->tid, at);
	}
	if (record->h.flags & SCRIPT_REQUEST && record->stack)
		map_set(&builder->script_of_request, request_key(record->tid, record->h.ns),
			script_reference(builder, record->stack));
	last = &builder->last_scripts.items[at];
	*last = (LastScript){
		.ns = record->h.ns,
		.script = record->stack ? script_reference(builder, record->stack) : SCRIPT_UNSEEN,
		.thread = record->thread,
		.lock = record->lock,
		.holder = record->holder,
		.language = record->language,
		.flags = record->flags,
	};
}

/* The outermost frames are a ring if some are left out. */
void scripts_add_stack(TimelineBuilder *builder, const struct rec_script_stack *record)
{
	Timeline *timeline = builder->timeline;
	uint32_t index = record->h.flags & SCRIPT_SLEEPER ? sleeper_reference(builder, record)
							  : script_reference(builder, record->id),
		 root;
	ScriptStack *stack = &timeline->scripts.items[index];

	if (stack->defined)
		return;
	*stack = (ScriptStack){
		.first = timeline->script_frames.count,
		.left_out = record->left_out,
		.count = record->count,
		.leaf = record->left_out ? SCRIPT_LEAF_FRAMES : record->count,
		.result = record->result,
		.language = record->language,
		.defined = true,
	};
	for (uint32_t i = 0; i < stack->leaf; i++)
		*vec_push(&timeline->script_frames) = record->frames[i];
	if (!record->left_out)
		return;
	root = script_gap_root(record->left_out);
	for (uint32_t i = root; i < record->count; i++)
		*vec_push(&timeline->script_frames) = record->frames[i];
	for (uint32_t i = stack->leaf; i < root; i++)
		*vec_push(&timeline->script_frames) = record->frames[i];
}

/* Returns the stack that has these script frames as well. */
static uint32_t with_script(TimelineBuilder *builder, uint32_t user_stack, uint32_t script)
{
	uint64_t key = (uint64_t)user_stack << 32 | script;
	uint32_t index;

	if (user_stack == STACK_NONE || script == SCRIPT_UNSEEN)
		return user_stack;
	index = map_get(&builder->scripted, key);
	if (index != MAP_NONE)
		return index;
	index = builder->timeline->stacks.count;
	*vec_push(&builder->timeline->stacks) =
		(StackDef){.script = script + 1, .plain = user_stack};
	map_set(&builder->scripted, key, index);
	return index;
}

uint32_t scripts_stack(TimelineBuilder *builder, uint32_t user_stack, uint32_t tid, uint64_t ns)
{
	uint32_t at = map_get(&builder->script_of_tid, tid);
	const LastScript *last;

	if (at == MAP_NONE)
		return user_stack;
	last = &builder->last_scripts.items[at];
	return last->ns + 1 == ns ? with_script(builder, user_stack, last->script) : user_stack;
}

uint32_t scripts_request_stack(TimelineBuilder *builder, uint32_t user_stack, uint32_t tid,
			       uint64_t submit_ns)
{
	uint32_t script = map_get(&builder->script_of_request, request_key(tid, submit_ns - 1));

	return script == MAP_NONE ? user_stack : with_script(builder, user_stack, script);
}

static bool has_lock(const LastScript *last)
{
	return last->lock && last->flags & SCRIPT_LOCK_HELD && last->holder == last->thread;
}

/* Returns what was read at the target's tick or switch-out at ns, or NULL. */
static const LastScript *script_at(const TimelineBuilder *builder, const BuildThread *target,
				   uint64_t ns)
{
	uint32_t at = map_get(&builder->script_of_tid, target->thread.tid);

	return at != MAP_NONE && builder->last_scripts.items[at].ns + 1 == ns
		       ? &builder->last_scripts.items[at]
		       : NULL;
}

/* Threads may have descriptions in the same memory one after the other, and again. */
static void note_thread(TimelineBuilder *builder, const BuildThread *target, const LastScript *last)
{
	uint64_t key = hash_mix(target->process, last->thread);

	if (!last->thread || map_get(&builder->script_owner, key) == target->index)
		return;
	map_set(&builder->script_owner, key, target->index);
	*vec_push(&builder->script_threads) = (ScriptThread){
		.address = last->thread,
		.ns = last->ns + 1,
		.target = target->index,
	};
}

bool scripts_tick(TimelineBuilder *builder, const BuildThread *target, uint64_t ns)
{
	const LastScript *last = script_at(builder, target, ns);

	if (!last)
		return false;
	note_thread(builder, target, last);
	return has_lock(last);
}

void scripts_lock(TimelineBuilder *builder, BuildThread *target, uint64_t ns, uint64_t word)
{
	const LastScript *last = script_at(builder, target, ns);
	uint16_t offset = LOCK_NO_WORD;

	if (!last)
		return;
	note_thread(builder, target, last);
	if (last->lock && word >= last->lock && word - last->lock < SCRIPT_LOCK_SIZE)
		offset = word - last->lock;
	if (!last->lock || (offset == LOCK_NO_WORD && !has_lock(last)))
		return;
	*vec_push(&target->thread.lock_waits) = (LockWait){
		.start_ns = chain_last(target)->start_ns,
		.address = last->lock,
		.holder_thread = last->holder,
		.holder = THREAD_NONE,
		.offset = offset,
		.language = last->language,
		.held = last->flags & SCRIPT_LOCK_HELD,
		.own = last->holder == last->thread,
	};
}

/* ---- the end ------------------------------------------------------------------------------- */

static int compare_threads(const void *a, const void *b)
{
	const ScriptThread *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static bool is_description(const ScriptThread *known, uint32_t process, uint64_t address)
{
	return known->process == process && known->address == address;
}

/*
 * Returns the task of the thread that an interpreter described at that address at ns: the last one
 * that was seen there. If that had ended by then, it is the next one, which may have existed before
 * it was first seen.
 */
static uint32_t task_at(const TimelineBuilder *builder, uint32_t process, uint64_t address,
			uint64_t ns)
{
	const ScriptThread *known = builder->script_threads.items;
	ScriptThread wanted = {.process = process, .address = address, .ns = ns};
	size_t i = partition_point(middle, builder->script_threads.count,
				   compare_threads(&known[middle], &wanted) <= 0);
	const BuildThread *target;

	if (i > 0 && is_description(&known[i - 1], process, address)) {
		target = builder->targets.items[known[i - 1].target];
		if (!target->ended || target->end_ns >= ns)
			return target->thread.task;
	}
	return i < builder->script_threads.count && is_description(&known[i], process, address)
		       ? builder->targets.items[known[i].target]->thread.task
		       : THREAD_NONE;
}

static void find_holders(TimelineBuilder *builder)
{
	for (size_t i = 0; i < builder->script_threads.count; i++) {
		ScriptThread *known = &builder->script_threads.items[i];

		known->process = builder->targets.items[known->target]->process;
	}
	if (builder->script_threads.count > 1)
		qsort(builder->script_threads.items, builder->script_threads.count,
		      sizeof(ScriptThread), compare_threads);
	for (size_t t = 0; t < builder->targets.count; t++) {
		BuildThread *target = builder->targets.items[t];

		for (size_t i = 0; i < target->thread.lock_waits.count; i++) {
			LockWait *wait = &target->thread.lock_waits.items[i];

			wait->holder = wait->own ? target->thread.task
						 : task_at(builder, target->process,
							   wait->holder_thread, wait->start_ns);
		}
	}
	vec_free(&builder->script_threads);
}

/*
 * Returns until when a thread is known to have been in an interval. Nothing is known of the time
 * after the recorded window: the programs are detached before the recorder's last round.
 */
static uint64_t left_ns(const TimelineBuilder *builder, const BuildThread *target, size_t interval)
{
	const Thread *thread = &target->thread;

	if (interval + 1 < thread->intervals.count)
		return thread->intervals.items[interval + 1].start_ns;
	return target->ended ? target->end_ns : builder->recorded_end_ns;
}

/* Returns whether a switch between these times may have no record. */
static bool may_be_lost(const TimelineBuilder *builder, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < builder->lost_switches.count; i++)
		if (builder->lost_switches.items[i].from_ns < to_ns &&
		    builder->lost_switches.items[i].to_ns > from_ns)
			return true;
	return false;
}

/* Notes in sleeper_of, by stack, which sleepers have run before all of their frames were read. */
static void drop_awake(TimelineBuilder *builder, uint32_t *sleeper_of)
{
	for (size_t t = 0; t < builder->targets.count; t++) {
		const BuildThread *target = builder->targets.items[t];

		for (size_t i = 0; i < target->thread.intervals.count; i++) {
			uint32_t stack = target->thread.intervals.items[i].user_stack;
			uint64_t start_ns = target->thread.intervals.items[i].start_ns, ns;

			if (stack == STACK_NONE || sleeper_of[stack] == INDEX_NONE)
				continue;
			ns = builder->script_sleepers.items[sleeper_of[stack]].ns;
			if (left_ns(builder, target, i) < ns || may_be_lost(builder, start_ns, ns))
				sleeper_of[stack] = INDEX_NONE;
		}
	}
}

/* Gives the user stacks of threads that slept the script frames that the recorder has read. */
static void give_sleepers(TimelineBuilder *builder)
{
	Timeline *timeline = builder->timeline;
	size_t count = timeline->stacks.count;
	_cleanup_free_ uint32_t *sleeper_of = NULL;

	if (builder->script_sleepers.count == 0)
		return;
	sleeper_of = xmalloc((count + 1) * sizeof(*sleeper_of));
	for (size_t i = 0; i < count; i++)
		sleeper_of[i] = INDEX_NONE;
	for (size_t i = 0; i < builder->script_sleepers.count; i++) {
		uint32_t stack =
			map_get(&builder->stack_of_id, builder->script_sleepers.items[i].stack_id);

		if (stack != MAP_NONE)
			sleeper_of[stack] = i;
	}
	drop_awake(builder, sleeper_of);
	for (size_t i = 0; i < count; i++) {
		StackDef plain = timeline->stacks.items[i];

		if (sleeper_of[i] == INDEX_NONE || plain.script)
			continue;
		timeline->stacks.items[i].script =
			builder->script_sleepers.items[sleeper_of[i]].script + 1;
		timeline->stacks.items[i].plain = timeline->stacks.count;
		*vec_push(&timeline->stacks) = plain;
	}
}

void scripts_finish(TimelineBuilder *builder)
{
	Timeline *timeline = builder->timeline;

	find_holders(builder);
	for (size_t i = 0; i < timeline->stacks.count; i++) {
		StackDef *stack = &timeline->stacks.items[i];
		uint32_t script = stack->script, plain = stack->plain;

		if (!script)
			continue;
		*stack = timeline->stacks.items[plain];
		stack->script = script;
		stack->plain = plain;
	}
	give_sleepers(builder);
	vec_free(&builder->script_sleepers);
	map_free(&builder->script_of_id);
	map_free(&builder->script_of_tid);
	map_free(&builder->scripted);
	map_free(&builder->script_of_request);
	map_free(&builder->script_owner);
	vec_free(&builder->last_scripts);
}
