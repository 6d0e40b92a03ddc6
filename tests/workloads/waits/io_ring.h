/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_ring.h - reads by an io_uring (liburing(7)), for io.c.
 */
#ifndef IO_RING_H
#define IO_RING_H

#include <stddef.h>
#include <stdint.h>

/* What reads: the thread itself, a worker of the ring, or the thread that polls the ring. */
enum reader { READER_SELF, READER_WORKER, READER_POLLING };

/* Reads `count` blocks, anywhere in the `size` bytes of a file, eight at a time. */
void ring_read(int fd, uint64_t size, size_t count, enum reader reader);

#endif
