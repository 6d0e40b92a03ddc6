/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * records.h - the records that the BPF programs send, which are also the contents of the capture
 * file.
 *
 * The BPF programs and user space share the headers of this folder. This one has the contents of a
 * capture; memory that both sides map is described in maps.h, unwind tables in unwind_rows.h, and
 * the walk that both sides compile in walk.h.
 *
 * Every record starts with `struct record`, is a multiple of 8 bytes long and holds fixed-width
 * little-endian integers only, so that a record drained from a ring buffer is appended to the
 * capture as it is (docs/reference/capture-format.md).
 *
 * Times are CLOCK_MONOTONIC nanoseconds. Thread and process ids called tid/tgid are those of the
 * initial PID namespace. Those called ns_tid/ns_tgid identify the same task in wallprof's PID
 * namespace: they are what the user types, what perf's side-band reports and what profiles show.
 */
#ifndef WALLPROF_RECORDS_H
#define WALLPROF_RECORDS_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

#define COMM_LEN      16
#define EXEC_PATH_LEN 128
/* The limit of frames in a record of a stack, also if kernel.perf_event_max_stack is higher. */
#define MAX_FRAMES 255
/* Of a user stack that has more, so many innermost and outermost frames are recorded. */
#define LEAF_FRAMES 159
#define ROOT_FRAMES (MAX_FRAMES - LEAF_FRAMES)
/* A walk goes no farther. */
#define WALK_FRAMES_MAX 32768

#include "record_kinds.h"

/*
 * Header of every record. len is the length of the whole record, with this header. cpu is the CPU
 * on which BPF made the record; in records of user space it is 0.
 */
struct record {
	u32 len;
	u8 kind;  /* enum record_kind */
	u8 flags; /* meaning depends on the kind */
	u16 cpu;
	u64 ns;
};

/* SWITCH, WAKING, TASK, EXEC, EXIT, STATS, SNAPSHOT: sched_records.h. */
#include "sched_records.h"

/* REC_SAMPLE: a sampling tick that hit a target. */
enum sample_flags {
	SAMPLE_USER = 1 << 0, /* the tick hit user mode */
};

struct rec_sample {
	struct record h;
	u32 tid;
	u32 reserved;
	u64 kstack; /* 0 in user mode */
	u64 ustack;
};

/*
 * REC_STACK: the frames of a stack id, leaf first. The id is a 64-bit hash of the frames (and, for
 * user stacks, of the process image and of the tables that were used), so the same stack has the
 * same id whenever it is sent. It may be sent more than once, and after the records that refer to
 * it. A stack that the recorder walked from a copy (STACK_FROM_COPY) replaces the one that BPF
 * sent.
 *
 * Frame 0 of a user stack, and of the kernel stack of a sample, is the exact program counter,
 * except that a user pc inside a system call is a return address. All other frames are return
 * addresses, except those marked FRAME_EXACT.
 */
enum stack_flags {
	STACK_USER = 1 << 0,
	STACK_SYSCALL_PC = 1 << 1, /* frame 0 is a return address (STACK_USER only) */
	STACK_GUESSED = 1 << 2,	   /* some frames are FRAME_GUESSED */
	STACK_FROM_COPY = 1 << 3,  /* walked by the recorder, from a copy of the stack */
	STACK_DEEP = 1 << 4, /* frames are left out: a struct stack_gap is behind the frames */
	/*
	 * The outermost frames were walked from a frame of an earlier walk of that thread, which
	 * was found to be on the stack still; stack_gap::left_out is the least that it can be.
	 */
	STACK_JOINED = 1 << 5,
};

/* In the frames of a user stack walked by unwind tables, above the 57 bits of an address. */
#define FRAME_EXACT   (1ULL << 63) /* a signal interrupted it there: not a return address */
#define FRAME_GUESSED (1ULL << 62) /* found by a frame pointer or an uncertain rule */
#define FRAME_ADDRESS ((1ULL << 62) - 1)

/*
 * The page of the calls at fixed addresses (arch/x86/entry/vsyscall). It is the only code of a user
 * that is not below 2^57, so a frame in it has all upper bits, and no marks.
 */
