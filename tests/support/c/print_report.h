/* SPDX-License-Identifier: GPL-2.0-or-later */
/* print_report.h - the report's text as a string, and what it has. */
#ifndef WALLPROF_TEST_PRINT_REPORT_H
#define WALLPROF_TEST_PRINT_REPORT_H

#include "report.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

typedef void (*Printer)(FILE *file, const Timeline *timeline, Frames *frames);

static inline char *print(Printer printer, const Timeline *timeline)
{
	char *text, *copy;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Frames *frames = frames_new();

	printer(stream, timeline, frames);
	fclose(stream);
	frames_free(frames);
	copy = xstrdup(text); /* gcc takes text itself, whose address was passed, for local */
	free(text);
	return copy;
}

static inline void print_summary(FILE *file, const Timeline *timeline, Frames *frames)
{
	report_summary(file, timeline, frames, "dir/out.json.gz", /* is_trace= */ false);
}

static inline void check_contains(Printer printer, const Timeline *timeline, const char *expected)
{
	char *text = print(printer, timeline);

	if (!strstr(text, expected))
		fail_msg("no \"%s\" in:\n%s", expected, text);
	free(text);
}

static inline void check_lacks(Printer printer, const Timeline *timeline, const char *unexpected)
{
	char *text = print(printer, timeline);

	assert_null(strstr(text, unexpected));
	free(text);
}

#endif
