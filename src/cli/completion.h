/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * completion.h - what may stand at a place of the command line, for the completions of shells.
 *
 * `wallprof --complete WORD…` is called by tools/completion. The last word is the one to complete.
 * A line of the output is a candidate, with a tab and a description if it has one, or it says what
 * the shell itself has to list:
 *
 *	:files [SUFFIX…]   files, those with such a name first
 *	:folders [FOLDER]  folders, by default in this one
 *	:commands          names of commands
 *	:command N         the words from the N-th on, counted from 0, are another command line
 *
 * The candidates for the value of "--option=value" include "--option=". A shell that makes "=" a
 * word of its own gives it as one, and gets the value alone.
 */
#ifndef WALLPROF_COMPLETION_H
#define WALLPROF_COMPLETION_H

#include <stddef.h>

/* Prints to stdout. Words that wallprof does not accept have no candidates, and are no error. */
void completion_print(char **words, size_t count);

#endif
