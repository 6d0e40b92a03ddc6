/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample_timer.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#define IDLE_TIMEOUT_MIN_NS NSEC_PER_SEC
#define IDLE_PERIODS_MIN    3 /* a target that is never switched is observed by ticks only */
#define GAPS_MAX	    4096

/* The timer of one CPU. */
typedef struct Timer {
	struct cpu_account *account;
	struct bpf_link *link;
	int fd; /* of the link */
	bool disabled;
	uint64_t idle_timeout_ns; /* the timer is disabled after this time without a target */
	uint64_t begun_ns;
	uint64_t seen_ns; /* while disabled: the account's target_ns at that time */
} Timer;

/* A time without ticks although a target was running. */
typedef struct Gap {
	uint64_t from_ns, to_ns;
	uint64_t period; /* of the ticks that are missing */
} Gap;

struct SampleTimer {
	struct bpf_program *program;
	SoftwareEvent event; /* with the period in force */
	struct cpu_account *accounts;
	VEC(Timer) timers;
	VEC(Gap) gaps;		   /* sorted by their ends */
	SampleTimerCounts earlier; /* older gaps, no longer in the list: */
	uint64_t earlier_ns;	   /* end of the last of them */
};

static int open_timer(SampleTimer *ticks, size_t cpu)
{
	Timer timer = {.account = &ticks->accounts[cpu],
		       .idle_timeout_ns =
			       MAX(IDLE_TIMEOUT_MIN_NS, IDLE_PERIODS_MIN * ticks->event.period),
		       .begun_ns = now_ns()};

	timer.fd = software_event_attach_on(ticks->program, &ticks->event, cpu, &timer.link);
	if (timer.fd < 0)
		return timer.fd;
	*vec_push(&ticks->timers) = timer;
	return 0;
}

int sample_timer_start(struct bpf_program *program, const SoftwareEvent *event,
		       struct cpu_account *accounts, size_t cpu_count, SampleTimer **ret_ticks,
		       size_t *ret_cpus)
{
	SampleTimer *ticks = xcalloc(1, sizeof(*ticks));

	ticks->program = program;
	ticks->event = *event;
	ticks->accounts = accounts;
	for (size_t cpu = 0; cpu < cpu_count; cpu++) {
		int error = open_timer(ticks, cpu);

		if (error && error != -ENODEV) { /* -ENODEV: the CPU is offline */
			*ret_cpus = ticks->timers.count;
			sample_timer_free(ticks);
			return error;
		}
	}
	*ret_cpus = ticks->timers.count;
	if (ticks->timers.count == 0) {
		sample_timer_free(ticks);
		return -ENODEV;
	}
	*ret_ticks = ticks;
	return 0;
}

/*
 * The kernel takes the new period at once, also if the timer is disabled. On a CPU that is offline
 * it changes nothing and reports no error.
 */
static int set_periods(SampleTimer *ticks, size_t count, uint64_t period, size_t *ret_changed)
{
	for (*ret_changed = 0; *ret_changed < count; ++*ret_changed)
		if (ioctl(ticks->timers.items[*ret_changed].fd, PERF_EVENT_IOC_PERIOD, &period))
			return -errno;
	return 0;
}

int sample_timer_set_period(SampleTimer *ticks, uint64_t period)
{
	size_t changed, restored;
	int error = set_periods(ticks, ticks->timers.count, period, &changed);

	if (error) {
		set_periods(ticks, changed, ticks->event.period, &restored);
		return error;
	}
	ticks->event.period = period;
	for (size_t i = 0; i < ticks->timers.count; i++) {
		Timer *timer = &ticks->timers.items[i];

		timer->idle_timeout_ns = MAX(timer->idle_timeout_ns, IDLE_PERIODS_MIN * period);
	}
	return 0;
}

bool sample_timer_is_running(const SampleTimer *ticks)
{
	for (size_t i = 0; i < ticks->timers.count; i++)
		if (!ticks->timers.items[i].disabled)
			return true;
	return false;
}

static void enable(Timer *timer)
{
	__atomic_store_n(&timer->account->tick_state, TICKS_RUNNING, __ATOMIC_RELAXED);
	ioctl(timer->fd, PERF_EVENT_IOC_ENABLE, 0);
	timer->disabled = false;
	timer->begun_ns = now_ns();
}

static void disable_if_idle(Timer *timer, uint64_t now)
{
	uint64_t seen_ns = __atomic_load_n(&timer->account->target_ns, __ATOMIC_RELAXED);

	if (now < MAX(seen_ns, timer->begun_ns) + timer->idle_timeout_ns)
		return;
	/* This is set first, so that a target that arrives meanwhile wakes the recorder. */
	__atomic_store_n(&timer->account->tick_state, TICKS_PAUSED, __ATOMIC_SEQ_CST);
	ioctl(timer->fd, PERF_EVENT_IOC_DISABLE, 0);
	timer->disabled = true;
	timer->seen_ns = seen_ns;
}

