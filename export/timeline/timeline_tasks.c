/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which life of which process a tid means at a moment.
 *
 * A tid may be used again, also while its former owner is still on its way
 * through its last switch; exec by a thread other than the leader hands it the
 * leader's tid, some time before REC_EXEC says so; and the record of a birth may
 * be lost. Records of switches carry a sequence number, which tells whose they
 * are where the tid does not.
 */
#include "timeline_builder.h"
#include <string.h>

/* The final accounts come with the final switch; a later life's come later. */
#define FINAL_STATS_NS (1 * NSEC_PER_MSEC)

#define KTHREADD       2 /* the number of the thread that makes all threads of the kernel */
#define KERNEL_PROCESS "kernel threads"

static BuildThread *target_at(const TimelineBuilder *builder, uint32_t index)
{
	return index == INDEX_NONE ? NULL : builder->lives.items[index];
}

static BuildThread *current_target(const TimelineBuilder *builder, uint32_t tid)
{
	return target_at(builder, map_get(&builder->target_of_tid, tid));
}

static BuildProcess *process_of(const TimelineBuilder *builder, const BuildThread *life)
{
	return life->process == INDEX_NONE ? NULL : &builder->processes.items[life->process];
}

/* ---- tasks: names for wakers ------------------------------------------------ */

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

static void task_describe(Task *task, const struct rec_task *record)
{
	task->ns_tid = record->ns_tid;
	task->ns_tgid = record->ns_tgid;
	task->kernel = record->h.flags & TASK_KTHREAD;
	memcpy(task->comm, record->comm, COMM_LEN - 1);
	task->comm[COMM_LEN - 1] = 0;
}

/* Of a task that is no target, and that only wakers name. */
static void non_target_describe(TimelineBuilder *builder, const struct rec_task *record)
{
	uint32_t index = tasks_reference(builder, record->tid);
	Task *task = &builder->timeline->tasks.items[index];
	bool other = task->comm[0] && strncmp(task->comm, record->comm, COMM_LEN - 1);

	if (task->thread != THREAD_NONE || other)
		index = task_new(builder, record->tid);
	task_describe(&builder->timeline->tasks.items[index], record);
}

/* A life takes over a task that so far only wakers named, or makes one. */
static void target_adopt_task(TimelineBuilder *builder, BuildThread *life)
{
	uint32_t index = tasks_reference(builder, life->thread.tid);
	const Task *task = &builder->timeline->tasks.items[index];

	if (task->thread != THREAD_NONE || task->comm[0])
		index = task_new(builder, life->thread.tid);
	builder->timeline->tasks.items[index].thread = life->index;
	life->thread.task = index;
}

/* ---- lives ------------------------------------------------------------------ */

static void target_leave_process(TimelineBuilder *builder, BuildThread *life)
{
	if (!life->counted)
		return;
	life->counted = false;
	process_of(builder, life)->alive--;
}

void tasks_end(TimelineBuilder *builder, BuildThread *life, uint64_t ns)
{
	life->ended = true;
	life->end_ns = MAX(ns, chain_last(life)->start_ns);
	target_leave_process(builder, life);
}

/* Those that had the number before and whose end was not seen, up to so many. */
#define PREVIOUS_MAX 8

static void link_previous(TimelineBuilder *builder, BuildThread *life, BuildThread *previous)
{
	if (previous && previous->ended)
		previous = target_at(builder, previous->previous);
	if (!previous || previous->previous_count == PREVIOUS_MAX)
		return;
	life->previous = previous->index;
	life->previous_count = previous->previous_count + 1;
}

/* A new life for tid; one that had it and whose end was not seen can't outlive that. */
static BuildThread *target_new(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *life = xcalloc(1, sizeof(*life)), *previous = current_target(builder, tid);

	life->index = builder->lives.count;
	life->thread.tid = tid;
	life->thread.creator = THREAD_NONE;
	life->process = INDEX_NONE;
	life->previous = INDEX_NONE;
	life->first_ns = ns;
	life->limit_ns = NS_NEVER;
	life->early.task = THREAD_NONE;
	life->last_call.syscall = -1;
	if (previous && !previous->ended) {
		previous->limit_ns = MIN(previous->limit_ns, ns);
		target_leave_process(builder, previous);
	}
	link_previous(builder, life, previous);
	*vec_push(&builder->lives) = life;
	map_set(&builder->target_of_tid, tid, life->index);
	target_adopt_task(builder, life);
	return life;
}

