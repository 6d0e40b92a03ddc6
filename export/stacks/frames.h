/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frames.h - from stack definitions to named frames, as the writers need them.
 *
 * Holds the capture's symbols and address spaces and interns what they yield:
 * frames, and the libraries they lie in. Pure like the timeline.
 */
#ifndef WALLPROF_FRAMES_H
#define WALLPROF_FRAMES_H

#include "address_space.h"
#include "labels.h"
#include "source_texts.h"
#include "timeline.h"

#define LIBRARY_NONE UINT32_MAX

typedef struct Library {
	const char *name; /* base name; "[kernel.kallsyms]", "[vdso]", a module's "[ext4]" */
	const char *path;
	const uint8_t *build_id;
	uint8_t build_id_len;
	bool kernel;
} Library;

/* One frame of a resolved stack; inlined calls have frames of their own. */
typedef struct Frame {
	uint32_t function; /* Strings: name, or "0x1234 (libfoo.so)" when unknown */
	uint32_t lib;	   /* Frames::libraries, or LIBRARY_NONE */
	/*
	 * Relative to the library; return addresses already less 1. Of the kernel: to
	 * where its text region begins; without a library: AVMA.
	 */
	uint64_t address;
	uint64_t function_start; /* relative; equal to address if unknown */
	uint32_t function_size;	 /* 0 unknown */
	uint32_t source;	 /* Strings, or UINT32_MAX */
	uint32_t line;		 /* 0 unknown */
	uint8_t inline_depth;	 /* 0 = the outermost, the real function */
	bool kernel;
	bool named;    /* false: the name is an address */
	bool nameless; /* named, but only by the place where the unwind table has it begin */
} Frame;

typedef struct Frames {
	AddressSpaces *spaces;
	Strings strings;
	VEC(Library) libraries;
	VEC(Frame) list; /* interned */
	SourceTexts texts;
	struct FramesPrivate *private;
} Frames;

Frames *frames_new(void);
/* Takes FILE, MAPPING, SPACE, SYMBOL, SOURCE records (capture_read_sorted); ignores others. */
void frames_add(Frames *frames, const struct record *record);
void frames_free(Frames *frames);

/*
 * The frames (indexes in frames->list) of a stack as it was in ns_tgid at ns, when it was
 * taken, root first, user part then kernel part; either may be STACK_NONE. A stack that does
 * not reach to where its thread begins has a pseudo frame "[truncated: …]" at its
 * root, one whose definition was lost is the pseudo frame "[stack lost]". Where a user stack
 * continues by frame pointers or by an uncertain rule, in code without an unwind table, the pseudo
 * frame "[guessed]" precedes the outermost of these frames, so that calls from the same code share
 * it at any depth. The array is valid until the next call; returns how
 * many.
 *
 * exact_kernel_leaf: the innermost kernel frame is an interrupted pc (a tick), not a
 * return address.
 */
size_t frames_resolve(Frames *frames, const Timeline *timeline, uint32_t ns_tgid, uint64_t ns,
		      uint32_t user_stack, uint32_t kernel_stack, bool exact_kernel_leaf,
		      const uint32_t **ret_frames);

/* What is to be said about a user stack as frames_resolve() shows it. */
typedef struct StackEnd {
	uint8_t reason; /* enum stack_end */
	bool guessed;	/* some of its frames were found by frame pointers or an uncertain rule */
	bool from_copy; /* walked by the recorder */
	uint32_t lib;	/* of the outermost frame, or LIBRARY_NONE */
} StackEnd;

/* user_stack is one of timeline->stacks. */
StackEnd frames_stack_end(Frames *frames, const Timeline *timeline, uint32_t ns_tgid, uint64_t ns,
			  uint32_t user_stack);

/* A variable of a program or library, and how far into it an address lies. */
typedef struct Variable {
	const char *name, *library; /* the frames' */
	uint64_t offset;	    /* bytes */
} Variable;

/* What lies at avma in ns_tgid at ns; false: nothing that has a name. */
bool frames_variable(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t avma,
		     Variable *ret_variable);

/* A pseudo frame: no library, no address (list[i].address == UINT64_MAX). */
uint32_t frames_pseudo(Frames *frames, const char *name);

#endif
