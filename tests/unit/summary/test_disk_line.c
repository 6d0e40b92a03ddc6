/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose requests a disk completes while a thread waits for its own, and what the path waited for.
 */
#include "critical_path.h"
#include "disk_line.h"
#include "test_tools.h"
#include "timeline_fixture.h"

#define MS   NSEC_PER_MSEC
#define DISK (8u << 20)

static Timeline *make_timeline(void)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t app = fixture_process(t, 7, "app", 0, 100 * MS);
	uint32_t copier = fixture_process(t, 9, "copier", 0, 100 * MS);

	fixture_thread(t, app, 7, "app", 0, 100 * MS);
	fixture_thread(t, copier, 9, "copier", 0, 100 * MS);
	fixture_interval(t, 0, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, 0, 10 * MS, STATE_BLOCKED, REASON_DISK_READ);
	fixture_interval(t, 0, 90 * MS, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, 1, 0, STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	return t;
}

/* Adds a request; they are added in the order of their ends. Returns its number. */
static uint32_t add_request(Timeline *t, uint32_t device, uint32_t thread, uint64_t submit,
			    uint64_t end)
{
	uint32_t number = t->requests.list.count, index = requests_device(&t->requests, device);

	*vec_push(&t->requests.list) = (Request){
		.submit_ns = FIXTURE_START + submit,
		.end_ns = FIXTURE_START + end,
		.bytes = 4096,
		.device = device,
		.file = OBJECT_NONE,
		.user_stack = STACK_NONE,
		.task = thread == THREAD_NONE ? THREAD_NONE : t->threads.items[thread].task,
		.thread = thread,
	};
	*vec_push(&t->requests.devices.items[index].requests) = number;
	return number;
}

static void set_request(Timeline *t, uint32_t number)
{
	*vec_push(&t->threads.items[0].request_waits) =
		(RequestWait){.interval = 1, .request = number};
}

/*
 * Of the 80 ms of the wait, 30 ms passed until the other process's requests were completed, and
 * 50 ms with its own. What ended before, after, or on another disk does not count.
 */
static void test_others(void **state)
{
	Timeline *t = make_timeline();
	_cleanup_free_ char *text = NULL;
	uint32_t own;

	(void)state;
	add_request(t, DISK, 1, 0, 5 * MS);
	add_request(t, DISK, 1, 0, 20 * MS);
	add_request(t, DISK, 0, 5 * MS, 40 * MS);
	add_request(t, DISK + 1, 1, 5 * MS, 50 * MS);
	add_request(t, DISK, 1, 5 * MS, 60 * MS);
	own = add_request(t, DISK, 0, 10 * MS, 90 * MS);
	add_request(t, DISK, 1, 10 * MS, 95 * MS);
	set_request(t, own);
	text = disk_line_text(t);
	assert_string_equal(text, "for 30.000 ms of 80.000 ms 8:0 completed requests of others: "
				  "copier (30.000 ms)");
	timeline_free(t);
}

/* A submitter that is not recorded has the name of its task; one that is not known is no other. */
static void test_not_recorded(void **state)
{
	Timeline *t = make_timeline();
	_cleanup_free_ char *text = NULL;
	uint32_t own;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		*vec_push(&t->tasks) = (Task){.tid = 50 + i,
					      .thread = THREAD_NONE,
					      .kernel = true,
					      .comm = "kworker/u8:1"};
	strcpy(t->tasks.items[t->tasks.count - 1].comm, "kworker/3:0");
	add_request(t, DISK, THREAD_NONE, 0, 30 * MS);
	t->requests.list.items[0].task = t->tasks.count - 1;
	add_request(t, DISK, THREAD_NONE, 0, 50 * MS);
	add_request(t, DISK, THREAD_NONE, 0, 60 * MS);
	t->requests.list.items[2].task = t->tasks.count - 2;
	own = add_request(t, DISK, 0, 10 * MS, 90 * MS);
	set_request(t, own);
	text = disk_line_text(t);
	assert_string_equal(text, "for 30.000 ms of 80.000 ms 8:0 completed requests of others: "
				  "kworker (30.000 ms)");
	timeline_free(t);
}

/* A small part of the waits is not said, nor are waits that are hardly any time. */
static void test_nothing(void **state)
{
	Timeline *t = make_timeline();
	uint32_t own;

	(void)state;
	assert_null(disk_line_text(t));
	add_request(t, DISK, 1, 0, 20 * MS);
	own = add_request(t, DISK, 0, 10 * MS, 90 * MS);
	set_request(t, own);
	assert_null(disk_line_text(t)); /* 10 of 80 ms */
	t->requests.list.items[0].end_ns = FIXTURE_START + 80 * MS;
	t->end_ns += 10000 * MS;
	assert_null(disk_line_text(t));
	timeline_free(t);
}

/* Of the path's 100 ms, 80 ms are a wait for a disk; most moved on 8:0. */
static void test_path(void **state)
{
	Timeline *t = make_timeline();
	_cleanup_free_ char *text = NULL;

	(void)state;
	t->threads.items[0].intervals.items[1].reason = REASON_DIRTY_THROTTLE;
	critical_path_find(t, 0);
	assert_null(disk_line_text(t)); /* no disk moved anything */
	add_request(t, DISK + 1, 0, 0, 20 * MS);
	for (uint32_t i = 0; i < 3; i++)
		t->requests.list.items[add_request(t, DISK, 1, 0, 30 * MS)].opf = i > 0;
	t->requests.list.items[3].bytes = 7 << 20;
	text = disk_line_text(t);
	assert_string_equal(text, "80.000 ms of 100.000 ms waited for it; 8:0 read 0.0 MB, "
				  "wrote 7.3 MB");
	timeline_free(t);
}

static void test_short_path_wait(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	t->threads.items[0].intervals.items[1].reason = REASON_DIRTY_THROTTLE;
	t->threads.items[0].intervals.items[2].start_ns = FIXTURE_START + 59 * MS;
	add_request(t, DISK, 1, 0, 30 * MS);
	critical_path_find(t, 0);
	assert_null(disk_line_text(t)); /* 49 of 100 ms */
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others),		cmocka_unit_test(test_not_recorded),
		cmocka_unit_test(test_nothing),		cmocka_unit_test(test_path),
		cmocka_unit_test(test_short_path_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
