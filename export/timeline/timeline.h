/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline.h - what each thread did at each moment, made from a capture by timeline_builder.h.
 *
 * It is a pure function of the records and never looks at this machine. For every thread, from its
 * birth (or the start of the window) to its exit (or the end), there is one unbroken chain of
 * intervals; each ends where the next begins. The sums over that chain are the time by state (the
 * ledger), so they add up exactly to the thread's lifetime in the window. What the records do not
 * prove (because some were lost) is STATE_UNKNOWN, never a guess.
 */
#ifndef WALLPROF_TIMELINE_H
#define WALLPROF_TIMELINE_H

#include "args.h"
#include "objects.h"
#include "own_code.h"
#include "reason.h"
#include "records.h"
#include "requests.h"
#include "util.h"

enum thread_state {
	STATE_UNKNOWN = 0,
	STATE_RUNNING = 1,
	STATE_RUNNABLE = 2,
	STATE_BLOCKED = 3,
	STATE_COUNT,
};
/* As reports and profiles have them, and as --state takes them. */
extern const char *const timeline_state_names[STATE_COUNT];

#define STACK_NONE  UINT32_MAX /* no stack was taken */
#define WAIT_NONE   UINT32_MAX
#define THREAD_NONE UINT32_MAX /* no such thread */

/*
 * One state of one thread, from start_ns to the start of the next interval (the
 * last one ends at Thread::end_ns).
 */
typedef struct Interval {
	uint64_t start_ns;
	/* Timeline::stacks; of a running interval: the stacks of the switch-out that ended it. */
	uint32_t user_stack;
	uint32_t kernel_stack;
	/*
	 * The task that ended it (STATE_BLOCKED) or began it (REASON_WOKEN): Timeline::tasks, or
	 * THREAD_NONE.
	 */
	uint32_t waker;
	/*
	 * STATE_RUNNING: where it ran; STATE_BLOCKED: where it was woken; STATE_RUNNABLE: the CPU
	 * that it waited for (INTERVAL_MIGRATED: where it was preempted), or INTERVAL_CPU_UNKNOWN.
	 */
	uint16_t cpu;
	int16_t syscall;   /* STATE_BLOCKED: -1 = none */
	uint8_t state : 3; /* enum thread_state */
	/*
	 * Its stacks and its object were left out (--budget). What it has of them is of another
	 * switch-out at the same place, or STACK_NONE.
	 */
	uint8_t unsampled : 1;
	uint8_t sleep : 4; /* STATE_BLOCKED: enum sleep_state */
	uint8_t reason;	   /* enum reason: of blocked and runnable intervals */
	uint8_t rule : 6;  /* enum reason_rule: what the reason rests on */
	uint8_t lock : 2;  /* STATE_BLOCKED: enum switch_lock */
	uint8_t flags;	   /* enum interval_flags */
	/*
	 * Timeline::tasks, or THREAD_NONE. STATE_RUNNABLE: the task (or CPU_IDLE) that took the CPU
	 * from this thread, or had it until this thread got it; cpu_users.h has the tasks in
	 * between. STATE_BLOCKED: the holder of the lock that the thread waits for.
	 */
	union {
		uint32_t cpu_user, lock_holder;
	};
} Interval;

enum interval_flags {
	INTERVAL_OPEN_START = 1 << 0, /* began before the window */
	INTERVAL_OPEN_END = 1 << 1,   /* did not end before the end of the window */
	INTERVAL_WAKER_IRQ = 1 << 2,  /* an interrupt was the waker; waker is THREAD_NONE */
	/* STATE_RUNNABLE: it was moved to another CPU; thread_queue_move() may have the time. */
	INTERVAL_MIGRATED = 1 << 3,
};

#define INTERVAL_CPU_UNKNOWN UINT16_MAX

/* Where ticks show the cost of recording; see recording_cost.h. */
enum recording_class {
	RECORDING_ELSEWHERE = 0,
	RECORDING_INSIDE, /* in wallprof's own code, or in what that calls */
	RECORDING_SWITCH, /* where the kernel enables interrupts again after a switch, */
	RECORDING_UNLOCK, /* or after a wakeup and the like */
	RECORDING_CLASSES
};

/* A timer tick. */
typedef struct Tick {
	uint64_t ns;
	uint32_t user_stack;
	uint32_t kernel_stack;
	/* In the critical path: the thread that the tick hit (Timeline::threads). */
	uint32_t owner;
	bool user_mode;
	uint8_t recording; /* enum recording_class */
	bool has_lock;	   /* the thread had its interpreter's lock */
} Tick;

