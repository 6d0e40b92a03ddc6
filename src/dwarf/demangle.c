/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "demangle.h"
#include "util.h"
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/*
 * A short mangled name can stand for one of gigabytes. libiberty limits its recursion, not its
 * output. A name that would be longer than a person reads stays mangled.
 */
#define MANGLED_MAX   4096
#define DEMANGLED_MAX 16384

static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || !strncmp(name, "__Z", 3) ||
	       !strncmp(name, "_GLOBAL_", 8);
}

typedef struct Text {
	char *p;
	size_t length;
	jmp_buf too_long;
} Text;

/*
 * libiberty would continue to the end, so longjmp() leaves it when the name is too long. It keeps
 * all that it needs on the stack; the one copy of a Unicode name that it may hold is leaked.
 */
static void add_text(const char *piece, size_t length, void *user)
{
	Text *text = user;

	if (length > DEMANGLED_MAX - text->length)
		longjmp(text->too_long, 1);
	memcpy(text->p + text->length, piece, length);
	text->length += length;
}

static bool print(const char *name, Text *text)
{
	static const int options = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(text->too_long))
		return false;
	/* Rust's legacy names are also valid C++ names, so its own demangler comes first. */
	if (rust_demangle_callback(name, options, add_text, text))
		return text->length > 0;
	text->length = 0;
	return cplus_demangle_v3_callback(name, options, add_text, text) && text->length > 0;
}

char *demangle(const char *name)
{
	Text text = {};

	if (!is_mangled(name) || strlen(name) > MANGLED_MAX)
		return NULL;
	text.p = xmalloc(DEMANGLED_MAX + 1);
	if (!print(name, &text)) {
		free(text.p);
		return NULL;
	}
	text.p[text.length] = '\0';
	return xrealloc(text.p, text.length + 1);
}
