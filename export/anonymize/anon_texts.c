/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "anon_texts.h"
#include <ctype.h>

/* ---- arguments ----------------------------------------------------------------------------- */

/*
 * A process may write any text over its arguments: "/usr/sbin/daemon: job of alice". Such a text is
 * no path, although it begins like one that is kept; neither is "/bin/x?token=1" of a URL, or
 * "/lib/alice@host". The system's files are called by plain letters.
 */
static bool is_path(const char *argument)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-+";

	return *argument != '-' && strchr(argument, '/') && !strpbrk(argument, " \t\n=:;,\"'") &&
	       strspn(argument, plain) >= anon_paths_kept_length(argument);
}

static bool is_short_option(const char *argument)
{
	/* "-ec", "-lc" and "-ne" are followed by code. */
	static const char flags[] = "ceilnpux";
	size_t length = strlen(argument);
	bool is_one = length == 2 && isalnum((unsigned char)argument[1]);

	if (*argument == '+')
		return is_one;
	return !strcmp(argument, "-") || !strcmp(argument, "--") ||
	       (*argument == '-' &&
		(is_one || (length > 2 && length <= 4 && strchr("ce", argument[length - 1]) &&
			    strspn(argument + 1, flags) == length - 1)));
}

/*
 * Options that have a value, by which the title of a process is made (export/output/args.c). All
 * compilers and run-time systems have them, so they say nothing of a user.
 */
static bool is_known_option(const char *argument)
{
	static const char *const known[] = {
		"-cp",		 "-classpath",	"--class-path",	 "--module-path",
		"--add-modules", "--add-opens", "--add-exports", "-jar",
		"--rcfile",	 "--init-file", "--require",	 "--crate-name",
		"-dumpdir",	 "-dumpbase",	"-dumpbase-ext", "-auxbase-strip",
		"-MF",		 "-MT",		"-MQ",		 "-MD",
		"-MMD",
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(argument, known[i]))
			return true;
	return false;
}

/* Returns what stands for an argument, which the caller frees. */
static char *replace_argument(AnonNames *names, const char *argument, bool is_program)
{
	/* An option is still one, and a login shell is called "-bash". */
	size_t dashes = is_program ? *argument == '-' : MIN(strspn(argument, "-"), 2U);
	_cleanup_free_ char *rest = NULL;

	if (is_path(argument))
		return anon_paths_replace(names, argument);
	if (!is_program && (is_short_option(argument) || is_known_option(argument)))
		return xstrdup(argument);
	rest = anon_names_part(names, argument + dashes, is_program ? ANON_FILE : ANON_ARGUMENT);
	return xasprintf("%.*s%s", (int)dashes, "--", rest);
}

void anon_texts_args(AnonNames *names, const char *args, size_t size, AnonText *text)
{
	for (size_t at = 0; at < size;) {
		size_t length = strnlen(args + at, size - at);
		_cleanup_free_ char *argument = xstrndup(args + at, length);
		_cleanup_free_ char *other = replace_argument(names, argument, at == 0);

		vec_append(text, other, strlen(other));
		at += length;
		if (at < size)
			*vec_push(text) = '\0';
		at++;
	}
}

/* Appends the next word of a command as a string, and returns what is behind it. */
static const char *parse_word(const char *command, AnonText *word)
{
	bool is_quoted = false;

	for (; *command && (is_quoted || *command != ' '); command++) {
		if (*command == '\'')
			is_quoted = !is_quoted;
		else if (*command == '\\' && !is_quoted && command[1])
			*vec_push(word) = *++command;
		else
			*vec_push(word) = *command;
	}
	*vec_push(word) = '\0';
	return command;
}

char *anon_texts_command(AnonNames *names, const char *command)
{
	AnonText text = {}, word = {};
	char *whole;

	for (const char *at = command; *at;) {
		_cleanup_free_ char *other = NULL, *quoted = NULL;

		word.count = 0;
		at = parse_word(at, &word);
		other = replace_argument(names, word.items, /* is_program= */ text.count == 0);
		quoted = shell_word(other);
		if (text.count > 0)
			*vec_push(&text) = ' ';
		vec_append(&text, quoted, strlen(quoted));
		at += *at == ' ';
	}
	whole = xstrndup(text.items ? text.items : "", text.count);
	vec_free(&text);
	vec_free(&word);
	return whole;
}

