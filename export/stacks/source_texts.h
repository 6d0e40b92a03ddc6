/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source_texts.h - the source files that a capture holds.
 */
#ifndef WALLPROF_SOURCE_TEXTS_H
#define WALLPROF_SOURCE_TEXTS_H

#include "records.h"
#include "util.h"

typedef struct SourceText {
	char *text; /* any bytes; a NUL behind them is not counted */
	size_t size;
} SourceText;

typedef struct SourceTexts {
	Strings paths;
	VEC(SourceText) list; /* index = number of the path */
} SourceTexts;

/* Copies a record that capture_check() found good. Of several with one path the first counts. */
void source_texts_add(SourceTexts *texts, const struct rec_source *source);

/* The text of the file with this path, byte for byte, or NULL. */
const SourceText *source_texts_find(const SourceTexts *texts, const char *path);

void source_texts_free(SourceTexts *texts);

#endif
