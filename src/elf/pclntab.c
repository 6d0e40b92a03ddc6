/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pclntab.h"
#include <errno.h>
#include <string.h>

#define MAGIC_118 0xfffffff0u /* Go 1.18 and 1.19 */
#define MAGIC_120 0xfffffff1u /* since Go 1.20 */

struct header {
	uint32_t magic;
	uint8_t zeros[2], quantum, pointer_size;
	uint64_t functions, files, text;
	/* Offsets from the header; each part ends where the next one begins. */
	uint64_t names, units, file_names, values, function_table;
};

_Static_assert(sizeof(struct header) == PCLNTAB_HEADER, "pcHeader of runtime/symtab.go");

/* An entry of the function table. One more entry follows the last function. */
struct function_entry {
	uint32_t start;	 /* offset from Pclntab::text */
	uint32_t record; /* offset from the function table */
};

/* A function's record, up to where versions differ: startLine follows since Go 1.20. */
struct record {
	uint32_t entry, name, args, defer, stack, file, line, values, unit;
};

/* The end of a record; the offsets of its value tables and funcdata parts follow. */
struct record_end {
	uint8_t id, flags, pad, parts;
};

#define FLAG_TOP	 (1 << 0)
#define FLAG_MOVES_STACK (1 << 1)
#define VALUES_INLINED	 2	    /* the inlined call that an address is in */
#define PART_INLINED	 3	    /* all inlined calls */
#define FUNCTIONS_MAX	 (1u << 22) /* ten times those of the largest programs */
#define FILE_NONE	 UINT32_MAX
#define PART_NONE	 UINT32_MAX

/* An inlined call. */
struct call_118 {
	int16_t parent;
	uint8_t id, pad;
	uint32_t file, line, name, parent_pc;
};

struct call {
	uint8_t id, pad[3];
	uint32_t name, parent_pc, start_line;
};

/* ---- the table ------------------------------------------------------------------- */

/* Checks that offsets ascend, and that there is room for all functions. */
static bool is_plausible(const struct header *header, uint64_t size)
{
	return header->zeros[0] == 0 && header->zeros[1] == 0 && header->quantum == 1 &&
	       header->pointer_size == 8 && header->names >= sizeof(*header) &&
	       header->names <= header->units && header->units <= header->file_names &&
	       header->file_names <= header->values && header->values <= header->function_table &&
	       header->function_table <= size && header->functions > 0 &&
	       header->functions < (size - header->function_table) / sizeof(struct function_entry);
}

static bool read_header(PclntabBytes bytes, struct header *ret_header)
{
	if (bytes.size < sizeof(*ret_header))
		return false;
	memcpy(ret_header, bytes.at, sizeof(*ret_header));
	return (ret_header->magic == MAGIC_118 || ret_header->magic == MAGIC_120) &&
	       is_plausible(ret_header, bytes.size);
}

bool pclntab_begins(PclntabBytes bytes)
{
	struct header header;

	return read_header(bytes, &header);
}

bool pclntab_is_118(PclntabBytes bytes)
{
	struct header header;

	return read_header(bytes, &header) && header.magic == MAGIC_118;
}

static PclntabBytes part_of(PclntabBytes bytes, uint64_t from, uint64_t to)
{
	return (PclntabBytes){bytes.at + from, to - from};
}

/* Omits what follows the last terminated string: each string that begins inside ends inside. */
static PclntabBytes strings_of(PclntabBytes bytes, uint64_t from, uint64_t to)
{
	PclntabBytes part = part_of(bytes, from, to);
	const uint8_t *last = part.size ? memrchr(part.at, '\0', part.size) : NULL;

	part.size = last ? last + 1 - part.at : 0;
	return part;
}

int pclntab_open(Elf *elf, Pclntab *ret_table)
{
	PclntabLocation location;
	struct header header;
	int r = pclntab_locate(elf, &location);

	if (r < 0)
		return r;
	if (!read_header(location.bytes, &header) || header.functions > FUNCTIONS_MAX)
		return -ENOTSUP;
	*ret_table = (Pclntab){
		.text = location.text,
		.count = header.functions,
		.go118 = header.magic == MAGIC_118,
		.names = strings_of(location.bytes, header.names, header.units),
		.units = part_of(location.bytes, header.units, header.file_names),
		.files = strings_of(location.bytes, header.file_names, header.values),
		.values = part_of(location.bytes, header.values, header.function_table),
		.functions = part_of(location.bytes, header.function_table, location.bytes.size),
		.funcdata = location.funcdata,
	};
	return 0;
}

