/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page is made in memory, because only its whole shows how many lines it has: rows of the
 * sections that say least are then left out until it fits.
 */
#include "accounts.h"
#include "answer.h"
#include "left_out.h"
#include "report.h"
#include "report_order.h"
#include "report_sections.h"
#include "summary.h"
#include "text.h"
#include <inttypes.h>
#include <limits.h>

#define PAGE_LINES    40
#define PAGE_RANK     2	 /* columns of a higher rank are not on the page */
#define ANSWER_LINES  12 /* of the page: no further part begins after them */
#define PART_LINES    3	 /* of a part of the answer on the page */
#define ANSWER_ROWS   5
#define ANSWER_INDENT 22 /* of the text of a part */
#define NOTES_MOST    2
#define WORTH_SHARE   0.02 /* of the window: a section about less time is not on the page */

typedef void (*SectionPrinter)(const Report *report);

/* ---- the sections -------------------------------------------------------------------------- */

/* Returns the time that threads waited for reasons of a category. */
static uint64_t category_ns(const Timeline *timeline, enum category category)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++)
		for (size_t i = 0; i < REASON_COUNT; i++)
			if (reason_info[i].category == category)
				ns += timeline->threads.items[t].reason_ledger[i];
	return ns;
}

static uint64_t runnable_ns(const Timeline *timeline)
{
	return category_ns(timeline, CATEGORY_RUNNABLE);
}

/* Returns the time that threads waited for requests to block devices. */
static uint64_t request_ns(const Timeline *timeline)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->request_waits.count; i++) {
			size_t wait = thread->request_waits.items[i].interval;

			ns += interval_end(thread, wait) - thread->intervals.items[wait].start_ns;
		}
	}
	return ns;
}

static uint64_t fault_ns(const Timeline *timeline)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++)
		for (size_t i = 0; i < timeline->threads.items[t].faults.count; i++)
			ns += timeline->threads.items[t].faults.items[i].end_ns -
			      timeline->threads.items[t].faults.items[i].start_ns;
	return ns;
}

/* Returns the time that threads waited for locks whose holder is known. */
static uint64_t held_ns(const Timeline *timeline)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++)
			if (thread->intervals.items[i].state == STATE_BLOCKED &&
			    thread->intervals.items[i].lock_holder != THREAD_NONE)
				ns += interval_end(thread, i) - thread->intervals.items[i].start_ns;
	}
	return ns;
}

/* Returns the time that threads waited for the lock of an interpreter. */
static uint64_t interpreter_ns(const Timeline *timeline)
{
	uint64_t ns = 0;

	for (size_t t = 0; t < timeline->threads.count; t++)
		ns += timeline->threads.items[t].reason_ledger[REASON_GIL];
	return ns;
}

static void print_run_queue(const Report *report)
{
	report_cpu_users_print(report);
	if (!report->brief)
		report_run_queue_print(report);
}

static void print_losses(const Report *report)
{
	report_accounts_print(report);
	report_losses_print(report);
}

typedef struct Section {
	const char *name;
	SectionPrinter print;
	/* On the page: at most and at least so many rows; 0: it is not there. */
	size_t page_rows, least_rows;
	int importance; /* what is less important loses its rows first */
	/* The time that it is about, if that decides whether it is on the page. */
	uint64_t (*time)(const Timeline *timeline);
	/* The members of the JSON that have the same content. */
	const char *members[8];
} Section;

