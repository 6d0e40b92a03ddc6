/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_memo.bpf.c - stack memos. A thread that waits in a loop has the same stacks each time. If
 * all that a walk depends on is the same, the stack is the same; nothing is assumed.
 */
#include "stack_memo.bpf.h"
#include "memo_parts.bpf.h"
#include "unwind.bpf.h"

/* ---- sets of memos --------------------------------------------------------------- */

/*
 * A place is hashed; its set is given by the upper bits and its tag by others. The lowest bit of
 * the tag tells apart the two memos that one place can have: one place may have two callers.
 */
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

/* The verifier follows each turn of a loop, so the loop over the words is divided in two. */
#define MEMO_PART 8

/* Whether the words from `first` on are the same; see memo_words_match(). */
__noinline int memo_part_matches(struct stack_slot *slot, struct memo_words *read, u32 first,
				 u64 moved, u64 top)
{
	u64 differ = 0;

	if (!slot || !read)
		return 0;
	for (u32 i = 0; i < MEMO_PART; i++) {
		u32 at = first + i;
		u64 place;

		if (at >= read->count || at >= MEMO_WORDS)
			break;
		barrier_var(at); /* or clang computes the address before the check */
		place = read->places[at];
		differ = slot->span[MEMO_AT(place)] ^
			 (read->values[at] + (moved & -(u64)MEMO_IS(place, MEMO_MOVES)) +
			  (top & -(u64)MEMO_IS(place, MEMO_TOP)));
		if (differ)
			break;
	}
	return differ == 0;
}

/* A global function, so that the verifier checks it once for both kinds of stacks. */
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
		if (into > MEMO_SPAN || size > MEMO_RUN)
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

/* Without a branch, which the verifier would follow: the sign of either difference. */
static __always_inline bool needs_new_run(u32 at, u32 length)
{
	s64 gap = (s64)length + RUN_GAP - at, space = (s64)(MEMO_RUN / sizeof(u64) - 1) - at;

	return (gap | space) < 0;
}

/* Adds the i-th word that the walk has read, if the walk depended on it; returns 1 on failure. */
static long memo_add_read(u32 i, struct run_builder *builder)
{
	const struct memo_word *from = &builder->slot->reads.words[i & MEMO_READS];
	struct user_stack_memo *memo = builder->memo;
	u32 run = memo->run_count - 1, at = from->at, count = memo->read.count, start, length;

	if (!from->compared)
		return 0;
	builder->failed = 1; /* until it is stored */
	barrier_var(count);
	if (count >= MEMO_WORDS)
		return 1;
	barrier_var(run);
	length = run < MEMO_RUNS ? memo->runs[run].length : 0;
	if (run >= MEMO_RUNS || needs_new_run(at - memo->runs[run].start, length)) {
		builder->into += length;
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
	memo->read.places[count] = builder->into + at - start;
	memo->read.values[count] = from->value;
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

char LICENSE[] SEC("license") = "GPL";
