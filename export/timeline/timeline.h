/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline.h - what each thread did at each moment, made from a capture.
 *
 * A pure function of the records: it never looks at this machine. For every
 * thread, from its birth (or the start of the window) to its exit (or the end),
 * there is one unbroken chain of intervals; each ends where the next begins.
 * The sums over that chain are the ledger, so they add up to the thread's
 * lifetime in the window exactly. What cannot be proven from the records
 * (because some were lost) is STATE_UNKNOWN, never a guess.
 */
#ifndef WALLPROF_TIMELINE_H
#define WALLPROF_TIMELINE_H

#include "objects.h"
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

#define STACK_NONE  UINT32_MAX /* no stack was taken */
#define WAIT_NONE   UINT32_MAX
#define THREAD_NONE UINT32_MAX /* no such thread */

/*
 * One state of one thread, from start_ns to the start of the next interval (the
 * last one ends at Thread::end_ns).
 */
typedef struct Interval {
	uint64_t start_ns;
	uint32_t user_stack; /* Timeline::stacks; of a running interval: the stacks of the
				switch-out that ended it */
	uint32_t kernel_stack;
	uint32_t waker;	   /* who ended it (STATE_BLOCKED) or began it (REASON_WOKEN):
			      Timeline::tasks, or THREAD_NONE */
	uint16_t cpu;	   /* STATE_RUNNING: where; STATE_BLOCKED: where it was woken;
			      STATE_RUNNABLE: which one it waited for (INTERVAL_MIGRATED: where it
			      was preempted), or INTERVAL_CPU_UNKNOWN */
	int16_t syscall;   /* STATE_BLOCKED: -1 none */
	uint8_t state : 4; /* enum thread_state */
	uint8_t sleep : 4; /* STATE_BLOCKED: enum sleep_state */
	uint8_t reason;	   /* enum reason: of blocked and runnable intervals */
	uint8_t rule : 6;  /* enum reason_rule: what the reason rests on */
	uint8_t lock : 2;  /* STATE_BLOCKED: enum switch_lock */
	uint8_t flags;	   /* enum interval_flags */
	uint32_t cpu_user; /* Timeline::tasks, or THREAD_NONE. STATE_RUNNABLE: the task (or
		      CPU_IDLE) that took the CPU from this thread, or had it until this
		      thread got it; what had it in between is in cpu_users.h.
		      STATE_BLOCKED: the holder of the lock that was waited for */
} Interval;

enum interval_flags {
	INTERVAL_OPEN_START = 1 << 0, /* began before the window */
	INTERVAL_OPEN_END = 1 << 1,   /* still going on at the end of the window */
	INTERVAL_WAKER_IRQ = 1 << 2,  /* an interrupt was the waker; waker is THREAD_NONE */
	/* STATE_RUNNABLE: it was moved to another CPU; thread_queue_move() may know when */
	INTERVAL_MIGRATED = 1 << 3,
};

#define INTERVAL_CPU_UNKNOWN UINT16_MAX

/* Where ticks show what recording costs; see recording_cost.h. */
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
	uint32_t owner; /* in the critical path: whose it is (Timeline::threads) */
	bool user_mode;
	uint8_t recording; /* enum recording_class */
} Tick;

/* A page fault: a span over the intervals. */
typedef struct Fault {
	uint64_t start_ns, end_ns; /* in the window */
	uint64_t waited_ns;	   /* of it, blocked */
	uint32_t wait;		   /* its first blocked interval, or WAIT_NONE */
	uint64_t address;
	uint64_t offset;     /* of the page in the file, bytes, or OFFSET_UNKNOWN */
	uint32_t file;	     /* Timeline::objects, or OBJECT_NONE */
	uint32_t user_stack; /* STACK_NONE: none was taken */
	uint8_t flags;	     /* enum fault_flags */
	uint8_t memory;	     /* enum fault_memory */
	uint8_t page;	     /* enum fault_page */
	uint8_t hook;	     /* enum fault_hook; FAULT_HOOK_SLEEP: its end was not told */
	bool by_program;     /* a program brought the page (userfaultfd) */
} Fault;

/* A wait that ended because a request completed. */
typedef struct RequestWait {
	uint32_t interval; /* Thread::intervals */
	uint32_t request;  /* Requests::list */
} RequestWait;

/* A runnable thread was moved to the queue of another CPU, which it then got. */
typedef struct QueueMove {
	uint64_t start_ns; /* of the wait */
	uint64_t ns;	   /* when it was moved, for the last time */
	uint16_t cpu;	   /* the CPU that it was moved to */
	bool again;	   /* it had been moved before, and its queue in between is not known */
} QueueMove;

