/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_text.h - text of interpreters (REC_SCRIPT_CODE) as UTF-8. */
#ifndef WALLPROF_SCRIPT_TEXT_H
#define WALLPROF_SCRIPT_TEXT_H

#include "records.h"
#include "util.h"

/*
 * Returns the text, which the caller frees; NULL: kind is not 1, 2 or 4, or there is none. Text of
 * `room` bytes is cut, and ends in an ellipsis. In names of files a byte that is no UTF-8 is a code
 * point from U+DC80 on (PEP 383), and becomes that byte again.
 */
char *script_text(const uint8_t *bytes, size_t size, size_t room, uint8_t kind);

#endif
