/* SPDX-License-Identifier: GPL-2.0-or-later */
/* anon_meta.h - settings and facts of a recording (REC_META) without names. */
#ifndef WALLPROF_ANON_META_H
#define WALLPROF_ANON_META_H

#include "anon_names.h"

/*
 * Returns what stands for "key=value", which the caller frees; NULL: it is dropped, because its
 * value identifies a machine or because the key is not known.
 */
char *anon_meta_replace(AnonNames *names, const char *text);

#endif