/* A page fault: a span over intervals. */
typedef struct Fault {
	uint64_t start_ns, end_ns; /* in the window */
	uint64_t waited_ns;	   /* the blocked part of it */
	uint32_t wait;		   /* its first blocked interval, or WAIT_NONE */
	uint64_t address;
	uint64_t offset;     /* of the page in the file, bytes, or OFFSET_UNKNOWN */
	uint32_t file;	     /* Timeline::objects, or OBJECT_NONE */
	uint32_t user_stack; /* STACK_NONE: none was taken */
	uint8_t flags;	     /* enum fault_flags */
	uint8_t memory;	     /* enum fault_memory */
	uint8_t page;	     /* enum fault_page */
	/* enum fault_hook; FAULT_HOOK_SLEEP: its end was not recorded. */
	uint8_t hook;
	bool by_program; /* a program provided the page (userfaultfd) */
} Fault;

/* A wait that ended because a request completed. */
typedef struct RequestWait {
	uint32_t interval; /* Thread::intervals */
	uint32_t request;  /* Requests::list */
} RequestWait;

/* A runnable thread was moved to the queue of another CPU, where it then ran. */
typedef struct QueueMove {
	uint64_t start_ns; /* of the wait */
	uint64_t ns;	   /* when it was moved, for the last time */
	uint16_t cpu;	   /* the CPU that it was moved to */
	/* It had been moved before, and the queue in between is unknown. */
	bool again;
} QueueMove;

/* What a wait's system call was for. */
typedef struct ObjectWait {
	uint64_t start_ns; /* of the wait */
	uint32_t object;   /* Timeline::objects */
} ObjectWait;

/* LockWait::offset: the thread did not wait for a word in the lock. */
#define LOCK_NO_WORD UINT16_MAX

/*
 * The lock of an interpreter, which lets one thread at a time interpret, when a thread that has it
 * or waits for it was switched out.
 */
typedef struct LockWait {
	uint64_t start_ns;	/* of the interval that the switch-out begins */
	uint64_t address;	/* of the lock; processes may have several */
	uint64_t holder_thread; /* rec_script::holder */
	uint32_t holder;	/* Timeline::tasks: has the lock, or had it last; or THREAD_NONE */
	uint16_t offset;	/* in the lock: of the word that it waited for, or LOCK_NO_WORD */
	uint8_t language;	/* enum script_language */
	bool held : 1;		/* the lock was held */
	bool own : 1;		/* by the thread itself, or it had it last */
} LockWait;

/* From where a wait was ended. Only waits of at least --waker-stacks have it. */
typedef struct WakerStack {
	uint64_t start_ns; /* of the wait */
	uint32_t user_stack, kernel_stack;
	uint8_t source; /* enum interrupt_source (INTERVAL_WAKER_IRQ) */
	/* A signal ended the wait, not the event that the thread waited for. */
	bool by_signal;
	/* The stacks were left out (--budget). They are of another wakeup by the same waker. */
	bool unsampled;
} WakerStack;

/* The kernel's own account of the thread in the window (differences of REC_STATS). */
typedef struct KernelAccount {
	bool known;			      /* both readings were received */
	uint64_t sum_exec_runtime, run_delay; /* ns; run_delay all ones if not kept */
	uint64_t utime, stime;
	uint64_t nvcsw, nivcsw;
	uint64_t min_flt, maj_flt;
	/* From and to disks; bytes count as written when the page becomes dirty. */
	uint64_t read_bytes, write_bytes;
	/*
	 * By how many ns the scheduler's clock, by which sum_exec_runtime is counted, advanced more
	 * than CLOCK_MONOTONIC while the thread ran; negative if less.
	 */
	bool clock_known;
	int64_t clock_ahead;
} KernelAccount;

/*
 * The cost of recording, by the BPF programs' own clock (META recording-cost). It is a part of the
 * running time of the thread that had the CPU.
 */
typedef struct RecordingCost {
	/* Of switches; it falls into the run that each switch begins. */
	uint64_t switches_ns;
	uint64_t others_ns; /* of wakeups, ticks, requests, page faults, … */
} RecordingCost;

