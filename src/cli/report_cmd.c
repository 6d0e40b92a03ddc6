/* SPDX-License-Identifier: GPL-2.0-or-later */
/* report_cmd.c - `wallprof report`: which part of the report, in which form, and where to. */
#include "commands.h"
#include "output.h"
#include "page.h"
#include "pager.h"
#include "report.h"
#include "results.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Sets the index of the longest thread with this ID. Returns 0 or a negative errno, logged. */
static int find_thread(const Timeline *timeline, pid_t tid, uint32_t *ret_thread)
{
	uint64_t longest_ns = 0;
	size_t found = 0;

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		uint64_t ns = thread->end_ns - MIN(thread->start_ns, thread->end_ns);

		if (thread->ns_tid != (uint32_t)tid)
			continue;
		if (found++ == 0 || ns > longest_ns) {
			longest_ns = ns;
			*ret_thread = i;
		}
	}
	if (found == 0) {
		log_error("no such thread in this recording: %d; --section threads lists them all",
			  tid);
		return -ESRCH;
	}
	if (found > 1)
		log_warn("%zu threads had the ID %d; this is the one that lived longest", found,
			 tid);
	return 0;
}

static int print_json(const Loaded *loaded, const ReportOptions *options,
		      const ReportSelection *selection)
{
	Output *output = output_for_stream(stdout);
	bool part = selection->section || selection->top || selection->limit ||
		    selection->timeline != THREAD_NONE;
	uint64_t smallest;
	int error = 0, write_error;

	if (part)
		error = report_json_part(output, loaded->timeline, loaded->frames,
					 options->function, selection, &smallest);
	else
		report_json(output, loaded->timeline, loaded->frames, options->function);
	write_error = output_close(output);
	if (error == -ENOSPC) {
		log_error("--limit %" PRIu64 ": expected %" PRIu64 " or more", selection->limit,
			  smallest);
		return error;
	}
	if (write_error) {
		clearerr(stdout); /* or main() reports it again, without the reason */
		log_error("writing to stdout failed: %s", error_text(write_error));
	}
	return error ? error : write_error;
}

static int print_text(const Page *page, const Loaded *loaded, const ReportOptions *options,
		      const ReportSelection *selection)
{
	if (options->function) {
		if (report_print_function(page, loaded->timeline, loaded->frames, options->function,
					  selection))
			return 0;
		log_error("no waits under a function named %s", options->function);
		return -ENOENT;
	}
	if (options->critical_path)
		report_print_path(page, loaded->timeline, loaded->frames, selection);
	else
		report_print(page, loaded->timeline, loaded->frames, selection);
	return 0;
}

static int print_page(const Loaded *loaded, const ReportOptions *options,
		      const ReportSelection *selection)
{
	_cleanup_(pager_stop) Pager pager = {};
	Page page;

	page_init(&page, stdout);
	if (!options->no_pager)
		pager_start(&pager, &page);
	return print_text(&page, loaded, options, selection);
}

int report_cmd_run(const Options *options, const Invoker *invoker)
{
	_cleanup_(export_cmd_unload) Loaded loaded = {};
	_cleanup_free_ char *capture = NULL;
	LoadOptions load = options->load;
	ReportSelection selection = {
		.section = options->report.section,
		.full = options->report.full,
		.top = options->report.top,
		.limit = options->report.limit,
		.timeline = THREAD_NONE,
	};
	int error;

	load.no_source = true; /* reports do not show source text */
	if (results_find_capture(options->input, &capture) ||
	    export_cmd_load(capture, /* capture_fd= */ -1, /* output_path= */ NULL, &load, invoker,
			    &loaded))
		return EXIT_FAILURE;
	error = options->report.timeline_tid
			? find_thread(loaded.timeline, options->report.timeline_tid,
				      &selection.timeline)
			: 0;
	if (error)
		return EXIT_FAILURE;
	error = options->report.json ? print_json(&loaded, &options->report, &selection)
				     : print_page(&loaded, &options->report, &selection);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
