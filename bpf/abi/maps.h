/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps.h - the memory that the BPF programs and the recorder share, and the settings. Unlike the
 * records of records.h, nothing of it is ever in a capture.
 */
#ifndef WALLPROF_MAPS_H
#define WALLPROF_MAPS_H

#include "records.h"
#include "unwind_rows.h"

#define TARGET_WORDS	      (1 << 16) /* one bit for each id below PID_MAX_LIMIT = 2^22 */
#define STACK_SENT_SLOTS      (1 << 16)
#define NON_TARGET_SENT_SLOTS (1 << 12)
#define NAME_SENT_SLOTS	      (1 << 15) /* marks of files, sockets, futexes, … */
#define MAP_PAGE	      4096	/* bytes; maps with BPF_F_MMAPABLE begin on a page */
#define SCRATCH_SLOTS	      4 /* stacks under construction per CPU, because programs nest */
#define ACCOUNT_KINDS	      REC_BPF_MAX
#define ACCOUNT_CAUSES	      2 /* LOSS_RING_FULL, LOSS_SCRATCH_BUSY */

/* The result of fd_watches() of fd.bpf.c. */
#define FD_WATCHES(count, kind)	 ((count) << 8 | (kind))
#define FD_WATCHES_COUNT(answer) ((answer) >> 8 & 0xff)
#define FD_WATCHES_KIND(answer)	 ((answer)&0xff)

/* BTF ids of the kernel types that are read through plain pointers (fd.bpf.c). */
struct kernel_type_ids {
	u32 file, files_struct, inode, dentry, socket, sock, eventpoll, epitem, rb_node;
};

/*
 * Stands for the number of a helper in calls of bpf_rdonly_cast(), a function of the kernel. If it
 * were declared as that, libbpf would read all types of the kernel to find it.
 */
#define CALL_RDONLY_CAST 0x57500001

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

/* Values of bpf_get_attach_cookie() in a program on the kernel's page fault events. */
enum fault_cookie { FAULT_COOKIE_MINOR = 1, FAULT_COOKIE_MAJOR = 2 };

#define FAULT_THRESHOLD_NONE ~0ULL /* only faults that are major or slept */

#define WAKER_THRESHOLD_NONE ~0ULL /* stacks of wakers are not recorded */

/*
 * What is noted of a thread from one of its events to the next, in a slot that is indexed by the
 * low bits of its tid. If two threads share a slot, it has what came later. It is kept small,
 * because between two switches of a thread others have used the cache; three of eight slots span
 * two lines.
 */
struct thread_slot {
	u64 sleep_start; /* when it fell asleep: SLEEP_START() */
	u64 lock_owner;	 /* the kernel lock that it contended for last: LOCK_OWNER() */
	u64 moved;	 /* when it was moved to another CPU's queue, runnable: MOVED(), or 0 */
	u32 waits_on;	 /* the CPU that it, a target, waits for: WAITS_ON(), or 0 */
	u32 stack_sent;	 /* written by snapshot_stacks() */
	u64 clock;	 /* how far the scheduler's clock is ahead: RUN_CLOCK_BEGIN(), or 0 */
};

#define SLEEP_SLOTS	      (1u << 16)
#define SLEEP_START_TIME_BITS 42 /* in units of 1024 ns: 142 years */
#define SLEEP_START(tid, ns)  ((u64)(tid) << SLEEP_START_TIME_BITS | (ns) >> 10)
#define SLEEP_START_TID(word) ((u32)((word) >> SLEEP_START_TIME_BITS))
#define SLEEP_START_NS(word)  (((word) & ((1ULL << SLEEP_START_TIME_BITS) - 1)) << 10)

/*
 * A thread, and by how much the scheduler's clock advanced more than CLOCK_MONOTONIC in its runs
 * since it is counted, in units of 16 ns; it may be negative. Ids have at most 22 bits.
 */
#define RUN_CLOCK_BITS	      42
#define RUN_CLOCK_BEGIN(tid)  ((u64)(tid) << RUN_CLOCK_BITS)
#define RUN_CLOCK_TID(word)   ((u32)((word) >> RUN_CLOCK_BITS))
#define RUN_CLOCK_UNITS(ns)   (((s64)(ns) + 8) >> 4)
#define RUN_CLOCK_AHEAD(word) ((s64)((word) << (64 - RUN_CLOCK_BITS)) >> (64 - RUN_CLOCK_BITS - 4))
#define RUN_CLOCK_ADD(word, n)                                                                     \
	(((word) & ~((1ULL << RUN_CLOCK_BITS) - 1)) |                                              \
	 (((word) + (n)) & ((1ULL << RUN_CLOCK_BITS) - 1)))

