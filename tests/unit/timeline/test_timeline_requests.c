/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to block devices: their submitters, the waits for them, their names. */
#include "make_record.h"
#include "scenario.h"
#include "wait_fields.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define D      0x2 /* TASK_UNINTERRUPTIBLE */
#define PREAD  17
#define PWRITE 18

static void begin(Scenario *s)
{
	scenario_begin(s, 12, false);
	birth(at(s, 0), 20, 20);
	wake_new(at(s, 0), 20, 10);
	in(at(s, 0), 20, 0);
}

/* Waits from 3, is woken at 5, and runs from 6 on. */
static void wait_until_irq(Scenario *s)
{
	s->next_out.fd_kind = 1;
	out_call(at(s, 3), 20, D, PREAD);
	read_completes(at(s, 5), 20, 2, 0);
	wake_by_irq(at(s, 5), 20);
	in(at(s, 6), 20, 0);
}

static uint32_t request_of_wait(const Scenario *s)
{
	const Thread *thread = scenario_thread(s, 20, 0);

	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			return thread_wait_request(thread, i);
	fail();
	return REQUEST_NONE;
}

/* Returns the name of the file of the only request, which this task's thread submitted. */
static char *name_of_file(const char *names, uint8_t flags)
{
	Scenario s;
	char *name;

	begin(&s);
	if (names)
		meta(&s, names);
	read_completes(at(&s, 5), 20, 2, 0);
	scenario_finish(&s);
	s.timeline->requests.list.items[0].flags = flags;
	objects_name_users(s.timeline);
	name = xstrdup(
		s.timeline->objects.list.items[s.timeline->requests.list.items[0].file].name);
	scenario_free(&s);
	return name;
}