/* What a wait's system call was about. */
typedef struct ObjectWait {
	uint64_t start_ns; /* of the wait */
	uint32_t object;   /* Timeline::objects */
} ObjectWait;

/* From where a wait was ended; of waits that were long enough for that to be recorded. */
typedef struct WakerStack {
	uint64_t start_ns; /* of the wait */
	uint32_t user_stack, kernel_stack;
	uint8_t source; /* enum interrupt_source (INTERVAL_WAKER_IRQ) */
	bool by_signal; /* a signal ended the wait, not what it was for */
} WakerStack;

/* What the kernel itself says a thread used in the window (differences of REC_STATS). */
typedef struct KernelAccount {
	bool known;			      /* both ends were received */
	uint64_t sum_exec_runtime, run_delay; /* ns; run_delay all ones if not kept */
	uint64_t utime, stime;
	uint64_t nvcsw, nivcsw;
	uint64_t min_flt, maj_flt;
	uint64_t read_bytes, write_bytes; /* from and to disks; what was made dirty is written */
} KernelAccount;

/*
 * What recording cost, by the programs' own clock (META recording-cost). It is a part of the
 * running time of the thread that had the CPU.
 */
typedef struct RecordingCost {
	uint64_t switches_ns; /* of switches; it falls into the run that each switch begins */
	uint64_t others_ns;   /* of wakeups, ticks, requests, page faults, … */
} RecordingCost;

typedef struct Thread {
	uint32_t tid, ns_tid;
	uint32_t process;	   /* Timeline::processes */
	uint32_t task;		   /* Timeline::tasks */
	uint32_t creator;	   /* likewise: who made it; THREAD_NONE: not known */
	char *name;		   /* last name it had */
	uint64_t start_ns, end_ns; /* inside the window */
	bool born_in_window, exited_in_window;
	bool is_main;	  /* the process's leader */
	bool kernel_only; /* the kernel's own, or its worker for the process: never in user mode */
	VEC(Interval) intervals;
	VEC(Tick) ticks;
	VEC(Fault) faults;	/* in order of their start; no two overlap */
	VEC(uint32_t) requests; /* those it submitted: Requests::list, in order of their end */
	VEC(RequestWait) request_waits;	      /* in order of time */
	VEC(ObjectWait) object_waits;	      /* likewise */
	VEC(WakerStack) waker_stacks;	      /* likewise */
	VEC(QueueMove) queue_moves;	      /* likewise */
	uint64_t ledger[STATE_COUNT];	      /* ns per state */
	uint64_t reason_ledger[REASON_COUNT]; /* ns per reason, blocked and runnable */
	uint64_t switch_outs;	   /* recorded in the window, the final one (exit) not counted */
	uint64_t spurious_wakings; /* wakings of a thread that was not blocked */
	KernelAccount kernel;
	RecordingCost recording; /* in the window */
	VEC(uint32_t)
	owners; /* of the critical path: whose each interval is (Timeline::threads);
		   else empty */
} Thread;

typedef struct Process {
	uint32_t tgid, ns_tgid;
	uint32_t parent; /* Timeline::processes, or THREAD_NONE */
	char *name;	 /* of the leader: last exec or comm */
	char *path;	 /* last exec's path, or NULL */
	uint64_t start_ns, end_ns;
	bool born_in_window, exited_in_window;
	uint32_t exit_code;    /* as wait(2), if exited_in_window */
	VEC(uint32_t) threads; /* Timeline::threads; the leader first */
} Process;

/* Anyone a record names: targets and foreign wakers. */
typedef struct Task {
	uint32_t tid, ns_tid, ns_tgid;
	uint32_t thread; /* Timeline::threads, or THREAD_NONE if not a target */
	bool kernel;	 /* a thread of the kernel */
	char comm[COMM_LEN];
} Task;

/* A stack definition: frames[first … first + count) of Timeline::frames, leaf first. */
typedef struct StackDef {
	uint64_t id;
	uint64_t first;
	uint64_t tables_ns; /* see rec_stack; 0 = the walk asked no mappings */
	uint16_t count;
	uint16_t result; /* enum stack_result */
	uint32_t basis;	 /* its number in Timeline::evidence, plus 1; 0 none */
	uint8_t flags;	 /* enum stack_flags */
	bool defined;	 /* false: its REC_STACK was lost */
	/*
	 * How many of the innermost frames are those of the C library's call in which a thread
	 * slept.
	 */
	uint16_t call_frames;
	bool without_work; /* user stack: the program's own scheduler has no work for the thread */
} StackDef;