#define VSYSCALL_PAGE	  0xffffffffff600ULL /* its address >> VSYSCALL_SHIFT */
#define VSYSCALL_SHIFT	  12
#define IS_VSYSCALL(word) ((word) >> VSYSCALL_SHIFT == VSYSCALL_PAGE)

/* Why a stack ends. */
enum stack_result {
	STACK_COMPLETE = 0,	  /* at the outermost frame, as its table says */
	STACK_FRAME_POINTERS = 1, /* walked by frame pointers: may be short or wrong */
	STACK_TRUNCATED = 2,	  /* deeper than the limit */
	STACK_FAULT = 3,       /* the stack could not be read (swapped out, or a wrong address) */
	STACK_END_ZERO = 4,    /* the return address is 0: complete if threads begin there */
	STACK_NO_MAPPING = 5,  /* no mapping is known at the last frame's address */
	STACK_NO_TABLE = 6,    /* its object's table was not ready yet */
	STACK_NO_CFI = 7,      /* its object has no table, and there is no frame pointer either */
	STACK_GAP = 8,	       /* its object's table has nothing for that address */
	STACK_UNSUPPORTED = 9, /* the table's rule is one that the walk cannot follow */
	STACK_REGISTER = 10,   /* the rule needs a register that is known for the leaf only */
	STACK_BAD_CFA = 11,    /* the caller's frame would not be above this one */
	STACK_BAD_PC = 12,     /* the return address is not in user space */
	STACK_COMPAT = 13,     /* 32-bit code */
	STACK_EXEC = 14, /* within exec: the old program is gone, the new one not mapped yet */
	STACK_COPY_SHORT = 15, /* the stack copy ends there */
	STACK_NO_MM = 16,      /* no frames: the process is ending, and its memory is gone */
	STACK_RESULTS
};

struct rec_stack {
	struct record h;
	u64 id;
	u32 tgid; /* the process in which it was first seen; 0 for kernel stacks */
	u16 count;
	u16 result; /* enum stack_result */
	/*
	 * With unwind tables: the walk did not know mappings made after this time. If a record
	 * refers to the stack later, and something else was mapped at a frame in between, the stack
	 * is not valid beyond that frame. 0 = the walk used no mappings.
	 */
	u64 tables_ns;
	u64 frames[]; /* count of them */
};

/*
 * STACK_DEEP: `left_out` frames are missing between frames[leaf - 1] and the outermost ones, which
 * begin at the index stack_gap_root() and go on at `leaf` after the last one.
 */
struct stack_gap {
	u32 left_out;
	u16 leaf;
	u16 reserved;
};

/* Where the n-th frame of a walk, counted from 0, is stored; a later one may replace it. */
static inline u32 stack_frame_index(u32 n)
{
	return n < MAX_FRAMES ? n : LEAF_FRAMES + (n - LEAF_FRAMES) % ROOT_FRAMES;
}

/* The index of the innermost one of the outermost frames; leaf must be less than count. */
static inline u32 stack_gap_root(const struct stack_gap *gap, u32 count)
{
	return gap->leaf + gap->left_out % (count - gap->leaf);
}

/*
 * REC_FAULT: a page fault. It is sent when the kernel has handled the fault, at h.ns, if the fault
 * was major, slept, or took long enough (meta "fault_threshold_ns").
 */
enum fault_flags {
	FAULT_USER = 1 << 0, /* in user mode; else in the kernel, at a user address */
	FAULT_WRITE = 1 << 1,
	FAULT_EXEC = 1 << 2,	/* the fault was at the instruction's own address */
	FAULT_MAJOR = 1 << 3,	/* as the kernel accounts it */
	FAULT_SLEPT = 1 << 4,	/* the thread was blocked */
	FAULT_RETRIED = 1 << 5, /* handled in several calls, between which the lock was released */
	FAULT_FAILED = 1 << 6,	/* ended in a signal or an error */
	FAULT_FORCED = 1 << 7,	/* no instruction: the kernel requested the page (get_user_pages) */
};

