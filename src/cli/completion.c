/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "completion.h"
#include "option_table.h"
#include "report.h"
#include "util.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Words separated by blanks. With a colon: what the shell has to list, or print_values(). */
static const struct {
	const char *option, *values;
} option_values[] = {
	{"output", ":files"},
	{"format", "firefox chrome html folded pprof speedscope svg"},
	{"by", "thread process"},
	{"frequency", "auto"},
	{"pid", ":pids"},
	{"tid", ":tids"},
	{"cgroup", ":folders /sys/fs/cgroup"},
	{"delay", "signal"},
	{"kernel-stacks", "all blocked none"},
	{"stacks", "dwarf fp none"},
	{"fault-source", "auto fentry events off"},
	{"waker-stacks", "off"},
	{"json-summary", ":files .json"},
	{"state", "running runnable blocked unknown"},
	{"viewer", ":folders"},
	{"section", ":sections"},
	{"unwind", ":pids :files"},
};

static const char *values_of(const OptionInfo *info)
{
	for (size_t i = 0; i < ARRAY_LEN(option_values); i++)
		if (!strcmp(option_values[i].option, info->name))
			return option_values[i].values;
	return "";
}

/* What stands before a candidate in the word, and what the user typed of it. */
typedef struct Typed {
	const char *before;
	int before_length;
	const char *text;
} Typed;

/* A candidate that has a name, such as a process, may also be typed by that name. */
static void print_candidate(const Typed *typed, const char *candidate, const char *description,
			    bool by_description)
{
	_cleanup_free_ char *line = NULL;
	size_t length = strlen(typed->text);

	if (strncmp(candidate, typed->text, length) &&
	    !(by_description && !strncmp(description, typed->text, length)))
		return;
	line = xasprintf("%.*s%s%s%s", typed->before_length, typed->before, candidate,
			 description ? "\t" : "", description ?: "");
	for (char *c = line; *c; c++)
		if (*c == '\n')
			*c = ' ';
	puts(line);
}

/* ---- processes and threads ----------------------------------------------------- */

/* Returns the name of a process or thread, or NULL. The caller frees it. */
static char *task_name(const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/comm", folder);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char name[64];

	if (!file || !fgets(name, sizeof(name), file))
		return NULL;
	name[strcspn(name, "\n")] = '\0';
	mask_controls(name);
	return xstrdup(name);
}

static bool is_kernel_thread(const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/cmdline", folder);
	_cleanup_fclose_ FILE *file = fopen(path, "re");

	return !file || fgetc(file) == EOF;
}

/* Prints the tasks in a folder such as /proc, or /proc/1/task. */
static void list_tasks(const char *folder, const Typed *typed, bool threads)
{
	_cleanup_closedir_ DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		_cleanup_free_ char *task = xasprintf("%s/%s", folder, entry->d_name);
		_cleanup_free_ char *name = NULL;

		if (!isdigit((unsigned char)*entry->d_name) || is_kernel_thread(task) ||
		    strtol(entry->d_name, NULL, 10) == getpid())
			continue;
		if (threads) {
			_cleanup_free_ char *inner = xasprintf("%s/task", task);

			list_tasks(inner, typed, false);
			continue;
		}
		name = task_name(task);
		if (name)
			print_candidate(typed, entry->d_name, name, true);
	}
}

/* ---- values and options -------------------------------------------------------- */

/* before: what the candidates begin with, "--format=" or "". */
static void print_values(const OptionInfo *info, const char *before, int before_length,
			 const char *text)
{
	_cleanup_free_ char *values = xstrdup(values_of(info));
	Typed typed = {before, before_length, text};
	_cleanup_free_ char *list = NULL;
	const char *comma = strrchr(text, ',');
	char *rest = values;

	/* The argument "PID[,PID…]" is a list. */
	if (comma && info->argument && strstr(info->argument, "[,")) {
		list = xasprintf("%.*s%.*s", before_length, before, (int)(comma + 1 - text), text);
		typed = (Typed){list, (int)strlen(list), comma + 1};
	}
	for (char *word; *rest && (word = strsep(&rest, " "));) {
		if (!strcmp(word, ":pids") || !strcmp(word, ":tids")) {
			list_tasks("/proc", &typed, word[1] == 't');
		} else if (!strcmp(word, ":sections")) {
			for (size_t i = 0; report_section_name(i); i++)
				print_candidate(&typed, report_section_name(i), NULL, false);
		} else if (*word == ':') {
			if (rest)
				rest[-1] = ' ';
			puts(word); /* the words behind it are its own */
			return;
		} else {
			print_candidate(&typed, word, NULL, false);
		}
		if (!rest)
			return;
	}
}

