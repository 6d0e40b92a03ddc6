/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"
#include "compressor.h"
#include "labels.h"
#include "record_info.h"
#include "recording_cost.h"
#include "report_places.h"
#include "report_sections.h"
#include "stack_stats.h"
#include "text.h"
#include <inttypes.h>

#define SUMMARY_PLACES	 5
#define PROFILER_ADDRESS "https://profiler.firefox.com"
#define PERFETTO_ADDRESS "https://ui.perfetto.dev"

typedef struct Sums {
	uint64_t lifetime, ledger[STATE_COUNT];
	/* of threads whose kernel account is known: the kernel's sums and ours */
	size_t known;
	uint64_t kernel_running, kernel_delay, running, runnable;
	bool delay_known;
} Sums;

static uint64_t thread_lifetime(const Thread *thread)
{
	return thread->end_ns - MIN(thread->start_ns, thread->end_ns);
}

/* ---- sums ---------------------------------------------------------------------- */

static void add_kernel(Sums *sums, const Thread *thread)
{
	if (!thread->kernel.known)
		return;
	sums->known++;
	sums->kernel_running += thread->kernel.sum_exec_runtime;
	sums->running += thread->ledger[STATE_RUNNING];
	sums->runnable += thread->ledger[STATE_RUNNABLE];
	if (thread->kernel.run_delay == UINT64_MAX)
		sums->delay_known = false;
	else
		sums->kernel_delay += thread->kernel.run_delay;
}

static Sums sum_up(const Timeline *timeline)
{
	Sums sums = {.delay_known = true};

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		sums.lifetime += thread_lifetime(thread);
		for (size_t s = 0; s < STATE_COUNT; s++)
			sums.ledger[s] += thread->ledger[s];
		add_kernel(&sums, thread);
	}
	return sums;
}

/* ---- parts of the summary and of the report -------------------------------------- */

static void print_place(FILE *file, uint64_t ns, uint64_t all_ns, const char *name)
{
	fprintf(file, "  %5.1f %%  %10s  %s\n", 100.0 * ns / all_ns, DURATION(ns), name);
}

/* all_ns: the time that is neither idle nor between jobs. */
static void print_largest_places(FILE *file, const Places *places, uint64_t all_ns)
{
	size_t shown = 0, left = 0;
	uint64_t left_ns = 0;

	for (size_t i = 0; i < places->list.count; i++) {
		const Place *place = &places->list.items[i];

		if (category_is_idle(place->category) || place->ns == 0)
			continue;
		if (shown == SUMMARY_PLACES) {
			left_ns += place->ns;
			left++;
			continue;
		}
		_cleanup_free_ char *name = report_place_name(places, place);
		print_place(file, place->ns, all_ns, name);
		shown++;
	}
	if (left > 0) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);

		print_place(file, left_ns, all_ns, text);
	}
}

/* Prints the places of all threads; sorts them. */
static void print_places(FILE *file, const Timeline *timeline, Places *places)
{
	Sums sums = sum_up(timeline);
	uint64_t idle = report_places_time(places, CATEGORY_IDLE);
	uint64_t between = report_places_time(places, CATEGORY_JOBS);
	uint64_t rest = sums.lifetime - idle - between;

	fprintf(file, "where the time of %zu thread%s went: %s", timeline->threads.count,
		timeline->threads.count == 1 ? "" : "s", DURATION(rest));
	if (idle + between > 0)
		fputs(" (and ", file);
	if (idle > 0)
		fprintf(file, "%s idle, ", DURATION(idle));
	if (between > 0)
		fprintf(file, "%s between jobs, ", DURATION(between));
	if (idle + between > 0)
		fputs("not counted here)", file);
	fputc('\n', file);
	report_places_sort(places);
	print_largest_places(file, places, rest);
}

/*
 * Prints, for a command, what the run waited for. The sums below it count a wait for another thread
 * in addition to what that thread did meanwhile, so their largest part is seldom what to improve.
 */
static void print_path_places(FILE *file, const Timeline *timeline, Frames *frames)
{
	const Thread *track = &timeline->path.track;
	Places places;

	if (timeline->command_thread >= timeline->threads.count || track->intervals.count == 0 ||
	    track->end_ns == track->start_ns)
		return;
	report_places_init(&places, timeline, frames);
	report_places_add(&places, timeline->threads.count);
	report_places_sort(&places);
	fprintf(file, "what set the length of the run (its critical path): %s\n",
		DURATION(track->end_ns - track->start_ns));
	print_largest_places(file, &places, track->end_ns - track->start_ns);
	report_places_free(&places);
}

