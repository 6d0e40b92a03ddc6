/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_names.h"
#include "capture_format.h"
#include "demangle.h"
#include "jit_table.h"
#include "sandbox.h"
#include "signals.h"
#include "symbol_files.h"
#include "symbol_jobs.h"
#include "symbol_record.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE_MAX	 (1ULL << 30)
#define OUTPUT_MAX	 (256u << 20)
#define MAP_PART	 (4u << 20)
#define DUMP_PART	 (16u << 20)
#define MEMORY_MAX	 (512ULL << 20)
#define READ_SIZE	 (256u << 10)
#define SECONDS_BASE	 10
#define BYTES_PER_SECOND (8u << 20)
#define WALL_PER_CPU	 4

/* ---- in the child -------------------------------------------------------------------- */

typedef struct Request {
	enum jit_kind kind;
	uint32_t ns_tgid;
	const uint64_t *addresses;
	size_t count;
} Request;

/*
 * The child sends REC_CODE, REC_SYMBOL and, if it has come to its end, one REC_TOTAL: counted_kind
 * is an errno, lost is what was omitted.
 */
typedef struct Emitter {
	int socket;
	const Request *request;
	JitTable *table;
	uint64_t avma;
	SymbolRecord record;
	VEC(uint8_t) output;
} Emitter;

static void emit_piece_symbol(Emitter *emitter, const JitPiece *piece)
{
	uint64_t svma = piece->svma + (emitter->avma - piece->start);
	_cleanup_free_ char *readable = demangle(piece->name);
	const char *source = "";
	struct rec_symbol *symbol;
	uint32_t line = 0;

	if (!jit_table_line(emitter->table, piece, emitter->avma, &source, &line)) {
		source = "";
		line = 0;
	}
	symbol_record_begin(&emitter->record, svma);
	symbol_record_add(&emitter->record, readable ? readable : piece->name, source, line);
	symbol = symbol_record_finish(&emitter->record, NULL);
	symbol->function = piece->svma;
	symbol->function_size = symbol_record_size(piece->end - piece->start);
	vec_append(&emitter->output, (const uint8_t *)symbol, symbol->h.len);
}

static void send_some(Emitter *emitter)
{
	if (emitter->output.count <= READ_SIZE)
		return;
	sandbox_send(emitter->socket, emitter->output.items, emitter->output.count, -1);
	emitter->output.count = 0;
}

static void emit_name(void *user, const JitPiece *piece)
{
	Emitter *emitter = user;

	if (*piece->name)
		emit_piece_symbol(emitter, piece);
	send_some(emitter);
}

