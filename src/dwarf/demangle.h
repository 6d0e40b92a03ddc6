/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle.h - C++ and Rust names (legacy and v0) as people write them, by libiberty. */
#ifndef WALLPROF_DEMANGLE_H
#define WALLPROF_DEMANGLE_H

/* The readable form, allocated, or NULL if it is not a mangled name (or one out of all bounds). */
char *demangle(const char *name);

#endif
