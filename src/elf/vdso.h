/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vdso.h - the vDSO has no file; every 64-bit process of a kernel has the same image, so wallprof's
 * own is used.
 */
#ifndef WALLPROF_VDSO_H
#define WALLPROF_VDSO_H

#include "elf_file.h"

/* Returns the image in this process's memory, or NULL; *ret_size bytes of it may be read. */
const void *vdso_image(size_t *ret_size);

/*
 * Returns a descriptor of the image as a file in memory, which the caller closes; or a negative
 * errno.
 */
int vdso_open(void);

/* Identifies that image. Returns 0 or a negative errno (and an empty identity). */
int vdso_identify(ElfIdentity *ret_identity);

#endif
