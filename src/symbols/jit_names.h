/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_names.h - names of addresses in code that was made at run time, from perf maps and
 * jitdumps, which are read in sandboxed children.
 */
#ifndef WALLPROF_JIT_NAMES_H
#define WALLPROF_JIT_NAMES_H

#include "jit_files.h"
#include "symbols.h"

/*
 * For each file that says something of one of the addresses (AVMA, where no file is mapped): emits
 * a REC_FILE, numbered from next_file on, and REC_CODE and REC_SYMBOL; REC_NOTE where reading went
 * wrong. Counts in summary. Returns 0 or emit's error.
 */
int jit_names_resolve(JitFiles *files, const uint64_t *addresses, size_t count, uint32_t next_file,
		      const SymbolsSink *sink, SymbolsSummary *summary);

#endif
