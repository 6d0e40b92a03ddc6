/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex_names.h - the names of the words that threads wait for: the variable at the word, or the
 * memory that it is in.
 */
#ifndef WALLPROF_FUTEX_NAMES_H
#define WALLPROF_FUTEX_NAMES_H

#include "frames.h"
#include "timeline.h"

/*
 * Names each futex of the timeline's objects: "0x404060 (app: cache_lock)", "0x5581c0de (heap)". To
 * be called when frames has all names of the capture.
 */
void futex_names_find(Timeline *timeline, Frames *frames);

#endif
