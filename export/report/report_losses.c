/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "labels.h"
#include "page_table.h"
#include "record_info.h"
#include "report_sections.h"
#include "stack_stats.h"
#include "text.h"

static const TableColumn span_columns[] = {{"lost", 8, 0}, {"at", 12, 0}, {"during", 12, 1}};
static const TableColumn stack_columns[] = {{"stacks", 12, 0}};

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
	stack_stats_free(&sums);
}

void report_losses_print(const Report *report)
{
	print_stacks(report);
	print_spans(report);
}
