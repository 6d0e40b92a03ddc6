/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline_builder_private.h - what the parts of the timeline's builder share.
 *
 * timeline_builder.c      takes records apart; definitions, losses, totals; the filter
 *    timeline_tasks.c     which thread of which process a tid means at a moment
 *    timeline_chain.c     the state chain of one thread, as records come
 *    timeline_cpus.c      which task had which CPU
 *    timeline_faults.c    page faults over the chain
 *    timeline_objects.c   what waits are for, and the names of these objects
 *    timeline_scripts.c   frames of programs that an interpreter runs
 *    timeline_requests.c  requests to block devices, and the waits that they ended
 *    timeline_unsampled.c what --budget left out
 *    timeline_resolve.c   what the losses leave of the chains; ledgers
 *    timeline_finish.c    the ends of threads and processes; merges losses; the result
 *
 * Losses are reported after the fact. So the chain is first built as if nothing were missing;
 * uncertain points are marked in it and resolved at the end.
 */
#ifndef WALLPROF_TIMELINE_BUILDER_PRIVATE_H
#define WALLPROF_TIMELINE_BUILDER_PRIVATE_H

#include "timeline_builder.h"

#define NS_NEVER   UINT64_MAX
#define INDEX_NONE UINT32_MAX

/* Interval::flags while the chain is being built; none is left in the result. */
enum mark {
	/*
	 * The interval began with a wakeup, not with a switch: seq has not proven anything at its
	 * start.
	 */
	MARK_WAKING = 1 << 4,
	/*
	 * The wakeup that ended this wait came before the wait began. If no wakeup was recorded
	 * within the wait, this one may have prevented it.
	 */
	MARK_EARLY = 1 << 5,
	/* Not an interval: something is missing between the last switch and this point. */
	MARK_GAP = 1 << 6,
	/* Not an interval: a wait ended here, and no wakeup was recorded within it. */
	MARK_UNWOKEN = 1 << 7,
	/*
	 * With MARK_GAP: exactly one switch-in is missing. On the running interval after the mark:
	 * it began before the first record of it.
	 */
	MARK_SWITCH_IN = 1 << 3,
	MARKS_ALL = MARK_WAKING | MARK_EARLY | MARK_GAP | MARK_UNWOKEN | MARK_SWITCH_IN,
};

/* The system call that a thread is in, as switch and snapshot records have it. */
typedef struct Call {
	int16_t syscall;
	uint8_t fd_kind, fd_count;
	uint64_t args[3];
} Call;

typedef struct Waker {
	uint32_t task; /* Timeline::tasks */
	uint16_t cpu;
	bool irq;
} Waker;

/* The place of a switch-out, if the recording had a budget. */
typedef struct SwitchPlace {
	uint64_t ns;
	int16_t syscall;
	uint16_t place, chance; /* see rec_switch and CHANCE_OF() */
} SwitchPlace;

typedef struct SwitchPlaces {
	SwitchPlace *items;
	size_t count, capacity;
} SwitchPlaces;

typedef struct SwitchCounts {
	uint64_t voluntary, involuntary;
} SwitchCounts;

/*
 * One target thread from birth to end. A tid that is used again belongs to another BuildThread; a
 * thread may change its tid (exec by a thread other than the leader).
 */
typedef struct BuildThread {
	Thread thread; /* moves into the timeline at the end */
	uint32_t index;
	uint32_t process; /* TimelineBuilder::processes, or INDEX_NONE if not described */
	uint32_t own_tid; /* its tid in its innermost PID namespace; 0: not known */
	/* The BuildThread before it with the same tid whose end has no record, */
	uint32_t previous;
	uint32_t previous_count; /* and how many of these follow each other */

	bool described; /* it has a REC_TASK */
	bool born;	/* its birth is recorded; its chain starts there */
	bool exiting;	/* it has a REC_EXIT, with this time: */
	uint64_t exit_ns;
	/* Its final switch-out is recorded, or it is known to have ended. */
	bool ended;
	/* It ended because exec gave its tid to another thread. */
	bool replaced;
	bool counted; /* it is counted in Process::alive */
	uint64_t start_boottime;
	uint64_t first_ns; /* of the first record about it */
	uint64_t end_ns;
	/* It cannot have lived longer, if its end has no record. */
	uint64_t limit_ns;
	uint32_t exit_code;

	/* The chain. */
	bool seq_known; /* the state is known, and: */
	uint16_t seq;	/* of the last switch */
	/* The first record of the chain is the thread's first switch-in. */
	bool seq_at_birth;
	/* A switch up to this time proves more than the snapshot. */
	uint64_t snapshot_until;
	Call last_call;	  /* the last one that was not restart_syscall */
	bool woken;	  /* a wakeup is recorded since the last switch */
	bool woken_early; /* a wakeup is recorded since it began to run, before it slept */
	Waker early;
	SwitchPlaces places; /* sorted by time */

	/* The snapshot at the end of the window, if no switch came after it: */
	bool end_seen;
	uint16_t end_seq;
	uint16_t end_cpu; /* the CPU of its run queue, or INTERVAL_CPU_UNKNOWN */
	uint8_t end_flags;

	/*
	 * The kernel's accounts are read just before the window begins and just after it ends. The
	 * states in between are known and are subtracted.
	 */
	bool base_known, final_known;
	KernelAccount base, final;
	uint64_t base_ns, final_ns;
	SwitchCounts outside, outside_at_base, outside_at_final; /* outside the window */
	uint64_t outside_running, outside_runnable;		 /* ns, between the two accounts */
} BuildThread;

