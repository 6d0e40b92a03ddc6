/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_records.h - the records of the ring buffer that must not lose any: switches, wakeups,
 * threads. Only records.h includes it.
 */
#ifndef WALLPROF_SCHED_RECORDS_H
#define WALLPROF_SCHED_RECORDS_H

/*
 * REC_SWITCH: a sched_switch in which prev or next (or both) is a target, or one between two
 * non-targets while a target is runnable on that CPU. In a recording of the whole system
 * (WINDOW_SYSTEM) every sched_switch has one.
 *
 * seq is the low 16 bits of the task's nvcsw + nivcsw. __schedule() raises it before the
 * tracepoint, so the switch-in that ends a wait has the same seq as its switch-out, and the next
 * switch-out has one more: a reader can prove, task by task, that nothing is missing between two
 * records.
 *
 * If prev is not a target (SWITCH_PREV clear), SWITCH_HAS_OUT is clear, prev_seq and prev_state are
 * 0, and syscall is -1. SWITCH_HAS_OBJECT is set if prev waits in a call on one descriptor or for a
 * length of time, or is an io_uring worker that works on an open file.
 */
enum switch_flags {
	SWITCH_PREV = 1 << 0,	 /* prev is a target: its switch-out is in this record */
	SWITCH_NEXT = 1 << 1,	 /* next is a target: its switch-in is in this record */
	SWITCH_PREEMPT = 1 << 2, /* the tracepoint's preempt argument */
	SWITCH_IOWAIT = 1 << 3,	 /* prev->in_iowait */
	SWITCH_COMPAT = 1 << 4,	 /* 32-bit system call; it is omitted, because its numbers differ */
	/*
	 * A signal was pending, so prev stayed on the run queue although the state argument says
	 * that it blocks (kernels before 6.15 do not correct the argument).
	 */
	SWITCH_SIGNALLED = 1 << 5,
	SWITCH_THROTTLED = 1 << 6,   /* prev is runnable, but its cgroup has used up its CPU time */
	SWITCH_KERNEL_LOCK = 1 << 7, /* owner is the tid of the holder of the kernel lock that prev
					contended for last, maybe long before */
};

/* rec_switch::parts. Each part has a fixed offset; the record ends after its last part. */
enum switch_parts {
	SWITCH_HAS_OUT = 1 << 0,    /* kstack to owner */
	SWITCH_HAS_OBJECT = 1 << 1, /* inode to generation */
	/* Not a part: next was moved several times (moved_before). */
	SWITCH_MOVED_REPEATEDLY = 1 << 2,
	/* Not a part: the stacks and the object were left out on purpose, by chance (--budget). */
	SWITCH_UNSAMPLED = 1 << 3,
};

/*
 * rec_switch::parts and rec_waking::parts, with --budget: the chance that the stacks and the object
 * of the record had to be taken, in units of 1 / CHANCE_CERTAIN. One that was taken with a chance
 * of a quarter stands for four.
 */
#define CHANCE_CERTAIN	 4096u
#define CHANCE_LEAST	 128u
#define CHANCE_SHIFT	 4
#define CHANCE_OF(parts) ((parts) >> CHANCE_SHIFT ? (parts) >> CHANCE_SHIFT : CHANCE_CERTAIN)

/* --budget: the recorder takes the stacks of threads that lack them and have slept for so long. */
#define BUDGET_LONG_NS 20000000ULL

