/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_code.h - the pieces of code of programs that an interpreter runs, by their ids. */
#ifndef WALLPROF_SCRIPT_CODE_H
#define WALLPROF_SCRIPT_CODE_H

#include "records.h"
#include "util.h"

typedef struct ScriptCodes {
	VEC(struct rec_script_code *) list;
	Map index; /* rec_script_code::id -> list */
} ScriptCodes;

/* Copies a record that capture_check() has verified. Of several with one id the first counts. */
void script_code_add(ScriptCodes *codes, const struct rec_script_code *record);
/* Returns its number in the list, or MAP_NONE. */
uint32_t script_code_find(const ScriptCodes *codes, uint64_t id);
void script_code_free(ScriptCodes *codes);

#endif