typedef struct BuildProcess {
	Process process; /* moves into the timeline at the end */
	VEC(uint32_t) targets;
	uint32_t parent_tgid;
	uint32_t parent; /* TimelineBuilder::processes, or INDEX_NONE */
	uint32_t alive;	 /* threads that have neither exited nor ended */
	uint64_t first_ns;
	/* It was alive before, but is recorded only since this time; or 0. */
	uint64_t joined_ns;
	uint64_t limit_ns; /* its tgid was used again at this time */
	bool group_dead;   /* its last thread has exited */
	uint64_t group_dead_ns;
	uint32_t last_target; /* the thread of that exit */
	uint32_t exit_code;
	uint32_t exec_id;      /* of its program; see rec_task */
	uint32_t args_exec_id; /* of the program whose argument list it has; 0 = not known */
	bool kernel;	       /* all threads of the kernel */
	bool leader_exited;    /* exit_code is the leader's */
} BuildProcess;

/* Losses of one kind of record, sorted and merged. */
typedef struct Spans {
	struct span {
		uint64_t from_ns, to_ns;
	} * items;
	size_t count, capacity;
} Spans;

/* The last switch of a CPU that has a record. */
typedef struct LastSwitch {
	uint64_t ns; /* 0: none yet */
	uint32_t next_tid;
	uint16_t next_seq;
} LastSwitch;

/* The script frames that a thread had at its last event that has any. */
typedef struct LastScript {
	uint64_t ns;		       /* of the REC_SCRIPT */
	uint64_t thread, lock, holder; /* as in struct rec_script */
	uint32_t script;	       /* Timeline::scripts, or SCRIPT_UNSEEN: it had no frames */
	uint8_t language, flags;       /* as in struct rec_script */
} LastScript;

#define SCRIPT_UNSEEN UINT32_MAX

/* An interpreter's description of a thread, from a time on at which it was seen. */
typedef struct ScriptThread {
	uint64_t address;
	uint64_t ns;
	uint32_t process; /* TimelineBuilder::processes; set by scripts_finish() */
	uint32_t target;  /* TimelineBuilder::targets */
} ScriptThread;

/* The script frames of a thread that slept when the recording began (SCRIPT_SLEEPER). */
typedef struct ScriptSleeper {
	uint64_t ns;	   /* the thread slept until then, or the frames may be wrong */
	uint64_t stack_id; /* of its user stack */
	uint32_t script;   /* Timeline::scripts */
} ScriptSleeper;

struct TimelineBuilder {
	Timeline *timeline;
	VEC(BuildThread *) targets;
	VEC(BuildProcess) processes;
	Map target_of_tid, process_of_tgid, task_of_tid, stack_of_id;
	Map target_of_own_tid; /* (process, tid in its innermost PID namespace) -> targets */
	Map script_of_id;      /* -> Timeline::scripts */
	Map script_of_tid;     /* -> last_scripts */
	Map scripted;	       /* (user stack, script) -> Timeline::stacks */
	Map script_of_request; /* (tid, time of its REC_SCRIPT) -> Timeline::scripts */
	Map script_owner;      /* (process, address of a thread's description) -> last target */
	VEC(LastScript) last_scripts;
	VEC(ScriptThread) script_threads;
	VEC(ScriptSleeper) script_sleepers;
	bool start_known, end_known;
	uint64_t first_ns, last_ns; /* of all events */
	uint64_t recorded_end_ns;   /* of the window that was recorded; NS_NEVER: not known */
	Spans lost_switches, lost_wakings;
	VEC(LastSwitch) last_switches; /* by CPU */
	TimelineFilter filter;
};