/* ---- names of functions -------------------------------------------------------------------- */

static bool is_word_letter(char letter)
{
	return isalnum((unsigned char)letter) || (letter && strchr("_.-~+", letter)) ||
	       (unsigned char)letter >= 0x80;
}

/* Returns how many bytes the line and column at the end of a place have: ":12:3". */
static size_t line_length(const char *place, size_t length)
{
	size_t end = length;

	for (int i = 0; i < 2; i++) {
		size_t at = end;

		while (at > 0 && isdigit((unsigned char)place[at - 1]))
			at--;
		if (at == end || at < 2 || place[at - 1] != ':')
			break;
		end = at - 1;
	}
	return length - end;
}

/* A place goes up to the bracket that closes around it, or to the end: paths may have spaces. */
static size_t place_length(const char *text)
{
	return strcspn(text, ")>\"'");
}

/*
 * Returns whether an absolute path begins at the text's character: "operator/" and the packages of
 * Go ("net/http.Get") and Java have a slash within a word.
 */
static bool begins_path(const char *text, const char *at)
{
	return *at == '/' && (at == text || !is_word_letter(at[-1])) && is_word_letter(at[1]);
}

/*
 * Compilers name functions without a name by their place: "(lambda at x.cc:3:1)".
 * has_line: a line stands before the next end of a place.
 */
static bool begins_place(const char *text, const char *at, bool has_line)
{
	static const char before[] = " at ";
	size_t length = strlen(before);

	return has_line && (size_t)(at - text) >= length && !strncmp(at - length, before, length);
}

/* Node.js calls functions "LazyCompile:~name app.js:12:3", and its own "node:internal/…". */
static bool begins_script(const char *text, const char *at)
{
	static const char *const suffixes[] = {".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".php"};
	static const char own[] = "node:";
	size_t length, name;

	/* Then each word of a long name is read once. */
	if ((at > text && at[-1] != ' ') || !strncmp(at, own, strlen(own)))
		return false;
	length = strcspn(at, " ()<>\"'");
	name = length - line_length(at, length);
	if (name == length)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (name > suffix && !strncmp(at + name - suffix, suffixes[i], suffix))
			return true;
	}
	return false;
}

static void append_place(AnonNames *names, const char *place, size_t length, AnonText *text)
{
	size_t line = line_length(place, length);
	_cleanup_free_ char *path = xstrndup(place, length - line);
	_cleanup_free_ char *other = anon_paths_replace(names, path);

	vec_append(text, other, strlen(other));
	vec_append(text, place + length - line, line);
}

/*
 * Returns where the place begins in a name that ends with one, or NULL: the script may be called
 * anything. V8's are "JS:*NAME PLACE:12:3"; a name may begin with "get ". LuaJIT's are
 * "TRACE_7::PLACE:12", CPython's "py::NAME:PLACE".
 */
static const char *find_place(const char *function)
{
	static const char *const begins[] = {
		"JS:", "Script:", "Eval:", "Function:", "LazyCompile:", "InterpretedFunction:"};
	static const char python[] = "py::", lua[] = "TRACE_", own[] = "node:";
	const char *place = NULL;

	if (!strncmp(function, python, strlen(python))) {
		place = strchr(function + strlen(python), ':');
		return place ? place + 1 : NULL;
	}
	if (line_length(function, strlen(function)) == 0)
		return NULL;
	if (!strncmp(function, lua, strlen(lua))) {
		place = function + strlen(lua);
		place += strspn(place, "0123456789");
		return strncmp(place, "::", 2) ? NULL : place + 2;
	}
	for (size_t i = 0; i < ARRAY_LEN(begins) && !place; i++)
		if (!strncmp(function, begins[i], strlen(begins[i])))
			place = function + strlen(begins[i]);
	if (!place)
		return NULL;
	place += strspn(place, "~^+*'");
	place += !strncmp(place, "get ", 4) || !strncmp(place, "set ", 4) ? 4 : 0;
	place = strchr(place, ' ');
	return place && strncmp(place + 1, own, strlen(own)) != 0 ? place + 1 : NULL;
}

/*
 * clang names the function that initializes a file's variables after the file; V8 names a regular
 * expression after its text. Returns what stands for the name, or NULL if it is another one.
 */