/* A life of which nothing is known before ns. */
static BuildThread *target_found(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *life = target_new(builder, tid, ns);

	chain_begin(builder, life, ns, 0);
	return life;
}

static BuildThread *target_born(TimelineBuilder *builder, uint32_t tid, uint64_t ns,
				uint32_t creator)
{
	BuildThread *life = target_new(builder, tid, ns);

	life->born = true;
	chain_begin(builder, life, ns, creator);
	return life;
}

BuildThread *tasks_target(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *life = current_target(builder, tid);

	return life ? life : target_found(builder, tid, ns);
}

/* ---- exec by a thread other than the leader ---------------------------------- */

/* heir goes on under the number of leader, which is no more. */
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
 * The thread that already goes by the number of its dead leader, before its REC_EXEC:
 * the only one left that the record fits.
 */
static BuildThread *exec_find_heir(const TimelineBuilder *builder, const BuildThread *leader,
				   bool (*fits)(const BuildThread *, const SwitchSide *),
				   const SwitchSide *side)
{
	const BuildProcess *process = process_of(builder, leader);
	BuildThread *heir = NULL;

	if (!process || process->group_dead || !leader->thread.is_main)
		return NULL;
	for (size_t i = 0; i < process->lives.count; i++) {
		BuildThread *life = builder->lives.items[process->lives.items[i]];

		if (life == leader || life->ended || life->exiting || !fits(life, side))
			continue;
		if (heir)
			return NULL;
		heir = life;
	}
	return heir;
}

/* ---- whose record is it ------------------------------------------------------ */

/*
 * A former owner of the tid, if one is still on its way out and the switch is its. A hypervisor may
 * keep one on its way for as long as others take to be born and to die under that number. The
 * final switch of each follows its exit at once.
 */
static BuildThread *previous_owner(const TimelineBuilder *builder, const BuildThread *life,
				   const SwitchSide *side)
{
	bool not_of_target = side->dead && !life->exiting;
	BuildThread *previous, *found = NULL;

	if (!not_of_target && chain_fits(life, side))
		return NULL;
	for (previous = target_at(builder, life->previous); previous;
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
	BuildThread *life = tasks_target(builder, side->tid, side->ns), *other;

	other = previous_owner(builder, life, side);
	if (other)
		return other;
	if (life->replaced) {
		/* Still under way after exec took its place. */
		life->replaced = !side->dead;
		return NULL;
	}
	if ((life->exiting || life->ended) && !side->dead && !chain_fits(life, side)) {
		other = exec_find_heir(builder, life, chain_fits, side);
		if (other) {
			exec_adopt_tid(builder, other, life, side->ns);
			return other;
		}
	}
	if (!life->ended)
		return life;
	return side->dead ? NULL : target_found(builder, side->tid, side->ns);
}

BuildThread *tasks_target_waking_new(TimelineBuilder *builder, uint32_t tid, uint64_t ns)
{
	BuildThread *life = current_target(builder, tid);

	if (life && life->born && !life->ended && life->thread.intervals.count == 1)
		return life;
	return target_born(builder, tid, ns, 0);
}

static bool running_on(const BuildThread *life, const SwitchSide *side)
{
	const Interval *last = chain_last(life);

	return last->state == STATE_RUNNING && last->cpu == side->cpu;
}

BuildThread *tasks_target_tick(TimelineBuilder *builder, uint32_t tid, uint16_t cpu, uint64_t ns)
{
	SwitchSide side = {.ns = ns, .tid = tid, .cpu = cpu};
	BuildThread *life = tasks_target(builder, tid, ns), *heir;

	if (!life->ended || life->replaced)
		return life->ended ? NULL : life;
	heir = exec_find_heir(builder, life, running_on, &side);
	if (heir)
		exec_adopt_tid(builder, heir, life, ns);
	return heir;
}

/* ---- processes ---------------------------------------------------------------- */

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
	return process;
}

/* The process of a task just described, made if it is a new one. */
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

static void target_join_process(TimelineBuilder *builder, BuildThread *life,
				const struct rec_task *record)
{
	BuildProcess *process = process_for(builder, record);

	life->process = process - builder->processes.items;
	*vec_push(&process->lives) = life->index;
	if (!life->exiting && !life->ended) {
		life->counted = true;
		process->alive++;
	}
}

static void rename_to(char **name, const char *text, size_t limit)
{
	free(*name);
	*name = xasprintf("%.*s", (int)limit, text);
}

static uint64_t own_key(const BuildThread *life, uint32_t own_tid)
{
	return (uint64_t)life->process << 32 | own_tid;
}

