/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which thread of which process a tid means at a moment.
 *
 * A tid may be used again, even while its former owner is still in its last switch. exec by a
 * thread other than the leader gives it the leader's tid, some time before REC_EXEC says so. And
 * the record of a birth may be lost. Switch records have a sequence number, which identifies the
 * thread where the tid does not.
 */
#include "timeline_builder_private.h"
#include <string.h>

/* The final accounts come with the final switch; those of the tid's next owner come later. */
#define FINAL_STATS_NS (1 * NSEC_PER_MSEC)

#define KTHREADD       2 /* the tid of the thread that creates all kernel threads */
#define KERNEL_PROCESS "kernel threads"

static BuildThread *target_at(const TimelineBuilder *builder, uint32_t index)
{
	return index == INDEX_NONE ? NULL : builder->targets.items[index];
}

static BuildThread *current_target(const TimelineBuilder *builder, uint32_t tid)
{
	return target_at(builder, map_get(&builder->target_of_tid, tid));
}

static BuildProcess *process_of(const TimelineBuilder *builder, const BuildThread *target)
{
	return target->process == INDEX_NONE ? NULL : &builder->processes.items[target->process];
}

/* ---- tasks and stacks, by the ids in records -------------------------------- */

static uint32_t task_new(TimelineBuilder *builder, uint32_t tid)
{
	uint32_t index = builder->timeline->tasks.count;

	*vec_push(&builder->timeline->tasks) = (Task){.tid = tid, .thread = THREAD_NONE};
	map_set(&builder->task_of_tid, tid, index);
	return index;
}

uint32_t tasks_reference(TimelineBuilder *builder, uint32_t tid)
{
	uint32_t index = map_get(&builder->task_of_tid, tid);

	return index == MAP_NONE ? task_new(builder, tid) : index;
}

uint32_t stack_reference(TimelineBuilder *builder, uint64_t id)
{
	uint32_t index;

	if (!id)
		return STACK_NONE;
	index = map_get(&builder->stack_of_id, id);
	if (index != MAP_NONE)
		return index;
	index = builder->timeline->stacks.count;
	*vec_push(&builder->timeline->stacks) = (StackDef){.id = id};
	map_set(&builder->stack_of_id, id, index);
	return index;
}

static void task_describe(Task *task, const struct rec_task *record)
{
	task->ns_tid = record->ns_tid;
	task->ns_tgid = record->ns_tgid;
	task->kernel = record->h.flags & TASK_KTHREAD;
	memcpy(task->comm, record->comm, COMM_LEN - 1);
	task->comm[COMM_LEN - 1] = 0;
}

/* Describes a non-target, which only wakers refer to. */
static void non_target_describe(TimelineBuilder *builder, const struct rec_task *record)
{
	uint32_t index = tasks_reference(builder, record->tid);
	Task *task = &builder->timeline->tasks.items[index];
	bool other = task->comm[0] && strncmp(task->comm, record->comm, COMM_LEN - 1);

	if (task->thread != THREAD_NONE || other)
		index = task_new(builder, record->tid);
	task_describe(&builder->timeline->tasks.items[index], record);
}

/* A target takes over a task that so far only wakers refer to, or gets a new one. */
static void target_adopt_task(TimelineBuilder *builder, BuildThread *target)
{
	uint32_t index = tasks_reference(builder, target->thread.tid);
	const Task *task = &builder->timeline->tasks.items[index];

	if (task->thread != THREAD_NONE || task->comm[0])
		index = task_new(builder, target->thread.tid);
	builder->timeline->tasks.items[index].thread = target->index;
	target->thread.task = index;
}

/* ---- targets ----------------------------------------------------------------- */

static void target_leave_process(TimelineBuilder *builder, BuildThread *target)
{
	if (!target->counted)
		return;
	target->counted = false;
	process_of(builder, target)->alive--;
}

void tasks_end(TimelineBuilder *builder, BuildThread *target, uint64_t ns)
{
	target->ended = true;
	target->end_ns = MAX(ns, chain_last(target)->start_ns);
	target_leave_process(builder, target);
}

