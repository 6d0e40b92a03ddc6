/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline_builder.h - what the parts of the timeline's builder share.
 *
 *   timeline.c         takes records apart; definitions, losses, totals
 *   timeline_tasks.c   which life of which process a tid means at a moment
 *   timeline_chain.c   the state chain of one life, as records come
 *   timeline_cpus.c    who had which CPU
 *   timeline_faults.c  page faults over it
 *   timeline_losses.c  which losses are told
 *   timeline_objects.c what waits are for, and what that is called
 *   timeline_requests.c  requests to block devices, and the waits that they ended
 *   timeline_filter.c  what of it was asked for
 *   timeline_finish.c  what the losses leave of the chains; ledgers; the result
 *
 * Losses are reported after the fact, so the chain is first built as if nothing
 * were missing; doubtful places are marked in it and decided at the end.
 */
#ifndef WALLPROF_TIMELINE_BUILDER_H
#define WALLPROF_TIMELINE_BUILDER_H

#include "timeline.h"

#define NS_NEVER   UINT64_MAX
#define INDEX_NONE UINT32_MAX

/* Interval::flags while the chain is being built; none is left in the result. */
enum mark {
	/* Began by a waking, not by a switch: seq has not proven anything at its start. */
	MARK_WAKING = 1 << 4,
	/*
	 * The waking that ended (or, if none in the wait was seen, may have prevented) this
	 * wait came before the wait began.
	 */
	MARK_EARLY = 1 << 5,
	/* Not an interval: up to here, since the last switch, something is missing. */
	MARK_GAP = 1 << 6,
	/* Not an interval: a wait ended here and no waking within it was seen. */
	MARK_UNWOKEN = 1 << 7,
	/*
	 * With MARK_GAP: what is missing is one switch-in, and nothing else. On the running
	 * interval after it: it began before it was first seen.
	 */
	MARK_SWITCH_IN = 1 << 3,
	MARKS_ALL = MARK_WAKING | MARK_EARLY | MARK_GAP | MARK_UNWOKEN | MARK_SWITCH_IN,
};

/* The system call that a thread is in, as switch and snapshot records tell it. */
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

typedef struct SwitchCounts {
	uint64_t voluntary, involuntary;
} SwitchCounts;

/*
 * One thread from birth to end. A tid that is used again begins another life; a
 * life may change its tid (exec by a thread other than the leader).
 */
typedef struct BuildThread {
	Thread thread; /* moves into the timeline at the end */
	uint32_t index;
	uint32_t process;	 /* TimelineBuilder::processes, or INDEX_NONE if not described */
	uint32_t own_tid;	 /* its tid in its innermost PID namespace; 0: not known */
	uint32_t previous;	 /* a life before it of the same tid whose end had not been seen, */
	uint32_t previous_count; /* and how many there are in a row */

	bool described; /* a REC_TASK was seen */
	bool born;	/* its birth was seen: its chain starts there */
	bool exiting;	/* REC_EXIT was seen, and its time: */
	uint64_t exit_ns;
	bool ended;    /* its final switch-out was seen, or it is known to be gone */
	bool replaced; /* ended because exec gave its number to another thread */
	bool counted;  /* in Process::alive */
	uint64_t start_boottime;
	uint64_t first_ns; /* of the first record about it */
	uint64_t end_ns;
	uint64_t limit_ns; /* it can't have lived longer, should its end not be seen */
	uint32_t exit_code;

	/* The chain. */
	bool seq_known;	   /* the state is known, and: */
	uint16_t seq;	   /* of the last switch */
	bool seq_at_birth; /* the first record of the chain was the first switch-in of its life */
	uint64_t snapshot_until; /* a switch up to then is a better witness than the snapshot */
	Call last_call;		 /* the last one that was not restart_syscall */
	bool woken;		 /* a waking was seen since the last switch */
	uint32_t early_count;	 /* wakings since it runs, before it slept */
	Waker early;

	bool end_seen; /* the snapshot at the end of the window, if no switch came after it: */
	uint16_t end_seq;
	uint16_t end_cpu; /* in whose queue it was, or INTERVAL_CPU_UNKNOWN */
	uint8_t end_flags;

	/*
	 * The kernel's accounts are read just before the window begins and just after it
	 * ends; what happened in between is known, and taken off.
	 */
	bool base_known, final_known;
	KernelAccount base, final;
	uint64_t base_ns, final_ns;
	SwitchCounts outside, outside_at_base, outside_at_final; /* outside the window */
	uint64_t outside_running, outside_runnable;		 /* ns, between the two accounts */
} BuildThread;

