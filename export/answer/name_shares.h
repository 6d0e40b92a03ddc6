/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_shares.h - time by name, as a short list: "clang 41 %, cc1 20 %, gzip 8 %". */
#ifndef WALLPROF_NAME_SHARES_H
#define WALLPROF_NAME_SHARES_H

#include "util.h"

typedef struct NameShares {
	Strings names;
	VEC(uint64_t) ns; /* by name */
	uint64_t all_ns;
} NameShares;

void name_shares_add(NameShares *shares, const char *name, uint64_t ns);

/*
 * Returns the names with the largest shares of all time, fit for a terminal: at most three, each
 * with at least a twentieth. NULL: no name has so much. The caller frees it. *ret_others is how
 * many names are not listed.
 */
char *name_shares_text(const NameShares *shares, size_t *ret_others);
void name_shares_free(NameShares *shares);

#endif
