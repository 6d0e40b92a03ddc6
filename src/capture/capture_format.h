/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_format.h - what only the capture's writer and reader share: the file header, the check of
 * a record, and how the files of the reader work together. See docs/reference/capture-format.md.
 */
#ifndef WALLPROF_CAPTURE_FORMAT_H
#define WALLPROF_CAPTURE_FORMAT_H

#include "capture.h"

#define CAPTURE_SKIPPABLE_MAGIC 0x184D2A50u /* zstd's first skippable frame type */
#define CAPTURE_SKIPPABLE_LEN	8	    /* its magic and size */
#define CAPTURE_NAME                                                                               \
	{                                                                                          \
		'W', 'A', 'L', 'L', 'P', 'R', 'O', 'F'                                             \
	}

struct capture_header {
	u32 magic;
	u32 size; /* of what follows */
	u8 name[8];
	u32 version;
	u32 flags; /* none defined: a reader refuses any */
	u64 reserved;
};

enum capture_verdict {
	CAPTURE_RECORD_GOOD,
	CAPTURE_RECORD_UNKNOWN,	  /* its kind is not known in this version */
	CAPTURE_RECORD_MALFORMED, /* too short for its kind, a tail exceeds it, no possible time */
};

/* record->len has been checked: at least a header, a multiple of 8, all in memory. */
enum capture_verdict capture_check(const struct record *record);

/* See capture_reader_content(); fd: the capture, whose position is not changed. */
uint64_t capture_content_size(int fd);

/* Sorts the events of a capture by time: capture_sort.c. */
typedef struct CaptureSorter CaptureSorter;

/* A decompressed frame. It is freed when it is neither being read nor needed by the sorter. */
typedef struct CaptureFrame {
	size_t size;
	size_t awaited; /* records that the sorter has yet to return */
	bool current;	/* capture_read() is in it */
	_Alignas(8) uint8_t data[];
} CaptureFrame;

CaptureSorter *capture_sorter_new(void);
void capture_sorter_free(CaptureSorter *sorter);

/* Returns the frame of the record that capture_read() returned last. */
CaptureFrame *capture_reader_frame(CaptureReader *reader);
CaptureSorter *capture_reader_sorter(CaptureReader *reader);
void capture_reader_count_late(CaptureReader *reader);

/*
 * Converts the records of version 2 of the capture file to the present format: capture_old.c.
 * Returns a frame with the converted records, which the caller frees; frees frame. What follows a
 * record of impossible length is left unchanged.
 */
CaptureFrame *capture_old_renew(CaptureFrame *frame);

#endif
