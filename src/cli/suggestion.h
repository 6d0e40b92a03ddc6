/* SPDX-License-Identifier: GPL-2.0-or-later */
/* suggestion.h - what a word that wallprof does not know is probably meant to be. */
#ifndef WALLPROF_SUGGESTION_H
#define WALLPROF_SUGGESTION_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether the word is the name, but for one mistake in three letters: one that is wrong,
 * missing or too much, or two that are exchanged.
 */
bool suggestion_is_close(const char *word, const char *name);

/*
 * Returns the IDs of the processes that have this name, "812,813", and how many they are; NULL if
 * there is none. The caller frees it.
 */
char *suggestion_pids(const char *name, size_t *ret_count);

#endif
