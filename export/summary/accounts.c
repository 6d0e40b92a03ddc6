/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "accounts.h"
#include "labels.h"
#include "record_info.h"
#include "recording_cost.h"
#include "text.h"
#include "tick_rates.h"
#include "tick_weights.h"
#include <inttypes.h>

static uint64_t thread_lifetime(const Thread *thread)
{
	return thread->end_ns - MIN(thread->start_ns, thread->end_ns);
}

static void add_kernel(Accounts *accounts, const Thread *thread)
{
	int64_t ahead;

	if (!thread->kernel.known)
		return;
	accounts->known++;
	accounts->kernel_running += thread->kernel.sum_exec_runtime;
	accounts->running += thread->ledger[STATE_RUNNING];
	accounts->runnable += thread->ledger[STATE_RUNNABLE];
	if (thread->kernel.run_delay == UINT64_MAX)
		accounts->delay_known = false;
	else
		accounts->kernel_delay += thread->kernel.run_delay;
	/* A sum that no clock can reach is a damaged capture's: such a thread is left out. */
	if (!thread->kernel.clock_known ||
	    __builtin_add_overflow(accounts->clock_ahead, thread->kernel.clock_ahead, &ahead))
		return;
	accounts->clocked++;
	accounts->clock_ahead = ahead;
	accounts->clocked_kernel_running += thread->kernel.sum_exec_runtime;
	accounts->clocked_running += thread->ledger[STATE_RUNNING];
}

Accounts accounts_of(const Timeline *timeline)
{
	Accounts accounts = {.delay_known = true};

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		accounts.lifetime += thread_lifetime(thread);
		for (size_t s = 0; s < STATE_COUNT; s++)
			accounts.ledger[s] += thread->ledger[s];
		add_kernel(&accounts, thread);
	}
	return accounts;
}

void accounts_print_states(FILE *file, const Timeline *timeline, const Accounts *accounts)
{
	fprintf(file,
		"time by state: running %s + runnable %s + blocked %s + unknown %s = lifetime %s\n",
		DURATION(accounts->ledger[STATE_RUNNING]),
		DURATION(accounts->ledger[STATE_RUNNABLE]),
		DURATION(accounts->ledger[STATE_BLOCKED]),
		DURATION(accounts->ledger[STATE_UNKNOWN]), DURATION(accounts->lifetime));
	if (accounts->known == 0) {
		fputs(timeline_is_part(timeline)
			      ? "kernel accounting: not available for a part of a recording\n"
			      : "kernel accounting: not received\n",
		      file);
		return;
	}
	fprintf(file,
		"kernel accounting, for comparison: %zu thread%s, sum_exec_runtime %s (running %s",
		accounts->known, accounts->known == 1 ? "" : "s",
		DURATION(accounts->kernel_running), DURATION(accounts->running));
	if (accounts->clocked == accounts->known)
		fprintf(file, ", scheduler clock %s%s", accounts->clock_ahead < 0 ? "-" : "+",
			DURATION(accounts->clock_ahead < 0 ? -(uint64_t)accounts->clock_ahead
							   : (uint64_t)accounts->clock_ahead));
	fputc(')', file);
	if (accounts->delay_known)
		fprintf(file, ", run_delay %s (runnable %s)", DURATION(accounts->kernel_delay),
			DURATION(accounts->runnable));
	fputc('\n', file);
}

/* The kernel counts steal time in units of 10 ms. */
#define STEAL_UNIT_NS (10 * NSEC_PER_MSEC)

/*
 * The kernel's account of a thread that runs is as old as the last tick. Where it is not known by
 * how much the scheduler's clock was ahead, that adds to the difference.
 */
#define DISAGREEMENT_NS	       (10 * NSEC_PER_MSEC)
#define DISAGREEMENT	       0.01
#define DISAGREEMENT_BY_CLOCKS 0.03