static void target_describe(TimelineBuilder *builder, BuildThread *life,
			    const struct rec_task *record)
{
	bool over = life->exiting || life->ended;
	BuildProcess *process;

	/* Who goes by a dead leader's number is about to exec, and will be named then. */
	if (over && record->h.flags & TASK_RENAME)
		return;
	if (life->process == INDEX_NONE)
		target_join_process(builder, life, record);
	life->described = true;
	life->thread.kernel_only |= record->h.flags & (TASK_KTHREAD | TASK_IO_WORKER);
	if (record->start_boottime)
		life->start_boottime = record->start_boottime;
	life->thread.ns_tid = record->ns_tid;
	life->thread.is_main = record->tid == record->tgid;
	rename_to(&life->thread.name, record->comm, COMM_LEN - 1);
	task_describe(&builder->timeline->tasks.items[life->thread.task], record);
	process = process_of(builder, life);
	if (record->h.flags & TASK_JOINED)
		process->joined_ns = record->h.ns;
	process->exec_id = record->exec_id;
	if (process->kernel)
		rename_to(&process->process.name, KERNEL_PROCESS, strlen(KERNEL_PROCESS));
	else if (life->thread.is_main)
		rename_to(&process->process.name, record->comm, COMM_LEN - 1);
	if (record->own_tid) {
		life->own_tid = record->own_tid;
		map_set(&builder->target_of_own_tid, own_key(life, record->own_tid), life->index);
	}
}

/* ---- records ------------------------------------------------------------------ */

static bool same_start(const BuildThread *life, const struct rec_task *record)
{
	return life->start_boottime && life->start_boottime == record->start_boottime;
}

static bool other_start(const BuildThread *life, const struct rec_task *record)
{
	return life->start_boottime && record->start_boottime &&
	       life->start_boottime != record->start_boottime;
}

static void task_born(TimelineBuilder *builder, const struct rec_task *record)
{
	BuildThread *life = current_target(builder, record->tid);

	if (life && !life->described && record->h.ns <= life->first_ns)
		chain_begin_late(builder, life, record->h.ns, record->creator_tid);
	else if (!life || !same_start(life, record))
		life = target_born(builder, record->tid, record->h.ns, record->creator_tid);
	target_describe(builder, life, record);
}

static void describe(TimelineBuilder *builder, const struct rec_task *record)
{
	BuildThread *life;

	if (record->h.flags & TASK_BIRTH) {
		task_born(builder, record);
		return;
	}
	life = tasks_target(builder, record->tid, record->h.ns);
	/* The number is used again, and the record of the new owner's birth was lost. */
	if (other_start(life, record))
		life = target_found(builder, record->tid, record->h.ns);
	target_describe(builder, life, record);
}

/* Each thread of the kernel is a process to the kernel. To who reads of them they are one. */
static void describe_kernel_thread(TimelineBuilder *builder, const struct rec_task *record)
{
	struct rec_task of_kernel = *record;

	of_kernel.tgid = of_kernel.ns_tgid = KTHREADD;
	describe(builder, &of_kernel);
}

uint64_t tasks_recorded_since(const TimelineBuilder *builder, const BuildThread *life)
{
	const BuildProcess *process = process_of(builder, life);

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
	BuildThread *life = tasks_target(builder, record->tid, record->h.ns);
	BuildProcess *process;

	if (record->old_tid && record->old_tid != record->tid) {
		BuildThread *caller = current_target(builder, record->old_tid);

		/* If it was found out before, the old number means the old leader by now. */
		if (caller && !caller->ended) {
			exec_adopt_tid(builder, caller, life, record->h.ns);
			life = caller;
		}
	}
	rename_to(&life->thread.name, record->comm, COMM_LEN - 1);
	process = process_of(builder, life);
	if (!process)
		return;
	rename_to(&process->process.name, record->comm, COMM_LEN - 1);
	rename_to(&process->process.path, record->path, EXEC_PATH_LEN - 1);
	process->exec_id = record->exec_id;
	/* exec ends the other threads. */
	for (size_t i = 0; i < process->lives.count; i++) {
		BuildThread *other = builder->lives.items[process->lives.items[i]];

		if (other == life || other->ended)
			continue;
		other->limit_ns = MIN(other->limit_ns, record->h.ns);
		target_leave_process(builder, other);
	}
}

/*
 * Whose exit it is: its record comes with its final switch, when another may have its number. If
 * nobody began then, it is the present one's: exec by another thread than the leader gives it the
 * leader's begin (de_thread() in fs/exec.c).
 */
