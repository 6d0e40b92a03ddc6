/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_deep.bpf.h - how the walk of a deep user stack goes on: to its end, or from a frame that
 * an earlier walk of the thread went through.
 */
#ifndef WALLPROF_UNWIND_DEEP_BPF_H
#define WALLPROF_UNWIND_DEEP_BPF_H

#include "wallprof.bpf.h"

/* The walk is made in parts of so many frames: the verifier follows each turn of a loop. */
#define WALK_PART  16
#define WALK_PARTS (WALK_FRAMES_MAX / WALK_PART)

/* So many parts of a walk are always made. */
#define SURE_PARTS 24

/* Whether the walk has got farther on its stack in the last part: a hostile one can go in circles.
 */
static __always_inline bool unwind_advances(const struct stack_slot *slot, u32 part)
{
	const struct stack_anchor *mark = &slot->marks[(part - 1) & (WALK_MARKS - 1)];

	return slot->walk.sp > ((const struct walk *)mark->frame)->sp;
}

/* Notes where a part of the walk begins. */
static __always_inline void unwind_mark(struct stack_slot *slot, u32 part)
{
	struct stack_anchor *mark = &slot->marks[part & (WALK_MARKS - 1)];

	__builtin_memcpy(mark->frame, &slot->walk, sizeof(mark->frame));
}

/*
 * Decides how the walk goes on before slot->last_part, and sets the next such part. Returns 1 if it
 * ends there; then the rest of the stack is lost.
 */
extern int unwind_deepen(struct stack_slot *slot);

/* Ends a walk that has more than MAX_FRAMES frames: what is left out, and what it has taken. */
extern int unwind_deep_end(struct stack_slot *slot);

#endif
