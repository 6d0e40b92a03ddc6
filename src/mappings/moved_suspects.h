/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * moved_suspects.h - executable mappings without an ELF file, which may be text that a program has
 * moved there; moved_text.h looks at them.
 */
#ifndef WALLPROF_MOVED_SUSPECTS_H
#define WALLPROF_MOVED_SUSPECTS_H

#include "util.h"

typedef struct MovedSuspect {
	uint64_t start, end; /* AVMA */
	uint64_t ns;	     /* when it was mapped */
	bool initial;	     /* it was mapped before the window */
	bool waits;	     /* a file's text belongs there, but the bytes still differ */
	uint8_t looks;
} MovedSuspect;

/* Where the last comparison stopped because its time was over. */
typedef struct MovedProgress {
	uint64_t start;
	uint32_t file;
	uint64_t same; /* bytes */
} MovedProgress;

/*
 * A text whose comparison has ended. What differs is compared again in the next look, and what is
 * the same is not.
 */
typedef struct MovedText {
	uint64_t start;
	uint32_t file;
	bool same;
} MovedText;

typedef struct MovedProcess {
	uint32_t ns_tgid;
	VEC(MovedSuspect) suspects;
	uint64_t next_ns, pause_ns;
	uint64_t took_ns; /* CPU time of this look so far */
	MovedProgress progress;
	VEC(MovedText) compared; /* while this look goes on, or in earlier ones */
} MovedProcess;

/* All zeros is an empty one. */
typedef struct MovedSuspects {
	VEC(MovedProcess *) processes;
	uint64_t next_ns; /* when the next one is due */
	size_t turn;	  /* the process with which the next check begins */
} MovedSuspects;

void moved_suspects_free(MovedSuspects *moved);
void moved_process_free(MovedProcess *process);

/* Notes a mapping. Of a process only the youngest 64 are kept. */
void moved_suspects_note(MovedSuspects *moved, uint32_t ns_tgid, const MovedSuspect *suspect);

#endif
