/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle_plain.h - readable forms of Fortran's and Haskell's names. */
#ifndef WALLPROF_DEMANGLE_PLAIN_H
#define WALLPROF_DEMANGLE_PLAIN_H

#include "util.h"

/* Both return the readable form, allocated, or NULL if the name is none of that language. */

/* "__mod_MOD_name" is "mod::name", as in GDB. */
char *demangle_fortran(const char *name);
/* "base_GHCziBase_zpzp_info" is "base:GHC.Base.++". */
char *demangle_haskell(const char *name);

#endif
