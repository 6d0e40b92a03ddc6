/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is carried on of events that are let go: from it and those that are kept, the timeline of
 * the window is what it is from all of them.
 */
#include "flight_carry.h"
#include "make_record.h"
#include "timeline.h"
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
	} threads[THREADS];
	uint64_t ns;
} Model;

static void push(Model *model, void *record)
{
	((struct record *)record)->ns = model->ns;
	*vec_push(&model->records) = record;
}

static void is_born(Model *model, uint32_t i)
{
	struct rec_task *task = (struct rec_task *)make_task(100 + i, 100 + i, 0);
	struct rec_waking *waking = (struct rec_waking *)make_waking(0, 100 + i, 1);

	task->h.flags = TASK_BIRTH;
	task->start_boottime = model->ns;
	snprintf(task->comm, COMM_LEN, "t%u", i);
	push(model, task);
	waking->h.flags = WAKING_NEW;
	push(model, waking);
	model->threads[i].seq = 0;
	model->threads[i].doing = DOING_WANT;
}

/* Of a thread that runs already, asleep; its stack is not known yet. */
static void is_found(Model *model, uint32_t i)
{
	struct rec_snapshot *snapshot = make_record(REC_SNAPSHOT, 0, 0, sizeof(*snapshot), NULL, 0);
	struct rec_task *task = (struct rec_task *)make_task(100 + i, 100 + i, 0);

	snprintf(task->comm, COMM_LEN, "t%u", i);
	push(model, task);
	model->threads[i].seq = random() % 1000;
	model->threads[i].doing = DOING_WAIT;
	snapshot->tid = 100 + i;
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
		record->next_tid = 100 + i;
		record->next_seq = model->threads[i].seq;
	} else {
		record->prev_tid = 100 + i;
		record->prev_seq = ++model->threads[i].seq;
	}
	push(model, record);
}

/* Asleep, with a stack that its switch-out had not; or just before that, when it is somebody
 * else's. */
static void is_looked_at(Model *model, uint32_t i)
{
	struct rec_snapshot *record = make_record(REC_SNAPSHOT, 0, 0, sizeof(*record), NULL, 0);

	record->tid = 100 + i;
	record->seq = model->threads[i].seq - (random() % 3 == 0);
	record->state = 1;
	record->ustack = 7 + i;
	push(model, record);
}

static void ends(Model *model, uint32_t i)
{
	struct rec_exit *exit = make_record(REC_EXIT, 0, 0, sizeof(*exit), NULL, 0);

	exit->tid = 100 + i;
	exit->tgid = 100 + i;
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
		push(model, make_waking(0, 100 + i, 100 + random() % THREADS));
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

/* The window begins at record `cut`; what comes before it is carried, or told. */
static Timeline *make_timeline(const Model *model, size_t cut, bool carried)
{
	TimelineBuilder *builder = timeline_builder_new();
	FlightCarry *carry = flight_carry_new();

	for (size_t i = 0; i < cut; i++) {
		if (carried)
			flight_carry_take(carry, model->records.items[i]);
		else
			timeline_builder_add(builder, model->records.items[i]);
	}
	assert_int_equal(flight_carry_write(carry, 0, add, builder), 0);
	flight_carry_free(carry);
	add_window(builder, WINDOW_START, model->records.items[cut]->ns - STEP_NS / 2);
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

static size_t compare_one(unsigned int seed, size_t forgotten)
{
	Model model = {.ns = NSEC_PER_SEC};
	Timeline *whole, *carried;
	size_t cut, found;

	srandom(seed);
	for (uint32_t i = 0; i < THREADS / 3; i++)
		is_found(&model, i);
	for (size_t i = 0; i < EVENTS; i++)
		step(&model);
	cut = 50 + random() % (model.records.count - 100);
	/* Records of one moment stay together. */
	while (model.records.items[cut]->ns == model.records.items[cut - 1]->ns)
		cut++;
	whole = make_timeline(&model, cut, false);
	if (forgotten)
		model.records.items[cut - forgotten]->kind = REC_NONE;
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
		if (compare_one(seed, 0) > 0)
			fail_msg("seed %u: %zu threads differ", seed, compare_one(seed, 0));
}

/* The comparison itself: a record that is not carried is missed. */
static void test_forgotten(void **state)
{
	(void)state;
	size_t seen = 0;

	for (unsigned int seed = 1; seed <= 50; seed++)
		seen += compare_one(seed, 1) > 0;
	assert_in_range(seen, 40, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
