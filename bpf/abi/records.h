/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * records.h - the records that the BPF programs send, which are also what the
 * capture file holds.
 *
 * The BPF programs and user space share the headers of this folder. This one has what a capture
 * holds; memory that both sides map is described in maps.h, unwind tables in unwind_rows.h, and
 * the walk that both sides compile in walk.h.
 *
 * Every record starts with `struct record`, is a multiple of 8 bytes long and
 * holds fixed-width little-endian integers only, so that a record drained from
 * a ring is appended to the capture as it is (docs/reference/capture-format.md).
 *
 * Times are CLOCK_MONOTONIC nanoseconds. Thread and process numbers called
 * tid/tgid are the kernel's own (initial PID namespace); those called
 * ns_tid/ns_tgid are the same task seen from wallprof's PID namespace, which is
 * what the user types, what perf's side-band reports and what profiles show.
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
/* kernel.perf_event_max_stack may be raised; bpf_get_stack honours it, we stop here. */
#define MAX_FRAMES 255

#include "record_kinds.h"

/*
 * Header of every record. len counts the whole record, this header included.
 * cpu is where the record was made; for records of user space it is 0.
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

/* REC_SAMPLE: a timer tick that hit a target. */
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
 * REC_STACK: the frames behind a stack id, leaf first. The id is a 64-bit hash
 * of the frames (and, for user stacks, of the process image and the tables that were
 * used), so the same stack has the same id whenever it is sent; it may be sent
 * more than once, and after the records that refer to it. One that was walked again
 * from a copy (STACK_FROM_COPY) takes the place of the one that BPF sent.
 *
 * Frame 0 of a user stack, and of the kernel stack of a sample, is the exact
 * program counter, except that a user pc inside a system call is a return
 * address. All others are return addresses, but for those marked FRAME_EXACT.
 */
enum stack_flags {
	STACK_USER = 1 << 0,
	STACK_SYSCALL_PC = 1 << 1, /* frame 0 is a return address (STACK_USER only) */
	STACK_GUESSED = 1 << 2,	   /* some frames are FRAME_GUESSED */
	STACK_FROM_COPY = 1 << 3,  /* walked by the recorder, from a copy of the stack */
};

/* In the frames of a user stack walked by unwind tables, above the 57 bits of an address. */
#define FRAME_EXACT   (1ULL << 63) /* was interrupted there by a signal: no return address */
#define FRAME_GUESSED (1ULL << 62) /* found by a frame pointer or an uncertain rule */
#define FRAME_ADDRESS ((1ULL << 62) - 1)

/* Why a stack ends where it does. */
enum stack_result {
	STACK_COMPLETE = 0,	  /* at the outermost frame, as its table says */
	STACK_FRAME_POINTERS = 1, /* walked by frame pointers: may be short or wrong */
	STACK_TRUNCATED = 2,	  /* deeper than the limit */
	STACK_FAULT = 3,	  /* the stack could not be read there (swapped out, or wrong) */
	STACK_END_ZERO = 4,	  /* the return address is 0: whole if it is where threads begin */
	STACK_NO_MAPPING = 5,	  /* no mapping is known at the last frame's address */
	STACK_NO_TABLE = 6,	  /* its object's table was not ready yet */
	STACK_NO_CFI = 7,	  /* its object has none, and there is no frame pointer either */
	STACK_GAP = 8,		  /* its object's table has nothing for that address */
	STACK_UNSUPPORTED = 9,	  /* the table's rule there is one that we cannot follow */
	STACK_REGISTER = 10,	  /* the rule needs a register of which only the leaf's is known */
	STACK_BAD_CFA = 11,	  /* the caller's frame would not lie above */
	STACK_BAD_PC = 12,	  /* the return address is not one of user space */
	STACK_COMPAT = 13,	  /* 32-bit code */
	STACK_EXEC = 14,	  /* within exec: the old program is gone, the new one not there */
	STACK_COPY_SHORT = 15,	  /* the copy that it was walked from ends there */
	STACK_NO_MM = 16,	  /* no frames: the process is ending, its memory is gone */
	STACK_RESULTS
};

struct rec_stack {
	struct record h;
	u64 id;
	u32 tgid; /* the process it was first seen in; 0 for kernel stacks */
	u16 count;
	u16 result; /* enum stack_result */
	/*
	 * Unwind tables: what was mapped after this time was not known to the walk. A stack that
	 * is referred to later, and has a frame where something else was mapped in between,
	 * is not to be trusted beyond that frame. 0 = the walk asked no mappings.
	 */
	u64 tables_ns;
	u64 frames[]; /* count of them */
};

/*
 * REC_FAULT: a page fault, sent when the kernel is done with it; h.ns is then. Sent of those that
 * are major, that slept, or that took long enough (meta "fault_threshold_ns").
 */
