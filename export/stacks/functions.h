/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * functions.h - which frames are of one function, and what people call it.
 *
 * A function is a name in a library: two programs have a main each, and what has no name is called
 * by its address (Frame::nameless), which says nothing without the file that it is in. Files of one
 * path and build id are one library here.
 */
#ifndef WALLPROF_FUNCTIONS_H
#define WALLPROF_FUNCTIONS_H

#include "frames.h"

typedef struct Function {
	uint32_t name; /* Frames::strings */
	uint32_t lib;  /* Frames::libraries: the first of those alike; or LIBRARY_NONE */
} Function;

typedef struct Functions {
	const Frames *frames;
	VEC(Function) list;
	Map index;	       /* (name, lib) -> list */
	VEC(uint32_t) alike;   /* Frames::libraries -> the first one like it, or LIBRARY_NONE */
	Strings library_keys;  /* path and build id */
	VEC(uint32_t) key_lib; /* by number of library_keys: the first library that has it */
} Functions;

/* Number of a frame's function in list. */
uint32_t functions_number(Functions *functions, const Frame *frame);
void functions_free(Functions *functions);

const char *functions_name(const Functions *functions, uint32_t number);
/* NULL: none, or unknown memory. */
const char *functions_library(const Functions *functions, uint32_t number);

/* "read (libc.so.6)"; library may be NULL. As it was recorded, and to be freed. */
char *function_text(const char *function, const char *library);

/*
 * Whether a function is meant by that name: "add" is also "add(int)", and what function_text()
 * makes of it, "add (libsum.so)".
 */
bool functions_called(const Functions *functions, uint32_t number, const char *name);

#endif
