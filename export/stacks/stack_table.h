/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_table.h - the tables that all threads of a profile share: strings, stacks, frames,
 * functions, resources, libraries, native symbols, sources.
 *
 * They grow while rows and markers refer to them, and are written last.
 */
#ifndef WALLPROF_STACK_TABLE_H
#define WALLPROF_STACK_TABLE_H

#include "frames.h"
#include "json_writer.h"
#include "timeline.h"

/* What is at the leaf end of a stack, beyond its own frames. */
enum leaf {
	LEAF_USER,	/* running, known by the user frames of a switch-out */
	LEAF_TICK_USER, /* a tick in user mode */
	LEAF_KERNEL,	/* in the kernel: a tick, or a thread that is never in user mode */
	LEAF_NOT_ALIVE, /* between two threads that share a row */
	LEAF_HIDDEN,	/* a state that --state excludes */
	LEAF_RECORDING, /* recording's share of running time */
	LEAF_REASON,	/* LEAF_REASON + enum reason: a wait */
};

/* A stack as the timeline names it; the tables give it an index. */
typedef struct StackRef {
	uint64_t ns; /* when the stack was taken */
	uint32_t ns_tgid;
	uint32_t user_stack, kernel_stack;
	uint8_t leaf; /* enum leaf */
	/* It is another one's stack (Interval::unsampled). A frame before the leaf says so. */
	bool unsampled;
} StackRef;

/*
 * The rows of the tables, which export/firefox writes. Indexes of rows that are "none" are
 * UINT32_MAX in all of these.
 */

#define UNSAMPLED_FUNCTION "[not sampled: --budget]"

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
	bool script; /* the viewer's filter of implementations tells it from native code */
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
	uint32_t frame; /* Frames::list; none for a pseudo frame that is not there */
	uint32_t line;	/* 0 = unknown */
	int32_t address;
	uint8_t inline_depth, category;
} FrameRow;

typedef struct StackRow {
	uint32_t prefix, frame;
} StackRow;

typedef struct StackKey {
	uint32_t user_stack, kernel_stack, ns_tgid, generation;
	uint8_t leaf;
	bool unsampled;
} StackKey;

typedef struct CacheEntry {
	StackKey key;
	uint32_t stack;
	uint32_t next; /* another entry with the same hash, or MAP_NONE */
} CacheEntry;

/* What was looked up last. All zeros is no valid entry. */
typedef struct LastStack {
	StackKey key;
	uint32_t stack_after; /* the stack, plus 1 */
} LastStack;
typedef struct LastBelow {
	uint32_t root, stack, below_after; /* below, plus 1 */
} LastBelow;
#define LAST_STACKS 1024 /* a power of two */

typedef struct StackTable {
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
	Map below_index; /* (root, stack) -> stack */
	Map cache_index; /* hash of StackKey -> first of cache */
	VEC(CacheEntry) cache;
	/* stack -> its number in a sample_rows_walk(), or UINT32_MAX; all are that between two. */
	VEC(uint32_t) folds;
	/* Rows use few stacks repeatedly, and these tables stay in the CPU's cache. */
	LastStack last_stacks[LAST_STACKS];
	LastBelow last_below[LAST_STACKS];
} StackTable;

StackTable *stack_table_new(const Timeline *timeline, Frames *frames);
void stack_table_free(StackTable *tables);

/* Returns an index in stringArray; the text may hold any bytes. */
uint32_t stack_table_string(StackTable *tables, const char *s);

/* Returns an index in stackTable. */
uint32_t stack_table_stack(StackTable *tables, const StackRef *ref);
/*
 * Returns the index of a stack that ends with a pseudo frame, whose text may hold any bytes, under
 * another stack (UINT32_MAX: it is the root).
 */
uint32_t stack_table_pseudo_stack(StackTable *tables, uint32_t prefix, const char *name,
				  enum category category);
/* The same for the name of a process or a thread: the viewer shows no library beside it. */
uint32_t stack_table_named_stack(StackTable *tables, uint32_t prefix, const char *name,
				 enum category category);
/* Returns the stack that has the frames of `root` (UINT32_MAX: none) below those of `stack`. */
uint32_t stack_table_below(StackTable *tables, uint32_t root, uint32_t stack);
/* Returns the stack without its leaf; UINT32_MAX if the leaf was its root. */
uint32_t stack_table_stack_prefix(const StackTable *tables, uint32_t stack);

/* Returns the name of the leaf function of a stack, and its category. */
const char *stack_table_leaf_name(const StackTable *tables, uint32_t stack);
/* Returns the library that its leaf is in; NULL for a pseudo frame and unknown memory. */
const char *stack_table_leaf_library(const StackTable *tables, uint32_t stack);
enum category stack_table_leaf_category(const StackTable *tables, uint32_t stack);
/* Returns an id that two stacks share if their leaf functions are the same. */
uint32_t stack_table_leaf_function(const StackTable *tables, uint32_t stack);

#endif
