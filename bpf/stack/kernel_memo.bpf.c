/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel_memo.bpf.c - see kernel_memo.bpf.h, which says why the walk would find the same. */
#include "kernel_memo.bpf.h"
#include "memo_parts.bpf.h"

/* Kernel code, modules and BPF programs lie in the last 2 GiB of the address space. */
#define KERNEL_CODE 0xffffffff80000000ULL

/*
 * The words above the moving part, at the end of the stack: rbp and the outermost return address.
 */
#define TOP_WORDS 2

/*
 * Returns the first of the memos in which the stack may be. In a system call they are determined by
 * the call and the low bits of its caller's address, which do not depend on where the program is
 * mapped: threads and processes share these memos, because a kernel stack has no addresses of
 * theirs. In a page fault, or in an interrupt of user code, they are determined by the depth of the
 * stack.
 */
static __always_inline u32 kernel_memo_set(const struct stack_slot *slot, struct task_struct *task,
					   enum kernel_probe probe)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 call = regs->orig_ax, what;

	what = (s64)call >= 0 ? call << 12 ^ (regs->ip & 0xfff) : ~slot->kernel_span;
	return PLACE_SET(PLACE_HASH(what << 1 | probe)) * MEMO_WAYS;
}

/*
 * Reads the stack up to the user's registers, with which a task's stack begins. Returns the number
 * of bytes, or 0 if the stack was not read.
 */
static __always_inline u64 read_kernel_stack(struct stack_slot *slot, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 span;

	/*
	 * Stored to memory and read back, so that the verifier takes it for a number: it does not
	 * allow to subtract pointers.
	 */
	slot->kernel_span = (u64)regs;
	barrier();
	span = slot->kernel_span - slot->kernel_from;
	barrier_var(span);
	if (span > MEMO_SPAN || span < TOP_WORDS * sizeof(u64) ||
	    bpf_probe_read_kernel(slot->span, span, (void *)slot->kernel_from))
		return 0;
	return span;
}

static __always_inline u64 span_word(const struct stack_slot *slot, u32 at)
{
	return slot->span[at & (MEMO_SPAN / sizeof(u64) - 1)];
}

/* Whether the remembered stack has the same outermost words as this one. */
static __always_inline bool same_outermost(const struct kernel_stack_memo *memo,
					   const struct stack_slot *slot, enum kernel_probe probe)
{
	return memo->probe == probe && memo->span + TOP_WORDS * sizeof(u64) <= slot->kernel_span &&
	       span_word(slot, slot->kernel_span / sizeof(u64) - 1) == memo->outermost;
}

/*
 * Compares a memo with the stack. If it is the remembered one, slot->memo_id gets its id. This is
 * a global function so that the verifier follows it once and not for each memo.
 */
__noinline int kernel_memo_compare(struct stack_slot *slot, enum kernel_probe probe, u32 index)
{
	struct kernel_stack_memo *memo = bpf_map_lookup_elem(&kernel_memos, &index);
	u64 lock, id;

	if (!slot || !memo || memo->read.count == 0)
		return MEMO_OTHER;
	lock = *(volatile u64 *)&memo->lock;
	if (lock & 1)
		return MEMO_UNREAD;
	barrier();
	id = memo->id;
	if (!same_outermost(memo, slot, probe) ||
	    !memo_words_match(slot, &memo->read, slot->kernel_from - memo->from,
			      slot->kernel_from + slot->kernel_span - memo->end))
		return MEMO_CHANGED;
	barrier();
	if (*(volatile u64 *)&memo->lock != lock)
		return MEMO_UNREAD;
	if (memo->hits < MEMO_HITS) /* all CPUs read it, so it is written seldom */
		memo->hits++;
	slot->memo_id = id;
	return MEMO_HIT;
}

