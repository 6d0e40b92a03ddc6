/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * functions.h - which frames belong to one function, and its name for the user.
 *
 * A function is a name in a library: two programs have a main each. A function without a symbol is
 * named by its address (Frame::nameless), which means nothing without its file. Files of one path
 * and build ID are one library here.
 */
#ifndef WALLPROF_FUNCTIONS_H
#define WALLPROF_FUNCTIONS_H

#include "frames.h"

typedef struct Function {
	uint32_t name; /* Frames::strings */
	uint32_t lib;  /* Frames::libraries: the first of equal ones; or LIBRARY_NONE */
	bool nameless; /* Frame::nameless */
	bool library;  /* Frame::library, or it is of a file that comes with the language */
} Function;

typedef struct Functions {
	const Frames *frames;
	VEC(Function) list;
	Map index;	       /* (name, lib) -> list */
	VEC(uint32_t) alike;   /* Frames::libraries -> the first one equal to it, or LIBRARY_NONE */
	Strings library_keys;  /* path and build id */
	VEC(uint32_t) key_lib; /* by index of library_keys: the first library that has it */
} Functions;

/* Returns the index in list of a frame's function. */
uint32_t functions_number(Functions *functions, const Frame *frame);
void functions_free(Functions *functions);

const char *functions_name(const Functions *functions, uint32_t number);
/* Returns NULL for no library, or unknown memory. */
const char *functions_library(const Functions *functions, uint32_t number);

/* Returns "read (libc.so.6)", as it was recorded; library may be NULL. The caller frees it. */
char *function_text(const char *function, const char *library);

/*
 * Returns whether the name matches a function: "add" matches also "add(int)", and the result of
 * function_text(), "add (libsum.so)".
 */
bool functions_called(const Functions *functions, uint32_t number, const char *name);

#endif