/* The limit of earlier owners of a tid, whose ends have no record, that are kept. */
#define PREVIOUS_MAX 8

static void link_previous(TimelineBuilder *builder, BuildThread *target, BuildThread *previous)
{
	if (previous && previous->ended)
		previous = target_at(builder, previous->previous);
	if (!previous || previous->previous_count == PREVIOUS_MAX)
		return;
	target->previous = previous->index;
	target->previous_count = previous->previous_count + 1;
}

/* Adds a target for tid. A former owner whose end has no record cannot have lived longer. */
static BuildThread *target_new(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *target = xcalloc(1, sizeof(*target)), *previous = current_target(builder, tid);

	target->index = builder->targets.count;
	target->thread.tid = tid;
	target->thread.creator = THREAD_NONE;
	target->process = INDEX_NONE;
	target->previous = INDEX_NONE;
	target->first_ns = ns;
	target->limit_ns = NS_NEVER;
	target->early.task = THREAD_NONE;
	target->last_call.syscall = -1;
	if (previous && !previous->ended) {
		previous->limit_ns = MIN(previous->limit_ns, ns);
		target_leave_process(builder, previous);
	}
	link_previous(builder, target, previous);
	*vec_push(&builder->targets) = target;
	map_set(&builder->target_of_tid, tid, target->index);
	target_adopt_task(builder, target);
	return target;
}

/* Adds a target of which nothing is known before ns. */
static BuildThread *target_found(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *target = target_new(builder, tid, ns);

	chain_begin(builder, target, ns, 0);
	return target;
}

static BuildThread *target_born(TimelineBuilder *builder, uint32_t tid, uint64_t ns,
				uint32_t creator)
{
	BuildThread *target = target_new(builder, tid, ns);

	target->born = true;
	chain_begin(builder, target, ns, creator);
	return target;
}

BuildThread *tasks_target(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *target = current_target(builder, tid);

	return target ? target : target_found(builder, tid, ns);
}

/* ---- exec by a thread other than the leader ---------------------------------- */

/* heir continues under the tid of leader, which has ended. */
static void exec_adopt_tid(TimelineBuilder *builder, BuildThread *heir, BuildThread *leader,
			   uint64_t ns)
{
	Task task = builder->timeline->tasks.items[leader->thread.task];

	if (!leader->ended) {
		leader->replaced = true;
		tasks_end(builder, leader, ns);
	}
	heir->start_boottime = leader->start_boottime;
	map_set(&builder->target_of_tid, heir->thread.tid, leader->index);
	map_set(&builder->target_of_tid, leader->thread.tid, heir->index);
	heir->thread.tid = leader->thread.tid;
	heir->thread.ns_tid = leader->thread.ns_tid;
	heir->thread.is_main = leader->thread.is_main;
	leader->thread.is_main = false;
	heir->thread.task = task_new(builder, heir->thread.tid);
	task.thread = heir->index;
	builder->timeline->tasks.items[heir->thread.task] = task;
}

/*
 * Returns the thread that already has the tid of its dead leader, before its REC_EXEC: the only one
 * left that the record fits.
 */
static BuildThread *exec_find_heir(const TimelineBuilder *builder, const BuildThread *leader,
				   bool (*fits)(const BuildThread *, const SwitchSide *),
				   const SwitchSide *side)
{
	const BuildProcess *process = process_of(builder, leader);
	BuildThread *heir = NULL;

	if (!process || process->group_dead || !leader->thread.is_main)
		return NULL;
	for (size_t i = 0; i < process->targets.count; i++) {
		BuildThread *target = builder->targets.items[process->targets.items[i]];

		if (target == leader || target->ended || target->exiting || !fits(target, side))
			continue;
		if (heir)
			return NULL;
		heir = target;
	}
	return heir;
}

/* ---- the thread of a record -------------------------------------------------- */

/*
 * Returns a former owner of the tid, if it is still in its last switch and the record is of that
 * switch. A hypervisor may delay it for as long as other threads take to be born and to die under
 * that tid. The final switch of each follows its exit at once.
 */