/* In the order in which they are printed. */
static const Section sections[] = {
	{"path", report_path_print, 0, 0, 0, NULL, {"answer", "critical_path", "no_critical_path"}},
	{"waits", report_groups_print, 4, 3, 9, NULL, {"waits", "blocked_ns", "other_ns"}},
	{"objects", report_waits_print, 0, 0, 0, NULL, {"waited_objects"}},
	{"wait-functions",
	 report_wait_functions_print,
	 3,
	 2,
	 4,
	 NULL,
	 {"wait_functions", "functions"}},
	{"locks", report_holders_print, 2, 1, 7, held_ns, {"holders"}},
	{"gil", report_interpreters_print, 3, 1, 7, interpreter_ns, {"interpreter_locks"}},
	{"wakers", report_wakers_print, 2, 1, 2, NULL, {"wakers"}},
	{"run-queue", print_run_queue, 2, 1, 5, runnable_ns, {"run_queue", "rivals"}},
	{"io",
	 report_requests_print,
	 2,
	 1,
	 6,
	 request_ns,
	 {"devices", "io_files", "ownerless_requests"}},
	{"faults", report_faults_print, 2, 1, 1, fault_ns, {"faulted_files"}},
	{"functions",
	 report_functions_print,
	 5,
	 3,
	 8,
	 NULL,
	 {"running_functions", "running_function_count"}},
	{"places", report_places_print, 0, 0, 0, NULL, {"places"}},
	{"cpus", report_cpus_print, 0, 0, 0, NULL, {"cpus"}},
	{"processes", report_processes_print, 0, 0, 0, NULL, {"processes"}},
	{"threads", report_threads_print, 4, 2, 3, NULL, {"threads"}},
	{"idle", report_idle_print, 0, 0, 0, NULL, {"waited_objects"}},
	{"losses",
	 print_losses,
	 0,
	 0,
	 0,
	 NULL,
	 {"totals", "losses", "recording", "ticks", "budget", "stacks", "notes", "contradictions"}},
};

const char *report_section_name(size_t i)
{
	return i < ARRAY_LEN(sections) ? sections[i].name : NULL;
}

bool report_section_has_member(const char *section, const char *member)
{
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		for (size_t m = 0; m < ARRAY_LEN(sections[i].members) && sections[i].members[m];
		     m++)
			if (!strcmp(sections[i].name, section) &&
			    !strcmp(sections[i].members[m], member))
				return true;
	return false;
}

/* ---- text in memory ------------------------------------------------------------------------ */

/* The lines of a section, each with its newline. */
typedef struct Lines {
	char *text;
	VEC(size_t) starts;
} Lines;

static Lines lines_of(const Report *report, SectionPrinter print)
{
	Page page = *report->page;
	Report in_memory = *report;
	Lines lines = {};
	size_t size = 0;

	page.file = open_memstream(&lines.text, &size);
	if (!page.file)
		return (Lines){.text = xstrdup("")};
	in_memory.page = &page;
	print(&in_memory);
	fclose(page.file);
	for (size_t at = 0; at < size; at += strcspn(lines.text + at, "\n") + 1)
		*vec_push(&lines.starts) = at;
	return lines;
}

static void lines_free(Lines *lines)
{
	free(lines->text);
	vec_free(&lines->starts);
}

/* Cuts the lines from `count` on. */
static void lines_cut(Lines *lines, size_t count)
{
	if (count >= lines->starts.count)
		return;
	lines->text[lines->starts.items[count]] = '\0';
	lines->starts.count = count;
}

/* A row begins with a number; what stands below it is indented. */
static bool is_row(const Lines *lines, size_t line)
{
	return strspn(lines->text + lines->starts.items[line], " ") < 12;
}

#define HEAD_LINES 2 /* an empty one, and the titles */

static size_t count_rows(const Lines *lines)
{
	size_t rows = 0;

	for (size_t i = HEAD_LINES; i < lines->starts.count; i++)
		rows += is_row(lines, i);
	return rows;
}

/* Returns how many lines the first rows take, with the head; 0 rows: none. */
static size_t lines_for(const Lines *lines, size_t rows)
{
	size_t line = HEAD_LINES;

	for (size_t i = HEAD_LINES; i < lines->starts.count && rows > 0; i++) {
		bool is_last = i + 1 == lines->starts.count || is_row(lines, i + 1);

		rows -= is_last;
		line = i + 1;
	}
	return line > HEAD_LINES ? line : 0;
}

/* ---- the page ------------------------------------------------------------------------------ */

