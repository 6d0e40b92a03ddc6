/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chrome traces of timelines made by hand and at random, read back. */
#include "chrome.h"
#include "json_reader.h"
#include "random_timeline.h"
#include "test_tools.h"
#include <time.h>

#define MS NSEC_PER_MSEC

typedef struct Trace {
	Node *root;
	const Node *events;
} Trace;

static Trace write_and_read(const Timeline *timeline, uint64_t budget)
{
	ChromeOptions options = {.slice_budget = budget};
	Frames *frames = frames_new();
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	Trace trace;

	assert_int_equal(chrome_write(output, timeline, frames, &options), 0);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	frames_free(frames);
	trace.root = node_read(text);
	free(text);
	trace.events = node_get(trace.root, "traceEvents");
	return trace;
}

static void done(Trace *trace, Timeline *timeline)
{
	node_free(trace->root);
	timeline_free(timeline);
}

static bool is_phase(const Node *event, const char *phase)
{
	return !strcmp(node_string(node_get(event, "ph")), phase);
}

static uint64_t us_as_ns(const Node *event, const char *key)
{
	return node_parts(node_get(event, key), 3);
}

/* The n-th event of a phase (and, if not NULL, of a name), or NULL. */
static const Node *find(const Trace *trace, const char *phase, const char *name, size_t n)
{
	for (size_t i = 0; i < trace->events->count; i++) {
		const Node *event = node_at(trace->events, i);

		if (is_phase(event, phase) &&
		    (!name || !strcmp(node_string(node_get(event, "name")), name)) && n-- == 0)
			return event;
	}
	return NULL;
}

static size_t count(const Trace *trace, const char *phase)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->events->count; i++)
		n += is_phase(node_at(trace->events, i), phase);
	return n;
}

static enum thread_state state_of_slice(const Node *event)
{
	const char *category = node_string(node_get(event, "cat"));

	if (!strcmp(category, "Running"))
		return STATE_RUNNING;
	if (!strcmp(category, category_info[CATEGORY_RUNNABLE].name))
		return STATE_RUNNABLE;
	return !strcmp(category, category_info[CATEGORY_UNKNOWN].name) ? STATE_UNKNOWN
								       : STATE_BLOCKED;
}

static enum thread_state state_of_name(const char *name)
{
	if (!strcmp(name, "Running"))
		return STATE_RUNNING;
	return *name == 'R' ? STATE_RUNNABLE : STATE_BLOCKED;
}

/* Slices follow each other from birth to end, and both they and the states sum up to the ledger. */
static void check_thread(const Trace *trace, const Timeline *timeline, const Thread *thread)
{
	uint64_t slices[STATE_COUNT] = {}, states[STATE_COUNT] = {};
	uint64_t at = thread->start_ns - timeline->start_ns;

	for (size_t i = 0; i < trace->events->count; i++) {
		const Node *event = node_at(trace->events, i);

		if (node_int(node_get(event, "tid")) != thread->ns_tid)
			continue;
		if (is_phase(event, "X")) {
			assert_int_equal(us_as_ns(event, "ts"), at);
			at += us_as_ns(event, "dur");
			slices[state_of_slice(event)] += us_as_ns(event, "dur");
		} else if (is_phase(event, "T")) {
			states[state_of_name(node_string(node_get(event, "name")))] +=
				us_as_ns(event, "dur");
		}
	}
	assert_int_equal(at, thread->end_ns - timeline->start_ns);
	for (size_t s = 0; s < STATE_COUNT; s++) {
		assert_int_equal(slices[s], thread->ledger[s]);
		assert_int_equal(states[s], s == STATE_UNKNOWN ? 0 : thread->ledger[s]);
	}
}

static void check_sums(const Trace *trace, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->threads.count; i++)
		check_thread(trace, timeline, &timeline->threads.items[i]);
}

static void test_sums(void **state)
{
	unsigned int seed = time(NULL) % 100000;

	(void)state;
	print_message("seed %u\n", seed);
	for (unsigned int i = 0; i < 10; i++) {
		Timeline *t = random_timeline(seed + i, 1 + random_number(100 * MS), 1 + i * 10);
		Trace trace = write_and_read(t, 0);

		check_sums(&trace, t);
		done(&trace, t);
	}
}

