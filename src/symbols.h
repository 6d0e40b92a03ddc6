/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols.h - from addresses to names, at the end of a recording.
 *
 * symbols_resolve() goes over the stacks of a capture, collects every address
 * that can have been meant (spaces_locate_any), looks them up and gives one
 * REC_SYMBOL per address that has a name. It is run by `record` with files held
 * open since they were mapped, and by `export` for captures that have no
 * symbols yet (--defer-symbols, or a recorder that was killed).
 */
#ifndef WALLPROF_SYMBOLS_H
#define WALLPROF_SYMBOLS_H

#include "capture.h"
#include "space.h"

/*
 * Gives a descriptor open for reading on the file, or a negative errno. The
 * callee keeps ownership (it is not closed here); it must stay open until the
 * next call. `record` answers from the files it holds, symbols_open_by_path() opens
 * by path. Whether it is the file that was mapped is checked by symbols_resolve
 * (build id). Not called for the vDSO, which is read from our own memory.
 */
typedef int (*SymbolsOpen)(void *user, const MappedFile *file);

/*
 * The address by which a frame of a stack is looked up: the call before a return
 * address, or the program counter itself if exact (see rec_stack).
 */
static inline uint64_t symbols_lookup_address(uint64_t pc, bool exact)
{
	return exact || pc == 0 ? pc : pc - 1;
}

typedef struct SymbolsSink {
	SymbolsOpen open;
	void *open_user;
	int (*emit)(void *user, const struct record *symbol); /* REC_SYMBOL; 0 or -errno */
	void *user;
} SymbolsSink;

typedef struct SymbolsSummary {
	uint64_t addresses; /* different (file, address) pairs and kernel addresses */
	uint64_t named;
	uint32_t files_unreadable; /* could not be opened or parsed */
	uint32_t files_mismatched; /* build id differs: not used */
	bool kernel_hidden;	   /* kallsyms shows no addresses (kptr_restrict) */
} SymbolsSummary;

/*
 * reader is rewound first. with_kernel: use this machine's /proc/kallsyms (only
 * right on the machine and boot that recorded). Returns 0 or a negative errno of
 * reading or emitting; files that can't be read cost their names only.
 */
int symbols_resolve(CaptureReader *reader, const SymbolsSink *sink, bool with_kernel,
		    SymbolsSummary *ret_summary);

/* A SymbolsOpen and what it needs: the one descriptor that is open at a time. */
typedef struct SymbolsFiles SymbolsFiles;
SymbolsFiles *symbols_files_new(void);
int symbols_open_by_path(void *files, const MappedFile *file);
void symbols_files_free(SymbolsFiles *files);

#endif
