/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_shared.c - writes the tables that threads share as JSON. Each table is an object of
 * columns of equal length.
 */
#include "firefox_parts.h"
#include "text.h"

#define NONE	      UINT32_MAX
#define RESOURCE_LIB  1
#define RESOURCE_NONE 0

static void write_lib(Json *json, const StackTable *tables, const LibRow *row)
{
	const Library *library = &tables->frames->libraries.items[row->lib];
	const char *machine = timeline_meta(tables->timeline, "machine");
	const char *path = library->path ? library->path : library->name;
	char code_id[2 * UINT8_MAX + 1];

	json_begin_object(json);
	json_key_string(json, "arch", machine ? machine : "x86_64");
	json_key_string(json, "name", library->name);
	json_key_string(json, "path", path);
	json_key_string(json, "debugName", row->debug_name);
	json_key_string(json, "debugPath", path);
	json_key_string(json, "breakpadId", row->breakpad_id);
	if (library->build_id_len > 0) {
		text_hex(code_id, library->build_id, library->build_id_len, "0123456789abcdef");
		json_key_string(json, "codeId", code_id);
	} else {
		json_key_null(json, "codeId");
	}
	json_end_object(json);
}

/* Writes a number, or null for "none". */
static void json_index(Json *json, uint32_t index)
{
	if (index == NONE)
		json_put_null(json);
	else
		json_u64(json, index);
}

/* Writes one column: `expr` for each row of `vec`, which it names `row`. */
#define COLUMN(json, name, vec, expr)                                                              \
	do {                                                                                       \
		json_key_array(json, name);                                                        \
		for (size_t i = 0; i < (vec)->count; i++) {                                        \
			__typeof__((vec)->items) row = &(vec)->items[i];                           \
			(void)row;                                                                 \
			expr;                                                                      \
		}                                                                                  \
		json_end_array(json);                                                              \
	} while (0)

static void table_end(Json *json, size_t length)
{
	json_key_u64(json, "length", length);
	json_end_object(json);
}

static void write_stacks(Json *json, const StackTable *tables)
{
	json_key_object(json, "stackTable");
	COLUMN(json, "frame", &tables->stacks, json_u64(json, row->frame));
	COLUMN(json, "prefix", &tables->stacks, json_index(json, row->prefix));
	table_end(json, tables->stacks.count);
}

static void write_frames(Json *json, const StackTable *tables)
{
	json_key_object(json, "frameTable");
	COLUMN(json, "address", &tables->frame_rows, json_s64(json, row->address));
	COLUMN(json, "inlineDepth", &tables->frame_rows, json_u64(json, row->inline_depth));
	COLUMN(json, "category", &tables->frame_rows, json_u64(json, row->category));
	COLUMN(json, "subcategory", &tables->frame_rows, json_u64(json, 0));
	COLUMN(json, "func", &tables->frame_rows, json_u64(json, row->func));
	COLUMN(json, "nativeSymbol", &tables->frame_rows, json_index(json, row->native));
	COLUMN(json, "innerWindowID", &tables->frame_rows, json_u64(json, 0));
	COLUMN(json, "line", &tables->frame_rows, json_index(json, row->line ? row->line : NONE));
	COLUMN(json, "column", &tables->frame_rows, json_put_null(json));
	COLUMN(json, "originalLocation", &tables->frame_rows, json_put_null(json));
	table_end(json, tables->frame_rows.count);
}

static void write_funcs(Json *json, const StackTable *tables)
{
	json_key_object(json, "funcTable");
	COLUMN(json, "name", &tables->funcs, json_u64(json, row->name));
	COLUMN(json, "isJS", &tables->funcs, json_bool(json, row->script));
	COLUMN(json, "relevantForJS", &tables->funcs, json_bool(json, false));
	COLUMN(json, "resource", &tables->funcs,
	       json_s64(json, row->resource == NONE ? -1 : (int64_t)row->resource));
	COLUMN(json, "source", &tables->funcs, json_index(json, row->source));
	COLUMN(json, "lineNumber", &tables->funcs, json_put_null(json));
	COLUMN(json, "columnNumber", &tables->funcs, json_put_null(json));
	COLUMN(json, "originalLocation", &tables->funcs, json_put_null(json));
	table_end(json, tables->funcs.count);
}

static void write_resources(Json *json, const StackTable *tables)
{
	json_key_object(json, "resourceTable");
	COLUMN(json, "name", &tables->resources, json_u64(json, row->name));
	COLUMN(json, "host", &tables->resources, json_put_null(json));
	COLUMN(json, "type", &tables->resources,
	       json_u64(json, row->lib == NONE ? RESOURCE_NONE : RESOURCE_LIB));
	COLUMN(json, "lib", &tables->resources, json_index(json, row->lib));
	table_end(json, tables->resources.count);
}

static void write_natives(Json *json, const StackTable *tables)
{
	json_key_object(json, "nativeSymbols");
	COLUMN(json, "libIndex", &tables->natives, json_u64(json, row->lib));
	COLUMN(json, "address", &tables->natives, json_u64(json, row->address));
	COLUMN(json, "name", &tables->natives, json_u64(json, row->name));
	COLUMN(json, "functionSize", &tables->natives,
	       json_index(json, row->size ? row->size : NONE));
	table_end(json, tables->natives.count);
}

/* The text is written from the capture's bytes into the file; no valid copy is made in between. */
static void write_text(Json *json, const Frames *frames, const SourceRow *row)
{
	const SourceText *text =
		frames_source_text(frames, strings_get(&frames->strings, row->path));

	if (text)
		json_text(json, text->text, text->size);
	else
		json_put_null(json);
}

static void write_sources(Json *json, const StackTable *tables)
{
	json_key_object(json, "sources");
	COLUMN(json, "id", &tables->sources, json_put_null(json));
	COLUMN(json, "filename", &tables->sources, json_u64(json, row->filename));
	COLUMN(json, "startLine", &tables->sources, json_u64(json, 1));
	COLUMN(json, "startColumn", &tables->sources, json_u64(json, 1));
	COLUMN(json, "sourceMapURL", &tables->sources, json_put_null(json));
	COLUMN(json, "content", &tables->sources, write_text(json, tables->frames, row));
	table_end(json, tables->sources.count);

	json_key_object(json, "sourceLocationTable");
	json_key_array(json, "source");
	json_end_array(json);
	json_key_array(json, "line");
	json_end_array(json);
	json_key_array(json, "column");
	json_end_array(json);
	table_end(json, 0);
}

void firefox_write_shared(const StackTable *tables, Json *json)
{
	json_key_array(json, "libs");
	for (size_t i = 0; i < tables->libs.count; i++)
		write_lib(json, tables, &tables->libs.items[i]);
	json_end_array(json);

	json_key_object(json, "shared");
	write_stacks(json, tables);
	write_frames(json, tables);
	write_funcs(json, tables);
	write_resources(json, tables);
	write_natives(json, tables);
	write_sources(json, tables);
	json_key_array(json, "stringArray");
	for (size_t i = 0; i < tables->strings.list.count; i++)
		json_put_string(json, strings_get(&tables->strings, i));
	json_end_array(json);
	json_end_object(json);
}
