/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pprof_places.h"
#include "pprof_fields.h"
#include "text.h"
#include <ctype.h>

#define NONE UINT32_MAX

static uint64_t pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

uint64_t pprof_string(StackTable *tables, const char *text)
{
	return text && *text ? pprof_interned(stack_table_string(tables, text)) : 0;
}

void pprof_places_init(PprofPlaces *places, StackTable *tables)
{
	*places = (PprofPlaces){.tables = tables};
}

void pprof_places_free(PprofPlaces *places)
{
	vec_free(&places->ends);
	vec_free(&places->chains);
	map_free(&places->chain_index);
	vec_free(&places->locations);
	vec_free(&places->mappings);
	vec_free(&places->lib_mappings);
	vec_free(&places->ids);
}

/* Returns the frame that a row was made of; NULL: it is a pseudo frame. */
static const Frame *frame_of_row(const StackTable *tables, uint32_t row)
{
	uint32_t frame = tables->frame_rows.items[row].frame;

	return frame == NONE ? NULL : &tables->frames->list.items[frame];
}

/* ---- locations ---------------------------------------------------------------------------- */

/* Returns whether the function of a row is inlined into that of the row before it. */
static bool is_inlined(const StackTable *tables, uint32_t row, uint32_t before)
{
	const Frame *inner = frame_of_row(tables, row), *outer = frame_of_row(tables, before);

	return inner && outer && inner->inline_depth > 0 && inner->lib == outer->lib &&
	       inner->address == outer->address && inner->inline_depth == outer->inline_depth + 1;
}

static uint32_t add_chain(PprofPlaces *places, uint32_t outer, uint32_t frame)
{
	uint32_t chain = map_get(&places->chain_index, pair(outer, frame));

	if (chain != MAP_NONE)
		return chain;
	chain = places->chains.count;
	*vec_push(&places->chains) = (PprofChain){.outer = outer, .frame = frame};
	map_set(&places->chain_index, pair(outer, frame), chain);
	return chain;
}

static PprofEnd make_end(PprofPlaces *places, uint32_t stack)
{
	const StackRow *row = &places->tables->stacks.items[stack];
	uint32_t outer = NONE;
	bool inlined = false;

	if (row->prefix != NONE) {
		inlined = is_inlined(places->tables, row->frame,
				     places->tables->stacks.items[row->prefix].frame);
		outer = inlined ? places->ends.items[row->prefix].chain_after - 1 : NONE;
	}
	return (PprofEnd){add_chain(places, outer, row->frame) + 1, inlined};
}

/* Sets the ends of a stack and of what it is made of; prefixes have lower indexes. */
static void find_ends(PprofPlaces *places, uint32_t stack)
{
	while (places->ends.count <= stack) {
		uint32_t next = places->ends.count;
		PprofEnd end = make_end(places, next);

		*vec_push(&places->ends) = end;
	}
}

static uint64_t location_id(PprofPlaces *places, uint32_t chain)
{
	uint32_t *location = &places->chains.items[chain].location;

	if (*location == 0) {
		*vec_push(&places->locations) = chain;
		*location = places->locations.count;
	}
	return *location;
}

const uint64_t *pprof_places_ids(PprofPlaces *places, uint32_t stack, size_t *ret_count)
{
	places->ids.count = 0;
	find_ends(places, stack);
	while (stack != NONE) {
		uint32_t chain = places->ends.items[stack].chain_after - 1;

		*vec_push(&places->ids) = location_id(places, chain);
		while (places->ends.items[stack].inlined)
			stack = stack_table_stack_prefix(places->tables, stack);
		stack = stack_table_stack_prefix(places->tables, stack);
	}
	*ret_count = places->ids.count;
	return places->ids.items;
}

/* ---- mappings ----------------------------------------------------------------------------- */

/* Returns the file that a library is; NULL: the kernel, or code made at run time. */
static const MappedFile *file_of(const StackTable *tables, const Library *library)
{
	return library->file ? address_spaces_file(tables->frames->spaces, library->file) : NULL;
}