__noinline int kernel_memo_lookup(struct stack_slot *slot, enum kernel_probe probe)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 first, hint, outcome = MEMO_OTHER;

	if (!slot)
		return 0;
	slot->kernel_span = read_kernel_stack(slot, task);
	if (!slot->kernel_span) {
		memo_count(MEMO_KERNEL, MEMO_UNREAD);
		return 0;
	}
	first = kernel_memo_set(slot, task, probe);
	hint = kernel_memo_last[first / MEMO_WAYS & (MEMO_SETS - 1)];
	for (u32 i = 0; i < MEMO_WAYS; i++) {
		u32 way = (hint + i) & (MEMO_WAYS - 1);

		outcome = kernel_memo_compare(slot, probe, first + way);
		if (outcome == MEMO_HIT) {
			if (i)
				kernel_memo_last[first / MEMO_WAYS & (MEMO_SETS - 1)] = way;
			break;
		}
	}
	memo_count(MEMO_KERNEL, outcome);
	return outcome == MEMO_HIT;
}

/*
 * A set of the stack's frames, in slot->window: one bit for each hash. An address that has the hash
 * of a frame by chance is compared needlessly, no more.
 */
#define FRAME_BITS 4096

static __always_inline u32 frame_bit(u64 address)
{
	return (address * 0x9e3779b97f4a7c15ULL) >> 40 & (FRAME_BITS - 1);
}

static long memo_add_frame(u32 i, struct stack_slot **slot)
{
	u32 bit;

	if (i >= MAX_FRAMES)
		return 1;
	bit = frame_bit((*slot)->stack.frames[i]);
	(*slot)->window[bit / 64] |= 1ULL << (bit % 64);
	return 0;
}

static __always_inline bool is_a_frame(const struct stack_slot *slot, u64 word)
{
	u32 bit = frame_bit(word);

	return slot->window[bit / 64] >> (bit % 64) & 1;
}

/* A word that the walk cannot have used has no kind. Two kinds are in a word's place as well. */
enum word_kind { WORD_UNUSED, WORD_CODE = 1, WORD_MOVING = MEMO_MOVES, WORD_TOP = MEMO_TOP };
#define PLACE(at, kind) ((at) | ((kind) & ~(u32)WORD_CODE))

/*
 * Returns the enum word_kind of a word. This and the next functions are global, so that the
 * verifier follows each of them once, and not once for each state of those that call it.
 */
__noinline int kernel_memo_kind(struct stack_slot *slot, u64 word)
{
	u64 above;

	if (!slot)
		return WORD_UNUSED;
	above = word - slot->kernel_from;
	if (above <= slot->kernel_span)
		return above < slot->kernel_span - TOP_WORDS * sizeof(u64) ? WORD_MOVING : WORD_TOP;
	return word >= KERNEL_CODE && is_a_frame(slot, word) ? WORD_CODE : WORD_UNUSED;
}

/*
 * Whether the memo had the same word before. Both are in the order of the stack, so that each word
 * is met when its turn comes.
 */
__noinline int kernel_memo_had(struct stack_slot *slot, struct kernel_stack_memo *memo, u32 at,
			       u64 word, u32 kind)
{
	u32 old, before;

	if (!slot || !memo)
		return 0;
	old = slot->build.old;
	if (old >= slot->build.old_count || old >= MEMO_WORDS)
		return 0;
	before = memo->read.places[old];
	if (MEMO_AT(before) != at)
		return 0;
	slot->build.old = old + 1;
	word -= memo->read.values[old] + (slot->build.moved & -(u64)MEMO_IS(before, MEMO_MOVES)) +
		(slot->build.top_moved & -(u64)MEMO_IS(before, MEMO_TOP));
	return word == 0 && before == PLACE(at, kind);
}

