/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_table_rows.h - shared by stack_table.c, which makes the tables, and the code that writes
 * them.
 */
#ifndef WALLPROF_STACK_TABLE_ROWS_H
#define WALLPROF_STACK_TABLE_ROWS_H

#include "stack_table.h"

/* Indexes of rows that are "none" are UINT32_MAX in all of these. */

typedef struct LibRow {
	uint32_t lib; /* Frames::libraries */
	char *debug_name;
	char *breakpad_id;
} LibRow;

typedef struct ResourceRow {
	uint32_t name, lib;
} ResourceRow;

typedef struct FuncRow {
	uint32_t name, resource, source;
} FuncRow;

typedef struct NativeRow {
	uint32_t lib, address, name, size;
} NativeRow;

typedef struct SourceRow {
	uint32_t filename;
	uint32_t path; /* Frames::strings: as in the capture */
} SourceRow;

typedef struct FrameRow {
	uint32_t func, native;
	uint32_t line; /* 0 = unknown */
	int32_t address;
	uint8_t inline_depth, category;
} FrameRow;

typedef struct StackRow {
	uint32_t prefix, frame;
} StackRow;

typedef struct StackKey {
	uint32_t user_stack, kernel_stack, ns_tgid, generation;
	uint8_t leaf;
} StackKey;

typedef struct CacheEntry {
	StackKey key;
	uint32_t stack;
	uint32_t next; /* another entry with the same hash, or MAP_NONE */
} CacheEntry;

struct StackTable {
	const Timeline *timeline;
	Frames *frames;
	Strings strings;
	VEC(LibRow) libs;
	VEC(uint32_t) lib_of; /* Frames::libraries -> libs */
	Strings lib_keys;     /* "debugName/breakpadId", same numbers as libs */
	Map resource_index;   /* lib -> resources */
	VEC(ResourceRow) resources;
	Map source_index; /* filename -> sources */
	VEC(SourceRow) sources;
	Map origin_index; /* (resource, source) -> an id for func_index */
	Map func_index;	  /* (name, origin) -> funcs */
	VEC(FuncRow) funcs;
	Map native_index; /* (resource, function start) -> natives */
	VEC(NativeRow) natives;
	VEC(FrameRow) frame_rows;
	VEC(uint32_t) frame_of;	   /* Frames::list -> frame_rows */
	Map pseudo_index;	   /* (func, category) -> pseudo_rows */
	VEC(uint32_t) pseudo_rows; /* -> frame_rows */
	Map stack_index;	   /* (prefix, frame) -> stacks */
	VEC(StackRow) stacks;
	Map cache_index; /* hash of StackKey -> first of cache */
	VEC(CacheEntry) cache;
};

/* Returns the row in libs of a library. */
uint32_t stack_table_lib(StackTable *tables, uint32_t library);

#endif
