/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * page.h - text for a terminal: lines that fit its width, colours, and its character set.
 *
 * A line is cut to the width, so that a long name does not make a table unreadable. A pipe or a
 * file gets whole lines, because programs read them: as git and ps do, unless COLUMNS is set.
 *
 * In a locale without UTF-8 only ASCII is printed. Wallprof's own characters have replacements
 * ("…" is "..."), others are escaped as in C ("\u4e2d").
 */
#ifndef WALLPROF_PAGE_H
#define WALLPROF_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PAGE_MIN_WIDTH 60
#define PAGE_MAX_WIDTH 200

typedef struct Page {
	FILE *file; /* not owned */
	int width;  /* columns, or 0: lines are not cut */
	bool colour;
	bool ascii;
} Page;

/* Returns whether $TERM names no terminal, or one without a cursor. */
bool page_is_dumb(void);

/*
 * Sets the page up for a file: width from COLUMNS, else of the file's terminal, in the limits
 * above; colour if it is a terminal, TERM is not "dumb" and NO_COLOR is not set.
 */
void page_init(Page *page, FILE *file);

enum page_style {
	PAGE_PLAIN, /* ends the others */
	PAGE_BOLD,
	PAGE_DIM,
	PAGE_RED,
	PAGE_GREEN,
	PAGE_YELLOW,
	PAGE_BLUE,
	PAGE_MAGENTA,
	PAGE_CYAN,
	PAGE_STYLES
};

/* Returns the escape sequence that begins a style; "" if the page has no colours. */
const char *page_style(const Page *page, enum page_style style);

/*
 * Prints one line; the text has no newline. Names of recorded programs must have passed
 * text_printable(). Styles that are still on at the end of the line are ended.
 */
void page_line(const Page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints a paragraph: breaks it at spaces, and indents its further lines. Returns their number. */
size_t page_paragraph(const Page *page, int indent, const char *text);

/*
 * Returns the text, cut or filled up with spaces to exactly so many columns. The caller frees it.
 */
char *page_cell(const Page *page, const char *text, int columns);

/* Returns how many columns the text takes on this page, without spaces at its end. */
int page_columns(const Page *page, const char *text);

#endif
