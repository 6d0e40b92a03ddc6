/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record_info.h"
#include "util.h"
#include <stddef.h>

const RecordInfo *record_info(uint32_t kind)
{
	static const RecordInfo kinds[] = {
#define KIND(name, number, word, flags, length) [REC_##name] = {word, length, flags},
		RECORD_KINDS(KIND)
#undef KIND
	};
	static const RecordInfo unknown;

	return kind < ARRAY_LEN(kinds) ? &kinds[kind] : &unknown;
}

bool record_is_event(const struct record *record)
{
	return record_info(record->kind)->flags & RECORD_EVENT;
}
