/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof.h - a timeline as pprof's profile.proto, which go tool pprof, Pyroscope and Parca read.
 *
 * A sample is the time that one thread spent with one stack, in one state and for one object. Its
 * values are nanoseconds of wall-clock time, of running, and of being blocked or runnable; time in
 * an unknown state counts as wall-clock time alone. Its labels are process and thread, by name and
 * by number, state, reason and object.
 *
 * Addresses are those of the file (SVMA), as if each file were mapped where its linker put it, so
 * that processes share mappings. The lines of inlined functions are in the location of their
 * caller.
 */
#ifndef WALLPROF_PPROF_H
#define WALLPROF_PPROF_H

#include "frames.h"
#include "output.h"
#include "timeline.h"

typedef struct PprofOptions {
	uint32_t hidden; /* states (1 << enum thread_state) that are left out */
} PprofOptions;

/*
 * Writes the message without compression: the output compresses by its name. options may be NULL.
 * Returns 0 or the output's error.
 */
int pprof_write(Output *out, const Timeline *timeline, Frames *frames, const PprofOptions *options);

#endif
