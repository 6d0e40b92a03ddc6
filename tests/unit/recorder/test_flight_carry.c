/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is carried on of events that are let go: from it and those that are kept, the timeline of
 * the window is what it is from all of them.
 */
#include "flight_carry.h"
#include "make_record.h"
#include "timeline_builder.h"
#include <setjmp.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define THREADS 12
#define EVENTS	600
#define STEP_NS 1000000

enum doing { DOING_NOTHING, DOING_RUN, DOING_WAIT, DOING_WANT }; /* not born, … */

typedef struct Model {
	VEC(struct record *) records;
	struct {
		enum doing doing;
		uint16_t seq;
		uint32_t tid;
	} threads[THREADS];
	uint64_t ns;
	bool new_numbers; /* none is used again */
} Model;

static void push(Model *model, void *record)
{
	((struct record *)record)->ns = model->ns;
	*vec_push(&model->records) = record;
}

static void is_born(Model *model, uint32_t i)
{
	uint32_t tid = model->threads[i].tid + (model->new_numbers ? THREADS : 0);
	struct rec_task *task = (struct rec_task *)make_task(tid, tid, 0);
	struct rec_waking *waking = (struct rec_waking *)make_waking(0, tid, 1);

	model->threads[i].tid = tid;
	task->h.flags = TASK_BIRTH;
	task->start_boottime = model->ns;
	snprintf(task->comm, COMM_LEN, "t%u", i);
	push(model, task);
	waking->h.flags = WAKING_NEW;
	push(model, waking);
	model->threads[i].seq = 0;
	model->threads[i].doing = DOING_WANT;
}

/* The snapshot of a thread that sleeps at the start; its stack is not known yet. */
static void is_found(Model *model, uint32_t i)
{
	struct rec_snapshot *snapshot = make_record(REC_SNAPSHOT, 0, 0, sizeof(*snapshot), NULL, 0);
	uint32_t tid = model->threads[i].tid;
	struct rec_task *task = (struct rec_task *)make_task(tid, tid, 0);

	snprintf(task->comm, COMM_LEN, "t%u", i);
	push(model, task);
	model->threads[i].seq = random() % 1000;
	model->threads[i].doing = DOING_WAIT;
	snapshot->tid = tid;
	snapshot->seq = model->threads[i].seq;
	snapshot->state = 1;
	snapshot->syscall = -1;
	push(model, snapshot);
}

static void switches(Model *model, uint32_t i, bool in, uint16_t state)
{
	struct rec_switch *record = make_record(REC_SWITCH, in ? SWITCH_NEXT : SWITCH_PREV, 0,
						sizeof(*record), NULL, 0);

	record->h.cpu = i;
	record->syscall = -1;
	record->prev_state = state;
	record->kstack = 7 + i;
	if (in) {
		record->next_tid = model->threads[i].tid;
		record->next_seq = model->threads[i].seq;
	} else {
		record->prev_tid = model->threads[i].tid;
		record->prev_seq = ++model->threads[i].seq;
	}
	if (!in && random() % 4 == 0) { /* --budget */
		record->parts |= SWITCH_UNSAMPLED;
		record->kstack = 0;
	}
	push(model, record);
}

/* Asleep, with a stack that its switch-out had not; or just before that, when it is another
 * else's. */
static void is_looked_at(Model *model, uint32_t i)
{
	struct rec_snapshot *record = make_record(REC_SNAPSHOT, 0, 0, sizeof(*record), NULL, 0);

	record->tid = model->threads[i].tid;
	record->seq = model->threads[i].seq - (random() % 3 == 0);
	record->state = 1;
	record->ustack = 7 + i;
	record->kstack = 7 + i;
	push(model, record);
}

static void ends(Model *model, uint32_t i)
{
	struct rec_exit *exit = make_record(REC_EXIT, 0, 0, sizeof(*exit), NULL, 0);

	exit->h.flags = EXIT_GROUP_DEAD;
	exit->tid = model->threads[i].tid;
	exit->tgid = model->threads[i].tid;
	push(model, exit);
	switches(model, i, false, 0x80);
	model->threads[i].doing = DOING_NOTHING;
}

static void step(Model *model)
{
	uint32_t i = random() % THREADS;

	model->ns += STEP_NS;
	switch (model->threads[i].doing) {
	case DOING_NOTHING:
		is_born(model, i);
		return;
	case DOING_WANT:
		switches(model, i, true, 0);
		model->threads[i].doing = DOING_RUN;
		return;
	case DOING_WAIT:
		if (random() % 4 == 0) {
			is_looked_at(model, i);
			return;
		}
		push(model, make_waking(0, model->threads[i].tid, 100 + random() % THREADS));
		model->threads[i].doing = DOING_WANT;
		return;
	case DOING_RUN:
		break;
	}
	if (random() % 12 == 0) {
		ends(model, i);
		return;
	}
	model->threads[i].doing = random() % 3 ? DOING_WAIT : DOING_WANT;
	switches(model, i, false, model->threads[i].doing == DOING_WAIT ? 1 : 0);
}

