/* SPDX-License-Identifier: GPL-2.0-or-later */
/* formats.h - the formats of profiles: their words, and the names of their files. */
#ifndef WALLPROF_FORMATS_H
#define WALLPROF_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

enum format {
	FORMAT_BY_NAME, /* the suffix of the output decides */
	FORMAT_FIREFOX,
	FORMAT_CHROME,
	FORMAT_HTML,
	FORMAT_FOLDED,
	FORMAT_PPROF,
	FORMAT_SPEEDSCOPE,
	FORMAT_SVG,
};

typedef struct FormatInfo {
	enum format format;
	const char *word, *alias; /* of --format; alias may be NULL */
	/* The end of a file's name, without that of its compression: ".json". */
	const char *suffix;
	const char *default_output;
	const char *title; /* for messages: "a Chrome trace" */
} FormatInfo;

/* The default format is the first. */
extern const FormatInfo format_table[];
extern const size_t format_count;

const FormatInfo *formats_info(enum format format);
/* Returns whether `wallprof open` can show it. */
bool formats_for_viewer(enum format format);
/* Returns the format of that word, or NULL. */
const FormatInfo *formats_by_word(const char *word);
/*
 * Returns the format by the suffix of the name, before that of its compression if there is one; the
 * longest suffix decides. NULL: none.
 */
const FormatInfo *formats_by_name(const char *path);
/* Returns how long the name is without the suffixes of its format and its compression. */
size_t formats_stem(const char *path);

#endif