static void print_title(const Report *report)
{
	const Timeline *timeline = report->timeline;
	const char *kernel = timeline_meta(timeline, "kernel");
	_cleanup_free_ char *of = summary_recorded(timeline), *what = text_printable(of);
	_cleanup_free_ char *release = text_printable(kernel ? kernel : "unknown");
	uint64_t cpus;
	bool known = timeline_meta_number(timeline, "cpus", &cpus);
	_cleanup_free_ char *of_cpus =
		known ? xasprintf(", %" PRIu64 " CPU%s", cpus, cpus == 1 ? "" : "s") : xstrdup("");

	page_line(report->page, "%s%s%s", page_style(report->page, PAGE_BOLD), what,
		  page_style(report->page, PAGE_PLAIN));
	page_line(report->page, "%s, %zu thread%s in %zu process%s%s, kernel %s",
		  DURATION(timeline->end_ns - timeline->start_ns), timeline->threads.count,
		  timeline->threads.count == 1 ? "" : "s", timeline->processes.count,
		  timeline->processes.count == 1 ? "" : "es", of_cpus, release);
}

/*
 * Prints a paragraph, and cuts what needs more than about PART_LINES lines. Returns how many lines
 * it has.
 */
static size_t print_short(const Page *page, int indent, const char *text)
{
	int most = page->width + (PART_LINES - 1) * (page->width - indent);
	_cleanup_free_ char *cut = page->width && page_columns(page, text) > most
					   ? page_cell(page, text, most)
					   : xstrdup(text);

	return page_paragraph(page, indent, cut);
}

static size_t print_part(const Report *report, const Answer *answer, const AnswerPart *part)
{
	const Page *page = report->page;
	_cleanup_free_ char *text = xasprintf(
		"%12s %7s  %s%s%s: %s%s%s", DURATION(part->ns), PERCENT(part->ns, answer->all_ns),
		page_style(page, PAGE_BOLD), part->who, page_style(page, PAGE_PLAIN),
		report_text_colour(page, part->what), part->what, page_style(page, PAGE_PLAIN));

	return report->brief ? print_short(page, ANSWER_INDENT, text)
			     : page_paragraph(page, ANSWER_INDENT, text);
}

static void print_answer(const Report *report, const Answer *answer)
{
	const Page *page = report->page;
	_cleanup_free_ char *path = report_path_title(report->timeline);
	_cleanup_free_ char *title = xasprintf("%s%s%s", page_style(page, PAGE_BOLD), path,
					       page_style(page, PAGE_PLAIN));
	size_t lines = 0, shown = 0, rest_count;
	uint64_t rest_ns;

	page_paragraph(page, REPORT_INDENT, title);
	if (answer->is_idle)
		page_line(page, "where all threads were idle, %s:", DURATION(answer->all_ns));
	else if (!answer->is_path && answer->parts.count > 0)
		page_line(page,
			  report->timeline->whole_system
				  ? "what all threads had of CPUs, disks and locks, %s:"
				  : "what all threads did, %s without idle waits:",
			  DURATION(answer->all_ns));
	for (size_t i = 0; i < answer->parts.count; i++) {
		if (report->brief && (answer_is_small(answer, i) || lines >= ANSWER_LINES))
			break;
		lines += print_part(report, answer, &answer->parts.items[i]);
		shown++;
	}
	rest_ns = answer_rest(answer, shown, &rest_count);
	if (rest_ns > 0)
		page_line(page, "%12s %7s  %zu smaller part%s", DURATION(rest_ns),
			  PERCENT(rest_ns, answer->all_ns), rest_count, rest_count == 1 ? "" : "s");
	if (answer->deadlock)
		page_paragraph(page, REPORT_INDENT, answer->deadlock);
	if (answer->busy)
		page_line(page, "not idle: %s, most of it %s", DURATION(answer->busy_ns),
			  answer->busy);
	if (answer->waited_for)
		page_line(page, "most waited for: %s (%s)", answer->waited_for,
			  DURATION(answer->waited_ns));
	if (answer->idle_threads > 0 && !answer->is_idle)
		page_line(page, "%zu thread%s idle; idle waits are not counted (%s)",
			  answer->idle_threads, answer->idle_threads == 1 ? "" : "s",
			  DURATION(answer->idle_ns));
}