static int add(void *user, const struct record *record)
{
	timeline_builder_add(user, record);
	return 0;
}

static void add_window(TimelineBuilder *builder, uint8_t flags, uint64_t ns)
{
	struct rec_window record = {
		.h = {sizeof(record), REC_WINDOW, flags | WINDOW_ATTACHED, 0, ns}};

	timeline_builder_add(builder, &record.h);
}

/*
 * The window begins at record `cut`; what comes before it is carried, or reported. What is carried
 * is not older than some records before.
 */
static Timeline *make_timeline(const Model *model, size_t cut, bool carried)
{
	TimelineBuilder *builder = timeline_builder_new();
	FlightCarry *carry = flight_carry_new();
	uint64_t start_ns = model->records.items[cut]->ns - STEP_NS / 2;

	for (size_t i = 0; i < cut; i++) {
		if (carried)
			flight_carry_add(carry, model->records.items[i]);
		else
			timeline_builder_add(builder, model->records.items[i]);
	}
	flight_carry_drop_ended(carry, start_ns);
	assert_int_equal(
		flight_carry_write(carry, start_ns - (1 + random() % 40) * STEP_NS, add, builder),
		0);
	flight_carry_free(carry);
	add_window(builder, WINDOW_START, start_ns);
	for (size_t i = cut; i < model->records.count; i++)
		timeline_builder_add(builder, model->records.items[i]);
	add_window(builder, WINDOW_END, model->ns + STEP_NS);
	return timeline_builder_finish(builder);
}

static const Thread *find(const Timeline *timeline, const Thread *like)
{
	for (size_t i = 0; i < timeline->threads.count; i++)
		if (timeline->threads.items[i].tid == like->tid &&
		    timeline->threads.items[i].start_ns == like->start_ns)
			return &timeline->threads.items[i];
	return NULL;
}

static bool same_thread(const Thread *a, const Thread *b)
{
	if (a->end_ns != b->end_ns || a->intervals.count != b->intervals.count ||
	    strcmp(a->name, b->name) != 0 || a->born_in_window != b->born_in_window)
		return false;
	for (size_t i = 0; i < a->intervals.count; i++) {
		const Interval *x = &a->intervals.items[i], *y = &b->intervals.items[i];

		if (x->start_ns != y->start_ns || x->state != y->state || x->cpu != y->cpu ||
		    x->unsampled != y->unsampled ||
		    (x->kernel_stack == STACK_NONE) != (y->kernel_stack == STACK_NONE) ||
		    (x->user_stack == STACK_NONE) != (y->user_stack == STACK_NONE))
			return false;
	}
	return true;
}

/* How many threads are not the same in both. */
static size_t differences(const Timeline *whole, const Timeline *carried)
{
	size_t count = whole->threads.count != carried->threads.count;

	for (size_t i = 0; i < whole->threads.count; i++) {
		const Thread *other = find(carried, &whole->threads.items[i]);

		count += !other || !same_thread(&whole->threads.items[i], other);
	}
	return count;
}

static void model_free(Model *model)
{
	for (size_t i = 0; i < model->records.count; i++)
		free(model->records.items[i]);
	vec_free(&model->records);
}

/* Among the last records those of switches, wakings and exits are lost, and that is reported. */
static void lose(Model *model, size_t count)
{
	static const uint8_t kinds[] = {REC_SWITCH, REC_WAKING, REC_EXIT};
	uint64_t from_ns = model->records.items[model->records.count - count]->ns;

	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
		struct rec_loss *loss = make_record(REC_LOSS, 0, 0, sizeof(*loss), NULL, 0);

		for (size_t i = model->records.count - count; i < model->records.count; i++)
			if (model->records.items[i]->kind == kinds[kind]) {
				model->records.items[i]->kind = REC_NONE;
				loss->count++;
			}
		loss->lost_kind = kinds[kind];
		loss->from_ns = from_ns;
		loss->to_ns = model->ns;
		if (loss->count > 0)
			push(model, loss);
		else
			free(loss);
	}
}

/* No losses are reported any more. */
static void hush(Model *model)
{
	for (size_t i = 0; i < model->records.count; i++)
		if (model->records.items[i]->kind == REC_LOSS)
			model->records.items[i]->kind = REC_NONE;
}