static BuildThread *previous_owner(const TimelineBuilder *builder, const BuildThread *target,
				   const SwitchSide *side)
{
	bool not_of_target = side->dead && !target->exiting;
	BuildThread *previous, *found = NULL;

	if (!not_of_target && chain_fits(target, side))
		return NULL;
	for (previous = target_at(builder, target->previous); previous;
	     previous = target_at(builder, previous->previous)) {
		if (chain_fits(previous, side))
			return previous;
		if (not_of_target && !previous->ended &&
		    (!found || previous->exiting > found->exiting))
			found = previous;
	}
	return found;
}

BuildThread *tasks_target_switch(TimelineBuilder *builder, const SwitchSide *side)
{
	BuildThread *target = tasks_target(builder, side->tid, side->ns), *other;

	other = previous_owner(builder, target, side);
	if (other)
		return other;
	if (target->replaced) {
		/* It is still in its last switch after exec took its place. */
		target->replaced = !side->dead;
		return NULL;
	}
	if ((target->exiting || target->ended) && !side->dead && !chain_fits(target, side)) {
		other = exec_find_heir(builder, target, chain_fits, side);
		if (other) {
			exec_adopt_tid(builder, other, target, side->ns);
			return other;
		}
	}
	if (!target->ended)
		return target;
	return side->dead ? NULL : target_found(builder, side->tid, side->ns);
}

BuildThread *tasks_target_waking_new(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *target = current_target(builder, tid);

	if (target && target->born && !target->ended && target->thread.intervals.count == 1)
		return target;
	return target_born(builder, tid, ns, 0);
}

static bool running_on(const BuildThread *target, const SwitchSide *side)
{
	const Interval *last = chain_last(target);

	return last->state == STATE_RUNNING && last->cpu == side->cpu;
}

BuildThread *tasks_target_tick(TimelineBuilder *builder, uint32_t tid, uint16_t cpu, uint64_t ns)
{
	SwitchSide side = {.ns = ns, .tid = tid, .cpu = cpu};
	BuildThread *target = tasks_target(builder, tid, ns), *heir;

	if (!target->ended || target->replaced)
		return target->ended ? NULL : target;
	heir = exec_find_heir(builder, target, running_on, &side);
	if (heir)
		exec_adopt_tid(builder, heir, target, ns);
	return heir;
}

/* ---- processes ---------------------------------------------------------------- */

static void set_args(Process *process, const char *text, size_t size, bool is_cut)
{
	process->args_inherited = false;
	free((char *)process->args.text);
	process->args = (Args){.text = size > 0 ? memcpy(xmalloc(size), text, size) : NULL,
			       .size = size,
			       .is_cut = is_cut};
}

/* A forked process has its parent's arguments until it executes a program. */
static void inherit_args(TimelineBuilder *builder, BuildProcess *child)
{
	const BuildProcess *parent;

	if (child->parent == INDEX_NONE)
		return;
	parent = &builder->processes.items[child->parent];
	set_args(&child->process, parent->process.args.text, parent->process.args.size,
		 parent->process.args.is_cut);
	child->process.args_inherited = child->process.args.size > 0;
	child->args_exec_id = parent->args_exec_id;
}

void tasks_args(TimelineBuilder *builder, const struct rec_args *record)
{
	uint32_t index = map_get(&builder->process_of_tgid, record->tgid);
	BuildProcess *process;

	if (index == MAP_NONE)
		return;
	process = &builder->processes.items[index];
	/* A forked process that has not changed its list still has that of its parent. */
	if (record->h.flags & ARGS_FROM_PROC && record->size > 0 &&
	    process->process.args.size == record->size &&
	    !memcmp(process->process.args.text, record->text, record->size))
		return;
	set_args(&process->process, record->text, record->size, record->total > record->size);
	process->process.args_inherited = record->h.flags & ARGS_INHERITED;
	/* The recorder does not know it. */
	process->args_exec_id =
		record->h.flags & ARGS_FROM_PROC ? process->exec_id : record->exec_id;
}

