/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "summary.h"
#include "accounts.h"
#include "answer.h"
#include "cpu_line.h"
#include "disk_line.h"
#include "left_out.h"
#include "lock_line.h"
#include "page.h"
#include "rivals_line.h"
#include "text.h"

#define PARTS_MOST 4

typedef VEC(char *) Lines;

/* ---- lines --------------------------------------------------------------------------------- */

static char *counted(size_t count, const char *one, const char *many)
{
	return xasprintf("%zu %s", count, count == 1 ? one : many);
}

/* Returns whether the command is what the recording is about, and did not only set its window. */
static bool is_of_command(const Timeline *timeline, const Answer *answer)
{
	return answer->is_path || !timeline->whole_system;
}

/* Returns what was recorded: "make -j4", "redis-server *:7777", "3 processes". */
static char *subject(const Timeline *timeline, const Answer *answer)
{
	if (is_of_command(timeline, answer) && timeline->command_thread < timeline->threads.count) {
		const Thread *thread = &timeline->threads.items[timeline->command_thread];

		return xstrdup(timeline->processes.items[thread->process].label);
	}
	if (timeline->whole_system)
		return xstrdup("the whole system");
	if (timeline->processes.count == 1)
		return xstrdup(timeline->processes.items[0].label);
	return counted(timeline->processes.count, "process", "processes");
}

char *summary_recorded(const Timeline *timeline)
{
	const char *command = timeline_meta(timeline, "command");
	bool has_command = command && *command;

	if (timeline->whole_system)
		return xasprintf("the whole system%s%s", has_command ? ", during " : "",
				 has_command ? command : "");
	if (has_command)
		return xstrdup(command);
	return timeline->processes.count == 1 ? xstrdup(timeline->processes.items[0].label)
					      : xstrdup("running processes");
}

/* Sets *ret_ns to how long the command took if it ended, else to the window; returns whether. */
static bool ended(const Timeline *timeline, const Answer *answer, uint64_t *ret_ns)
{
	const Process *process;

	*ret_ns = timeline->end_ns - timeline->start_ns;
	if (!is_of_command(timeline, answer) || timeline->command_thread >= timeline->threads.count)
		return false;
	process = &timeline->processes
			   .items[timeline->threads.items[timeline->command_thread].process];
	if (!process->exited_in_window || timeline_is_part(timeline))
		return false;
	*ret_ns = process->end_ns - process->start_ns;
	return true;
}

/* Returns ", 3 idle" or, without a path, how much of the threads' time was: ", 97 % idle". */
static char *idle_text(const Timeline *timeline, const Answer *answer)
{
	uint64_t lifetime_ns = accounts_of(timeline).lifetime;

	if (!answer->is_path && answer->idle_ns > 0)
		return xasprintf(", %.0f %% idle", 100.0 * answer->idle_ns / lifetime_ns);
	return answer->idle_threads ? xasprintf(", %zu idle", answer->idle_threads) : xstrdup("");
}

char *summary_title(const Timeline *timeline, const Answer *answer)
{
	_cleanup_free_ char *what = subject(timeline, answer), *threads = NULL, *idle = NULL;
	uint64_t ns;
	bool has_ended = ended(timeline, answer, &ns);

	threads = counted(timeline->threads.count, "thread", "threads");
	idle = idle_text(timeline, answer);
	return xasprintf("%s %s (%s%s); %s of %s:", has_ended ? "took" : "recorded", DURATION(ns),
			 threads, idle,
			 answer->is_path	  ? "critical path"
			 : answer->is_idle	  ? "idle waits"
			 : timeline->whole_system ? "CPUs, disks and locks"
						  : "time",
			 what);
}

static void add_line(Lines *lines, char *line)
{
	if (line)
		*vec_push(lines) = line;
}

/*
 * What may be wrong with the numbers; in most runs nothing. The recorder's notes are not repeated:
 * it has just printed them as warnings.
 */
static Lines remarks(const Timeline *timeline, const Accounts *accounts, bool with_accounts)
{
	Lines lines = {};

	if (with_accounts)
		return lines;
	add_line(&lines, accounts_loss_text(timeline));
	add_line(&lines, accounts_disagreement(timeline, accounts));
	add_line(&lines, left_out_cost_warning(timeline));
	add_line(&lines, left_out_line(timeline));
	return lines;
}

/* Shortens the remarks so that they leave room for at least two parts. */
static void print_remarks(const Page *page, const Lines *lines, size_t most)
{
	size_t shown = lines->count <= most ? lines->count : most - 1;

	for (size_t i = 0; i < shown; i++)
		page_line(page, "%s", lines->items[i]);
	if (shown < lines->count)
		page_line(page, "%zu more notes: wallprof report --section losses",
			  lines->count - shown);
}

static void free_lines(Lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->items[i]);
	vec_free(lines);
}

#define INDENT 21 /* of the text of a part */

/* Returns in how many lines the page shows a part. */
static size_t lines_needed(const Page *page, const char *line)
{
	_cleanup_free_ char *text = NULL;
	size_t size, lines = 1;
	Page trial = *page;

	trial.file = open_memstream(&text, &size);
	if (!trial.file)
		return lines;
	lines = page_paragraph(&trial, INDENT, line);
	fclose(trial.file);
	return lines;
}

static char *part_line(const Page *page, const Answer *answer, const AnswerPart *part)
{
	return xasprintf("%5.1f %% %10s  %s%s%s: %s", 100.0 * part->ns / answer->all_ns,
			 DURATION(part->ns), page_style(page, PAGE_BOLD), part->who,
			 page_style(page, PAGE_PLAIN), part->what);
}