struct rec_switch {
	struct record h;
	u32 prev_tid;
	u32 next_tid;
	u16 prev_seq;
	u16 next_seq;
	u16 prev_state; /* the tracepoint's argument (TASK_*), low 16 bits; 0 = still runnable */
	s16 syscall;	/* -1: not in a system call (user mode, fault, kernel thread) */
	u16 parts;	/* enum switch_parts */
	u8 fd_kind;	/* enum fd_kind of the descriptor that the call waits for */
	u8 fd_count; /* poll, select: number of descriptors (255: as many or more, or unreadable),
			less those below 0 among the first POLL_FDS_READ of a poll; epoll: number of
			watched files (2: two or more); splice, tee: 1 if the call waits for its
			output */
	/*
	 * The recording cost in prev's run, that is, since the CPU's previous switch. own_in: the
	 * cost of that switch's record, whose timestamp is taken first; in units of 16 ns
	 * (SWITCH_NS()), like complete_for and moved_before, and limited to what the field can
	 * hold. own_run: all other cost (SWITCH_RUN_NS()); a remainder of less than a unit is added
	 * to the next switch.
	 */
	u16 own_in, own_run;
	/*
	 * The time in prev's run that interrupts and the hypervisor took, in ns, as far as the
	 * kernel accounts for what it subtracts from a task's running time
	 * (update_rq_clock_task()).
	 */
	u32 interrupts_ns, stolen_ns;
	/*
	 * The length of the time before this switch in which every switch of this CPU has a record;
	 * 0 = not known. It is not used in a recording of the whole system, where every switch has
	 * a record.
	 */
	u32 complete_for;
	/*
	 * The time since next, a runnable target, was last moved to this CPU's queue; 0 = it was
	 * not moved. (A wakeup puts a thread into one queue only.)
	 */
	u32 moved_before;
	/* SWITCH_HAS_OUT */
	u64 kstack; /* stack id, 0 = none taken */
	u64 ustack;
	u64 args[3]; /* first three arguments of the system call */
	/*
	 * In a wait for a lock in user memory (futex): the holder, as glibc's mutex and the
	 * kernel's priority-inheritance protocol store it there. If the word is such a lock, this
	 * is the rec_task::own_tid of a thread of the process; 0 = none. See SWITCH_KERNEL_LOCK.
	 */
	u32 owner;
	u8 lock; /* enum switch_lock: the kernel lock that prev contended for last */
	u8 reserved;
	/*
	 * --budget: a hash of where prev called the system call, and of its first argument. Waits
	 * of one thread in one call with the same hash mostly have the same stacks.
	 */
	u16 place;
	/*
	 * SWITCH_HAS_OBJECT. The open file of the descriptor, by its inode, as in rec_inode.
	 * Instead: in a call that only sleeps (nanosleep, clock_nanosleep, select and the like
	 * without descriptors) the requested time in ns; in a futex_waitv of one word the word's
	 * address.
	 */
	union {
		u64 inode; /* 0 = not known */
		u64 timeout_ns;
		u64 word;
	};
	u32 file_device;
	u32 generation;
};
#define SWITCH_SHORT_LEN 56  /* without any part */
#define SWITCH_OUT_LEN	 104 /* with SWITCH_HAS_OUT */

/* Fields of rec_switch that are in units of 16 ns. */
#define SWITCH_NS(units) ((u64)(units) << 4)
#define SWITCH_UNITS(ns) ((ns) >> 4)
/* rec_switch::own_run in ns; if its top bit is set, it is in a coarser unit. */
#define SWITCH_RUN_SHIFT	8
#define SWITCH_RUN_COARSE_SHIFT 16
#define SWITCH_RUN_COARSE	0x8000U
#define SWITCH_RUN_NS(units)                                                                       \
	((units)&SWITCH_RUN_COARSE ? (u64)((units) ^ SWITCH_RUN_COARSE) << SWITCH_RUN_COARSE_SHIFT \
				   : (u64)(units) << SWITCH_RUN_SHIFT)

/* rec_switch::lock. As with SWITCH_KERNEL_LOCK, the contention may have been long before. */
enum switch_lock {
	SWITCH_LOCK_OTHER = 0,
	SWITCH_LOCK_MMAP = 1,	     /* mmap_lock of prev's process */
	SWITCH_LOCK_MMAP_HOLDER = 2, /* mmap_lock of the process of owner */
};

#define POLL_FDS_READ 4

/*
 * The kind of a descriptor: of the call's first argument, if that is a descriptor. For poll and
 * ppoll only the first POLL_FDS_READ descriptors are read: FD_INET if one of them is an Internet
 * socket, else the kind that all of them have, or FD_NONE.
 */
enum fd_kind {
	FD_NONE = 0, /* the call has no descriptor, or it could not be read */
	FD_FILE = 1, /* regular file, directory or block device */
	FD_CHAR = 2, /* character device other than a terminal: /dev/net/tun, /dev/kmsg, … */
	FD_PIPE = 3,
	FD_INET = 4,   /* AF_INET, AF_INET6 socket */
	FD_UNIX = 5,   /* AF_UNIX socket */
	FD_SOCKET = 6, /* any other socket */
	FD_LISTEN = 7, /* listening socket, any family */
	FD_ANON = 8,   /* anonymous inode: eventfd, timerfd, signalfd, epoll, … */
	FD_TTY = 9,    /* terminal, by its device number */
	FD_LAST = FD_TTY,
};

