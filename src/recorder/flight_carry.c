/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flight_carry.c - keeps of each thread its last records, as they are.
 *
 * All that is kept comes through one ring, where what a thread does comes in its order: it is
 * switched in only after its switch-out was sent. A waking, and what the task iterator finds, may
 * come a little late, so their times are looked at.
 *
 * Of losses the end of the last one of a kind is enough: a state before it is unproven from its
 * begin on, and the window begins after all of them.
 */
#include "flight_carry.h"
#include "util.h"
#include <string.h>

#define STATE_DEAD 0x80 /* include/linux/sched.h: TASK_DEAD */

/* What is carried of a thread; at one time in this order. */
enum carried {
	CARRIED_TASK,	/* REC_TASK, the last one */
	CARRIED_EXEC,	/* REC_EXEC, likewise, of a leader */
	CARRIED_BEFORE, /* before a switch-out: since when it ran */
	CARRIED_EARLY,	/* the waking in between, if any */
	CARRIED_STATE,	/* REC_SNAPSHOT, or the last REC_SWITCH, of which its own side is left */
	CARRIED_WAKING,
	CARRIED_COUNT,
};

typedef struct CarriedThread {
	uint32_t tid;
	struct record *records[CARRIED_COUNT]; /* or NULL */
	uint64_t last_ns;		       /* of all records */
	uint64_t ended_ns;		       /* its number's last thread ended then; or 0 */
	uint64_t found_dead_ns;		       /* it was not there any more; or 0 */
	uint64_t others_ended_ns; /* a leader's: no thread of its process was seen last before */
} CarriedThread;

enum lost { LOST_SWITCH, LOST_WAKING, LOST_COUNT };

struct FlightCarry {
	Map numbers; /* tid -> threads */
	VEC(CarriedThread) threads;
	uint64_t lost_ns[LOST_COUNT]; /* until when any were, the last time; or 0 */
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
	map_free(&carry->numbers);
	free(carry);
}

static CarriedThread *thread_of(FlightCarry *carry, uint32_t tid)
{
	uint32_t number = map_get(&carry->numbers, tid);

	if (number == MAP_NONE) {
		number = carry->threads.count;
		map_set(&carry->numbers, tid, number);
		*vec_push(&carry->threads) = (CarriedThread){.tid = tid};
	}
	return &carry->threads.items[number];
}

static const struct rec_task *carried_task(const CarriedThread *thread)
{
	return (const struct rec_task *)thread->records[CARRIED_TASK];
}

/* A copy of the record's first length bytes. Returns it. */
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
		carry_switch_out(thread_of(carry, record->prev_tid), record);
	if (record->h.flags & SWITCH_NEXT) {
		CarriedThread *thread = thread_of(carry, record->next_tid);

		drop_states(thread);
		keep_switch_in(thread, record);
	}
}

