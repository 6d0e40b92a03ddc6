/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option_table.h - the table of the options: their names, help texts, and how their values are
 * parsed.
 */
#ifndef WALLPROF_OPTION_TABLE_H
#define WALLPROF_OPTION_TABLE_H

#include "options.h"

#define VERB_BIT(verb) (1U << (verb))
#define OPTIONS_MAX    64

typedef struct OptionInfo {
	const char *name;     /* without "--" */
	char letter;	      /* '\0' if there is only the long name */
	const char *argument; /* as the help prints it: "FILE", or "[TID]" if it is optional */
	uint32_t verbs;	      /* VERB_BIT()s of the commands that accept it */
	const char *help;     /* lines, separated by '\n'; NULL if the name is enough */
	/*
	 * Parses the argument. Returns 0 or a negative errno, logged. NULL: the option sets a flag.
	 */
	int (*set)(const char *text, Options *options);
	size_t flag; /* offset of the flag in Options */
} OptionInfo;

extern const OptionInfo option_table[];
extern const size_t option_count;

/* An old name that still works and is not documented. */
typedef struct OptionAlias {
	const char *old_name, *name;
} OptionAlias;

extern const OptionAlias option_aliases[];
extern const size_t option_alias_count;

/* A command of wallprof, such as `wallprof report`. */
typedef struct VerbInfo {
	const char *word;
	enum verb verb;
	const char *usage, *purpose; /* as the help prints them */
} VerbInfo;

extern const VerbInfo verb_table[];
extern const size_t verb_count;

/* Returns the row of the command, or NULL if it has none (VERB_PROFILE, for example). */
const VerbInfo *option_table_verb(enum verb verb);

#endif