/*
 * --budget: the waiting place of a thread that sleeps, in the same slots, and whether chance
 * decided that its switch-out has no stacks; 0 = it does not sleep. A place is a hash; its high
 * bits are its slot in budget_places.
 */
#define BUDGET_PLACE_BITS      41
#define BUDGET_TAG_BITS	       25
#define BUDGET_SLOTS	       (1u << (BUDGET_PLACE_BITS - BUDGET_TAG_BITS))
#define BUDGET_SLEEP_UNSAMPLED (1ULL << BUDGET_PLACE_BITS)
#define BUDGET_SLEEP(tid, place, unsampled)                                                        \
	((u64)(tid) << SLEEP_START_TIME_BITS | (u64)(unsampled) << BUDGET_PLACE_BITS | (place))
#define BUDGET_SLEEP_TID(word)	      SLEEP_START_TID(word)
#define BUDGET_SLEEP_PLACE(word)      ((word) & (BUDGET_SLEEP_UNSAMPLED - 1))
#define BUDGET_SLEEP_LACKS(word, tid) ((word) >> BUDGET_PLACE_BITS == ((u64)(tid) << 1 | 1))

/*
 * budget_rate: the chance (CHANCE_CERTAIN: always) of a wait of 1024 ns, times 1 <<
 * BUDGET_RATE_SHIFT. A wait of `units` of 1024 ns or more always has its stacks with
 * BUDGET_RATE(units).
 */
#define BUDGET_RATE_SHIFT  20
#define BUDGET_RATE(units) (((u64)CHANCE_CERTAIN << BUDGET_RATE_SHIFT) / (units))
#define BUDGET_UNITS_MAX   (1u << 20)

/* A kernel lock's holder, and which lock it is (enum switch_lock). A tid has 22 bits. */
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

#define WAITS_ON(cpu)	   ((cpu) + 1)
#define WAITS_ON_CPU(word) ((word)-1)

/* The tid, the time in units of 1024 ns (71 years), and whether it had been moved before. */
#define MOVED(tid, ns, repeated)                                                                   \
	((u64)(tid) << SLEEP_START_TIME_BITS | (((ns) >> 10) + 1) << 1 | (repeated))
#define MOVED_TID(word)	       SLEEP_START_TID(word)
#define MOVED_NS(word)	       (((word) >> 1 & ((1ULL << (SLEEP_START_TIME_BITS - 1)) - 1)) << 10)
#define MOVED_REPEATEDLY(word) ((word)&1)

/*
 * The number of targets that wait for a CPU. The bits above it are the time since which that number
 * has not been 0, in units of 16 ns (833 days); 0 = not known.
 */
#define CPU_WAITS_BITS	  12
#define CPU_WAITS_MAX	  ((1U << CPU_WAITS_BITS) - 1)
#define CPU_WAITS(word)	  ((word)&CPU_WAITS_MAX)
#define CPU_WAIT_TIME(ns) ((ns) >> 4)
#define CPU_WAIT_NS(word) ((word) >> CPU_WAITS_BITS << 4)

/* The fault that a task is in, or was in last. */
struct open_fault {
	u32 tid;	/* 0 = none */
	u32 error_code; /* X86_PF_*, with FAULT_SOURCE_EVENTS only */
	u64 address;
	u64 start_ns;
	u64 switches;	   /* the task's nvcsw when the fault began */
	u64 regs;	   /* address of the saved registers on the task's stack */
	u64 ip, sp;	   /* copies, which prove that the saved registers are still there */
	u64 stack_address; /* an address on that stack, in the frame of the present call */
	u8 user, raised, retried, reported; /* booleans */
	u8 vma_lock; /* boolean: the last try held only the lock of the mapping */
	u8 page;     /* enum fault_page, as filemap_fault() found it */
};
#define OPEN_FAULTS (1u << 12) /* indexed by the low bits of the tid */

/* Sizes of the maps of I/O in flight. The oldest entries of LRU maps are evicted. */
#define OPEN_BIOS     (1u << 12)
#define OPEN_REQUESTS (1u << 12)
#define RING_WORKS    (1u << 10)
#define RING_WATCHES  (1u << 10)

/* Faults that have no record. */
struct fault_counts {
	u64 open;      /* begun, but not seen to end (signal, error, no end event) */
	u64 unmatched; /* ended, but not seen to begin, or another task took the slot */
};

