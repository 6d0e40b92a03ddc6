/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_text.h - names and times as the report's text has them.
 */
#ifndef WALLPROF_REPORT_TEXT_H
#define WALLPROF_REPORT_TEXT_H

#include <stdint.h>

#define TEXT_SIZE 32

/* A name that was made up by somebody else, fit for a terminal; to be freed. NULL: "". */
char *printable(const char *name);

/* "1.234 ms", into text, which is returned. */
const char *duration(char text[TEXT_SIZE], uint64_t ns);
#define DURATION(ns) duration((char[TEXT_SIZE]){}, ns)

#endif
