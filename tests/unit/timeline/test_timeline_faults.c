/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page faults over a thread's chain, and what files are called. */
#include "fault_fields.h"
#include "scenario.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define D 0x2 /* TASK_UNINTERRUPTIBLE */

/* A fault from begin to the time of the event. */
static struct rec_fault *make_fault(const Scenario *s, uint32_t tid, int begin, uint8_t flags,
				    uint8_t hook)
{
	struct rec_fault *record = xcalloc(1, sizeof(*record));

	*record = (struct rec_fault){
		.h = {.len = sizeof(*record),
		      .kind = REC_FAULT,
		      .flags = flags,
		      .ns = scenario_ns(s->ms)},
		.tid = tid,
		.start_ns = scenario_ns(begin),
		.address = 0x7000,
		.hook = hook,
	};
	return record;
}

static void give(const Scenario *s, struct rec_fault *record)
{
	timeline_builder_add(s->builder, &record->h);
	free(record);
}

static void of_file(const Scenario *s, uint32_t tid, int begin, uint8_t flags, uint8_t hook)
{
	struct rec_fault *record = make_fault(s, tid, begin, flags, hook);

	record->memory = MEMORY_FILE;
	record->device = 8 << 20 | 1;
	record->inode = 5;
	give(s, record);
}

/* Runs from 0, waits from 3, is woken at 5, and runs from 6 on. */
static void begin_wait(Scenario *s)
{
	scenario_begin(s, 12, false);
	birth(at(s, 0), 20, 20);
	wake_new(at(s, 0), 20, 10);
	in(at(s, 0), 20, 0);
}

/* The kernel counts it as a wait for a disk. */
static void waits_for_disk(Scenario *s)
{
	s->next_out.h.flags |= SWITCH_IOWAIT;
}

static void wait_in_between(Scenario *s)
{
	out(at(s, 3), 20, D);
	wake(at(s, 5), 20, 10);
	in(at(s, 6), 20, 0);
}

static const Interval *the_wait(const Scenario *s)
{
	const Thread *thread = scenario_thread(s, 20, 0);

	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			return &thread->intervals.items[i];
	fail();
	return NULL;
}

static void expect_fault(const Scenario *s, size_t number, int begin, int end, int waited)
{
	const Thread *thread = scenario_thread(s, 20, 0);
	const Fault *fault;

	assert_true(number < thread->faults.count);
	fault = &thread->faults.items[number];
	assert_int_equal(fault->start_ns, scenario_ns(begin));
	assert_int_equal(fault->end_ns, scenario_ns(end));
	assert_int_equal(fault->waited_ns, scenario_ns(waited) - scenario_ns(0));
}

static void test_wait_in_fault(void **state)
{
	Scenario s;

	(void)state;
	begin_wait(&s);
	waits_for_disk(&s);
	wait_in_between(&s);
	of_file(at(&s, 7), 20, 2, FAULT_USER | FAULT_MAJOR | FAULT_SLEPT, FAULT_HOOK_EVENT);
	scenario_finish(&s);
	expect_track(&s, 20, "RRRBBrRRRRRR");
	assert_int_equal(scenario_thread(&s, 20, 0)->faults.count, 1);
	expect_fault(&s, 0, 2, 7, 2);
	assert_int_equal(the_wait(&s)->reason, REASON_FAULT);
	assert_int_equal(the_wait(&s)->rule, RULE_FAULT);
	assert_int_equal(scenario_thread(&s, 20, 0)->reason_ledger[REASON_FAULT],
			 2 * NSEC_PER_MSEC);
	check_thread(s.timeline, scenario_thread(&s, 20, 0));
	scenario_free(&s);
}

/* For the lock of the mappings, say: it is in a fault, and no wait for a disk. */
static void test_lock_in_fault(void **state)
{
	Scenario s;

	(void)state;
	begin_wait(&s);
	wait_in_between(&s);
	of_file(at(&s, 7), 20, 2, FAULT_USER | FAULT_MAJOR | FAULT_SLEPT, FAULT_HOOK_EVENT);
	scenario_finish(&s);
	expect_fault(&s, 0, 2, 7, 2);
	assert_int_equal(the_wait(&s)->reason, REASON_UNINTERRUPTIBLE);
	scenario_free(&s);
}

