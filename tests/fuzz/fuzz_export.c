/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a capture file to all that is written of it. capture_mutator.c changes it. */
#include "analysis.h"
#include "anonymizer.h"
#include "capture.h"
#include "capture_format.h"
#include "chrome.h"
#include "firefox.h"
#include "flamegraph.h"
#include "folded.h"
#include "frames.h"
#include "fuzz.h"
#include "html.h"
#include "pprof.h"
#include "report.h"
#include "speedscope.h"
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
	static const SpeedscopeOptions speedscope_options = {.event_budget = 500};
	static const HtmlOptions html_options = {.row_budget = 1000, .wait_budget = 100};
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
	fuzz_require(flamegraph_write(output, timeline, frames, NULL) == 0);
	fuzz_require(folded_write(output, timeline, frames, NULL) == 0);
	fuzz_require(pprof_write(output, timeline, frames, NULL) == 0);
	fuzz_require(speedscope_write(output, timeline, frames, &speedscope_options) == 0);
	fuzz_require(html_write(output, timeline, frames, &html_options) == 0);
	fuzz_require(output_close(output) == 0);
}

/* Returns the names of a capture, which is at its begin again. */
static Anonymizer *learn_names(CaptureReader *reader)
{
	Anonymizer *anonymizer = anonymizer_new();
	const struct record *record;

	while (capture_read(reader, &record) > 0)
		anonymizer_learn(anonymizer, record);
	fuzz_require(capture_reader_rewind(reader) == 0);
	return anonymizer;
}

static bool is_source(const struct record *record)
{
	return record->kind == REC_SOURCE;
}

/* What stands for a record is one that the reader of a capture would accept. */
static const struct record *replace(Anonymizer *anonymizer, const struct record *record)
{
	const struct record *other = anonymizer_replace(anonymizer, record);

	fuzz_require(!other || (other->kind == record->kind && !is_source(other) &&
				capture_check(other) == CAPTURE_RECORD_GOOD));
	return other;
}

static void read_and_write_all(CaptureReader *reader, Anonymizer *anonymizer)
{
	TimelineBuilder *builder = timeline_builder_new();
	_cleanup_free_ char *all = NULL;
	Frames *frames = frames_new();
	const struct record *record;
	Timeline *timeline;

	if (anonymizer) {
		timeline_builder_add(builder, anonymizer_mark(anonymizer, REC_META));
		all = anonymizer_filter(anonymizer, "*");
		timeline_builder_filter(builder, &(TimelineFilter){.threads = all});
	}
	while (capture_read_sorted(reader, &record) > 0) {
		record = anonymizer ? replace(anonymizer, record) : record;
		if (!record)
			continue;
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

	/* Half of the inputs, by a bit of the last frame's checksum, are read without names. */
	if (capture_reader_open(path, &reader, &message) == 0) {
		_cleanup_(anonymizer_freep) Anonymizer *anonymizer =
			data[size - 1] & 1 ? learn_names(reader) : NULL;

		read_and_write_all(reader, anonymizer);
		capture_reader_free(reader);
	}
	close(fd);
	return 0;
}