typedef struct BuildProcess {
	Process process; /* moves into the timeline at the end */
	VEC(uint32_t) lives;
	uint32_t parent_tgid;
	uint32_t parent; /* TimelineBuilder::processes, or INDEX_NONE */
	uint32_t alive;	 /* lives that neither exit nor have ended */
	uint64_t first_ns;
	uint64_t joined_ns; /* it is recorded only since then, though it lived before; or 0 */
	uint64_t limit_ns;  /* its number was used again then */
	bool group_dead;    /* its last thread has exited */
	uint64_t group_dead_ns;
	uint32_t last_target; /* whose exit that was */
	uint32_t exit_code;
	uint32_t exec_id;   /* of its program; see rec_task */
	bool kernel;	    /* all threads of the kernel */
	bool leader_exited; /* exit_code is the leader's */
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

struct TimelineBuilder {
	Timeline *timeline;
	VEC(BuildThread *) lives;
	VEC(BuildProcess) processes;
	Map target_of_tid, process_of_tgid, task_of_tid, stack_of_id;
	Map target_of_own_tid; /* (process, number in its innermost PID namespace) -> lives */
	bool start_known, end_known;
	uint64_t first_ns, last_ns; /* of all events */
	uint64_t recorded_end_ns;   /* of the window that was recorded; NS_NEVER: not known */
	Spans lost_switches, lost_wakings;
	VEC(LastSwitch) last_switches; /* by CPU */
	TimelineFilter filter;
};

/* Whether what happens at ns is counted. */
static inline bool in_window(const TimelineBuilder *builder, uint64_t ns)
{
	return ns >= builder->timeline->start_ns && ns <= builder->timeline->end_ns;
}

static inline Interval *chain_last(const BuildThread *life)
{
	return &life->thread.intervals.items[life->thread.intervals.count - 1];
}

/* ---- timeline_tasks.c ---------------------------------------------------- */

/* The task that tid means now, made if it is new. */
uint32_t tasks_reference(TimelineBuilder *builder, uint32_t tid);

/* The life that a record about tid belongs to, begun if there is none. */
BuildThread *tasks_target(TimelineBuilder *builder, uint32_t tid, uint64_t ns);

/* What a switch says about one of its two sides. */
typedef struct SwitchSide {
	uint64_t ns;
	uint32_t tid;
	uint32_t cpu_user; /* the tid on the other side: who had the CPU before, or has it now */
	uint16_t seq, cpu;
	bool out, dead;
} SwitchSide;

/* The life that a switch belongs to, or NULL if it tells nothing new. */
BuildThread *tasks_target_switch(TimelineBuilder *builder, const SwitchSide *side);
/* The life of a first wake-up. */
BuildThread *tasks_target_waking_new(TimelineBuilder *builder, uint32_t tid, uint64_t ns);
/* The life that a tick hit, or NULL. */
BuildThread *tasks_target_tick(TimelineBuilder *builder, uint32_t tid, uint16_t cpu, uint64_t ns);

/* Since when the life is recorded, if it lived before the window and joined in it; or 0. */
uint64_t tasks_recorded_since(const TimelineBuilder *builder, const BuildThread *life);

void tasks_task(TimelineBuilder *builder, const struct rec_task *record);
void tasks_exec(TimelineBuilder *builder, const struct rec_exec *record);
void tasks_exit(TimelineBuilder *builder, const struct rec_exit *record);
void tasks_stats(TimelineBuilder *builder, const struct rec_stats *record);

/* The life is over at ns. */
void tasks_end(TimelineBuilder *builder, BuildThread *life, uint64_t ns);

/*
 * The task of the life's process that has that number in its innermost PID namespace, other than
 * itself; THREAD_NONE: there is none, or none that lives.
 */
uint32_t tasks_of_process(TimelineBuilder *builder, const BuildThread *life, uint32_t own_tid);

/*
 * The same for a thread that holds a lock which the life waits for. shared: it may be a thread of
 * another process. That is decided only outside of containers, because tids of two namespaces
 * cannot be compared.
 */
uint32_t tasks_lock_holder(TimelineBuilder *builder, const BuildThread *life, uint32_t own_tid,
			   bool shared);

/* Whether it is the only thread left of a process of the launched command. */
bool tasks_only_thread(const TimelineBuilder *builder, const BuildThread *life);

/* ---- timeline_chain.c ---------------------------------------------------- */

/* Appends an interval; never earlier than the one before. */
Interval *chain_push(BuildThread *life, uint64_t ns, enum thread_state state);

/* Begins the chain: runnable if born at ns, else unknown. */
void chain_begin(TimelineBuilder *builder, BuildThread *life, uint64_t ns, uint32_t creator);
/* The birth of a life came late: its chain begins at ns. */
void chain_begin_late(TimelineBuilder *builder, BuildThread *life, uint64_t ns, uint32_t creator);

/* Whether the switch is the one that must come next if nothing is missing. */
bool chain_fits(const BuildThread *life, const SwitchSide *side);

void chain_switch_in(TimelineBuilder *builder, BuildThread *life, const SwitchSide *side);
void chain_switch_out(TimelineBuilder *builder, BuildThread *life, const SwitchSide *side,
		      const struct rec_switch *record);
void chain_waking(TimelineBuilder *builder, BuildThread *life, const struct rec_waking *record);
void chain_snapshot(TimelineBuilder *builder, BuildThread *life, const struct rec_snapshot *record);

/* The number of a stack id, or STACK_NONE for 0 (timeline.c). */
uint32_t stack_reference(TimelineBuilder *builder, uint64_t id);

/* ---- timeline_cpus.c ----------------------------------------------------- */

/* Adds what a switch proves of the CPU's time until then, in any recording. */
void cpus_prove(TimelineBuilder *builder, const struct rec_switch *record);
/* Of a recording of the whole system: what a switch says of its CPU. */
void cpus_switch(TimelineBuilder *builder, const struct rec_switch *record);

/* A task was seen to have a CPU, by a tick or a snapshot. */
void cpus_seen(TimelineBuilder *builder, uint16_t number, uint32_t tid);

/* Once the window and the losses are known. */
void cpus_finish(Timeline *timeline);

/* ---- timeline_faults.c --------------------------------------------------- */

void faults_add(TimelineBuilder *builder, const struct rec_fault *record);

/* Once the thread's intervals are final: puts its faults in order, and explains its waits. */
void faults_finish(Thread *thread);

/* What the thread owns. */
void thread_free(Thread *thread);

/* Gives the wait i another reason. */
void thread_explain(Thread *thread, size_t i, enum reason reason, enum reason_rule rule);

/* ---- timeline_losses.c --------------------------------------------------- */

/* Once what is unknown because of them is decided: makes one of those that are close to each other.
 */
void losses_finish(Timeline *timeline);

/* ---- timeline_objects.c -------------------------------------------------- */

/* What a switch or a snapshot tells of what a wait is for; see rec_switch. */
typedef struct ObjectId {
	uint64_t inode; /* or timeout_ns; 0 = nothing was told */
	uint32_t device, generation;
} ObjectId;

/* Keeps what the wait of a life is for that begins at start_ns, of which ns is a moment. */
void waits_add_object(TimelineBuilder *builder, BuildThread *life, uint64_t ns,
		      const ReasonInput *facts, const ObjectId *numbers);

/* Once the timeline's threads are final, and their waits explained: what objects are called. */
void objects_finish(Timeline *timeline);

/* ---- timeline_requests.c ------------------------------------------------- */

void requests_add(TimelineBuilder *builder, const struct rec_request *record);

/* Once the timeline's threads are final: whose the requests are, and what waited for them. */
void requests_finish(Timeline *timeline);

/* ---- timeline_resolve.c -------------------------------------------------- */

/* Sorts and merges. */
void spans_prepare(Spans *spans);

/* Whether a thread has exited whose final switch-out may have been lost. */
bool resolve_final_lost(const TimelineBuilder *builder, const BuildThread *life);

/*
 * Decides a life's doubtful places, cuts its chain to the window, adds up the ledger
 * and drops the ticks that hit no running interval. end_ns is its end, seen or not;
 * gone: it can't have lived on, though its end was not seen. Returns whether it lived
 * in the window at all.
 */
bool resolve_target(TimelineBuilder *builder, BuildThread *life, uint64_t end_ns, bool gone);

/* ---- timeline_filter.c --------------------------------------------------- */

/* Is a life, all of which is known, to be in the timeline? */
bool filter_includes(const TimelineBuilder *builder, const BuildThread *life);

/* Makes the window that was recorded the one that is asked for. */
void filter_window(TimelineBuilder *builder);

/* ---- timeline_finish.c --------------------------------------------------- */

/* Closes all chains and moves the result into builder->timeline. */
void finish_timeline(TimelineBuilder *builder);

#endif