typedef struct Settings {
	size_t forgotten; /* this record before the window is not carried; 0 = all are */
	size_t losses;
	bool hushed; /* they are not carried */
} Settings;

static size_t compare_one(unsigned int seed, Settings settings)
{
	Model model = {.ns = NSEC_PER_SEC, .new_numbers = settings.losses > 0};
	Timeline *whole, *carried;
	size_t cut, found;

	srandom(seed);
	for (uint32_t i = 0; i < THREADS; i++)
		model.threads[i].tid = 100 + i;
	for (uint32_t i = 0; i < THREADS / 3; i++)
		is_found(&model, i);
	for (size_t i = 0; i < EVENTS; i++) {
		step(&model);
		if (settings.losses > 0 && random() % (EVENTS / settings.losses) == 0)
			lose(&model, 1 + random() % MIN(model.records.count, 40));
	}
	cut = 50 + random() % (model.records.count - 100);
	/* Records of one moment stay together. */
	while (model.records.items[cut]->ns == model.records.items[cut - 1]->ns)
		cut++;
	whole = make_timeline(&model, cut, false);
	if (settings.forgotten)
		model.records.items[cut - settings.forgotten]->kind = REC_NONE;
	if (settings.hushed)
		hush(&model);
	carried = make_timeline(&model, cut, true);
	found = differences(whole, carried);
	timeline_free(whole);
	timeline_free(carried);
	model_free(&model);
	return found;
}

static void test_same(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 300; seed++)
		if (compare_one(seed, (Settings){}) > 0)
			fail_msg("seed %u: %zu threads differ", seed,
				 compare_one(seed, (Settings){}));
}

/* With losses before the window no more is known in it than from the whole recording. */
static void test_lost(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 600; seed++) {
		Settings settings = {.losses = 1 + seed % 8};

		if (compare_one(seed, settings) > 0)
			fail_msg("seed %u: %zu threads differ", seed, compare_one(seed, settings));
	}
}

/* The comparison itself: a record that is not carried is missed, and so is a loss. */
static void test_forgotten(void **state)
{
	(void)state;
	size_t seen = 0, seen_lost = 0;

	for (unsigned int seed = 1; seed <= 50; seed++) {
		seen += compare_one(seed, (Settings){.forgotten = 1}) > 0;
		seen_lost += compare_one(seed, (Settings){.losses = 8, .hushed = true}) > 0;
	}
	assert_uint_in_range(seen, 40, 50);
	assert_uint_in_range(seen_lost, 20, 50);
}

/* ---- what is left -------------------------------------------------------------- */

static void take(FlightCarry *carry, void *record, uint64_t ns)
{
	((struct record *)record)->ns = ns;
	flight_carry_add(carry, record);
	free(record);
}

static void take_thread(FlightCarry *carry, uint32_t tid, uint32_t tgid, uint64_t ns)
{
	struct rec_switch *in = make_record(REC_SWITCH, SWITCH_NEXT, 0, sizeof(*in), NULL, 0);

	in->next_tid = tid;
	take(carry, make_task(tid, tgid, tid), ns);
	take(carry, in, ns);
}

static void take_loss(FlightCarry *carry, uint64_t ns)
{
	struct rec_loss *loss = make_record(REC_LOSS, 0, 0, sizeof(*loss), NULL, 0);

	loss->lost_kind = REC_SWITCH;
	loss->count = 1;
	loss->from_ns = loss->to_ns = ns;
	take(carry, loss, ns);
}

static int count_task(void *user, const struct record *record)
{
	*(size_t *)user += record->kind == REC_TASK;
	return 0;
}

static size_t count_left(FlightCarry *carry, uint64_t ns)
{
	size_t count = 0;

	flight_carry_drop_ended(carry, ns);
	assert_int_equal(flight_carry_write(carry, 0, count_task, &count), 0);
	return count;
}

static bool is_alive_but_7(uint32_t ns_tid)
{
	return ns_tid != 7;
}

/* A thread that was seen since is not asked for; one that is gone may be in the kept part. */
static void test_missing(void **state)
{
	FlightCarry *carry = flight_carry_new();

	(void)state;
	take_thread(carry, 6, 6, 100);
	take_thread(carry, 7, 7, 100);
	flight_carry_check_alive(carry, 200, is_alive_but_7);
	assert_int_equal(count_left(carry, 300), 2);
	take_loss(carry, 150);
	flight_carry_check_alive(carry, 200, is_alive_but_7);
	assert_int_equal(count_left(carry, 199), 2);
	take_thread(carry, 7, 7, 180);
	assert_int_equal(count_left(carry, 300), 2);
	take_loss(carry, 190);
	flight_carry_check_alive(carry, 400, is_alive_but_7);
	assert_int_equal(count_left(carry, 399), 2);
	assert_int_equal(count_left(carry, 400), 1);
	flight_carry_free(carry);
}

