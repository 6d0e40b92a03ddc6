/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "args.h"
#include "records.h"
#include "text.h"
#include "util.h"
#include <ctype.h>
#include <string.h>

#define LABEL_COLUMNS 60
#define PATH_COLUMNS  24 /* a longer path is shown by its last part */
#define CODE_COLUMNS  40
#define ELLIPSIS      "…"

/* ---- words ------------------------------------------------------------------------------------
 */

typedef VEC(char *) Words;

static Words words_of(Args args)
{
	const char *at = args.size > 0 ? args.text : "", *end = at + args.size;
	Words words = {};

	while (at < end) {
		size_t length = strnlen(at, end - at);
		_cleanup_free_ char *word = xasprintf("%.*s", (int)length, at);

		*vec_push(&words) = text_printable(word);
		at += length + 1;
	}
	/* A title is shorter than the list that it was written over. */
	while (words.count > 0 && !*words.items[words.count - 1])
		free(words.items[--words.count]);
	return words;
}

static void words_free(Words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->items[i]);
	vec_free(words);
}

/* Appends a word, after a space unless it is the first one. Takes ownership of neither. */
static void append(char **text, const char *word)
{
	char *longer = xasprintf("%s%s%s", *text, **text ? " " : "", word);

	free(*text);
	*text = longer;
}

