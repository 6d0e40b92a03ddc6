/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * html.h - writes a timeline as one HTML file, which any current browser shows without a network.
 *
 * The file has the page's style and script, the data (gzip, RFC 1952, in base64), and the answer
 * and the report as text for readers without a script. Its Content-Security-Policy allows no
 * request and no other script. Whatever the names of the recording hold, none of it becomes markup.
 */
#ifndef WALLPROF_HTML_H
#define WALLPROF_HTML_H

#include "frames.h"
#include "output.h"
#include "timeline.h"

/* A file with more bytes is made again with fewer rows. */
#define HTML_BYTES_MOST	 3000000
#define HTML_ROW_BUDGET	 640000
#define HTML_WAIT_BUDGET 20000

typedef struct HtmlOptions {
	uint32_t hidden; /* states (1 << enum thread_state) that are not shown */
	/*
	 * Sample rows of all tracks (row_plan.h); 0: HTML_ROW_BUDGET, or fewer as HTML_BYTES_MOST
	 * asks.
	 */
	uint64_t row_budget;
	uint64_t wait_budget; /* waits with details; 0: HTML_WAIT_BUDGET */
} HtmlOptions;

/* options may be NULL. Returns 0 or a negative errno; the output is flushed, and not closed. */
int html_write(Output *output, const Timeline *timeline, Frames *frames,
	       const HtmlOptions *options);

#endif
