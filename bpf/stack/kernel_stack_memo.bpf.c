/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_stack_memo.bpf.c - a thread that waits in a loop has the same kernel stack each time, and
 * the kernel's own walk of it is the dearest part of a switch.
 *
 * That walk (arch/x86/kernel/unwind_orc.c, unwind_frame.c) is a pure function of where it begins
 * and of words of the stack that it takes for return addresses, or for pointers to frames. Where it
 * begins is the tracing's own frames, of fixed size, below the address of the program's context,
 * which lies in the frame of the kernel's function that runs it. So if, from there to the end of
 * the stack, all words that were addresses of kernel code or of the stack itself are still the
 * same, then the walk would read the same words at the same places, one after another, and come to
 * the same frames. Nothing is assumed.
 *
 * Kernels that randomize where a system call's stack begins (RANDOMIZE_KSTACK_OFFSET) leave a gap
 * of another size each time, in the frame of the outermost function but one, which finds its own
 * frame by a pointer. All below it moves as a whole: there, addresses within what moves must have
 * moved with it, and all others must be the same. Of what is above it the walk reads but the
 * outermost return address, which must be the same, too, and is that of the one call there is in
 * the entry code. (The word before that is rbp as user space left it, by which no frame is found
 * any more.) What lies in the gap is nobody's.
 *
 * An address that the kernel puts in the place of a return address (function graph tracer,
 * return probes) stands for another one, kept elsewhere: a stack is kept only if all its frames
 * but the program's own were found as words, up to the one in the entry code.
 */
#include "kernel_stack_memo.bpf.h"

/* Kernel code, modules and programs of BPF lie in the last 2 GiB of addresses. */
#define KERNEL_CODE 0xffffffff80000000ULL

/* What lies below the context: the program, and the kernel's function that runs it. */
#define TRACING_FRAMES 2

/* At the end of a stack, above what moves: rbp, and the outermost return address. */
#define TOP_WORDS 2

static __always_inline struct kernel_stack_memo *kernel_memo_slot(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	/* The system call, its caller and, mostly, what it is about. */
	u64 what = regs->orig_ax ^ regs->ip << 8 ^ regs->di << 32;
	u64 mixed = (what ^ (u64)task->pid << 40) * 0x9e3779b97f4a7c15ULL;
	u32 key = (mixed >> 40) & (MEMO_SLOTS - 1);

	return bpf_map_lookup_elem(&kernel_memos, &key);
}

/* Bytes up to the user's registers, with which a task's stack begins; 0: it is not looked at. */
static __always_inline u64 read_kernel_stack(struct stack_slot *slot, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 span;

	/* Through memory, where the verifier forgets that it is a pointer: it allows no difference.
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

/* Was what was kept of a stack that ended as this one does? */
static __always_inline bool same_outermost(const struct kernel_stack_memo *again,
					   const struct stack_slot *slot)
{
	return slot->kernel_span != 0 &&
	       again->read.span + TOP_WORDS * sizeof(u64) <= slot->kernel_span &&
	       span_word(slot, slot->kernel_span / sizeof(u64) - 1) == again->outermost;
}

__noinline int kernel_memo_lookup(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kernel_stack_memo *again;
	bool same;
	u64 id;

	if (!slot)
		return 0;
	slot->kernel_span = read_kernel_stack(slot, task);
	again = kernel_memo_slot(task);
	if (!again || __sync_val_compare_and_swap(&again->busy, 0, 1))
		return 0;
	id = again->id;
	same = same_outermost(again, slot) && stack_sent[id & (STACK_SENT_SLOTS - 1)] == id &&
	       memo_words_match(slot, &again->read, slot->kernel_from - again->from);
	__sync_lock_test_and_set(&again->busy, 0);
	if (same)
		slot->stack.id = id;
	memo_hits(MEMO_KERNEL, same);
	return same;
}

struct keeping {
	struct stack_slot *slot;
	struct kernel_stack_memo *again;
	u32 words;
	u32 frames; /* that were not found yet, from the outermost on */
};

/* 1 for an address within what moves, 0 for one that does not, -1 for what the walk cannot read. */
static __always_inline int kind_of_word(const struct keeping *keeping, u64 word)
{
	const struct stack_slot *slot = keeping->slot;
	u64 above = word - slot->kernel_from;

	if (above <= slot->kernel_span)
		return above < slot->kernel_span - TOP_WORDS * sizeof(u64);
	return word >= KERNEL_CODE ? 0 : -1;
}

/* The i-th word from the end of the stack; 1 ends it. */
static long memo_add_word(u32 i, struct keeping *keeping)
{
	struct stack_slot *slot = keeping->slot;
	struct kernel_stack_memo *again = keeping->again;
	struct memo_words *read = &again->read;
	u32 at = keeping->words - 1 - i, number = read->count, frame = keeping->frames - 1;
	u64 word = span_word(slot, at);
	bool found = frame < MAX_FRAMES && slot->stack.frames[frame] == word;
	int kind;

	if (found)
		keeping->frames = frame;
	if (i == 0) {
		again->outermost = word;
		return !found;
	}
	/* What is between the outermost frames is the gap. */
	if (read->count == 0 && !found)
		return 0;
	kind = kind_of_word(keeping, word);
	if (kind < 0)
		return 0;
	if (number >= MEMO_WORDS) {
		keeping->frames = MAX_FRAMES;
		return 1;
	}
	read->words[number].at = at;
	read->words[number].counts = 1;
	read->words[number].moves = kind;
	read->words[number].value = word;
	if (number == 0)
		read->span = (at + 1) * sizeof(u64);
	read->count = number + 1;
	return 0;
}

__noinline int kernel_memo_store(struct stack_slot *slot)
{
	struct keeping keeping = {};
	struct kernel_stack_memo *again;

	if (!slot || slot->kernel_span == 0 || slot->stack.result != STACK_COMPLETE)
		return 0;
	again = kernel_memo_slot(bpf_get_current_task_btf());
	if (!again || __sync_val_compare_and_swap(&again->busy, 0, 1))
		return 0;
	again->read.count = again->read.span = 0;
	again->from = slot->kernel_from;
	again->id = slot->stack.id;
	keeping.slot = slot;
	keeping.again = again;
	keeping.words = slot->kernel_span / sizeof(u64);
	keeping.frames = slot->stack.count;
	bpf_loop(keeping.words, memo_add_word, &keeping, 0);
	if (keeping.frames > TRACING_FRAMES)
		again->read.count = 0; /* which is the same as no other */
	__sync_lock_test_and_set(&again->busy, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