/*
 * Returns since when a target runs on this CPU, or 0. The first switch to one writes tick_state. A
 * switch that read tick_state just before it was set, and had not written target_ns when that was
 * read, does not wake the recorder; then target_ns shows it at the next review.
 */
static uint64_t target_arrival_ns(const Timer *timer)
{
	uint64_t seen_ns = __atomic_load_n(&timer->account->target_ns, __ATOMIC_ACQUIRE);
	uint64_t switch_ns = __atomic_load_n(&timer->account->tick_state, __ATOMIC_RELAXED);

	if (seen_ns == timer->seen_ns)
		return 0;
	return switch_ns == TICKS_PAUSED ? seen_ns : switch_ns;
}

/* Counts the part of a gap after since_ns. */
static void count_gap(SampleTimerCounts *counts, const Gap *gap, uint64_t since_ns)
{
	uint64_t missed_ns = gap->to_ns - MAX(gap->from_ns, since_ns);

	counts->begun++;
	counts->missed_ns += missed_ns;
	counts->missed += (double)missed_ns / gap->period;
}

static void drop_old_gaps(SampleTimer *ticks)
{
	size_t half = ticks->gaps.count / 2;

	for (size_t i = 0; i < half; i++)
		count_gap(&ticks->earlier, &ticks->gaps.items[i], 0);
	ticks->earlier_ns = ticks->gaps.items[half - 1].to_ns;
	ticks->gaps.count -= half;
	memmove(ticks->gaps.items, ticks->gaps.items + half, ticks->gaps.count * sizeof(Gap));
}

static void add_gap(SampleTimer *ticks, uint64_t from_ns, uint64_t to_ns)
{
	if (ticks->gaps.count == GAPS_MAX)
		drop_old_gaps(ticks);
	*vec_push(&ticks->gaps) = (Gap){MIN(from_ns, to_ns), to_ns, ticks->event.period};
}

int sample_timer_reopen(SampleTimer *ticks, size_t cpu, uint64_t since_ns)
{
	struct cpu_account *account = &ticks->accounts[cpu];
	int error;

	for (size_t i = 0; i < ticks->timers.count; i++) {
		if (ticks->timers.items[i].account != account)
			continue;
		bpf_link__destroy(ticks->timers.items[i].link);
		ticks->timers.items[i] = ticks->timers.items[--ticks->timers.count];
		break;
	}
	__atomic_store_n(&account->tick_state, TICKS_RUNNING, __ATOMIC_RELAXED);
	error = open_timer(ticks, cpu);
	if (!error)
		add_gap(ticks, since_ns, now_ns());
	return error;
}

/* A target that was away this long may be again, so the timer then waits twice that time. */
static void enable_if_needed(SampleTimer *ticks, Timer *timer)
{
	uint64_t arrival_ns = target_arrival_ns(timer);
	uint64_t left_ns = MAX(timer->seen_ns, timer->begun_ns);

	if (!arrival_ns)
		return;
	if (arrival_ns > left_ns)
		timer->idle_timeout_ns = MAX(timer->idle_timeout_ns, 2 * (arrival_ns - left_ns));
	enable(timer);
	add_gap(ticks, arrival_ns, timer->begun_ns);
}

void sample_timer_review(SampleTimer *ticks)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < ticks->timers.count; i++) {
		if (ticks->timers.items[i].disabled)
			enable_if_needed(ticks, &ticks->timers.items[i]);
		else
			disable_if_idle(&ticks->timers.items[i], now);
	}
}

void sample_timer_enable_all(SampleTimer *ticks, uint64_t since_ns)
{
	bool was_disabled = false;

	for (size_t i = 0; i < ticks->timers.count; i++) {
		was_disabled |= ticks->timers.items[i].disabled;
		if (ticks->timers.items[i].disabled)
			enable(&ticks->timers.items[i]);
		ticks->timers.items[i].begun_ns = now_ns();
	}
	if (was_disabled)
		add_gap(ticks, since_ns, now_ns());
}

SampleTimerCounts sample_timer_counts(const SampleTimer *ticks, uint64_t since_ns)
{
	SampleTimerCounts counts =
		ticks->earlier_ns > since_ns ? ticks->earlier : (SampleTimerCounts){};

	for (size_t i = 0; i < ticks->gaps.count; i++)
		if (ticks->gaps.items[i].to_ns > since_ns)
			count_gap(&counts, &ticks->gaps.items[i], since_ns);
	return counts;
}

void sample_timer_stop(SampleTimer *ticks)
{
	for (size_t i = 0; i < ticks->timers.count; i++)
		bpf_link__destroy(ticks->timers.items[i].link);
	vec_free(&ticks->timers);
}

void sample_timer_free(SampleTimer *ticks)
{
	if (!ticks)
		return;
	sample_timer_stop(ticks);
	vec_free(&ticks->gaps);
	free(ticks);
}
