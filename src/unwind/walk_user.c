/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "walk_user.h"
#include <string.h>

typedef struct Walker {
	struct walk walk;
	const WalkInput *input;
	uint64_t signal_regs[WALK_SIGNAL_REGS];
} Walker;

#define WALK_SELF Walker *self

static bool walk_read(Walker *self, uint64_t address, uint64_t *ret)
{
	return self->input->read(self->input->user, address, ret, sizeof(*ret));
}

/* Here no stack memo is kept. */
static bool walk_read_saved(Walker *self, uint64_t address, uint64_t *ret, uint16_t *ret_word)
{
	*ret_word = 0;
	return walk_read(self, address, ret);
}

static void walk_word_used(Walker *self, uint32_t word)
{
	(void)self;
	(void)word;
}

static bool walk_read_signal(Walker *self, uint64_t address)
{
	return self->input->read(self->input->user, address, self->signal_regs,
				 sizeof(self->signal_regs));
}

static int walk_find_mapping(Walker *self, uint64_t pc)
{
	return self->input->find_mapping(self->input->user, pc, &self->walk.mapping);
}

static bool walk_find_rule(Walker *self, uint32_t pc, struct unwind_rule *ret)
{
	return self->input->find_rule(self->input->user, &self->walk.mapping, pc, ret);
}

#include "walk.h"

_Static_assert(sizeof(((struct stack_anchor *)0)->frame) == offsetof(struct walk, regs),
	       "the frame of a walk, which unwind_deep.bpf.c copies");

static uint64_t frame_of(const struct walk *walk, bool is_leaf)
{
	return walk->pc | (walk->exact && !is_leaf ? FRAME_EXACT : 0) |
	       (walk->guessed ? FRAME_GUESSED : 0);
}

static Walker walker_of(const WalkInput *input)
{
	Walker walker = {
		.walk = {.pc = input->regs[DWARF_RETURN],
			 .sp = input->regs[DWARF_RSP],
			 .bp = input->regs[DWARF_RBP],
			 .bx = input->regs[DWARF_RBX],
			 .exact = !input->in_syscall,
			 .inner = true,
			 .known = WALK_ALL_REGS},
		.input = input,
	};

	memcpy(walker.walk.regs, input->regs, sizeof(walker.walk.regs));
	return walker;
}

int walk_user(const WalkInput *input, uint64_t *ret_frames, size_t *ret_count,
	      uint32_t *ret_left_out)
{
	Walker walker = walker_of(input);
	int result = WALK_CONTINUE;
	uint64_t sp = 0; /* some frames before */
	uint32_t depth = 0;

	while (result == WALK_CONTINUE && depth < WALK_FRAMES_MAX) {
		/* A hostile stack can go in circles. */
		if (depth > 0 && depth % MAX_FRAMES == 0) {
			if (walker.walk.sp <= sp)
				break;
			sp = walker.walk.sp;
		}

		ret_frames[stack_frame_index(depth)] = frame_of(&walker.walk, depth == 0);
		depth++;
		result = walk_step(&walker);
	}
	*ret_count = depth < MAX_FRAMES ? depth : MAX_FRAMES;
	*ret_left_out = depth - *ret_count;
	return result == WALK_CONTINUE ? STACK_TRUNCATED : result;
}

const struct unwind_row *walk_user_search(const struct unwind_row *rows, size_t count, uint32_t pc)
{
	while (count > 1) {
		size_t half = count / 2;

		if (rows[half].pc <= pc)
			rows += half;
		count -= half;
	}
	return rows;
}
