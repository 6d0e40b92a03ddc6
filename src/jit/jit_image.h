/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_image.h - makes ELF files of what a process's memory says of the code that it has made: call
 * frame information (jit_cfi.h) and symbols (jit_object.h). These files are then read as others
 * are: for unwind tables and for names. Runs in the sandbox; all of the memory is untrusted.
 *
 * Addresses in the files are those in the process. Call frame information is rewritten with
 * absolute addresses. Code that has names and no call frame information is in a file of its own,
 * because it has no unwind table.
 */
#ifndef WALLPROF_JIT_IMAGE_H
#define WALLPROF_JIT_IMAGE_H

#include "jit_object.h"

/* A piece of code that is described as a whole. */
typedef struct JitCode {
	uint64_t start, end; /* AVMA */
	uint64_t hash;	     /* of all that is said of it */
	uint64_t file;	     /* index of its ELF file, or JIT_KNOWN */
} JitCode;

#define JIT_KNOWN UINT64_MAX /* it is one of JitDump::known, unchanged */

#define JIT_FILES_MAX 8u
#define JIT_CODE_MAX  8192u /* pieces */

/* What was read of a process. The caller frees what it has put there. */
typedef struct JitDump {
	JitRanges code;	     /* executable memory without a file: sorted, none overlap */
	JitMemories memory;  /* readable memory without a file: sorted, none overlap */
	JitMemories objects; /* that are shown to debuggers */
	VEC(JitCode) known;  /* what was found last time: sorted */
} JitDump;

typedef struct JitImage {
	VEC(JitCode) code; /* sorted, none overlap */
	struct {
		VEC(uint8_t) elf;
	} files[JIT_FILES_MAX];
	JitCfiCounts counts; /* no_room: also pieces for which there was no room */
	uint64_t symbols;
} JitImage;

void jit_image_make(const JitDump *dump, JitImage *ret_image);
void jit_image_free(JitImage *image);

#endif