/* A fault that is reported when it sleeps is not reported again; and without its end, it ends with
 * the wait. */
static void test_sleep_told(void **state)
{
	(void)state;
	for (int end_told = 0; end_told < 2; end_told++) {
		Scenario s;

		begin_wait(&s);
		out(at(&s, 3), 20, D);
		give(&s, make_fault(at(&s, 3), 20, 2, FAULT_USER | FAULT_SLEPT, FAULT_HOOK_SLEEP));
		wake(at(&s, 5), 20, 10);
		in(at(&s, 6), 20, 0);
		if (end_told)
			of_file(at(&s, 8), 20, 2, FAULT_USER | FAULT_SLEPT, FAULT_HOOK_EVENT);
		scenario_finish(&s);
		assert_int_equal(scenario_thread(&s, 20, 0)->faults.count, 1);
		expect_fault(&s, 0, 2, end_told ? 8 : 6, 2);
		/* It is not marked as one for a disk. */
		assert_int_equal(the_wait(&s)->reason, REASON_UNINTERRUPTIBLE);
		scenario_free(&s);
	}
}

/* Memory is waited for in other ways: the wait keeps its own reason, and is in the fault. */
static void test_wait_for_memory(void **state)
{
	Scenario s;
	enum reason reason;

	(void)state;
	begin_wait(&s);
	wait_in_between(&s);
	scenario_finish(&s);
	reason = the_wait(&s)->reason;
	scenario_free(&s);
	begin_wait(&s);
	wait_in_between(&s);
	give(&s, make_fault(at(&s, 7), 20, 2, FAULT_USER | FAULT_SLEPT | FAULT_WRITE,
			    FAULT_HOOK_FUNCTION));
	scenario_finish(&s);
	expect_fault(&s, 0, 2, 7, 2);
	assert_int_equal(the_wait(&s)->reason, reason);
	assert_int_equal(fault_class(&scenario_thread(&s, 20, 0)->faults.items[0]),
			 FAULT_CLASS_UNKNOWN);
	scenario_free(&s);
}

/* In the order of their begins, cut to the window; a wait that no fault is about is its own. */
static void test_order(void **state)
{
	Scenario s;

	(void)state;
	begin_wait(&s);
	of_file(at(&s, 1), 20, -2, FAULT_USER | FAULT_MAJOR, FAULT_HOOK_FUNCTION);
	wait_in_between(&s);
	of_file(at(&s, 9), 20, 8, FAULT_USER | FAULT_MAJOR, FAULT_HOOK_FUNCTION);
	of_file(at(&s, 10), 20, 7, FAULT_USER, FAULT_HOOK_FUNCTION);
	scenario_finish(&s);
	assert_int_equal(scenario_thread(&s, 20, 0)->faults.count, 3);
	expect_fault(&s, 0, 0, 1, 0);
	expect_fault(&s, 1, 7, 8, 0); /* a thread is in one at a time */
	expect_fault(&s, 2, 8, 9, 0);
	assert_int_not_equal(the_wait(&s)->rule, RULE_FAULT);
	scenario_free(&s);
}

/* ---- what they are called ------------------------------------------------------------------ */

