/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page_table.h"
#include "util.h"

#define NAME_SHARE 2 /* the name has at least one in so many parts of the width */
#define NAME_GAP   2
#define DETAIL_GAP 2
#define DETAIL_MAX 24 /* a detail begins no further to the right */

static bool is_shown(const Table *table, size_t column)
{
	return !(table->hidden & 1U << column);
}

/* Returns the columns that stand before the name. */
static int numbers_width(const Table *table)
{
	int width = 0;

	for (size_t i = 0; i < table->count; i++)
		if (is_shown(table, i))
			width += table->columns[i].width + 1;
	return width + NAME_GAP - 1;
}

/* Returns the column to leave out next, or SIZE_MAX: all that are left must be there. */
static size_t least_column(const Table *table)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < table->count; i++)
		if (is_shown(table, i) && table->columns[i].rank > 0 &&
		    (least == SIZE_MAX || table->columns[i].rank >= table->columns[least].rank))
			least = i;
	return least;
}

void page_table_init(Table *table, const Page *page, const TableColumn *columns, size_t count,
		     int max_rank)
{
	size_t least;

	*table = (Table){.page = page, .columns = columns, .count = count};
	for (size_t i = 0; i < count; i++)
		if (columns[i].rank > max_rank)
			table->hidden |= 1U << i;
	while (page->width && numbers_width(table) > page->width - page->width / NAME_SHARE &&
	       (least = least_column(table)) != SIZE_MAX)
		table->hidden |= 1U << least;
}

/* Returns the numbers of a row; the caller frees the text. */
static char *numbers_text(const Table *table, const char *const *cells)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < table->count; i++) {
		if (!is_shown(table, i))
			continue;
		char *longer = xasprintf("%s%s%*s", text, *text ? " " : "", table->columns[i].width,
					 cells[i]);

		free(text);
		text = longer;
	}
	return text;
}

void page_table_head(Table *table, const char *title)
{
	const char *titles[TABLE_COLUMNS_MAX];
	_cleanup_free_ char *numbers = NULL;

	if (table->has_head)
		return;
	table->has_head = true;
	for (size_t i = 0; i < table->count; i++)
		titles[i] = table->columns[i].title;
	numbers = numbers_text(table, titles);
	page_line(table->page, "%s", "");
	page_line(table->page, "%s%s%s%*s%s%s%s", page_style(table->page, PAGE_DIM), numbers,
		  page_style(table->page, PAGE_PLAIN), NAME_GAP, "",
		  page_style(table->page, PAGE_BOLD), title, page_style(table->page, PAGE_PLAIN));
}

void page_table_row(const Table *table, const char *const *cells, const char *name)
{
	_cleanup_free_ char *numbers = numbers_text(table, cells);

	page_line(table->page, "%s%*s%s", numbers, NAME_GAP, "", name);
}

void page_table_detail(const Table *table, const char *text)
{
	int indent = MIN(numbers_width(table) + DETAIL_GAP, DETAIL_MAX);

	page_line(table->page, "%*s%s%s%s", indent, "", page_style(table->page, PAGE_DIM), text,
		  page_style(table->page, PAGE_PLAIN));
}