/* Returns whether an event at ns is inside the window. */
static inline bool in_window(const TimelineBuilder *builder, uint64_t ns)
{
	return ns >= builder->timeline->start_ns && ns <= builder->timeline->end_ns;
}

static inline Interval *chain_last(const BuildThread *target)
{
	return &target->thread.intervals.items[target->thread.intervals.count - 1];
}

/* ---- timeline_scripts.c -------------------------------------------------- */

void scripts_add(TimelineBuilder *builder, const struct rec_script *record);
void scripts_add_stack(TimelineBuilder *builder, const struct rec_script_stack *record);
/*
 * Returns the user stack with the script frames that the thread had at its event of that time: a
 * switch-out, a tick, a wakeup of another thread, the end of a fault; the same stack if it had
 * none.
 */
uint32_t scripts_stack(TimelineBuilder *builder, uint32_t user_stack, uint32_t tid, uint64_t ns);
/*
 * Does the same for the thread that submitted a request to a device then. The record of a request
 * comes when it is complete.
 */
uint32_t scripts_request_stack(TimelineBuilder *builder, uint32_t user_stack, uint32_t tid,
			       uint64_t submit_ns);
/*
 * Notes what is known of the interpreter's lock at the target's switch-out at ns. word: the address
 * of the word of memory that it waits for, or 0.
 */
void scripts_lock(TimelineBuilder *builder, BuildThread *target, uint64_t ns, uint64_t word);
/*
 * Notes which thread an interpreter's description is of, as seen at a tick at ns, and returns
 * whether the target had its interpreter's lock then.
 */
bool scripts_tick(TimelineBuilder *builder, const BuildThread *target, uint64_t ns);
/*
 * Completes the stacks that scripts_stack() has made, and finds the holders of locks, when all
 * definitions are known.
 */
void scripts_finish(TimelineBuilder *builder);

/* ---- timeline_tasks.c ---------------------------------------------------- */

/* Returns the task that tid means now; adds it if it is new. */
uint32_t tasks_reference(TimelineBuilder *builder, uint32_t tid);
/* Returns the index of a stack id, or STACK_NONE for 0; adds it if it is new. */
uint32_t stack_reference(TimelineBuilder *builder, uint64_t id);

/* Returns the target that a record about tid belongs to; adds it if there is none. */
BuildThread *tasks_target(TimelineBuilder *builder, uint32_t tid, uint64_t ns);

/* One of the two sides of a switch record. */
typedef struct SwitchSide {
	uint64_t ns;
	uint32_t tid;
	/* The tid on the other side: what had the CPU before, or has it now. */
	uint32_t cpu_user;
	uint16_t seq, cpu;
	bool out, dead;
} SwitchSide;

/* Returns the target that a switch belongs to, or NULL if the switch adds nothing to its chain. */
BuildThread *tasks_target_switch(TimelineBuilder *builder, const SwitchSide *side);
/* Returns the target of a thread's first wakeup. */
BuildThread *tasks_target_waking_new(TimelineBuilder *builder, uint32_t tid, uint64_t ns);
/* Returns the target that a tick hit, or NULL. */
BuildThread *tasks_target_tick(TimelineBuilder *builder, uint32_t tid, uint16_t cpu, uint64_t ns);

/* Since when the target is recorded, if it was alive before and joined in the window; else 0. */
uint64_t tasks_recorded_since(const TimelineBuilder *builder, const BuildThread *target);

void tasks_task(TimelineBuilder *builder, const struct rec_task *record);
void tasks_exec(TimelineBuilder *builder, const struct rec_exec *record);
void tasks_args(TimelineBuilder *builder, const struct rec_args *record);
void tasks_exit(TimelineBuilder *builder, const struct rec_exit *record);
void tasks_stats(TimelineBuilder *builder, const struct rec_stats *record);

/* The target ended at ns. */
void tasks_end(TimelineBuilder *builder, BuildThread *target, uint64_t ns);

/*
 * Returns the task of the target's process with that tid in its innermost PID namespace, other than
 * the target itself; THREAD_NONE if there is none or it has ended.
 */
uint32_t tasks_of_process(TimelineBuilder *builder, const BuildThread *target, uint32_t own_tid);

/*
 * The same for a thread that holds a lock which the target waits for. shared: it may be a thread of
 * another process. That can be resolved only outside of containers, because tids of two namespaces
 * cannot be compared.
 */
uint32_t tasks_lock_holder(TimelineBuilder *builder, const BuildThread *target, uint32_t own_tid,
			   bool shared);