uint64_t accounts_steal_ns(const Timeline *timeline, double *ret_share)
{
	uint64_t start_ns, end_ns, cpus;
	double all_ns;

	*ret_share = 0;
	if (timeline->cut || !timeline_meta_number(timeline, "stolen_at_start_ns", &start_ns) ||
	    !timeline_meta_number(timeline, "stolen_at_end_ns", &end_ns) ||
	    !timeline_meta_number(timeline, "cpus", &cpus))
		return 0;
	/* A damaged capture may have any number of CPUs. */
	all_ns = (double)cpus * (timeline->end_ns - timeline->start_ns);
	if (all_ns <= 0 || end_ns < start_ns || end_ns - start_ns <= all_ns / 100 + STEAL_UNIT_NS)
		return 0;
	*ret_share = (end_ns - start_ns) / all_ns;
	return end_ns - start_ns;
}

/* Returns the kernel's account of the running time as CLOCK_MONOTONIC would have counted it. */
static uint64_t by_our_clock(const Accounts *accounts)
{
	uint64_t running = accounts->clocked_kernel_running;

	/* Unsigned, since a damaged capture may hold any number. */
	if (accounts->clock_ahead > 0)
		return running - MIN(running, (uint64_t)accounts->clock_ahead);
	return running - (uint64_t)accounts->clock_ahead;
}

char *accounts_disagreement(const Timeline *timeline, const Accounts *accounts)
{
	bool clocked = accounts->clocked > 0;
	uint64_t ours = clocked ? accounts->clocked_running : accounts->running, theirs, difference;
	double share, allowed = clocked ? DISAGREEMENT : DISAGREEMENT_BY_CLOCKS;

	/* By the kernel's clock, steal time is in ours only. */
	if (accounts->known == 0 || (!clocked && accounts_steal_ns(timeline, &share)))
		return NULL;
	theirs = clocked ? by_our_clock(accounts) : accounts->kernel_running;
	difference = ours > theirs ? ours - theirs : theirs - ours;
	/* What is unknown may have been running. */
	if ((theirs > ours && difference <= accounts->ledger[STATE_UNKNOWN]) ||
	    difference <= MAX(theirs, ours) * allowed + DISAGREEMENT_NS)
		return NULL;
	return xasprintf("the kernel says that these threads ran for %s, not %s (-v: more)",
			 DURATION(theirs), DURATION(ours));
}

/* Prints how many CPU samples there were a second, and what their interrupts took. */
static void print_samples(FILE *file, const Timeline *timeline)
{
	TickRates rates = tick_rates_of(timeline);
	uint64_t from_ns = timeline->start_ns;
	size_t first = 0;

	if (rates.count == 0)
		return;
	/* The window may begin after a change, or end before it. */
	while (first + 1 < rates.count && rates.list[first + 1].from_ns <= timeline->start_ns)
		first++;
	fprintf(file, "CPU samples: %" PRIu64 " a second", rates.list[first].hz);
	for (size_t i = first + 1; i < rates.count && rates.list[i].from_ns < timeline->end_ns;
	     i++) {
		fprintf(file, " for %s, then %" PRIu64,
			DURATION(rates.list[i].from_ns - MIN(rates.list[i].from_ns, from_ns)),
			rates.list[i].hz);
		from_ns = rates.list[i].from_ns;
	}
	if (rates.count > 1 && rates.share > 0)
		fprintf(file, " (%g %% of a CPU at most)", 100 * rates.share);
	if (rates.interrupt_ns == 0)
		fprintf(file, "; what their interrupts cost is not known");
	else
		fprintf(file, "; an interrupt takes %s", DURATION(rates.interrupt_ns));
	if (rates.interrupt_ns > 0 && rates.ticks > 0)
		fprintf(file, ", all %" PRIu64 " of the recording took %s", rates.ticks,
			DURATION(rates.ticks * rates.interrupt_ns));
	fputc('\n', file);
}

