/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame.h - functions that keep a frame of their own under their own name, whatever the compiler
 * knows of them. Sibling calls are turned off by an option (-fno-optimize-sibling-calls).
 */
#ifndef FRAME_H
#define FRAME_H

/* clang has no noipa; its noinline functions are neither cloned nor renamed. */
#ifdef __clang__
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noipa))
#endif

#endif