typedef struct Thread {
	uint32_t tid, ns_tid;
	uint32_t process; /* Timeline::processes */
	uint32_t task;	  /* Timeline::tasks */
	/* The thread that created it, likewise; THREAD_NONE: unknown. */
	uint32_t creator;
	char *name;		   /* its last name */
	uint64_t start_ns, end_ns; /* inside the window */
	bool born_in_window, exited_in_window;
	bool is_main; /* the process's leader */
	/* A kernel thread or an io_uring worker: never in user mode. */
	bool kernel_only;
	VEC(Interval) intervals;
	VEC(Tick) ticks;
	VEC(Fault) faults; /* sorted by their start; no two overlap */
	/* Requests that it submitted: Requests::list, sorted by their end. */
	VEC(uint32_t) requests;
	VEC(RequestWait) request_waits;	      /* sorted by time */
	VEC(ObjectWait) object_waits;	      /* likewise */
	VEC(WakerStack) waker_stacks;	      /* likewise */
	VEC(QueueMove) queue_moves;	      /* likewise */
	VEC(LockWait) lock_waits;	      /* likewise */
	uint64_t ledger[STATE_COUNT];	      /* ns per state */
	uint64_t reason_ledger[REASON_COUNT]; /* ns per reason, blocked and runnable */
	/* Recorded in the window; the final one (exit) is not counted. */
	uint64_t switch_outs;
	KernelAccount kernel;
	RecordingCost recording; /* in the window */
	VEC(uint32_t)
	/* Of the critical path: the thread of each interval (Timeline::threads); else empty. */
	owners;
} Thread;

typedef struct Process {
	uint32_t tgid, ns_tgid;
	uint32_t parent; /* Timeline::processes, or THREAD_NONE */
	char *name;	 /* of the leader: last exec or comm */
	char *path;	 /* last exec's path, or NULL */
	/* Its last argument list (text is owned; NULL: not known), or the one it was forked with.
	 */
	Args args;
	bool args_inherited;
	char *label; /* process_make_label() */
	uint64_t start_ns, end_ns;
	bool born_in_window, exited_in_window;
	uint32_t exit_code;    /* as wait(2), if exited_in_window */
	VEC(uint32_t) threads; /* Timeline::threads; the leader first */
} Process;

/* A task that a record names: a target, or a waker that is not one. */
typedef struct Task {
	uint32_t tid, ns_tid, ns_tgid;
	/* Timeline::threads, or THREAD_NONE if it is not a target. */
	uint32_t thread;
	bool kernel; /* a thread of the kernel */
	char comm[COMM_LEN];
} Task;

/* A stack definition: frames[first … first + count) of Timeline::frames, leaf first. */
typedef struct StackDef {
	uint64_t id;
	uint64_t first;
	uint64_t tables_ns; /* see rec_stack; 0 = the walk used no mappings */
	uint16_t count;
	uint16_t result; /* enum stack_result */
	uint16_t leaf;	 /* frames up to where some are left out; 0 = none are */
	uint32_t left_out;
	/* Its index in Timeline::basis, plus 1; 0 = none. */
	uint32_t basis;
	/* The script frames of this user stack: Timeline::scripts, plus 1; 0 = none. */
	uint32_t script;
	uint32_t plain; /* with a script: the same stack without it */
	uint8_t flags;	/* enum stack_flags */
	bool defined;	/* false: its REC_STACK was lost */
	/*
	 * How many of the innermost frames belong to the C library's call in which a thread slept.
	 */
	uint16_t call_frames;
	/* User stack: the program's own scheduler has no work for the thread. */
	bool without_work;
} StackDef;

/* Script frames of a thread: script_frames[first … first + count) of Timeline, leaf first. */
typedef struct ScriptStack {
	uint64_t first;
	uint32_t left_out;
	uint16_t count;
	uint16_t leaf;	  /* frames up to where some are left out; count = none are */
	uint8_t result;	  /* enum script_result */
	uint8_t language; /* enum script_language */
	bool defined;	  /* false: its REC_SCRIPT_STACK was lost */
} ScriptStack;

/* See critical_path.h. There is no path if it has no intervals. */
typedef struct CriticalPath {
	/* What was on the path, as if one thread had done it all. */
	Thread track;
	/* The thread at whose end the path ends (Timeline::threads). */
	uint32_t end;
	/* Part of the path: the state of the thread on it is unknown. */
	uint64_t lost_ns;
	/* The thread on the path was asleep until a task that is not recorded woke it. */
	uint64_t outside_ns;
	/* The thread on the path was still asleep at the end. */
	uint64_t open_ns;
	/* Before the track begins: the thread on the path is not known. */
	uint64_t unseen_ns;
	/* The thread on the path was asleep, and its waker is unknown. */
	uint64_t unknown_waker_ns;
	/*
	 * critical_path_hide() sets them: enum reason of the hidden path, and its share;
	 * else 0.
	 */
	uint8_t hidden;
	double hidden_share;
} CriticalPath;

