/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_memo.bpf.c - stack memos. A thread that waits in a loop has the same stacks each time. If
 * all that a walk depends on is the same, the stack is the same; nothing is assumed.
 */
#include "stack_memo.bpf.h"
#include "unwind.bpf.h"

/* ---- sets of memos --------------------------------------------------------------- */

/*
 * A place is hashed; its set is given by the upper bits and its tag by others. The lowest bit of
 * the tag tells apart the two memos that one place can have: one place may have two callers.
 */
#define PLACE_HASH(word)	 ((word)*0x9e3779b97f4a7c15ULL)
#define PLACE_SET(hash)		 ((u32)((hash) >> 48) & (MEMO_SETS - 1))
#define PLACE_TAG(hash, variant) (((u32)((hash) >> 16) | 3) - 1 + (variant))
#define VARIANTS		 2

/* Returns 1 if the tags are the same, else 0, without a branch: the verifier would follow it. */
static __always_inline u32 same_tag(u32 a, u32 b)
{
	u64 differ = a ^ b;

	return (differ - 1) >> 63;
}

/* Returns the index of a memo of that place, or MEMO_SLOTS. */
static __always_inline u32 memo_find(u64 hash, u32 variant)
{
	u32 set = PLACE_SET(hash), tag = PLACE_TAG(hash, variant), way = 0, found = 0;
	const u32 *tags = memo_tags[set];

	for (u32 i = 0; i < MEMO_WAYS; i++) {
		u32 same = same_tag(tags[i], tag);

		way |= i * same;
		found |= same;
	}
	return found ? set * MEMO_WAYS + (way & (MEMO_WAYS - 1)) : MEMO_SLOTS;
}

/*
 * Returns the index of a memo for that place: one that it has, or any of its set. Which one of
 * several is left to chance, because what was used last is not known.
 */
static __always_inline u32 memo_choose(u64 hash, u64 chance)
{
	u32 set = PLACE_SET(hash), way = (chance >> 8) & (MEMO_WAYS - 1), index, variant;

	variant = memo_find(hash, 0) < MEMO_SLOTS ? (chance >> 12) & 1 : 0;
	index = memo_find(hash, variant);
	if (index < MEMO_SLOTS)
		return index;
	memo_tags[set][way] = PLACE_TAG(hash, variant);
	return set * MEMO_WAYS + way;
}

/* Begins to write a memo; returns false if another CPU writes it. */
static __always_inline bool memo_lock(u64 *lock)
{
	u64 now = *(volatile u64 *)lock;

	return !(now & 1) && __sync_val_compare_and_swap(lock, now, now + 1) == now;
}

static __always_inline void memo_unlock(u64 *lock)
{
	barrier();
	*(volatile u64 *)lock += 1;
}

/* The verifier follows each turn of a loop, so the loop over the words is divided in two. */
#define MEMO_PART 16

/* Whether the words from `first` on are the same; see memo_words_match(). */
__noinline int memo_part_matches(struct stack_slot *slot, struct memo_words *read, u32 first,
				 u64 moved, u64 top)
{
	u64 differ = 0;

	if (!slot || !read)
		return 0;
	for (u32 i = 0; i < MEMO_PART; i++) {
		u32 at = first + i;

		if (at >= read->count || at >= MEMO_WORDS)
			break;
		barrier_var(at); /* or clang computes the address before the check */
		differ = slot->span[read->words[at].at & (MEMO_SPAN / sizeof(u64) - 1)] ^
			 (read->words[at].value + (moved & -(u64)read->words[at].relative) +
			  (top & -(u64)read->words[at].top));
		if (differ)
			break;
	}
	return differ == 0;
}

/*
 * Whether slot->span has the same words as `read`, given that the span has moved by `moved` bytes
 * and the end of the stack by `top` bytes. A global function, so that the verifier checks it once
 * for both kinds of stacks.
 */
__noinline int memo_words_match(struct stack_slot *slot, struct memo_words *read, u64 moved,
				u64 top)
{
	if (!slot || !read || read->count == 0)
		return 0;
	for (u32 first = 0; first < MEMO_WORDS; first += MEMO_PART) {
		if (first >= read->count)
			break;
		if (!memo_part_matches(slot, read, first, moved, top))
			return 0;
	}
	return 1;
}

/*
 * Whether the slot's stack was sent, so that it may be remembered: what is found in a memo is not
 * looked up again.
 */
static __always_inline bool was_sent(const struct stack_slot *slot)
{
	u64 id = slot->stack.id;

	return stack_sent[id & (STACK_SENT_SLOTS - 1)] == id;
}

/* ---- user stacks --------------------------------------------------------------- */

/*
 * A walk is a pure function of its start (program counter, stack pointer, the other registers that
 * it used, the tables) and of the words that it read. Which thread it is does not matter: a new one
 * often has the stack of one that has ended. Processes that were forked from one have the same
 * stack pointers, so a place is of one process.
 */
static __always_inline u32 current_tgid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

