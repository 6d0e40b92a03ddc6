/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text.h - names and times as the report's text has them.
 */
#ifndef WALLPROF_TEXT_H
#define WALLPROF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_SIZE 32

/* A name that was made up by somebody else, fit for a terminal; to be freed. NULL: "". */
char *text_printable(const char *name);

/* "3 others", or "3 other files": the line with what a table does not show; to be freed. */
char *text_others(size_t count, bool files);

/*
 * ", then 2.900 s for a CPU": how long threads were runnable after waits that took ns in all; ""
 * if that is less than a twentieth. To be freed.
 */
char *text_then(uint64_t ns, uint64_t delay_ns);

/* "1.234 ms", into text, which is returned. */
const char *text_duration(char text[TEXT_SIZE], uint64_t ns);
#define DURATION(ns) text_duration((char[TEXT_SIZE]){}, ns)

/* Writes two of the 16 digits for each byte, and '\0'. Returns where that is. */
char *text_hex(char *to, const uint8_t *bytes, size_t count, const char *digits);

#endif
