/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flight_carry.c - keeps the last records of each thread, unchanged.
 *
 * All kept records come through one ring, in which the records of a thread are in order: the thread
 * is switched in only after its switch-out was sent. A wakeup, and what the task iterator finds,
 * may arrive slightly late, so their times are compared.
 *
 * Of losses, the end of the last one of each kind is enough: a state before it is unproven from its
 * start on, and the window begins after all of them.
 */
#include "flight_carry.h"
#include "util.h"
#include <string.h>

#define STATE_DEAD 0x80 /* TASK_DEAD of include/linux/sched.h */

/* The kinds of kept records. Those with equal times are written in this order. */
enum carried {
	CARRIED_TASK,	/* the last REC_TASK */
	CARRIED_EXEC,	/* the last REC_EXEC, of a leader */
	CARRIED_ARGS,	/* the last REC_ARGS, of a leader */
	CARRIED_BEFORE, /* the record before a switch-out: since when the thread ran */
	CARRIED_EARLY,	/* the wakeup between the two, if any */
	CARRIED_STATE,	/* REC_SNAPSHOT, or this thread's side of the last REC_SWITCH */
	CARRIED_WAKING,
	CARRIED_COUNT,
};

typedef struct CarriedThread {
	uint32_t tid;
	struct record *records[CARRIED_COUNT]; /* or NULL */
	uint64_t last_ns;		       /* the latest time of all its records */
	uint64_t ended_ns;		       /* when the last thread with this tid ended, or 0 */
	uint64_t found_dead_ns;		       /* when the thread was found not to exist, or 0 */
	uint64_t others_ended_ns; /* leaders only: the other threads of the process that were last
				     seen earlier have ended */
} CarriedThread;

enum lost { LOST_SWITCH, LOST_WAKING, LOST_COUNT };

struct FlightCarry {
	Map tids; /* tid -> index in threads */
	VEC(CarriedThread) threads;
	uint64_t lost_ns[LOST_COUNT]; /* the end of the last loss, or 0 */
};

FlightCarry *flight_carry_new(void)
{
	return xcalloc(1, sizeof(FlightCarry));
}

static void forget(CarriedThread *thread, enum carried what)
{
	free(thread->records[what]);
	thread->records[what] = NULL;
}

static void forget_all(CarriedThread *thread)
{
	for (enum carried what = 0; what < CARRIED_COUNT; what++)
		forget(thread, what);
}

static void drop_states(CarriedThread *thread)
{
	for (enum carried what = CARRIED_BEFORE; what <= CARRIED_WAKING; what++)
		forget(thread, what);
}

void flight_carry_free(FlightCarry *carry)
{
	if (!carry)
		return;
	for (size_t i = 0; i < carry->threads.count; i++)
		forget_all(&carry->threads.items[i]);
	vec_free(&carry->threads);
	map_free(&carry->tids);
	free(carry);
}

static CarriedThread *carried_thread(FlightCarry *carry, uint32_t tid)
{
	uint32_t index = map_get(&carry->tids, tid);

	if (index == MAP_NONE) {
		index = carry->threads.count;
		map_set(&carry->tids, tid, index);
		*vec_push(&carry->threads) = (CarriedThread){.tid = tid};
	}
	return &carry->threads.items[index];
}

static const struct rec_task *carried_task(const CarriedThread *thread)
{
	return (const struct rec_task *)thread->records[CARRIED_TASK];
}

/* Keeps a copy of the record's first length bytes and returns it. */
static struct record *keep(CarriedThread *thread, enum carried what, const struct record *record,
			   size_t length)
{
	struct record *kept = xrealloc(thread->records[what], length);

	memcpy(kept, record, length);
	kept->len = length;
	thread->records[what] = kept;
	thread->last_ns = MAX(thread->last_ns, record->ns);
	thread->found_dead_ns = 0;
	return kept;
}

static void move(CarriedThread *thread, enum carried from, enum carried to)
{
	forget(thread, to);
	thread->records[to] = thread->records[from];
	thread->records[from] = NULL;
}

/* ---- records ------------------------------------------------------------------- */

