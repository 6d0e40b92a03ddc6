/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "help.h"
#include "option_table.h"
#include "util.h"
#include <stdio.h>
#include <string.h>

#define HELP_COLUMN 27

/* Prints "  -o, --output FILE" or "      --critical-path[=TID]", padded to HELP_COLUMN. */
static void print_names(const OptionInfo *info)
{
	const char *argument = info->argument ?: "";
	bool optional = *argument == '[';
	int columns = printf(info->letter ? "  -%c, " : "      ", info->letter);

	columns += printf("--%s", info->name);
	if (optional)
		columns += printf("[=%.*s]", (int)strcspn(argument + 1, "]"), argument + 1);
	else if (info->argument)
		columns += printf(" %s", argument);
	/* "…" has three bytes, but one column. */
	for (const char *c = argument; (c = strstr(c, "…")); c++)
		columns -= 2;
	if (info->help)
		printf("%*s", MAX(HELP_COLUMN - columns, 1), "");
}

static void print_option(const OptionInfo *info)
{
	print_names(info);
	for (const char *line = info->help; line;) {
		size_t length = strcspn(line, "\n");

		printf("%.*s", (int)length, line);
		line += length;
		if (!*line)
			break;
		printf("\n%*s", HELP_COLUMN, "");
		line++;
	}
	putchar('\n');
}

static void print_command_help(enum verb verb)
{
	const VerbInfo *info = option_table_verb(verb);

	if (info)
		printf("wallprof %s %s\n\n%s\n\n", info->word, info->usage, info->purpose);
	for (size_t i = 0; i < option_count; i++)
		if (option_table[i].verbs & VERB_BIT(verb))
			print_option(&option_table[i]);
	fputs("\nwallprof help lists all commands.\n", stdout);
}

void help_print(enum verb verb)
{
	if (verb != VERB_PROFILE) {
		print_command_help(verb);
		return;
	}
	fputs("wallprof: where did the wall-clock time go?\n"
	      "\n"
	      "  wallprof [OPTIONS] [--] COMMAND [ARG…]       record a command, write a profile\n"
	      "  wallprof [OPTIONS] -p PID[,PID…] [-d TIME]   record running processes\n"
	      "  wallprof [OPTIONS] -a [-d TIME]              record the whole system\n"
	      "  wallprof record …                            record only: write a capture\n"
	      "  wallprof report [--json] [FILE]              print where the time went\n"
	      "  wallprof open [FILE]                         show a profile in the viewer\n"
	      "  wallprof export [-o FILE] [FILE]             make a profile from a capture\n"
	      "  wallprof doctor                              check what can be recorded here\n"
	      "  wallprof doctor --unwind PID|FILE            how much of its code has "
	      "unwind tables\n"
	      "  wallprof help COMMAND                        the options of one of these\n"
	      "\n"
	      "The profile (default wallprof.json.gz) opens with `wallprof open`, or by dropping\n"
	      "it on https://profiler.firefox.com. A name that ends in .trace.json or\n"
	      ".trace.json.gz makes a Chrome trace, for Perfetto and chrome://tracing; one in\n"
	      ".html a page for any browser, .svg a flame graph, .folded stacks for\n"
	      "flamegraph.pl, .pb.gz a pprof profile, .speedscope.json one for speedscope.\n"
	      "report, open and export take the profile or the capture beside it; without FILE,\n"
	      "the last one that was made in this folder.\n"
	      "\n",
	      stdout);
	for (size_t i = 0; i < option_count; i++)
		print_option(&option_table[i]);
	fputs("\n"
	      "Options in WALLPROF_OPTIONS are read before those of the command line.\n",
	      stdout);
}
