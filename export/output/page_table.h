/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * page_table.h - tables on a page: columns of numbers, and a name at the end.
 *
 * On a narrow page the columns that say least are left out, so that the name has room.
 */
#ifndef WALLPROF_PAGE_TABLE_H
#define WALLPROF_PAGE_TABLE_H

#include "page.h"
#include <stdint.h>

#define TABLE_COLUMNS_MAX 10

typedef struct TableColumn {
	const char *title;
	int width;
	int rank; /* 0: it is always there; columns of a high rank are left out first */
} TableColumn;

typedef struct Table {
	const Page *page;
	const TableColumn *columns; /* numbers, aligned to the right */
	size_t count;
	uint32_t hidden; /* 1 << index of a column; the caller may hide more */
	bool has_head;
	bool details; /* for the caller: further lines of rows are wanted */
} Table;

/*
 * Sets a table up; nothing is printed before its first row. max_rank: columns of a higher rank are
 * left out at any width.
 */
void page_table_init(Table *table, const Page *page, const TableColumn *columns, size_t count,
		     int max_rank);

/* Prints an empty line and the head, whose last column has this title; only once. */
void page_table_head(Table *table, const char *title);

/* Prints a row: as many cells as there are columns, and a name fit for a terminal. */
void page_table_row(const Table *table, const char *const *cells, const char *name);

/* Prints a further line of the row before it. */
void page_table_detail(const Table *table, const char *text);

#endif