static void end_thread(CarriedThread *thread, uint64_t ns)
{
	forget_all(thread);
	thread->ended_ns = ns;
}

/*
 * Clears what the record says about the time since its CPU's previous switch: that switch no longer
 * has a record, and this record may get another timestamp.
 */
static void clear_cpu_fields(struct rec_switch *record)
{
	record->own_in = record->own_run = 0;
	record->interrupts_ns = record->stolen_ns = 0;
	record->complete_for = record->moved_before = 0;
	record->parts &= ~SWITCH_MOVED_REPEATEDLY;
}

static void carry_switch_out(CarriedThread *thread, const struct rec_switch *record)
{
	struct rec_switch *kept;

	if (record->prev_state & STATE_DEAD && !(record->h.flags & SWITCH_PREEMPT)) {
		end_thread(thread, record->h.ns);
		return;
	}
	move(thread, CARRIED_STATE, CARRIED_BEFORE);
	move(thread, CARRIED_WAKING, CARRIED_EARLY);
	kept = (struct rec_switch *)keep(thread, CARRIED_STATE, &record->h, record->h.len);
	kept->h.flags &= ~SWITCH_NEXT;
	clear_cpu_fields(kept);
}

static void keep_switch_in(CarriedThread *thread, const struct rec_switch *record)
{
	struct rec_switch *kept =
		(struct rec_switch *)keep(thread, CARRIED_STATE, &record->h, SWITCH_SHORT_LEN);

	kept->h.flags &= SWITCH_NEXT;
	kept->parts = 0;
	clear_cpu_fields(kept);
}

static void carry_switch(FlightCarry *carry, const struct rec_switch *record)
{
	if (record->h.flags & SWITCH_PREV) /* then it has the part as well (capture_check.c) */
		carry_switch_out(carried_thread(carry, record->prev_tid), record);
	if (record->h.flags & SWITCH_NEXT) {
		CarriedThread *thread = carried_thread(carry, record->next_tid);

		drop_states(thread);
		keep_switch_in(thread, record);
	}
}

/*
 * The first wakeup ends a wait; of wakeups while the thread runs, the last one counts
 * (timeline_chain.c).
 */
static void carry_waking(FlightCarry *carry, const struct rec_waking *record)
{
	CarriedThread *thread = carried_thread(carry, record->tid);
	const struct record *state = thread->records[CARRIED_STATE];
	const struct record *before = thread->records[CARRIED_BEFORE];
	bool runs = state && state->kind == REC_SWITCH && state->flags & SWITCH_NEXT;

	if (record->h.ns <= thread->ended_ns)
		return;
	if (state && record->h.ns < state->ns) {
		if (before && record->h.ns >= before->ns)
			keep(thread, CARRIED_EARLY, &record->h, record->h.len);
	} else if (runs || !thread->records[CARRIED_WAKING]) {
		keep(thread, CARRIED_WAKING, &record->h, record->h.len);
	}
}

/*
 * Returns whether the thread may be the one that began at that time. Either time may be unknown
 * (0).
 */
static bool is_same_thread(const CarriedThread *thread, uint64_t start_boottime)
{
	const struct rec_task *task = carried_task(thread);

	return !task || !task->start_boottime || !start_boottime ||
	       task->start_boottime == start_boottime;
}

static void end_other_threads(FlightCarry *carry, uint32_t tgid, uint64_t ns)
{
	CarriedThread *leader = carried_thread(carry, tgid);

	leader->others_ended_ns = MAX(leader->others_ended_ns, ns);
}

/* Keeps the list of the process that forked this one at that time. */
static void inherit_args(CarriedThread *leader, const struct record *parents, uint64_t birth_ns)
{
	struct rec_args *args =
		(struct rec_args *)keep(leader, CARRIED_ARGS, parents, parents->len);

	args->tgid = leader->tid;
	args->h.ns = birth_ns;
	args->h.flags |= ARGS_INHERITED;
}

/* Returns when the process was forked, if it has executed nothing since; else 0. */
static uint64_t fork_ns(const CarriedThread *leader)
{
	const struct record *task = leader->records[CARRIED_TASK];
	const struct record *args = leader->records[CARRIED_ARGS];

	if (args)
		return args->flags & ARGS_INHERITED ? args->ns : 0;
	return task && task->flags & TASK_BIRTH ? task->ns : 0;
}