/* See critical_path.h. Without intervals: there is none. */
typedef struct CriticalPath {
	Thread strip;		   /* what was on it, as if one thread had done it all */
	uint32_t end;		   /* the thread at whose end it ends (Timeline::threads) */
	uint64_t lost_ns;	   /* of it: nobody knows what the thread on it did */
	uint64_t outside_ns;	   /* asleep until somebody who is not recorded ended that */
	uint64_t open_ns;	   /* still asleep at the end: nobody ended that */
	uint64_t unseen_ns;	   /* before the strip: who was on the path is not known */
	uint64_t unknown_waker_ns; /* … or nobody knows who */
	/* critical_path_drop_service(): enum reason, and how much it had of the path; else 0. */
	uint8_t left_out;
	double hidden_share;
} CriticalPath;

#define CPU_IDLE    (UINT32_MAX - 1)
#define CPU_UNKNOWN UINT32_MAX /* switches of it were lost */

/* Who had a CPU, from start_ns to the start of the next run (the last one: of the window's end). */
typedef struct CpuRun {
	uint64_t start_ns;
	uint32_t task; /* Timeline::tasks, or one of the above */
} CpuRun;

typedef struct Cpu {
	VEC(CpuRun) runs; /* none: it was offline, or nobody knows of it */
} Cpu;

/* A time for which it is proven what had a CPU. */
typedef struct ProvenRun {
	uint64_t start_ns, end_ns;
	uint32_t task; /* Timeline::tasks, or CPU_IDLE */
} ProvenRun;

/* What the kernel counted as taken between two consecutive switches of a CPU: */
typedef struct TakenTime {
	uint64_t start_ns, end_ns;
	uint32_t interrupts_ns, stolen_ns; /* by interrupts; by the hypervisor */
} TakenTime;

typedef struct ProvenCpu {
	VEC(ProvenRun) runs;  /* in order; no two overlap */
	VEC(TakenTime) taken; /* likewise; where there was any */
} ProvenCpu;

/* What was lost between two times, of one kind on one CPU; it may be of several moments. */
typedef struct LossSpan {
	uint32_t kind;	/* enum record_kind */
	uint32_t cause; /* enum loss_cause */
	uint16_t cpu;
	uint64_t count;
	uint64_t from_ns, to_ns;
} LossSpan;

/* Addresses from start to before end. */
typedef struct AddressRange {
	uint64_t start, end;
} AddressRange;

typedef struct Timeline {
	uint64_t start_ns, end_ns;  /* the window */
	uint64_t realtime_start_ns; /* CLOCK_REALTIME at start_ns */
	bool attached;		    /* to running processes; else a command */
	bool whole_system;	    /* all processes were recorded */
	bool complete;		    /* REC_END was there */
	bool cut;		    /* less than what was recorded */
	uint32_t command_thread;    /* the command's main thread; THREAD_NONE: there is none */
	VEC(Process) processes;	    /* in order of appearance */
	VEC(Thread) threads;
	VEC(Task) tasks;
	VEC(StackDef) stacks;
	VEC(uint64_t) frames;
	Strings basis; /* why threads slept there, by functions (wait_reasons.h) */
	Objects objects;
	Requests requests;
	CriticalPath path;
	VEC(Cpu) cpus;		    /* by number, if the whole system was recorded; else empty */
	VEC(ProvenCpu) proven_cpus; /* by number; see cpu_users_index() */
	VEC(AddressRange) own_code; /* of wallprof's BPF programs; in order */
	/*
	 * What recording cost: whether it is known, and what it took while no recorded thread ran.
	 */
	bool cost_known;
	uint64_t cost_outside_ns;
	/*
	 * Recording's share of the running time that a tick of a class stands for; see
	 * recording_cost_share().
	 */
	double recording_shares[RECORDING_CLASSES];
	VEC(LossSpan) losses;
	VEC(char *) notes; /* sentences that whoever reads the profile should see */
	struct {
		uint64_t sent, lost, received;
	} totals[REC_BPF_MAX];
	Strings meta_keys; /* settings and machine: meta_values.items[i] belongs to key i */
	VEC(char *) meta_values;
	uint64_t events;       /* switches (each side), wakings, samples in the window */
	uint64_t orphan_ticks; /* ticks outside any running interval */
	/*
	 * Chains broken with no loss reported (REASON_NOT_TRACED): a switch that the kernel did not
	 * trace, or a bug.
	 */
	uint64_t missed_switches;
} Timeline;

