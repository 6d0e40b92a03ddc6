/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle_d.h - readable forms of D's names, in bounded time and memory. */
#ifndef WALLPROF_DEMANGLE_D_H
#define WALLPROF_DEMANGLE_D_H

/*
 * "_D1w3midFiZv" is "w.mid(int)", as c++filt writes it. Returns the readable form, allocated, or
 * NULL if the name is none of D's, or if it would take too long or too much room.
 */
char *demangle_d(const char *name);

#endif
