/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_info.h - what is known of each kind of record (bpf/abi/record_kinds.h).
 */
#ifndef WALLPROF_RECORD_INFO_H
#define WALLPROF_RECORD_INFO_H

#include "records.h"
#include <stdbool.h>

typedef struct RecordInfo {
	const char *word;    /* for reports; NULL: a kind that this version does not know */
	uint16_t fixed_size; /* bytes without optional parts and tails; 0: not in a capture */
	uint8_t flags;	     /* enum record_kind_flags */
} RecordInfo;

/* Never NULL. kind may be any number. */
const RecordInfo *record_info(uint32_t kind);

/* Whether the reader returns the record in order of time. */
bool record_is_event(const struct record *record);

#endif
