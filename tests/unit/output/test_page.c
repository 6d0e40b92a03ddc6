/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Width, colour and character set of terminals, pipes and files; lines that are cut and broken. */
#include "test_tools.h"

#include "page.h"
#include "util.h"
#include <fcntl.h>
#include <sys/ioctl.h>

static void set_environment(const char *columns, const char *terminal, const char *no_colour,
			    const char *locale)
{
	const char *names[] = {"COLUMNS", "TERM", "NO_COLOR", "LC_ALL"};
	const char *values[] = {columns, terminal, no_colour, locale};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (values[i])
			setenv(names[i], values[i], 1);
		else
			unsetenv(names[i]);
	}
}

/* Returns the program's end of a terminal of that width, and keeps the other end open. */
static FILE *open_terminal(unsigned short columns)
{
	struct winsize size = {.ws_row = 40, .ws_col = columns};
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master) || unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
	return fdopen(slave, "w");
}

static Page page_on(FILE *file)
{
	Page page;

	page_init(&page, file);
	return page;
}

static void test_width(void **state)
{
	const struct {
		unsigned short terminal;
		const char *columns;
		int wanted;
	} cases[] = {{100, NULL, 100}, {40, NULL, 60},	{300, NULL, 200},   {0, NULL, 80},
		     {100, "70", 70},  {100, "0", 100}, {100, "wide", 100}, {100, "99999", 200}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_fclose_ FILE *terminal = open_terminal(cases[i].terminal);

		set_environment(cases[i].columns, "xterm", NULL, "C.UTF-8");
		assert_int_equal(page_on(terminal).width, cases[i].wanted);
	}
}

static void test_no_terminal(void **state)
{
	_cleanup_fclose_ FILE *file = tmpfile();

	(void)state;
	set_environment(NULL, "xterm", NULL, "C.UTF-8");
	assert_int_equal(page_on(file).width, 0);
	assert_false(page_on(file).colour);
	set_environment("72", "xterm", NULL, "C.UTF-8");
	assert_int_equal(page_on(file).width, 72);
}

static void test_colour(void **state)
{
	_cleanup_fclose_ FILE *terminal = open_terminal(80);
	Page page;

	(void)state;
	set_environment(NULL, "xterm", NULL, "C.UTF-8");
	page = page_on(terminal);
	assert_true(page.colour);
	assert_string_equal(page_style(&page, PAGE_BOLD), "\033[1m");
	set_environment(NULL, "xterm", "", "C.UTF-8");
	assert_true(page_on(terminal).colour);
	set_environment(NULL, "xterm", "1", "C.UTF-8");
	page = page_on(terminal);
	assert_false(page.colour);
	assert_string_equal(page_style(&page, PAGE_BOLD), "");
	set_environment(NULL, "dumb", NULL, "C.UTF-8");
	assert_false(page_on(terminal).colour);
	set_environment(NULL, NULL, NULL, "C.UTF-8");
	assert_false(page_on(terminal).colour);
}

