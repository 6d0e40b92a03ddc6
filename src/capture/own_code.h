/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * own_code.h - where the code of wallprof's BPF programs was in the kernel's memory: the value of
 * REC_META "own-code".
 */
#ifndef WALLPROF_OWN_CODE_H
#define WALLPROF_OWN_CODE_H

#include "util.h"

/* Addresses from start (included) to end (not included). */
typedef struct AddressRange {
	uint64_t start, end;
} AddressRange;

typedef VEC(AddressRange) OwnCode; /* in order of address; freed by vec_free() */

/*
 * Replaces the ranges by those of the text, "ffffffffc0123000+1a4 …". Text of another form is not a
 * range. `length` is in bytes; the text need not end with NUL.
 */
void own_code_parse(OwnCode *code, const char *text, size_t length);

/* Returns whether the address is in one of the ranges. */
bool own_code_contains(const OwnCode *code, uint64_t address);

#endif
