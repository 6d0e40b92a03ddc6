/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gnu_debugdata.h - .gnu_debugdata: an ELF file with a symbol table, compressed by xz into a
 * section of the file that it belongs to (Fedora's "MiniDebugInfo"). Runs in the sandbox.
 */
#ifndef WALLPROF_GNU_DEBUGDATA_H
#define WALLPROF_GNU_DEBUGDATA_H

#include "util.h"
#include <gelf.h>

typedef struct GnuDebugdata {
	Elf *elf; /* NULL: there is none, or it is broken */
	uint8_t *image;
} GnuDebugdata;

void gnu_debugdata_open(GnuDebugdata *mini, Elf *elf);
void gnu_debugdata_close(GnuDebugdata *mini);

#endif
