/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_memo.bpf.c - stack memos. A thread that waits in a loop has the same stacks each time. If
 * all that a walk depends on is the same, the stack is the same; nothing is assumed.
 */
#include "stack_memo.bpf.h"

/*
 * Whether slot->span has the same words as `read`, given that the span has moved by `moved` bytes.
 * A global function, so that the verifier checks it once for both kinds of stacks.
 */
__noinline int memo_words_match(struct stack_slot *slot, struct memo_words *read, u64 moved)
{
	u64 differ = 0;

	if (!slot || !read || read->count == 0)
		return 0;
	for (u32 i = 0; i < MEMO_WORDS; i++) {
		if (i >= read->count)
			break;
		differ |= slot->span[read->words[i].at & (MEMO_SPAN / sizeof(u64) - 1)] ^
			  (read->words[i].value + (moved & -(u64)read->words[i].relative));
	}
	return differ == 0;
}

/* ---- user stacks --------------------------------------------------------------- */

/*
 * A walk is a pure function of its start (program counter, stack pointer, the other registers that
 * it used, the tables) and of the words that it read.
 */
static __always_inline struct user_stack_memo *user_memo_slot(const struct walk_start *start,
							      u32 tid)
{
	u64 mixed = (start->pc ^ start->sp << 20 ^ tid) * 0x9e3779b97f4a7c15ULL;
	u32 key = (mixed >> 40) & (MEMO_SLOTS - 1);

	return bpf_map_lookup_elem(&stack_memos, &key);
}

static __always_inline bool memo_acquire(struct user_stack_memo *memo)
{
	return __sync_val_compare_and_swap(&memo->busy, 0, 1) == 0;
}

static __always_inline void memo_release(struct user_stack_memo *memo)
{
	__sync_lock_test_and_set(&memo->busy, 0);
}

/* There are no branches on the compared values, because the verifier would follow each of them. */
static __always_inline bool same_start(const struct user_stack_memo *memo, struct stack_slot *slot,
				       u32 tid)
{
	const struct walk_start *start = &slot->start;
	u64 bp_mask = memo->used & WALK_USED_BP ? ~0ULL : 0;
	u64 bx_mask = memo->used & WALK_USED_BX ? ~0ULL : 0;
	u64 differ = memo->start.pc ^ start->pc;

	differ |= memo->start.sp ^ start->sp;
	differ |= memo->start.exact ^ start->exact;
	differ |= memo->seed ^ slot->stack.id;
	differ |= (memo->start.bp ^ start->bp) & bp_mask;
	differ |= (memo->start.bx ^ start->bx) & bx_mask;
	differ |= memo->tid ^ tid;
	differ |= memo->version ^ slot->process.version;
	differ |= memo->seed_count ^ slot->process.seed_count;
	return differ == 0;
}

/* Reads the part of the stack that the walk read, and compares the words. */
static __always_inline bool same_words(struct user_stack_memo *memo, struct stack_slot *slot)
{
	u32 size = memo->read.span;

	if (size == 0 || size > MEMO_SPAN ||
	    bpf_probe_read_user(slot->span, size, (void *)slot->start.sp))
		return false;
	return memo_words_match(slot, &memo->read, 0);
}

/* slot->stack.id holds the seed. */
__noinline int user_memo_lookup(struct stack_slot *slot)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct user_stack_memo *memo;
	bool same;
	u64 id;

	if (!slot || slot->stack.result != WALK_CONTINUE || slot->process.version == 0)
		return 0;
	memo = user_memo_slot(&slot->start, tid);
	if (!memo || !memo_acquire(memo))
		return 0;
	id = memo->id;
	same = same_start(memo, slot, tid) && stack_sent[id & (STACK_SENT_SLOTS - 1)] == id &&
	       same_words(memo, slot);
	memo_release(memo);
	if (same)
		slot->stack.id = id;
	memo_count(MEMO_USER, same);
	return same;
}

/* Remembers slot->stack; `seed` is the value that stack.id had at user_memo_lookup(). */
__noinline int user_memo_store(struct stack_slot *slot, u64 seed)
{
	u32 tid = bpf_get_current_pid_tgid(), count = 0;
	struct user_stack_memo *memo;

	if (!slot || slot->memo.unusable || slot->walk.used & WALK_USED_OTHERS ||
	    slot->process.version == 0 ||
	    (slot->stack.result != STACK_COMPLETE && slot->stack.result != STACK_END_ZERO))
		return 0;
	memo = user_memo_slot(&slot->start, tid);
	if (!memo || !memo_acquire(memo))
		return 0;
	memo->tid = tid;
	memo->seed = seed;
	memo->id = slot->stack.id;
	memo->start = slot->start;
	memo->version = slot->process.version;
	memo->seed_count = slot->process.seed_count;
	memo->used = slot->walk.used;
	memo->read.span = slot->memo.read.span;
	/* There is no branch, as above. */
	for (u32 i = 0; i < MEMO_WORDS; i++) {
		if (i >= slot->memo.read.count)
			break;
		memo->read.words[count & (MEMO_WORDS - 1)] = slot->memo.read.words[i];
		count += slot->memo.read.words[i].compared;
	}
	memo->read.count = count;
	memo_release(memo);
	return 0;
}

/* ---- kernel stacks ------------------------------------------------------------- */