/* REC_WAKING: sched_waking or sched_wakeup_new of a target. */
enum waking_flags {
	WAKING_HARDIRQ = 1 << 0,	 /* the waker is an interrupt of the task waker_tid */
	WAKING_SOFTIRQ = 1 << 1,	 /* likewise a soft interrupt after an interrupt */
	WAKING_NEW = 1 << 2,		 /* sched_wakeup_new: first time on a run queue */
	WAKING_UNKNOWN_CONTEXT = 1 << 3, /* this kernel does not show the context */
};

/*
 * rec_waking::parts. The stacks are the waker's, and are recorded if the thread slept for long
 * enough. If an interrupt is the waker, there is no user stack, because it would be the interrupted
 * thread's.
 */
enum waking_parts {
	WAKING_HAS_STACKS = 1 << 0, /* kstack and ustack */
	/* Not a part: as SWITCH_UNSAMPLED, of the waker's stacks. */
	WAKING_UNSAMPLED = 1 << 1,
};

struct rec_waking {
	struct record h;
	u32 tid; /* the wakee's */
	u32 waker_tid;
	u16 parts; /* enum waking_parts */
	/*
	 * The vector (linux/interrupt.h) + 1 of the soft interrupt that was being served, whether a
	 * system call of the waker raised it (no flag) or not (WAKING_SOFTIRQ); 0 = none, or not
	 * known.
	 */
	u8 vector;
	u8 reserved[5];
	/* WAKING_HAS_STACKS */
	u64 kstack; /* stack id, 0 = none taken */
	u64 ustack;
};
#define WAKING_SHORT_LEN 32 /* without any part */

/*
 * REC_TASK: describes the task that has a tid. It is sent at birth, at rename, after exec, for
 * every thread found at the start (and again at the end), and for non-targets that other records
 * refer to. h.ns is the birth if TASK_BIRTH is set.
 */
enum task_flags {
	TASK_BIRTH = 1 << 0,
	TASK_NON_TARGET = 1 << 1, /* not a target: it woke one, had its CPU or used its disk */
	TASK_KTHREAD = 1 << 2,
	TASK_IO_WORKER = 1 << 3, /* kernel-made worker thread of the process (io_uring) */
	TASK_RENAME = 1 << 4,
	TASK_JOINED = 1 << 5, /* it existed before, and is a target from now on */
};

struct rec_task {
	struct record h;
	u32 tid, tgid;
	u32 ns_tid, ns_tgid; /* 0 if the task is not visible in wallprof's namespace */
	u32 parent_tgid;
	u32 creator_tid;    /* TASK_BIRTH: the thread that called clone */
	u64 start_boottime; /* task_struct::start_boottime, ns */
	char comm[COMM_LEN];
	u32 exec_id; /* task_struct::self_exec_id, low bits: incremented by each exec */
	u32 own_tid; /* in its innermost PID namespace, as gettid() returns it; 0 = not known */
};

/*
 * REC_EXEC: sched_process_exec. If a thread other than the leader called exec, old_tid is its
 * former tid; the thread continues as tid, and the old leader ends without a final switch-out.
 */
struct rec_exec {
	struct record h;
	u32 tid, old_tid;
	u32 tgid;
	u32 exec_id; /* of the new program; see rec_task */
	char comm[COMM_LEN];
	char path[EXEC_PATH_LEN]; /* as given to execve; truncated, always NUL-terminated */
};

#define ARGS_MAX 4096 /* bytes of an argument list that are recorded */

/*
 * REC_ARGS: the argument list of a process, from then on: at each exec, and for processes that were
 * not executed while they were recorded, at the start of the window, or when they become targets.
 * What a process has written over it (a title, as setproctitle(3) of BSD sets it) is read again at
 * the end of the window, and recorded if it is another one.
 */
enum args_flags {
	ARGS_FROM_PROC = 1 << 0, /* read by the recorder from /proc/PID/cmdline */
	ARGS_INHERITED = 1 << 1, /* those of the process that forked it */
};

