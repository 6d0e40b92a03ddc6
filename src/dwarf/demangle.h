/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demangle.h - readable forms of names: of C++ and Rust (legacy and v0) by libiberty, of D, of
 * Fortran's modules, of Haskell, and of Ada's library. Names may be hostile.
 */
#ifndef WALLPROF_DEMANGLE_H
#define WALLPROF_DEMANGLE_H

/*
 * Returns the readable form, allocated, or NULL if the name is not mangled, or is longer than 4,096
 * characters. A readable form that is longer than SYMBOL_TEXT_MAX (symbol_record.h) is cut behind
 * that.
 */
char *demangle(const char *name);

/*
 * The same for a name that is known to be Ada's: "pack__name" is "pack.name" then, but may be
 * anything in another language.
 */
char *demangle_ada(const char *name);

#endif
