/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_copies.h - copies of stacks that BPF could not walk for want of a mapping or a table: kept
 * in memory until all is known, then walked. They are never written anywhere.
 */
#ifndef WALLPROF_STACK_COPIES_H
#define WALLPROF_STACK_COPIES_H

#include "images.h"
#include "record_sink.h"
#include "table_registry.h"

typedef struct StackCopies StackCopies;

#define STACK_COPIES_MAX (64u << 20) /* bytes of copies that wait for a table */

#define STACK_COPIES_TIMEOUT_NS                                                                    \
	(5 * NSEC_PER_SEC) /* a table not ready by then is not waited for                          \
			    */

typedef struct StackCopiesCounts {
	uint64_t taken;	  /* copies that came */
	uint64_t walked;  /* whole then */
	uint64_t partly;  /* walked, and still not whole */
	uint64_t dropped; /* no memory, or no word of the process: what BPF walked stands */
	uint64_t dropped_since_ns; /* the earliest of these */
} StackCopiesCounts;

StackCopies *stack_copies_new(const UnwindMaps *maps, RecordSink sink, void *user);
void stack_copies_free(StackCopies *copies);

/* Keeps a record that BPF sent. */
void stack_copies_add(StackCopies *copies, const struct rec_stack_copy *copy);

enum copies_which {
	COPIES_NEW,  /* those that could not be walked before: watermark_ns was older than they are
		      */
	COPIES_ALL,  /* those that want a table, too: there are new ones */
	COPIES_LAST, /* all, with what there is */
};

/*
 * Walks those for which all is known: watermark_ns is the time up to which all mappings are in
 * images. Emits REC_STACK. Returns 0 or the sink's error.
 */
int stack_copies_walk(StackCopies *copies, const Images *images, TableRegistry *tables,
		      uint64_t watermark_ns, enum copies_which which);

/* When the oldest copy that waits was made; UINT64_MAX if none does. */
uint64_t stack_copies_oldest_ns(const StackCopies *copies);

StackCopiesCounts stack_copies_counts(const StackCopies *copies);

#endif