/* What the user must know before the numbers are used; the section "losses" has the details. */
static void print_remarks(const Report *report)
{
	const Timeline *timeline = report->timeline;
	Accounts accounts = accounts_of(timeline);
	_cleanup_free_ char *lost = accounts_loss_text(timeline);
	_cleanup_free_ char *disagreement = accounts_disagreement(timeline, &accounts);
	_cleanup_free_ char *cost = left_out_cost_warning(timeline);

	if (lost)
		page_line(report->page, "%s", lost);
	if (disagreement)
		page_line(report->page, "%s", disagreement);
	if (cost)
		page_line(report->page, "%s", cost);
	for (size_t i = 0; i < MIN(timeline->notes.count, (size_t)NOTES_MOST); i++) {
		_cleanup_free_ char *note = text_printable(timeline->notes.items[i]);

		page_line(report->page, "note: %s", note);
	}
	if (timeline->notes.count > NOTES_MOST)
		page_line(report->page, "%zu more notes: --section losses",
			  timeline->notes.count - NOTES_MOST);
}

static void print_top(const Report *report)
{
	Answer answer = answer_make(report->timeline, report->frames,
				    report->brief ? report->rows : SIZE_MAX);
	bool cpus_first = answer_is_of_cpus(&answer);

	print_title(report);
	page_line(report->page, "%s", "");
	if (cpus_first) {
		report_load_print(report);
		page_line(report->page, "%s", "");
	}
	print_answer(report, &answer);
	page_line(report->page, "%s", "");
	if (!cpus_first)
		report_load_print(report);
	print_remarks(report);
	answer_free(&answer);
}

static void print_bottom(const Report *report)
{
	char *text = xstrdup("more: --full, or --section with one of");

	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		char *longer = xasprintf("%s %s", text, sections[i].name);

		free(text);
		text = longer;
	}
	page_line(report->page, "%s", "");
	page_paragraph(report->page, REPORT_INDENT, text);
	free(text);
}

/* The sections of a page, and how many rows of each are shown. */
typedef struct PageParts {
	Lines lines[ARRAY_LEN(sections)];
	size_t rows[ARRAY_LEN(sections)];
} PageParts;

static size_t count_lines(const PageParts *parts)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		count += lines_for(&parts->lines[i], parts->rows[i]);
	return count;
}

/* Returns the least important section with more rows than it must have; whole: with any. */
static size_t least_section(const PageParts *parts, bool whole)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		if (parts->rows[i] > (whole ? 0 : sections[i].least_rows) &&
		    (least == SIZE_MAX || sections[i].importance < sections[least].importance))
			least = i;
	return least;
}

/* Shows one more row of the most important section for which there is room; false: of none. */
static bool grow(PageParts *parts, size_t room)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		const Lines *lines = &parts->lines[i];
		size_t more = parts->rows[i] + 1;

		if (parts->rows[i] > 0 && more <= count_rows(lines) &&
		    count_lines(parts) + lines_for(lines, more) -
				    lines_for(lines, parts->rows[i]) <=
			    room &&
		    (best == SIZE_MAX || sections[i].importance > sections[best].importance))
			best = i;
	}
	if (best == SIZE_MAX)
		return false;
	parts->rows[best]++;
	return true;
}

/* Leaves out rows, and then whole sections, until there are at most so many lines. */
static void fit(PageParts *parts, size_t room)
{
	while (count_lines(parts) > room) {
		size_t least = least_section(parts, /* whole= */ false);

		if (least != SIZE_MAX)
			parts->rows[least]--;
		else
			parts->rows[least_section(parts, /* whole= */ true)] = 0;
	}
	while (grow(parts, room))
		;
}