/* Returns the address of a frame in its file, or in the kernel's address space. */
static uint64_t address_of(const StackTable *tables, const Frame *frame)
{
	const Library *library;
	const MappedFile *file;

	if (frame->script || frame->address == UINT64_MAX)
		return 0;
	if (frame->lib == LIBRARY_NONE)
		return frame->address;
	library = &tables->frames->libraries.items[frame->lib];
	file = file_of(tables, library);
	if (library->kernel)
		return frame->address <= UINT64_MAX - FRAMES_KERNEL_BASE
			       ? frame->address + FRAMES_KERNEL_BASE
			       : frame->address;
	return frame->address + (file ? file->base_svma : 0);
}

/* Where nothing is known of the mapping, it is the whole address space. */
static PprofMapping mapping_of(const StackTable *tables, uint32_t lib, const Library *library,
			       uint64_t address)
{
	const MappedFile *file = file_of(tables, library);
	const MappedText *text = file ? address_spaces_text(file, address) : NULL;
	PprofMapping mapping = {.end = INT64_MAX, .lib = lib, .next = NONE};

	if (text)
		return (PprofMapping){text->start, text->end, text->offset, lib, NONE};
	if (library->kernel) {
		mapping.start = FRAMES_KERNEL_BASE;
		mapping.end = UINT64_MAX;
	}
	return mapping;
}

/* Returns the ID of the mapping of a library that an address is in. */
static uint64_t library_mapping(PprofPlaces *places, uint32_t lib, uint32_t library,
				uint64_t address)
{
	const StackTable *tables = places->tables;
	PprofMapping wanted =
		mapping_of(tables, lib, &tables->frames->libraries.items[library], address);
	uint32_t *link;

	while (places->lib_mappings.count <= lib)
		*vec_push(&places->lib_mappings) = NONE;
	link = &places->lib_mappings.items[lib];
	while (*link != NONE) {
		PprofMapping *known = &places->mappings.items[*link];

		if (known->start == wanted.start && known->offset == wanted.offset) {
			known->end = MAX(known->end, wanted.end);
			return (uint64_t)*link + 1;
		}
		link = &known->next;
	}
	*link = places->mappings.count;
	*vec_push(&places->mappings) = wanted;
	return places->mappings.count;
}

/* Returns the ID of the mapping that a frame is in; 0: none. */
static uint64_t mapping_id(PprofPlaces *places, const Frame *frame, uint32_t resource,
			   uint64_t address)
{
	if (frame->lib == LIBRARY_NONE || frame->script || resource == NONE)
		return 0;
	return library_mapping(places, places->tables->resources.items[resource].lib, frame->lib,
			       address);
}

/* Returns the path of the program that was recorded; NULL: there is no command. */
static const char *program_path(const Timeline *timeline)
{
	if (timeline->command_thread >= timeline->threads.count)
		return NULL;
	return timeline->processes.items[timeline->threads.items[timeline->command_thread].process]
		.path;
}

/* Returns whether a file is called as libraries are: "libx.so", "libx.so.1", "libx-1.so_2". */
static bool is_library(const char *path)
{
	for (const char *at = path; (at = strstr(at, ".so")); at++) {
		const char *after = at + strlen(".so");

		if (!*after || (strchr("._", *after) && isdigit((unsigned char)after[1])))
			return true;
	}
	return false;
}

/*
 * By convention the first mapping is that of the program; readers show its name. Without a command,
 * it is the first one that is not called as a library is, as for pprof itself.
 */
