/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitdump.c - parses record by record; nothing in the dump is aligned, and every length is checked
 * before it is used.
 */
#include "jitdump.h"
#include "util.h"
#include <byteswap.h>
#include <errno.h>
#include <string.h>

#define MAGIC	       0x4a695444u
#define VERSION	       1
#define ARCH_TIMESTAMP (1ULL << 0)

/*
 * V8 adds the size of an ELF header to the addresses of lines, because perf puts one before the
 * code when it makes a file of it. Its dumps are recognized by their filler.
 */
#define V8_FILLER    0xdeadbeefu
#define V8_LINE_BIAS 0x40

enum record_id { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

struct file_header {
	uint32_t magic, version;
	uint32_t size; /* of the header: the first record follows */
	uint32_t machine, filler, pid;
	uint64_t timestamp, flags;
};

struct record_header {
	uint32_t id, size; /* of the whole record */
	uint64_t timestamp;
};

struct code_load {
	uint32_t pid, tid;
	uint64_t vma, start, size, index;
};

struct code_move {
	uint32_t pid, tid;
	uint64_t vma, old_start, new_start, size, index;
};

struct debug_info {
	uint64_t code_start, count;
};

struct debug_entry {
	uint64_t address;
	int32_t line, discriminator;
};

/* The rest of a record. */
typedef struct Cursor {
	const uint8_t *p, *end;
} Cursor;

static bool take(Cursor *cursor, void *ret_value, size_t size)
{
	if ((size_t)(cursor->end - cursor->p) < size)
		return false;
	memcpy(ret_value, cursor->p, size);
	cursor->p += size;
	return true;
}

/* Returns NULL if the text is not terminated. */
static const char *parse_text(Cursor *cursor)
{
	const char *text = (const char *)cursor->p;
	const uint8_t *nul = memchr(cursor->p, '\0', cursor->end - cursor->p);

	if (!nul)
		return NULL;
	cursor->p = nul + 1;
	return text;
}

static bool is_range(uint64_t start, uint64_t size)
{
	return size > 0 && size <= UINT64_MAX - start;
}

static bool visit_load(JitdumpParser *parser, Cursor cursor, uint64_t ns)
{
	struct code_load load;
	const char *name;

	if (!take(&cursor, &load, sizeof(load)))
		return false;
	name = parse_text(&cursor);
	if (!name || !is_range(load.start, load.size) ||
	    (size_t)(cursor.end - cursor.p) < load.size)
		return false;
	parser->summary.loads++;
	parser->visitor->load(parser->visitor->user,
			      &(JitdumpLoad){
				      .ns = ns,
				      .pid = load.pid,
				      .start = load.start,
				      .size = load.size,
				      .index = load.index,
				      .offset = parser->offset + (cursor.p - parser->data),
				      .name = name,
			      });
	return true;
}

static bool visit_move(JitdumpParser *parser, Cursor cursor, uint64_t ns)
{
	struct code_move move;

	if (!take(&cursor, &move, sizeof(move)) || !is_range(move.new_start, move.size))
		return false;
	parser->summary.moves++;
	parser->visitor->move(parser->visitor->user, &(JitdumpMove){
							     .ns = ns,
							     .old_start = move.old_start,
							     .new_start = move.new_start,
							     .size = move.size,
							     .index = move.index,
						     });
	return true;
}

/* Parses the next line; same_source is the source of the previous one. */
static bool parse_line(const JitdumpParser *parser, Cursor *cursor, const char *same_source,
		       JitdumpLine *ret_line)
{
	struct debug_entry entry;
	const char *source;

	if (!take(cursor, &entry, sizeof(entry)) || !(source = parse_text(cursor)))
		return false;
	/* This means: as the previous one. */
	if (!strcmp(source, "\xff"))
		source = same_source;
	*ret_line = (JitdumpLine){
		.address = entry.address - parser->line_bias,
		.line = entry.line > 0 ? entry.line : 0,
		.source = source,
	};
	return source;
}

/*
 * Visits all lines of a piece of code or none: a text that is too long or too short by a byte
 * (Node.js 20 writes such) corrupts all that follows, and nothing distinguishes the good lines
 * before it from the rest.
 */
static bool visit_lines(JitdumpParser *parser, Cursor cursor)
{
	JitdumpLine line = {};
	struct debug_info info;
	Cursor first;

	if (!take(&cursor, &info, sizeof(info)))
		return false;
	first = cursor;
	for (uint64_t i = 0; i < info.count; i++)
		if (!parse_line(parser, &cursor, line.source, &line))
			return false;
	/* There may be padding up to the next multiple of 8. */
	if (cursor.end - cursor.p >= 8)
		return false;
	for (uint64_t i = 0; i < info.count; i++) {
		parse_line(parser, &first, line.source, &line);
		line.code_start = info.code_start;
		parser->summary.lines++;
		parser->visitor->line(parser->visitor->user, &line);
	}
	return true;
}

static void visit_record(JitdumpParser *parser, const struct record_header *header, Cursor body)
{
	uint64_t ns = parser->summary.no_times ? 0 : header->timestamp;
	bool good = true;

	switch (header->id) {
	case CODE_LOAD:
		good = visit_load(parser, body, ns);
		break;
	case CODE_MOVE:
		good = visit_move(parser, body, ns);
		break;
	case CODE_DEBUG_INFO:
		good = visit_lines(parser, body);
		break;
	case CODE_CLOSE:
	case CODE_UNWINDING_INFO:
		break;
	default:
		parser->summary.unknown++;
	}
	if (!good)
		parser->summary.malformed++;
}

static int check_header(const struct file_header *header, size_t size)
{
	if (header->magic == bswap_32(MAGIC))
		return -EPROTONOSUPPORT;
	if (header->magic != MAGIC)
		return -EBADMSG;
	if (header->version != VERSION)
		return -EPROTONOSUPPORT;
	return header->size < sizeof(*header) || header->size > size ? -EBADMSG : 0;
}

/* Returns the size of the header, or a negative errno. */
static int parse_header(JitdumpParser *parser, Cursor cursor)
{
	size_t size = cursor.end - cursor.p;
	struct file_header header;
	int r;

	if (!take(&cursor, &header, sizeof(header)))
		return -EBADMSG;
	r = check_header(&header, size);
	if (r < 0)
		return r;
	parser->begun = true;
	parser->summary.pid = header.pid;
	parser->line_bias = header.filler == V8_FILLER ? V8_LINE_BIAS : 0;
	parser->summary.no_times = header.flags & ARCH_TIMESTAMP;
	return header.size;
}

int jitdump_parse_part(JitdumpParser *parser, const void *data, size_t size, bool skip,
		       size_t *ret_used)
{
	Cursor cursor = {data, (const uint8_t *)data + size};
	struct record_header record;
	uint64_t skipped = 0;

	parser->data = data;
	if (!parser->begun) {
		int r = parse_header(parser, cursor);

		if (r < 0)
			return r;
		cursor.p += r;
	}
	for (;;) {
		Cursor body = cursor;
		size_t left = cursor.end - cursor.p;

		if (!take(&body, &record, sizeof(record)) || record.size < sizeof(record))
			break;
		if (record.size > left) {
			if (skip && cursor.p == data) {
				parser->summary.malformed++;
				skipped = record.size;
			}
			break;
		}
		cursor.p += record.size;
		body.end = cursor.p;
		visit_record(parser, &record, body);
	}
	*ret_used = skipped ? skipped : (size_t)(cursor.p - (const uint8_t *)data);
	parser->offset += *ret_used;
	return 0;
}

void jitdump_end(JitdumpParser *parser, const void *data, size_t size)
{
	Cursor cursor = {data, (const uint8_t *)data + size};
	struct record_header record;

	/* A record with an impossible length is not a torn one. */
	if (take(&cursor, &record, sizeof(record)) && record.size < sizeof(record))
		parser->summary.malformed++;
	parser->summary.torn_bytes = size;
}

int jitdump_parse(const void *data, size_t size, const JitdumpVisitor *visitor,
		  JitdumpSummary *ret_summary)
{
	JitdumpParser parser = {.visitor = visitor};
	size_t used;
	int r = jitdump_parse_part(&parser, data, size, /* skip= */ false, &used);

	if (r < 0)
		return r;
	jitdump_end(&parser, (const uint8_t *)data + used, size - used);
	*ret_summary = parser.summary;
	return 0;
}
