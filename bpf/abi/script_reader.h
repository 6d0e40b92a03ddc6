/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script_reader.h - what the readers of all interpreters share. A reader reads the frames of a
 * thread in BPF (bpf/scripts), and those of a thread that sleeps in the recorder
 * (src/interpreters/sleepers.c): it is the same code, and both give a function the same id.
 *
 * A file that includes it defines before:
 *	SCRIPT_FUNCTION: what a function of its own is, which returns int
 *	SCRIPT_READ(scratch, to, size, address): reads memory of the program; 0 if all was read
 *	SCRIPT_LOOP(count, function, context): calls function(i, context) until it returns not 0
 *	SCRIPT_SENT(scratch, slot): where the id is stored that was sent last for a slot
 */
#ifndef WALLPROF_SCRIPT_READER_H
#define WALLPROF_SCRIPT_READER_H

#include "script_maps.h"

/* What a reader reads at once; a power of 2. */
#define SCRIPT_BYTES 1024

/* Scratch memory of one run of a program. What each run uses is at the end, on few pages. */
struct script_scratch {
	/* A struct rec_script_code: script_code(). */
	u8 record_room[sizeof(struct rec_script_code) + 2 * SCRIPT_TABLE_MAX]
		__attribute__((aligned(8)));
	u32 busy;
	u32 lock_held; /* boolean */
	u64 thread;    /* address of the interpreter's description of the thread; 0 = it has none */
	u64 lock, lock_holder; /* as in struct rec_script */
	u64 frame;	       /* the next frame of the walk */
	u64 fs_base;
	u64 seed; /* identifies the process's image */
	u64 hash;
	u64 ns;
	u64 next_search_ns; /* no search that replaces another thread's slot before that time */
	u32 depth;	    /* frames so far, with those that were replaced */
	u32 last;	    /* index of the last frame + 1; 0 = none */
	u64 code, id;	    /* the code object that was identified last */
	u64 name, path, table;
	u64 window; /* what `bytes` has: from this address on, up to window_end */
	u64 window_end;
	u64 at; /* where in `bytes` the object begins that was read last */
	u8 bytes[SCRIPT_BYTES + 8];
	u8 text[128];
	u64 hashed[4];		/* the beginning of a name */
	u64 ids[SCRIPT_FRAMES]; /* of the frames' code */
	union {
		struct rec_script_stack stack;
		u8 stack_room[sizeof(struct rec_script_stack) +
			      SCRIPT_FRAMES * sizeof(struct script_frame)];
	};
};

static __always_inline struct rec_script_code *script_code(struct script_scratch *scratch)
{
	return (struct rec_script_code *)scratch->record_room;
}

/* The word at an offset of what was read last. */
static __always_inline u64 script_word(const struct script_scratch *scratch, u32 offset)
{
	return *(const u64 *)(scratch->bytes + ((scratch->at + offset) & (SCRIPT_BYTES - 1)));
}

static __always_inline u8 script_byte(const struct script_scratch *scratch, u32 offset)
{
	return scratch->bytes[(scratch->at + offset) & (SCRIPT_BYTES - 1)];
}

#define SCRIPT_FACTOR 0x9e3779b97f4a7c15ULL

static __always_inline u64 script_mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * SCRIPT_FACTOR;
	return hash ^ hash >> 29;
}

/* Sends the record of this kind that scratch has. Returns 0 if it was written; a loss is counted.
 */
SCRIPT_FUNCTION script_emit(struct script_scratch *scratch, u32 kind);

#endif
