/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame_address.h - the addresses by which the frames of a REC_STACK are looked up; the code that
 * collects addresses and the code that shows frames must agree on them.
 */
#ifndef WALLPROF_FRAME_ADDRESS_H
#define WALLPROF_FRAME_ADDRESS_H

#include "records.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The address by which a frame of a stack is looked up: the call before a return
 * address, or the program counter itself if exact (see rec_stack).
 */
static inline uint64_t stack_lookup_address(uint64_t pc, bool exact)
{
	return exact || pc == 0 ? pc : pc - 1;
}

/*
 * Returns whether unwind tables led from frame to frame. Only then the upper bits of frames are
 * marks: a walk by frame pointers takes any word for an address.
 */
static inline bool stack_by_tables(uint8_t flags, uint16_t result, uint64_t tables_ns)
{
	return flags & STACK_USER && result != STACK_FRAME_POINTERS && tables_ns != 0;
}

/* The address by which frame i (0 is the leaf) of a user stack is looked up. */
static inline uint64_t stack_user_address(uint64_t frame, size_t i, uint8_t flags, bool by_tables)
{
	bool exact = i == 0 && !(flags & STACK_SYSCALL_PC);

	if (IS_VSYSCALL(frame)) /* the kernel carries it out, so the pc is exact */
		return frame;
	if (by_tables) {
		exact |= (frame & FRAME_EXACT) != 0;
		frame &= FRAME_ADDRESS;
	}
	return stack_lookup_address(frame, exact);
}

#endif