struct rec_args {
	struct record h;
	u32 tgid;
	u32 exec_id; /* of the program; see rec_task; 0 = not known */
	u32 total;   /* bytes that the kernel set aside for the whole list; 0 = not known */
	u16 size;    /* of text, bytes; less than total: the rest is not recorded */
	u16 reserved;
	char text[]; /* the arguments, each with its NUL; the last one may lack it */
};

/* REC_EXIT: sent with the final switch-out, just before it. */
enum exit_flags {
	EXIT_GROUP_DEAD = 1 << 0, /* the last thread of the process */
};

enum exit_parts {
	EXIT_HAS_STARTS = 1 << 0, /* start_boottime, process_start_boottime */
};

struct rec_exit {
	struct record h;
	u32 tid, tgid;
	u32 exit_code; /* as in wait(2) */
	u16 parts;     /* enum exit_parts */
	u16 reserved;
	/*
	 * EXIT_HAS_STARTS. Another task may have the tid by now: the start times of the thread and
	 * of its process identify it.
	 */
	u64 start_boottime, process_start_boottime;
};

/*
 * REC_STATS: the kernel's accounting of a thread since its birth. Sent at the start and end of the
 * window for threads alive then, and at the final switch-out, where sum_exec_runtime is exact (at
 * the exit tracepoint it may be a tick old).
 */
enum stats_parts {
	STATS_HAS_BYTES = 1 << 0, /* read_bytes, write_bytes */
	STATS_HAS_CLOCK = 1 << 1, /* clock_ahead */
};

struct rec_stats {
	struct record h;
	u32 tid;
	u16 parts; /* enum stats_parts */
	u16 reserved;
	u64 sum_exec_runtime; /* ns */
	u64 run_delay;	      /* ns; all ones if the kernel does not keep it */
	u64 utime, stime;     /* ns */
	u64 nvcsw, nivcsw;
	u64 min_flt, maj_flt;
	/*
	 * STATS_HAS_BYTES. Bytes read from and written to disks; a page counts as written when it
	 * is made dirty. 0 if the kernel does not count them.
	 */
	u64 read_bytes, write_bytes;
	/*
	 * STATS_HAS_CLOCK. By how many ns the scheduler's clock of the CPUs (rq->clock_task), by
	 * which sum_exec_runtime is counted, advanced more than CLOCK_MONOTONIC in the thread's
	 * runs since wallprof counts them; negative if less.
	 */
	s64 clock_ahead;
};

/*
 * REC_SNAPSHOT: a thread's state as the task iterator found it, at the start of the window and
 * again at its end (SNAPSHOT_END). h.ns was read before, ns_after after the fields; a switch record
 * between the two takes precedence.
 */
enum snapshot_flags {
	SNAPSHOT_ON_CPU = 1 << 0,
	SNAPSHOT_QUEUED = 1 << 1, /* on a run queue */
	SNAPSHOT_IOWAIT = 1 << 2,
	SNAPSHOT_END = 1 << 3,
	SNAPSHOT_COMPAT = 1 << 4,
};

enum snapshot_parts {
	SNAPSHOT_HAS_OBJECT = 1 << 0, /* inode to generation */
	SNAPSHOT_HAS_OWNER = 1 << 1,  /* owner */
};

struct rec_snapshot {
	struct record h;
	u32 tid;
	u16 seq;   /* as in rec_switch */
	u16 state; /* task_struct::__state, low 16 bits */
	u64 ns_after;
	u64 kstack; /* 0 unless the task was off CPU and did not switch meanwhile */
	u64 ustack;
	u64 args[3];
	s16 syscall;
	u8 fd_kind;
	u8 fd_count;
	u16 task_cpu; /* the CPU on which it runs, is queued, or ran last */
	u16 parts;    /* enum snapshot_parts */
	union {	      /* SNAPSHOT_HAS_OBJECT, as in rec_switch */
		u64 inode;
		u64 timeout_ns;
		u64 word;
	};
	u32 file_device;
	u32 generation;
	u32 owner; /* SNAPSHOT_HAS_OWNER, as in rec_switch, of a lock in user memory */
	u32 reserved2;
};
#define SNAPSHOT_SHORT_LEN 80 /* without any part */

#endif
