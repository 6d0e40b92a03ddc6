/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zstd_unpack.h - decompresses a .zst file for readers that do not support zstd. */
#ifndef WALLPROF_ZSTD_UNPACK_H
#define WALLPROF_ZSTD_UNPACK_H

/*
 * The maximum size in bytes. A file that decompresses to more was made to fill a disk, and no
 * browser could load it.
 */
#define UNPACKED_MAX (4ULL << 30)

/*
 * The first bytes decide whether the file is compressed by zstd, not the name. If it is, *ret_fd is
 * an unnamed file with its content in TMPDIR (or /tmp), or in memory if that folder does not
 * support unnamed files. Otherwise, or if the file does not exist, *ret_fd is -1. Returns 0 or a
 * negative errno, logged.
 */
int zstd_unpack_open(const char *path, int *ret_fd);

#endif
