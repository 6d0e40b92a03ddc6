/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring_reader.h - reads BPF ring buffers (Documentation/bpf/ringbuf.rst), several of each kind, and
 * merges those of a kind by the times of their records.
 *
 * libbpf's reader is not used: it drains a ring until it is empty, so a busy ring could keep it
 * from the others for ever, and it returns space after each record, by a write to a cache line that
 * all writers read.
 */
#ifndef WALLPROF_RING_READER_H
#define WALLPROF_RING_READER_H

#include "maps.h"
#include "records.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RingReader RingReader;

/* A reader for so many groups, each of which has a ring of each kind (enum ring_index). */
RingReader *ring_reader_new(uint32_t groups);

/*
 * Adds a ring: a descriptor, which stays open as long as the reader, and the bytes of its data. Its
 * data is mapped only where it is read, because mapped pages count as memory of the process.
 * Returns 0 or a negative errno.
 */
int ring_reader_add(RingReader *reader, uint32_t group, enum ring_index kind, int fd,
		    uint64_t size);

/*
 * Passes every record that was in the rings when the call began, with a time before that, to
 * on_record, which returns 0 or a negative errno: kind by kind, and those of one kind in the order
 * of their times, as far as each ring has them in that order. So a record comes after those of the
 * same kind of ring that were complete before its time. One that is still being written holds back
 * all that follow it, in all rings of that kind, until the next call. Returns 0, on_record's error,
 * or the negative errno of mapping a part of a ring.
 */
int ring_reader_drain(RingReader *reader, int (*on_record)(void *user, const struct record *record),
		      void *user);

/*
 * Returns a time (CLOCK_MONOTONIC, ns) up to which all rings are drained: every record that was
 * written before it has been passed on. 0 before the first drain.
 */
uint64_t ring_reader_watermark_ns(const RingReader *reader);

/* Returns whether the last drain left a ring more than a quarter full: another should follow. */
bool ring_reader_is_behind(const RingReader *reader);

/* Returns the maximum number of bytes that a ring held when a drain began. */
uint64_t ring_reader_most_used(const RingReader *reader, uint32_t group, enum ring_index kind);

void ring_reader_free(RingReader *reader);

#endif