static const char *string_at(PclntabBytes strings, uint64_t offset)
{
	return offset < strings.size ? (const char *)strings.at + offset : "";
}

const char *pclntab_name(const Pclntab *table, uint32_t name)
{
	return string_at(table->names, name);
}

/* ---- functions --------------------------------------------------------------------- */

static size_t record_size(const Pclntab *table)
{
	return sizeof(struct record) + (table->go118 ? 0 : sizeof(uint32_t)) +
	       sizeof(struct record_end);
}

static struct function_entry entry_at(const Pclntab *table, uint32_t i)
{
	struct function_entry entry;

	memcpy(&entry, table->functions.at + (uint64_t)i * sizeof(entry), sizeof(entry));
	return entry;
}

static struct record record_of(const PclntabFunction *function)
{
	struct record record;

	memcpy(&record, function->record, sizeof(record));
	return record;
}

static struct record_end record_end(const Pclntab *table, const uint8_t *at)
{
	struct record_end end;

	memcpy(&end, at + record_size(table) - sizeof(end), sizeof(end));
	return end;
}

bool pclntab_function(const Pclntab *table, uint32_t i, PclntabFunction *ret_function)
{
	struct function_entry entry = entry_at(table, i), next = entry_at(table, i + 1);
	PclntabFunction function = {.start = table->text + entry.start,
				    .end = table->text + next.start};
	struct record_end end;
	uint64_t room, follow;

	if (next.start <= entry.start || function.end < function.start ||
	    entry.record > table->functions.size ||
	    table->functions.size - entry.record < record_size(table))
		return false;
	function.record = table->functions.at + entry.record;
	room = table->functions.size - entry.record - record_size(table);
	end = record_end(table, function.record);
	follow = ((uint64_t)record_of(&function).values + end.parts) * sizeof(uint32_t);
	if (follow > room)
		return false;
	function.name = record_of(&function).name;
	function.is_top = end.flags & FLAG_TOP;
	function.moves_stack = end.flags & FLAG_MOVES_STACK;
	*ret_function = function;
	return true;
}

bool pclntab_find(const Pclntab *table, uint64_t svma, PclntabFunction *ret_function)
{
	size_t next;

	if (svma < table->text)
		return false;
	next = partition_point(middle, table->count,
			       entry_at(table, middle).start <= svma - table->text);
	return next > 0 && pclntab_function(table, next - 1, ret_function) &&
	       svma >= ret_function->start && svma < ret_function->end;
}

/* ---- values ------------------------------------------------------------------------- */

static bool read_number(PclntabValues *values, uint32_t *ret_number)
{
	uint32_t number = 0;

	for (unsigned shift = 0; values->at < values->stop && shift < 35; shift += 7) {
		uint8_t byte = *values->at++;

		number |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_number = number;
			return true;
		}
	}
	return false;
}

/* offset: of a table of values; 0 = there is none. */
static PclntabValues values_at(const Pclntab *table, const PclntabFunction *function,
			       uint32_t offset)
{
	PclntabValues values = {
		.to = function->start,
		.end = function->end,
		.value = -1,
	};

	if (offset > 0 && offset < table->values.size) {
		values.at = table->values.at + offset;
		values.stop = table->values.at + table->values.size;
	}
	return values;
}

bool pclntab_has_stack(const PclntabFunction *function)
{
	return record_of(function).stack > 0;
}

PclntabValues pclntab_stack(const Pclntab *table, const PclntabFunction *function)
{
	return values_at(table, function, record_of(function).stack);
}

bool pclntab_next(PclntabValues *values)
{
	uint32_t change, length;

	if (values->to >= values->end || !read_number(values, &change) ||
	    (change == 0 && values->begun) || !read_number(values, &length) || length == 0)
		return false;
	values->begun = true;
	/* The lowest bit is the sign. */
	values->value = (uint32_t)values->value + (change & 1 ? ~(change >> 1) : change >> 1);
	values->from = values->to;
	values->to += MIN((uint64_t)length, values->end - values->to);
	return true;
}

