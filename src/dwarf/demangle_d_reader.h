/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle_d_reader.h - what demangle_d.c and demangle_d_values.c share. */
#ifndef WALLPROF_DEMANGLE_D_READER_H
#define WALLPROF_DEMANGLE_D_READER_H

#include "util.h"
#include <ctype.h>
#include <string.h>

#define D_TEXT_MAX  16384
#define D_STEPS_MAX 100000
#define D_DEPTH_MAX 256

typedef struct DReader {
	const char *name; /* all of it */
	const char *p;	  /* what is left */
	size_t reference; /* references to types must come from before this place */
	unsigned steps, depth;
	VEC(char) text;
} DReader;

/* All return false if the name is not D's, or if a bound is reached. */

/* Reads "_D", a name and its type. */
bool demangle_d_mangled(DReader *reader);
/*
 * Reads a value of a template. The text from type_name to type_end is that of its type, and `type`
 * the first letter of that.
 */
bool demangle_d_value(DReader *reader, size_t type_name, size_t type_end, char type);

static inline bool d_add_bytes(DReader *reader, const char *bytes, size_t length)
{
	if (length > D_TEXT_MAX - reader->text.count)
		return false;
	vec_append(&reader->text, bytes, length);
	return true;
}

static inline bool d_add(DReader *reader, const char *text)
{
	return d_add_bytes(reader, text, strlen(text));
}

static inline bool d_enter(DReader *reader)
{
	return ++reader->depth < D_DEPTH_MAX && ++reader->steps < D_STEPS_MAX;
}

static inline bool d_consume(DReader *reader, const char *text)
{
	size_t length = strlen(text);

	if (strncmp(reader->p, text, length))
		return false;
	reader->p += length;
	return true;
}

static inline bool d_number(DReader *reader, size_t *ret_number)
{
	*ret_number = 0;
	if (!isdigit((unsigned char)*reader->p))
		return false;
	while (isdigit((unsigned char)*reader->p)) {
		if (*ret_number > D_TEXT_MAX)
			return false;
		*ret_number = 10 * *ret_number + (*reader->p++ - '0');
	}
	return true;
}

#endif
