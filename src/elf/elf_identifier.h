/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_identifier.h - reads build ids and load segments of the files that are mapped while wallprof
 * records, in a sandboxed child that lives as long as the recording. A child that crashes or hangs
 * is replaced; its file counts as unreadable.
 */
#ifndef WALLPROF_ELF_IDENTIFIER_H
#define WALLPROF_ELF_IDENTIFIER_H

#include "elf_file.h"

typedef struct ElfIdentifier ElfIdentifier;

typedef int (*ElfIdentify)(int fd, ElfIdentity *ret_identity);

/*
 * The child is started when it is first needed. For each file it calls identify, which is
 * elf_identify() except in tests.
 */
ElfIdentifier *elf_identifier_new(ElfIdentify identify);
void elf_identifier_free(ElfIdentifier *identifier);

/*
 * Returns as elf_identify(), for a regular file (fd is not closed). Also -EIO: the child crashed;
 * -ETIME: it took too long.
 */
int elf_identifier_identify(ElfIdentifier *identifier, int fd, ElfIdentity *ret_identity);

#endif
