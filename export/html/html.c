/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "html.h"
#include "accounts.h"
#include "answer.h"
#include "html_parts.h"
#include "left_out.h"
#include "report.h"
#include "summary.h"
#include "text.h"
#include <errno.h>

#define ANSWER_MOST  7
#define REPORT_WIDTH 110 /* columns of the report as text */
/* With fewer rows than these a smaller file has no timeline to speak of. */
#define HTML_ROW_LEAST 20000
#define HTML_TEXT_ROOM (96u << 10) /* bytes for the answer and the report as text */

static void put(Output *output, const char *text)
{
	output_write(output, text, strlen(text));
}

/* Control characters are no part of a document, except those that end lines. */
static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\n') || c == 0x7f;
}

/* Writes any bytes as text: no character of it is markup. */
static void put_text(Output *output, const char *text)
{
	_cleanup_free_ char *valid = utf8_sanitize(text);

	for (const char *p = valid ? valid : text; *p; p++) {
		if (*p == '&')
			put(output, "&amp;");
		else if (*p == '<')
			put(output, "&lt;");
		else if (*p == '>')
			put(output, "&gt;");
		else if (*p == '"')
			put(output, "&quot;");
		else if (*p == '\'')
			put(output, "&#39;");
		else if (is_control(*p))
			put(output, "\xef\xbf\xbd"); /* U+FFFD */
		else
			output_write(output, p, 1);
	}
}

static void put_element(Output *output, const char *element, const char *text)
{
	put(output, "<");
	put(output, element);
	put(output, ">");
	put_text(output, text);
	put(output, "</");
	put(output, element);
	put(output, ">\n");
}

/* Takes the line; NULL: there is none. */
static void put_line(Output *output, char *line)
{
	if (line)
		put_element(output, "p", line);
	free(line);
}

static void put_part(Output *output, const Answer *answer, uint64_t ns, const char *who,
		     const char *what)
{
	_cleanup_free_ char *share =
		xasprintf("%.1f %%", answer->all_ns ? 100.0 * ns / answer->all_ns : 0);

	put(output, "<tr>");
	put_element(output, "td", share);
	put_element(output, "td", DURATION(ns));
	put_element(output, "td", who);
	put_element(output, "td", what);
	put(output, "</tr>\n");
}

static void put_parts(Output *output, const Answer *answer)
{
	size_t shown = 0, rest_count;
	uint64_t rest_ns;

	put(output, "<table id=\"answer-parts\"><caption>Its largest parts</caption>\n"
		    "<thead><tr><th scope=\"col\">share</th><th scope=\"col\">time</th>"
		    "<th scope=\"col\">who</th><th scope=\"col\">what</th></tr></thead><tbody>\n");
	for (; shown < answer->parts.count && !(shown > 0 && answer_is_small(answer, shown));
	     shown++)
		put_part(output, answer, answer->parts.items[shown].ns,
			 answer->parts.items[shown].who, answer->parts.items[shown].what);
	rest_ns = answer_rest(answer, shown, &rest_count);
	if (rest_ns > 0) {
		_cleanup_free_ char *rest =
			xasprintf("%zu smaller part%s", rest_count, rest_count == 1 ? "" : "s");

		put_part(output, answer, rest_ns, "", rest);
	}
	put(output, "</tbody></table>\n");
}

/* Its sentences are those of the summary at the end of a run. */
static void put_answer(Output *output, const Timeline *timeline, Frames *frames)
{
	Accounts accounts = accounts_of(timeline);
	Answer answer = answer_make(timeline, frames, ANSWER_MOST);
	SummaryLines lines = summary_lines(timeline, frames, &answer, /* all= */ true);
	_cleanup_free_ char *heading = summary_recorded(timeline);
	_cleanup_free_ char *lead = summary_title(timeline, &answer);

	put(output, "<section id=\"answer\" aria-label=\"Answer\">\n");
	put_element(output, "h1", heading);
	put_element(output, "p", lead);
	put_parts(output, &answer);
	for (size_t i = 0; i < lines.count; i++)
		put_element(output, "p", lines.list[i]);
	summary_lines_free(&lines);
	put(output, "<div id=\"remarks\">\n");
	put_line(output, accounts_loss_text(timeline));
	put_line(output, accounts_disagreement(timeline, &accounts));
	put_line(output, left_out_cost_warning(timeline));
	put(output, "</div>\n</section>\n");
	answer_free(&answer);
}

/* It is for readers without a script, and can be copied as text. Returns 0 or a negative errno. */
static int put_report(Output *output, const Timeline *timeline, Frames *frames)
{
	static const ReportSelection selection = {.timeline = THREAD_NONE};
	_cleanup_free_ char *text = NULL;
	size_t size;
	Page page = {.file = open_memstream(&text, &size), .width = REPORT_WIDTH};

	if (!page.file)
		return -ENOMEM;
	report_print(&page, timeline, frames, &selection);
	fclose(page.file);
	put(output,
	    "<details id=\"text-report\" open><summary>The report as text</summary>\n<pre>");
	put_text(output, text);
	put(output, "</pre></details>\n");
	return 0;
}

static void put_head(Output *output, const Timeline *timeline)
{
	_cleanup_free_ char *heading = summary_recorded(timeline);

	put(output, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"");
	output_write(output, html_policy, html_policy_size);
	put(output,
	    "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	    "<meta name=\"color-scheme\" content=\"light dark\">\n"
	    "<meta name=\"generator\" content=\"wallprof " WALLPROF_VERSION
	    " (GPL-2.0-or-later)\">\n<title>");
	put_text(output, heading);
	put(output, " - wallprof</title>\n<style>");
	output_write(output, html_style, html_style_size);
	put(output, "</style>\n</head>\n<body>\n");
}

/* Makes the packed data with so many rows that the file is not too large. */
static int make_data(const Timeline *timeline, Frames *frames, const HtmlOptions *options,
		     Bytes *ret_data)
{
	size_t most =
		(HTML_BYTES_MOST - HTML_TEXT_ROOM - html_script_size - html_style_size) / 4 * 3;
	HtmlPlan plan = {
		.hidden = options->hidden,
		.rows = options->row_budget ? options->row_budget : HTML_ROW_BUDGET,
		.waits = options->wait_budget ? options->wait_budget : HTML_WAIT_BUDGET,
	};
	int error;

	for (;;) {
		ret_data->count = 0;
		error = html_data_make(timeline, frames, &plan, ret_data);
		error = error ?: html_packed_make(ret_data);
		if (error || options->row_budget || ret_data->count <= most ||
		    plan.rows < HTML_ROW_LEAST)
			return error;
		/* Names and tables stay as large as they are. */
		plan.rows = MIN(plan.rows * most / ret_data->count * 9 / 10, plan.rows / 2);
	}
}

int html_write(Output *output, const Timeline *timeline, Frames *frames, const HtmlOptions *options)
{
	static const HtmlOptions defaults = {};
	Bytes data = {};
	int error = make_data(timeline, frames, options ? options : &defaults, &data);

	if (!error) {
		put_head(output, timeline);
		put_answer(output, timeline, frames);
		output_write(output, html_body, html_body_size);
		error = put_report(output, timeline, frames);
		put(output, "<script type=\"application/octet-stream\" id=\"data\">\n");
		html_packed_write(output, &data);
		put(output, "</script>\n<script>");
		output_write(output, html_script, html_script_size);
		put(output, "</script>\n</body>\n</html>\n");
	}
	vec_free(&data);
	output_flush(output);
	return error ? error : output->error;
}
