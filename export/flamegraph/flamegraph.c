/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flamegraph.h"
#include "accounts.h"
#include "flamegraph_layout.h"
#include "flamegraph_page.h"
#include "json_writer.h"
#include "left_out.h"
#include "text.h"
#include <inttypes.h>

/* Narrower frames are left out: they are invisible, and may be many. */
#define LEAST_PIXELS 0.1

typedef struct Flamegraph {
	Output *out;
	const Timeline *timeline;
	StackTree tree;
	Layout layout;
	uint32_t hidden;   /* states */
	uint64_t least_ns; /* of a frame that is drawn */
	uint64_t left_out; /* frames */
	bool used[CATEGORY_COUNT];
} Flamegraph;

static void put(Output *out, const char *text)
{
	output_write(out, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void put_format(Output *out, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(out, text);
}

/*
 * Writes at most `letters` letters of a text, which is UTF-8; two dots stand for the others. XML
 * has no control characters, and neither U+FFFE nor U+FFFF.
 */
static void put_text(Output *out, const char *text, size_t letters)
{
	size_t count = 0;

	for (const char *p = text; *p; p += MAX(utf8_length(p), (size_t)1))
		count++;
	if (count > letters)
		letters -= 2;
	for (size_t i = 0; *text && i < letters; i++) {
		size_t length = utf8_length(text);

		if (*text == '<')
			put(out, "&lt;");
		else if (*text == '>')
			put(out, "&gt;");
		else if (*text == '&')
			put(out, "&amp;");
		else if (length == 0 || (unsigned char)*text < ' ' ||
			 (length == 3 && !memcmp(text, "\xef\xbf", 2) &&
			  (unsigned char)text[2] >= 0xbe))
			put(out, " ");
		else
			output_write(out, text, length);
		text += MAX(length, (size_t)1);
	}
	if (*text)
		put(out, "..");
}

/* ---- frames ------------------------------------------------------------------------------- */

/* In a damaged capture the sum of all threads' times may have wrapped, also to 0. */
static double pixels(const Flamegraph *graph, uint64_t ns)
{
	double share = (double)ns / MAX(graph->layout.all_ns, 1u);

	return MIN(share, 1.0) * (FLAMEGRAPH_WIDTH - 2 * FLAMEGRAPH_MARGIN);
}

static void write_frame(const Flamegraph *graph, uint32_t node)
{
	const Placed *place = &graph->layout.places[node];
	const char *name = stack_tree_name(&graph->tree, node);
	double x = FLAMEGRAPH_MARGIN + pixels(graph, place->start_ns);
	double width = pixels(graph, place->total_ns);
	uint64_t y = FLAMEGRAPH_TOP +
		     (uint64_t)(graph->layout.depth - 1 - place->depth) * FLAMEGRAPH_FRAME;
	double letters = (width - 6) / FLAMEGRAPH_LETTER;

	put(graph->out, "<g class=\"f\"><title>");
	put_text(graph->out, name, SIZE_MAX);
	put_format(graph->out,
		   " (%s, %s)</title><rect x=\"%.3f\" y=\"%" PRIu64
		   "\" width=\"%.3f\" height=\"%d\" fill=\"%s\"/>",
		   DURATION(place->total_ns), PERCENT(place->total_ns, graph->layout.all_ns), x, y,
		   width, FLAMEGRAPH_FRAME - 1, flamegraph_colour(place->category));
	put_format(graph->out, "<text x=\"%.3f\" y=\"%" PRIu64 "\">", x + 3, y + 11);
	if (letters >= 3)
		put_text(graph->out, name, letters);
	put(graph->out, "</text></g>\n");
}

static bool is_drawn(const Flamegraph *graph, uint32_t node)
{
	uint64_t ns = graph->layout.places[node].total_ns;

	return ns > 0 && ns >= graph->least_ns;
}

static void count_frames(Flamegraph *graph)
{
	graph->least_ns = LEAST_PIXELS * graph->layout.all_ns / FLAMEGRAPH_WIDTH;
	for (uint32_t i = 0; i < graph->tree.nodes.count; i++) {
		if (is_drawn(graph, i))
			graph->used[graph->layout.places[i].category] = true;
		else
			graph->left_out += graph->layout.places[i].total_ns > 0;
	}
}

/* ---- around them -------------------------------------------------------------------------- */

static void write_legend(const Flamegraph *graph)
{
	double x = FLAMEGRAPH_MARGIN;

	for (enum category category = 0; category < CATEGORY_COUNT; category++) {
		if (!graph->used[category])
			continue;
		put_format(graph->out,
			   "<rect x=\"%.0f\" y=\"54\" width=\"11\" height=\"11\" fill=\"%s\"/>"
			   "<text class=\"note\" x=\"%.0f\" y=\"64\">%s</text>\n",
			   x, flamegraph_colour(category), x + 15, category_info[category].name);
		x += 30 + 6.5 * strlen(category_info[category].name);
	}
}

/* What the picture is of, and what is missing in it, the most important first: it may be cut. */
static char *notes(const Flamegraph *graph)
{
	_cleanup_free_ char *losses = accounts_loss_text(graph->timeline), *left_out = NULL;
	_cleanup_free_ char *states = accounts_states_text(graph->hidden);
	_cleanup_free_ char *budget = left_out_line(graph->timeline);
	size_t threads = graph->timeline->threads.count;

	if (graph->left_out > 0)
		left_out = xasprintf("; %" PRIu64 " frames of less than %s left out",
				     graph->left_out, DURATION(graph->least_ns));
	return xasprintf("wall-clock time of %zu thread%s: %s%s%s%s%s%s%s%s", threads,
			 threads == 1 ? "" : "s", DURATION(graph->layout.all_ns),
			 states ? "; " : "", states ? states : "", budget ? "; " : "",
			 budget ? budget : "", losses ? "; " : "", losses ? losses : "",
			 left_out ? left_out : "");
}

static void write_head(const Flamegraph *graph, uint64_t height)
{
	const char *command = timeline_meta(graph->timeline, "command");
	_cleanup_free_ char *note = notes(graph);
	_cleanup_free_ char *title = utf8_sanitize(command ? command : "wallprof");

	put_format(graph->out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
		   "height=\"%" PRIu64 "\" viewBox=\"0 0 %d %" PRIu64 "\">\n<style>",
		   FLAMEGRAPH_WIDTH, height, FLAMEGRAPH_WIDTH, height);
	put(graph->out, flamegraph_style);
	put(graph->out, "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
	put_format(graph->out, "<text class=\"title\" x=\"%d\" y=\"22\">", FLAMEGRAPH_MARGIN);
	put_text(graph->out, title ? title : command ? command : "wallprof", 100);
	put_format(graph->out, "</text>\n<text class=\"note\" x=\"%d\" y=\"42\">",
		   FLAMEGRAPH_MARGIN);
	put_text(graph->out, note, 170);
	put(graph->out, "</text>\n");
	write_legend(graph);
	put_format(graph->out,
		   "<text id=\"reset\" class=\"note button\" x=\"980\" y=\"22\">Reset zoom</text>\n"
		   "<text id=\"search\" class=\"note button\" x=\"1080\" y=\"22\">Search</text>\n"
		   "<text id=\"details\" x=\"%d\" y=\"%" PRIu64 "\"></text>\n"
		   "<text id=\"matched\" x=\"1080\" y=\"%" PRIu64 "\"></text>\n",
		   FLAMEGRAPH_MARGIN, height - 10, height - 10);
}

int flamegraph_write(Output *out, const Timeline *timeline, Frames *frames,
		     const FlamegraphOptions *options)
{
	StackTable *tables = stack_table_new(timeline, frames);
	Flamegraph graph = {
		.out = out, .timeline = timeline, .hidden = options ? options->hidden : 0};

	stack_tree_init(&graph.tree, tables, options ? options->root : STACK_TREE_BY_THREAD,
			graph.hidden);
	flamegraph_layout_init(&graph.layout, &graph.tree);
	count_frames(&graph);
	write_head(&graph, FLAMEGRAPH_TOP + FLAMEGRAPH_BOTTOM +
				   (uint64_t)graph.layout.depth * FLAMEGRAPH_FRAME);
	for (uint32_t i = 0; i < graph.tree.nodes.count; i++)
		if (is_drawn(&graph, i))
			write_frame(&graph, i);
	put(out, "<script><![CDATA[\n");
	put(out, flamegraph_script);
	put(out, "]]></script>\n</svg>\n");
	flamegraph_layout_free(&graph.layout);
	stack_tree_free(&graph.tree);
	stack_table_free(tables);
	output_flush(out);
	return out->error;
}
