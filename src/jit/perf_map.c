/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf_map.c - parses line by line. */
#include "perf_map.h"
#include "util.h"
#include <string.h>

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Parses a hexadecimal number and the one blank behind it; moves *p behind both. */
static bool parse_number(const char **p, const char *end, uint64_t *ret_value)
{
	const char *q = *p, *digits;
	uint64_t value = 0;

	if (end - q > 2 && q[0] == '0' && (q[1] == 'x' || q[1] == 'X'))
		q += 2;
	for (digits = q; q < end && digit_value(*q) >= 0; q++) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)digit_value(*q);
	}
	if (q == digits || q == end || *q != ' ')
		return false;
	*p = q + 1;
	*ret_value = value;
	return true;
}

static bool parse_line(const char *line, const char *end, PerfMapPiece *ret_piece)
{
	const char *p = line;
	uint64_t start, size;

	if (!parse_number(&p, end, &start) || !parse_number(&p, end, &size) || p == end)
		return false;
	if (size == 0 || size > UINT64_MAX - start)
		return false;
	*ret_piece = (PerfMapPiece){start, size, p, end - p};
	return true;
}

void perf_map_parse(const char *text, size_t size,
		    void (*visit)(void *user, const PerfMapPiece *piece), void *user,
		    PerfMapSummary *ret_summary)
{
	const char *p = text, *end = text + size, *newline;
	PerfMapSummary summary = {};

	while (p < end && (newline = memchr(p, '\n', end - p))) {
		PerfMapPiece piece;

		if (parse_line(p, newline, &piece)) {
			summary.pieces++;
			visit(user, &piece);
		} else if (newline > p) {
			summary.malformed++;
		}
		p = newline + 1;
	}
	summary.torn_bytes = end - p;
	*ret_summary = summary;
}