/* The hooks that the begin and the end are from. */
enum fault_hook {
	FAULT_HOOK_FUNCTION = 0, /* call and return of handle_mm_fault */
	FAULT_HOOK_EVENT = 1,	 /* page_fault_user or _kernel, and a software event */
	/*
	 * The same, but sent when the thread was switched out within the fault, because its end may
	 * never be seen; h.ns is the switch-out's. If the end is seen, its record has the same
	 * start_ns.
	 */
	FAULT_HOOK_SLEEP = 2,
};

enum fault_memory {
	MEMORY_UNKNOWN = 0,
	MEMORY_ANONYMOUS = 1,
	MEMORY_STACK = 2,
	MEMORY_HEAP = 3,
	MEMORY_FILE = 4,   /* mapped privately */
	MEMORY_SHARED = 5, /* a file or anonymous memory, mapped shared */
	MEMORY_COUNT
};

/* The state of the page before the fault. */
enum fault_page {
	PAGE_UNKNOWN = 0,
	PAGE_ABSENT = 1,
	PAGE_PROTECTED = 2, /* a page without the right; a write copies it */
	/* A page of a file, as filemap_fault() found it. */
	PAGE_CACHED = 3,  /* in memory */
	PAGE_AWAITED = 4, /* being read, for another fault or by readahead */
	PAGE_READ = 5,	  /* this fault began to read it */
	PAGE_COUNT
};

struct rec_fault {
	struct record h;
	u32 tid;
	u32 device; /* the file's, as in rec_inode; 0 = none */
	u64 inode;
	u64 start_ns;
	u64 address;
	u64 offset; /* offset of the page in the file, bytes */
	u64 ustack; /* 0 = none taken; if it slept, its switch-out has the stack */
	u8 memory;  /* enum fault_memory */
	u8 page;    /* enum fault_page */
	u8 hook;    /* enum fault_hook */
	u8 reserved;
	u32 generation; /* the inode's, as in rec_inode */
};

/* INODE, SOCKET, WATCH, FUTEX: object_records.h. */

/*
 * REC_REQUEST: a request to a block device, sent when it completed, at h.ns on h.cpu. Requests of
 * all processes are sent, because they show what kept a device busy. `bytes` were transferred.
 * `merges` is the number of bios in it besides the first; these have no record.
 */
enum request_flags {
	/* A bio, as it was submitted, of a device that makes no requests (md, dm, zram). */
	REQUEST_BIO = 1 << 0,
	REQUEST_SUBMITTED = 1 << 1, /* its submission was seen, so submit_ns, tid, … are valid */
	REQUEST_TARGET = 1 << 2,    /* a target submitted it, and its stack was taken */
	REQUEST_KTHREAD = 1 << 3,   /* a kernel thread submitted it, for an unknown task */
	REQUEST_INSERTED = 1 << 4,  /* an I/O scheduler had it */
	REQUEST_SPLIT = 1 << 5,	    /* a part of a bio that was too large for one request */
	REQUEST_METADATA = 1 << 6,  /* file system metadata, or the raw device */
	REQUEST_MIXED = 1 << 7,	    /* it has bios of several threads or files */
};

/* How `tid` submitted the request. */
enum request_via {
	VIA_ITSELF = 0,
	VIA_RING_WORKER = 1, /* a worker of io_uring, to which the thread had left it */
	VIA_COUNT
};

struct rec_request {
	struct record h;
	u32 device; /* the whole disk: major << 20 | minor; 0 = none (a flush before 6.x) */
	u32 opf;    /* the kernel's bi_opf: operation and flags (linux/blk_types.h) */
	u64 sector; /* of 512 bytes, on the disk */
	u32 bytes;
	u32 tid;	 /* the submitter */
	u64 submit_ns;	 /* its first bio was passed to the block layer */
	u64 start_ns;	 /* the request was allocated; 0 = not known */
	u64 issue_ns;	 /* the last time that the driver got it; 0 = never, or not seen */
	u64 ustack;	 /* stack of the submission; 0 = none taken */
	u64 inode;	 /* the file that it reads or writes; 0 = not known */
	u64 offset;	 /* offset of its first page in the file, bytes; ~0 = not known */
	u32 file_device; /* the file's, as in rec_inode */
	u32 over_device; /* the device (md, dm) whose request this is a part of, or 0 */
	u16 merges;
	u16 issues;	/* above 1: the driver returned it to the queue */
	u16 partials;	/* partial completions before the last one */
	u8 status;	/* blk_status_t; 0 = done */
	u8 via;		/* enum request_via */
	u32 generation; /* the inode's, as in rec_inode */
	u32 held_us;	/* how long a cgroup's limit held it back after its submission */
};