static void print_options(enum verb verb, const char *text)
{
	for (size_t i = 0; i < option_count; i++) {
		const OptionInfo *info = &option_table[i];
		_cleanup_free_ char *name = xasprintf("--%s", info->name);
		_cleanup_free_ char *help = info->help ? xstrdup(info->help) : NULL;

		if (info->verbs & VERB_BIT(verb))
			print_candidate(&(Typed){"", 0, text}, name, help, false);
	}
}

static void print_verbs(const char *text, bool with_help)
{
	for (size_t i = 0; i < verb_count; i++)
		print_candidate(&(Typed){"", 0, text}, verb_table[i].word, verb_table[i].purpose,
				false);
	if (with_help)
		print_candidate(&(Typed){"", 0, text}, "help", "Prints the options of a command.",
				false);
}

/* ---- the line ------------------------------------------------------------------ */

/* Returns the option that the word names, "--pid", "--pid=1" or "-p", or NULL. */
static const OptionInfo *option_of(const char *word)
{
	size_t length = strcspn(word, "=");

	for (size_t i = 0; i < option_count; i++) {
		const OptionInfo *info = &option_table[i];
		bool is_long = length > 2 && !strncmp(word, "--", 2);

		if (is_long ? strlen(info->name) == length - 2 &&
				      !strncmp(info->name, word + 2, length - 2)
			    : info->letter && word[1] == info->letter && !word[2])
			return info;
	}
	return NULL;
}

typedef struct Line {
	char **words;
	size_t count; /* of the words, with the one to complete, which is the last */
	enum verb verb;
	const OptionInfo *value_of; /* the word is the value of this option */
	bool only_command;	    /* after "--" */
	bool has_file;
} Line;

/* Returns the index of the option's last word: that of its value if the value is a word. */
static size_t skip_option(Line *line, size_t i)
{
	const OptionInfo *info = option_of(line->words[i]);
	bool own_word = i + 1 < line->count && !strcmp(line->words[i + 1], "=");

	if (!info || !info->argument || strchr(line->words[i], '='))
		return i;
	if (own_word) /* "=" may be the last word: then the value is still empty */
		i = MIN(i + 2, line->count - 1);
	else if (*info->argument != '[')
		i++;
	else
		return i;
	if (i == line->count - 1)
		line->value_of = info;
	return i;
}

static bool set_verb(Line *line, const char *word)
{
	if (line->verb != VERB_PROFILE)
		return false;
	if (!strcmp(word, "help")) {
		line->verb = VERB_HELP;
		return true;
	}
	for (size_t i = 0; i < verb_count; i++) {
		if (!strcmp(word, verb_table[i].word)) {
			line->verb = verb_table[i].verb;
			return true;
		}
	}
	return false;
}

/* Reads the words before the last one. Returns the index of a command's first word, or count. */
static size_t read_words(Line *line)
{
	size_t last = line->count - 1;

	for (size_t i = 0; i < last; i++) {
		const char *word = line->words[i];
		bool records = line->verb == VERB_PROFILE || line->verb == VERB_RECORD;

		if (line->only_command)
			return i;
		if (!strcmp(word, "--"))
			line->only_command = records;
		else if (*word == '-' && word[1])
			i = skip_option(line, i);
		else if (set_verb(line, word))
			continue;
		else if (records)
			return i;
		else
			line->has_file = true;
	}
	return line->count;
}

static void print_operand(const Line *line, const char *text)
{
	if (line->only_command) {
		puts(":commands");
		return;
	}
	switch (line->verb) {
	case VERB_PROFILE:
		print_verbs(text, true);
		puts(":commands");
		break;
	case VERB_RECORD:
		puts(":commands");
		break;
	case VERB_HELP:
		if (!line->has_file)
			print_verbs(text, false);
		break;
	case VERB_EXPORT:
	case VERB_REPORT:
		if (!line->has_file)
			puts(":files .capture .json .json.gz .json.zst");
		break;
	case VERB_OPEN:
		if (!line->has_file)
			puts(":files .json .json.gz .json.zst .capture");
		break;
	default:
		break;
	}
}

void completion_print(char **words, size_t count)
{
	Line line = {.words = words, .count = count, .verb = VERB_PROFILE};
	const OptionInfo *info;
	const char *word, *equals;
	size_t command;

	if (!count)
		return;
	command = read_words(&line);
	word = words[count - 1];
	equals = strchr(word, '=');
	if (command < count) {
		printf(":command %zu\n", command);
	} else if (line.value_of) {
		print_values(line.value_of, "", 0, strcmp(word, "=") ? word : "");
	} else if (!line.only_command && !strncmp(word, "--", 2) && equals) {
		info = option_of(word);
		if (info && info->verbs & VERB_BIT(line.verb))
			print_values(info, word, (int)(equals + 1 - word), equals + 1);
	} else if (!line.only_command && *word == '-') {
		print_options(line.verb, word);
	} else {
		print_operand(&line, word);
	}
}