/*
 * Prints the largest parts in so many lines. A part may take several, because half of its text says
 * nothing.
 */
static void print_parts(const Page *page, const Answer *answer, size_t lines)
{
	size_t shown = 0, rest_count;
	uint64_t rest_ns;

	for (size_t i = 0; i < answer->parts.count && lines > 0; i++) {
		const AnswerPart *part = &answer->parts.items[i];
		_cleanup_free_ char *line = part_line(page, answer, part);
		size_t needed = lines_needed(page, line);

		if (answer_is_small(answer, i))
			break;
		shown++;
		if (needed > lines) {
			page_line(page, "%s", line);
			lines = 0;
			break;
		}
		page_paragraph(page, INDENT, line);
		lines -= needed;
	}
	rest_ns = answer_rest(answer, shown, &rest_count);
	if (rest_ns > 0 && lines > 0)
		page_line(page, "%5.1f %% %10s  %zu smaller part%s",
			  100.0 * rest_ns / answer->all_ns, DURATION(rest_ns), rest_count,
			  rest_count == 1 ? "" : "s");
}

/* A command that is cut cannot be pasted, so the second one is left out if there is no room. */
static void print_next(const Page *page, const SummaryOptions *options)
{
	_cleanup_free_ char *profile_word = shell_word(options->profile);
	_cleanup_free_ char *profile = text_printable(profile_word);
	/* A browser shows a page, and needs no server for it. */
	_cleanup_free_ char *open = text_ends_with(options->profile, ".html")
					    ? xasprintf("next: open %s in a browser", profile)
					    : xasprintf("next: wallprof open %s", profile);
	_cleanup_free_ char *capture_word = NULL, *capture = NULL, *both = NULL;

	if (options->capture) {
		capture_word = shell_word(options->capture);
		capture = text_printable(capture_word);
		both = xasprintf("%s, or wallprof report %s", open, capture);
	}
	if (both && (page->width == 0 || page_columns(page, both) <= page->width))
		page_line(page, "%s", both);
	else
		fprintf(page->file, "%s\n", open);
}

/* Takes the text; NULL: there is none. */
static void add_text(SummaryLines *lines, const char *before, char *text)
{
	if (text)
		lines->list[lines->count++] = xasprintf("%s%s", before, text);
	free(text);
}

SummaryLines summary_lines(const Timeline *timeline, Frames *frames, const Answer *answer, bool all)
{
	Accounts accounts = accounts_of(timeline);
	char *cpus = cpu_line_text(timeline, &accounts), *disk = disk_line_text(timeline);
	SummaryLines lines = {.has_cpus = cpus};

	if (answer_is_of_cpus(answer)) {
		add_text(&lines, "CPUs: ", cpus);
		add_text(&lines, "ran instead: ", rivals_line_text(timeline));
		cpus = NULL;
	}
	if (answer->deadlock && all)
		add_text(&lines, "", xstrdup(answer->deadlock));
	if (answer->busy)
		add_text(&lines, "not idle: ",
			 xasprintf("%s, most of it %s", DURATION(answer->busy_ns), answer->busy));
	/* A deadlock says which locks are waited for. */
	if (answer->waited_for && (all || !answer->deadlock))
		add_text(&lines, "most waited for: ",
			 xasprintf("%s (%s)", answer->waited_for, DURATION(answer->waited_ns)));
	if (all || (!answer->deadlock && (!disk || !answer->waited_for)))
		add_text(&lines, "", lock_line_text(timeline, frames));
	add_text(&lines, "disk: ", disk);
	add_text(&lines, "CPUs: ", cpus);
	return lines;
}

void summary_lines_free(SummaryLines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->list[i]);
	lines->count = 0;
}

void summary_print(FILE *file, const Timeline *timeline, Frames *frames,
		   const SummaryOptions *options)
{
	Accounts accounts = accounts_of(timeline);
	Answer answer = answer_make(timeline, frames, PARTS_MOST);
	_cleanup_(free_lines) Lines lines = remarks(timeline, &accounts, options->accounts);
	SummaryLines extra = summary_lines(timeline, frames, &answer, /* all= */ false);
	_cleanup_free_ char *head = summary_title(timeline, &answer);
	/* Lines that are always there are the title, the CPUs, and what to do next. */
	size_t others = extra.count - extra.has_cpus, remarks_most = others > 1 ? 1 : 2;
	size_t room = SUMMARY_LINES - 3 - others - MIN(lines.count, remarks_most);
	Page page;

	/* Then the line that says most about the parts is the fifth at the latest. */
	if ((extra.has_cpus && answer_is_of_cpus(&answer)) || answer.waited_for || answer.deadlock)
		room = MIN(room, (size_t)3);
	page_init(&page, file);
	/* It may be longer than a line, and ends with what closes the circle. */
	if (answer.deadlock && room > 1)
		room -= MIN(room - 1, lines_needed(&page, answer.deadlock));
	page_line(&page, "%s", head);
	print_parts(&page, &answer, room);
	if (answer.deadlock)
		page_paragraph(&page, INDENT, answer.deadlock);
	for (size_t i = 0; i < extra.count; i++)
		page_line(&page, "%s", extra.list[i]);
	summary_lines_free(&extra);
	print_remarks(&page, &lines, remarks_most);
	if (options->accounts) {
		accounts_print_times(file, timeline);
		accounts_print_states(file, timeline, &accounts);
		accounts_print_costs(file, timeline);
		accounts_print_losses(file, timeline);
	}
	print_next(&page, options);
	answer_free(&answer);
}
