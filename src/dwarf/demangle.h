/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle.h - demangles C++ and Rust names (legacy and v0) with libiberty. */
#ifndef WALLPROF_DEMANGLE_H
#define WALLPROF_DEMANGLE_H

/*
 * Returns the readable form, allocated, or NULL if the name is not mangled (or exceeds the limits).
 */
char *demangle(const char *name);

#endif
