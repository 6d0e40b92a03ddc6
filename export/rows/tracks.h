/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracks.h - which tracks the profile has ("threads" in the format), in which order, and which of
 * them are visible at first.
 */
#ifndef WALLPROF_TRACKS_H
#define WALLPROF_TRACKS_H

#include "track.h"

void tracks_init(Tracks *tracks, const Timeline *timeline);
void tracks_free(Tracks *tracks);

#endif
