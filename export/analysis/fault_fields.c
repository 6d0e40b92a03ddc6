/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fault_fields.h"

static bool is_of_file(const Fault *fault)
{
	return fault->file != OBJECT_NONE || fault->memory == MEMORY_FILE ||
	       fault->memory == MEMORY_SHARED;
}

static bool is_copy(const Fault *fault)
{
	return fault->page == PAGE_PROTECTED && fault->flags & FAULT_WRITE;
}

enum fault_class fault_class(const Fault *fault)
{
	if (fault->flags & FAULT_FAILED)
		return FAULT_CLASS_FAILED;
	if (fault->by_program)
		return FAULT_CLASS_PROGRAM;
	if (is_of_file(fault) && fault->flags & FAULT_MAJOR)
		return FAULT_CLASS_FILE_MAJOR;
	if (fault->memory == MEMORY_SHARED)
		return is_copy(fault) ? FAULT_CLASS_WRITABLE : FAULT_CLASS_FILE;
	if (is_copy(fault))
		return FAULT_CLASS_COPY;
	if (is_of_file(fault))
		return FAULT_CLASS_FILE;
	if (fault->memory == MEMORY_UNKNOWN)
		return FAULT_CLASS_UNKNOWN;
	if (fault->flags & FAULT_MAJOR)
		return FAULT_CLASS_SWAP;
	return fault->page == PAGE_UNKNOWN && fault->flags & FAULT_WRITE ? FAULT_CLASS_EITHER
									 : FAULT_CLASS_FIRST_TOUCH;
}

const char *fault_class_label(enum fault_class class)
{
	static const char *const labels[FAULT_CLASSES] = {
		[FAULT_CLASS_FIRST_TOUCH] = "first touch",
		[FAULT_CLASS_COPY] = "copy-on-write",
		[FAULT_CLASS_EITHER] = "first touch or copy-on-write",
		[FAULT_CLASS_WRITABLE] = "file, first write",
		[FAULT_CLASS_FILE] = "file, minor",
		[FAULT_CLASS_FILE_MAJOR] = "file, major",
		[FAULT_CLASS_SWAP] = "swap",
		[FAULT_CLASS_PROGRAM] = "userfaultfd",
		[FAULT_CLASS_FAILED] = "failed",
		[FAULT_CLASS_UNKNOWN] = "of unknown memory",
	};

	return labels[class];
}

StackRef fault_stack(const Timeline *timeline, const Thread *thread, const Fault *fault)
{
	return (StackRef){
		.ns = fault->start_ns,
		.ns_tgid = timeline->processes.items[thread->process].ns_tgid,
		.user_stack = fault->user_stack,
		.kernel_stack = STACK_NONE,
		.leaf = LEAF_USER,
	};
}

uint64_t fault_count(const Timeline *timeline, uint64_t least_ns, uint64_t *ret_others)
{
	uint64_t count = 0, others = 0;

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		for (size_t j = 0; j < thread->faults.count; j++) {
			const Fault *fault = &thread->faults.items[j];

			if (fault->end_ns - fault->start_ns >= least_ns)
				count++;
			else
				others++;
		}
	}
	*ret_others = others;
	return count;
}

static uint64_t count_rows(const void *timeline, uint64_t least_ns, uint64_t *ret_others)
{
	return fault_count(timeline, least_ns, ret_others);
}

uint64_t fault_fit(const Timeline *timeline, uint64_t budget)
{
	return requests_fit_rows(count_rows, timeline, budget);
}
