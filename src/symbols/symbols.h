/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols.h - finds the names of addresses, at the end of a recording.
 *
 * symbols_resolve() goes over the stacks of a capture, collects every address that can have been
 * meant (address_spaces_locate_any()), looks them up and emits one REC_SYMBOL per address that has
 * a name. `record` calls it with files that are held open since they were mapped, and `export`
 * calls it for captures without symbols (--defer-symbols, or a recorder that was killed).
 */
#ifndef WALLPROF_SYMBOLS_H
#define WALLPROF_SYMBOLS_H

#include "address_space.h"
#include "capture.h"
#include "debug_files.h"
#include "jit_files.h"
#include "sources.h"

/*
 * Returns a descriptor of the file, open for reading, which the caller closes, or a negative errno.
 * In `record` these are the files that it holds; symbols_open_by_path() opens by path.
 * symbols_resolve() checks whether it is the file that was mapped (build id). Not called for the
 * vDSO, which is read from wallprof's own memory.
 */
typedef int (*SymbolsOpen)(void *user, const MappedFile *file);

typedef struct SymbolsSink {
	SymbolsOpen open;
	OpenBeside open_beside;
	OpenBeside open_named; /* DebugFiles::open_named */
	void *open_user;
	int (*emit)(void *user, const struct record *record); /* SYMBOL and NOTE; 0 or -errno */
	void *user;
	JitFiles *jit;		/* of the recorded processes; NULL = none are known */
	Sources *sources;	/* weighs what the frames name; NULL = sources are not needed */
	const Invoker *invoker; /* its cache is used, and debuginfod runs as this user */
	bool no_debuginfod;
	bool hides_names;     /* messages name no file, and emit() logs NOTE as it stands for it */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC: no lookup lasts longer; 0 = no limit */
} SymbolsSink;

/*
 * All lookups end after this time, those of debuginfod's servers after half of it; normal ones of a
 * whole system take a fraction of it.
 */
#define SYMBOLS_SECONDS_MAX 120

typedef struct SymbolsSummary {
	uint64_t addresses; /* different (file, address) pairs and kernel addresses */
	uint64_t named;
	uint32_t files_unreadable; /* could not be opened or parsed */
	uint32_t files_mismatched; /* the build id is different: not used */
	uint32_t files_cached;	   /* all of their names were in the cache */
	int kernel_error;	   /* of kallsyms_load(), if kernel functions have no names */
} SymbolsSummary;

/*
 * Rewinds reader first. with_kernel: uses this machine's /proc/kallsyms, which is only right on the
 * machine and boot of the recording. Returns 0 or a negative errno of reading or emitting; for
 * files that cannot be read, only the names are missing.
 */
int symbols_resolve(CaptureReader *reader, const SymbolsSink *sink, bool with_kernel,
		    SymbolsSummary *ret_summary);

/* Warns, with the reason, if kernel functions have no names. */
void symbols_warn_kernel(const SymbolsSummary *summary);

/*
 * A SymbolsOpen and an OpenBeside for paths of this machine. The paths come from a file, so
 * they are opened with the rights of the invoker only.
 */
int symbols_open_by_path(void *as_invoker, const MappedFile *file);
int symbols_open_beside_by_path(void *as_invoker, const MappedFile *file, const char *path);
/*
 * This does the same for paths of split debug information. Root opens only what all users may read,
 * because what the processes could read is not known any more.
 */
int symbols_open_named_by_path(void *as_invoker, const MappedFile *file, const char *path);

#endif
