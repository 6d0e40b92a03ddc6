/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_record.h - makes a REC_SYMBOL (docs/reference/capture-format.md, 39).
 *
 *	SymbolRecord record = {};
 *	symbol_record_begin(&record, address);
 *	symbol_record_add(&record, "outer", "/src/a.c", 12);
 *	symbol_record_add(&record, "inlined", "/src/a.h", 3);
 *	emit(symbol_record_finish(&record, NULL));
 */
#ifndef WALLPROF_SYMBOL_RECORD_H
#define WALLPROF_SYMBOL_RECORD_H

#include "records.h"
#include "util.h"

/*
 * A NAMELESS name with this prefix is that of a piece of code, "[no symbols 0x1000-0x2000]", in
 * which neither symbols nor the unwind table have functions: `function` is its start.
 */
#define SYMBOL_GAP_PREFIX "[no symbols "

/* Bytes of a name or of the path of a source. What is longer is cut; no reader shows so much. */
#define SYMBOL_TEXT_MAX 4096

typedef struct SymbolRecord {
	VEC(uint8_t) bytes;
} SymbolRecord;

/* Discards what was in it. The caller sets file, function and flags in the result. */
void symbol_record_begin(SymbolRecord *record, uint64_t address);
/*
 * The outermost function comes first. line is 0 and source is "" if unknown. A text that is longer
 * than SYMBOL_TEXT_MAX is cut between two characters, and ends in an ellipsis.
 */
void symbol_record_add(SymbolRecord *record, const char *name, const char *source, uint32_t line);
/* module is that of a kernel function, or NULL. The result is valid until the next call. */
struct rec_symbol *symbol_record_finish(SymbolRecord *record, const char *module);
void symbol_record_free(SymbolRecord *record);

/* The record's field has 32 bits; 0 = unknown. */
static inline uint32_t symbol_record_size(uint64_t size)
{
	return size <= UINT32_MAX ? size : 0;
}

#endif
