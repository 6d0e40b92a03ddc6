/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option_table.h - what options there are: their names, what they are for, how their values are
 * read.
 */
#ifndef WALLPROF_OPTION_TABLE_H
#define WALLPROF_OPTION_TABLE_H

#include "options.h"

#define VERB_BIT(verb) (1U << (verb))
#define OPTIONS_MAX    64

typedef struct OptionInfo {
	const char *name;     /* without "--" */
	char letter;	      /* '\0': there is only the long name */
	const char *argument; /* as the help has it: "FILE", or "[TID]" if it may be left out */
	uint32_t verbs;	      /* VERB_BIT()s of those that it is for */
	const char *help;     /* lines, separated by '\n'; NULL: the name says it */
	/* Takes its argument; negative errno after saying what is wrong. NULL: sets a flag. */
	int (*take)(const char *text, Options *options);
	size_t flag; /* offset of that bool in Options */
} OptionInfo;

extern const OptionInfo option_table[];
extern const size_t option_count;

#endif
