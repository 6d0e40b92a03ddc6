/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * served_symbols.h - names, lines and inlined calls of addresses in a file that is on this machine:
 * as at the end of a recording, from the cache or by a sandboxed child.
 */
#ifndef WALLPROF_SERVED_SYMBOLS_H
#define WALLPROF_SERVED_SYMBOLS_H

#include "as_invoker.h"
#include "elf_identifier.h"
#include "profile_libs.h"
#include "records.h"

/* Whoever reads a page waits for the answer: all that one question needs. */
#define SERVED_SECONDS 20

typedef struct ServedSymbols {
	uint64_t base_svma;
	VEC(struct rec_symbol *) list; /* ascending */
} ServedSymbols;

/*
 * relative: library-relative, ascending, each once; deadline_ns: of CLOCK_MONOTONIC, for all of it.
 * Returns 0, or a negative errno as served_symbols_open(). To be freed in any case.
 */
int served_symbols_resolve(ElfIdentifier *identifier, const ServedLib *lib,
			   const uint64_t *relative, size_t count, uint64_t deadline_ns,
			   ServedSymbols *ret_symbols);
void served_symbols_free(ServedSymbols *symbols);

/* NULL: nothing is known of it. */
const struct rec_symbol *served_symbols_find(const ServedSymbols *symbols, uint64_t relative);

/*
 * The file opened for reading, or a copy of the vDSO, if it is the one that was recorded. Or a
 * negative errno: -ESTALE if it is not; -ENODATA if nobody can say, for want of a build id; -ENXIO
 * and -ENOTSUP if there is no file (the kernel's code); or why it cannot be read.
 */
int served_symbols_open(ElfIdentifier *identifier, const ServedLib *lib, ElfIdentity *ret_identity);

/* Such an error in words. */
const char *served_symbols_error(int error);

#endif