/*
 * The kernel's own walk of the kernel stack is the most expensive part of a switch.
 *
 * That walk (arch/x86/kernel/unwind_orc.c, unwind_frame.c) is a pure function of where it begins
 * and of the words of the stack that it takes for return addresses or for pointers to frames. It
 * begins in the tracing code's own frames, which have a fixed size and lie below the address of the
 * program's context; the context lies in the frame of the kernel function that runs the program. So
 * if all words from there to the end of the stack that were addresses of kernel code or of the
 * stack itself are still the same, the walk would read the same words at the same locations in the
 * same order, and would find the same frames. Nothing is assumed.
 *
 * Kernels that randomize where a system call's stack begins (RANDOMIZE_KSTACK_OFFSET) leave a gap
 * of a different size each time, in the frame of the outermost function but one, which finds its
 * own frame by a pointer. Everything below the gap moves as a whole: addresses within the moving
 * part must have moved with it, and all other words there must be the same. Above the gap the walk
 * reads only the outermost return address, which must be the same, too, and is that of the only
 * call in the entry code. (The word before it is rbp as user space left it; no frame is found by
 * it.) The contents of the gap belong to no frame.
 *
 * If the kernel has replaced a return address (function graph tracer, return probes), the word
 * stands for another address that is stored elsewhere. So a stack is stored only if all its frames
 * but the program's own were found as words, up to the one in the entry code.
 */

/* Kernel code, modules and BPF programs lie in the last 2 GiB of the address space. */
#define KERNEL_CODE 0xffffffff80000000ULL

/* The frames below the context: the program, and the kernel function that runs it. */
#define TRACING_FRAMES 2

/*
 * The words above the moving part, at the end of the stack: rbp and the outermost return address.
 */
#define TOP_WORDS 2

static __always_inline struct kernel_stack_memo *kernel_memo_slot(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	/*
	 * The system call, its caller and its first argument, which is mostly the waited-for
	 * object.
	 */
	u64 what = regs->orig_ax ^ regs->ip << 8 ^ regs->di << 32;
	u64 mixed = (what ^ (u64)task->pid << 40) * 0x9e3779b97f4a7c15ULL;
	u32 key = (mixed >> 40) & (MEMO_SLOTS - 1);

	return bpf_map_lookup_elem(&kernel_memos, &key);
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
					   const struct stack_slot *slot)
{
	return slot->kernel_span != 0 &&
	       memo->read.span + TOP_WORDS * sizeof(u64) <= slot->kernel_span &&
	       span_word(slot, slot->kernel_span / sizeof(u64) - 1) == memo->outermost;
}

__noinline int kernel_memo_lookup(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kernel_stack_memo *memo;
	bool same;
	u64 id;

	if (!slot)
		return 0;
	slot->kernel_span = read_kernel_stack(slot, task);
	memo = kernel_memo_slot(task);
	if (!memo || __sync_val_compare_and_swap(&memo->busy, 0, 1))
		return 0;
	id = memo->id;
	same = same_outermost(memo, slot) && stack_sent[id & (STACK_SENT_SLOTS - 1)] == id &&
	       memo_words_match(slot, &memo->read, slot->kernel_from - memo->from);
	__sync_lock_test_and_set(&memo->busy, 0);
	if (same)
		slot->stack.id = id;
	memo_count(MEMO_KERNEL, same);
	return same;
}

struct memo_builder {
	struct stack_slot *slot;
	struct kernel_stack_memo *memo;
	u32 words;
	u32 frames; /* frames that were not found yet, counted from the outermost one */
};

/*
 * Returns 1 for an address within the moving part, 0 for an address elsewhere, and -1 for a word
 * that the walk cannot use.
 */
static __always_inline int kind_of_word(const struct memo_builder *builder, u64 word)
{
	const struct stack_slot *slot = builder->slot;
	u64 above = word - slot->kernel_from;

	if (above <= slot->kernel_span)
		return above < slot->kernel_span - TOP_WORDS * sizeof(u64);
	return word >= KERNEL_CODE ? 0 : -1;
}

/* Adds the i-th word from the end of the stack; returns 1 to end the loop. */
static long memo_add_word(u32 i, struct memo_builder *builder)
{
	struct stack_slot *slot = builder->slot;
	struct kernel_stack_memo *memo = builder->memo;
	struct memo_words *read = &memo->read;
	u32 at = builder->words - 1 - i, index = read->count, frame = builder->frames - 1;
	u64 word = span_word(slot, at);
	bool found = frame < MAX_FRAMES && slot->stack.frames[frame] == word;
	int kind;

	if (found)
		builder->frames = frame;
	if (i == 0) {
		memo->outermost = word;
		return !found;
	}
	/* The words between the outermost frames are the gap. */
	if (read->count == 0 && !found)
		return 0;
	kind = kind_of_word(builder, word);
	if (kind < 0)
		return 0;
	if (index >= MEMO_WORDS) {
		builder->frames = MAX_FRAMES;
		return 1;
	}
	read->words[index].at = at;
	read->words[index].compared = 1;
	read->words[index].relative = kind;
	read->words[index].value = word;
	if (index == 0)
		read->span = (at + 1) * sizeof(u64);
	read->count = index + 1;
	return 0;
}

__noinline int kernel_memo_store(struct stack_slot *slot)
{
	struct memo_builder builder = {};
	struct kernel_stack_memo *memo;

	if (!slot || slot->kernel_span == 0 || slot->stack.result != STACK_COMPLETE)
		return 0;
	memo = kernel_memo_slot(bpf_get_current_task_btf());
	if (!memo || __sync_val_compare_and_swap(&memo->busy, 0, 1))
		return 0;
	memo->read.count = memo->read.span = 0;
	memo->from = slot->kernel_from;
	memo->id = slot->stack.id;
	builder.slot = slot;
	builder.memo = memo;
	builder.words = slot->kernel_span / sizeof(u64);
	builder.frames = slot->stack.count;
	bpf_loop(builder.words, memo_add_word, &builder, 0);
	if (builder.frames > TRACING_FRAMES)
		memo->read.count = 0; /* an empty memo matches no stack */
	__sync_lock_test_and_set(&memo->busy, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
