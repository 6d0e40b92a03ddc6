/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fault_fields.h - the class of a page fault, and which faults fit a budget. */
#ifndef WALLPROF_FAULT_FIELDS_H
#define WALLPROF_FAULT_FIELDS_H

#include "stack_table.h"
#include "timeline.h"

enum fault_class {
	FAULT_CLASS_FIRST_TOUCH, /* of memory without a file */
	FAULT_CLASS_COPY,	 /* a write to a page that was shared, which is copied */
	/* One of these two: the hook does not distinguish them. */
	FAULT_CLASS_EITHER,
	FAULT_CLASS_WRITABLE,	/* the first write to a clean page of a shared file */
	FAULT_CLASS_FILE,	/* the page was in memory, or was being read */
	FAULT_CLASS_FILE_MAJOR, /* it was read for this fault */
	FAULT_CLASS_SWAP,
	FAULT_CLASS_PROGRAM, /* userfaultfd */
	FAULT_CLASS_FAILED,  /* it ended in a signal or an error */
	FAULT_CLASS_UNKNOWN, /* what is mapped there is unknown */
	FAULT_CLASSES
};

enum fault_class fault_class(const Fault *fault);

/* Returns "first touch", "file, major", …. Static. */
const char *fault_class_label(enum fault_class class);

/* Returns the stack of the program that caused it. */
StackRef fault_stack(const Timeline *timeline, const Thread *thread, const Fault *fault);

/* Returns how many faults took at least this long; ret_others: how many did not. */
uint64_t fault_count(const Timeline *timeline, uint64_t least_ns, uint64_t *ret_others);

/*
 * Returns the shortest time (ns) such that no more faults took this long than the budget allows; 0:
 * all fit.
 */
uint64_t fault_fit(const Timeline *timeline, uint64_t budget);

#endif