/* Requests that have no record, or an incomplete one. */
struct request_counts {
	u64 unattributed; /* an io_uring worker submitted it for an unknown thread */
	u64 no_slot;	  /* there was no slot to store it until completion */
	u64 unfinished;	  /* issued, but not seen to complete before its memory was reused */
	u64 in_flight;	  /* in flight at the end */
};

/* The two kinds of stack memos. */
enum memo_kind { MEMO_USER, MEMO_KERNEL, MEMO_KINDS };

/* The ring buffers of a group of CPUs. Not "enum ring": libbpf 1.3 and later have such a struct. */
enum ring_index {
	RING_SCHED, /* must not lose records */
	RING_BULK,
	RING_COPY, /* stack copies, which only the recorder reads */
	RINGS,
};

#define RING_GROUPS_MAX 64

/* The index of a ring in the map of all groups' rings. */
#define RING_SLOT(group, ring) ((group)*RINGS + (ring))

/*
 * Memos are in sets. The place where a stack is taken (program counter, stack pointer, …)
 * determines the set; any of its memos may have the stack.
 */
#define MEMO_WAYS  4u
#define MEMO_SETS  512u
#define MEMO_SLOTS (MEMO_SETS * MEMO_WAYS)
#define MEMO_HITS  16u

/* What came of looking for a stack in its memo. */
enum memo_outcome {
	MEMO_HIT,      /* the stack is the remembered one */
	MEMO_OTHER,    /* the memo is of another place, or empty */
	MEMO_MAPPINGS, /* the process's mappings or tables have changed */
	MEMO_CHANGED,  /* words on the stack differ */
	MEMO_UNREAD,   /* the memo was in use on another CPU, or the stack could not be read */
	MEMO_FAR,      /* the walk that followed read too many words, or too far up */
	MEMO_UNFIT,    /* … or depended on other registers, or did not reach the end */
	MEMO_UNSENT,   /* … or its stack could not be sent */
	MEMO_CHECKED,  /* a stack that was the remembered one, and was walked nevertheless */
	MEMO_WRONG,    /* … and came out different, which must not happen */
	MEMO_OUTCOMES
};

#define MEMO_CHECK 1024 /* one of so many remembered stacks is walked, as a check; a power of 2 */

/*
 * The parts of programs that are measured with --cost (cost.bpf.h). Each has the time since the end
 * of the one before.
 */
enum cost_phase {
	COST_BEGIN,	  /* the program's entry, and the CPU's account */
	COST_CALL,	  /* the system call and its descriptor */
	COST_OBJECT,	  /* what is waited for, and who holds it */
	COST_KERNEL_HIT,  /* the kernel stack, which is the remembered one */
	COST_KERNEL_WALK, /* the kernel stack, which was walked */
	COST_USER_HIT,	  /* the user stack, which is the remembered one */
	COST_USER_WALK,	  /* the user stack, which was walked */
	COST_RING,	  /* writing the record */
	COST_END,	  /* descriptions of other tasks */
	COST_PHASES
};

/* The programs of which phases are measured. */
enum cost_program { COST_NONE, COST_SWITCH, COST_WAKING, COST_TICK, COST_PROGRAMS };

/*
 * Values that the recorder stores in cpu_account::tick_state (sample_timer.c). While ticks are
 * paused, BPF replaces TICKS_PAUSED with the time at which a target got the CPU.
 */
enum tick_state { TICKS_RUNNING, TICKS_PAUSED };

/* Events at which a program of bpf/scripts runs after one of bpf/probes, which leaves it a note. */
enum script_event {
	SCRIPT_AT_SWITCH,  /* a switch-out */
	SCRIPT_AT_WAKING,  /* the waker's */
	SCRIPT_AT_REQUEST, /* the submitter's of a bio */
	SCRIPT_AT_FAULT,   /* the end of a page fault */
	SCRIPT_EVENTS
};

/* The event of the script frames that are read next; ns 0: none. */
struct script_note {
	u64 ns;	 /* the time of its record */
	u32 tid; /* the thread that the record's stack is of */
	u32 reserved;
};

/*
 * One CPU's account of sent and lost records. first/last_lost_ns: see loss.c. It has a page of its
 * own: where a change of address space empties the TLB, as on virtual machines without PCIDs, each
 * page that a program touches costs more than its cache lines. What each switch uses comes first.
 */
