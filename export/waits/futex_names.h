/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex_names.h - what the words are called that threads wait for: by the variable that they lie
 * in, or by the memory.
 */
#ifndef WALLPROF_FUTEX_NAMES_H
#define WALLPROF_FUTEX_NAMES_H

#include "frames.h"
#include "timeline.h"

/*
 * Gives each futex of the timeline's objects its name: "0x404060 (app: cache_lock)",
 * "0x5581c0de (heap)". Frames must know all names of the capture.
 */
void futex_names_find(Timeline *timeline, Frames *frames);

#endif
