/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps.h - memory that the BPF programs and the recorder both look into, and the
 * settings. Unlike records.h none of it ends up in a capture.
 */
#ifndef WALLPROF_MAPS_H
#define WALLPROF_MAPS_H

#include "records.h"
#include "unwind_rows.h"

#define TARGET_WORDS	      (1 << 16) /* one bit for each of PID_MAX_LIMIT = 2^22 numbers */
#define STACK_SENT_SLOTS      (1 << 16)
#define NON_TARGET_SENT_SLOTS (1 << 12)
#define NAME_SENT_SLOTS	      (1 << 15) /* of all that has a name: files, sockets, futexes, … */
#define SCRATCH_SLOTS	      4		/* stacks under construction per CPU: programs nest */
#define ACCOUNT_KINDS	      REC_BPF_MAX
#define ACCOUNT_CAUSES	      2 /* LOSS_RING_FULL, LOSS_SCRATCH_BUSY */

/* What fd_watches() of fd.bpf.c answers. */
#define FD_WATCHES(count, kind)	 ((count) << 8 | (kind))
#define FD_WATCHES_COUNT(answer) ((answer) >> 8 & 0xff)
#define FD_WATCHES_KIND(answer)	 ((answer)&0xff)

/* The kernel's types that are read through plain pointers (kernel_read.bpf.h), by their ids in its
 * BTF. */
struct kernel_type_ids {
	u32 file, files_struct, inode, dentry, socket, sock, eventpoll, epitem, rb_node;
};

enum kernel_stacks {
	KERNEL_STACKS_NONE = 0,
	KERNEL_STACKS_BLOCKED = 1, /* at switch-outs that block, not for preempted tasks */
	KERNEL_STACKS_ALL = 2,
};

enum user_stacks {
	USER_STACKS_NONE = 0,
	USER_STACKS_FRAME_POINTERS = 1,
	USER_STACKS_TABLES = 2,
};

enum fault_source {
	FAULT_SOURCE_OFF = 0,
	FAULT_SOURCE_FENTRY = 1, /* fentry and fexit */
	FAULT_SOURCE_EVENTS = 2, /* tracepoints and software events */
};

/* bpf_get_attach_cookie() of a program on the events of the kernel's accounting. */
enum fault_cookie { FAULT_COOKIE_MINOR = 1, FAULT_COOKIE_MAJOR = 2 };

#define FAULT_THRESHOLD_NONE ~0ULL /* only those that are major or slept */

#define WAKER_THRESHOLD_NONE ~0ULL /* wakers have no stacks */

/*
 * Since when threads sleep, by the low bits of their numbers: SLEEP_START(tid, ns). Of two that
 * share a place only the one that fell asleep later is known.
 */
#define SLEEP_SLOTS	       (1u << 16)
#define SLEEP_START_TIME_BITS  42 /* of 1024 ns: 142 years */
#define SLEEP_START(tid, ns)   ((u64)(tid) << SLEEP_START_TIME_BITS | (ns) >> 10)
#define SLEEP_START_TID(slept) ((u32)((slept) >> SLEEP_START_TIME_BITS))
#define SLEEP_START_NS(slept)  (((slept) & ((1ULL << SLEEP_START_TIME_BITS) - 1)) << 10)

/*
 * The holder of the kernel lock that a thread contended for last, and which lock it is (enum
 * switch_lock), in the same slots. A tid has 22 bits.
 */
#define LOCK_OWNER(tid, owner, lock) ((u64)(tid) << 32 | (u64)(lock) << 24 | (owner))
#define LOCK_OWNER_WAITER(word)	     ((u32)((word) >> 32))
#define LOCK_OWNER_OWNER(word)	     ((u32)(word)&0xffffff)
#define LOCK_OWNER_LOCK(word)	     ((u8)((word) >> 24))

/*
 * A socket that a thread is closing, where the close may wait (SO_LINGER): no descriptor leads to
 * it any more. If two threads share a slot, it has the later one.
 */
#define CLOSING_SLOTS 256
struct closing_socket {
	u64 socket; /* struct sock */
	u32 tid;
	u32 reserved;
};

/* The CPU that a target waits for, in the same slots; 0 = none. */
#define WAITS_ON(cpu)	   ((cpu) + 1)
#define WAITS_ON_CPU(word) ((word)-1)

/*
 * When a runnable target was moved to another CPU's queue, in the same slots: its tid, the time in
 * units of 1024 ns (71 years), and whether it had been moved before. 0 = it was not moved.
 */
#define MOVED(tid, ns, again)                                                                      \
	((u64)(tid) << SLEEP_START_TIME_BITS | (((ns) >> 10) + 1) << 1 | (again))
