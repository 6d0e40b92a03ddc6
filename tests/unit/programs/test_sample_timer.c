/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events that the kernel has removed with their CPU are opened again. */
#include "sample_timer.h"
#include "test_tools.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#define CPUS 2

/* The events that are open; the link of a CPU's is a place in this array. */
static struct {
	bool is_open;
	uint64_t period;
} events[CPUS];
static int offline = -1; /* a CPU */

/* ---- in the place of the kernel ----------------------------------------------------------- */

int software_event_attach_on(struct bpf_program *program, const SoftwareEvent *event, int cpu,
			     struct bpf_link **ret_link)
{
	(void)program;
	if (cpu == offline)
		return -ENODEV;
	assert_false(events[cpu].is_open);
	events[cpu].is_open = true;
	events[cpu].period = event->period;
	*ret_link = (struct bpf_link *)&events[cpu];
	return cpu;
}

int bpf_link__destroy(struct bpf_link *link)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		if (link == (struct bpf_link *)&events[cpu])
			events[cpu].is_open = false;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;

	va_start(list, request);
	if (request == PERF_EVENT_IOC_PERIOD)
		events[fd].period = *va_arg(list, uint64_t *);
	va_end(list);
	return 0;
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void test_reopened(void **state)
{
	const SoftwareEvent event = {.period = NSEC_PER_MSEC};
	struct cpu_account accounts[CPUS] = {};
	SampleTimerCounts counts;
	SampleTimer *ticks;
	size_t cpus;

	(void)state;
	assert_int_equal(sample_timer_start(NULL, &event, accounts, CPUS, &ticks, &cpus), 0);
	assert_int_equal(cpus, CPUS);
	assert_int_equal(sample_timer_set_period(ticks, 4 * NSEC_PER_MSEC), 0);

	/* The rate that was chosen meanwhile is in force, and what is missing is counted by it. */
	assert_int_equal(sample_timer_reopen(ticks, 1, now_ns() - NSEC_PER_SEC), 0);
	assert_int_equal(events[1].period, 4 * NSEC_PER_MSEC);
	counts = sample_timer_counts(ticks, 0);
	assert_int_equal(counts.begun, 1);
	assert_true(counts.missed_ns >= NSEC_PER_SEC);
	assert_true((uint64_t)counts.missed == counts.missed_ns / (4 * NSEC_PER_MSEC));

	/* A CPU that is offline again has none, and gets one when it is back. */
	offline = 1;
	assert_int_equal(sample_timer_reopen(ticks, 1, now_ns()), -ENODEV);
	assert_false(events[1].is_open);
	assert_int_equal(sample_timer_set_period(ticks, 2 * NSEC_PER_MSEC), 0);
	offline = -1;
	assert_int_equal(sample_timer_reopen(ticks, 1, now_ns()), 0);
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_true(events[cpu].is_open && events[cpu].period == 2 * NSEC_PER_MSEC);
	assert_int_equal(sample_timer_counts(ticks, 0).begun, 2);

	sample_timer_free(ticks);
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_false(events[cpu].is_open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reopened)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