#define CPU_IDLE    (UINT32_MAX - 1)
#define CPU_UNKNOWN UINT32_MAX /* switches of the CPU were lost */

/*
 * The task that had a CPU, from start_ns to the start of the next run (the last one: to the
 * window's end).
 */
typedef struct CpuRun {
	uint64_t start_ns;
	uint32_t task; /* Timeline::tasks, or one of the above */
} CpuRun;

typedef struct Cpu {
	/* Empty: the CPU was offline, or nothing is known of it. */
	VEC(CpuRun) runs;
} Cpu;

/* A time in which a task provably had a CPU. */
typedef struct ProvenRun {
	uint64_t start_ns, end_ns;
	uint32_t task; /* Timeline::tasks, or CPU_IDLE */
} ProvenRun;

/*
 * Time that the kernel counted as taken from the tasks between two consecutive switches of a CPU.
 */
typedef struct TakenTime {
	uint64_t start_ns, end_ns;
	uint32_t interrupts_ns, stolen_ns; /* by interrupts; by the hypervisor */
} TakenTime;

typedef VEC(ProvenRun) ProvenRuns;

typedef struct ProvenCpu {
	ProvenRuns runs;      /* sorted; no two overlap */
	VEC(TakenTime) taken; /* likewise; only where time was taken */
} ProvenCpu;

/* What was lost between two times, of one kind on one CPU; it may be several losses. */
typedef struct LossSpan {
	uint32_t kind;	/* enum record_kind */
	uint32_t cause; /* enum loss_cause */
	uint16_t cpu;
	uint64_t count;
	uint64_t from_ns, to_ns;
} LossSpan;

typedef struct Timeline {
	uint64_t start_ns, end_ns;  /* the window */
	uint64_t realtime_start_ns; /* CLOCK_REALTIME at start_ns */
	bool attached;		    /* running processes were attached to; else a command */
	bool whole_system;	    /* all processes were recorded */
	bool complete;		    /* it has a REC_END */
	bool cut;		    /* the window is a part of the recorded one */
	bool partial;		    /* threads of its processes are left out */
	/* The command's main thread; THREAD_NONE: there is no command. */
	uint32_t command_thread;
	VEC(Process) processes; /* in order of appearance */
	VEC(Thread) threads;
	VEC(Task) tasks;
	VEC(StackDef) stacks;
	VEC(uint64_t) frames;
	VEC(ScriptStack) scripts;
	VEC(struct script_frame) script_frames;
	/* The functions that wait reasons rest on (wait_reasons.h). */
	Strings basis;
	Objects objects;
	Requests requests;
	CriticalPath path;
	/* By CPU number, if the whole system was recorded; else empty. */
	VEC(Cpu) cpus;
	VEC(ProvenCpu) proven_cpus; /* by number; see cpu_users_index() */
	OwnCode own_code;
	/*
	 * The cost of recording: whether it is known, and what it was while no recorded thread ran.
	 */
	bool cost_known;
	uint64_t cost_outside_ns;
	/*
	 * The share of recording in the running time that a tick of a class stands for; see
	 * recording_cost_share().
	 */
	double recording_shares[RECORDING_CLASSES];
	VEC(LossSpan) losses;
	/* Sentences that the user should see with the profile. */
	VEC(char *) notes;
	struct {
		uint64_t sent, lost, received;
	} totals[REC_BPF_MAX];
	/* Settings and machine: meta_values.items[i] belongs to key i. */
	Strings meta_keys;
	VEC(char *) meta_values;
	/* With --budget: what was left out. */
	struct budget_counts {
		uint64_t switch_outs; /* that begin intervals in the window, and */
		uint64_t unsampled;   /* those of them without stacks of their own */
		/*
		 * The time of blocked intervals below BUDGET_LONG_NS, and what it is by the weights
		 * of those with stacks: if chance was fair, these are nearly the same.
		 */
		uint64_t short_ns;
		double weighted_ns;
	} budget;
	uint64_t events;       /* switches (each side), wakeups, samples in the window */
	uint64_t orphan_ticks; /* ticks outside any running interval */
	/*
	 * Switches that the kernel did not trace: chains are broken with no loss reported
	 * (REASON_NOT_TRACED). A bug would look the same.
	 */
	uint64_t missed_switches;
} Timeline;

