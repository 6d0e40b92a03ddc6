/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a capture file to all that is written of it. capture_mutator.c changes it. */
#include "analysis.h"
#include "capture.h"
#include "chrome.h"
#include "firefox.h"
#include "frames.h"
#include "fuzz.h"
#include "report.h"
#include "summary.h"
#include "timeline_builder.h"
#include <errno.h>

static void print_reports(FILE *file, const Timeline *timeline, Frames *frames)
{
	static const ReportSelection whole = {.full = true, .timeline = THREAD_NONE};
	static const ReportSelection first_page = {.timeline = THREAD_NONE};
	static const ReportSelection events = {.timeline = 0};
	const Page page = {.file = file, .width = 80, .colour = true};

	report_print(&page, timeline, frames, &whole);
	report_print(&page, timeline, frames, &first_page);
	report_print_path(&page, timeline, frames, &first_page);
	if (timeline->threads.count > 0)
		report_print(&page, timeline, frames, &events);
}

static void write_part(Output *output, const Timeline *timeline, Frames *frames)
{
	const ReportSelection part = {.timeline = THREAD_NONE, .limit = 3000};
	uint64_t smallest;
	int error = report_json_part(output, timeline, frames, NULL, &part, &smallest);

	fuzz_require(error == 0 || (error == -ENOSPC && smallest > part.limit));
}

static void write_formats(const Timeline *timeline, Frames *frames)
{
	/* A budget that a small file can reach. */
	static const FirefoxOptions options = {.row_budget = 2000, .marker_budget = 500};
	static const ChromeOptions chrome_options = {.slice_budget = 1000};
	static FILE *null;
	static const SummaryOptions summary = {.profile = "x.json", .accounts = true};
	Output *output;

	if (!null)
		null = fopen("/dev/null", "we");
	fuzz_require(null);
	print_reports(null, timeline, frames);
	summary_print(null, timeline, frames, &summary);
	output = output_for_stream(null);
	report_json(output, timeline, frames, NULL);
	write_part(output, timeline, frames);
	fuzz_require(firefox_write(output, timeline, frames, &options) == 0);
	fuzz_require(chrome_write(output, timeline, frames, &chrome_options) == 0);
	fuzz_require(output_close(output) == 0);
}

static void read_and_write_all(CaptureReader *reader)
{
	TimelineBuilder *builder = timeline_builder_new();
	Frames *frames = frames_new();
	const struct record *record;
	Timeline *timeline;

	while (capture_read_sorted(reader, &record) > 0) {
		timeline_builder_add(builder, record);
		frames_add(frames, record);
	}
	timeline = timeline_builder_finish(builder);
	fuzz_require(analysis_run(timeline, frames, /* critical_tid= */ 0) == 0);
	write_formats(timeline, frames);
	timeline_free(timeline);
	frames_free(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	_cleanup_free_ char *path = xasprintf("/proc/self/fd/%d", fd);
	const char *message;
	CaptureReader *reader;

	if (capture_reader_open(path, &reader, &message) == 0) {
		read_and_write_all(reader);
		capture_reader_free(reader);
	}
	close(fd);
	return 0;
}