/* Folded, the sums are still exact, and the reasons' too. */
static void test_budget(void **state)
{
	unsigned int seed = time(NULL) % 100000;
	Timeline *t = random_timeline(seed, 100 * MS, 300);
	Trace all = write_and_read(t, 0), few = write_and_read(t, 500);
	uint64_t folded = 0;

	(void)state;
	print_message("seed %u\n", seed);
	assert_true(count(&all, "X") > 2000);
	assert_true(count(&few, "X") <= 500);
	check_sums(&few, t);
	for (size_t i = 0; i < few.events->count; i++) {
		const Node *args = node_find(node_at(few.events, i), "args");
		const Node *data = args ? node_find(args, "data") : NULL;
		const Node *waits = data ? node_find(data, "waits") : NULL;

		folded += waits ? node_int(waits) : 0;
	}
	assert_true(folded > 0);
	assert_non_null(node_find(node_get(few.root, "otherData"), "folded intervals"));
	assert_null(node_find(node_get(all.root, "otherData"), "folded intervals"));
	node_free(few.root);
	done(&all, t);
}

static void test_wait(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t process = fixture_process(t, 7, "a", 0, 100 * MS);
	uint32_t thread = fixture_thread(t, process, 7, "a", 0, 100 * MS);
	Interval *wait;
	const Node *slice, *args, *flow;

	(void)state;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE)->cpu = 3;
	wait = fixture_interval(t, thread, 10 * MS, STATE_BLOCKED, REASON_DISK_READ);
	wait->rule = RULE_SYSCALL;
	wait->sleep = SLEEP_FOR_DISK;
	wait->syscall = 0;
	wait->waker = 1;
	fixture_interval(t, thread, 60 * MS + 1, STATE_RUNNABLE, REASON_WOKEN);
	fixture_interval(t, thread, 61 * MS, STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, process, 8, "waker", STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	Trace trace = write_and_read(t, 0);

	slice = find(&trace, "X", "Disk read wait", 0);
	assert_non_null(slice);
	assert_int_equal(us_as_ns(slice, "ts"), 10 * MS);
	assert_int_equal(us_as_ns(slice, "dur"), 50 * MS + 1);
	args = node_get(node_get(slice, "args"), "data");
	assert_string_equal(node_string(node_get(args, "wokenBy")), "waker");
	assert_string_equal(node_string(node_get(args, "evidence")), "system call: read");
	assert_int_equal(node_ns(node_get(args, "runqMs")), MS - 1);
	args = node_get(find(&trace, "T", "D", 0), "args");
	assert_int_equal(node_get(args, "io_wait")->type, 't');
	assert_null(find(&trace, "T", "S", 0));
	args = node_get(find(&trace, "T", "Running", 0), "args");
	assert_int_equal(node_int(node_get(args, "cpu")), 3);

	flow = find(&trace, "s", NULL, 0);
	assert_int_equal(node_int(node_get(flow, "tid")), 8);
	assert_int_equal(us_as_ns(flow, "ts"), 60 * MS + 1);
	flow = find(&trace, "f", NULL, 0);
	assert_int_equal(node_int(node_get(flow, "tid")), 7);
	assert_int_equal(us_as_ns(flow, "ts"), 60 * MS + 2);
	assert_int_equal(count(&trace, "s"), 1);
	assert_int_equal(count(&trace, "f"), 1);
	done(&trace, t);
}

/* A number that two processes had one after another is one process's only. */
static void test_numbers_are_unique(void **state)
{
	Timeline *t = fixture_new(100 * MS);

	(void)state;
	fixture_running_process(t, 5, "first", 0, 40 * MS);
	fixture_running_process(t, 5, "second", 50 * MS, 100 * MS);
	fixture_running_process(t, 0, "elsewhere", 0, 100 * MS);
	fixture_finish(t);
	Trace trace = write_and_read(t, 0);

	for (size_t i = 0; i < 3; i++) {
		const Node *a = find(&trace, "M", "thread_name", i);
		const Node *b = find(&trace, "M", "thread_name", (i + 1) % 3);

		assert_int_not_equal(node_int(node_get(a, "tid")), node_int(node_get(b, "tid")));
		assert_int_not_equal(node_int(node_get(a, "pid")), node_int(node_get(b, "pid")));
		assert_int_equal(node_int(node_get(a, "pid")), node_int(node_get(a, "tid")));
		assert_true(node_int(node_get(a, "pid")) > 0);
	}
	assert_non_null(node_get(node_get(node_get(find(&trace, "i", "Exit", 0), "args"), "data"),
				 "status"));
	assert_null(find(&trace, "i", "Exit", 1));
	done(&trace, t);
}

