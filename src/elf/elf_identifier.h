/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_identifier.h - build id and load segments of the files that are mapped while wallprof
 * records, read in a sandboxed child that lives as long as the recording. One that crashes or hangs
 * is replaced; its file counts as unreadable.
 */
#ifndef WALLPROF_ELF_IDENTIFIER_H
#define WALLPROF_ELF_IDENTIFIER_H

#include "elf_file.h"

typedef struct Identifier Identifier;

/* The child is started when it is first needed. */
Identifier *identifier_new(void);
void identifier_free(Identifier *identifier);

/*
 * As elf_identify(), of a regular file (fd is not closed). Also -EIO: the child crashed; -ETIME:
 * it took too long.
 */
int identifier_ask(Identifier *identifier, int fd, ElfIdentity *ret_identity);

#endif
