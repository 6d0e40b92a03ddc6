/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flight_carry.h"
#include "util.h"
#include <string.h>

#define STATE_DEAD 0x80 /* include/linux/sched.h: TASK_DEAD */

/* What is carried of a thread. */
enum carried {
	CARRIED_TASK,  /* REC_TASK, the last one */
	CARRIED_EXEC,  /* REC_EXEC, likewise, of a leader */
	CARRIED_STATE, /* REC_SNAPSHOT, or the last REC_SWITCH, of which its own side is left */
	CARRIED_WAKING,
	CARRIED_COUNT,
};

typedef struct CarriedThread {
	struct record *records[CARRIED_COUNT]; /* or NULL */
} CarriedThread;

struct FlightCarry {
	Map numbers; /* tid -> threads */
	VEC(CarriedThread) threads;
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
		*vec_push(&carry->threads) = (CarriedThread){};
	}
	return &carry->threads.items[number];
}

/* A copy of the record's first length bytes. Returns it. */
static struct record *keep(CarriedThread *thread, enum carried what, const struct record *record,
			   size_t length)
{
	struct record *kept = xmalloc(length);

	memcpy(kept, record, length);
	kept->len = length;
	forget(thread, what);
	thread->records[what] = kept;
	return kept;
}

static void take_switch(FlightCarry *carry, const struct rec_switch *record)
{
	if (record->h.flags & SWITCH_PREV && record->h.len >= SWITCH_OUT_LEN) {
		CarriedThread *thread = thread_of(carry, record->prev_tid);

		if (record->prev_state & STATE_DEAD && !(record->h.flags & SWITCH_PREEMPT)) {
			forget_all(thread);
		} else {
			keep(thread, CARRIED_STATE, &record->h, record->h.len)->flags &=
				~SWITCH_NEXT;
			forget(thread, CARRIED_WAKING);
		}
	}
	if (record->h.flags & SWITCH_NEXT) {
		CarriedThread *thread = thread_of(carry, record->next_tid);

		keep(thread, CARRIED_STATE, &record->h, SWITCH_SHORT_LEN)->flags &= SWITCH_NEXT;
		forget(thread, CARRIED_WAKING);
	}
}

/* A number that is used again is another thread's, of which all else is to be forgotten. */
static void take_task(FlightCarry *carry, const struct rec_task *record)
{
	CarriedThread *thread = thread_of(carry, record->tid);

	if (record->h.flags & TASK_BIRTH)
		forget_all(thread);
	keep(thread, CARRIED_TASK, &record->h, record->h.len);
}

/* A thread that was not the leader goes on under the leader's number. */
static void take_exec(FlightCarry *carry, const struct rec_exec *record)
{
	CarriedThread *thread = thread_of(carry, record->tid);

	if (record->old_tid && record->old_tid != record->tid) {
		/* Its last switch, out or in, is the leader's now. */
		forget_all(thread_of(carry, record->old_tid));
		thread = thread_of(carry, record->tid);
		forget(thread, CARRIED_STATE);
		forget(thread, CARRIED_WAKING);
	}
	keep(thread, CARRIED_EXEC, &record->h, record->h.len);
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

static void take_snapshot(FlightCarry *carry, const struct rec_snapshot *record)
{
	CarriedThread *thread = thread_of(carry, record->tid);

	if (!thread->records[CARRIED_STATE])
		keep(thread, CARRIED_STATE, &record->h, record->h.len);
	else if (!(record->h.flags & SNAPSHOT_END))
		complete_stack(thread->records[CARRIED_STATE], record);
}

void flight_carry_take(FlightCarry *carry, const struct record *record)
{
	switch (record->kind) {
	case REC_SWITCH:
		take_switch(carry, (const struct rec_switch *)record);
		return;
	case REC_WAKING:
		keep(thread_of(carry, ((const struct rec_waking *)record)->tid), CARRIED_WAKING,
		     record, record->len);
		return;
	case REC_TASK:
		take_task(carry, (const struct rec_task *)record);
		return;
	case REC_EXEC:
		take_exec(carry, (const struct rec_exec *)record);
		return;
	case REC_SNAPSHOT:
		take_snapshot(carry, (const struct rec_snapshot *)record);
		return;
	}
}

/* A record in its place. */
typedef struct Placed {
	struct record *record;
	uint64_t ns;
	enum carried what;
} Placed;

static int compare_places(const void *a, const void *b)
{
	const Placed *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (int)x->what - (int)y->what;
}

typedef VEC(Placed) PlacedList;

/* An exec is of a task that is described; a description that came later has a name of its own. */
static void place(PlacedList *list, const CarriedThread *thread)
{
	struct record *task = thread->records[CARRIED_TASK], *exec = thread->records[CARRIED_EXEC];

	/* Of one that ran since its birth, what it did then is not known any more. */
	if (task && thread->records[CARRIED_STATE])
		task->flags &= ~TASK_BIRTH;
	for (enum carried what = 0; what < CARRIED_COUNT; what++)
		if (thread->records[what])
			*vec_push(list) =
				(Placed){thread->records[what], thread->records[what]->ns, what};
	if (task && exec && task->ns > exec->ns)
		*vec_push(list) = (Placed){task, exec->ns, CARRIED_TASK};
}

int flight_carry_write(const FlightCarry *carry, uint64_t least_ns, RecordSink sink, void *user)
{
	PlacedList all = {};
	int error = 0;

	for (size_t i = 0; i < carry->threads.count; i++)
		place(&all, &carry->threads.items[i]);
	if (all.count > 0)
		qsort(all.items, all.count, sizeof(*all.items), compare_places);
	for (size_t i = 0; i < all.count && !error; i++) {
		all.items[i].record->ns = MAX(all.items[i].ns, least_ns);
		error = sink(user, all.items[i].record);
	}
	vec_free(&all);
	return error;
}
