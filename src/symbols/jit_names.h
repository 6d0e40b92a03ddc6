/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_names.h - names addresses in code that was made at run time, by perf maps and jitdumps, which
 * are read in sandboxed children.
 */
#ifndef WALLPROF_JIT_NAMES_H
#define WALLPROF_JIT_NAMES_H

#include "jit_files.h"
#include "symbols.h"

/*
 * For each file with one of the addresses (AVMA, where no file is mapped): emits a REC_FILE, with
 * ids from next_file on, and REC_CODE and REC_SYMBOL; REC_NOTE if reading failed. Counts in
 * summary. Returns 0 or emit's error.
 */
int jit_names_resolve(JitFiles *files, const uint64_t *addresses, size_t count, uint32_t next_file,
		      const SymbolsSink *sink, SymbolsSummary *summary);

#endif
