/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_reasons.h - the reasons of waits, by the functions that their threads slept in, and the
 * names of the words that they waited for.
 */
#ifndef WALLPROF_WAIT_REASONS_H
#define WALLPROF_WAIT_REASONS_H

#include "frames.h"
#include "timeline.h"

/*
 * Gives waits the reason that their kernel stacks show, and stores what it rests on
 * (Timeline::basis). To be called once, when all names are known. Waits without a kernel stack, or
 * without a rule for any of its functions, keep their reason.
 */
void wait_reasons_by_stack(Timeline *timeline, Frames *frames);

/*
 * Names each futex of the timeline's objects by the variable at the word, or by the memory that it
 * is in: "0x404060 (app: cache_lock)", "0x5581c0de (heap)". To be called when frames has all names
 * of the capture.
 */
void wait_name_futexes(Timeline *timeline, Frames *frames);

#endif