void accounts_print_costs(FILE *file, const Timeline *timeline)
{
	_cleanup_free_ char *recording = recording_cost_text(timeline);
	double share;
	uint64_t steal_ns = accounts_steal_ns(timeline, &share);

	if (recording)
		fprintf(file, "%s; [recording] has %s\n", recording,
			DURATION(recording_cost_sum(timeline).recording_ns));
	print_samples(file, timeline);
	if (steal_ns)
		fprintf(file, "steal time: %s (%.1f %% of CPU time), included in \"running\"\n",
			DURATION(steal_ns), 100 * share);
}

/* The part of the recording whose losses are counted. */
enum part { PART_ALL, PART_SHOWN, PART_REST };

/* Totals come at the end of a recording; if it was cut off, only the spans of loss are known. */
static uint64_t lost_of_kind(const Timeline *timeline, uint32_t kind, enum part part)
{
	uint64_t in_spans = 0, total = kind < REC_BPF_MAX ? timeline->totals[kind].lost : 0;
	uint64_t shown = timeline_lost(timeline, kind);

	for (size_t i = 0; i < timeline->losses.count; i++)
		if (timeline->losses.items[i].kind == kind)
			in_spans += timeline->losses.items[i].count;
	total = MAX(in_spans, total);
	if (part == PART_ALL)
		return total;
	return part == PART_SHOWN ? shown : total - MIN(shown, total);
}

/* Returns whether there are any. */
static bool print_lost_kinds(FILE *file, const Timeline *timeline, enum part part,
			     const char *heading)
{
	const char *separator = heading;

	for (uint32_t kind = 0; kind <= REC_MAPPING; kind++) {
		const char *label = record_info(kind)->word;
		uint64_t lost = label ? lost_of_kind(timeline, kind, part) : 0;

		if (lost == 0)
			continue;
		fprintf(file, "%s%" PRIu64 " %s", separator, lost, label);
		if (part == PART_ALL && kind < REC_BPF_MAX && timeline->totals[kind].sent > 0)
			fprintf(file, " of %" PRIu64, timeline->totals[kind].sent);
		separator = ", ";
	}
	return separator != heading;
}

/* Sums unknown time that untraced switches caused, over all threads. */
static uint64_t untraced_ns(const Timeline *timeline)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++)
			if (thread->intervals.items[i].state == STATE_UNKNOWN &&
			    thread->intervals.items[i].reason == REASON_NOT_TRACED)
				ns += interval_end(thread, i) - thread->intervals.items[i].start_ns;
	}
	return ns;
}

static void print_untraced(FILE *file, const Timeline *timeline)
{
	fprintf(file, "the kernel did not trace %" PRIu64 " context switch%s (%s unknown)\n",
		timeline->missed_switches, timeline->missed_switches == 1 ? "" : "es",
		DURATION(untraced_ns(timeline)));
}

void accounts_print_losses(FILE *file, const Timeline *timeline)
{
	bool part = timeline_is_part(timeline), any;

	any = print_lost_kinds(file, timeline, part ? PART_SHOWN : PART_ALL, "events lost: ");
	if (any)
		fputs(" (shown as unknown and as markers)\n", file);
	else
		fputs(timeline->missed_switches ? "no events lost; " : "no events lost\n", file);
	if (timeline->missed_switches && any)
		fputs("      ", file);
	if (timeline->missed_switches)
		print_untraced(file, timeline);
	if (part && print_lost_kinds(file, timeline, PART_REST,
				     "      lost in the rest of the recording: "))
		fputc('\n', file);
	if (!timeline->complete)
		fputs("      the recording was cut off; later events are missing\n", file);
	for (size_t i = 0; i < timeline->notes.count; i++) {
		_cleanup_free_ char *note = text_printable(timeline->notes.items[i]);

		fprintf(file, "note: %s\n", note);
	}
}

/* Returns the unknown time of all threads. */
static uint64_t unknown_ns(const Timeline *timeline)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++)
		ns += timeline->threads.items[t].ledger[STATE_UNKNOWN];
	return ns;
}

