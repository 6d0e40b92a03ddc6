/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk_user.h - the walk of bpf/abi/walk.h in user space: over a stack copy, or over a process that
 * is stopped.
 */
#ifndef WALLPROF_WALK_USER_H
#define WALLPROF_WALK_USER_H

#include "walk_state.h"
#include <stddef.h>

typedef struct WalkInput {
	uint64_t regs[DWARF_REGS + 1]; /* by DWARF number; 16: program counter */
	bool in_syscall;	       /* the program counter is after a `syscall` */
	/* Reads size bytes of the process's memory; returns false if they are not there. */
	bool (*read)(void *user, uint64_t address, void *to, size_t size);
	/* Finds the mapping that contains pc. Returns WALK_CONTINUE, or an enum stack_result. */
	int (*find_mapping)(void *user, uint64_t pc, struct unwind_mapping *ret_mapping);
	/*
	 * Finds the rule at pc (relative) in a mapping's table, rows > 0; returns false if there is
	 * none.
	 */
	bool (*find_rule)(void *user, const struct unwind_mapping *mapping, uint32_t pc,
			  struct unwind_rule *ret_rule);
	void *user;
} WalkInput;

/*
 * Walks a stack of any depth up to WALK_FRAMES_MAX. ret_frames has room for MAX_FRAMES, which are
 * stored as in a rec_stack, leaf first; *ret_count is their number, and *ret_left_out is as in its
 * stack_gap (0: all frames are there). Returns how the stack ends (enum stack_result;
 * STACK_TRUNCATED if there are more frames than the walk may find).
 */
int walk_user(const WalkInput *input, uint64_t *ret_frames, size_t *ret_count,
	      uint32_t *ret_left_out);

/* Returns the last of the rows, sorted by pc, at or below pc. The first row's pc must be 0. */
const struct unwind_row *walk_user_search(const struct unwind_row *rows, size_t count, uint32_t pc);

#endif
