/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demangle_plain.c - names that are only encoded, not mangled: only tuples, which are encoded as
 * the number of their commas, get longer when they are readable. Follows GHC's "Z-encoding"
 * (compiler/GHC/Utils/Encoding.hs documents it), and the names of procedures in modules of gfortran
 * (its manual, "Naming conventions").
 */
#include "demangle_plain.h"
#include <ctype.h>
#include <string.h>

/* ---- Fortran: __MODULE_MOD_PROCEDURE ----------------------------------- */

static bool is_fortran_name(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
		    text[i] != '_')
			return false;
	return length > 0;
}

char *demangle_fortran(const char *name)
{
	static const char middle[] = "_MOD_";
	const char *module = name + 2, *procedure, *clone;
	const char *end = strncmp(name, "__", 2) ? NULL : strstr(module, middle);
	int length;

	if (!end)
		return NULL;
	procedure = end + sizeof(middle) - 1;
	length = strcspn(procedure, ".");
	clone = procedure + length; /* ".constprop.0" and the like, by the optimizer */
	if (!is_fortran_name(module, end - module) || !is_fortran_name(procedure, length))
		return NULL;
	return *clone ? xasprintf("%.*s::%.*s [clone %s]", (int)(end - module), module, length,
				  procedure, clone)
		      : xasprintf("%.*s::%s", (int)(end - module), module, procedure);
}

/* ---- Haskell: PACKAGE_MODULE_NAME_info --------------------------------- */

typedef VEC(char) Text;

static void add(Text *text, const char *piece)
{
	vec_append(text, piece, strlen(piece));
}

static const char *z_letter(char c)
{
	static const struct {
		char code;
		const char *text;
	} letters[] = {
		{'a', "&"}, {'b', "|"}, {'c', "^"}, {'d', "$"}, {'e', "="}, {'g', ">"}, {'h', "#"},
		{'i', "."}, {'l', "<"}, {'m', "-"}, {'n', "!"}, {'p', "+"}, {'q', "'"}, {'r', "\\"},
		{'s', "/"}, {'t', "*"}, {'u', "_"}, {'v', "%"}, {'z', "z"}, {'C', ":"}, {'L', "("},
		{'M', "["}, {'N', "]"}, {'R', ")"}, {'Z', "Z"},
	};

	for (size_t i = 0; i < ARRAY_LEN(letters); i++)
		if (letters[i].code == c)
			return letters[i].text;
	return NULL;
}

#define COMMAS_MAX 64

/* Reads "2T", the tuple (,), or "3H", the unboxed (#,,#). Returns what follows, or NULL. */
static const char *decode_tuple(const char *p, Text *text)
{
	unsigned parts = 0;

	while (isdigit((unsigned char)*p) && parts <= COMMAS_MAX)
		parts = 10 * parts + (*p++ - '0');
	if ((*p != 'T' && *p != 'H') || parts > COMMAS_MAX)
		return NULL;
	add(text, *p == 'T' ? "(" : "(#");
	for (unsigned i = 1; i < parts; i++)
		add(text, ",");
	add(text, *p == 'T' ? ")" : "#)");
	return p + 1;
}

/* Decodes one part of the name. Returns false if it is not encoded so. */
static bool decode_part(const char *p, const char *end, Text *text, unsigned *escapes)
{
	while (p < end) {
		char kind = *p;
		const char *letter;

		if (kind != 'z' && kind != 'Z') {
			*vec_push(text) = *p++;
			continue;
		}
		if (++p == end)
			return false;
		++*escapes;
		letter = z_letter(*p);
		/* Small letters follow z, and capitals and digits Z. */
		if (letter && (kind == 'Z') == !islower((unsigned char)*p)) {
			add(text, letter);
			p++;
			continue;
		}
		p = kind == 'Z' ? decode_tuple(p, text) : NULL;
		if (!p || p > end)
			return false;
	}
	return true;
}

#define PARTS_MAX 4

/* In the name of a module there is nothing to escape but dots, each before a capital, and "_" and
 * "'". */
static bool is_module(const char *p, const char *end)
{
	for (; p < end; p++) {
		if (*p != 'z')
			continue;
		if (++p == end || !strchr("iuq", *p) ||
		    (*p == 'i' && (p + 1 == end || !isupper((unsigned char)p[1]))))
			return false;
	}
	return true;
}

/*
 * The name of an operator has nothing but escapes. In others only "$", "'", "_" and "z" are
 * escaped, so that "resize" is none.
 */
static bool is_function(const char *p, const char *end)
{
	if (*p == 'z' || *p == 'Z')
		return true;
	for (; p < end; p++)
		if (*p == 'Z' || (*p == 'z' && (++p == end || !strchr("dquz", *p))))
			return false;
	return true;
}

char *demangle_haskell(const char *name)
{
	static const char suffix[] = "_info";
	const char *ends[PARTS_MAX], *starts[PARTS_MAX];
	size_t length = strlen(name), parts = 0;
	const char *stop = name + length - (sizeof(suffix) - 1), *p = name;
	unsigned escapes = 0;
	Text text = {};
	bool good;

	if (length <= sizeof(suffix) || strcmp(stop, suffix))
		return NULL;
	while (p < stop && parts < PARTS_MAX) {
		const char *end = memchr(p, '_', stop - p);

		starts[parts] = p;
		ends[parts] = end ? end : stop;
		p = ends[parts++] + 1;
	}
	/* The module begins with a capital; without an escape it may be any language's name. */
	if (p < stop || parts < 2 || parts > 3 || !isupper((unsigned char)*starts[parts - 2]))
		return NULL;
	good = is_module(starts[parts - 2], ends[parts - 2]) &&
	       is_function(starts[parts - 1], ends[parts - 1]);
	for (size_t i = 0; i < parts && good; i++) {
		good = ends[i] > starts[i] && decode_part(starts[i], ends[i], &text, &escapes);
		if (i + 1 < parts)
			*vec_push(&text) = i + 2 < parts ? ':' : '.';
	}
	*vec_push(&text) = '\0';
	if (good && escapes > 0)
		return text.items;
	vec_free(&text);
	return NULL;
}