/* Adds the i-th word from the end of the stack; returns 1 to end the loop. */
__noinline int kernel_memo_add_word(struct stack_slot *slot, struct kernel_stack_memo *memo, u32 i)
{
	u32 at, index, frame, kind;
	bool found, had;
	u64 word;

	if (!slot || !memo)
		return 1;
	at = slot->build.words - 1 - i;
	frame = slot->build.frames - 1;
	word = span_word(slot, at);
	found = frame < MAX_FRAMES && slot->stack.frames[frame] == word;
	if (i == 0) {
		memo->outermost = word;
		slot->build.frames = frame;
		return !found;
	}
	/* The words between the outermost frames are the gap. */
	if (memo->read.count == 0 && !found)
		return 0;
	kind = kernel_memo_kind(slot, word);
	had = kernel_memo_had(slot, memo, at, word, kind);
	if (kind == WORD_UNUSED || (slot->build.old_count && !had))
		return 0;
	if (found)
		slot->build.frames = frame;
	barrier(); /* read after the calls, or the check would be lost on Linux 6.1 */
	index = memo->read.count;
	if (index >= MEMO_WORDS) {
		slot->build.frames = MAX_FRAMES;
		return 1;
	}
	memo->read.places[index] = PLACE(at, kind);
	memo->read.values[index] = word;
	if (index == 0)
		memo->span = (at + 1) * sizeof(u64);
	memo->read.count = index + 1;
	return 0;
}

struct memo_builder {
	struct stack_slot *slot;
	struct kernel_stack_memo *memo;
};

static long memo_add_word(u32 i, struct memo_builder *builder)
{
	int ends = kernel_memo_add_word(builder->slot, builder->memo, i);

	/* clang 19 knows that this is 0 or 1, but the verifier does not. */
	barrier_var(ends);
	return ends != 0;
}

/*
 * Returns how well a memo is kept: the one that was found again least often is replaced, of several
 * one with the same frames, or else an empty one. Finds count less after each choice: a stack may
 * be stored with words that are there by chance and are never found again.
 */
__noinline int kernel_memo_rank(u32 index, u64 id)
{
	struct kernel_stack_memo *memo = bpf_map_lookup_elem(&kernel_memos, &index);
	u32 hits;

	if (!memo)
		return 0;
	hits = memo->hits;
	memo->hits = hits - (hits > 0);
	return 4 * hits + (memo->id == id ? 0 : memo->read.count ? 2 : 1);
}

static __always_inline u32 kernel_memo_choose(u32 first, u64 id)
{
	u32 index = first, least = kernel_memo_rank(first, id);

	for (u32 i = 1; i < MEMO_WAYS; i++) {
		u32 rank = kernel_memo_rank(first + i, id);

		if (rank < least) {
			least = rank;
			index = first + i;
		}
	}
	return index;
}

__noinline int kernel_memo_store(struct stack_slot *slot, enum kernel_probe probe)
{
	struct memo_builder builder = {.slot = slot};
	struct kernel_stack_memo *memo;
	u32 index;

	if (!slot || slot->kernel_span == 0 || slot->stack.result != STACK_COMPLETE)
		return 0;
	if (!was_sent(slot)) {
		memo_count(MEMO_KERNEL, MEMO_UNSENT);
		return 0;
	}
	index = kernel_memo_choose(kernel_memo_set(slot, bpf_get_current_task_btf(), probe),
				   slot->stack.id);
	memo = bpf_map_lookup_elem(&kernel_memos, &index);
	if (!memo || !memo_lock(&memo->lock))
		return 0;
	slot->build = (struct kernel_memo_build){
		.words = slot->kernel_span / sizeof(u64),
		.frames = slot->stack.count,
		.old_count =
			memo->id == slot->stack.id && memo->probe == probe ? memo->read.count : 0,
		.moved = slot->kernel_from - memo->from,
		.top_moved = slot->kernel_from + slot->kernel_span - memo->end,
	};
	memo->read.count = memo->span = 0;
	memo->from = slot->kernel_from;
	memo->end = slot->kernel_from + slot->kernel_span;
	memo->id = slot->stack.id;
	memo->probe = probe;
	memo->hits = 0;
	builder.memo = memo;
	__builtin_memset(slot->window, 0, FRAME_BITS / 8);
	bpf_loop(slot->stack.count, memo_add_frame, &builder.slot, 0);
	bpf_loop(slot->build.words, memo_add_word, &builder, 0);
	if (slot->build.frames > 0) {
		memo->read.count = 0; /* an empty memo matches no stack */
		memo_count(MEMO_KERNEL, MEMO_FAR);
	}
	memo_unlock(&memo->lock);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
