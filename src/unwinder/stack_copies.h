/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_copies.h - copies of stacks that BPF could not walk because a mapping or a table was
 * missing. They are kept in memory until all is known, and then walked. They are never written to a
 * file.
 */
#ifndef WALLPROF_STACK_COPIES_H
#define WALLPROF_STACK_COPIES_H

#include "images.h"
#include "record_info.h"
#include "table_registry.h"

typedef struct StackCopies StackCopies;

#define STACK_COPIES_MAX (64u << 20) /* bytes of copies that wait for a table */

#define STACK_COPIES_TIMEOUT_NS (5 * NSEC_PER_SEC) /* how long a copy waits for a table */

typedef struct StackCopiesCounts {
	uint64_t taken;	  /* copies that arrived */
	uint64_t walked;  /* completely */
	uint64_t partly;  /* walked, but the stack is still truncated */
	uint64_t dropped; /* memory was short, or the process is not known: the stack that BPF
			     walked stays */
	uint64_t dropped_since_ns; /* the time of the earliest of these */
} StackCopiesCounts;

/* maps and codes must outlive it. */
StackCopies *stack_copies_new(const UnwindMaps *maps, const JitCodes *codes, RecordSink sink,
			      void *user);
void stack_copies_free(StackCopies *copies);

/*
 * Returns the mapping as a walk uses it. Without a file it has NO_TABLE_YET while the process may
 * say more of its code, for stacks of that time (UINT64_MAX: from now on).
 */
struct unwind_mapping stack_copies_mapping(const StackCopies *copies, TableRegistry *tables,
					   const Image *image, const ImageMapping *mapping,
					   uint64_t ns);

/* Keeps a record that BPF sent. */
void stack_copies_add(StackCopies *copies, const struct rec_stack_copy *copy);

enum copies_which {
	COPIES_NEW,  /* those that could not be walked before: they are younger than the last
			watermark_ns */
	COPIES_ALL,  /* also those that wait for a table: new tables are ready */
	COPIES_LAST, /* all of them, with what is known */
};

/*
 * Walks the copies for which all is known: up to watermark_ns all mappings are in images. Emits
 * REC_STACK. Returns 0 or the sink's error.
 */
int stack_copies_walk(StackCopies *copies, const Images *images, TableRegistry *tables,
		      uint64_t watermark_ns, enum copies_which which);

/* The time of the oldest copy that waits; UINT64_MAX if none does. */
uint64_t stack_copies_oldest_ns(const StackCopies *copies);

StackCopiesCounts stack_copies_counts(const StackCopies *copies);

#endif
