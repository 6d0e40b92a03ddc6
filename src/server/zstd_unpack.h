/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zstd_unpack.h - a file that zstd has compressed, as it was before: for readers that know no zstd.
 */
#ifndef WALLPROF_ZSTD_UNPACK_H
#define WALLPROF_ZSTD_UNPACK_H

/* Bytes; what unpacks to more was made to fill a disk, and no browser could take it. */
#define UNPACKED_MAX (4ULL << 30)

/*
 * Whether it is compressed so is told by its first bytes, not by its name. Then *ret_fd is a
 * file without a name in TMPDIR (or /tmp), or in memory if that folder can have none, with all that
 * is in it; else -1, also if there is no such file. Returns 0 or a negative errno after saying why.
 */
int zstd_unpack_open(const char *path, int *ret_fd);

#endif