char *accounts_states_text(uint32_t hidden)
{
	char *text = NULL;

	for (size_t i = 0; hidden && i < STATE_COUNT; i++) {
		char *longer;

		if (hidden >> i & 1)
			continue;
		longer = xasprintf("%s%s%s", text ? text : "only these states: ", text ? ", " : "",
				   timeline_state_names[i]);
		free(text);
		text = longer;
	}
	return text;
}

char *accounts_loss_text(const Timeline *timeline)
{
	uint64_t lifetime_ns = accounts_of(timeline).lifetime, unknown = unknown_ns(timeline);
	bool any = false;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	any = print_lost_kinds(stream, timeline, timeline_is_part(timeline) ? PART_SHOWN : PART_ALL,
			       "events lost: ");
	if (!timeline->complete) {
		fprintf(stream, "%sthe recording was cut off", any ? "; " : "");
		any = true;
	}
	if (unknown > lifetime_ns / 1000) {
		fprintf(stream, "%s%s (%.1f %%) of the threads' time is unknown", any ? "; " : "",
			DURATION(unknown), 100.0 * unknown / lifetime_ns);
		any = true;
	}
	if (fclose(stream) || !any) {
		free(text);
		return NULL;
	}
	return text;
}

/* The running time of one thread that was in kernel mode. */
typedef struct KernelTime {
	const Timeline *timeline;
	const Thread *thread;
	bool has_ticks;
	double ns;
} KernelTime;

/* As in rusage, recording is kernel time. */
static void add_weight(void *user, const Thread *thread, size_t i, const Tick *tick,
		       uint64_t weight_ns)
{
	KernelTime *kernel = user;

	(void)i;
	if (thread != kernel->thread || !tick)
		return;
	kernel->has_ticks = true;
	kernel->ns +=
		weight_ns * (tick->user_mode ? recording_cost_share(kernel->timeline, tick) : 1.0);
}

/* Splits the running time of the command's main thread into user and kernel mode, by its ticks. */
static bool split_running(const Timeline *timeline, uint64_t *ret_user, uint64_t *ret_kernel)
{
	const Thread *thread = &timeline->threads.items[timeline->command_thread];
	uint64_t running = thread->ledger[STATE_RUNNING];
	/* As a double, since in a damaged capture the sum may be more than any integer. */
	double all = thread->kernel.known ? (double)thread->kernel.utime + thread->kernel.stime : 0;
	KernelTime kernel = {.timeline = timeline, .thread = thread};
	bool split = true;

	tick_weights_visit(timeline, add_weight, &kernel);
	if (kernel.has_ticks) {
		*ret_kernel = kernel.ns;
	} else if (all > 0) {
		*ret_kernel = running * (thread->kernel.stime / all);
	} else {
		split = false;
		*ret_kernel = 0;
	}
	*ret_kernel = MIN(*ret_kernel, running);
	*ret_user = running - *ret_kernel;
	return split;
}

void accounts_print_times(FILE *file, const Timeline *timeline)
{
	const Thread *thread;
	uint64_t user, kernel, waited, unknown;

	if (timeline->command_thread >= timeline->threads.count) {
		fprintf(file, "real %s, %zu thread%s in %zu process%s\n",
			DURATION(timeline->end_ns - timeline->start_ns), timeline->threads.count,
			timeline->threads.count == 1 ? "" : "s", timeline->processes.count,
			timeline->processes.count == 1 ? "" : "es");
		return;
	}
	thread = &timeline->threads.items[timeline->command_thread];
	unknown = thread->ledger[STATE_UNKNOWN];
	waited = thread->ledger[STATE_BLOCKED] + thread->ledger[STATE_RUNNABLE];
	fprintf(file, "real %s = ", DURATION(thread_lifetime(thread)));
	if (split_running(timeline, &user, &kernel))
		fprintf(file, "user %s + sys %s", DURATION(user), DURATION(kernel));
	else
		fprintf(file, "user and sys %s", DURATION(user));
	fprintf(file, " + waited %s", DURATION(waited));
	if (unknown > 0)
		fprintf(file, " + unknown %s", DURATION(unknown));
	fputs(" (main thread)\n", file);
}
