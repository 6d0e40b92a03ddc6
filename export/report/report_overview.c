/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "accounts.h"
#include "cpu_line.h"
#include "disk_line.h"
#include "page_table.h"
#include "report_sections.h"
#include "text.h"

static const TableColumn columns[] = {{"time", 12, 0}, {"share", 7, 1}};

/* ---- CPUs and threads ----------------------------------------------------------------------- */

void report_load_print(const Report *report)
{
	Accounts accounts = accounts_of(report->timeline);
	_cleanup_free_ char *cpus = cpu_line_text(report->timeline, &accounts);
	_cleanup_free_ char *disk = disk_line_text(report->timeline);

	if (cpus)
		page_line(report->page, "%sCPUs:%s %s", page_style(report->page, PAGE_BOLD),
			  page_style(report->page, PAGE_PLAIN), cpus);
	if (disk)
		page_line(report->page, "%sdisk:%s %s", page_style(report->page, PAGE_BOLD),
			  page_style(report->page, PAGE_PLAIN), disk);
}

/* ---- places -------------------------------------------------------------------------------- */

static char *places_title(const Timeline *timeline, uint64_t rest, uint64_t idle, uint64_t between)
{
	_cleanup_free_ char *of_idle = idle ? xasprintf("%s idle, ", DURATION(idle)) : xstrdup("");
	_cleanup_free_ char *of_jobs =
		between ? xasprintf("%s between jobs, ", DURATION(between)) : xstrdup("");

	return xasprintf("where the time of %zu thread%s went: %s%s%s%s%s", timeline->threads.count,
			 timeline->threads.count == 1 ? "" : "s", DURATION(rest),
			 idle + between ? " (and " : "", of_idle, of_jobs,
			 idle + between ? "not counted here)" : "");
}

static void print_place(const Table *table, uint64_t ns, uint64_t all_ns, const char *name)
{
	const char *cells[] = {DURATION(ns), PERCENT(ns, all_ns)};

	page_table_row(table, cells, name);
}

void report_places_print(const Report *report)
{
	const Places *places = report->places;
	uint64_t idle = report_places_time(places, CATEGORY_IDLE);
	uint64_t between = report_places_time(places, CATEGORY_JOBS);
	uint64_t all_ns = accounts_of(report->timeline).lifetime - idle - between, left_ns = 0;
	size_t shown = 0, left = 0;
	_cleanup_free_ char *title = places_title(report->timeline, all_ns, idle, between);
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	page_table_head(&table, title);
	for (size_t i = 0; i < places->list.count; i++) {
		const Place *place = &places->list.items[i];

		if (category_is_idle(place->category) || place->ns == 0)
			continue;
		if (shown == report->rows) {
			left_ns += place->ns;
			left++;
			continue;
		}
		_cleanup_free_ char *name = report_place_name(places, place);

		print_place(&table, place->ns, all_ns, name);
		shown++;
	}
	if (left > 0 && !report->brief) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);

		print_place(&table, left_ns, all_ns, text);
	}
}

void report_places(Json *json, const Places *places)
{
	json_key_array(json, "places");
	for (size_t i = 0; i < places->list.count; i++) {
		const Place *place = &places->list.items[i];
		_cleanup_free_ char *name = report_place_name(places, place);

		json_begin_object(json);
		json_key_string(json, "name", name);
		json_key_string(json, "category", category_info[place->category].name);
		json_key_u64(json, "ns", place->ns);
		json_end_object(json);
	}
	json_end_array(json);
}

/* ---- accounts ------------------------------------------------------------------------------ */

void report_accounts_print(const Report *report)
{
	Accounts accounts = accounts_of(report->timeline);
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	char *rest;

	if (!file)
		return;
	accounts_print_times(file, report->timeline);
	accounts_print_states(file, report->timeline, &accounts);
	accounts_print_costs(file, report->timeline);
	accounts_print_losses(file, report->timeline);
	fclose(file);
	page_line(report->page, "%s", "");
	rest = text;
	for (char *line; (line = strsep(&rest, "\n")) && rest;)
		page_paragraph(report->page, REPORT_INDENT, line + strspn(line, " "));
}