static void test_locale(void **state)
{
	const struct {
		const char *locale;
		bool ascii;
	} cases[] = {{"C", true},
		     {"POSIX", true},
		     {"C.UTF-8", false},
		     {"xx_XX.UTF-8", false},
		     {"xx_XX.utf8@abc", false},
		     {"xx_XX.ISO-8859-1", true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		set_environment(NULL, "xterm", NULL, cases[i].locale);
		assert_int_equal(page_on(stdout).ascii, cases[i].ascii);
	}
	set_environment(NULL, NULL, NULL, NULL);
	unsetenv("LC_CTYPE");
	setenv("LANG", "xx_XX.UTF-8", 1);
	assert_false(page_on(stdout).ascii);
	unsetenv("LANG");
	assert_true(page_on(stdout).ascii);
}

static void check_line(const Page *like, const char *text, const char *wanted)
{
	_cleanup_free_ char *printed = NULL;
	size_t size;
	Page page = *like;

	page.file = open_memstream(&printed, &size);
	page_line(&page, "%s", text);
	fclose(page.file);
	assert_string_equal(printed, wanted);
}

static void test_cut(void **state)
{
	const Page utf8 = {.width = 8}, ascii = {.width = 8, .ascii = true}, whole = {};

	(void)state;
	check_line(&utf8, "12345678", "12345678\n");
	check_line(&utf8, "123456789", "1234567…\n");
	check_line(&utf8, "12345678   ", "12345678\n");
	check_line(&utf8, "123456 89", "123456…\n");
	check_line(&utf8, "", "\n");
	check_line(&utf8, "a ← b × c", "a ← b ×…\n");
	check_line(&utf8, "äöüäöüäö", "äöüäöüäö\n");
	check_line(&utf8, "äöüäöüäöü", "äöüäöüä…\n");
	check_line(&utf8, "中中中中", "中中中中\n");
	check_line(&utf8, "中中中中中", "中中中…\n");
	check_line(&utf8, "x中中中中", "x中中中…\n");
	check_line(&utf8,
		   "e\xcc\x81"
		   "e\xcc\x81"
		   "e\xcc\x81"
		   "45678",
		   "e\xcc\x81"
		   "e\xcc\x81"
		   "e\xcc\x81"
		   "45678\n");
	check_line(&ascii, "12345678", "12345678\n");
	check_line(&ascii, "123456789", "12345...\n");
	check_line(&ascii, "a ← …", "a <- ...\n");
	check_line(&ascii, "中", "\\u4e2d\n");
	check_line(&ascii, "a中中", "a...\n");
	check_line(&whole, "a long line with ← and 中, which is not cut",
		   "a long line with ← and 中, which is not cut\n");
}

static void test_ascii(void **state)
{
	const Page ascii = {.ascii = true};

	(void)state;
	check_line(&ascii, "a…b ← → × – µ", "a...b <- -> x - u\n");
	check_line(&ascii, "ä 中 😀", "\\u00e4 \\u4e2d \\U0001f600\n");
}

/* A terminal gets no control characters and no bytes that are not UTF-8, whatever the caller does.
 */
static void test_controls(void **state)
{
	const Page page = {.width = 20};

	(void)state;
	check_line(&page, "a\tb\033[2Jc\x7f\xff", "a?b?[2Jc??\n");
}

static void test_styles(void **state)
{
	const Page page = {.width = 8, .colour = true};

	(void)state;
	check_line(&page, "\033[1m12345678\033[0m", "\033[1m12345678\033[0m\n");
	check_line(&page, "\033[1m123456789\033[0m", "\033[1m1234567…\033[0m\n");
	check_line(&page, "\033[1mab\033[0mcdefghijk", "\033[1mab\033[0mcdefg…\n");
}

static void check_paragraph(int width, int indent, const char *text, const char *wanted,
			    size_t lines)
{
	_cleanup_free_ char *printed = NULL;
	size_t size;
	Page page = {.width = width, .file = open_memstream(&printed, &size)};

	assert_int_equal(page_paragraph(&page, indent, text), lines);
	fclose(page.file);
	assert_string_equal(printed, wanted);
}

static void test_paragraphs(void **state)
{
	(void)state;
	check_paragraph(10, 2, "one two three four", "one two\n  three\n  four\n", 3);
	check_paragraph(10, 2, "one two 34 a", "one two 34\n  a\n", 2);
	check_paragraph(10, 2, "a-very-long-word b", "a-very-lo…\n  b\n", 2);
	check_paragraph(0, 2, "one two three four", "one two three four\n", 1);
	check_paragraph(10, 2, "", "\n", 1);
	check_paragraph(10, 0, "中中 中中 中", "中中 中中\n中\n", 2);
}

static void check_cell(bool ascii, const char *text, int columns, const char *wanted)
{
	const Page page = {.ascii = ascii};
	_cleanup_free_ char *cell = page_cell(&page, text, columns);

	assert_string_equal(cell, wanted);
}

static void test_cells(void **state)
{
	(void)state;
	check_cell(false, "abc", 5, "abc  ");
	check_cell(false, "abcdef", 5, "abcd…");
	check_cell(false, "中中中", 5, "中中…");
	check_cell(false, "x中中中", 5, "x中… ");
	check_cell(true, "abcdef", 5, "ab...");
	check_cell(false, "ab cdef", 4, "ab… ");
}

/* Whatever the text, the line is not wider than the page, and valid for a terminal. */
static void test_any_text(void **state)
{
	static const char *const parts[] = {"a",    "bc ",     "中",	  "…",	"e\xcc\x81",
					    "\xff", "\033[1m", "\033[0m", "\t", "😀"};

	(void)state;
	for (int round = 0; round < 2000; round++) {
		Page page = {.width = 10 + random_below(20), .ascii = random_below(2)};
		_cleanup_free_ char *printed = NULL;
		char text[256] = "";
		size_t size;

		for (uint64_t i = random_below(40); i > 0; i--)
			strcat(text, parts[random_below(ARRAY_LEN(parts))]);
		page.file = open_memstream(&printed, &size);
		page_line(&page, "%s", text);
		fclose(page.file);
		printed[size - 1] = '\0'; /* the newline */
		assert_true(page_columns(&page, printed) <= page.width);
		for (const char *c = printed; *c; c++)
			assert_true((unsigned char)*c >= ' ' || *c == '\033');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_width),	   cmocka_unit_test(test_no_terminal),
		cmocka_unit_test(test_colour),	   cmocka_unit_test(test_locale),
		cmocka_unit_test(test_cut),	   cmocka_unit_test(test_ascii),
		cmocka_unit_test(test_controls),   cmocka_unit_test(test_styles),
		cmocka_unit_test(test_paragraphs), cmocka_unit_test(test_cells),
		cmocka_unit_test(test_any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