/*
 * The list comes through another ring than the births: the process may have forked others since
 * whose births are known.
 */
static void carry_args(FlightCarry *carry, const struct rec_args *record)
{
	CarriedThread *leader = carried_thread(carry, record->tgid);

	if (record->h.ns <= leader->ended_ns)
		return;
	keep(leader, CARRIED_ARGS, &record->h, record->h.len);
	for (size_t i = 0; i < carry->threads.count; i++) {
		CarriedThread *child = &carry->threads.items[i];
		const struct rec_task *task = carried_task(child);

		if (task && task->tid == task->tgid && task->parent_tgid == record->tgid &&
		    fork_ns(child) > record->h.ns)
			inherit_args(child, &record->h, fork_ns(child));
	}
}

/* A reused tid belongs to another thread, so all older records are forgotten. */
static void carry_task(FlightCarry *carry, const struct rec_task *record)
{
	CarriedThread *thread = carried_thread(carry, record->tid);
	bool birth = record->h.flags & TASK_BIRTH;
	const struct record *parents;

	if (!birth && record->h.ns <= thread->ended_ns)
		return;
	if (birth || !is_same_thread(thread, record->start_boottime))
		forget_all(thread);
	if (birth)
		thread->ended_ns = 0;
	keep(thread, CARRIED_TASK, &record->h, record->h.len);
	if (!birth || record->tid != record->tgid)
		return;
	end_other_threads(carry, record->tgid, record->h.ns);
	parents = carried_thread(carry, record->parent_tgid)->records[CARRIED_ARGS];
	if (parents && parents->ns < record->h.ns)
		inherit_args(carried_thread(carry, record->tgid), parents, record->h.ns);
}

/* A non-leader that calls exec continues with the leader's tid. */
static void carry_exec(FlightCarry *carry, const struct rec_exec *record)
{
	if (record->old_tid && record->old_tid != record->tid) {
		/* Its last switch now belongs to the leader. */
		forget_all(carried_thread(carry, record->old_tid));
		drop_states(carried_thread(carry, record->tid));
	}
	keep(carried_thread(carry, record->tid), CARRIED_EXEC, &record->h, record->h.len);
	end_other_threads(carry, record->tgid, record->h.ns);
}

/* The final switch-out follows, unless it is lost. */
static void carry_exit(FlightCarry *carry, const struct rec_exit *record)
{
	CarriedThread *thread;

	if (record->h.flags & EXIT_GROUP_DEAD &&
	    is_same_thread(carried_thread(carry, record->tgid), record->process_start_boottime))
		end_other_threads(carry, record->tgid, record->h.ns);
	thread = carried_thread(carry, record->tid);
	if (is_same_thread(thread, record->start_boottime))
		end_thread(thread, record->h.ns);
}

/*
 * The second snapshot at the start has the stacks of threads that fell asleep before the tables
 * were ready. One during the recording has those that --budget left out of a long wait.
 */
static void complete_stack(struct record *state, const struct rec_snapshot *record)
{
	struct rec_snapshot *earlier = (struct rec_snapshot *)state;
	struct rec_switch *out = (struct rec_switch *)state;

	if (state->kind == REC_SNAPSHOT) {
		if (!earlier->ustack && earlier->seq == record->seq)
			earlier->ustack = record->ustack;
	} else if (state->flags & SWITCH_PREV && out->prev_seq == record->seq) {
		if (!out->ustack)
			out->ustack = record->ustack;
		if (out->parts & SWITCH_UNSAMPLED)
			out->kstack = record->kstack;
		out->parts &= ~SWITCH_UNSAMPLED;
	}
}

static bool is_first(const struct record *waking)
{
	return waking && waking->flags & WAKING_NEW;
}

/* The state of a new thread is known from its birth on, even if its switches were lost. */
static bool is_newborn(const CarriedThread *thread)
{
	const struct record *task = thread->records[CARRIED_TASK];

	return !thread->records[CARRIED_STATE] &&
	       ((task && task->flags & TASK_BIRTH) || is_first(thread->records[CARRIED_WAKING]));
}