void timeline_free(Timeline *timeline);

/* Frees what the thread owns. */
void thread_free(Thread *thread);

/*
 * Makes Process::label: the name, and what tells the process from others of that name
 * (args_label()). "(forked)": the arguments are those of the process that forked it.
 */
char *process_make_label(const Process *process);

/* Returns its process's label if it has the process's name, else its own name. */
const char *thread_label(const Timeline *timeline, const Thread *thread);

/* Changes the reason of wait i. */
void thread_explain(Thread *thread, size_t i, enum reason reason, enum reason_rule rule);

/*
 * Returns the thread with this index, or, for the index after the last thread, the critical path,
 * which has rows like a thread.
 */
static inline const Thread *timeline_track(const Timeline *timeline, size_t number)
{
	return number < timeline->threads.count ? &timeline->threads.items[number]
						: &timeline->path.track;
}

/*
 * Adds to the names of pipes and sockets the processes at their ends. To be called once, when the
 * waits' reasons are final (wait_reasons.h).
 */
void objects_name_users(Timeline *timeline);

/* Returns how many indexes timeline_track() accepts. */
static inline size_t timeline_track_count(const Timeline *timeline)
{
	return timeline->threads.count + (timeline->path.track.intervals.count > 0);
}

/*
 * Returns the thread that interval i belongs to: on the critical path the thread that was on it,
 * else the thread itself.
 */
static inline const Thread *interval_owner(const Timeline *timeline, const Thread *thread, size_t i)
{
	return thread->owners.count > 0 ? &timeline->threads.items[thread->owners.items[i]]
					: thread;
}

/* Returns whether a switch-out begins the interval; its end in the kernel has the stacks. */
static inline bool interval_is_switch_out(const Interval *interval)
{
	return interval->state == STATE_BLOCKED ||
	       (interval->state == STATE_RUNNABLE && interval->reason != REASON_WOKEN);
}

/* Returns the end of interval i of a thread. */
static inline uint64_t interval_end(const Thread *thread, size_t i)
{
	return i + 1 < thread->intervals.count ? thread->intervals.items[i + 1].start_ns
					       : thread->end_ns;
}

/*
 * Returns the file (Timeline::objects) of the page fault that the wait `interval` of a thread lies
 * in, or else of its system call; for an io_uring worker, of its work. OBJECT_NONE: none, or
 * unknown.
 */
uint32_t thread_wait_object(const Thread *thread, size_t interval);

/*
 * Returns from where the wait `interval` of a thread was ended, or NULL if that was not recorded.
 */
const WakerStack *thread_waker_stack(const Thread *thread, size_t interval);

/*
 * Returns the interpreter's lock at the beginning of interval `interval` of a thread that then had
 * it or waited for it, or NULL.
 */
const LockWait *thread_lock_wait(const Thread *thread, size_t interval);

/*
 * Returns how a thread was moved to another CPU's queue in its wait `interval` for a CPU, or NULL.
 */
const QueueMove *thread_queue_move(const Thread *thread, size_t interval);

/* Returns the request that ended the wait `interval` of a thread, or REQUEST_NONE. */
uint32_t thread_wait_request(const Thread *thread, size_t interval);

/* Returns the end of run i of a CPU. */
static inline uint64_t cpu_run_end(const Timeline *timeline, const Cpu *cpu, size_t i)
{
	return i + 1 < cpu->runs.count ? cpu->runs.items[i + 1].start_ns : timeline->end_ns;
}

/* Converts a time to ns since the start of the window, as profiles have it. */
static inline uint64_t timeline_time(const Timeline *timeline, uint64_t ns)
{
	return ns > timeline->start_ns ? ns - timeline->start_ns : 0;
}

/* Returns whether the window is only a part of the recording. */
bool timeline_is_part(const Timeline *timeline);

/* Returns the value of a REC_META key ("kernel", "command", …), or NULL. */
const char *timeline_meta(const Timeline *timeline, const char *key);
/* Returns whether a kernel address is in the code of one of wallprof's BPF programs. */
bool timeline_is_own_code(const Timeline *timeline, uint64_t address);
/* Sets *ret_number to the value of a key if it is a number, and returns whether it is. */
bool timeline_meta_number(const Timeline *timeline, const char *key, uint64_t *ret_number);

/* Returns how many records of a kind were lost in the losses that overlap the window. */
uint64_t timeline_lost(const Timeline *timeline, uint32_t kind);

#endif