/* The first one ends a wait; of those while it runs the last one counts (timeline_chain.c). */
static void carry_waking(FlightCarry *carry, const struct rec_waking *record)
{
	CarriedThread *thread = thread_of(carry, record->tid);
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

/* Whether a thread that began then, if that is known, can be the one. */
static bool is_it(const CarriedThread *thread, uint64_t start_boottime)
{
	const struct rec_task *task = carried_task(thread);

	return !task || !task->start_boottime || !start_boottime ||
	       task->start_boottime == start_boottime;
}

static void end_other_threads(FlightCarry *carry, uint32_t tgid, uint64_t ns)
{
	CarriedThread *leader = thread_of(carry, tgid);

	leader->others_ended_ns = MAX(leader->others_ended_ns, ns);
}

/* A number that is used again is another thread's, of which all else is to be forgotten. */
static void take_task(FlightCarry *carry, const struct rec_task *record)
{
	CarriedThread *thread = thread_of(carry, record->tid);
	bool birth = record->h.flags & TASK_BIRTH;

	if (!birth && record->h.ns <= thread->ended_ns)
		return;
	if (birth || !is_it(thread, record->start_boottime))
		forget_all(thread);
	if (birth)
		thread->ended_ns = 0;
	keep(thread, CARRIED_TASK, &record->h, record->h.len);
	if (birth && record->tid == record->tgid)
		end_other_threads(carry, record->tgid, record->h.ns);
}

/* A thread that was not the leader goes on under the leader's number. */
static void take_exec(FlightCarry *carry, const struct rec_exec *record)
{
	if (record->old_tid && record->old_tid != record->tid) {
		/* Its last switch, out or in, is the leader's now. */
		forget_all(thread_of(carry, record->old_tid));
		drop_states(thread_of(carry, record->tid));
	}
	keep(thread_of(carry, record->tid), CARRIED_EXEC, &record->h, record->h.len);
	end_other_threads(carry, record->tgid, record->h.ns);
}

/* The final switch-out comes just behind, if it is not lost. */
static void take_exit(FlightCarry *carry, const struct rec_exit *record)
{
	CarriedThread *thread;

	if (record->h.flags & EXIT_GROUP_DEAD &&
	    is_it(thread_of(carry, record->tgid), record->process_start_boottime))
		end_other_threads(carry, record->tgid, record->h.ns);
	thread = thread_of(carry, record->tid);
	if (is_it(thread, record->start_boottime))
		end_thread(thread, record->h.ns);
}

/* The second snapshot at the start has the stack of who fell asleep before there were tables. */
static void complete_stack(struct record *state, const struct rec_snapshot *record)
{
	struct rec_snapshot *earlier = (struct rec_snapshot *)state;
	struct rec_switch *out = (struct rec_switch *)state;

	if (state->kind == REC_SNAPSHOT) {
		if (!earlier->ustack && earlier->seq == record->seq)
			earlier->ustack = record->ustack;
	} else if (state->flags & SWITCH_PREV) {
		if (!out->ustack && out->prev_seq == record->seq)
			out->ustack = record->ustack;
	}
}

static bool is_first(const struct record *waking)
{
	return waking && waking->flags & WAKING_NEW;
}

/* What it does is known from its birth on, be it that its switches were lost. */
static bool is_newborn(const CarriedThread *thread)
{
	const struct record *task = thread->records[CARRIED_TASK];

	return !thread->records[CARRIED_STATE] &&
	       ((task && task->flags & TASK_BIRTH) || is_first(thread->records[CARRIED_WAKING]));
}

static void take_snapshot(FlightCarry *carry, const struct rec_snapshot *record)
{
	CarriedThread *thread = thread_of(carry, record->tid);

	if (record->h.ns <= thread->ended_ns || is_newborn(thread))
		return;
	if (!thread->records[CARRIED_STATE])
		keep(thread, CARRIED_STATE, &record->h, record->h.len);
	else if (!(record->h.flags & SNAPSHOT_END) && !thread->records[CARRIED_WAKING])
		complete_stack(thread->records[CARRIED_STATE], record);
}

static void lose(FlightCarry *carry, enum lost kind, uint64_t ns)
{
	carry->lost_ns[kind] = MAX(carry->lost_ns[kind], ns);
}

static void take_loss(FlightCarry *carry, const struct rec_loss *record)
{
	uint64_t ns = MAX(record->from_ns, record->to_ns);

	if (record->lost_kind == REC_SWITCH)
		lose(carry, LOST_SWITCH, ns);
	else if (record->lost_kind == REC_WAKING)
		lose(carry, LOST_WAKING, ns);
}

void flight_carry_add_gap(FlightCarry *carry, uint64_t ns)
{
	for (enum lost kind = 0; kind < LOST_COUNT; kind++)
		lose(carry, kind, ns);
}

void flight_carry_add(FlightCarry *carry, const struct record *record)
{
	switch (record->kind) {
	case REC_SWITCH:
		return carry_switch(carry, (const struct rec_switch *)record);
	case REC_WAKING:
		return carry_waking(carry, (const struct rec_waking *)record);
	case REC_TASK:
		return take_task(carry, (const struct rec_task *)record);
	case REC_EXEC:
		return take_exec(carry, (const struct rec_exec *)record);
	case REC_EXIT:
		return take_exit(carry, (const struct rec_exit *)record);
	case REC_SNAPSHOT:
		return take_snapshot(carry, (const struct rec_snapshot *)record);
	case REC_LOSS:
		return take_loss(carry, (const struct rec_loss *)record);
	}
}

/* ---- who is left ----------------------------------------------------------------- */

/* Whose exit may be among what was lost. */
static bool exit_may_be_lost(const FlightCarry *carry, const CarriedThread *thread)
{
	return thread->last_ns <= carry->lost_ns[LOST_SWITCH];
}

void flight_carry_check_alive(FlightCarry *carry, uint64_t now_ns, bool (*lives)(uint32_t ns_tid))
{
	for (size_t i = 0; i < carry->threads.count; i++) {
		CarriedThread *thread = &carry->threads.items[i];
		const struct rec_task *task = carried_task(thread);

		if (task && task->ns_tid && !thread->found_dead_ns &&
		    exit_may_be_lost(carry, thread) && !lives(task->ns_tid))
			thread->found_dead_ns = now_ns;
	}
}

/* By itself, or with its process: by an exec, the exit of the last thread, or another's begin. */
static bool has_ended(FlightCarry *carry, const CarriedThread *thread, uint64_t ns)
{
	const struct rec_task *task = carried_task(thread);
	uint32_t leader = task ? map_get(&carry->numbers, task->tgid) : MAP_NONE;

	if (thread->found_dead_ns && thread->found_dead_ns <= ns)
		return true;
	return leader != MAP_NONE && thread->last_ns < carry->threads.items[leader].others_ended_ns;
}

/* Nor is anything to come that an end before ns has to be held against. */
static bool is_empty(const CarriedThread *thread, uint64_t ns)
{
	for (enum carried what = 0; what < CARRIED_COUNT; what++)
		if (thread->records[what])
			return false;
	return MAX(thread->ended_ns, thread->others_ended_ns) < ns;
}

/* The numbers that are free are forgotten, too: they would come to millions in the end. */
static void drop_empty(FlightCarry *carry, uint64_t ns)
{
	size_t count = 0;

	map_free(&carry->numbers);
	for (size_t i = 0; i < carry->threads.count; i++) {
		if (is_empty(&carry->threads.items[i], ns))
			continue;
		carry->threads.items[count] = carry->threads.items[i];
		map_set(&carry->numbers, carry->threads.items[count].tid, count);
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

/* ---- what is handed on ------------------------------------------------------------ */

/* A record in its place. */
typedef struct TimedRecord {
	struct record *record;
	uint64_t ns;
	enum carried what;
} TimedRecord;

static int compare_places(const void *a, const void *b)
{
	const TimedRecord *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (int)x->what - (int)y->what;
}

typedef VEC(TimedRecord) TimedRecords;

/* An exec is of a task that is described; a description that came later has a name of its own. */
static void place(TimedRecords *list, const CarriedThread *thread)
{
	struct record *task = thread->records[CARRIED_TASK], *exec = thread->records[CARRIED_EXEC];

	/* Of one that ran since its birth, what it did then is not known any more. */
	if (task && thread->records[CARRIED_STATE] && !is_first(thread->records[CARRIED_EARLY]))
		task->flags &= ~TASK_BIRTH;
	for (enum carried what = 0; what < CARRIED_COUNT; what++)
		if (thread->records[what])
			*vec_push(list) = (TimedRecord){thread->records[what],
							thread->records[what]->ns, what};
	if (task && exec && task->ns > exec->ns)
		*vec_push(list) = (TimedRecord){task, exec->ns, CARRIED_TASK};
}

/* Not older than least_ns; and younger than a loss that it came after. */
static uint64_t output_ns(const FlightCarry *carry, uint64_t ns, uint64_t least_ns)
{
	for (enum lost kind = 0; kind < LOST_COUNT; kind++)
		least_ns += carry->lost_ns[kind] && carry->lost_ns[kind] < ns;
	return MAX(ns, least_ns);
}

static int write_losses(const FlightCarry *carry, uint64_t least_ns, RecordSink sink, void *user)
{
	static const uint32_t kinds[] = {[LOST_SWITCH] = REC_SWITCH, [LOST_WAKING] = REC_WAKING};
	int error = 0;

	for (enum lost kind = 0; kind < LOST_COUNT && !error; kind++) {
		uint64_t ns = output_ns(carry, carry->lost_ns[kind], least_ns);
		struct rec_loss record = {
			.h = {.len = sizeof(record), .kind = REC_LOSS, .ns = ns},
			.lost_kind = kinds[kind],
			.cause = LOSS_RING_FULL,
			.to_ns = ns,
		};

		if (carry->lost_ns[kind])
			error = sink(user, &record.h);
	}
	return error;
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
		place(&all, &carry->threads.items[i]);
	if (all.count > 0)
		qsort(all.items, all.count, sizeof(*all.items), compare_places);
	for (size_t i = 0; i < all.count && !error; i++)
		error = write_at(all.items[i].record, output_ns(carry, all.items[i].ns, least_ns),
				 sink, user);
	vec_free(&all);
	return error ? error : write_losses(carry, least_ns, sink, user);
}
