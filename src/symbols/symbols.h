/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols.h - from addresses to names, at the end of a recording.
 *
 * symbols_resolve() goes over the stacks of a capture, collects every address
 * that can have been meant (address_spaces_locate_any), looks them up and gives one
 * REC_SYMBOL per address that has a name. It is run by `record` with files held
 * open since they were mapped, and by `export` for captures that have no
 * symbols yet (--defer-symbols, or a recorder that was killed).
 */
#ifndef WALLPROF_SYMBOLS_H
#define WALLPROF_SYMBOLS_H

#include "address_space.h"
#include "capture.h"
#include "debug_files.h"
#include "jit_files.h"
#include "sources.h"

/*
 * Gives a descriptor open for reading on the file, which the caller closes, or a negative errno.
 * `record` answers from the files it holds, symbols_open_by_path() opens by path. Whether it
 * is the file that was mapped is checked by symbols_resolve (build id). Not called for
 * the vDSO, which is read from our own memory.
 */
typedef int (*SymbolsOpen)(void *user, const MappedFile *file);

typedef struct SymbolsSink {
	SymbolsOpen open;
	OpenBeside open_beside;
	void *open_user;
	int (*emit)(void *user, const struct record *record); /* SYMBOL and NOTE; 0 or -errno */
	void *user;
	JitFiles *jit;		/* of the recorded processes; NULL = none are known */
	Sources *sources;	/* weighs what the frames name; NULL = sources are not wanted */
	const Invoker *invoker; /* whose cache is used, and who asks debuginfod */
	bool no_debuginfod;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC: no file is begun later; 0 = never */
} SymbolsSink;

/* So long files are begun; honest ones of a whole system are done in a fraction. */
#define SYMBOLS_SECONDS_MAX 120

typedef struct SymbolsSummary {
	uint64_t addresses; /* different (file, address) pairs and kernel addresses */
	uint64_t named;
	uint32_t files_unreadable; /* could not be opened or parsed */
	uint32_t files_mismatched; /* build id differs: not used */
	uint32_t files_cached;	   /* names of which were all in the cache */
	int kernel_error;	   /* of kallsyms_load(), if kernel functions have no names */
} SymbolsSummary;

/*
 * reader is rewound first. with_kernel: use this machine's /proc/kallsyms (only
 * right on the machine and boot that recorded). Returns 0 or a negative errno of
 * reading or emitting; files that can't be read cost their names only.
 */
int symbols_resolve(CaptureReader *reader, const SymbolsSink *sink, bool with_kernel,
		    SymbolsSummary *ret_summary);

/* Warns if kernel functions have no names, and says why. */
void symbols_warn_kernel(const SymbolsSummary *summary);

/*
 * A SymbolsOpen and an OpenBeside that take the paths as this machine's; they come out of a file,
 * and are opened with the rights of the invoker only.
 */
int symbols_open_by_path(void *as_invoker, const MappedFile *file);
int symbols_open_beside_by_path(void *as_invoker, const MappedFile *file, const char *path);

#endif