/* Returns the value at an address; -1 = none. */
static int32_t value_at(const Pclntab *table, const PclntabFunction *function, uint32_t offset,
			uint64_t svma)
{
	PclntabValues values = values_at(table, function, offset);

	while (pclntab_next(&values))
		if (svma < values.to)
			return values.value;
	return -1;
}

/* ---- lines, and inlined calls --------------------------------------------------------- */

/* Returns the n-th number after a function's record; its value tables come first. */
static uint32_t number_after_record(const Pclntab *table, const PclntabFunction *function,
				    uint64_t n)
{
	uint32_t number;

	memcpy(&number, function->record + record_size(table) + n * sizeof(number), sizeof(number));
	return number;
}

static const char *source_at(const Pclntab *table, const PclntabFunction *function, uint64_t svma)
{
	struct record record = record_of(function);
	int32_t file = value_at(table, function, record.file, svma);
	uint64_t at = ((uint64_t)record.unit + (uint32_t)file) * sizeof(uint32_t);
	uint32_t name;

	if (file < 0 || table->units.size < sizeof(name) || at > table->units.size - sizeof(name))
		return "";
	memcpy(&name, table->units.at + at, sizeof(name));
	return name == FILE_NONE ? "" : string_at(table->files, name);
}

static uint32_t line_at(const Pclntab *table, const PclntabFunction *function, uint64_t svma)
{
	int32_t line = value_at(table, function, record_of(function).line, svma);

	return MAX(line, 0);
}

static bool read_call(const Pclntab *table, const PclntabFunction *function, uint32_t number,
		      struct call *ret_call)
{
	uint64_t values = record_of(function).values;
	uint64_t part = number_after_record(table, function, values + PART_INLINED);
	size_t size = table->go118 ? sizeof(struct call_118) : sizeof(struct call);
	struct call_118 call_118;
	const uint8_t *at;

	if (part == PART_NONE || part > table->funcdata.size ||
	    (table->funcdata.size - part) / size <= number)
		return false;
	at = table->funcdata.at + part + (uint64_t)number * size;
	if (table->go118) {
		memcpy(&call_118, at, sizeof(call_118));
		*ret_call = (struct call){.name = call_118.name, .parent_pc = call_118.parent_pc};
	} else {
		memcpy(ret_call, at, sizeof(*ret_call));
	}
	return ret_call->parent_pc < function->end - function->start &&
	       *pclntab_name(table, ret_call->name);
}

enum inlined { INLINED_NOT, INLINED, INLINED_UNKNOWN };

/* Determines whether an address is in an inlined call, and in which. */
static enum inlined call_at(const Pclntab *table, const PclntabFunction *function, uint64_t svma,
			    struct call *ret_call)
{
	int32_t number;

	if (record_of(function).values <= VALUES_INLINED ||
	    record_end(table, function->record).parts <= PART_INLINED)
		return INLINED_NOT;
	number = value_at(table, function, number_after_record(table, function, VALUES_INLINED),
			  svma);
	if (number < 0)
		return INLINED_NOT;
	return read_call(table, function, number, ret_call) ? INLINED : INLINED_UNKNOWN;
}

size_t pclntab_frames(const Pclntab *table, const PclntabFunction *function, uint64_t svma,
		      PclntabFrame ret_frames[static PCLNTAB_FRAMES_MAX])
{
	enum inlined inlined = INLINED;
	size_t count = 0;

	while (inlined == INLINED && count < PCLNTAB_FRAMES_MAX) {
		PclntabFrame *frame = &ret_frames[count++];
		struct call call;

		inlined = call_at(table, function, svma, &call);
		/* The line is that of the inlined function, which is not known. */
		if (inlined == INLINED_UNKNOWN) {
			*frame = (PclntabFrame){pclntab_name(table, function->name), "", 0};
			break;
		}
		*frame = (PclntabFrame){
			.name = pclntab_name(table,
					     inlined == INLINED ? call.name : function->name),
			.source = source_at(table, function, svma),
			.line = line_at(table, function, svma),
		};
		if (inlined == INLINED)
			svma = function->start + call.parent_pc;
	}
	return count;
}
