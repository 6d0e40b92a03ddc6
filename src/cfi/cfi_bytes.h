/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_bytes.h - reads numbers from a piece of memory and never beyond it: what is missing reads as
 * 0 and sets `bad`. LEB128 as in the DWARF 5 standard, section 7.6.
 */
#ifndef WALLPROF_CFI_BYTES_H
#define WALLPROF_CFI_BYTES_H

#include "util.h"

typedef struct CfiBytes {
	const uint8_t *at, *end;
	bool bad; /* something was missing, or did not fit into 64 bits */
} CfiBytes;

static inline size_t cfi_left(const CfiBytes *bytes)
{
	return bytes->end - bytes->at;
}

/* Consumes size bytes and returns them, or NULL. */
static inline const uint8_t *cfi_consume(CfiBytes *bytes, uint64_t size)
{
	const uint8_t *taken = bytes->at;

	if (size > cfi_left(bytes)) {
		bytes->bad = true;
		bytes->at = bytes->end;
		return NULL;
	}
	bytes->at += size;
	return taken;
}

static inline uint8_t cfi_u8(CfiBytes *bytes)
{
	if (bytes->at == bytes->end) {
		bytes->bad = true;
		return 0;
	}
	return *bytes->at++;
}

/* Reads a little-endian number of 1 to 8 bytes. */
static inline uint64_t cfi_fixed(CfiBytes *bytes, unsigned size)
{
	const uint8_t *p = cfi_consume(bytes, size);
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, size);
	return value;
}

static inline int64_t cfi_fixed_signed(CfiBytes *bytes, unsigned size)
{
	unsigned unused = 64 - 8 * size;

	return (int64_t)(cfi_fixed(bytes, size) << unused) >> unused;
}

/* Linkers pad numbers: any number of bytes without a value may follow. */
static inline uint64_t cfi_uleb_of_many(CfiBytes *bytes)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		uint64_t bits;

		byte = cfi_u8(bytes);
		bits = byte & 0x7f;
		if (shift >= 64 || bits << shift >> shift != bits)
			bytes->bad |= bits != 0;
		else
			value |= bits << shift;
		shift = MIN(shift + 7, 64u);
	} while (byte & 0x80);
	return value;
}

/* Nearly all numbers take one byte. */
static inline uint64_t cfi_uleb(CfiBytes *bytes)
{
	CfiBytes rest;
	uint64_t value;

	if (bytes->at != bytes->end && *bytes->at < 0x80)
		return *bytes->at++;
	rest = (CfiBytes){.at = bytes->at, .end = bytes->end};
	value = cfi_uleb_of_many(&rest);
	bytes->at = rest.at;
	bytes->bad |= rest.bad;
	return value;
}

static inline int64_t cfi_sleb(CfiBytes *bytes)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = cfi_u8(bytes);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift = MIN(shift + 7, 64u);
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}

#endif