#define MOVED_TID(word)	       SLEEP_START_TID(word)
#define MOVED_NS(word)	       (((word) >> 1 & ((1ULL << (SLEEP_START_TIME_BITS - 1)) - 1)) << 10)
#define MOVED_REPEATEDLY(word) ((word)&1)

/*
 * The number of targets that wait for a CPU, and in the bits above it since when that number has
 * not been 0, in units of 16 ns (833 days); 0 there: not known.
 */
#define CPU_WAITS_BITS	  12
#define CPU_WAITS_MAX	  ((1U << CPU_WAITS_BITS) - 1)
#define CPU_WAITS(word)	  ((word)&CPU_WAITS_MAX)
#define CPU_WAIT_TIME(ns) ((ns) >> 4)
#define CPU_WAIT_NS(word) ((word) >> CPU_WAITS_BITS << 4)

/* A fault that a task is in, or was in last. */
struct open_fault {
	u32 tid;	/* 0 = none */
	u32 error_code; /* X86_PF_*; of FAULT_SOURCE_EVENTS */
	u64 address;
	u64 start_ns;
	u64 switches; /* voluntary ones of the task until then */
	u64 regs;     /* where the kernel saved the registers, on the task's stack; by */
	u64 ip, sp;   /* these two it is told that they are still there */
	u64 here;     /* a place on that stack, of the call that asks */
	u8 user, raised, retried, told; /* booleans */
	u8 vma_lock; /* boolean: it was tried with the lock of the mapping alone */
	u8 page;     /* enum fault_page, as filemap_fault() found it */
};
#define OPEN_FAULTS (1u << 12) /* by the tid's low bits */

/* What was submitted and has become no request yet, the oldest making way. */
#define OPEN_BIOS     (1u << 12)
#define OPEN_REQUESTS (1u << 12)
#define RING_WORKS    (1u << 10)
#define RING_WATCHES  (1u << 10)

/* What became of faults that no record tells. */
struct fault_counts {
	u64 open;      /* raised, and never done: a signal, an error, or one of those that end
			  without an event, if that is waited for */
	u64 unmatched; /* done, and was not seen to begin; or another task took its place */
};

/* What became of requests that no record tells, or not all of. */
struct request_counts {
	u64 unattributed; /* a worker of io_uring submitted one, and nobody was seen to hand it on
			   */
	u64 no_slot;	  /* there was no room to keep one until it completes */
	u64 unfinished;	  /* the driver had one, and its memory is another's: it was not seen to
			     complete */
	u64 in_flight;	  /* at the end */
};

/* Stacks that were not walked, for they are those that the thread had before. */
enum memo_kind { MEMO_USER, MEMO_KERNEL, MEMO_KINDS };

/* What the recorder says of one CPU's ticks (sample_timer.c), instead of when a target was seen
 * there. */
enum tick_state { TICKS_RUNNING, TICKS_PAUSED };

/* One CPU's account of what was sent and lost. first/last_lost_ns: see loss.c. */
struct cpu_account {
	u64 sent[ACCOUNT_KINDS];
	u64 lost[ACCOUNT_CAUSES][ACCOUNT_KINDS];
	u64 first_lost_ns[ACCOUNT_KINDS]; /* the recorder sets it back to 0 */
	u64 last_lost_ns[ACCOUNT_KINDS];
	u64 memo_hits[MEMO_KINDS];
	u64 target_ns;	 /* when a target was last switched to here, or hit by a tick */
	u64 tick_state;	 /* enum tick_state; or else since when a target has had none here */
	u64 switched_ns; /* the last switch that was recorded here */
	u64 own_in_ns;	 /* time of that switch's program, and of all others since: */
	u64 own_run_ns;	 /* cost.bpf.h */
	u64 interrupts_ns, stolen_ns; /* the kernel's accounts of time that it gives to no task */
	u64 waiting;	/* CPU_WAITS() and CPU_WAIT_NS(): targets that are runnable here */
	u8 softirq;	/* the last soft interrupt that began here, its vector + 1; softirq.bpf.c */
	u8 softirq_own; /* raised by the current task's own system call */
	u8 reserved[6];
	u64 rq; /* address of its run queue, once it is known; irq_context.bpf.h */
};

/* Functions of the kernel that run soft interrupts on behalf of a task; see softirq.bpf.c. */
#define SOFTIRQ_CALLERS 4

struct address_range {
	u64 start, size;
};

/* ---- memory of the unwind tables ------------------------------------------------ */

/*
 * Tables and the mappings of processes share one memory, in chunks of the same size, which are
 * the inner maps of `chunks`: another one can be added while the programs run, but that waits for
 * all programs that may be running (10 to 20 ms before 6.19), so the first is there
 * before they are loaded. All are mapped into the recorder, which writes them as memory.
 */