/* Returns whether the window is only a part of the recording. */
static bool is_part(const Timeline *timeline)
{
	return timeline->cut || timeline_meta(timeline, "flight_recorder_ns");
}

static void print_ledger(FILE *file, const Timeline *timeline, const Sums *sums)
{
	fprintf(file,
		"time by state: running %s + runnable %s + blocked %s + unknown %s = lifetime %s\n",
		DURATION(sums->ledger[STATE_RUNNING]), DURATION(sums->ledger[STATE_RUNNABLE]),
		DURATION(sums->ledger[STATE_BLOCKED]), DURATION(sums->ledger[STATE_UNKNOWN]),
		DURATION(sums->lifetime));
	if (sums->known == 0) {
		fputs(is_part(timeline)
			      ? "kernel accounting: not available for a part of a recording\n"
			      : "kernel accounting: not received\n",
		      file);
		return;
	}
	fprintf(file,
		"kernel accounting, for comparison: %zu thread%s, sum_exec_runtime %s (running %s)",
		sums->known, sums->known == 1 ? "" : "s", DURATION(sums->kernel_running),
		DURATION(sums->running));
	if (sums->delay_known)
		fprintf(file, ", run_delay %s (runnable %s)", DURATION(sums->kernel_delay),
			DURATION(sums->runnable));
	fputc('\n', file);
}

static void print_recording(FILE *file, const Timeline *timeline)
{
	_cleanup_free_ char *text = recording_cost_text(timeline);

	if (text)
		fprintf(file, "%s\n", text);
}

/* The kernel counts steal time in units of 10 ms. */
#define STEAL_UNIT_NS (10 * NSEC_PER_MSEC)

/* Printed for a whole recording, if it is certainly more than 1 % of the CPU time. */
static void print_steal_time(FILE *file, const Timeline *timeline)
{
	uint64_t start_ns, end_ns, cpus, all_ns;

	if (timeline->cut || !timeline_meta_number(timeline, "stolen_at_start_ns", &start_ns) ||
	    !timeline_meta_number(timeline, "stolen_at_end_ns", &end_ns) ||
	    !timeline_meta_number(timeline, "cpus", &cpus))
		return;
	all_ns = cpus * (timeline->end_ns - timeline->start_ns);
	if (end_ns < start_ns || end_ns - start_ns <= all_ns / 100 + STEAL_UNIT_NS)
		return;
	fprintf(file, "steal time: %s (%.1f %% of CPU time), included in \"running\"\n",
		DURATION(end_ns - start_ns), 100.0 * (end_ns - start_ns) / all_ns);
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

static void print_losses(FILE *file, const Timeline *timeline)
{
	bool part = is_part(timeline), any;

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

/* ---- the summary ----------------------------------------------------------------- */

/* Splits the running time of the command's main thread into user and kernel mode, by its ticks. */
static bool split_running(const Timeline *timeline, Frames *frames, uint64_t *ret_user,
			  uint64_t *ret_kernel)
{
	const Thread *thread = &timeline->threads.items[timeline->command_thread];
	uint64_t running = thread->ledger[STATE_RUNNING];
	uint64_t ticks = thread->kernel.known ? thread->kernel.utime + thread->kernel.stime : 0;
	Places places;
	bool split = true;

	report_places_init(&places, timeline, frames);
	if (places.plan.tick_ends[timeline->command_thread].last_tick != SIZE_MAX) {
		report_places_add(&places, timeline->command_thread);
		/* As in rusage, recording is kernel time. */
		*ret_kernel = report_places_time(&places, CATEGORY_KERNEL) +
			      report_places_time(&places, CATEGORY_RECORDING);
	} else if (ticks > 0) {
		*ret_kernel = (double)running * thread->kernel.stime / ticks;
	} else {
		split = false;
		*ret_kernel = 0;
	}
	*ret_kernel = MIN(*ret_kernel, running);
	*ret_user = running - *ret_kernel;
	report_places_free(&places);
	return split;
}

static void print_times(FILE *file, const Timeline *timeline, Frames *frames)
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
	if (split_running(timeline, frames, &user, &kernel))
		fprintf(file, "user %s + sys %s", DURATION(user), DURATION(kernel));
	else
		fprintf(file, "user and sys %s", DURATION(user));
	fprintf(file, " + waited %s", DURATION(waited));
	if (unknown > 0)
		fprintf(file, " + unknown %s", DURATION(unknown));
	fputs(" (main thread)\n", file);
}

static void print_open(FILE *file, const char *output_path, bool is_trace)
{
	_cleanup_free_ char *word = shell_word(output_path);
	_cleanup_free_ char *path = text_printable(word);
	const char *address = is_trace ? PERFETTO_ADDRESS : PROFILER_ADDRESS;

	fprintf(file, "open: wallprof open %s, or ", path);
	if (compressor_packing(output_path) == PACKING_ZSTD)
		fprintf(file, "zstd -d %s and load that at %s\n", path, address);
	else
		fprintf(file, "load it at %s\n", address);
}

void report_summary(FILE *file, const Timeline *timeline, Frames *frames, const char *output_path,
		    bool is_trace)
{
	Sums sums = sum_up(timeline);
	Places places;

	print_times(file, timeline, frames);
	print_path_places(file, timeline, frames);
	report_places_init(&places, timeline, frames);
	report_places_add_all(&places);
	print_places(file, timeline, &places);
	report_places_free(&places);
	print_ledger(file, timeline, &sums);
	print_recording(file, timeline);
	print_steal_time(file, timeline);
	print_losses(file, timeline);
	print_open(file, output_path, is_trace);
}

/* ---- the report -------------------------------------------------------------------- */

static void print_spans(FILE *file, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->losses.count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];
		const char *label = record_info(loss->kind)->word;
		uint64_t from = loss->from_ns - MIN(loss->from_ns, timeline->start_ns);
		bool on_cpu = loss->cause != LOSS_RECURSION && loss->cause != LOSS_UNWALKED;

		fprintf(file, "      %" PRIu64 " %s", loss->count, label ? label : "other records");
		if (on_cpu)
			fprintf(file, " on CPU %u", loss->cpu);
		fprintf(file, ", %s long, ",
			DURATION(loss->to_ns - MIN(loss->from_ns, loss->to_ns)));
		if (loss->to_ns < timeline->start_ns)
			fputs("before the window", file);
		else
			fprintf(file, "at %s", DURATION(from));
		fprintf(file, ": %s\n", loss_cause_label(loss->cause));
	}
}