struct cpu_account {
	u64 target_ns;	 /* when a target was last switched in here, or was hit by a tick */
	u64 tick_state;	 /* enum tick_state, or when a target got the CPU while paused */
	u64 switched_ns; /* time of the last recorded switch */
	u64 own_in_ns;	 /* the time of that switch's program */
	u64 own_run_ns;	 /* the time of all other programs since; cost.bpf.h */
	u64 interrupts_ns, stolen_ns; /* the kernel's accounts of time that belongs to no task */
	/*
	 * The target that the last recorded switch put on the CPU, 0 = none, and by how much the
	 * scheduler's clock was ahead of CLOCK_MONOTONIC then.
	 */
	u64 run_tid, run_ahead_ns;
	struct script_note script_notes[SCRIPT_EVENTS];
	u64 waiting;	/* CPU_WAITS() and CPU_WAIT_NS(): targets that are runnable here */
	u8 softirq;	/* vector + 1 of the last soft interrupt that began here; softirq.bpf.c */
	u8 softirq_own; /* 1: the current task's own system call raised it */
	u8 ring_group;	/* the CPU's rings, set by the recorder: an index below RING_GROUPS_MAX */
	u8 reserved[5];
	u64 rq;	     /* address of its run queue, 0 = not known yet; irq_context.bpf.h */
	u64 dirtied; /* the file of the last page that a target made dirty here; writeback.bpf.c */
	u64 memos[MEMO_KINDS][MEMO_OUTCOMES];
	u64 sent[ACCOUNT_KINDS];
	u64 lost[ACCOUNT_CAUSES][ACCOUNT_KINDS];
	u64 first_lost_ns[ACCOUNT_KINDS]; /* the recorder resets it to 0 */
	u64 last_lost_ns[ACCOUNT_KINDS];
	u64 phase_ns;	   /* when the last phase ended */
	u32 phase_program; /* enum cost_program */
	u32 phase_reserved;
	u64 phases[COST_PROGRAMS][COST_PHASES][2]; /* runs and nanoseconds */
	u64 cost_ns, ran_ns; /* all cost so far, and the time that targets ran; budget.bpf.h */
	u64 ticks;	     /* how often the sampling tick interrupted the CPU */
	u64 ticks_ns;	     /* the time of on_tick where these hit a target */
	u64 deep_after_ns;   /* no deep walk before that time; unwind_deep.bpf.c */
} __attribute__((aligned(MAP_PAGE)));

/*
 * Part of the way of a deep stack's last walk, by the low bits of the tid; unwind_deep.bpf.c. It is
 * valid while `owner` is STACK_ANCHOR_OWNER() before and after it is read.
 */
struct stack_anchor {
	u64 owner;
	u64 frame[7]; /* the beginning of a struct walk, up to its registers */
};

#define STACK_ANCHORS			 256
#define STACK_ANCHOR_OWNER(tid, exec_id) ((u64)(tid) << 32 | (exec_id))

/*
 * Return addresses into functions that run soft interrupts, indexed by a few of their bits; 0 =
 * none yet. All are addresses of the kernel, whose uppermost bit is set. It is cleared in those of
 * functions that do not run soft interrupts on behalf of a task; see softirq.bpf.c.
 */
#define SOFTIRQ_CALLERS		      64
#define SOFTIRQ_CALLER_OTHER(address) ((address) & ~(1ULL << 63))

/* ---- memory of the unwind tables ------------------------------------------------ */

/*
 * Tables and the mappings of processes share one memory, in chunks of the same size, which are the
 * inner maps of `chunks`. A chunk can be added while the programs run, but that waits until all
 * programs that may be running have ended (10 to 20 ms before 6.19), so the first chunk exists
 * before they are loaded. All chunks are mapped into the recorder, which writes them directly.
 */
#define CHUNK_CELLS_SHIFT 18
#define CHUNK_CELLS	  (1u << CHUNK_CELLS_SHIFT)
#define CHUNKS_MAX	  64u
#define CELL_ROWS_SHIFT	  2
#define CELL_ROWS	  (1u << CELL_ROWS_SHIFT)
#define RULES_MAX	  (1u << 16) /* for the whole system */

/* Why there is no table: unwind_mapping::row if table is 0. */
enum unwind_no_table {
	NO_TABLE_YET = 0,  /* the table is not ready yet */
	NO_TABLE_JIT = 1,  /* not a file: code made at run time */
	NO_TABLE_NONE = 2, /* the object has no unwind information */
	NO_TABLE_LOST = 3, /* the table could not be made; frames are not guessed */
};

/* An executable mapping of a process. */
struct unwind_mapping {
	u64 start, last; /* AVMA of the first and of the last byte */
	u64 load;	 /* AVMA of the address that is pc 0 in the table's rows */
	u32 row, table;	 /* index of its first row, over all chunks; its id, 0 = none */
};