char *args_text(Args args)
{
	Words words = words_of(args);
	char *text = words.count > 0 ? xstrdup("") : NULL;

	for (size_t i = 0; i < words.count; i++) {
		_cleanup_free_ char *word = shell_word(words.items[i]);

		append(&text, word);
	}
	if (text && args.is_cut)
		append(&text, ELLIPSIS);
	words_free(&words);
	return text;
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Cuts the text to so many characters, the last one being an ellipsis. */
static void limit_columns(char **text, size_t columns)
{
	size_t count = 0, cut = 0;

	for (const char *c = *text; *c; c++) {
		if (is_continuation(*c))
			continue;
		if (count++ == columns - 1)
			cut = c - *text;
	}
	if (count <= columns)
		return;
	while (cut > 0 && (*text)[cut - 1] == ' ')
		cut--;
	char *shorter = xasprintf("%.*s" ELLIPSIS, (int)cut, *text);

	free(*text);
	*text = shorter;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static char *short_word(const char *word)
{
	const char *base = base_name(word);

	return base != word && *word != '-' && strlen(word) > PATH_COLUMNS
		       ? xasprintf(ELLIPSIS "/%s", base)
		       : xstrdup(word);
}

/* Appends the words from `from` on. */
static void append_rest(char **text, const Words *words, size_t from)
{
	/* More words than columns are cut anyway. */
	for (size_t i = from; i < words->count && i - from < LABEL_COLUMNS; i++) {
		_cleanup_free_ char *word = short_word(words->items[i]);

		append(text, word);
	}
}

/* ---- kinds of programs ------------------------------------------------------------------------
 */

typedef enum ProgramKind {
	PROGRAM_OTHER,
	PROGRAM_COMPILER,
	PROGRAM_ASSEMBLER, /* its input is often a temporary file */
	PROGRAM_LINKER,
	PROGRAM_SHELL,
	PROGRAM_PYTHON,
	PROGRAM_INTERPRETER, /* another one: -e CODE */
	PROGRAM_JAVA,
} ProgramKind;

static const struct {
	const char *name;
	ProgramKind kind;
} programs[] = {
	{"c++", PROGRAM_COMPILER},	  {"c89", PROGRAM_COMPILER},
	{"c99", PROGRAM_COMPILER},	  {"cc", PROGRAM_COMPILER},
	{"cc1", PROGRAM_COMPILER},	  {"cc1obj", PROGRAM_COMPILER},
	{"cc1plus", PROGRAM_COMPILER},	  {"cicc", PROGRAM_COMPILER},
	{"clang", PROGRAM_COMPILER},	  {"clang++", PROGRAM_COMPILER},
	{"cpp", PROGRAM_COMPILER},	  {"f951", PROGRAM_COMPILER},
	{"g++", PROGRAM_COMPILER},	  {"gcc", PROGRAM_COMPILER},
	{"gfortran", PROGRAM_COMPILER},	  {"ghc", PROGRAM_COMPILER},
	{"gnat1", PROGRAM_COMPILER},	  {"javac", PROGRAM_COMPILER},
	{"nasm", PROGRAM_COMPILER},	  {"nvcc", PROGRAM_COMPILER},
	{"rustc", PROGRAM_COMPILER},	  {"tcc", PROGRAM_COMPILER},
	{"yasm", PROGRAM_COMPILER},	  {"as", PROGRAM_ASSEMBLER},
	{"ar", PROGRAM_LINKER},		  {"collect2", PROGRAM_LINKER},
	{"gold", PROGRAM_LINKER},	  {"ld", PROGRAM_LINKER},
	{"lld", PROGRAM_LINKER},	  {"lto1", PROGRAM_LINKER},
	{"mold", PROGRAM_LINKER},	  {"ranlib", PROGRAM_LINKER},
	{"ash", PROGRAM_SHELL},		  {"bash", PROGRAM_SHELL},
	{"dash", PROGRAM_SHELL},	  {"fish", PROGRAM_SHELL},
	{"ksh", PROGRAM_SHELL},		  {"sh", PROGRAM_SHELL},
	{"zsh", PROGRAM_SHELL},		  {"pypy", PROGRAM_PYTHON},
	{"python", PROGRAM_PYTHON},	  {"lua", PROGRAM_INTERPRETER},
	{"node", PROGRAM_INTERPRETER},	  {"nodejs", PROGRAM_INTERPRETER},
	{"perl", PROGRAM_INTERPRETER},	  {"php", PROGRAM_INTERPRETER},
	{"Rscript", PROGRAM_INTERPRETER}, {"ruby", PROGRAM_INTERPRETER},
	{"java", PROGRAM_JAVA},
};

/*
 * Versions and prefixes do not count: "x86_64-linux-gnu-gcc-12" is gcc, "python3.11" python,
 * "ld.bfd" ld, "-bash" bash.
 */
static ProgramKind kind_of(const char *path)
{
	_cleanup_free_ char *name = xstrdup(base_name(path));
	size_t length = strlen(name);
	const char *last;

	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (!strcmp(name, programs[i].name))
			return programs[i].kind;
	if (!strncmp(name, "ld.", 3))
		return PROGRAM_LINKER;
	while (length > 0 && (isdigit((unsigned char)name[length - 1]) || name[length - 1] == '.'))
		length--;
	if (length > 0 && name[length - 1] == '-')
		length--;
	name[length] = '\0';
	last = strrchr(name, '-');
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (!strcmp(last ? last + 1 : name, programs[i].name))
			return programs[i].kind;
	return PROGRAM_OTHER;
}

/* ---- compilers and linkers --------------------------------------------------------------------
 */

static bool ends_in(const char *word, const char *suffix)
{
	size_t length = strlen(word), end = strlen(suffix);

	return length > end && !strcmp(word + length - end, suffix);
}

static bool is_source(const char *word)
{
	static const char *const suffixes[] = {
		".c",	".cc",	".cpp", ".cxx", ".C",	 ".c++", ".i",	 ".ii",
		".m",	".mm",	".s",	".S",	".asm",	 ".rs",	 ".f",	 ".f90",
		".f95", ".F90", ".d",	".hs",	".java", ".cu",	 ".adb",
	};

	if (*word == '-' || *word == '@')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		if (ends_in(word, suffixes[i]))
			return true;
	return false;
}

/* Returns the word that follows the option, or NULL. */
static const char *value_of(const Words *words, const char *option)
{
	for (size_t i = 1; i + 1 < words->count; i++)
		if (!strcmp(words->items[i], option))
			return words->items[i + 1];
	return NULL;
}

static void append_sources(char **text, const Words *words)
{
	const char *first = NULL;
	size_t others = 0;

	for (size_t i = 1; i < words->count; i++) {
		const char *before = words->items[i - 1];

		/* The value of an option that names an output. */
		if (!is_source(words->items[i]) || !strcmp(before, "-o") ||
		    !strncmp(before, "-M", 2) || !strncmp(before, "-dump", 5) ||
		    !strcmp(before, "-auxbase-strip"))
			continue;
		others += first && strcmp(first, words->items[i]) != 0;
		first = first ? first : words->items[i];
	}
	if (!first)
		return;
	append(text, base_name(first));
	if (others > 0) {
		_cleanup_free_ char *more = xasprintf("+%zu", others);

		append(text, more);
	}
}

static const char *first_archive(const Words *words)
{
	for (size_t i = 1; i < words->count; i++)
		if (ends_in(words->items[i], ".a"))
			return words->items[i];
	return NULL;
}

/* Returns false if it has no file that tells it apart. */
static bool append_file(char **text, const Words *words, ProgramKind kind)
{
	const char *crate = value_of(words, "--crate-name"), *output = value_of(words, "-o");
	size_t length = strlen(*text);

	if (kind == PROGRAM_COMPILER && crate)
		append(text, crate);
	else if (kind == PROGRAM_COMPILER)
		append_sources(text, words);
	if (strlen(*text) == length && !output && kind == PROGRAM_LINKER)
		output = first_archive(words);
	if (strlen(*text) == length && output)
		append(text, base_name(output));
	if (strlen(*text) == length && kind == PROGRAM_ASSEMBLER)
		append_sources(text, words);
	return strlen(*text) > length;
}

/* ---- interpreters -----------------------------------------------------------------------------
 */

static void append_code(char **text, const char *option, const char *code)
{
	_cleanup_free_ char *line = xstrdup(code + strspn(code, " \t\n"));

	limit_columns(&line, CODE_COLUMNS);
	append(text, option);
	append(text, line);
}

/* Returns whether the option's value is the next word. */
static bool takes_value(ProgramKind kind, const char *option)
{
	static const char *const of_java[] = {"-cp",	     "-classpath",    "--class-path",
					      "-p",	     "--module-path", "--add-modules",
					      "--add-opens", "--add-exports"};

	if (kind == PROGRAM_JAVA) {
		for (size_t i = 0; i < ARRAY_LEN(of_java); i++)
			if (!strcmp(option, of_java[i]))
				return true;
		return false;
	}
	if (kind == PROGRAM_SHELL)
		return !strcmp(option, "-o") || !strcmp(option, "+o") ||
		       !strcmp(option, "--rcfile") || !strcmp(option, "--init-file");
	if (kind == PROGRAM_PYTHON)
		return !strcmp(option, "-W") || !strcmp(option, "-X");
	return !strcmp(option, "-r") || !strcmp(option, "-I") || !strcmp(option, "--require");
}

/* Returns whether the next word is code: sh -ec CODE, python -c CODE, perl -ne CODE. */
static bool is_code_option(ProgramKind kind, const char *option)
{
	char letter = kind == PROGRAM_SHELL || kind == PROGRAM_PYTHON ? 'c' : 'e';

	return kind != PROGRAM_JAVA && option[1] != '-' && option[strlen(option) - 1] == letter;
}

/*
 * A script that is executed by its path gives the process its name, of which the kernel keeps 15
 * bytes.
 */
static void append_script_name(char **text, const char *script)
{
	static const char cut_character[] = "\xef\xbf\xbd";
	size_t length = strlen(*text);
	bool is_cut = length == COMM_LEN - 1;

	/* Where the cut is inside of a character, the label ends with its replacement. */
	if (text_ends_with(*text, cut_character)) {
		length -= strlen(cut_character);
		is_cut = length >= COMM_LEN - 4;
	}
	if (length > 0 && !strncmp(script, *text, length) && (!script[length] || is_cut)) {
		free(*text);
		*text = xstrdup(script);
	} else {
		append(text, script);
	}
}

static bool append_script(char **text, const Words *words, ProgramKind kind)
{
	size_t i = 1;

	for (; i < words->count && (*words->items[i] == '-' || *words->items[i] == '+'); i++) {
		const char *option = words->items[i];
		bool has_next = i + 1 < words->count;

		if (!strcmp(option, "--")) {
			i++;
			break;
		}
		if (has_next && is_code_option(kind, option)) {
			append_code(text, option, words->items[i + 1]);
			append_rest(text, words, i + 2);
			return true;
		}
		if (has_next && ((kind == PROGRAM_PYTHON && !strcmp(option, "-m")) ||
				 (kind == PROGRAM_JAVA && !strcmp(option, "-m")))) {
			append(text, option);
			append_rest(text, words, i + 1);
			return true;
		}
		if (kind == PROGRAM_JAVA && has_next && !strcmp(option, "-jar")) {
			i++;
			break;
		}
		i += has_next && takes_value(kind, option);
	}
	if (i >= words->count)
		return false;
	append_script_name(text, base_name(words->items[i]));
	append_rest(text, words, i + 1);
	return true;
}

/* ---- names ------------------------------------------------------------------------------------
 */

static bool begins_with_name(const char *path, const char *name)
{
	const char *base = base_name(path);

	/* A login shell's first argument is "-bash". */
	return !strncmp(base + (*base == '-'), name, strlen(name));
}

bool args_have_name(const char *name, const char *path, Args args)
{
	Words words = words_of(args);
	bool found = path && begins_with_name(path, name);

	for (size_t i = 0; i < words.count && i < 2 && !found; i++)
		found = begins_with_name(words.items[i], name);
	words_free(&words);
	return found;
}

/* ---- labels -----------------------------------------------------------------------------------
 */

/* A title is one text over the whole list: "nginx: worker process". */
static bool is_title(const Words *words)
{
	return words->count == 1 && strchr(words->items[0], ' ');
}

static char *title_label(const char *name, const char *title)
{
	size_t first = strcspn(title, " ");
	_cleanup_free_ char *program = xasprintf("%.*s", (int)first, title);
	const char *base = base_name(program);
	size_t length = strlen(name);

	if (!strncmp(base, name, length) && length > 0)
		return xasprintf("%s%s", base, title + first);
	return xasprintf("%s %s", name, title);
}

char *args_label(const char *name, Args args)
{
	Words words = words_of(args);
	char *text = text_printable(name);
	ProgramKind kind = words.count > 0 ? kind_of(words.items[0]) : PROGRAM_OTHER;
	bool done = words.count == 0;

	if (is_title(&words)) {
		char *label = title_label(text, words.items[0]);

		free(text);
		text = label;
		done = true;
	} else if (kind >= PROGRAM_SHELL) {
		done |= append_script(&text, &words, kind);
	} else if (kind != PROGRAM_OTHER) {
		done |= append_file(&text, &words, kind);
	}
	if (!done)
		append_rest(&text, &words, 1);
	limit_columns(&text, LABEL_COLUMNS);
	words_free(&words);
	return text;
}