/* Lists stacks that are truncated, by reason and object; only the sum if all are complete. */
static void print_stacks(FILE *file, const Timeline *timeline, Frames *frames)
{
	_cleanup_free_ char *line = NULL;
	StackStats sums;
	int width = 0;

	stack_stats_init(&sums, timeline, frames);
	line = stack_stats_line(&sums);
	fprintf(file, "stacks: %s\n", line);
	for (size_t i = 0; i < sums.shorts.count; i++)
		width = MAX(width, (int)strlen(stack_end_words(sums.shorts.items[i].end)));
	for (size_t i = 0; i < sums.shorts.count; i++) {
		const StackShortage *shortage = &sums.shorts.items[i];
		_cleanup_free_ char *object = text_printable(shortage->object);

		fprintf(file, "  %12" PRIu64 "  %-*s  %s\n", shortage->count, width,
			stack_end_words(shortage->end), object);
	}
	stack_stats_free(&sums);
}

void report_print(FILE *file, const Timeline *timeline, Frames *frames)
{
	const char *kernel = timeline_meta(timeline, "kernel");
	_cleanup_free_ char *command = text_printable(timeline_meta(timeline, "command"));
	_cleanup_free_ char *release = text_printable(kernel ? kernel : "unknown");
	Sums sums = sum_up(timeline);
	Places places;

	if (*command)
		fprintf(file, "command: %s\n", command);
	fprintf(file, "window: %s, kernel %s\n", DURATION(timeline->end_ns - timeline->start_ns),
		release);
	report_places_init(&places, timeline, frames);
	report_places_add_all(&places);
	/* The summary comes first: it is read on a terminal. */
	print_times(file, timeline, frames);
	print_path_places(file, timeline, frames);
	report_path_line(file, timeline);
	print_places(file, timeline, &places);
	print_ledger(file, timeline, &sums);
	print_recording(file, timeline);
	print_steal_time(file, timeline);
	print_losses(file, timeline);
	print_spans(file, timeline);
	print_stacks(file, timeline, frames);
	report_waits_print(file, timeline);
	report_groups_print(file, timeline, frames);
	report_wakers_print(file, timeline, frames);
	report_cpu_users_print(file, timeline);
	report_faults_print(file, timeline);
	report_requests_print(file, timeline);
	report_functions_print(file, &places);
	report_places_free(&places);
	report_cpus_print(file, timeline);
	report_ledger_print(file, timeline);
}
