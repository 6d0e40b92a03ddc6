/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script_records.h - the functions of programs that an interpreter runs: the records SCRIPT,
 * SCRIPT_STACK and SCRIPT_CODE. Only records.h includes it. docs/design/interpreters.md.
 */
#ifndef WALLPROF_SCRIPT_RECORDS_H
#define WALLPROF_SCRIPT_RECORDS_H

enum script_language {
	SCRIPT_NONE = 0,
	SCRIPT_PYTHON = 1, /* CPython */
	SCRIPT_LANGUAGES
};

/*
 * REC_SCRIPT: which script frames a thread had at a switch-out or a sampling tick, when it woke
 * another thread, submitted a request to a device, or had a page fault, and which thread had the
 * lock that lets one thread at a time interpret. h.ns is one nanosecond before the time of that
 * SWITCH, SAMPLE, WAKING or FAULT record, so that it comes first when records are sorted, or before
 * rec_request::submit_ns.
 */
struct rec_script {
	struct record h;
	u32 tid;
	u8 language; /* enum script_language */
	u8 flags;    /* SCRIPT_LOCK_… */
	u16 reserved;
	u64 stack;  /* rec_script_stack::id; 0 = it had no frames */
	u64 thread; /* address of the interpreter's description of this thread */
	u64 lock;   /* address of the interpreter's lock; 0 = it could not be read */
	u64 holder; /* rec_script::thread of the one that has the lock, or had it last */
};

/* rec_script::h.flags: the thread submitted a request. */
#define SCRIPT_REQUEST 1

/* rec_script::flags: the lock is held. */
#define SCRIPT_LOCK_HELD 1
/* No lock of an interpreter is longer, in bytes, with the words that threads wait for in it. */
#define SCRIPT_LOCK_SIZE 256

/* Of a stack that has more frames, so many innermost and outermost ones are recorded. */
#define SCRIPT_LEAF_FRAMES 128
#define SCRIPT_ROOT_FRAMES 64
#define SCRIPT_FRAMES	   (SCRIPT_LEAF_FRAMES + SCRIPT_ROOT_FRAMES)
/* No walk goes farther. */
#define SCRIPT_WALK_MAX 1024

/*
 * The interpreter's C function that runs this frame was called by C code: the frames from here up
 * to the next one with this flag, which is nearer to the leaf, have one frame of the C stack.
 */
#define SCRIPT_FRAME_ENTRY 1

struct script_frame {
	u64 code;  /* rec_script_code::id; 0 = it could not be read */
	s32 at;	   /* the instruction: Python: bytes from the first one; negative: none was run */
	u32 flags; /* SCRIPT_FRAME_… */
};

/* Why a stack of script frames ends. */
enum script_result {
	SCRIPT_COMPLETE = 0,
	SCRIPT_TRUNCATED = 1, /* deeper than SCRIPT_WALK_MAX */
	SCRIPT_FAULT = 2,     /* a frame could not be read */
	SCRIPT_RESULTS
};

/*
 * REC_SCRIPT_STACK::h.flags and REC_SCRIPT_CODE::h.flags: the recorder read it of a thread that
 * slept when the recording began, up to h.ns. The stack's id is the rec_stack::id of the thread's
 * user stack.
 */
#define SCRIPT_SLEEPER 1

/*
 * REC_SCRIPT_STACK: a definition, as REC_STACK. The first SCRIPT_LEAF_FRAMES frames are the
 * innermost ones. The others are a ring if frames are left out: script_gap_root().
 */
struct rec_script_stack {
	struct record h;
	u64 id;
	u32 tgid;
	u16 count;
	u8 result;    /* enum script_result */
	u8 language;  /* enum script_language */
	u32 left_out; /* frames that are missing before the outermost ones */
	u32 reserved;
	struct script_frame frames[]; /* count of them */
};

/* Where the n-th frame of a walk, counted from 0, is stored; a later one may replace it. */
static inline u32 script_frame_index(u32 n)
{
	return n < SCRIPT_FRAMES
		       ? n
		       : SCRIPT_LEAF_FRAMES + (n - SCRIPT_LEAF_FRAMES) % SCRIPT_ROOT_FRAMES;
}

/* The index of the innermost one of the outermost frames, if frames are left out. */
static inline u32 script_gap_root(u32 left_out)
{
	return SCRIPT_LEAF_FRAMES + left_out % SCRIPT_ROOT_FRAMES;
}

#define SCRIPT_NAME_MAX	 256
#define SCRIPT_PATH_MAX	 512
#define SCRIPT_TABLE_MAX 8192

/*
 * REC_SCRIPT_CODE: what a piece of code is called. The id is a hash of what identifies it, so
 * memory that is used again for another one has another id. It may be sent more than once, and
 * after the stacks that refer to it.
 *
 * Text has kind bytes for each character, which is a code point of Unicode; 0: it could not be
 * read.
 */
struct rec_script_code {
	struct record h;
	u64 id;
	u32 tgid;
	u32 first_line;
	u16 version; /* of the interpreter; Python: 0x030b is 3.11 */
	u8 language; /* enum script_language */
	u8 name_kind, path_kind;
	u8 reserved;
	u16 name_bytes, path_bytes;
	u32 table_bytes; /* of the table of lines, in the interpreter's format */
	u8 name[SCRIPT_NAME_MAX];
	u8 path[SCRIPT_PATH_MAX];
	u8 table[];
};

#endif
