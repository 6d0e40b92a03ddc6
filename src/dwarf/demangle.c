/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "demangle.h"
#include "demangle_d.h"
#include "demangle_plain.h"
#include "symbol_record.h"
#include "util.h"
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>
#include <sys/resource.h>

/*
 * A short mangled name can stand for one of gigabytes. libiberty limits its recursion, not its
 * output. So the readable form ends a character behind what a record takes, which is where
 * symbol_record_add() cuts and marks it.
 */
#define MANGLED_MAX   4096
#define DEMANGLED_MAX (SYMBOL_TEXT_MAX + 4)

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
	size_t fits = MIN(length, DEMANGLED_MAX - text->length);

	memcpy(text->p + text->length, piece, fits);
	text->length += fits;
	if (fits < length)
		longjmp(text->too_long, 1);
}

/*
 * By default libiberty refuses C++ names of more than 1,024 characters, because it would need more
 * stack for them than a program has. The sandbox has more: 4,096 characters take some 10 MB.
 */
#define DEEP_STACK (64ULL << 20)

static int cpp_options(void)
{
	struct rlimit stack;

	return DMGL_PARAMS | DMGL_ANSI |
	       (!getrlimit(RLIMIT_STACK, &stack) && stack.rlim_cur >= DEEP_STACK &&
				stack.rlim_cur != RLIM_INFINITY
			? DMGL_NO_RECURSE_LIMIT
			: 0);
}

static bool print(const char *name, Text *text)
{
	static const int options = DMGL_PARAMS | DMGL_ANSI;

	/* What is longer is cut where it was left. */
	if (setjmp(text->too_long))
		return true;
	/* Rust's legacy names are also valid C++ names, so its own demangler comes first. */
	if (rust_demangle_callback(name, options, add_text, text))
		return text->length > 0;
	text->length = 0;
	return cplus_demangle_v3_callback(name, cpp_options(), add_text, text) && text->length > 0;
}

static char *demangle_cpp(const char *name)
{
	Text text = {};

	text.p = xmalloc(DEMANGLED_MAX + 1);
	if (!print(name, &text)) {
		free(text.p);
		return NULL;
	}
	text.p[text.length] = '\0';
	return xrealloc(text.p, strlen(text.p) + 1);
}

/*
 * Units that all Ada compilers bring, so that their names are Ada's in any file. Another language
 * may have a system__init as well, but hardly a system__tasking__stages.
 */
static bool is_ada_library(const char *name)
{
	static const char *const units[] = {"ada__", "system__", "interfaces__", "gnat__", "_ada_"};

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strncmp(name, units[i], strlen(units[i])))
			return *name == '_' || strstr(name + strlen(units[i]), "__");
	return false;
}

char *demangle_ada(const char *name)
{
	char *readable;

	if (strlen(name) > MANGLED_MAX)
		return NULL;
	readable = ada_demangle(name, 0);
	if (readable && *readable != '<')
		return readable;
	free(readable); /* "<name>": it is none of Ada's */
	return NULL;
}

char *demangle(const char *name)
{
	if (strlen(name) > MANGLED_MAX)
		return NULL;
	if (is_mangled(name))
		return demangle_cpp(name);
	if (!strncmp(name, "_D", 2))
		return demangle_d(name);
	if (is_ada_library(name))
		return demangle_ada(name);
	return !strncmp(name, "__", 2) ? demangle_fortran(name) : demangle_haskell(name);
}