static __always_inline u64 user_place(const struct walk_start *start, u32 tgid)
{
	return PLACE_HASH(start->pc ^ start->sp << 20 ^ tgid);
}

static __always_inline bool same_place(const struct user_stack_memo *memo,
				       const struct stack_slot *slot, u32 tgid)
{
	const struct walk_start *start = &slot->start;

	return ((memo->start.pc ^ start->pc) | (memo->start.sp ^ start->sp) |
		(memo->tgid ^ tgid)) == 0;
}

/*
 * Whether the process's mappings and tables are those of the walk. If no process's have changed
 * since that was last found, the process need not be looked up.
 */
static __always_inline bool same_mappings(struct user_stack_memo *memo, struct stack_slot *slot,
					  u64 seed, u64 lock)
{
	if (memo->seed != seed)
		return false;
	if (memo->epoch == *(volatile u64 *)&mappings_epoch + 1)
		return true;
	unwind_load_process(slot);
	if (memo->version != slot->process.version || memo->seed_count != slot->process.seed_count)
		return false;
	if (__sync_val_compare_and_swap(&memo->lock, lock, lock + 1) == lock) {
		memo->epoch = slot->mappings_epoch;
		barrier();
		*(volatile u64 *)&memo->lock = lock;
	}
	return true;
}

static __always_inline bool same_registers(const struct user_stack_memo *memo,
					   const struct stack_slot *slot)
{
	const struct walk_start *start = &slot->start;
	u64 bp_mask = memo->used & WALK_USED_BP ? ~0ULL : 0;
	u64 bx_mask = memo->used & WALK_USED_BX ? ~0ULL : 0;

	return (((memo->start.exact ^ start->exact) | (memo->start.compat ^ start->compat)) |
		((memo->start.bp ^ start->bp) & bp_mask) |
		((memo->start.bx ^ start->bx) & bx_mask)) == 0;
}

/* Reads the parts of the stack that the walk read into slot->span, one after the other. */
static __always_inline bool read_runs(const struct user_stack_memo *memo, struct stack_slot *slot)
{
	u32 into = 0;

	for (u32 i = 0; i < MEMO_RUNS; i++) {
		u32 size = memo->runs[i].length * sizeof(u64);

		if (i >= memo->run_count)
			break;
		barrier_var(into);
		barrier_var(size);
		/* A check for 0, too, would be made one with that of size, which 6.12 does not
		 * know. */
		if (into > MEMO_SPAN || size > MEMO_SPAN)
			return false;
		if (bpf_probe_read_user(
			    (u8 *)slot->span + into, size,
			    (void *)(slot->start.sp + memo->runs[i].start * sizeof(u64))))
			return false;
		into += size;
	}
	return true;
}

/*
 * Compares a memo with the stack. If it is the remembered one, slot->memo_id gets its id. This is
 * a global function so that the verifier follows it once and not for each variant.
 */
__noinline int user_memo_compare(struct stack_slot *slot, u64 seed, u32 index)
{
	struct user_stack_memo *memo = bpf_map_lookup_elem(&stack_memos, &index);
	u64 lock, id;
	bool same;

	if (!slot || !memo)
		return MEMO_OTHER;
	lock = *(volatile u64 *)&memo->lock;
	if (lock & 1)
		return MEMO_UNREAD;
	barrier();
	if (!same_place(memo, slot, current_tgid()))
		return MEMO_OTHER;
	if (!same_mappings(memo, slot, seed, lock))
		return MEMO_MAPPINGS;
	id = memo->id;
	slot->memo_version = memo->version;
	slot->memo_seed_count = memo->seed_count;
	same = same_registers(memo, slot) && read_runs(memo, slot) &&
	       memo_words_match(slot, &memo->read, 0, 0);
	barrier();
	if (*(volatile u64 *)&memo->lock != lock)
		return MEMO_UNREAD;
	if (!same)
		return MEMO_CHANGED;
	slot->memo_id = id;
	return MEMO_HIT;
}

__noinline int user_memo_lookup(struct stack_slot *slot, u64 seed)
{
	u32 outcome = MEMO_OTHER;
	u64 place;

	if (!slot)
		return 0;
	place = user_place(&slot->start, current_tgid());
	for (u32 variant = 0; variant < VARIANTS; variant++) {
		u32 index = memo_find(place, variant);

		if (index < MEMO_SLOTS)
			outcome = user_memo_compare(slot, seed, index);
		if (outcome == MEMO_HIT)
			break;
	}
	memo_count(MEMO_USER, outcome);
	return outcome == MEMO_HIT;
}

/* Words that are at most so far apart are read in one go: a call takes longer than the rest. */
#define RUN_GAP	  64 /* words */
#define RUN_BELOW 8  /* words: a frame's saved registers are read after its return address */

struct run_builder {
	struct stack_slot *slot;
	struct user_stack_memo *memo;
	u32 into;   /* words in the runs before the last one */
	u32 failed; /* 1: the words do not fit */
};

