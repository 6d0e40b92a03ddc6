/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recursion.h - how profiles show deep stacks: repeated calls are folded, and frames that were not
 * recorded have a frame that says so.
 *
 * Stacks of one recursion mostly differ in its depth, so a call tree would have one branch for each
 * depth. The frames that stand for others therefore say only how many these are at least, as a
 * power of two. What is folded has its function above and below that frame, so all sums by function
 * stay the same.
 */
#ifndef WALLPROF_RECURSION_H
#define WALLPROF_RECURSION_H

#include "frames.h"

/* Fewer frames are not folded. */
#define RECURSION_LEAST 16
/* The largest number of frames in a cycle of functions that call each other. */
#define RECURSION_CYCLE 16

/*
 * Folds the runs of repeated functions, or cycles of functions, in a stack of `count` frames
 * (Frames::list), root first, in place. The first and the last cycle of a run remain, and between
 * them is a frame "[recursion: N or more frames]". Returns the number of frames that remain.
 */
size_t recursion_fold(Frames *frames, uint32_t *chain, size_t count);

/* Returns the frame for `left_out` frames (struct stack_gap). at_least: it may be more. */
uint32_t recursion_gap(Frames *frames, uint32_t left_out, bool at_least);

#endif
