/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page.h"
#include "json_writer.h"
#include "util.h"
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define PLAIN "\033[0m"

static const char *const styles[PAGE_STYLES] = {
	[PAGE_PLAIN] = PLAIN,	  [PAGE_BOLD] = "\033[1m",     [PAGE_DIM] = "\033[2m",
	[PAGE_RED] = "\033[31m",  [PAGE_GREEN] = "\033[32m",   [PAGE_YELLOW] = "\033[33m",
	[PAGE_BLUE] = "\033[34m", [PAGE_MAGENTA] = "\033[35m", [PAGE_CYAN] = "\033[36m",
};

/* Characters that wallprof writes itself. */
static const struct {
	const char *text, *ascii;
} replacements[] = {
	{"…", "..."}, {"←", "<-"}, {"→", "->"}, {"×", "x"}, {"–", "-"}, {"µ", "u"},
};

/* ---- the terminal -------------------------------------------------------------------------- */

/* The first of these variables that is set names the locale, as in setlocale(3). */
static const char *locale_name(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *name = getenv(variables[i]);

		if (name && *name)
			return name;
	}
	return "C";
}

static bool locale_is_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	const char *dot;
	bool utf8;

	if (locale) {
		utf8 = !strcasecmp(nl_langinfo_l(CODESET, locale), "UTF-8");
		freelocale(locale);
		return utf8;
	}
	/* It is not installed, as in a container, but its name says what the terminal expects. */
	dot = strchr(locale_name(), '.');
	return dot && (!strncasecmp(dot, ".UTF-8", 6) || !strncasecmp(dot, ".UTF8", 5));
}

static int width_of(int fd)
{
	const char *text = getenv("COLUMNS");
	struct winsize size;
	uint64_t columns = 0;

	if (!text || parse_u64(text, &columns))
		columns = 0;
	if (columns == 0 && !ioctl(fd, TIOCGWINSZ, &size))
		columns = size.ws_col;
	/* A terminal that does not know its size, such as a serial line. */
	if (columns == 0 && isatty(fd))
		columns = 80;
	return columns == 0 ? 0 : MIN(MAX(columns, PAGE_MIN_WIDTH), PAGE_MAX_WIDTH);
}

bool page_is_dumb(void)
{
	const char *terminal = getenv("TERM");

	return !terminal || !*terminal || !strcmp(terminal, "dumb");
}

void page_init(Page *page, FILE *file)
{
	const char *no_colour = getenv("NO_COLOR");
	int fd = fileno(file);

	*page = (Page){
		.file = file,
		.width = width_of(fd),
		.colour = isatty(fd) && !page_is_dumb() && !(no_colour && *no_colour),
		.ascii = !locale_is_utf8(),
	};
}

const char *page_style(const Page *page, enum page_style style)
{
	return page->colour ? styles[style] : "";
}

/* ---- characters ---------------------------------------------------------------------------- */

/* Returns the length of a style's escape sequence at the beginning of the text, or 0. */
static size_t style_length(const char *text)
{
	if (*text != '\033')
		return 0;
	for (size_t i = 0; i < PAGE_STYLES; i++)
		if (!strncmp(text, styles[i], strlen(styles[i])))
			return strlen(styles[i]);
	return 0;
}

static uint32_t decode(const char *text, size_t length)
{
	static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = (unsigned char)text[0] & lead_bits[length];

	for (size_t i = 1; i < length; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	return code;
}

/* Terminals draw East Asian characters in two columns, and combining ones in none. */
static int columns_of(uint32_t code)
{
	static locale_t utf8;
	locale_t old;
	int columns;

	if (code < 0x80)
		return 1;
	/* wcwidth() uses the thread's locale; in the one of C it knows ASCII alone. */
	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!utf8)
		return 1;
	old = uselocale(utf8);
	columns = wcwidth(code);
	uselocale(old);
	return columns < 0 ? 1 : columns;
}

/* What is printed for one character. */
typedef struct Glyph {
	const char *text; /* may be in `escaped` */
	size_t size;	  /* bytes, of text */
	size_t length;	  /* bytes of the character */
	int columns;
	char escaped[12];
} Glyph;

static void glyph_ascii(Glyph *glyph, const char *text)
{
	uint32_t code = decode(text, glyph->length);

	glyph->text = glyph->escaped;
	for (size_t i = 0; i < ARRAY_LEN(replacements); i++)
		if (!strncmp(text, replacements[i].text, strlen(replacements[i].text)))
			glyph->text = replacements[i].ascii;
	if (glyph->text == glyph->escaped)
		snprintf(glyph->escaped, sizeof(glyph->escaped),
			 code > 0xffff ? "\\U%08x" : "\\u%04x", code);
	glyph->size = strlen(glyph->text);
	glyph->columns = glyph->size;
}