#define CHUNK_CELLS_SHIFT 18
#define CHUNK_CELLS	  (1u << CHUNK_CELLS_SHIFT)
#define CHUNKS_MAX	  64u
#define CELL_ROWS_SHIFT	  2
#define CELL_ROWS	  (1u << CELL_ROWS_SHIFT)
#define RULES_MAX	  (1u << 16) /* of the whole system */

/* What there is instead of a table, in unwind_mapping::row if table is 0. */
enum unwind_no_table {
	NO_TABLE_YET = 0,  /* it is being made */
	NO_TABLE_JIT = 1,  /* no file: code made at run time */
	NO_TABLE_NONE = 2, /* the object has none */
	NO_TABLE_LOST = 3, /* it could not be made: the object is not one to guess in */
};

/* An executable mapping of a process. */
struct unwind_mapping {
	u64 start, last; /* AVMA of the first and of the last byte */
	u64 load;	 /* AVMA of what has pc 0 in the table's rows */
	u32 row, table;	 /* the table: its first row, in all chunks' rows; its number, 0 = none */
};

/*
 * The cell before a table's rows and before a run of mappings. Both are written over as soon as the
 * recorder needs them no more, although a program may be reading there, or know of them from
 * before. So each has a mark of its own, which is never used again and is taken away before
 * anything is written over: who finds it after reading has read what he was told of. No other
 * cell begins with such a word: the rule's number in a row leaves its upper bits 0, and it is
 * no address that a mapping could start at. After a mark was taken away unwind_epoch is another: as
 * long as it is not, a mark that was seen need not be looked at again.
 */
struct unwind_head {
	u64 mark;
	u32 count; /* rows or mappings */
	u32 reserved;
};

#define LIST_COOKIE  (0x5752ULL << 48) /* … | how many runs there were before it */
#define TABLE_COOKIE (0x5754ULL << 48) /* … | unwind_mapping::table */

union unwind_cell {
	struct unwind_row rows[CELL_ROWS];
	struct unwind_mapping mapping;
	struct unwind_head head;
};

#define SEEDS_MAX 8

/*
 * What is known of a process's mappings. The recorder publishes a run of mappings, sorted by
 * address; BPF adds seeds: what it finds out itself until the recorder does. An
 * entry counts only for the image (start_boottime, exec_id) that it was made for.
 */
struct unwind_process {
	u32 version; /* another one in each entry */
	u32 exec_id;
	u64 start_boottime; /* of the leader */
	u64 tables_ns;	    /* see rec_stack */
	u64 run;	    /* its head's mark */
	u32 cell, count;    /* the run: its head, and how many mappings are behind that */
	u32 seed_count;	    /* may run past SEEDS_MAX: those that found no room */
	u32 reserved;
	struct unwind_mapping seeds[SEEDS_MAX];
	/* An entry is used again at once: a copy of it counts if this one agrees with gen. */
	u32 version_end;
	u32 reserved_end;
};

#define OBJECT_LOADS_MAX 4 /* the first, and those with code: one, usually */

/* An object that BPF may meet in a mapping before the recorder has: by its inode. */
struct unwind_object_key {
	u64 inode;
	u64 size;   /* of the file: one that was rewritten mostly has another */
	u32 device; /* as the kernel has it: major << 20 | minor */
	u32 reserved;
};

struct unwind_object {
	u32 row, table; /* as in unwind_mapping */
	u64 exec_start,
		exec_last; /* from and up to what is executable, relative as the rows' pcs */
	u32 load_count, reserved;
	struct {
		u64 offset, size;
		u64 relative; /* of the byte at offset */
		u64 exec;     /* two segments can share a page of the file */
	} loads[OBJECT_LOADS_MAX];
};

/* What went wrong with the tables, counted by BPF. */
struct unwind_counts {
	u64 process_lost; /* no room for a process */
	u64 seed_lost;	  /* no room for a mapping that BPF found itself */
	u64 torn;	  /* a process's entry changed while it was read */
	u64 copies;	  /* stacks copied */
	u64 vma_busy;	  /* bpf_find_vma could not look */
};

#define COPY_SIZE (64u << 10) /* as much as perf can take */

/*
 * REC_STACK_COPY: registers and stack of a walk that ended for want of a mapping or a table, for
 * the recorder to walk again when all is known. A REC_STACK with the same id, sent
 * before, tells what was walked; no other stack has that id.
 */
struct rec_stack_copy {
	struct record h; /* flags: the stack's */
	u64 id;
	u32 tgid;
	u32 exec_id;
	u64 start_boottime; /* of the process */
	u64 tables_ns;
	u64 regs[DWARF_REGS + 1]; /* by DWARF number, and the program counter */
	u32 size;		  /* bytes of the stack, from rsp on */
	u32 reserved;
	u8 stack[COPY_SIZE];
};

#endif