static void test_losses_and_counters(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	const Node *begin, *end, *data;
	uint64_t sum = 0;

	(void)state;
	fixture_running_process(t, 5, "a", 0, 100 * MS);
	for (uint16_t cpu = 0; cpu < 2; cpu++)
		*vec_push(&t->losses) = (LossSpan){.kind = REC_SWITCH,
						   .cause = LOSS_RING_FULL,
						   .cpu = cpu,
						   .count = 17,
						   .from_ns = t->start_ns + (10 + cpu) * MS,
						   .to_ns = t->start_ns + (20 + cpu) * MS};
	fixture_finish(t);
	Trace trace = write_and_read(t, 0);

	for (size_t i = 0; i < 2; i++) {
		begin = find(&trace, "b", "Events lost", i);
		end = find(&trace, "e", "Events lost", i);
		assert_string_equal(node_get(begin, "id")->text, node_get(end, "id")->text);
		assert_int_equal(us_as_ns(begin, "ts"), (10 + i) * MS);
		assert_int_equal(us_as_ns(end, "ts"), (20 + i) * MS);
		data = node_get(node_get(begin, "args"), "data");
		assert_int_equal(node_int(node_get(data, "count")), 17);
		assert_string_equal(node_string(node_get(data, "kind")), "switch");
	}
	assert_int_equal(count(&trace, "b"), 2);
	for (size_t i = 0; i < 10; i++)
		sum += node_parts(
			node_get(node_get(find(&trace, "C", "CPU", i), "args"), "percent"), 3);
	assert_int_equal(sum, 10 * 100000);
	assert_null(find(&trace, "C", "CPU", 10));
	done(&trace, t);
}

/* The ticks that hit the thread while it ran by the timeline: others stand for no time. */
static size_t ticks_while_running(const Thread *thread)
{
	size_t count = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		if (thread->intervals.items[i].state != STATE_RUNNING)
			continue;
		for (size_t j = 0; j < thread->ticks.count; j++) {
			uint64_t ns = thread->ticks.items[j].ns;

			count += ns >= thread->intervals.items[i].start_ns &&
				 ns < interval_end(thread, i);
		}
	}
	return count;
}

/* Every stack that is referred to is there, and parents lead to roots. */
static void test_stacks(void **state)
{
	Timeline *t = random_timeline(time(NULL) % 100000, 300 * MS, 10);
	Trace trace = write_and_read(t, 0);
	const Node *frames = node_get(trace.root, "stackFrames");
	const Node *samples = node_get(trace.root, "samples");
	size_t ticks = 0;

	(void)state;
	for (size_t i = 0; i < t->threads.count; i++)
		ticks += ticks_while_running(&t->threads.items[i]);
	assert_int_equal(samples->count, ticks);
	assert_true(ticks > 0);
	for (size_t i = 0; i < ticks; i++)
		assert_non_null(node_find(frames, node_get(node_at(samples, i), "sf")->text));
	for (size_t i = 0; i < trace.events->count; i++) {
		const Node *event = node_at(trace.events, i);

		if (is_phase(event, "X") && state_of_slice(event) != STATE_RUNNING)
			assert_non_null(node_find(frames, node_get(event, "sf")->text));
	}
	for (size_t i = 0; i < frames->count; i++) {
		const Node *frame = &frames->items[i], *parent = node_find(frame, "parent");

		/* A parent was there before: so there is no circle. */
		if (parent)
			assert_true(atoi(parent->text) < atoi(frame->key));
	}
	done(&trace, t);
}

static void test_empty(void **state)
{
	Timeline *t = fixture_new(MS);
	Trace trace = write_and_read(t, 0);

	(void)state;
	assert_int_equal(count(&trace, "X"), 0);
	done(&trace, t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_numbers_are_unique),
		cmocka_unit_test(test_losses_and_counters),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