typedef struct TimelineBuilder TimelineBuilder;

TimelineBuilder *timeline_builder_new(void);

/*
 * What of a capture is wanted. What is left out is as if it had not been recorded: who is not taken
 * is a stranger, known by name where others refer to him.
 */
typedef struct TimelineFilter {
	uint64_t from_ns, to_ns; /* of the recorded window, since its start; to_ns 0: its end */
	/*
	 * Numbers and names (fnmatch(3)) separated by commas; NULL: all. Of a process also the last
	 * part of its program's path.
	 */
	const char *processes, *threads;
} TimelineFilter;

/* Before the first record; the strings stay the caller's until timeline_builder_finish(). */
void timeline_builder_filter(TimelineBuilder *builder, const TimelineFilter *filter);

/* Records in order of time (capture_read_sorted). Others than it needs are ignored. */
void timeline_builder_add(TimelineBuilder *builder, const struct record *record);

/*
 * Closes every chain at the end of the window (REC_WINDOW with WINDOW_END, or the
 * last record of a cut-off capture), builds the ledgers, frees the builder.
 */
Timeline *timeline_builder_finish(TimelineBuilder *builder);

void timeline_free(Timeline *timeline);

/*
 * By number of Timeline::threads; the number behind the last of them is the critical path's, which
 * has rows like a thread.
 */
static inline const Thread *timeline_track(const Timeline *timeline, size_t number)
{
	return number < timeline->threads.count ? &timeline->threads.items[number]
						: &timeline->path.strip;
}

/*
 * Adds to the names of pipes and sockets the processes that were seen at their ends; once, and when
 * the waits' reasons are final (wait_reasons.h).
 */
void objects_name_users(Timeline *timeline);

/* How many numbers timeline_track() takes. */
static inline size_t timeline_track_count(const Timeline *timeline)
{
	return timeline->threads.count + (timeline->path.strip.intervals.count > 0);
}

/* Whose interval i is: in the critical path that of the thread on it, else the thread itself. */
static inline const Thread *interval_owner(const Timeline *timeline, const Thread *thread, size_t i)
{
	return thread->owners.count > 0 ? &timeline->threads.items[thread->owners.items[i]]
					: thread;
}

/* End of interval i of a thread. */
static inline uint64_t interval_end(const Thread *thread, size_t i)
{
	return i + 1 < thread->intervals.count ? thread->intervals.items[i + 1].start_ns
					       : thread->end_ns;
}

/*
 * The file (Timeline::objects) of the page fault that the wait `interval` of a thread lies in, or
 * else of its system call; OBJECT_NONE: none, or it is not known. A worker of io_uring: of its
 * work.
 */
uint32_t thread_wait_object(const Thread *thread, size_t interval);

/* From where the wait `interval` of a thread was ended, or NULL if that was not recorded. */
const WakerStack *thread_waker_stack(const Thread *thread, size_t interval);

/* How a thread was moved to another CPU's queue in its wait `interval` for a CPU, or NULL. */
const QueueMove *thread_queue_move(const Thread *thread, size_t interval);

/* The request that the wait `interval` of a thread ended with, or REQUEST_NONE. */
uint32_t thread_wait_request(const Thread *thread, size_t interval);

/* End of run i of a CPU. */
static inline uint64_t cpu_run_end(const Timeline *timeline, const Cpu *cpu, size_t i)
{
	return i + 1 < cpu->runs.count ? cpu->runs.items[i + 1].start_ns : timeline->end_ns;
}

/* A moment as profiles have it: ns since the start of the window. */
static inline uint64_t timeline_time(const Timeline *timeline, uint64_t ns)
{
	return ns > timeline->start_ns ? ns - timeline->start_ns : 0;
}

/* "kernel", "command", … : the value of a REC_META key, or NULL. */
const char *timeline_meta(const Timeline *timeline, const char *key);
/* Whether a kernel address is in the code of one of wallprof's BPF programs. */
bool timeline_is_own_code(const Timeline *timeline, uint64_t address);
/* Sets *ret_number to the value of a key if that is a number, and returns whether it is. */
bool timeline_meta_number(const Timeline *timeline, const char *key, uint64_t *ret_number);

/* Of a kind of records, how many losses tell that overlap the window. */
uint64_t timeline_lost(const Timeline *timeline, uint32_t kind);

#endif
