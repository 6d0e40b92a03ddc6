/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime_functions.h - which functions are a language's run-time system, not the program.
 *
 * A system call is made below wrappers that differ by C library, version and language: glibc 2.41
 * has three functions for each read(), stdio six, Go five. They say nothing about the program, and
 * a chain of a few functions that consists of them alone is the same for every caller.
 */
#ifndef WALLPROF_RUNTIME_FUNCTIONS_H
#define WALLPROF_RUNTIME_FUNCTIONS_H

#include "frames.h"

/* Recognizes glibc, musl, uClibc and Bionic by the base name of the file. */
bool runtime_is_c_library(const char *library);

/* Returns whether a frame is of the run-time system. */
bool runtime_is_frame(const Frames *frames, const Frame *frame);

/*
 * Returns how many frames a stack has from its root up to the function of the run-time system that
 * the program called; the frames above are not shown. indexes: frames_resolve()'s user part, root
 * first. It is count if the leaf is the program's own function, or if there is no function of the
 * program.
 */
size_t runtime_entry(const Frames *frames, const uint32_t *indexes, size_t count);

#endif
