/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables on pages of any width: which columns are there, and that the lines fit. */
#include "page_table.h"
#include "test_tools.h"

static const TableColumn columns[] = {
	{"waited", 10, 0}, {"times", 6, 1}, {"mean", 10, 2}, {"p99", 10, 3}};

/* Prints a table of one row and its detail; the caller frees the text. */
static char *table_text(int width, int max_rank)
{
	const char *cells[] = {"1.234 s", "12", "102.8 ms", "1.000 s"};
	char *text, *copy;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	const Page page = {.file = file, .width = width};
	Table table;

	page_table_init(&table, &page, columns, ARRAY_LEN(columns), max_rank);
	page_table_head(&table, "name");
	page_table_head(&table, "printed once");
	page_table_row(&table, cells, "a thread with a name that is quite long for a narrow page");
	page_table_detail(&table, "in a function");
	fclose(file);
	copy = xstrdup(text);
	free(text);
	return copy;
}

static void check_table(int width, int max_rank, const char *wanted)
{
	char *text = table_text(width, max_rank);

	assert_string_equal(text, wanted);
	free(text);
}

static void test_columns(void **state)
{
	(void)state;
	check_table(0, 9,
		    "\n"
		    "    waited  times       mean        p99  name\n"
		    "   1.234 s     12   102.8 ms    1.000 s  a thread with a name that is quite "
		    "long for a "
		    "narrow page\n"
		    "                        in a function\n");
	/* The name has half of the width. */
	check_table(60, 9,
		    "\n"
		    "    waited  times       mean  name\n"
		    "   1.234 s     12   102.8 ms  a thread with a name that is…\n"
		    "                        in a function\n");
	check_table(0, 1,
		    "\n"
		    "    waited  times  name\n"
		    "   1.234 s     12  a thread with a name that is quite long for a narrow page\n"
		    "                     in a function\n");
	check_table(20, 9,
		    "\n"
		    "    waited  name\n"
		    "   1.234 s  a threa…\n"
		    "              in a…\n");
}

static void test_widths(void **state)
{
	(void)state;
	for (int width = 20; width <= 200; width++) {
		char *text = table_text(width, 9), *rest = text;
		const Page page = {.width = width};

		for (char *line; (line = strsep(&rest, "\n"));)
			assert_true(page_columns(&page, line) <= width);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