/* Adds the i-th word that the walk has read, if the walk depended on it; returns 1 on failure. */
static long memo_add_read(u32 i, struct run_builder *builder)
{
	const struct memo_word *from = &builder->slot->reads.words[i & MEMO_READS];
	struct user_stack_memo *memo = builder->memo;
	u32 run = memo->run_count - 1, at = from->at, count = memo->read.count, start, length;
	struct memo_word *word;

	if (!from->compared)
		return 0;
	builder->failed = 1; /* until it is stored */
	barrier_var(count);
	if (count >= MEMO_WORDS)
		return 1;
	word = &memo->read.words[count];
	barrier_var(run);
	if (run >= MEMO_RUNS || at - memo->runs[run].start > memo->runs[run].length + RUN_GAP) {
		builder->into += run < MEMO_RUNS ? memo->runs[run].length : 0;
		run = memo->run_count;
		barrier_var(run);
		if (run >= MEMO_RUNS)
			return 1;
		memo->runs[run].start = at > RUN_BELOW ? at - RUN_BELOW : 0;
		memo->runs[run].length = 0;
		memo->run_count = run + 1;
	}
	start = memo->runs[run].start;
	length = at - start + 1;
	if (length > memo->runs[run].length)
		memo->runs[run].length = length;
	if (builder->into + length > MEMO_SPAN / sizeof(u64))
		return 1;
	word->at = builder->into + at - start;
	word->relative = word->top = 0;
	word->value = from->value;
	memo->read.count = count + 1;
	builder->failed = 0;
	return 0;
}

__noinline int user_memo_store(struct stack_slot *slot, u64 seed)
{
	u32 tgid = current_tgid(), index;
	struct run_builder builder = {};
	struct user_stack_memo *memo;

	if (!slot || slot->process.version == 0)
		return 0;
	if (slot->walk.used & WALK_USED_OTHERS ||
	    (slot->stack.result != STACK_COMPLETE && slot->stack.result != STACK_END_ZERO)) {
		memo_count(MEMO_USER, MEMO_UNFIT);
		return 0;
	}
	if (slot->reads.unusable) {
		memo_count(MEMO_USER, MEMO_FAR);
		return 0;
	}
	if (!was_sent(slot)) {
		memo_count(MEMO_USER, MEMO_UNSENT);
		return 0;
	}
	index = memo_choose(user_place(&slot->start, tgid), slot->stack.h.ns);
	memo = bpf_map_lookup_elem(&stack_memos, &index);
	if (!memo || !memo_lock(&memo->lock))
		return 0;
	memo->tgid = tgid;
	memo->seed = seed;
	memo->id = slot->stack.id;
	memo->start = slot->start;
	memo->version = slot->process.version;
	memo->seed_count = slot->process.seed_count;
	memo->epoch = slot->mappings_epoch;
	memo->used = slot->walk.used;
	memo->run_count = 0;
	memo->read.count = 0;
	builder.slot = slot;
	builder.memo = memo;
	bpf_loop(slot->reads.count, memo_add_read, &builder, 0);
	if (builder.failed) {
		memo->tgid = 0; /* no process has this number, so the memo matches none */
		memo_count(MEMO_USER, MEMO_FAR);
	}
	memo_unlock(&memo->lock);
	return 0;
}

/* ---- kernel stacks ------------------------------------------------------------- */

/* stack_memo.bpf.h says why the walk would find the same. */

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

/* A word that the walk cannot have used has no kind. */
enum word_kind { WORD_UNUSED, WORD_CODE, WORD_MOVING, WORD_TOP };

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
	const struct memo_word *before;
	u32 old;

	if (!slot || !memo)
		return 0;
	old = slot->build.old;
	if (old >= slot->build.old_count || old >= MEMO_WORDS)
		return 0;
	before = &memo->read.words[old];
	if (before->at != at)
		return 0;
	slot->build.old = old + 1;
	word -= before->value + (slot->build.moved & -(u64)before->relative) +
		(slot->build.top_moved & -(u64)before->top);
	return word == 0 && (before->relative | before->top << 1) ==
				    ((kind == WORD_MOVING) | (kind == WORD_TOP) << 1);
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
	memo->read.words[index].at = at;
	memo->read.words[index].relative = kind == WORD_MOVING;
	memo->read.words[index].top = kind == WORD_TOP;
	memo->read.words[index].value = word;
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
 * one with the same frames. Finds count less after each choice: a stack may be stored with words
 * that are there by chance and are never found again.
 */
__noinline int kernel_memo_rank(u32 index, u64 id)
{
	struct kernel_stack_memo *memo = bpf_map_lookup_elem(&kernel_memos, &index);
	u32 hits;

	if (!memo)
		return 0;
	hits = memo->hits;
	memo->hits = hits - (hits > 0);
	return 2 * hits + (memo->id != id);
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

/*
 * A memo of the same frames that was not found again since has words that are there by chance: the
 * table of a poll is on the stack, and most of it is what earlier calls have left behind. Of its
 * words only those are kept that this stack has, too. That is all that the walk read: a return
 * address that it read is a frame of both stacks, and the words that are kept must have all frames.
 */
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
