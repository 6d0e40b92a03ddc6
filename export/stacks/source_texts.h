/* SPDX-License-Identifier: GPL-2.0-or-later */
/* source_texts.h - the source files that a capture contains. */
#ifndef WALLPROF_SOURCE_TEXTS_H
#define WALLPROF_SOURCE_TEXTS_H

#include "records.h"
#include "util.h"

typedef struct SourceText {
	/* Any bytes, and a NUL that is not counted. */
	char *text;
	size_t size;
} SourceText;

typedef struct SourceTexts {
	Strings paths;
	VEC(SourceText) list; /* index = id of the path */
} SourceTexts;

/* Copies a record that capture_check() has verified. Of several with one path the first counts. */
void source_texts_add(SourceTexts *texts, const struct rec_source *source);

/* Returns the text of the file with this path, byte for byte, or NULL. */
const SourceText *source_texts_find(const SourceTexts *texts, const char *path);

void source_texts_free(SourceTexts *texts);

#endif
