/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-repeat CAPTURE OUT EVENTS: writes a long capture of a short one, for measurements of the
 * export. It has at least so many events.
 *
 * Two moments of the capture are searched, as far apart as possible, between which no thread began,
 * ended or executed a program, and at which each thread and each CPU is in the same state. The
 * switches, wakeups and samples between the two are repeated, with their times shifted and their
 * switch counts continued. So the chains of the long capture are as complete as those of the short
 * one. Everything else is there once.
 */
#include "capture.h"
#include "record_info.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

enum state {
	STATE_NONE,
	STATE_ON_CPU,
	STATE_QUEUED,
	STATE_ASLEEP,
	STATE_WOKEN = 4, /* a flag: a wakeup has come before the thread sleeps */
};

typedef struct State {
	uint32_t tid;
	uint64_t value;
	uint16_t switches; /* between the two moments; the low 16 bits, as in the records */
} State;

typedef struct Moment {
	uint64_t ns;
	uint64_t events; /* repeatable ones before it */
} Moment;

typedef struct Repeat {
	VEC(State) states;
	Map state_of_tid;
	uint64_t hash;	  /* over all states */
	uint64_t changes; /* births, ends and so on */
	Map moment_of_hash;
	VEC(Moment) moments;
	uint64_t events;
	Moment from, to;
	VEC(struct record *) middle, tail, closing;
	CaptureWriter *out;
	uint64_t times;
	uint64_t counts[256]; /* of the middle, by kind */
} Repeat;

static void fail(const char *what, int error)
{
	fprintf(stderr, "bench-repeat: %s failed: %s\n", what, strerror(-error));
	exit(1);
}

static State *state_of(Repeat *repeat, uint32_t tid)
{
	uint32_t index = map_get(&repeat->state_of_tid, tid);

	if (index != MAP_NONE)
		return &repeat->states.items[index];
	map_set(&repeat->state_of_tid, tid, repeat->states.count);
	*vec_push(&repeat->states) = (State){.tid = tid};
	return &repeat->states.items[repeat->states.count - 1];
}

static void set_state(Repeat *repeat, uint32_t tid, uint64_t value)
{
	State *state = state_of(repeat, tid);

	if (state->value)
		repeat->hash ^= hash_mix(tid, state->value);
	state->value = value;
	if (value)
		repeat->hash ^= hash_mix(tid, value);
}

static uint64_t state_on(enum state state, const struct record *record)
{
	return (uint64_t)(record->cpu + 1) << 8 | state;
}

static void note_moment(Repeat *repeat, uint64_t ns)
{
	uint64_t key = hash_mix(repeat->hash, repeat->changes);
	uint32_t index = map_get(&repeat->moment_of_hash, key);

	if (index == MAP_NONE) {
		map_set(&repeat->moment_of_hash, key, repeat->moments.count);
		*vec_push(&repeat->moments) = (Moment){.ns = ns, .events = repeat->events};
	} else if (ns - repeat->moments.items[index].ns > repeat->to.ns - repeat->from.ns) {
		repeat->from = repeat->moments.items[index];
		repeat->to = (Moment){.ns = ns, .events = repeat->events};
	}
}

static bool is_repeatable(const struct record *record)
{
	return record->kind == REC_SWITCH || record->kind == REC_WAKING ||
	       record->kind == REC_SAMPLE;
}

static void follow_switch(Repeat *repeat, const struct rec_switch *record)
{
	if (record->h.flags & SWITCH_PREV) {
		uint64_t woken = state_of(repeat, record->prev_tid)->value & STATE_WOKEN;
		enum state state = record->prev_state ? STATE_ASLEEP : STATE_QUEUED;

		set_state(repeat, record->prev_tid, state_on(state | woken, &record->h));
	}
	if (record->h.flags & SWITCH_NEXT)
		set_state(repeat, record->next_tid, state_on(STATE_ON_CPU, &record->h));
	note_moment(repeat, record->h.ns);
}

/* Follows the states of the threads, in order of time. */
static void follow(Repeat *repeat, const struct record *record)
{
	repeat->events += is_repeatable(record);
	switch (record->kind) {
	case REC_SWITCH:
		follow_switch(repeat, (const struct rec_switch *)record);
		break;
	case REC_WAKING: {
		uint32_t tid = ((const struct rec_waking *)record)->tid;
		uint64_t value = state_of(repeat, tid)->value;

		set_state(repeat, tid, value | STATE_WOKEN);
		break;
	}
	case REC_TASK:
		/* A description of a non-target changes nothing. */
		repeat->changes += !(record->flags & TASK_NON_TARGET);
		break;
	case REC_EXEC:
	case REC_EXIT:
	case REC_STATS:
	case REC_SNAPSHOT:
	case REC_LOSS:
		repeat->changes++;
		break;
	}
}

static void find_moments(Repeat *repeat, CaptureReader *reader)
{
	const struct record *record;
	int got;

	while ((got = capture_read_sorted(reader, &record)) > 0)
		if (record_is_event(record))
			follow(repeat, record);
	if (got < 0)
		fail("reading the capture", got);
	if (repeat->to.ns == 0) {
		fprintf(stderr, "bench-repeat: no part of the capture can be repeated\n");
		exit(1);
	}
	capture_reader_rewind(reader);
}

