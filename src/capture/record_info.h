/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_info.h - the properties of each kind of record (bpf/abi/record_kinds.h), and how the code
 * that makes records passes them on.
 */
#ifndef WALLPROF_RECORD_INFO_H
#define WALLPROF_RECORD_INFO_H

#include "records.h"
#include <stdbool.h>

typedef struct RecordInfo {
	const char *word;    /* for reports; NULL: this version does not know the kind */
	uint16_t fixed_size; /* bytes without optional parts and tails; 0: not in a capture */
	uint8_t flags;	     /* enum record_kind_flags */
} RecordInfo;

/* Never returns NULL; kind may be any number. */
const RecordInfo *record_info(uint32_t kind);

/* Returns whether the reader returns the record in order of time. */
bool record_is_event(const struct record *record);

/*
 * Consumes a record, which belongs to the caller and may be on its stack. Returns 0 or a negative
 * errno.
 */
typedef int (*RecordSink)(void *user, const struct record *record);

#endif