static void test_classes(void **state)
{
	static const struct {
		Fault fault;
		enum fault_class class;
	} cases[] = {
		{{.file = OBJECT_NONE,
		  .memory = MEMORY_HEAP,
		  .flags = FAULT_WRITE,
		  .page = PAGE_ABSENT},
		 FAULT_CLASS_FIRST_TOUCH},
		{{.file = OBJECT_NONE,
		  .memory = MEMORY_HEAP,
		  .flags = FAULT_WRITE,
		  .page = PAGE_PROTECTED},
		 FAULT_CLASS_COPY},
		{{.file = OBJECT_NONE, .memory = MEMORY_STACK, .flags = FAULT_WRITE},
		 FAULT_CLASS_EITHER},
		{{.file = OBJECT_NONE, .memory = MEMORY_HEAP}, FAULT_CLASS_FIRST_TOUCH},
		{{.file = OBJECT_NONE, .memory = MEMORY_ANONYMOUS, .flags = FAULT_MAJOR},
		 FAULT_CLASS_SWAP},
		{{.file = OBJECT_NONE, .flags = FAULT_MAJOR}, FAULT_CLASS_UNKNOWN},
		{{.file = 0, .memory = MEMORY_FILE}, FAULT_CLASS_FILE},
		{{.file = 0, .memory = MEMORY_FILE, .flags = FAULT_MAJOR}, FAULT_CLASS_FILE_MAJOR},
		{{.file = 0, .memory = MEMORY_FILE, .flags = FAULT_WRITE, .page = PAGE_PROTECTED},
		 FAULT_CLASS_COPY},
		{{.file = 0, .memory = MEMORY_SHARED, .flags = FAULT_WRITE, .page = PAGE_PROTECTED},
		 FAULT_CLASS_WRITABLE},
		{{.file = 0, .memory = MEMORY_FILE, .flags = FAULT_FAILED | FAULT_MAJOR},
		 FAULT_CLASS_FAILED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(fault_class(&cases[i].fault), cases[i].class);
}

static void name_inode(Objects *objects, uint64_t number, uint8_t flags, const char *names,
		       size_t size)
{
	struct rec_inode *record = xcalloc(1, sizeof(*record) + size);

	record->h =
		(struct record){.len = sizeof(*record) + size, .kind = REC_INODE, .flags = flags};
	record->device = 8 << 20 | 1;
	record->inode = number;
	record->size = size;
	memcpy(record->text, names, size);
	objects_add_inode(objects, record);
	free(record);
}

static const char *path_of(Objects *objects, uint64_t number)
{
	uint32_t place = objects_reference(objects, OBJECT_FILE, 8 << 20 | 1, number,
					   0); /* may move the list */

	return objects->list.items[place].name;
}

static void test_names(void **state)
{
	Objects objects = {};

	(void)state;
	assert_int_equal(objects_reference(&objects, OBJECT_FILE, 8 << 20 | 1, 0, 0), OBJECT_NONE);
	assert_string_equal(path_of(&objects, 7), "inode 7 of device 8:1");
	name_inode(&objects, 7, INODE_FULL_PATH, "c\0bb\0a", 7);
	assert_string_equal(path_of(&objects, 7), "/a/bb/c");
	name_inode(&objects, 7, INODE_FULL_PATH | INODE_DELETED, "c", 2);
	assert_string_equal(path_of(&objects, 7), "/c (deleted)");
	/* Less of the path, or none, is no news. */
	name_inode(&objects, 7, 0, "c\0b", 4);
	assert_string_equal(path_of(&objects, 7), "/c (deleted)");
	name_inode(&objects, 8, 0, "", 0);
	assert_string_equal(path_of(&objects, 8), "inode 8 of device 8:1");
	name_inode(&objects, 8, 0, "c\0b", 4);
	assert_string_equal(path_of(&objects, 8), "…/b/c");
	name_inode(&objects, 9, INODE_MOUNT, "c\0b", 4);
	object_not_mounted(&objects.list.items[2], "sda1");
	assert_string_equal(path_of(&objects, 9), "sda1:/b/c");
	name_inode(&objects, 10, INODE_MOUNT, "c\0b", 4);
	object_mounted(&objects.list.items[3], "/srv");
	assert_string_equal(path_of(&objects, 10), "/srv/b/c");
	/* Another file with the number of one that is gone. */
	assert_int_equal(objects_reference(&objects, OBJECT_FILE, 8 << 20 | 1, 7, 5), 4);
	assert_string_equal(objects.list.items[4].name, "inode 7 of device 8:1");
	assert_int_equal(objects.list.count, 5);
	objects_free(&objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock_in_fault), cmocka_unit_test(test_wait_in_fault),
		cmocka_unit_test(test_sleep_told),    cmocka_unit_test(test_wait_for_memory),
		cmocka_unit_test(test_order),	      cmocka_unit_test(test_classes),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