static char *replace_whole(AnonNames *names, const char *function)
{
	static const char *const files[] = {"_GLOBAL__sub_I_",
					    "_GLOBAL__sub_D_",
					    "_GLOBAL__I_",
					    "static initializers for ",
					    "global constructors keyed to ",
					    "global destructors keyed to "};
	static const char *const texts[] = {"RegExp:"};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		size_t length = strlen(files[i]);
		_cleanup_free_ char *name = NULL;

		/* The name of a symbol has no point. */
		if (strncmp(function, files[i], length) != 0 || !strchr(function + length, '.'))
			continue;
		name = anon_names_part(names, function + length, ANON_FILE);
		return xasprintf("%s%s", files[i], name);
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t length = strlen(texts[i]);
		_cleanup_free_ char *word = NULL;

		if (strncmp(function, texts[i], length) != 0)
			continue;
		word = anon_names_word(names, function + length, ANON_ARGUMENT);
		return xasprintf("%s%s", texts[i], word);
	}
	return NULL;
}

/* Returns how many bytes at the text are "file://", which is followed by a path. */
static size_t scheme_length(const char *text)
{
	static const char scheme[] = "file://";

	return strncmp(text, scheme, strlen(scheme)) ? 0 : strlen(scheme);
}

/* Appends a name with its paths and places replaced, in one pass. */
static void append_name(AnonNames *names, const char *function, AnonText *text)
{
	const char *end =
		function; /* of a place that begins here, and whether a line is before it */
	bool has_line = false;

	for (const char *at = function; *at;) {
		size_t scheme = scheme_length(at);

		if (at >= end) {
			end = at + place_length(at);
			has_line = line_length(at, end - at) > 0;
		}
		if (scheme || begins_path(function, at) || begins_place(function, at, has_line) ||
		    begins_script(function, at)) {
			size_t length = place_length(at + scheme);

			vec_append(text, at, scheme);
			append_place(names, at + scheme, length, text);
			at += scheme + length;
		} else {
			*vec_push(text) = *at++;
		}
	}
}

char *anon_texts_function(AnonNames *names, const char *function)
{
	AnonText text = {};
	char *whole = replace_whole(names, function);
	const char *place = whole ? NULL : find_place(function);

	if (whole)
		return whole;
	/* Most names have neither a slash nor a line. */
	if (!place && !strpbrk(function, "/:"))
		return xstrdup(function);
	if (place) {
		place += scheme_length(place);
		vec_append(&text, function, place - function);
		append_place(names, place, strlen(place), &text);
	} else {
		append_name(names, function, &text);
	}
	whole = xstrndup(text.items ? text.items : "", text.count);
	vec_free(&text);
	return whole;
}

/* ---- names of functions of scripts --------------------------------------------------------- */

#define WORD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/*
 * Appends what stands for the user or host that the word is. Returns whether it is one. While names
 * are learned it is none: a function does not say what a name is of.
 */
static bool append_person(AnonNames *names, const char *text, size_t length, AnonText *to)
{
	_cleanup_free_ char *word = xstrndup(text, length), *other = NULL;

	if (names->is_learning || !anon_names_is_person(names, word))
		return false;
	other = anon_names_part(names, word, ANON_FOLDER);
	vec_append(to, other, strlen(other));
	return true;
}

/* Appends what is between other characters: one name ("jane.doe"), or words ("sync_alice"). */
static void append_words(AnonNames *names, const char *text, size_t length, AnonText *to)
{
	if (append_person(names, text, length, to))
		return;
	for (size_t at = 0; at < length;) {
		size_t word = MIN(strspn(text + at, WORD_LETTERS), length - at);

		if (word == 0)
			*vec_push(to) = text[at++];
		else if (!append_person(names, text + at, word, to))
			vec_append(to, text + at, word);
		at += word;
	}
}

char *anon_texts_script_function(AnonNames *names, const char *function)
{
	_cleanup_free_ char *name = anon_texts_function(names, function);
	AnonText text = {};
	char *whole;

	for (const char *at = name; *at;) {
		size_t length = strspn(at, WORD_LETTERS "_.-");

		if (length == 0)
			*vec_push(&text) = *at++;
		else
			append_words(names, at, length, &text);
		at += length;
	}
	whole = xstrndup(text.items ? text.items : "", text.count);
	vec_free(&text);
	return whole;
}
