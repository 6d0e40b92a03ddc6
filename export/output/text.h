/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text.h - names and times in the text of the report. */
#ifndef WALLPROF_TEXT_H
#define WALLPROF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_SIZE 32

/* Returns a name from a recorded program, fit for a terminal; "" for NULL. The caller frees it. */
char *text_printable(const char *name);

/*
 * Returns "3 others" or "3 other files", for the line with the sum of what a table does not show.
 * The caller frees it.
 */
char *text_others(size_t count, bool files);

/*
 * Returns ", then 2.900 s runnable": how long threads were runnable after waits that took ns in
 * all; "" if that is less than a twentieth. The caller frees it.
 */
char *text_then_runnable(uint64_t ns, uint64_t delay_ns);

/* Writes "1.234 ms" into text and returns it. */
const char *text_duration(char text[TEXT_SIZE], uint64_t ns);
#define DURATION(ns) text_duration((char[TEXT_SIZE]){}, ns)

/* Writes "12.3 %" into text, the part that ns is of all_ns, and returns it; "" if that is 0. */
const char *text_percent(char text[TEXT_SIZE], uint64_t ns, uint64_t all_ns);
#define PERCENT(ns, all_ns) text_percent((char[TEXT_SIZE]){}, ns, all_ns)

/* Writes the number into text and returns it. */
const char *text_count(char text[TEXT_SIZE], uint64_t count);
#define COUNT(count) text_count((char[TEXT_SIZE]){}, count)

/* Writes two hexadecimal digits for each byte, and '\0'. Returns the position of the NUL. */
char *text_hex(char *to, const uint8_t *bytes, size_t count, const char *digits);

#endif
