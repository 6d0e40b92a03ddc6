/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json_writer.h"
#include "labels.h"
#include "left_out.h"
#include "page_table.h"
#include "record_info.h"
#include "report_sections.h"
#include "stack_stats.h"
#include "text.h"

static const TableColumn span_columns[] = {{"lost", 8, 0}, {"at", 12, 0}, {"during", 12, 1}};
static const TableColumn stack_columns[] = {{"stacks", 12, 0}};
static const TableColumn code_columns[] = {{"cut", 12, 0}, {"guessed", 12, 0}};
static const TableColumn left_out_columns[] = {{"left out", 8, 0}, {"of", 8, 0}, {"waits", 12, 0}};

static void print_spans(const Report *report)
{
	const Timeline *timeline = report->timeline;
	Table table;

	page_table_init(&table, report->page, span_columns, ARRAY_LEN(span_columns),
			report->max_rank);
	for (size_t i = 0; i < MIN(timeline->losses.count, report->rows); i++) {
		const LossSpan *loss = &timeline->losses.items[i];
		const char *label = record_info(loss->kind)->word;
		bool before = loss->to_ns < timeline->start_ns;
		bool on_cpu = loss->cause != LOSS_RECURSION && loss->cause != LOSS_UNWALKED;
		const char *cells[] = {
			COUNT(loss->count),
			before ? "before it"
			       : DURATION(loss->from_ns - MIN(loss->from_ns, timeline->start_ns)),
			DURATION(loss->to_ns - MIN(loss->from_ns, loss->to_ns))};
		_cleanup_free_ char *text = xasprintf(
			"%s%s%s: %s", label ? label : "other records", on_cpu ? " on CPU " : "",
			on_cpu ? COUNT(loss->cpu) : "", loss_cause_label(loss->cause));

		page_table_head(&table, "losses: kind, CPU and cause");
		page_table_row(&table, cells, text);
	}
}

/* Says in which kinds of code stacks are truncated, and from which on they are guessed. */
static void print_code(const Report *report, const StackStats *sums)
{
	Table table;

	page_table_init(&table, report->page, code_columns, ARRAY_LEN(code_columns),
			report->max_rank);
	for (size_t kind = 0; kind < CODE_KINDS; kind++) {
		const StackCode *code = &sums->code[kind];
		const char *cells[] = {PERCENT(code->cut, sums->walked),
				       PERCENT(code->guessed, sums->walked)};

		if (code->cut + code->guessed == 0)
			continue;
		page_table_head(&table,
				"kind of code where stacks are cut, or the caller is guessed");
		page_table_row(&table, cells, stack_code_words(kind));
	}
}

/* Lists stacks that are truncated, by reason and object; only the sum if all are complete. */
static void print_stacks(const Report *report)
{
	_cleanup_free_ char *line = NULL, *text = NULL;
	StackStats sums;
	int width = 0;
	Table table;

	stack_stats_init(&sums, report->timeline, report->frames);
	line = stack_stats_line(&sums);
	text = xasprintf("stacks: %s", line);
	page_paragraph(report->page, REPORT_INDENT, text);
	for (size_t i = 0; i < sums.shorts.count; i++)
		width = MAX(width, (int)strlen(stack_end_words(sums.shorts.items[i].end)));
	page_table_init(&table, report->page, stack_columns, ARRAY_LEN(stack_columns),
			report->max_rank);
	for (size_t i = 0; i < MIN(sums.shorts.count, report->rows); i++) {
		const StackShortage *shortage = &sums.shorts.items[i];
		const char *cells[] = {COUNT(shortage->count)};
		_cleanup_free_ char *object = text_printable(shortage->object);
		_cleanup_free_ char *name =
			xasprintf("%-*s  %s", width, stack_end_words(shortage->end), object);

		page_table_head(&table, "why they are not complete, and where");
		page_table_row(&table, cells, name);
	}
	print_code(report, &sums);
	stack_stats_free(&sums);
}

/* Lists where --budget left out stacks. */
static void print_left_out(const Report *report)
{
	_cleanup_free_ char *line = NULL;
	LeftOut left_out;
	Table table;

	if (!left_out_find(report->timeline, &left_out))
		return;
	line = left_out_text(&left_out);
	if (line)
		page_paragraph(report->page, REPORT_INDENT, line);
	page_table_init(&table, report->page, left_out_columns, ARRAY_LEN(left_out_columns),
			report->max_rank);
	for (size_t i = 0; i < MIN(left_out.list.count, report->rows); i++) {
		const LeftOutPlace *place = &left_out.list.items[i];
		const char *cells[] = {COUNT(place->unsampled), COUNT(place->switch_outs),
				       DURATION(place->ns)};
		_cleanup_free_ char *program = text_printable(place->program);
		_cleanup_free_ char *where = left_out_place_text(place);
		_cleanup_free_ char *text = xasprintf("%s %s", program, where);

		if (place->unsampled == 0)
			continue;
		page_table_head(&table, "stacks left out (--budget)");
		page_table_row(&table, cells, text);
	}
	left_out_free(&left_out);
}

void report_left_out(Json *json, const Timeline *timeline)
{
	LeftOut left_out;

	if (!left_out_find(timeline, &left_out)) {
		json_key_null(json, "budget");
		return;
	}
	json_key_object(json, "budget");
	json_key_u64(json, "share_ppm", left_out.budget * 1e6 + 0.5);
	json_key_u64(json, "switch_outs", left_out.switch_outs);
	json_key_u64(json, "unsampled", left_out.unsampled);
	json_key_u64(json, "unsampled_ns", left_out.unsampled_ns);
	json_key_u64(json, "without_stacks", left_out.without);
	json_key_u64(json, "without_stacks_ns", left_out.without_ns);
	json_key_u64(json, "unsampled_wakers", left_out.wakers);
	json_key_u64(json, "short_ns", timeline->budget.short_ns);
	json_key_u64(json, "weighted_ns", timeline->budget.weighted_ns);
	json_key_array(json, "places");
	for (size_t i = 0; i < left_out.list.count; i++) {
		const LeftOutPlace *place = &left_out.list.items[i];
		_cleanup_free_ char *where = left_out_place_text(place);

		json_begin_object(json);
		json_key_string(json, "program", place->program);
		json_key_string(json, "where", where);
		json_key_u64(json, "switch_outs", place->switch_outs);
		json_key_u64(json, "unsampled", place->unsampled);
		json_key_u64(json, "unsampled_ns", place->ns);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	left_out_free(&left_out);
}

void report_losses_print(const Report *report)
{
	print_left_out(report);
	print_stacks(report);
	print_spans(report);
}
