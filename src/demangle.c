/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "demangle.h"
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

/*
 * A short mangled name can stand for one of gigabytes. libiberty bounds its recursion, not
 * its output; what is longer than a person reads is kept mangled.
 */
#define MANGLED_MAX   4096
#define DEMANGLED_MAX 16384

static int is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || !strncmp(name, "__Z", 3) ||
	       !strncmp(name, "_GLOBAL_", 8);
}

typedef struct Text {
	char *p;
	size_t length;
	int too_long;
} Text;

static void add_text(const char *piece, size_t length, void *user)
{
	Text *text = user;

	if (text->too_long || length > DEMANGLED_MAX - text->length) {
		text->too_long = 1;
		return;
	}
	memcpy(text->p + text->length, piece, length);
	text->length += length;
}

char *demangle(const char *name)
{
	static const int options = DMGL_PARAMS | DMGL_ANSI;
	Text text = {};

	if (!is_mangled(name) || strlen(name) > MANGLED_MAX)
		return NULL;
	text.p = malloc(DEMANGLED_MAX + 1);
	if (!text.p)
		return NULL;
	/* Rust's legacy names are valid C++ ones: its own demangler must see them first. */
	if (!rust_demangle_callback(name, options, add_text, &text)) {
		text.length = 0;
		text.too_long = 0;
		if (!cplus_demangle_v3_callback(name, options, add_text, &text))
			text.length = 0;
	}
	if (text.length == 0 || text.too_long) {
		free(text.p);
		return NULL;
	}
	text.p[text.length] = '\0';
	return realloc(text.p, text.length + 1);
}
