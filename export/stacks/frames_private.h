/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frames_private.h - shared by the two parts of Frames.
 *
 * frames.c         symbols, libraries; from an address to the frames at it
 *    frames_stacks.c  from a stack to its places; how much of it is valid
 */
#ifndef WALLPROF_FRAMES_PRIVATE_H
#define WALLPROF_FRAMES_PRIVATE_H

#include "frames.h"
#include "script_code.h"

/* An address of a library and its frames, outermost first, in Frames::list. */
typedef struct Place {
	uint32_t lib;
	uint64_t address; /* as looked up: SVMA, or AVMA for the kernel and unknown memory */
	uint32_t first, count;
	uint32_t next; /* of the same hash, or MAP_NONE */
} Place;

enum chain_kind { CHAIN_USER, CHAIN_KERNEL, CHAIN_KERNEL_EXACT };

typedef struct Resolved {
	enum chain_kind kind;
	uint32_t stack;
	uint32_t ns_tgid, generation; /* 0 for kernel stacks, which do not depend on the process */
	size_t first, count;	      /* FramesPrivate::chains, root first */
	StackEnd end;		      /* of user stacks */
	uint32_t next;		      /* of the same hash, or MAP_NONE */
} Resolved;

struct FramesPrivate {
	VEC(struct rec_symbol *) symbols;
	Map symbol_index;	      /* hash of (file, address) -> symbols */
	Map planted;		      /* hash of (file, function) of SYMBOL_PLANTED -> 1 */
	VEC(uint32_t) file_libraries; /* by file id */
	Map module_libraries;	      /* Strings number -> library */
	VEC(Place) places;
	Map place_index;
	VEC(Resolved) resolved;
	Map resolved_index;
	VEC(uint32_t) chains;
	Map pseudo;	      /* Strings number -> frame */
	VEC(uint32_t) result; /* of frames_resolve */
	/* The return addresses of all user stacks that have a caller, ascending, once needed. */
	VEC(uint64_t) called;
	bool called_found;
	ScriptCodes scripts;
	Map script_lines;	  /* (scripts, line) -> Frames::list */
	Strings script_functions; /* what tells two functions apart */
};

/*
 * Returns the symbol of the file (0: the kernel) at an address in the form that is looked up, or
 * NULL.
 */
const struct rec_symbol *frames_symbol(const struct FramesPrivate *private, uint32_t file,
				       uint64_t address);

/* Returns the library of this name, which is in no file; it is added if it is new. */
uint32_t frames_library(Frames *frames, const char *name);

/* Returns the place of an address in the form that is looked up; valid until the next call. */
const Place *frames_user_place(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t avma);
const Place *frames_kernel_place(Frames *frames, uint64_t avma);

/* Appends the frames at a place to the stack that is being resolved. */
void frames_push_place(struct FramesPrivate *private, const Place *place);

#endif
