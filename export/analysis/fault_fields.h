/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault_fields.h - what all writers say of a page fault.
 */
#ifndef WALLPROF_FAULT_FIELDS_H
#define WALLPROF_FAULT_FIELDS_H

#include "stack_table.h"
#include "timeline.h"

enum fault_class {
	FAULT_CLASS_FIRST_TOUCH, /* of memory that is no file's */
	FAULT_CLASS_COPY,	 /* a write to a page that was shared, which is copied */
	FAULT_CLASS_EITHER,	 /* one of these two: the hook does not tell which */
	FAULT_CLASS_WRITABLE,	 /* the first write to a clean page of a shared file */
	FAULT_CLASS_FILE,	 /* the page was in memory, or being read */
	FAULT_CLASS_FILE_MAJOR,	 /* it was read for this fault */
	FAULT_CLASS_SWAP,
	FAULT_CLASS_PROGRAM, /* userfaultfd */
	FAULT_CLASS_FAILED,  /* it ended in a signal or an error */
	FAULT_CLASS_UNKNOWN, /* nobody could say what is mapped there */
	FAULT_CLASSES
};

enum fault_class fault_class(const Fault *fault);

/* "first touch", "file, major", …. Static. */
const char *fault_class_label(enum fault_class class);

/* "write by the program", "read by the kernel", "by the kernel itself", …. Static. */
const char *fault_access_label(const Fault *fault);

/* "heap", "stack", "file", …. Static. */
const char *fault_memory_label(const Fault *fault);

/* What was there before: "nothing", "in memory", "read for it", …. Static; NULL if not known. */
const char *fault_page_label(const Fault *fault);

/* How it is known: "handle_mm_fault", "page_fault_user and accounting", …. Static. */
const char *fault_hook_label(const Fault *fault);

/* The stack of the program that caused it. */
StackRef fault_stack(const Timeline *timeline, const Thread *thread, const Fault *fault);

/* How many faults took at least so long; ret_others: how many did not. */
uint64_t fault_count(const Timeline *timeline, uint64_t least_ns, uint64_t *ret_others);

/* The shortest time (ns) such that no more faults took so long than the budget allows; 0: all. */
uint64_t fault_fit(const Timeline *timeline, uint64_t budget);

#endif