static void emit_piece(void *user, const JitPiece *piece)
{
	Emitter *emitter = user;
	struct rec_code code = {
		.h = {.kind = REC_CODE, .len = sizeof(code), .ns = piece->ns},
		.ns_tgid = emitter->request->ns_tgid,
		.start = piece->start,
		.end = piece->end,
		.bias = piece->start - piece->svma,
	};

	vec_append(&emitter->output, (const uint8_t *)&code, sizeof(code));
	send_some(emitter);
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns how much of a part of a map are whole lines. A line that fills the part is dropped. */
static size_t whole_lines(const char *part, size_t size, bool is_last)
{
	const char *newline = is_last ? NULL : memrchr(part, '\n', size);

	if (newline)
		return newline + 1 - part;
	return is_last || size == MAP_PART ? size : 0;
}

/*
 * Reads a map in parts, because it can be large, and keeps what has one of the sorted addresses.
 * The file may grow meanwhile; only its first size counts.
 */
static int read_perf_map(JitTable *table, int fd)
{
	_cleanup_free_ char *part = xmalloc(MAP_PART);
	size_t kept = 0, lines;
	uint64_t done = 0;
	struct stat st;

	if (fstat(fd, &st) || st.st_size < 0 || (uint64_t)st.st_size > FILE_SIZE_MAX)
		return -EFBIG;
	while (done < (uint64_t)st.st_size) {
		ssize_t n = pread(fd, part + kept,
				  MIN(MAP_PART - kept, (uint64_t)st.st_size - done), done);

		if (n <= 0)
			break;
		done += n;
		kept += n;
		lines = whole_lines(part, kept, done == (uint64_t)st.st_size);
		jit_table_add_perf_map(table, part, lines);
		kept -= lines;
		memmove(part, part + lines, kept);
	}
	return 0;
}

/*
 * Parses a dump of that size once, in parts. A record that is larger than a part is skipped: no
 * function has so much code.
 */
static int parse_jitdump(JitdumpParser *parser, int fd, uint64_t size, uint8_t *part)
{
	for (;;) {
		uint64_t left = parser->offset < size ? size - parser->offset : 0;
		size_t got = 0, used;
		int r;

		while (got < MIN(left, DUMP_PART)) {
			ssize_t n = pread(fd, part + got, MIN(left, DUMP_PART) - got,
					  parser->offset + got);

			if (n <= 0)
				break;
			got += n;
		}
		r = jitdump_parse_part(parser, part, got, /* skip= */ got == DUMP_PART, &used);
		if (r < 0)
			return r;
		if (got < DUMP_PART || used == 0) {
			jitdump_end(parser, part + used, got - used);
			return 0;
		}
	}
}

/* The file may grow meanwhile; only its first size counts. */
static int read_jitdump(JitTable *table, int fd)
{
	_cleanup_free_ uint8_t *part = xmalloc(DUMP_PART);
	JitdumpParser parser;
	struct stat st;

	if (fstat(fd, &st) || st.st_size < 0 || (uint64_t)st.st_size > FILE_SIZE_MAX)
		return -EFBIG;
	do {
		int r;

		jit_table_begin_pass(table, &parser);
		r = parse_jitdump(&parser, fd, st.st_size, part);
		if (r < 0)
			return r;
	} while (jit_table_end_pass(table, &parser));
	return 0;
}

static int read_table(JitTable *table, const Request *request, int fd)
{
	uint64_t *sorted =
		xcalloc(request->count, sizeof(*sorted)); /* the table needs it until it is freed */
	memcpy(sorted, request->addresses, request->count * sizeof(*sorted));
	qsort(sorted, request->count, sizeof(*sorted), compare_addresses);
	jit_table_limit(table, sorted, request->count);
	return request->kind == JIT_PERF_MAP ? read_perf_map(table, fd) : read_jitdump(table, fd);
}

static void child_main(int socket, const int *fds, const void *argument)
{
	const Request *request = argument;
	Emitter emitter = {.socket = socket, .request = request, .table = jit_table_new()};
	const JitTableSummary *summary = jit_table_summary(emitter.table);
	struct rec_total end = {.h = {.kind = REC_TOTAL, .len = sizeof(end)}};
	int r = read_table(emitter.table, request, fds[0]);

	for (size_t i = 0; i < request->count && r == 0; i++) {
		emitter.avma = request->addresses[i];
		jit_table_find(emitter.table, emitter.avma, emit_name, &emitter);
	}
	/*
	 * Each piece is sent once, and the younger after the older one, because their order counts.
	 */
	jit_table_all_found(emitter.table, emit_piece, &emitter);
	end.counted_kind = -r;
	end.sent = summary->pieces;
	end.lost =
		summary->malformed + summary->unknown + summary->moves_unknown + summary->no_room;
	vec_append(&emitter.output, (const uint8_t *)&end, sizeof(end));
	sandbox_send(socket, emitter.output.items, emitter.output.count, -1);
}

/* ---- in wallprof ------------------------------------------------------------------------ */

typedef VEC(uint8_t) Bytes;

/* Receives all that the child sends before it ends or its time is over. */
static void receive_all(int socket, uint64_t deadline_ns, Bytes *bytes)
{
	for (uint64_t now; (now = now_ns()) < deadline_ns && bytes->count < OUTPUT_MAX &&
			   !signals_lookup_stopped();) {
		struct pollfd polled = {.fd = socket, .events = POLLIN};
		ssize_t got;

		if (poll(&polled, 1,
			 MIN((deadline_ns - now) / NSEC_PER_MSEC + 1, SIGNALS_LOOKUP_POLL_MS)) <= 0)
			continue;
		vec_reserve(bytes, bytes->count + READ_SIZE);
		got = recv(socket, bytes->items + bytes->count, READ_SIZE, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return;
		bytes->count += got;
	}
}

static void ask_child(const JitFile *file, const Request *request, uint64_t deadline_ns,
		      Bytes *bytes)
{
	struct stat st;
	uint64_t size = fstat(file->fd, &st) ? 0 : MIN((uint64_t)st.st_size, FILE_SIZE_MAX);
	uint64_t seconds = SECONDS_BASE + size / BYTES_PER_SECOND;
	SandboxLimits limits = {.memory = SANDBOX_MEMORY + MIN(4 * size, MEMORY_MAX),
				.cpu_seconds = seconds};
	uint64_t until_ns = now_ns() + WALL_PER_CPU * seconds * NSEC_PER_SEC;
	Sandbox sandbox;

	if (sandbox_start(child_main, &file->fd, 1, request, &limits, &sandbox))
		return;
	receive_all(sandbox.socket, deadline_ns ? MIN(until_ns, deadline_ns) : until_ns, bytes);
	sandbox_end(&sandbox);
}

/* Returns the next record, or NULL if it is malformed. */
static struct record *next_record(const Bytes *bytes, size_t *offset)
{
	struct record *record = (struct record *)(bytes->items + *offset);
	size_t rest = bytes->count - *offset;

	if (rest < sizeof(*record) || record->len < sizeof(*record) || record->len > rest ||
	    record->len % 8 || capture_check(record) != CAPTURE_RECORD_GOOD)
		return NULL;
	*offset += record->len;
	return record;
}

typedef struct Reading {
	JitFile *file;
	uint32_t id; /* of the REC_FILE */
	const Request *request;
	const SymbolsSink *sink;
	SymbolsSummary *summary;
	bool reported; /* the REC_FILE was emitted */
} Reading;

static int emit_file(Reading *reading)
{
	size_t path_size = strlen(reading->file->path) + 1;
	size_t size = (offsetof(struct rec_file, path) + path_size + 7) & ~7UL;
	_cleanup_free_ struct rec_file *file = xcalloc(1, size);

	reading->reported = true;
	reading->file->id = reading->id;
	file->h = (struct record){.kind = REC_FILE, .len = size, .flags = FILE_JIT};
	file->id = reading->id;
	memcpy(file->path, reading->file->path, path_size);
	return reading->sink->emit(reading->sink->user, &file->h);
}

static int emit_note(const Reading *reading, const char *problem)
{
	return symbol_files_emit_note(reading->sink, reading->reported ? reading->id : 0,
				      reading->file->path, problem);
}

static int emit_code(Reading *reading, struct rec_code *code)
{
	if (code->ns_tgid != reading->request->ns_tgid || code->start >= code->end)
		return 0;
	code->file = reading->id;
	return reading->sink->emit(reading->sink->user, &code->h);
}

static int emit_symbol(Reading *reading, struct rec_symbol *symbol)
{
	const SymbolsSink *sink = reading->sink;

	if (symbol->count != 1 || symbol->lib)
		return 0;
	symbol->file = reading->id;
	reading->summary->named++;
	if (sink->sources)
		sources_weigh_symbol(sink->sources, symbol, 1, 0);
	return sink->emit(sink->user, &symbol->h);
}

static int emit_end(Reading *reading, const struct rec_total *end)
{
	_cleanup_free_ char *text = NULL;

	if (end->counted_kind)
		return emit_note(reading, end->counted_kind == EBADMSG
						  ? "not a jitdump"
						  : strerror(end->counted_kind));
	if (end->lost == 0)
		return 0;
	text = xasprintf("%" PRIu64 " malformed entries", end->lost);
	return emit_note(reading, text);
}

static int emit_answers(Reading *reading, const Bytes *bytes)
{
	struct record *record;
	size_t offset = 0;
	int r = 0;

	while (r == 0 && (record = next_record(bytes, &offset))) {
		if (record->kind == REC_TOTAL)
			return emit_end(reading, (const struct rec_total *)record);
		if (!reading->reported)
			r = emit_file(reading);
		if (r == 0 && record->kind == REC_CODE)
			r = emit_code(reading, (struct rec_code *)record);
		else if (r == 0 && record->kind == REC_SYMBOL)
			r = emit_symbol(reading, (struct rec_symbol *)record);
	}
	return r ? r : emit_note(reading, "its reader crashed or took too long");
}

int jit_names_resolve(JitFiles *files, const uint64_t *addresses, size_t count, uint32_t next_file,
		      const SymbolsSink *sink, SymbolsSummary *summary)
{
	int r = 0;

	if (count == 0)
		return 0;
	for (size_t i = 0; i < files->list.count && r == 0; i++) {
		JitFile *file = &files->list.items[i];
		Request request = {file->kind, file->ns_tgid, addresses, count};
		Reading reading = {file, next_file, &request, sink, summary, false};
		const char *over;
		Bytes bytes = {};

		if (!jit_files_open_last(file)) {
			/* Most processes that make code have no perf map, but a dump was mapped. */
			if (file->kind == JIT_DUMP)
				r = emit_note(&reading,
					      "the jitdump was deleted or cannot be opened");
			continue;
		}
		over = symbol_jobs_why_over(sink->deadline_ns);
		if (over) {
			r = emit_note(&reading, over);
			continue;
		}
		ask_child(file, &request, sink->deadline_ns, &bytes);
		r = emit_answers(&reading, &bytes);
		next_file += reading.reported;
		vec_free(&bytes);
		closep(&file->fd);
	}
	return r;
}