/*
 * The cell before a table's rows and before a list of mappings. The recorder overwrites either as
 * soon as it is no longer needed, although a program may be reading it, or may still have its
 * location. So each has a cookie of its own, which is never used again and is removed before
 * anything is overwritten: if a program finds the cookie unchanged after reading, it has read the
 * right data. No other cell begins with such a word: the upper bits of a row's first word are 0
 * because rule ids are small, and no mapping can start at such an address. After a cookie is
 * removed, unwind_epoch changes; as long as it has not changed, a cookie that was checked need not
 * be checked again.
 */
struct unwind_head {
	u64 cookie;
	u32 count; /* rows or mappings */
	u32 reserved;
};

#define LIST_COOKIE  (0x5752ULL << 48) /* … | the number of lists published before */
#define TABLE_COOKIE (0x5754ULL << 48) /* … | unwind_mapping::table */

union unwind_cell {
	struct unwind_row rows[CELL_ROWS];
	struct unwind_mapping mapping;
	struct unwind_head head;
};

/* A rule that a search in a table has found. */
struct found_rule {
	u64 key;	/* the table's id and the relative pc; 0 = none */
	u64 mixed_rule; /* the rule's number, mixed with the key */
};

#define FOUND_RULES 4096 /* a power of 2 */

#define SEEDS_MAX 8

/*
 * What is known of a process's mappings. The recorder publishes a list of mappings, sorted by
 * address; BPF adds seeds, the mappings that it finds out before the recorder publishes them. An
 * entry is valid only for the image (start_boottime, exec_id) that it was made for.
 */
struct unwind_process {
	u32 version; /* different in each entry */
	u32 exec_id;
	u64 start_boottime; /* the leader's */
	u64 tables_ns;	    /* see rec_stack */
	u64 list_cookie;    /* the cookie of the list's head */
	u32 cell, count;  /* the list: the index of its head, and the number of mappings after it */
	u32 seed_count;	  /* counts past SEEDS_MAX if seeds were not stored */
	u32 may_describe; /* 1: what it says of code in new memory without a file may give it a
			     table; 0: it has none */
	struct unwind_mapping seeds[SEEDS_MAX];
	/*
	 * The memory of a deleted entry is reused at once, so a copy of an entry is valid only if
	 * this field equals `version`.
	 */
	u32 version_end;
	u32 reserved_end;
};

#define OBJECT_LOADS_MAX 4 /* the first segment and those with code, usually one */

/* The key of an object that BPF may find in a mapping before the recorder does: its inode. */
struct unwind_object_key {
	u64 inode;
	u64 size;   /* the file's size, which mostly differs if it was rewritten */
	u32 device; /* the kernel's dev_t: major << 20 | minor */
	u32 reserved;
};

struct unwind_object {
	u32 row, table; /* as in unwind_mapping */
	u64 exec_start,
		exec_last; /* first and last executable address, relative as the rows' pcs are */
	u32 load_count, reserved;
	struct {
		u64 offset, size;
		u64 relative; /* relative address of the byte at offset */
		u64 exec;     /* boolean; two segments can share a page of the file */
	} loads[OBJECT_LOADS_MAX];
};

/* Failures with mappings and tables, and stack copies, counted by BPF. */
struct unwind_counts {
	u64 process_lost; /* no entry for a process: the map was full */
	u64 seed_lost;	  /* no slot for a mapping that BPF found */
	u64 torn;	  /* a process's entry changed while it was read */
	u64 copies;	  /* stack copies sent */
	u64 copies_busy;  /* and not taken, because the CPU's copy was in use */
	u64 vma_busy;	  /* bpf_find_vma could not take the lock of the mappings */
};

/* Some programs have frames of 90 KB (igzip), and two of them on one stack. */
#define COPY_SIZE (256u << 10)

/*
 * REC_STACK_COPY: registers and stack of a walk that ended because a mapping or a table was
 * missing. The recorder walks the copy when both are known. A REC_STACK with the same id, sent
 * before it, has the frames that BPF found; no other stack has that id.
 */
struct rec_stack_copy {
	struct record h; /* flags: the stack's */
	u64 id;
	u32 tgid;
	u32 exec_id;
	u64 start_boottime; /* of the process */
	u64 tables_ns;
	u64 regs[DWARF_REGS + 1]; /* by DWARF register number; the last is the program counter */
	u64 absent;		  /* a bit for each page from rsp on that was not in memory */
	u64 fs_base; /* that of a thread that slept when the recording began; 0 of others */
	u32 size;    /* bytes of `stack`: from rsp on, without absent pages */
	u32 busy;    /* for BPF: this CPU's copy is being made or sent */
	u8 stack[COPY_SIZE];
};

#endif