enum fault_flags {
	FAULT_USER = 1 << 0, /* a program's instruction; else one of the kernel's, at user memory */
	FAULT_WRITE = 1 << 1,
	FAULT_EXEC = 1 << 2,	/* the instruction itself was not there */
	FAULT_MAJOR = 1 << 3,	/* as the kernel accounts it */
	FAULT_SLEPT = 1 << 4,	/* the thread was off CPU, and not for want of one */
	FAULT_RETRIED = 1 << 5, /* handled in two calls or more: the lock was let go in between */
	FAULT_FAILED = 1 << 6,	/* ended in a signal or an error */
	FAULT_FORCED = 1 << 7,	/* no instruction: the kernel wanted the page (get_user_pages) */
};

/* How its begin and its end are known. */
enum fault_hook {
	FAULT_HOOK_FUNCTION = 0, /* handle_mm_fault: its call and its return */
	FAULT_HOOK_EVENT = 1,	 /* page_fault_user or _kernel, and the kernel's accounting */
	/*
	 * As the last, but sent when the thread was switched out within it, for that it ends may
	 * never be told; h.ns is the switch-out's. One that is told has the same start_ns.
	 */
	FAULT_HOOK_SLEEP = 2,
};

enum fault_memory {
	MEMORY_UNKNOWN = 0,
	MEMORY_ANONYMOUS = 1,
	MEMORY_STACK = 2,
	MEMORY_HEAP = 3,
	MEMORY_FILE = 4,   /* mapped privately */
	MEMORY_SHARED = 5, /* a file, or memory without a name, mapped to be shared */
	MEMORY_COUNT
};

/* What was there before. */
enum fault_page {
	PAGE_UNKNOWN = 0,
	PAGE_ABSENT = 1,
	PAGE_PROTECTED = 2, /* a page without the right: of a write, it is copied */
	/* Of a file, as filemap_fault() found it. */
	PAGE_CACHED = 3,  /* in memory */
	PAGE_AWAITED = 4, /* being read, for another or ahead */
	PAGE_READ = 5,	  /* it began to be read for this fault */
	PAGE_COUNT
};

struct rec_fault {
	struct record h;
	u32 tid;
	u32 device; /* of the file, as in rec_inode; 0 = none */
	u64 inode;
	u64 start_ns;
	u64 address;
	u64 offset; /* of the page in the file, bytes */
	u64 ustack; /* 0 = none taken; if it slept, that of its switch-out is the same */
	u8 memory;  /* enum fault_memory */
	u8 page;    /* enum fault_page */
	u8 hook;    /* enum fault_hook */
	u8 reserved;
	u32 generation; /* of the inode, as in rec_inode */
};

/* INODE, SOCKET, WATCH, FUTEX: object_records.h. */

/*
 * REC_REQUEST: a request to a block device, sent when it completed; h.ns is then, h.cpu where.
 * Whoever submitted it: those of other processes are what a device was busy with. `bytes` were
 * moved; `merges` bios besides the first were in it, of which nothing is told.
 */
enum request_flags {
	/* Of a device that makes no requests of them (md, dm, zram): one bio, as it was submitted.
	 */
	REQUEST_BIO = 1 << 0,
	REQUEST_SUBMITTED = 1 << 1, /* its submission was seen: submit_ns, tid and what follows */
	REQUEST_TARGET = 1 << 2,    /* by a target, its stack being taken */
	REQUEST_KTHREAD = 1 << 3,   /* by a thread of the kernel, for whomever */
	REQUEST_INSERTED = 1 << 4,  /* a scheduler had it */
	REQUEST_SPLIT = 1 << 5,	    /* a part of a bio that was too large for one */
	REQUEST_METADATA =
		1 << 6,		/* of the file system on the device, or the device read as such */
	REQUEST_MIXED = 1 << 7, /* bios of several threads or files in one */
};

/* Who did what `tid` wanted. */
enum request_via {
	VIA_ITSELF = 0,
	VIA_RING_WORKER = 1, /* a worker of io_uring, to which the thread had left it */
	VIA_COUNT
};

