/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frames.h - from stack definitions to named frames, as the writers need them.
 *
 * It holds the capture's symbols and address spaces and interns what they yield: frames, and the
 * libraries they lie in. It is a pure function of the records, like the timeline.
 */
#ifndef WALLPROF_FRAMES_H
#define WALLPROF_FRAMES_H

#include "address_space.h"
#include "labels.h"
#include "timeline.h"

#define LIBRARY_NONE UINT32_MAX

/*
 * Where the kernel's text and modules begin on x86-64. Kernel addresses are written relative to it,
 * because absolute ones do not fit into the doubles of JSON readers.
 */
#define FRAMES_KERNEL_BASE 0xffffffff80000000ULL

typedef struct Library {
	const char *name; /* base name; "[kernel.kallsyms]", "[vdso]", a module's "[ext4]" */
	const char *path;
	const uint8_t *build_id;
	uint32_t file; /* address_spaces_file(); 0: it is none */
	uint8_t build_id_len;
	uint8_t flags; /* enum file_flags, if it is a file's or memory */
	bool kernel;
	bool interpreter; /* it runs programs in another language: set once that is seen */
} Library;

/* One frame of a resolved stack; inlined calls have frames of their own. */
typedef struct Frame {
	uint32_t function; /* Strings: name, or "0x1234 (libfoo.so)" when unknown */
	uint32_t lib;	   /* Frames::libraries, or LIBRARY_NONE */
	/*
	 * Relative to the library; return addresses are already decremented by 1. A kernel address
	 * is relative to the start of its text region; without a library it is the AVMA.
	 */
	uint64_t address;
	uint64_t function_start; /* relative; equal to address if unknown */
	uint32_t function_size;	 /* 0 unknown */
	uint32_t source;	 /* Strings, or UINT32_MAX */
	uint32_t line;		 /* 0 unknown */
	uint8_t inline_depth;	 /* 0 = the outermost, the real function */
	bool kernel;
	bool named; /* false: the name is an address */
	/* It is named only by the address where the unwind table has it begin. */
	bool nameless;
	bool script;  /* of a program that an interpreter runs; address is only a number */
	bool loader;  /* a script's that belongs to the interpreter, and loads modules */
	bool library; /* a script's that belongs to the language's own library */
	bool planted; /* a return address that no call has pushed (SYMBOL_PLANTED) */
	/* Another stack of the recording has such a return address to this function. */
	bool begins_fiber;
} Frame;

/* A source file that the capture contains. */
typedef struct SourceText {
	/* Any bytes, and a NUL that is not counted. */
	char *text;
	size_t size;
} SourceText;

typedef struct Frames {
	AddressSpaces *spaces;
	Strings strings;
	VEC(Library) libraries;
	VEC(Frame) list; /* interned */
	bool unfolded;	 /* recursion is not folded (recursion.h); set before the first stack */
	/* The interpreter's own frames are shown, too (script_frames.h); set likewise. */
	bool native_frames;
	Strings text_paths;
	VEC(SourceText) texts; /* index = number of the path */
	struct FramesPrivate *private;
} Frames;

Frames *frames_new(void);
/* Adds FILE, MAPPING, SPACE, SYMBOL, SOURCE, SCRIPT_CODE records (capture_read_sorted); ignores
 * others. */
void frames_add(Frames *frames, const struct record *record);
void frames_free(Frames *frames);

/*
 * Returns the frames (indexes in frames->list) of a stack as it was in ns_tgid at ns, when it was
 * taken: root first, user part then kernel part; either may be STACK_NONE. A stack that does not
 * reach to where its thread begins has a pseudo frame "[truncated: …]" at its root; one whose
 * definition was lost is the pseudo frame "[stack lost]". Where a user stack continues by frame
 * pointers or by an uncertain rule, in code without an unwind table, the pseudo frame "[guessed]"
 * precedes the outermost of these frames, so that calls from the same code share it at any depth.
 * Recursion is folded, and the pseudo frame of recursion_gap() stands for frames that were left
 * out. Functions of a program that an interpreter runs replace the function of C that runs them;
 * the interpreter's frames below them are one pseudo frame, "[python3.11]". The array is valid
 * until the next call; the return value is its length.
 *
 * exact_kernel_leaf: the innermost kernel frame is an interrupted pc (a tick), not a return
 * address.
 */
size_t frames_resolve(Frames *frames, const Timeline *timeline, uint32_t ns_tgid, uint64_t ns,
		      uint32_t user_stack, uint32_t kernel_stack, bool exact_kernel_leaf,
		      const uint32_t **ret_frames);

/* The properties of a user stack as frames_resolve() returns it. */
typedef struct StackEnd {
	uint8_t reason; /* enum stack_end */
	bool guessed;	/* some of its frames were found by frame pointers or an uncertain rule */
	bool from_copy; /* walked by the recorder */
	bool joined;	/* STACK_JOINED */
	uint32_t depth; /* frames, with those that were left out */
	uint32_t lib;	/* of the outermost frame, or LIBRARY_NONE */
	uint8_t code;	/* enum code_kind of the outermost frame */
	uint8_t guess;	/* the same of the innermost frame whose caller is guessed, if one is */
} StackEnd;

/* user_stack is one of timeline->stacks. */
StackEnd frames_stack_end(Frames *frames, const Timeline *timeline, uint32_t ns_tgid, uint64_t ns,
			  uint32_t user_stack);

/* A variable of a program or library, and how far into it an address lies. */
typedef struct Variable {
	const char *name, *library; /* the frames' */
	uint64_t offset;	    /* bytes */
} Variable;

/* Finds what lies at avma in ns_tgid at ns; false: nothing that has a name. */
bool frames_variable(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t avma,
		     Variable *ret_variable);

/* Returns the text of the source file with this path, byte for byte, or NULL. */
const SourceText *frames_source_text(const Frames *frames, const char *path);

/* Returns a pseudo frame, which has no library and no address (list[i].address == UINT64_MAX). */
uint32_t frames_pseudo(Frames *frames, const char *name);

#endif