static BuildProcess *process_new(TimelineBuilder *builder, const struct rec_task *record)
{
	uint32_t index = builder->processes.count;
	BuildProcess *process = vec_push(&builder->processes);

	*process = (BuildProcess){
		.process = {.tgid = record->tgid, .ns_tgid = record->ns_tgid},
		.parent_tgid = record->parent_tgid,
		.parent = map_get(&builder->process_of_tgid, record->parent_tgid),
		.first_ns = record->h.ns,
		.limit_ns = NS_NEVER,
		.kernel = record->h.flags & TASK_KTHREAD,
	};
	map_set(&builder->process_of_tgid, record->tgid, index);
	if (record->h.flags & TASK_BIRTH)
		inherit_args(builder, process);
	return process;
}

/* Returns the process of a task that was just described; adds it if it is new. */
static BuildProcess *process_for(TimelineBuilder *builder, const struct rec_task *record)
{
	uint32_t index = map_get(&builder->process_of_tgid, record->tgid);
	bool leader_born = record->h.flags & TASK_BIRTH && record->tid == record->tgid;
	BuildProcess *process;

	if (index == MAP_NONE)
		return process_new(builder, record);
	process = &builder->processes.items[index];
	if ((leader_born && record->h.ns > process->first_ns) ||
	    (process->group_dead && !process->alive && record->h.ns > process->group_dead_ns)) {
		process->limit_ns = record->h.ns;
		return process_new(builder, record);
	}
	return process;
}

static void target_join_process(TimelineBuilder *builder, BuildThread *target,
				const struct rec_task *record)
{
	BuildProcess *process = process_for(builder, record);

	target->process = process - builder->processes.items;
	*vec_push(&process->targets) = target->index;
	if (!target->exiting && !target->ended) {
		target->counted = true;
		process->alive++;
	}
}

static void rename_to(char **name, const char *text, size_t limit)
{
	free(*name);
	*name = xasprintf("%.*s", (int)limit, text);
}

static uint64_t own_key(const BuildThread *target, uint32_t own_tid)
{
	return (uint64_t)target->process << 32 | own_tid;
}

static void target_describe(TimelineBuilder *builder, BuildThread *target,
			    const struct rec_task *record)
{
	bool over = target->exiting || target->ended;
	BuildProcess *process;

	/* A thread with a dead leader's tid is about to exec, and gets its name then. */
	if (over && record->h.flags & TASK_RENAME)
		return;
	if (target->process == INDEX_NONE)
		target_join_process(builder, target, record);
	target->described = true;
	target->thread.kernel_only |= record->h.flags & (TASK_KTHREAD | TASK_IO_WORKER);
	if (record->start_boottime)
		target->start_boottime = record->start_boottime;
	target->thread.ns_tid = record->ns_tid;
	target->thread.is_main = record->tid == record->tgid;
	rename_to(&target->thread.name, record->comm, COMM_LEN - 1);
	task_describe(&builder->timeline->tasks.items[target->thread.task], record);
	process = process_of(builder, target);
	if (record->h.flags & TASK_JOINED)
		process->joined_ns = record->h.ns;
	process->exec_id = record->exec_id;
	if (process->kernel)
		rename_to(&process->process.name, KERNEL_PROCESS, strlen(KERNEL_PROCESS));
	else if (target->thread.is_main)
		rename_to(&process->process.name, record->comm, COMM_LEN - 1);
	if (record->own_tid) {
		target->own_tid = record->own_tid;
		map_set(&builder->target_of_own_tid, own_key(target, record->own_tid),
			target->index);
	}
}

/* ---- records ------------------------------------------------------------------ */

static bool same_start(const BuildThread *target, const struct rec_task *record)
{
	return target->start_boottime && target->start_boottime == record->start_boottime;
}

static bool other_start(const BuildThread *target, const struct rec_task *record)
{
	return target->start_boottime && record->start_boottime &&
	       target->start_boottime != record->start_boottime;
}

static void task_born(TimelineBuilder *builder, const struct rec_task *record)
{
	BuildThread *target = current_target(builder, record->tid);

	if (target && !target->described && record->h.ns <= target->first_ns)
		chain_begin_late(builder, target, record->h.ns, record->creator_tid);
	else if (!target || !same_start(target, record))
		target = target_born(builder, record->tid, record->h.ns, record->creator_tid);
	target_describe(builder, target, record);
}