/* Reads the character at the beginning of the text, which is not empty. */
static void glyph_read(Glyph *glyph, const Page *page, const char *text)
{
	size_t style = style_length(text);

	glyph->text = text;
	glyph->length = glyph->size = style ? style : utf8_length(text);
	if (style) {
		glyph->columns = 0;
	} else if (glyph->length == 0 || (unsigned char)*text < ' ' || *text == 0x7f) {
		/* The callers leave none; a terminal must never see it. */
		*glyph = (Glyph){.text = "?", .size = 1, .length = 1, .columns = 1};
	} else if (glyph->length == 1 || !page->ascii) {
		glyph->columns = columns_of(decode(text, glyph->length));
	} else {
		glyph_ascii(glyph, text);
	}
}

int page_columns(const Page *page, const char *text)
{
	int columns = 0, spaces = 0;
	Glyph glyph;

	for (; *text; text += glyph.length) {
		glyph_read(&glyph, page, text);
		spaces = *text == ' ' ? spaces + 1 : 0;
		columns += glyph.columns;
	}
	return columns - spaces;
}

/*
 * Writes the text as it is printed, of at most so many columns: the last one is an ellipsis if
 * some of it does not fit. Returns the columns that it takes.
 */
static int write_text(const Page *page, FILE *file, const char *text, int limit)
{
	const char *ellipsis = page->ascii ? "..." : "…";
	int columns = 0, spaces = 0, kept = limit - (page->ascii ? 3 : 1);
	bool cut = page_columns(page, text) > limit, styled = false;
	Glyph glyph;

	for (; *text; text += glyph.length) {
		glyph_read(&glyph, page, text);
		if (cut && columns + spaces + glyph.columns > kept)
			break;
		/* Spaces are held back, because none stands before the ellipsis. */
		if (*text == ' ') {
			spaces++;
			continue;
		}
		columns += spaces;
		for (; spaces > 0; spaces--)
			fputc(' ', file);
		fwrite(glyph.text, 1, glyph.size, file);
		columns += glyph.columns;
		if (glyph.columns == 0 && *text == '\033')
			styled = strncmp(text, PLAIN, strlen(PLAIN)) != 0;
	}
	if (cut) {
		fputs(ellipsis, file);
		columns += page->ascii ? 3 : 1;
	}
	if (styled)
		fputs(PLAIN, file);
	return columns;
}

/* ---- lines --------------------------------------------------------------------------------- */

static int line_limit(const Page *page)
{
	return page->width ? page->width : INT_MAX;
}

void page_line(const Page *page, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list args;
	int length;

	va_start(args, fmt);
	length = vasprintf(&text, fmt, args);
	va_end(args);
	if (length < 0) {
		text = NULL; /* what vasprintf() leaves there is not defined */
		return;
	}
	write_text(page, page->file, text, line_limit(page));
	fputc('\n', page->file);
}

/* Returns how many bytes of the text, up to a space or its end, fit into a line. */
static size_t part_that_fits(const Page *page, const char *text, int columns)
{
	size_t fits = 0, at = 0;
	int used = 0;
	Glyph glyph;

	for (; text[at]; at += glyph.length) {
		if (text[at] == ' ' && at > 0 && text[at - 1] != ' ' && (used <= columns || !fits))
			fits = at;
		glyph_read(&glyph, page, text + at);
		used += glyph.columns;
		if (used > columns && fits > 0)
			return fits;
	}
	return at;
}

size_t page_paragraph(const Page *page, int indent, const char *text)
{
	size_t lines = 0;

	do {
		int spaces = lines > 0 ? indent : 0;
		size_t length = part_that_fits(page, text, line_limit(page) - spaces);

		page_line(page, "%*s%.*s", spaces, "", (int)length, text);
		text += length;
		text += strspn(text, " ");
		lines++;
	} while (*text);
	return lines;
}

char *page_cell(const Page *page, const char *text, int columns)
{
	size_t size = 0;
	char *cell = NULL;
	FILE *file = open_memstream(&cell, &size);

	if (!file)
		return xstrdup("");
	for (int used = write_text(page, file, text, columns); used < columns; used++)
		fputc(' ', file);
	if (fclose(file)) {
		free(cell);
		return xstrdup("");
	}
	return cell;
}