static void add_program(PprofPlaces *places)
{
	const StackTable *tables = places->tables;
	const char *path = program_path(tables->timeline);

	for (uint32_t i = 0; i < tables->libs.count; i++) {
		uint32_t library = tables->libs.items[i].lib;
		const MappedFile *file = file_of(tables, &tables->frames->libraries.items[library]);

		if (!file || file->texts.count == 0 ||
		    (path ? strcmp(path, file->path) != 0 : is_library(file->path)))
			continue;
		library_mapping(places, i, library, file->texts.items[0].start);
		break;
	}
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Lines are written from the innermost inlined function outwards. */
static void write_location(PprofPlaces *places, Output *out, Proto *message, Proto *line,
			   uint32_t id)
{
	const StackTable *tables = places->tables;
	const PprofChain *chain = &places->chains.items[places->locations.items[id - 1]];
	const Frame *frame = frame_of_row(tables, chain->frame);
	uint32_t func = tables->frame_rows.items[chain->frame].func;
	uint64_t address = frame ? address_of(tables, frame) : 0;

	proto_clear(message);
	proto_u64(message, LOCATION_ID, id);
	if (frame)
		proto_u64(message, LOCATION_MAPPING_ID,
			  mapping_id(places, frame, tables->funcs.items[func].resource, address));
	proto_u64(message, LOCATION_ADDRESS, address);
	while (chain) {
		const FrameRow *row = &tables->frame_rows.items[chain->frame];

		proto_clear(line);
		proto_u64(line, LINE_FUNCTION_ID, (uint64_t)row->func + 1);
		proto_u64(line, LINE_LINE, row->line);
		proto_message(message, LOCATION_LINE, line);
		chain = chain->outer == NONE ? NULL : &places->chains.items[chain->outer];
	}
	proto_emit(out, PROFILE_LOCATION, message);
}

static void write_function(const StackTable *tables, Output *out, Proto *message, uint32_t func)
{
	const FuncRow *row = &tables->funcs.items[func];

	proto_clear(message);
	proto_u64(message, FUNCTION_ID, (uint64_t)func + 1);
	proto_u64(message, FUNCTION_NAME, pprof_interned(row->name));
	proto_u64(message, FUNCTION_SYSTEM_NAME, pprof_interned(row->name));
	if (row->source != NONE)
		proto_u64(message, FUNCTION_FILENAME,
			  pprof_interned(tables->sources.items[row->source].filename));
	proto_emit(out, PROFILE_FUNCTION, message);
}

/* All names that can be found are there, so that no reader looks for others. */
static void write_mapping(PprofPlaces *places, Output *out, Proto *message, uint32_t id)
{
	const PprofMapping *mapping = &places->mappings.items[id - 1];
	StackTable *tables = places->tables;
	uint32_t number = tables->libs.items[mapping->lib].lib;
	const Library *library = &tables->frames->libraries.items[number];
	char build_id[2 * UINT8_MAX + 1] = "";

	if (library->build_id_len > 0)
		text_hex(build_id, library->build_id, library->build_id_len, "0123456789abcdef");
	proto_clear(message);
	proto_u64(message, MAPPING_ID, id);
	proto_u64(message, MAPPING_START, mapping->start);
	proto_u64(message, MAPPING_LIMIT, mapping->end);
	proto_u64(message, MAPPING_OFFSET, mapping->offset);
	proto_u64(message, MAPPING_FILENAME,
		  pprof_string(tables, library->path ? library->path : library->name));
	proto_u64(message, MAPPING_BUILD_ID, pprof_string(tables, build_id));
	proto_bool(message, MAPPING_HAS_FUNCTIONS, true);
	proto_bool(message, MAPPING_HAS_FILENAMES, true);
	proto_bool(message, MAPPING_HAS_LINE_NUMBERS, true);
	proto_bool(message, MAPPING_HAS_INLINE_FRAMES, true);
	proto_emit(out, PROFILE_MAPPING, message);
}

void pprof_places_write(PprofPlaces *places, Output *out)
{
	Proto message = {}, line = {};

	add_program(places);
	for (size_t i = 0; i < places->locations.count; i++)
		write_location(places, out, &message, &line, i + 1);
	for (size_t i = 0; i < places->tables->funcs.count; i++)
		write_function(places->tables, out, &message, i);
	for (size_t i = 0; i < places->mappings.count; i++)
		write_mapping(places, out, &message, i + 1);
	proto_free(&line);
	proto_free(&message);
}
