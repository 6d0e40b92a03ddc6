/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_files.h - names addresses in mapped files: from the cache, and otherwise from the files
 * and their debug files, several at a time.
 */
#ifndef WALLPROF_SYMBOL_FILES_H
#define WALLPROF_SYMBOL_FILES_H

#include "symbols.h"

/* An address in a file that needs a name. */
typedef struct SymbolTarget {
	uint32_t file;
	uint64_t svma;
	uint64_t weight; /* samples and switches whose stacks contain it */
} SymbolTarget;

/*
 * targets are sorted by file and address, each once. Emits REC_SYMBOL and REC_NOTE, counts in
 * summary. Returns 0 or emit's error.
 */
int symbol_files_resolve(const AddressSpaces *spaces, const SymbolTarget *targets, size_t count,
			 const SymbolsSink *sink, SymbolsSummary *summary);

/*
 * Reports that names of `path` are missing, and why: a warning and a REC_NOTE. Returns emit's
 * error.
 */
int symbol_files_emit_note(const SymbolsSink *sink, uint32_t file, const char *path,
			   const char *problem);

#endif
