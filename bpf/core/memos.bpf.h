/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memos.bpf.h - what a stack memo consists of (bpf/stack/stack_memo.bpf.c says what it is for).
 * wallprof.bpf.h includes it, after the types that it needs.
 */
#ifndef WALLPROF_MEMOS_BPF_H
#define WALLPROF_MEMOS_BPF_H

#define MEMO_SPAN  16384u /* bytes of a stack that a memo compares at most */
#define MEMO_WORDS 176u	  /* words of them */
#define MEMO_READS 511u	  /* words that a walk may read; walk.bp_word is their number + 1 */
#define MEMO_RUNS  16u	  /* parts of the stack that are read for them */
#define MEMO_RUN   4096u  /* bytes of such a part */

/*
 * The words of a stack that a memo compares. A word's place has its distance from the start of the
 * span, in words, and what kind of word it is.
 */
struct memo_words {
	u32 count;
	u32 reserved;
	u64 values[MEMO_WORDS];
	u16 places[MEMO_WORDS];
};

#define MEMO_AT(place)	     ((place) & (MEMO_SPAN / sizeof(u64) - 1))
#define MEMO_MOVES	     (1u << 15) /* an address within the span, which changes when it moves */
#define MEMO_TOP	     (1u << 14) /* an address at the end of the stack */
#define MEMO_IS(place, kind) (!!((place) & (kind)))

/* No memo lies on two pages. */
#define MEMO_SIZE (MAP_PAGE / 2)

/* A part of the stack that a memo's words lie in, in words: from the stack pointer, and length. */
struct memo_run {
	u16 start, length;
};

/*
 * A stack memo of a user stack: what the last walk with the same process, program counter and stack
 * pointer read. Only the registers that it used are compared (enum walk_used).
 *
 * `lock` is odd while the memo is written. A reader takes nothing from a memo if its lock was odd
 * or has changed meanwhile; x86-64 reorders neither loads nor stores.
 */
struct user_stack_memo {
	u64 lock;
	u64 seed; /* part of the stack id that identifies the process's image */
	u64 id;
	struct walk_start start;
	u64 epoch;		 /* mappings_epoch + 1 at which they were the process's */
	u32 version, seed_count; /* version of the process's mappings */
	u32 tgid;
	u16 used; /* enum walk_used */
	u16 run_count;
	struct memo_run runs[MEMO_RUNS];
	struct memo_words read; /* places are in the runs, one after the other */
} __attribute__((aligned(MEMO_SIZE)));

/*
 * A stack memo of a kernel stack: what the kernel's walk may have read (kernel_memo.bpf.h).
 */
struct kernel_stack_memo {
	u64 lock; /* as above */
	u64 id;
	u64 from;      /* address at which the span began */
	u64 end;       /* address at which the stack ended */
	u64 outermost; /* the last word of the stack; the rest of the span may have moved relative
			  to it */
	u32 probe;     /* enum kernel_probe */
	u32 span;      /* in bytes, from its start to the end of the last word */
	u32 hits;      /* how often the stack was found again, up to MEMO_HITS, less with time */
	u32 reserved;
	struct memo_words read;
} __attribute__((aligned(MEMO_SIZE)));

_Static_assert(sizeof(struct user_stack_memo) == MEMO_SIZE, "its words fit");
_Static_assert(sizeof(struct kernel_stack_memo) == MEMO_SIZE, "its words fit");

/* A word that a walk has read. */
struct memo_word {
	u16 at;	      /* in words from the stack pointer */
	u16 compared; /* 1: the walk depended on it */
	u32 reserved;
	u64 value;
};

/* The words that a walk of a user stack has read, for user_memo_store(). */
struct memo_reads {
	u32 count;
	u32 unusable; /* 1: this walk cannot be remembered */
	struct memo_word words[MEMO_READS + 1];
};

struct kernel_memo_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* so that it begins on a page */
	__uint(max_entries, MEMO_SLOTS);
	__type(key, u32);
	__type(value, struct kernel_stack_memo);
};

struct stack_memo_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* likewise */
	__uint(max_entries, MEMO_SLOTS);
	__type(key, u32);
	__type(value, struct user_stack_memo);
};

/* How far a memo of a kernel stack is made, from the end of the stack downwards. */
struct kernel_memo_build {
	u32 words;  /* of the stack */
	u32 frames; /* frames that were not found yet, counted from the outermost one */
	/* The memo had so many words, if it is of the same frames; from `old` on they are left. */
	u32 old_count, old;
	u64 moved, top_moved; /* in bytes, since the memo was made */
};

#endif