static BuildThread *exit_owner(TimelineBuilder *builder, const struct rec_exit *record)
{
	BuildThread *life = tasks_target(builder, record->tid, record->h.ns), *owner = life;
	uint64_t start = record->parts & EXIT_HAS_STARTS ? record->start_boottime : 0;

	while (owner && start && owner->start_boottime && owner->start_boottime != start)
		owner = target_at(builder, owner->previous);
	return owner ? owner : life;
}

void tasks_exit(TimelineBuilder *builder, const struct rec_exit *record)
{
	BuildThread *life = exit_owner(builder, record);
	BuildProcess *process = process_of(builder, life);

	if (life->ended)
		return;
	life->exiting = true;
	life->exit_ns = record->h.ns;
	life->exit_code = record->exit_code;
	target_leave_process(builder, life);
	if (!process || process->kernel)
		return;
	if (!process->leader_exited)
		process->exit_code = record->exit_code;
	process->leader_exited |= life->thread.is_main;
	if (record->h.flags & EXIT_GROUP_DEAD) {
		process->group_dead = true;
		process->group_dead_ns = record->h.ns;
		process->last_target = life->index;
	}
}

/* The final accounts come just behind exit and final switch; then another may have the number. */
static bool may_be_final(const BuildThread *life, uint64_t ns)
{
	uint64_t end_ns = life->ended ? life->end_ns : life->exit_ns;

	return !life->final_known && (life->ended || life->exiting) && ns < end_ns + FINAL_STATS_NS;
}

static BuildThread *stats_owner(TimelineBuilder *builder, const struct rec_stats *record)
{
	BuildThread *life = tasks_target(builder, record->tid, record->h.ns), *previous;

	if (life->exiting)
		return life;
	for (previous = target_at(builder, life->previous); previous;
	     previous = target_at(builder, previous->previous))
		if (may_be_final(previous, record->h.ns))
			return previous;
	return life;
}

/*
 * What the life had before it is in the timeline. Within the window that is told only of who joined
 * there; of whom a flight recorder has let go the first account is gone, and the next one no base.
 */
static bool is_base(const TimelineBuilder *builder, const BuildThread *life, uint64_t ns)
{
	uint64_t start_ns = builder->timeline->start_ns;

	if (ns <= start_ns || !builder->start_known)
		return true;
	return !life->base_known && !life->born && tasks_recorded_since(builder, life) > start_ns;
}

void tasks_stats(TimelineBuilder *builder, const struct rec_stats *record)
{
	bool has_bytes = record->parts & STATS_HAS_BYTES;
	BuildThread *life = stats_owner(builder, record);
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
	};

	if (is_base(builder, life, record->h.ns)) {
		life->base = account;
		life->base_known = true;
		life->base_ns = record->h.ns;
		life->outside_at_base = life->outside;
	} else {
		life->final = account;
		life->final_known = true;
		life->final_ns = record->h.ns;
		life->outside_at_final = life->outside;
	}
}

uint32_t tasks_of_process(TimelineBuilder *builder, const BuildThread *life, uint32_t own_tid)
{
	uint32_t number = map_get(&builder->target_of_own_tid, own_key(life, own_tid));
	const BuildThread *other;

	if (life->process == INDEX_NONE || number == MAP_NONE)
		return THREAD_NONE;
	other = builder->lives.items[number];
	return other == life || other->ended || other->process != life->process
		       ? THREAD_NONE
		       : other->thread.task;
}

/* A thread of any process, if both are only in the initial PID namespace. */
static uint32_t task_of_any_process(const TimelineBuilder *builder, const BuildThread *life,
				    uint32_t tid)
{
	uint32_t number = map_get(&builder->target_of_tid, tid);
	const BuildThread *other;

	if (life->own_tid != life->thread.tid || number == MAP_NONE)
		return THREAD_NONE;
	other = builder->lives.items[number];
	return other == life || other->ended || other->own_tid != tid ? THREAD_NONE
								      : other->thread.task;
}

uint32_t tasks_lock_holder(TimelineBuilder *builder, const BuildThread *life, uint32_t own_tid,
			   bool shared)
{
	uint32_t task = tasks_of_process(builder, life, own_tid);

	return task == THREAD_NONE && shared ? task_of_any_process(builder, life, own_tid) : task;
}

bool tasks_only_thread(const TimelineBuilder *builder, const BuildThread *life)
{
	const BuildProcess *process = process_of(builder, life);

	return builder->start_known && !builder->timeline->attached && process &&
	       process->alive == 1;
}