static void carry_snapshot(FlightCarry *carry, const struct rec_snapshot *record)
{
	CarriedThread *thread = carried_thread(carry, record->tid);

	if (record->h.ns <= thread->ended_ns || is_newborn(thread))
		return;
	if (!thread->records[CARRIED_STATE])
		keep(thread, CARRIED_STATE, &record->h, record->h.len);
	else if (!(record->h.flags & SNAPSHOT_END) && !thread->records[CARRIED_WAKING])
		complete_stack(thread->records[CARRIED_STATE], record);
}

static void note_loss(FlightCarry *carry, enum lost kind, uint64_t ns)
{
	carry->lost_ns[kind] = MAX(carry->lost_ns[kind], ns);
}

static void carry_loss(FlightCarry *carry, const struct rec_loss *record)
{
	uint64_t ns = MAX(record->from_ns, record->to_ns);

	if (record->lost_kind == REC_SWITCH)
		note_loss(carry, LOST_SWITCH, ns);
	else if (record->lost_kind == REC_WAKING)
		note_loss(carry, LOST_WAKING, ns);
}

void flight_carry_add_gap(FlightCarry *carry, uint64_t ns)
{
	for (enum lost kind = 0; kind < LOST_COUNT; kind++)
		note_loss(carry, kind, ns);
}

void flight_carry_add(FlightCarry *carry, const struct record *record)
{
	switch (record->kind) {
	case REC_SWITCH:
		return carry_switch(carry, (const struct rec_switch *)record);
	case REC_WAKING:
		return carry_waking(carry, (const struct rec_waking *)record);
	case REC_TASK:
		return carry_task(carry, (const struct rec_task *)record);
	case REC_EXEC:
		return carry_exec(carry, (const struct rec_exec *)record);
	case REC_ARGS:
		return carry_args(carry, (const struct rec_args *)record);
	case REC_EXIT:
		return carry_exit(carry, (const struct rec_exit *)record);
	case REC_SNAPSHOT:
		return carry_snapshot(carry, (const struct rec_snapshot *)record);
	case REC_LOSS:
		return carry_loss(carry, (const struct rec_loss *)record);
	}
}

/* ---- threads that have ended ----------------------------------------------------------------- */

/* Returns whether the thread's exit may have been lost. */
static bool exit_may_be_lost(const FlightCarry *carry, const CarriedThread *thread)
{
	return thread->last_ns <= carry->lost_ns[LOST_SWITCH];
}

void flight_carry_check_alive(FlightCarry *carry, uint64_t now_ns,
			      bool (*is_alive)(uint32_t ns_tid))
{
	for (size_t i = 0; i < carry->threads.count; i++) {
		CarriedThread *thread = &carry->threads.items[i];
		const struct rec_task *task = carried_task(thread);

		if (task && task->ns_tid && !thread->found_dead_ns &&
		    exit_may_be_lost(carry, thread) && !is_alive(task->ns_tid))
			thread->found_dead_ns = now_ns;
	}
}

/*
 * A thread ends by itself, or with its process: by an exec, by the exit of the last thread, or
 * because another process has its ID.
 */
static bool has_ended(FlightCarry *carry, const CarriedThread *thread, uint64_t ns)
{
	const struct rec_task *task = carried_task(thread);
	uint32_t leader = task ? map_get(&carry->tids, task->tgid) : MAP_NONE;

	if (thread->found_dead_ns && thread->found_dead_ns <= ns)
		return true;
	return leader != MAP_NONE && thread->last_ns < carry->threads.items[leader].others_ended_ns;
}

/* An entry is also needed as long as a record before its end may still arrive. */
static bool is_empty(const CarriedThread *thread, uint64_t ns)
{
	for (enum carried what = 0; what < CARRIED_COUNT; what++)
		if (thread->records[what])
			return false;
	return MAX(thread->ended_ns, thread->others_ended_ns) < ns;
}

