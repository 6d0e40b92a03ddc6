/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "print_report.h"
#include "summary.h"
#include "test_tools.h"

char *report_text(Printer printer, const Timeline *timeline)
{
	char *text, *copy;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Frames *frames = frames_new();

	printer(stream, timeline, frames);
	fclose(stream);
	frames_free(frames);
	copy = xstrdup(text); /* gcc takes text itself, whose address was passed, for local */
	free(text);
	return copy;
}

void print_summary(FILE *file, const Timeline *timeline, Frames *frames)
{
	SummaryOptions options = {.profile = "dir/out.json.gz", .capture = "dir/out.capture"};

	summary_print(file, timeline, frames, &options);
}

void print_section(FILE *file, const Timeline *timeline, Frames *frames, const char *name)
{
	const Page page = {.file = file};
	const ReportSelection selection = {.section = name, .top = 10, .timeline = THREAD_NONE};

	report_print(&page, timeline, frames, &selection);
}

/* Ten rows of each table, as long as the lines are. */
void print_full(FILE *file, const Timeline *timeline, Frames *frames)
{
	const Page page = {.file = file};
	const ReportSelection selection = {.full = true, .top = 10, .timeline = THREAD_NONE};

	report_print(&page, timeline, frames, &selection);
}

void print_accounts(FILE *file, const Timeline *timeline, Frames *frames)
{
	SummaryOptions options = {.profile = "dir/out.json.gz", .accounts = true};

	summary_print(file, timeline, frames, &options);
}

void check_contains(Printer printer, const Timeline *timeline, const char *expected)
{
	char *text = report_text(printer, timeline);

	if (!strstr(text, expected))
		fail_msg("no \"%s\" in:\n%s", expected, text);
	free(text);
}

void check_lacks(Printer printer, const Timeline *timeline, const char *unexpected)
{
	char *text = report_text(printer, timeline);

	assert_null(strstr(text, unexpected));
	free(text);
}
