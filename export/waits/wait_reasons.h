/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_reasons.h - what waits were for, by the functions of the kernel that their threads slept in.
 */
#ifndef WALLPROF_WAIT_REASONS_H
#define WALLPROF_WAIT_REASONS_H

#include "frames.h"
#include "timeline.h"

/*
 * Gives waits the reason that their kernel stacks tell, and keeps what it rests on
 * (Timeline::evidence). Once, when all names are known; waits without a kernel stack, or whose
 * functions no rule knows, keep what they had.
 */
void wait_reasons_by_stack(Timeline *timeline, Frames *frames);

#endif