static void describe(TimelineBuilder *builder, const struct rec_task *record)
{
	BuildThread *target;

	if (record->h.flags & TASK_BIRTH) {
		task_born(builder, record);
		return;
	}
	target = tasks_target(builder, record->tid, record->h.ns);
	/* The tid is used again, and the record of the new owner's birth was lost. */
	if (other_start(target, record))
		target = target_found(builder, record->tid, record->h.ns);
	target_describe(builder, target, record);
}

/* To the kernel each kernel thread is a process. To the user they are one process. */
static void describe_kernel_thread(TimelineBuilder *builder, const struct rec_task *record)
{
	struct rec_task of_kernel = *record;

	of_kernel.tgid = of_kernel.ns_tgid = KTHREADD;
	describe(builder, &of_kernel);
}

uint64_t tasks_recorded_since(const TimelineBuilder *builder, const BuildThread *target)
{
	const BuildProcess *process = process_of(builder, target);

	return process ? process->joined_ns : 0;
}

void tasks_task(TimelineBuilder *builder, const struct rec_task *record)
{
	if (record->h.flags & TASK_NON_TARGET)
		non_target_describe(builder, record);
	else if (record->h.flags & TASK_KTHREAD)
		describe_kernel_thread(builder, record);
	else
		describe(builder, record);
}

void tasks_exec(TimelineBuilder *builder, const struct rec_exec *record)
{
	BuildThread *target = tasks_target(builder, record->tid, record->h.ns);
	BuildProcess *process;

	if (record->old_tid && record->old_tid != record->tid) {
		BuildThread *caller = current_target(builder, record->old_tid);

		/* If the change was found out before, the old tid means the old leader by now. */
		if (caller && !caller->ended) {
			exec_adopt_tid(builder, caller, target, record->h.ns);
			target = caller;
		}
	}
	rename_to(&target->thread.name, record->comm, COMM_LEN - 1);
	process = process_of(builder, target);
	if (!process)
		return;
	rename_to(&process->process.name, record->comm, COMM_LEN - 1);
	rename_to(&process->process.path, record->path, EXEC_PATH_LEN - 1);
	process->exec_id = record->exec_id;
	/* The record of this program's arguments may come before this one, and may be lost. */
	if (process->args_exec_id != record->exec_id)
		set_args(&process->process, NULL, 0, /* is_cut= */ false);
	/* exec ends the other threads. */
	for (size_t i = 0; i < process->targets.count; i++) {
		BuildThread *other = builder->targets.items[process->targets.items[i]];

		if (other == target || other->ended)
			continue;
		other->limit_ns = MIN(other->limit_ns, record->h.ns);
		target_leave_process(builder, other);
	}
}

/*
 * Returns the thread that exits. Its record comes with its final switch, when another thread may
 * have its tid. If no thread has its start time, it is the present owner of the tid: exec by a
 * thread other than the leader gives it the leader's start time (de_thread() in fs/exec.c).
 */
static BuildThread *exit_owner(TimelineBuilder *builder, const struct rec_exit *record)
{
	BuildThread *target = tasks_target(builder, record->tid, record->h.ns), *owner = target;
	uint64_t start = record->parts & EXIT_HAS_STARTS ? record->start_boottime : 0;

	while (owner && start && owner->start_boottime && owner->start_boottime != start)
		owner = target_at(builder, owner->previous);
	return owner ? owner : target;
}

void tasks_exit(TimelineBuilder *builder, const struct rec_exit *record)
{
	BuildThread *target = exit_owner(builder, record);
	BuildProcess *process = process_of(builder, target);

	if (target->ended)
		return;
	target->exiting = true;
	target->exit_ns = record->h.ns;
	target->exit_code = record->exit_code;
	target_leave_process(builder, target);
	if (!process || process->kernel)
		return;
	if (!process->leader_exited)
		process->exit_code = record->exit_code;
	process->leader_exited |= target->thread.is_main;
	if (record->h.flags & EXIT_GROUP_DEAD) {
		process->group_dead = true;
		process->group_dead_ns = record->h.ns;
		process->last_target = target->index;
	}
}