/* ---- records of the recorder ------------------------------------------- */

/* REC_META: "key=value", NUL-terminated. Keys: docs/reference/capture-format.md. */
struct rec_meta {
	struct record h;
	char text[];
};

/* REC_WINDOW: h.ns is the start or the end of the recorded window. */
enum window_flags {
	WINDOW_START = 1 << 0,
	WINDOW_END = 1 << 1,
	WINDOW_ATTACHED = 1 << 2, /* attached to running processes (else a command) */
	WINDOW_SYSTEM = 1 << 3,	  /* all processes are recorded, and every switch */
};

struct rec_window {
	struct record h;
	u64 realtime_ns; /* CLOCK_REALTIME at h.ns */
};

/*
 * REC_WATERMARK: written after a drain of all ring buffers. No record older than h.ns is still to
 * come, with these exceptions: records that a BPF program was writing during the drain, and an exec
 * that only BPF reported, with its mappings, which may be some 100 ms older. So h.ns is the time
 * when the drain began, less the time for which mappings are kept to be sorted, and not later than
 * a loss of mappings until the mappings have been read from /proc.
 */
struct rec_watermark {
	struct record h;
};

/* REC_FILE: a mapped file. ids begin at 1. */
enum file_flags {
	FILE_VDSO = 1 << 0,
	FILE_ANON = 1 << 1,	  /* no file: [heap], //anon, JIT code */
	FILE_DELETED = 1 << 2,	  /* it was unlinked before it was opened */
	FILE_UNREADABLE = 1 << 3, /* cannot be opened, or is not ELF: no names */
	FILE_JIT = 1 << 4,	  /* not mapped: a perf map or jitdump, which names REC_CODE */
	/* made of what a process's memory says of code that it has made; it is where the code is */
	FILE_MEMORY = 1 << 5,
};

struct rec_file {
	struct record h;
	u32 id;
	u8 build_id_len; /* 0 = none */
	u8 build_id[20];
	u8 reserved[3];
	u32 reserved2;
	u64 base_svma; /* lowest PT_LOAD p_vaddr, page-aligned down: relative addresses count from
			  it */
	u64 size;      /* bytes */
	u64 mtime_ns;  /* last change, CLOCK_REALTIME; with size, the identity without a build ID */
	char path[];   /* NUL-terminated, as in the process's mount namespace */
};

/* REC_MAPPING: [start, end) of the process maps a file from h.ns on. */
enum mapping_flags {
	MAPPING_EXEC = 1 << 0,
	MAPPING_INITIAL = 1 << 1, /* it existed before the window began */
};

struct rec_mapping {
	struct record h;
	u32 ns_tgid;
	u32 file; /* rec_file::id */
	u64 start, end;
	u64 pgoff; /* offset in the file, bytes */
	u64 bias;  /* AVMA - SVMA */
};

/*
 * REC_CODE: [start, end) of the process holds machine code made at run time, from h.ns on (0: from
 * the beginning), until overlapping code with a later time, or with the same time and later in the
 * file, replaces it. It is a definition, written at the end from what the program that made the
 * code wrote down (file, FILE_JIT). It takes precedence over all mappings.
 *
 * AVMA - bias is an offset in the file's code. It differs between pieces of code that are not the
 * same, even if they were at the same address, because addresses are reused and names belong to
 * offsets.
 */
