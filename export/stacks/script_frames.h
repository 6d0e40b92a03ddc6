/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script_frames.h - frames of programs that an interpreter runs, in their places among the frames
 * of C (docs/design/interpreters.md).
 */
#ifndef WALLPROF_SCRIPT_FRAMES_H
#define WALLPROF_SCRIPT_FRAMES_H

#include "frames_private.h"
#include "script_language.h"

/* Frames of script code that one frame of C runs, root first: [first, first + count). */
typedef struct ScriptRun {
	size_t first, count;
} ScriptRun;

/* The script frames of one stack. */
typedef struct ScriptMerge {
	VEC(uint32_t) list; /* Frames::list, root first */
	VEC(ScriptRun) runs;
	size_t root_runs, leaf_runs; /* so many are certain, counted from the root and the leaf */
	bool to_root;		     /* the script frames reach to the root */
	bool from_root;		     /* the frames of C reach to the root */
	size_t calls;		     /* frames of C that run script code */
	size_t outer;		     /* of them, those beyond where frames of C are left out */
	size_t inner;		     /* the innermost one, by its index in the walk */
	uint32_t lib;		     /* the interpreter's */
	const char *loader_name;     /* of its functions that load modules */
	/* While frames are pushed, the outermost first: */
	size_t call;  /* the next frame of C that runs script code */
	bool folded;  /* the last frame stands for functions of the interpreter */
	bool loading; /* or for those that load modules, and maybe for some of the interpreter */
} ScriptMerge;

/*
 * Resolves the script frames of a stack that has some. gap is the frame that stands for those that
 * are left out. The caller frees the result.
 */
void script_merge_begin(Frames *frames, const Timeline *timeline, const StackDef *stack,
			uint32_t gap, ScriptMerge *ret_merge);
void script_merge_free(ScriptMerge *merge);

/*
 * Appends frames to the stack that is being resolved: those at the i'th place of the walk, as they
 * are shown in such a stack. The caller has set from_root to lib when it knew the frames of C.
 */
void script_merge_push(Frames *frames, ScriptMerge *merge, size_t i, const Place *place);
/* The same for all script frames, if no frame of C runs them. */
void script_merge_push_all(Frames *frames, ScriptMerge *merge);

/* Returns the language of which a function of C runs code; NULL: it does not. */
const ScriptLanguage *script_evaluated(const char *function);

#endif