/*
 * The final accounts come just after exit and final switch; later another thread may have the tid.
 */
static bool may_be_final(const BuildThread *target, uint64_t ns)
{
	uint64_t end_ns = target->ended ? target->end_ns : target->exit_ns;

	return !target->final_known && (target->ended || target->exiting) &&
	       ns < end_ns + FINAL_STATS_NS;
}

static BuildThread *stats_owner(TimelineBuilder *builder, const struct rec_stats *record)
{
	BuildThread *target = tasks_target(builder, record->tid, record->h.ns), *previous;

	if (target->exiting)
		return target;
	for (previous = target_at(builder, target->previous); previous;
	     previous = target_at(builder, previous->previous))
		if (may_be_final(previous, record->h.ns))
			return previous;
	return target;
}

/*
 * What the target had before it is in the timeline. Within the window only a thread that joined has
 * such a record. If a flight recorder has dropped the first account of a thread, the next one is no
 * base.
 */
static bool is_base(const TimelineBuilder *builder, const BuildThread *target, uint64_t ns)
{
	uint64_t start_ns = builder->timeline->start_ns;

	if (ns <= start_ns || !builder->start_known)
		return true;
	return !target->base_known && !target->born &&
	       tasks_recorded_since(builder, target) > start_ns;
}

void tasks_stats(TimelineBuilder *builder, const struct rec_stats *record)
{
	bool has_bytes = record->parts & STATS_HAS_BYTES;
	BuildThread *target = stats_owner(builder, record);
	KernelAccount account = {
		.known = true,
		.sum_exec_runtime = record->sum_exec_runtime,
		.run_delay = record->run_delay,
		.utime = record->utime,
		.stime = record->stime,
		.nvcsw = record->nvcsw,
		.nivcsw = record->nivcsw,
		.min_flt = record->min_flt,
		.maj_flt = record->maj_flt,
		.read_bytes = has_bytes ? record->read_bytes : 0,
		.write_bytes = has_bytes ? record->write_bytes : 0,
		.clock_known = record->parts & STATS_HAS_CLOCK,
		.clock_ahead = record->parts & STATS_HAS_CLOCK ? record->clock_ahead : 0,
	};

	if (is_base(builder, target, record->h.ns)) {
		target->base = account;
		target->base_known = true;
		target->base_ns = record->h.ns;
		target->outside_at_base = target->outside;
	} else {
		target->final = account;
		target->final_known = true;
		target->final_ns = record->h.ns;
		target->outside_at_final = target->outside;
	}
}

uint32_t tasks_of_process(TimelineBuilder *builder, const BuildThread *target, uint32_t own_tid)
{
	uint32_t number = map_get(&builder->target_of_own_tid, own_key(target, own_tid));
	const BuildThread *other;

	if (target->process == INDEX_NONE || number == MAP_NONE)
		return THREAD_NONE;
	other = builder->targets.items[number];
	return other == target || other->ended || other->process != target->process
		       ? THREAD_NONE
		       : other->thread.task;
}

/* A thread of any process, if both are only in the initial PID namespace. */
static uint32_t task_of_any_process(const TimelineBuilder *builder, const BuildThread *target,
				    uint32_t tid)
{
	uint32_t number = map_get(&builder->target_of_tid, tid);
	const BuildThread *other;

	if (target->own_tid != target->thread.tid || number == MAP_NONE)
		return THREAD_NONE;
	other = builder->targets.items[number];
	return other == target || other->ended || other->own_tid != tid ? THREAD_NONE
									: other->thread.task;
}

uint32_t tasks_lock_holder(TimelineBuilder *builder, const BuildThread *target, uint32_t own_tid,
			   bool shared)
{
	uint32_t task = tasks_of_process(builder, target, own_tid);

	return task == THREAD_NONE && shared ? task_of_any_process(builder, target, own_tid) : task;
}

bool tasks_only_thread(const TimelineBuilder *builder, const BuildThread *target)
{
	const BuildProcess *process = process_of(builder, target);

	return builder->start_known && !builder->timeline->attached && process &&
	       process->alive == 1;
}