struct rec_request {
	struct record h;
	u32 device; /* the whole disk's: major << 20 | minor; 0 = none (a flush before 6.x) */
	u32 opf;    /* the kernel's bi_opf: operation and flags (linux/blk_types.h) */
	u64 sector; /* of 512 bytes, on the disk */
	u32 bytes;
	u32 tid;	 /* who submitted it */
	u64 submit_ns;	 /* a bio was handed to the block layer */
	u64 start_ns;	 /* the request was made; 0 = not known */
	u64 issue_ns;	 /* the driver had it, for the last time; 0 = never, or not seen */
	u64 ustack;	 /* of the submission; 0 = none taken */
	u64 inode;	 /* the file that it is about; 0 = not known */
	u64 offset;	 /* of its first page in the file, bytes; ~0 = not known */
	u32 file_device; /* of the file, as in rec_inode */
	u32 over_device; /* the device whose request this is a part of (md, dm), or 0 */
	u16 merges;
	u16 issues;	/* more than one: it was given back to the queue */
	u16 partials;	/* completions before the last */
	u8 status;	/* blk_status_t; 0 = done */
	u8 via;		/* enum request_via */
	u32 generation; /* of the file's inode, as in rec_inode */
	u32 held_us;	/* that a cgroup's limit held it back for after its submission */
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
 * REC_WATERMARK: written after a drain of all rings. No record older than h.ns is still
 * to come, but for those that a BPF program was still writing then, and for an exec
 * that only BPF told and what is mapped since, which are some 100 ms older. So h.ns is
 * when the drain began, less what mappings are kept to be put in order, and not later
 * than a loss of mappings until what was lost has been read.
 */
struct rec_watermark {
	struct record h;
};

/* REC_FILE: a mapped file. ids count from 1. */
enum file_flags {
	FILE_VDSO = 1 << 0,
	FILE_ANON = 1 << 1,	  /* no file: [heap], //anon, JIT code */
	FILE_DELETED = 1 << 2,	  /* already unlinked when it was opened */
	FILE_UNREADABLE = 1 << 3, /* could not be opened or is not ELF: no names from it */
	FILE_JIT = 1 << 4,	  /* not mapped: the perf map or jitdump that names REC_CODE */
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
	u64 size;      /* bytes, and */
	u64 mtime_ns;  /* last change, CLOCK_REALTIME: what tells a file without a build id */
	char path[];   /* NUL-terminated, as the process's mount namespace has it */
};

/* REC_MAPPING: [start, end) of the process maps a file from h.ns on. */
enum mapping_flags {
	MAPPING_EXEC = 1 << 0,
	MAPPING_INITIAL = 1 << 1, /* there before the window began */
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
 * REC_CODE: [start, end) of the process holds machine code made at run time, from h.ns
 * on (0: since ever) until code that overlaps it is younger, or of the same time and
 * later in the file. A definition: written at the end, from what the program that made
 * it wrote down (file, FILE_JIT). It lies over all mappings.
 *
 * AVMA - bias is an offset in the file's code, different for every two pieces that are
 * not the same, wherever they lay: addresses are used again, names stand for offsets.
 */
struct rec_code {
	struct record h;
	u32 ns_tgid;
	u32 file; /* rec_file::id */
	u64 start, end;
	u64 pgoff; /* reserved */
	u64 bias;  /* AVMA - SVMA */
};

/* REC_SPACE: what happens to a process's address space as a whole. */
enum space_flags {
	SPACE_FORK = 1 << 0, /* ns_tgid begins as a copy of ns_parent's */
	SPACE_EXEC = 1 << 1, /* ns_tgid begins anew, empty */
	SPACE_READ = 1 << 2, /* what MAPPING records of the same time told before is all it has */
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
	u64 address;	   /* as looked up: a return address is already less 1 */
	u64 function;	   /* start of the function */
	u32 function_size; /* 0 unknown */
	u32 lib;	   /* kernel only: offset in text of the module's name, 0 = vmlinux */
	char text[];
};

enum symbol_flags {
	SYMBOL_NAMELESS = 1 << 0, /* the name was made from the function's place */
	SYMBOL_DATA = 1 << 1,	  /* no function, but a variable: it begins at `function` */
};

/*
 * REC_LOSS: `count` records of `lost_kind` are missing that were due between from_ns and to_ns, on
 * CPU h.cpu if the cause is one of the first three. count 0: so many as nobody knows, before the
 * window of a flight recorder; they only tell whose earlier records prove nothing.
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
	LOSS_SIDEBAND = 2,  /* perf's own PERF_RECORD_LOST: mappings */
	LOSS_RECURSION = 3, /* the kernel left the program out: it was already running there */
	LOSS_UNWALKED = 4,  /* a copied stack: no room for it, or nobody told of its program */
	LOSS_CAUSE_MAX,
};

/* REC_TOTAL: at the end, how many records of a kind BPF tried to send, over all CPUs. */
struct rec_total {
	struct record h;
	u32 counted_kind;
	u32 reserved;
	u64 sent; /* attempts: received + lost */
	u64 lost;
};

/* REC_NOTE: something that whoever reads the profile should know of a file, as text. */
struct rec_note {
	struct record h;
	u32 file; /* FILE id; 0 = of the recording */
	u32 reserved;
	char text[];
};

/* REC_END: the recording ended in order; symbols were resolved if END_SYMBOLS. */
enum end_flags {
	END_SYMBOLS = 1 << 0,
};

struct rec_end {
	struct record h;
};

/*
 * REC_SOURCE: the text of a source file. data holds the path as REC_SYMBOL has it, NUL, and
 * then text_size bytes as they are in the file, which may be in any encoding.
 */
struct rec_source {
	struct record h;
	u32 text_size;
	u32 reserved;
	char data[];
};

/*
 * REC_DEVICE: a block device that the machine had at the time. text: its name, what it lies on
 * (devices, or the file behind it), where the root of its file system is mounted, each with its
 * NUL; the last two may be "".
 */
struct rec_device {
	struct record h;
	u32 device; /* major << 20 | minor */
	u32 disk;   /* of a partition, or 0 */
	u16 size;   /* of text, bytes */
	u16 reserved[3];
	char text[];
};

#include "object_records.h"

#endif