struct rec_code {
	struct record h;
	u32 ns_tgid;
	u32 file; /* rec_file::id */
	u64 start, end;
	u64 pgoff; /* reserved */
	u64 bias;  /* AVMA - SVMA */
};

/* REC_SPACE: a change of a process's whole address space. */
enum space_flags {
	SPACE_FORK = 1 << 0, /* ns_tgid's space begins as a copy of ns_parent's */
	SPACE_EXEC = 1 << 1, /* ns_tgid's space begins empty */
	SPACE_READ = 1 << 2, /* the MAPPING records before it at that time are complete */
};

struct rec_space {
	struct record h;
	u32 ns_tgid;
	u32 ns_parent;
};

/*
 * REC_SYMBOL: the names of one address. file 0 = kernel (addresses are AVMA),
 * else `address` is SVMA in that file. text holds `count` frames from the
 * outermost function to the innermost inlined one, each as: u32 line
 * (0 unknown), name NUL, source path NUL (empty = unknown).
 */
struct rec_symbol {
	struct record h;
	u32 file;
	u32 count;
	u64 address;	   /* as looked up: return addresses are already decremented */
	u64 function;	   /* start of the function */
	u32 function_size; /* 0 unknown */
	u32 lib;	   /* kernel only: offset in text of the module's name, 0 = vmlinux */
	char text[];
};

enum symbol_flags {
	SYMBOL_NAMELESS = 1 << 0, /* the name was made from the function's address */
	SYMBOL_DATA = 1 << 1,	  /* a variable, not a function; it begins at `function` */
	/*
	 * The address is the byte before the function, and no code is there: a return address that
	 * leads to the function was not pushed by a call.
	 */
	SYMBOL_PLANTED = 1 << 2,
};

/*
 * REC_LOSS: `count` records of `lost_kind` between from_ns and to_ns are missing, on CPU h.cpu if
 * the cause is one of the first three. count 0: the number is not known, because a flight recorder
 * has discarded that part; to_ns identifies the threads whose last records precede the losses.
 */
struct rec_loss {
	struct record h;
	u32 lost_kind;
	u32 cause; /* enum loss_cause */
	u64 count;
	u64 from_ns, to_ns;
};

enum loss_cause {
	LOSS_RING_FULL = 0,
	LOSS_SCRATCH_BUSY = 1,
	LOSS_SIDEBAND = 2,  /* perf's PERF_RECORD_LOST: mappings */
	LOSS_RECURSION = 3, /* the kernel did not run the program, because it was already running on
			       that CPU */
	LOSS_UNWALKED = 4,  /* a stack copy: no memory for it, or its program was not reported */
	LOSS_CAUSE_MAX,
};

/* REC_TOTAL: at the end, the number of records of a kind that BPF tried to send, over all CPUs. */
struct rec_total {
	struct record h;
	u32 counted_kind;
	u32 reserved;
	u64 sent; /* attempts: received + lost */
	u64 lost;
};

/* REC_NOTE: a remark on a file for the reader of the profile, as text. */
struct rec_note {
	struct record h;
	u32 file; /* rec_file::id; 0 = the whole recording */
	u32 reserved;
	char text[];
};

/* REC_END: the recording ended normally; END_SYMBOLS: its symbols were resolved. */
enum end_flags {
	END_SYMBOLS = 1 << 0,
};

struct rec_end {
	struct record h;
};

/*
 * REC_SOURCE: the text of a source file. data holds the path as in REC_SYMBOL, NUL, and then
 * text_size bytes of the file, which may be in any encoding.
 */
struct rec_source {
	struct record h;
	u32 text_size;
	u32 reserved;
	char data[];
};

/*
 * REC_DEVICE: a block device of the machine at the time of the recording. text: its name, the
 * devices or the file that it is on, and the directory where the root of its file system is
 * mounted, each with its NUL; the last two may be "".
 */
struct rec_device {
	struct record h;
	u32 device; /* major << 20 | minor */
	u32 disk;   /* the disk of a partition, or 0 */
	u16 size;   /* of text, bytes */
	u16 reserved[3];
	char text[];
};

#include "object_records.h"
#include "script_records.h"

#endif
