/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs write about code that they make: a perf map, and a jitdump. */
#include "fuzz.h"
#include "jitdump.h"
#include "perf_map.h"

typedef struct Seen {
	const uint8_t *data;
	size_t size;
	uint64_t pieces, loads, moves, lines;
} Seen;

static void visit_piece(void *user, const PerfMapPiece *piece)
{
	Seen *seen = user;
	const uint8_t *name = (const uint8_t *)piece->name;

	fuzz_require(piece->size > 0 && piece->start + piece->size > piece->start);
	fuzz_require(name > seen->data && piece->name_size > 0 &&
		     piece->name_size <= (size_t)(seen->data + seen->size - name));
	fuzz_require(!memchr(piece->name, '\n', piece->name_size));
	seen->pieces++;
}

static void expect_text(const Seen *seen, const char *text)
{
	fuzz_require((const uint8_t *)text + strlen(text) < seen->data + seen->size);
}

static void visit_load(void *user, const JitdumpLoad *load)
{
	Seen *seen = user;

	fuzz_require(load->size > 0 && load->start + load->size > load->start);
	fuzz_require(load->offset <= seen->size && load->size <= seen->size - load->offset);
	expect_text(seen, load->name);
	seen->loads++;
}

static void visit_move(void *user, const JitdumpMove *move)
{
	Seen *seen = user;

	fuzz_require(move->size > 0 && move->new_start + move->size > move->new_start);
	seen->moves++;
}

static void visit_line(void *user, const JitdumpLine *line)
{
	Seen *seen = user;

	expect_text(seen, line->source);
	seen->lines++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *copy = fuzz_copy(data, size);
	Seen seen = {.data = copy, .size = size};
	JitdumpVisitor visitor = {visit_load, visit_move, visit_line, &seen};
	JitdumpSummary dump;
	PerfMapSummary map;

	perf_map_parse((const char *)copy, size, visit_piece, &seen, &map);
	fuzz_require(map.pieces == seen.pieces && map.torn_bytes <= size);
	if (jitdump_parse(copy, size, &visitor, &dump) == 0) {
		fuzz_require(dump.loads == seen.loads && dump.moves == seen.moves);
		fuzz_require(dump.lines == seen.lines && dump.torn_bytes <= size);
	} else {
		fuzz_require(seen.loads + seen.moves + seen.lines == 0);
	}
	return 0;
}