/* Empty entries are removed, because a long recording would have millions of them. */
static void drop_empty(FlightCarry *carry, uint64_t ns)
{
	size_t count = 0;

	map_free(&carry->tids);
	for (size_t i = 0; i < carry->threads.count; i++) {
		if (is_empty(&carry->threads.items[i], ns))
			continue;
		carry->threads.items[count] = carry->threads.items[i];
		map_set(&carry->tids, carry->threads.items[count].tid, count);
		count++;
	}
	carry->threads.count = count;
}

void flight_carry_drop_ended(FlightCarry *carry, uint64_t ns)
{
	for (size_t i = 0; i < carry->threads.count; i++)
		if (has_ended(carry, &carry->threads.items[i], ns))
			forget_all(&carry->threads.items[i]);
	drop_empty(carry, ns);
}

/* ---- writing ------------------------------------------------------------ */

/* A record and the time by which it is sorted. */
typedef struct TimedRecord {
	struct record *record;
	uint64_t ns;
	enum carried what;
} TimedRecord;

static int compare_times(const void *a, const void *b)
{
	const TimedRecord *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (int)x->what - (int)y->what;
}

typedef VEC(TimedRecord) TimedRecords;

/*
 * Adds a thread's records. An exec must follow a REC_TASK, so a REC_TASK that came after the exec
 * is written before it as well.
 */
static void add_records(TimedRecords *list, const CarriedThread *thread)
{
	struct record *task = thread->records[CARRIED_TASK], *exec = thread->records[CARRIED_EXEC];

	/* If the thread ran after its birth, its states since the birth are not known. */
	if (task && thread->records[CARRIED_STATE] && !is_first(thread->records[CARRIED_EARLY]))
		task->flags &= ~TASK_BIRTH;
	for (enum carried what = 0; what < CARRIED_COUNT; what++)
		if (thread->records[what])
			*vec_push(list) = (TimedRecord){thread->records[what],
							thread->records[what]->ns, what};
	if (task && exec && task->ns > exec->ns)
		*vec_push(list) = (TimedRecord){task, exec->ns, CARRIED_TASK};
}

/*
 * Returns the time of a record in the output: not before least_ns, and after each loss that it
 * followed.
 */
static uint64_t output_ns(const FlightCarry *carry, uint64_t ns, uint64_t least_ns)
{
	for (enum lost kind = 0; kind < LOST_COUNT; kind++)
		least_ns += carry->lost_ns[kind] && carry->lost_ns[kind] < ns;
	return MAX(ns, least_ns);
}

static int write_losses(const FlightCarry *carry, uint64_t least_ns, RecordSink sink, void *user)
{
	static const uint32_t kinds[] = {[LOST_SWITCH] = REC_SWITCH, [LOST_WAKING] = REC_WAKING};

	for (enum lost kind = 0; kind < LOST_COUNT; kind++) {
		uint64_t ns = output_ns(carry, carry->lost_ns[kind], least_ns);
		struct rec_loss record = {
			.h = {.len = sizeof(record), .kind = REC_LOSS, .ns = ns},
			.lost_kind = kinds[kind],
			.cause = LOSS_RING_FULL,
			.to_ns = ns,
		};
		int error = carry->lost_ns[kind] ? sink(user, &record.h) : 0;

		if (error)
			return error;
	}
	return 0;
}

static int write_at(struct record *record, uint64_t ns, RecordSink sink, void *user)
{
	uint64_t own_ns = record->ns;
	int error;

	record->ns = ns;
	error = sink(user, record);
	record->ns = own_ns;
	return error;
}

int flight_carry_write(const FlightCarry *carry, uint64_t least_ns, RecordSink sink, void *user)
{
	TimedRecords all = {};
	int error = 0;

	for (size_t i = 0; i < carry->threads.count; i++)
		add_records(&all, &carry->threads.items[i]);
	if (all.count > 0)
		qsort(all.items, all.count, sizeof(*all.items), compare_times);
	for (size_t i = 0; i < all.count && !error; i++)
		error = write_at(all.items[i].record, output_ns(carry, all.items[i].ns, least_ns),
				 sink, user);
	vec_free(&all);
	return error ? error : write_losses(carry, least_ns, sink, user);
}
