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
	LEAF_COUNT = LEAF_REASON + REASON_COUNT,
};

/* A stack as the timeline names it; the tables give it an index. */
typedef struct StackRef {
	uint64_t ns; /* when the stack was taken */
	uint32_t ns_tgid;
	uint32_t user_stack, kernel_stack;
	uint8_t leaf; /* enum leaf */
} StackRef;

typedef struct StackTable StackTable;

StackTable *stack_table_new(const Timeline *timeline, Frames *frames);
void stack_table_free(StackTable *tables);
const Timeline *stack_table_timeline(const StackTable *tables);

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
uint32_t stack_table_stack_count(const StackTable *tables);
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
