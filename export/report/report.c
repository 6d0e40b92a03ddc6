/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"
#include "accounts.h"
#include "labels.h"
#include "record_info.h"
#include "recording_cost.h"
#include "report_places.h"
#include "report_sections.h"
#include "stack_stats.h"
#include "text.h"
#include <inttypes.h>

#define SUMMARY_PLACES 5

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
	Accounts accounts = accounts_of(timeline);
	uint64_t idle = report_places_time(places, CATEGORY_IDLE);
	uint64_t between = report_places_time(places, CATEGORY_JOBS);
	uint64_t rest = accounts.lifetime - idle - between;

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
	Accounts accounts = accounts_of(timeline);
	Places places;

	if (*command)
		fprintf(file, "command: %s\n", command);
	fprintf(file, "window: %s, kernel %s\n", DURATION(timeline->end_ns - timeline->start_ns),
		release);
	report_places_init(&places, timeline, frames);
	report_places_add_all(&places);
	/* The summary comes first: it is read on a terminal. */
	accounts_print_times(file, timeline);
	print_path_places(file, timeline, frames);
	report_path_line(file, timeline);
	print_places(file, timeline, &places);
	accounts_print_states(file, timeline, &accounts);
	accounts_print_costs(file, timeline);
	accounts_print_losses(file, timeline);
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