static bool is_on_page(const Section *section, const Timeline *timeline)
{
	uint64_t window_ns = timeline->end_ns - timeline->start_ns;

	return section->page_rows > 0 &&
	       (!section->time || section->time(timeline) > WORTH_SHARE * window_ns);
}

static void print_page(const Report *report, size_t top)
{
	PageParts parts = {};
	Lines above, below = lines_of(report, print_bottom);
	Report brief = *report;
	size_t used;

	brief.brief = true;
	brief.max_rank = PAGE_RANK;
	brief.rows = top ? top : ANSWER_ROWS;
	above = lines_of(&brief, print_top);
	used = above.starts.count + below.starts.count;
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		brief.rows = top ? top : sections[i].page_rows;
		if (is_on_page(&sections[i], report->timeline))
			parts.lines[i] = lines_of(&brief, sections[i].print);
		parts.rows[i] = count_rows(&parts.lines[i]);
	}
	if (!top)
		fit(&parts, PAGE_LINES - MIN(used, (size_t)PAGE_LINES));
	fputs(above.text, report->page->file);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		lines_cut(&parts.lines[i], lines_for(&parts.lines[i], parts.rows[i]));
		if (parts.lines[i].starts.count > 0)
			fputs(parts.lines[i].text, report->page->file);
		lines_free(&parts.lines[i]);
	}
	fputs(below.text, report->page->file);
	lines_free(&above);
	lines_free(&below);
}

/* ---- the other forms ----------------------------------------------------------------------- */

static void print_section(const Report *report, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		Lines lines;

		if (strcmp(sections[i].name, name) != 0)
			continue;
		lines = lines_of(report, sections[i].print);
		if (lines.starts.count == 0)
			page_line(report->page, "%s: nothing of this kind was recorded", name);
		else /* the empty line before the first table separates it from nothing */
			fputs(lines.text + strspn(lines.text, "\n"), report->page->file);
		lines_free(&lines);
	}
}

static void print_full(const Report *report)
{
	print_top(report);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		if (sections[i].print == report_path_print)
			page_line(report->page, "%s", "");
		sections[i].print(report);
	}
}

typedef struct ReportParts {
	Places places;
	ReportOrder order;
} ReportParts;

static Report report_begin(ReportParts *parts, const Page *page, const Timeline *timeline,
			   Frames *frames, const ReportSelection *selection)
{
	report_places_init(&parts->places, timeline, frames);
	report_places_add_all(&parts->places);
	report_places_sort(&parts->places);
	report_order_init(&parts->order, timeline);
	return (Report){
		.page = page,
		.timeline = timeline,
		.frames = frames,
		.places = &parts->places,
		.rows = selection->top ? selection->top : SIZE_MAX,
		.max_rank = INT_MAX,
		.thread_order = parts->order.threads,
		.process_order = parts->order.processes,
	};
}

static void report_end(ReportParts *parts)
{
	report_places_free(&parts->places);
	report_order_free(&parts->order);
}

void report_print(const Page *page, const Timeline *timeline, Frames *frames,
		  const ReportSelection *selection)
{
	ReportParts parts;
	Report report = report_begin(&parts, page, timeline, frames, selection);

	if (selection->timeline != THREAD_NONE)
		report_timeline_print(&report, selection->timeline);
	else if (selection->section)
		print_section(&report, selection->section);
	else if (selection->full)
		print_full(&report);
	else
		print_page(&report, selection->top);
	report_end(&parts);
}

void report_print_path(const Page *page, const Timeline *timeline, Frames *frames,
		       const ReportSelection *selection)
{
	ReportParts parts;
	Report report = report_begin(&parts, page, timeline, frames, selection);

	report_path_print(&report);
	report_end(&parts);
}

bool report_print_function(const Page *page, const Timeline *timeline, Frames *frames,
			   const char *name, const ReportSelection *selection)
{
	ReportParts parts;
	Report report = report_begin(&parts, page, timeline, frames, selection);
	bool found = report_function_print(&report, name);

	report_end(&parts);
	return found;
}