/* Files of kernel threads' requests are one for each device, if their names were withheld. */
static void test_withheld_names(void **state)
{
	static const char withheld[] = "file-names=files that targets use";
	static const struct {
		const char *names;
		uint8_t flags;
		const char *wanted;
	} cases[] = {
		{withheld, REQUEST_KTHREAD, "unnamed files"},
		{withheld, REQUEST_TARGET, "inode 5"},
		{"file-names=all", REQUEST_KTHREAD, "inode 5"},
		{NULL, REQUEST_KTHREAD, "inode 5"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *name = name_of_file(cases[i].names, cases[i].flags);

		assert_memory_equal(name, cases[i].wanted, strlen(cases[i].wanted));
		free(name);
	}
}

/* A file keeps a recorded path if its device is not mounted here. */
static void test_named_file_of_kernel(void **state)
{
	static const char path[] = "ours";
	struct rec_inode *record = make_record(
		REC_INODE, INODE_MOUNT, 1, offsetof(struct rec_inode, text), path, sizeof(path));
	Scenario s;
	const Object *file;

	(void)state;
	record->device = SCENARIO_DEVICE | 1;
	record->inode = 5;
	record->size = sizeof(path);
	begin(&s);
	meta(&s, "file-names=files that targets use");
	timeline_builder_add(s.builder, &record->h);
	read_completes(at(&s, 5), 20, 2, 0);
	scenario_finish(&s);
	s.timeline->requests.list.items[0].flags = REQUEST_KTHREAD;
	objects_name_users(s.timeline);
	file = &s.timeline->objects.list.items[s.timeline->requests.list.items[0].file];
	assert_non_null(strstr(file->name, "/ours"));
	free(record);
	scenario_free(&s);
}

static void test_wait_ended_by_request(void **state)
{
	const Request *request;
	Scenario s;

	(void)state;
	begin(&s);
	wait_until_irq(&s);
	scenario_finish(&s);
	assert_int_equal(s.timeline->requests.list.count, 1);
	assert_int_equal(request_of_wait(&s), 0);
	request = &s.timeline->requests.list.items[0];
	assert_ptr_equal(&s.timeline->threads.items[request->thread], scenario_thread(&s, 20, 0));
	assert_int_equal(request_begin(request), scenario_ns(2));
	assert_int_equal(request_queued_ns(request), 1000);
	assert_int_equal(request_device_ns(request), 3 * NSEC_PER_MSEC - 1000);
	s.timeline->requests.list.items[0].held_ns = 400;
	assert_int_equal(request_queued_ns(request), 600);
	s.timeline->requests.list.items[0].held_ns = 2000;
	assert_int_equal(request_queued_ns(request), 0);
	assert_int_equal(scenario_thread(&s, 20, 0)->requests.count, 1);
	check_thread(s.timeline, scenario_thread(&s, 20, 0));
	scenario_free(&s);
}

/* Another's, just before: only what waits for a disk as if for any page, and no pause in writing.
 */
static void test_request_of_other(void **state)
{
	static const struct {
		bool iowait;
		int call;
		uint32_t wanted;
	} waits[] = {{true, PREAD, 0}, {false, PREAD, REQUEST_NONE}, {true, PWRITE, REQUEST_NONE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		Scenario s;

		begin(&s);
		s.next_out.fd_kind = 1;
		s.next_out.h.flags = waits[i].iowait ? SWITCH_IOWAIT : 0;
		out_call(at(&s, 3), 20, D, waits[i].call);
		read_completes(at(&s, 5), 33, 2, 0);
		wake_by_irq(at(&s, 5), 20);
		in(at(&s, 6), 20, 0);
		scenario_finish(&s);
		assert_int_equal(request_of_wait(&s), waits[i].wanted);
		scenario_free(&s);
	}
}

/* What completed on another CPU, or long before, did not wake it. */
static void test_other_interrupts(void **state)
{
	(void)state;
	for (int other_cpu = 0; other_cpu < 2; other_cpu++) {
		Scenario s;

		begin(&s);
		s.next_out.fd_kind = 1;
		read_completes(at(&s, other_cpu ? 5 : 2), 20, 1, other_cpu);
		out_call(at(&s, 3), 20, D, PREAD);
		wake_by_irq(at(&s, 5), 20);
		in(at(&s, 6), 20, 0);
		scenario_finish(&s);
		assert_int_equal(request_of_wait(&s), REQUEST_NONE);
		scenario_free(&s);
	}
}

/* It may be long until all are woken that wait for its pages; it is not taken for another's then.
 */
static void test_woken_late(void **state)
{
	(void)state;
	for (int mine = 0; mine < 2; mine++) {
		Scenario s;

		begin(&s);
		s.next_out.fd_kind = 1;
		out_call(at(&s, 3), 20, D, PREAD);
		read_completes(at(&s, 4), mine ? 20 : 33, 2, 0);
		wake_by_irq(at(&s, 7), 20);
		in(at(&s, 8), 20, 0);
		scenario_finish(&s);
		assert_int_equal(request_of_wait(&s), mine ? 0 : REQUEST_NONE);
		scenario_free(&s);
	}
}

/* A worker reports the completion: then the request was the thread's own. Another of the program's
 * threads has released a lock. */
static void test_woken_by_worker(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		bool mine = i & 1, worker = i & 2;
		Scenario s;

		begin(&s);
		birth(at(&s, 1), 21, 20);
		s.next_out.fd_kind = 1;
		out_call(at(&s, 3), 20, D, PREAD);
		read_completes(at(&s, 4), mine ? 20 : 33, 2, 1);
		wake(at(&s, 5), 20, worker ? 44 : 21);
		in(at(&s, 6), 20, 0);
		scenario_finish(&s);
		assert_int_equal(request_of_wait(&s), mine && worker ? 0 : REQUEST_NONE);
		scenario_free(&s);
	}
}

/*
 * A driver's own thread has just completed another's request for the file of the call, and what
 * waits as if for a disk is woken. Any other thread that wakes it, or for another file, has not
 * done so for that.
 */
static void test_completed_by_worker(void **state)
{
	(void)state;
	for (int i = 0; i < 16; i++) {
		bool worker = i & 1, iowait = i & 2, just = i & 4, other_file = i & 8;
		bool wanted = worker && iowait && just && !other_file;
		Scenario s;

		begin(&s);
		(worker ? kernel_thread : non_target)(at(&s, 1), 44, "other");
		s.next_out.fd_kind = FD_FILE;
		s.next_out.h.flags = iowait ? SWITCH_IOWAIT : 0;
		s.next_out.inode = other_file ? 7 : 5;
		s.next_out.file_device = SCENARIO_DEVICE | 1;
		out_call(at(&s, 3), 20, D, PREAD);
		read_completes(at(&s, just ? 7 : 4), 33, 2, 0);
		wake(at(&s, 7), 20, 44);
		in(at(&s, 8), 20, 0);
		scenario_finish(&s);
		assert_int_equal(request_of_wait(&s), wanted ? 0 : REQUEST_NONE);
		scenario_free(&s);
	}
}

static uint32_t inode_of_wait(const Scenario *s)
{
	const Thread *thread = scenario_thread(s, 20, 0);
	uint32_t place = OBJECT_NONE;

	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			place = wait_object(s->timeline, thread, i);
		else
			assert_int_equal(wait_object(s->timeline, thread, i), OBJECT_NONE);
	return place == OBJECT_NONE ? 0 : s->timeline->objects.list.items[place].number;
}

static void fault_at(const Scenario *s, int start, uint64_t inode)
{
	struct rec_fault record = {
		.h = {.len = sizeof(record), .kind = REC_FAULT, .ns = scenario_ns(s->ms)},
		.tid = 20,
		.device = SCENARIO_DEVICE | 1,
		.inode = inode,
		.start_ns = scenario_ns(start),
		.memory = MEMORY_FILE,
	};

	timeline_builder_add(s->builder, &record.h);
}

/*
 * The file of the request that ended it; else of the fault that it lies in, which may be of no
 * file; else of the call.
 */
static void test_file_of_wait(void **state)
{
	enum { OF_CALL = 1, OF_FAULT = 2, OF_REQUEST = 4, NO_FILE = 8 };

	(void)state;
	for (int known = 0; known < 16; known++) {
		uint64_t of_fault = known & NO_FILE ? 0 : 6;
		Scenario s;

		begin(&s);
		s.next_out.fd_kind = FD_FILE;
		s.next_out.inode = known & OF_CALL ? 7 : 0;
		s.next_out.file_device = SCENARIO_DEVICE | 1;
		out_call(at(&s, 3), 20, D, PREAD);
		if (known & OF_REQUEST)
			read_completes(at(&s, 5), 20, 2, 0);
		wake_by_irq(at(&s, 5), 20);
		in(at(&s, 6), 20, 0);
		if (known & OF_FAULT)
			fault_at(at(&s, 8), 2, of_fault);
		scenario_finish(&s);
		assert_int_equal(inode_of_wait(&s), known & OF_REQUEST ? 5
						    : known & OF_FAULT ? of_fault
						    : known & OF_CALL  ? 7
								       : 0);
		/* A request for several files has only the first one. */
		if (known == (OF_CALL | OF_REQUEST)) {
			s.timeline->requests.list.items[0].flags |= REQUEST_MIXED;
			assert_int_equal(inode_of_wait(&s), 7);
		}
		scenario_free(&s);
	}
}

/* Waits that no disk ends, though one completes then. */
static void test_other_waits(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	out_call(at(&s, 3), 20, 1, 230); /* clock_nanosleep */
	read_completes(at(&s, 5), 20, 2, 0);
	wake_by_irq(at(&s, 5), 20);
	in(at(&s, 6), 20, 0);
	scenario_finish(&s);
	assert_int_equal(request_of_wait(&s), REQUEST_NONE);
	scenario_free(&s);
}

/* A number that was used again: the earlier thread's request is not the later one's. */
static void test_number_used_again(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	birth(at(&s, 4), 30, 30);
	wake_new(at(&s, 4), 30, 20);
	in(at(&s, 5), 30, 1);
	read_completes(at(&s, 6), 30, 2, 1);
	read_completes(at(&s, 7), 30, 6, 1);
	scenario_finish(&s);
	assert_int_equal(s.timeline->requests.list.items[0].thread, THREAD_NONE);
	assert_int_not_equal(s.timeline->requests.list.items[1].thread, THREAD_NONE);
	scenario_free(&s);
}

static void name_device(Requests *requests, const char *text, size_t size)
{
	struct rec_device *record = xcalloc(1, sizeof(*record) + size);

	record->h = (struct record){.len = sizeof(*record) + size, .kind = REC_DEVICE};
	record->device = SCENARIO_DEVICE;
	record->size = size;
	memcpy(record->text, text, size);
	requests_add_device(requests, record);
	free(record);
}

static void expect_device(const Requests *requests, const char *expected)
{
	_cleanup_free_ char *text = request_device_text(requests, SCENARIO_DEVICE);

	assert_string_equal(text, expected);
}

static void test_devices(void **state)
{
	Requests requests = {};

	(void)state;
	expect_device(&requests, "8:0");
	name_device(&requests, "loop0\0/tmp/image\0/mnt", 22);
	expect_device(&requests, "loop0 (/tmp/image)");
	assert_string_equal(requests.devices.items[0].mounted, "/mnt");
	/* What is gone at the end was there before. */
	name_device(&requests, "sda", 4);
	expect_device(&requests, "sda (/tmp/image)");
	name_device(&requests, "sda\0/tmp/other", 15);
	expect_device(&requests, "sda (/tmp/other)");
	name_device(&requests, "sdab", 3); /* cut off */
	expect_device(&requests, "sda (/tmp/other)");
	assert_string_equal(requests.devices.items[0].mounted, "/mnt");
	assert_int_equal(requests.devices.count, 1);
	requests_free(&requests);
}

static void expect_text(uint32_t opf, uint8_t flags, const char *operation, const char *expected)
{
	Request request = {.opf = opf, .flags = flags, .bytes = 512};
	_cleanup_free_ char *text = request_flags_text(&request);

	assert_string_equal(request_operation(&request), operation);
	assert_string_equal(text, expected);
}

static void test_operations(void **state)
{
	(void)state;
	expect_text(0, 0, "read", "");
	expect_text(1 << 19, REQUEST_SPLIT, "read", "readahead, part of a larger one");
	expect_text(1 | 1 << 11 | 1 << 17 | 1 << 18, 0, "write", "sync, FUA, preflush");
	expect_text(2, 0, "flush", "");
	expect_text(77, 0, "other", "");
	expect_text(0xffffff00 | 1, 0xff, "write",
		    "sync, metadata, FUA, preflush, readahead, background, nowait, of the device "
		    "or the file system itself, part of a "
		    "larger one, of several threads or files, passed on by the device");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_ended_by_request),
		cmocka_unit_test(test_other_interrupts),
		cmocka_unit_test(test_request_of_other),
		cmocka_unit_test(test_woken_late),
		cmocka_unit_test(test_woken_by_worker),
		cmocka_unit_test(test_completed_by_worker),
		cmocka_unit_test(test_file_of_wait),
		cmocka_unit_test(test_other_waits),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_withheld_names),
		cmocka_unit_test(test_named_file_of_kernel),
		cmocka_unit_test(test_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
