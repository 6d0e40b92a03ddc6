/* SPDX-License-Identifier: GPL-2.0-or-later */
/* print_report.h - prints the report into a string, and checks what that contains. */
#ifndef WALLPROF_TEST_PRINT_REPORT_H
#define WALLPROF_TEST_PRINT_REPORT_H

#include "report.h"

typedef void (*Printer)(FILE *file, const Timeline *timeline, Frames *frames);

/* Returns what the printer prints, which the caller frees. */
char *report_text(Printer printer, const Timeline *timeline);
/* A Printer of all sections of the report. */
void print_full(FILE *file, const Timeline *timeline, Frames *frames);
/* Prints one section, ten rows of each table. */
void print_section(FILE *file, const Timeline *timeline, Frames *frames, const char *name);
/* Printers of the summary, without and with its accounts. */
void print_summary(FILE *file, const Timeline *timeline, Frames *frames);
void print_accounts(FILE *file, const Timeline *timeline, Frames *frames);
void check_contains(Printer printer, const Timeline *timeline, const char *expected);
void check_lacks(Printer printer, const Timeline *timeline, const char *unexpected);

#endif