/* What comes of the threads of process 6 by a record; a thread that begins later goes on. */
static size_t left_of_process(void *record)
{
	FlightCarry *carry = flight_carry_new();
	size_t count;

	take_thread(carry, 6, 6, 100);
	take_thread(carry, 7, 6, 100);
	take_thread(carry, 8, 6, 100);
	take_thread(carry, 9, 9, 100);
	take(carry, record, 200);
	take_thread(carry, 10, 6, 300);
	count = count_left(carry, 400);
	flight_carry_free(carry);
	return count;
}

static void test_process_ends(void **state)
{
	struct rec_exit *exit = make_record(REC_EXIT, 0, 0, sizeof(*exit), NULL, 0);
	struct rec_exit *last = make_record(REC_EXIT, EXIT_GROUP_DEAD, 0, sizeof(*last), NULL, 0);
	struct rec_exec *exec = make_record(REC_EXEC, 0, 0, sizeof(*exec), NULL, 0);
	struct rec_task *again = (struct rec_task *)make_task(6, 6, 6);

	(void)state;
	exit->tid = last->tid = 8;
	exit->tgid = last->tgid = exec->tid = exec->tgid = 6;
	again->h.flags = TASK_BIRTH;
	assert_int_equal(left_of_process(exit), 4);  /* 6, 7, 9, 10 */
	assert_int_equal(left_of_process(last), 2);  /* 9, 10 */
	assert_int_equal(left_of_process(exec), 3);  /* 6, 9, 10 */
	assert_int_equal(left_of_process(again), 3); /* likewise */
}

/* What the recorder itself could not keep is as lost. */
static void test_missed(void **state)
{
	FlightCarry *carry = flight_carry_new();

	(void)state;
	take_thread(carry, 7, 7, 100);
	flight_carry_add_gap(carry, 150);
	flight_carry_check_alive(carry, 200, is_alive_but_7);
	assert_int_equal(count_left(carry, 200), 0);
	flight_carry_free(carry);
}

static int note_args(void *user, const struct record *record)
{
	char *text = user;
	const struct rec_args *args = (const struct rec_args *)record;

	if (record->kind == REC_ARGS)
		sprintf(text + strlen(text), "%u:%.*s%s ", args->tgid, (int)args->size, args->text,
			record->flags & ARGS_INHERITED ? "*" : "");
	return 0;
}

static void take_args(FlightCarry *carry, uint32_t tgid, const char *text, uint64_t ns)
{
	struct rec_args *args = make_record(REC_ARGS, 0, 0, offsetof(struct rec_args, text), text,
					    strlen(text) + 1);

	args->tgid = tgid;
	args->size = strlen(text);
	take(carry, args, ns);
}

/* The last list of each process is kept; a forked one has its parent's. */
static void test_args(void **state)
{
	FlightCarry *carry = flight_carry_new();
	struct rec_exit *exit = make_record(REC_EXIT, EXIT_GROUP_DEAD, 0, sizeof(*exit), NULL, 0);
	char text[100] = "";

	(void)state;
	take_thread(carry, 6, 6, 100);
	take_args(carry, 6, "old", 110);
	take_args(carry, 6, "new", 120);
	for (uint32_t child = 7; child < 10; child++) {
		struct rec_task *task = (struct rec_task *)make_task(child, child, child);

		task->h.flags = TASK_BIRTH;
		task->parent_tgid = child < 9 ? 6 : 5;
		take(carry, task, 130);
	}
	take_args(carry, 8, "own", 140);
	take_args(carry, 6, "newer", 125); /* before the forks, and comes after them */
	take_args(carry, 6, "newest", 135);
	assert_int_equal(flight_carry_write(carry, 0, note_args, text), 0);
	assert_string_equal(text, "7:newer* 6:newest 8:own ");
	*text = '\0';
	exit->tid = exit->tgid = 6;
	take(carry, exit, 150);
	take_args(carry, 6, "late", 145);
	assert_int_equal(flight_carry_write(carry, 0, note_args, text), 0);
	assert_string_equal(text, "7:newer* 8:own ");
	flight_carry_free(carry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),	     cmocka_unit_test(test_lost),
		cmocka_unit_test(test_forgotten),    cmocka_unit_test(test_missing),
		cmocka_unit_test(test_process_ends), cmocka_unit_test(test_missed),
		cmocka_unit_test(test_args),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
