/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script_python_lines.c - lines of CPython's code, by its tables, which the program may have filled
 * with anything.
 *
 * 3.8 and 3.9: Objects/lnotab_notes.txt. 3.10: PEP 626. From 3.11 on: Objects/locations.md.
 */
#include "script_language.h"

#define VERSION_LINES	  0x030a
#define VERSION_LOCATIONS 0x030b

/* The kinds of entries in a table of locations. */
enum location {
	LOCATION_ONE_LINE = 10, /* and two more; less: on the same line */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

static uint32_t as_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* The table has pairs of differences: bytes of instructions, and lines. */
static uint32_t line_by_lnotab(const struct rec_script_code *code, int32_t at)
{
	int64_t line = code->first_line, address = 0;

	for (uint32_t i = 0; i + 1 < code->table_bytes; i += 2) {
		address += code->table[i];
		if (address > at)
			break;
		line += (int8_t)code->table[i + 1];
	}
	return as_line(line);
}

/* The same pairs, but the line is that of the bytes before; -128: they have no line. */
static uint32_t line_by_pairs(const struct rec_script_code *code, int32_t at)
{
	int64_t line = code->first_line, end = 0;

	for (uint32_t i = 0; i + 1 < code->table_bytes; i += 2) {
		int8_t difference = (int8_t)code->table[i + 1];

		end += code->table[i];
		if (difference != INT8_MIN)
			line += difference;
		if (end > at)
			return difference == INT8_MIN ? 0 : as_line(line);
	}
	return 0;
}

typedef struct Bytes {
	const uint8_t *p, *end;
} Bytes;

/* Six bits in each byte, the least significant ones first; bit 6: another byte follows. */
static uint32_t read_number(Bytes *bytes)
{
	uint32_t number = 0;

	for (unsigned shift = 0; bytes->p < bytes->end; shift += 6) {
		uint8_t byte = *bytes->p++;

		if (shift < 32)
			number |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return number;
}

static int64_t read_signed(Bytes *bytes)
{
	uint32_t number = read_number(bytes);

	return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

static int64_t line_difference(Bytes *bytes, unsigned kind)
{
	if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG)
		return read_signed(bytes);
	return kind >= LOCATION_ONE_LINE && kind < LOCATION_NO_COLUMNS ? kind - LOCATION_ONE_LINE
								       : 0;
}

static uint32_t line_by_locations(const struct rec_script_code *code, int32_t at)
{
	Bytes bytes = {code->table, code->table + code->table_bytes};
	int64_t line = code->first_line, end = 0;

	while (bytes.p < bytes.end) {
		uint8_t first = *bytes.p++;
		unsigned kind = first >> 3 & 15;

		line += line_difference(&bytes, kind);
		end += 2 * ((first & 7) + 1); /* units of two bytes */
		if (end > at)
			return kind == LOCATION_NONE ? 0 : as_line(line);
		while (bytes.p < bytes.end && !(*bytes.p & 128)) /* columns */
			bytes.p++;
	}
	return 0;
}

uint32_t script_python_line(const struct rec_script_code *code, int32_t at)
{
	if (at < 0)
		return code->first_line;
	if (code->version < VERSION_LINES)
		return line_by_lnotab(code, at);
	return code->version < VERSION_LOCATIONS ? line_by_pairs(code, at)
						 : line_by_locations(code, at);
}