/* Returns whether it is the only thread left of a process of the launched command. */
bool tasks_only_thread(const TimelineBuilder *builder, const BuildThread *target);

/* ---- timeline_chain.c ---------------------------------------------------- */

/* Appends an interval, which must not start before the last one. */
Interval *chain_push(BuildThread *target, uint64_t ns, enum thread_state state);

/* Begins the chain: runnable if the thread was born at ns, else unknown. */
void chain_begin(TimelineBuilder *builder, BuildThread *target, uint64_t ns, uint32_t creator);
/* The record of the birth came late: the chain begins at ns. */
void chain_begin_late(TimelineBuilder *builder, BuildThread *target, uint64_t ns, uint32_t creator);

/* Returns whether the switch is the one that must come next if none is missing. */
bool chain_fits(const BuildThread *target, const SwitchSide *side);

void chain_switch_in(TimelineBuilder *builder, BuildThread *target, const SwitchSide *side);
void chain_switch_out(TimelineBuilder *builder, BuildThread *target, const SwitchSide *side,
		      const struct rec_switch *record);
void chain_waking(TimelineBuilder *builder, BuildThread *target, const struct rec_waking *record);
void chain_snapshot(TimelineBuilder *builder, BuildThread *target,
		    const struct rec_snapshot *record);

/* ---- timeline_cpus.c ----------------------------------------------------- */

/* Adds what a switch proves of the CPU's time up to it, in any recording. */
void cpus_prove(TimelineBuilder *builder, const struct rec_switch *record);
/* Adds a switch to the runs of its CPU, if the whole system is recorded. */
void cpus_switch(TimelineBuilder *builder, const struct rec_switch *record);

/* A tick or a snapshot found a task on a CPU. */
void cpus_seen(TimelineBuilder *builder, uint16_t number, uint32_t tid);

/* To be called when the window and the losses are known. */
void cpus_finish(Timeline *timeline);

/* ---- timeline_faults.c --------------------------------------------------- */

void faults_add(TimelineBuilder *builder, const struct rec_fault *record);

/*
 * Sorts the thread's faults and names the reasons of their waits. To be called when its intervals
 * are final.
 */
void faults_finish(Thread *thread);

/* ---- timeline_objects.c -------------------------------------------------- */

/* The object of a wait, as a switch or a snapshot identifies it; see rec_switch. */
typedef struct ObjectId {
	uint64_t inode; /* or timeout_ns; 0 = the record has none */
	uint32_t device, generation;
} ObjectId;

/* Stores what the target's wait is for. The wait begins at start_ns; ns is a moment in it. */
void waits_add_object(TimelineBuilder *builder, BuildThread *target, uint64_t ns,
		      const ReasonInput *input, const ObjectId *numbers);

/*
 * Names the objects. To be called when the timeline's threads and the reasons of waits are final.
 */
void objects_finish(Timeline *timeline);

/* ---- timeline_requests.c ------------------------------------------------- */

void requests_add(TimelineBuilder *builder, const struct rec_request *record);

/*
 * Finds the submitters of requests and the waits that they ended. To be called when the timeline's
 * threads are final.
 */
void requests_finish(Timeline *timeline);

/* ---- timeline_unsampled.c ------------------------------------------------ */

/*
 * Fills in what --budget left out. To be called when the threads are final, with the thread of each
 * target (or THREAD_NONE), and before the reasons of waits are used.
 */
void unsampled_fill(TimelineBuilder *builder, const uint32_t *numbers);

/* ---- timeline_resolve.c -------------------------------------------------- */

/* Sorts and merges. */
void spans_prepare(Spans *spans);

/* Returns whether a thread has exited whose final switch-out may have been lost. */
bool resolve_final_lost(const TimelineBuilder *builder, const BuildThread *target);

/*
 * Resolves the marks of a chain, cuts the chain to the window, adds up the time by state and drops
 * the ticks that hit no running interval. end_ns is the thread's end, recorded or not; gone: it
 * cannot have lived longer, though its end has no record. Returns whether the thread was alive in
 * the window.
 */
bool resolve_target(TimelineBuilder *builder, BuildThread *target, uint64_t end_ns, bool gone);

/* ---- timeline_builder.c -------------------------------------------------- */

/* Returns whether the filter includes a target, all of whose records are known. */
bool filter_includes(const TimelineBuilder *builder, const BuildThread *target);

/* ---- timeline_finish.c --------------------------------------------------- */

/*
 * Merges losses that are close to each other. To be called when the unknown intervals are resolved,
 * which needs each loss by itself.
 */
void losses_finish(Timeline *timeline);

#endif