static void put(Repeat *repeat, const struct record *record)
{
	int error = capture_write(repeat->out, record);

	if (error)
		fail("writing", error);
}

static struct record *copy(const struct record *record)
{
	return memcpy(xmalloc(record->len), record, record->len);
}

static void count_switches(Repeat *repeat, const struct record *record)
{
	const struct rec_switch *sw = (const struct rec_switch *)record;

	/* Both the switch-out and the switch-in of a switch have its number. */
	if (record->kind == REC_SWITCH && record->flags & SWITCH_PREV)
		state_of(repeat, sw->prev_tid)->switches++;
}

static bool is_closing(const struct record *record)
{
	return record->kind == REC_TOTAL || record->kind == REC_END ||
	       (record->kind == REC_WINDOW && record->flags & WINDOW_END);
}

static void keep(Repeat *repeat, const struct record *record)
{
	bool timed = record_is_event(record) || record->kind == REC_WATERMARK;

	if (is_closing(record)) {
		*vec_push(&repeat->closing) = copy(record);
	} else if (!timed || record->ns <= repeat->from.ns) {
		put(repeat, record);
	} else if (record->ns > repeat->to.ns) {
		*vec_push(&repeat->tail) = copy(record);
	} else {
		*vec_push(&repeat->middle) = copy(record);
		repeat->counts[record->kind] += is_repeatable(record);
		count_switches(repeat, record);
	}
}

/* Adds the number of switches that repeated parts before have, so that none seems to be missing. */
static void shift_switch(Repeat *repeat, struct rec_switch *record, uint64_t round)
{
	if (record->h.flags & SWITCH_PREV)
		record->prev_seq += round * state_of(repeat, record->prev_tid)->switches;
	if (record->h.flags & SWITCH_NEXT)
		record->next_seq += round * state_of(repeat, record->next_tid)->switches;
}

static void put_shifted(Repeat *repeat, const struct record *record, uint64_t round)
{
	_cleanup_free_ struct record *shifted = copy(record);

	shifted->ns += round * (repeat->to.ns - repeat->from.ns);
	if (record->kind == REC_SWITCH)
		shift_switch(repeat, (struct rec_switch *)shifted, round);
	else if (record->kind == REC_SNAPSHOT)
		((struct rec_snapshot *)shifted)->ns_after += shifted->ns - record->ns;
	else if (record->kind == REC_WINDOW)
		((struct rec_window *)shifted)->realtime_ns += shifted->ns - record->ns;
	put(repeat, shifted);
}

static void put_middle(Repeat *repeat)
{
	for (uint64_t round = 0; round < repeat->times; round++)
		for (size_t i = 0; i < repeat->middle.count; i++) {
			const struct record *record = repeat->middle.items[i];

			if (round == 0 || is_repeatable(record) || record->kind == REC_WATERMARK)
				put_shifted(repeat, record, round);
		}
}

static void put_end(Repeat *repeat)
{
	uint64_t more = repeat->times - 1;

	for (size_t i = 0; i < repeat->tail.count; i++)
		put_shifted(repeat, repeat->tail.items[i], more);
	for (size_t i = 0; i < repeat->closing.count; i++) {
		struct record *record = repeat->closing.items[i];
		struct rec_total *total = (struct rec_total *)record;

		if (record->kind == REC_TOTAL && total->counted_kind < ARRAY_LEN(repeat->counts))
			total->sent += more * repeat->counts[total->counted_kind];
		put_shifted(repeat, record, more);
	}
}

static void write_long(Repeat *repeat, CaptureReader *reader, uint64_t events)
{
	uint64_t each = repeat->to.events - repeat->from.events;
	const struct record *record;
	int got;

	repeat->times =
		events > repeat->events ? (events - repeat->events + each - 1) / each + 1 : 1;
	while ((got = capture_read(reader, &record)) > 0)
		keep(repeat, record);
	if (got < 0)
		fail("reading the capture", got);
	put_middle(repeat);
	put_end(repeat);
	printf("%" PRIu64 " events, %.1f s\n", repeat->events + (repeat->times - 1) * each,
	       repeat->times * (repeat->to.ns - repeat->from.ns) / 1e9);
}

int main(int argc, char **argv)
{
	Repeat repeat = {};
	CaptureReader *reader;
	const char *message = NULL;
	uint64_t events;
	int error, fd;

	if (argc != 4 || parse_u64(argv[3], &events)) {
		fprintf(stderr, "usage: bench-repeat CAPTURE OUT EVENTS\n");
		return 2;
	}
	error = capture_reader_open(argv[1], &reader, &message);
	if (error)
		fail("opening the capture", error);
	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		fail("opening the output", -errno);
	error = capture_writer_new(fd, 1, 0, &repeat.out);
	if (error)
		fail("writing", error);
	find_moments(&repeat, reader);
	write_long(&repeat, reader, events);
	error = capture_writer_close(repeat.out);
	if (error)
		fail("writing", error);
	return 0;
}
