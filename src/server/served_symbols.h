/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * served_symbols.h - names, lines and inlined calls of addresses in a file of this machine. They
 * are found as at the end of a recording, in the cache or by a sandboxed child.
 */
#ifndef WALLPROF_SERVED_SYMBOLS_H
#define WALLPROF_SERVED_SYMBOLS_H

#include "as_invoker.h"
#include "elf_identifier.h"
#include "profile_libs.h"
#include "records.h"

/* The time limit of one request, because the user waits for the answer. */
#define SERVED_SECONDS 20

typedef struct ServedSymbols {
	uint64_t base_svma;
	VEC(struct rec_symbol *) list; /* by ascending address */
} ServedSymbols;

/*
 * Resolves library-relative addresses, which are ascending and unique, until deadline_ns
 * (CLOCK_MONOTONIC). Returns 0 or a negative errno as served_symbols_open(). The caller frees
 * ret_symbols in any case.
 */
int served_symbols_resolve(ElfIdentifier *identifier, const ServedLib *lib,
			   const uint64_t *relative, size_t count, uint64_t deadline_ns,
			   ServedSymbols *ret_symbols);
void served_symbols_free(ServedSymbols *symbols);

/* Returns NULL if nothing is known about the address. */
const struct rec_symbol *served_symbols_find(const ServedSymbols *symbols, uint64_t relative);

/*
 * Opens the file for reading, or a copy of the vDSO, if it is the one that was recorded. Returns
 * the descriptor, -ESTALE if it is another file; -ENODATA if that is unknown, because it has no
 * build ID; -ENXIO or -ENOTSUP if there is no file (kernel code); or another negative errno.
 */
int served_symbols_open(ElfIdentifier *identifier, const ServedLib *lib, ElfIdentity *ret_identity);

/* Returns the text of such an error. */
const char *served_symbols_error(int error);

#endif
