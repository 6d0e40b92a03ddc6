/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scenario.h - draws what threads do, event by event, and compares the timeline
 * made from it with a line of one character per millisecond:
 *
 *   R running   r runnable   B blocked   ? unknown   . not there
 *
 * The window is [0, length) milliseconds; earlier times are negative. Sequence
 * numbers are kept as the kernel does, also for events whose record is lost.
 */
#ifndef WALLPROF_SCENARIO_H
#define WALLPROF_SCENARIO_H

#include "timeline_builder.h"

#define SCENARIO_THREADS 96
#define SCENARIO_LENGTH	 200

typedef struct Scenario {
	TimelineBuilder *builder;
	Timeline *timeline; /* after scenario_finish */
	int length;
	int ms;	   /* when the next event happens */
	bool lose; /* its record is lost */
	bool attached;
	bool first_namespace; /* all described threads are only in the initial PID namespace */
	struct scenario_thread {
		uint32_t tid;
		uint16_t seq;
	} threads[SCENARIO_THREADS];
	size_t thread_count;
	struct rec_switch next_out; /* the next switch-out's fields beside its state */
	uint32_t next_creator;	    /* the creator in the next birth's record; 0: none */
	uint32_t ran_before;	    /* the CPU's thread before the next switch-in; 0: none */
	uint64_t waker_kstack, waker_ustack; /* of the next waking */
	bool waker_unsampled;		     /* it has none because of --budget */
	uint64_t snapshot_ustack;	     /* of the next snapshot */
	uint16_t snapshot_cpu;		     /* of all snapshots */
} Scenario;

/* A window of length ms of a command, or (attached) of a running process. */
void scenario_begin(Scenario *scenario, int length, bool attached);
/* Like scenario_begin(), with the start of the window still to come. */
void scenario_begin_early(Scenario *scenario, int length, bool attached);
void scenario_window_start(Scenario *scenario);

/* Returns scenario, with the next event at ms; its record is lost. */
Scenario *at(Scenario *scenario, int ms);
Scenario *lost_at(Scenario *scenario, int ms);
uint64_t scenario_ns(int ms);
void scenario_set_seq(Scenario *scenario, uint32_t tid, uint16_t seq);
void birth(Scenario *scenario, uint32_t tid, uint32_t tgid);
void described(Scenario *scenario, uint32_t tid, uint32_t tgid, const char *comm);
void renamed(Scenario *scenario, uint32_t tid, uint32_t tgid, const char *comm);
/* It lived before, and is recorded from now on. */
void joined(Scenario *scenario, uint32_t tid, uint32_t tgid, const char *comm);
void non_target(Scenario *scenario, uint32_t tid, const char *comm);
void kernel_thread(Scenario *scenario, uint32_t tid, const char *comm);
void wake_new(Scenario *scenario, uint32_t tid, uint32_t waker);
void wake(Scenario *scenario, uint32_t tid, uint32_t waker);
void wake_by_irq(Scenario *scenario, uint32_t tid);
void in(Scenario *scenario, uint32_t tid, uint16_t cpu);
/* Switches out; state as the tracepoint has it. */
void out(Scenario *scenario, uint32_t tid, uint16_t state);
void out_preempted(Scenario *scenario, uint32_t tid);
void out_call(Scenario *scenario, uint32_t tid, uint16_t state, int syscall);
/* Two tasks that are not recorded, when every switch on the CPU has had a record for so long. */
void others_switch(Scenario *scenario, uint32_t prev, uint32_t next, uint16_t cpu, int complete_ms);
/* "key=value" of REC_META. */
void meta(Scenario *scenario, const char *text);
void tick(Scenario *scenario, uint32_t tid, uint16_t cpu);
void exiting(Scenario *scenario, uint32_t tid, uint32_t tgid, uint32_t code, uint8_t flags);
void dead(Scenario *scenario, uint32_t tid);
/* The end as BPF reports it: exit, final switch and accounts at once, of the thread that was born
 * then. */
void ends(Scenario *scenario, uint32_t tid, uint32_t tgid, int born_ms, uint64_t runtime);
void exec_as(Scenario *scenario, uint32_t old_tid, uint32_t tid, uint32_t tgid);
void stats(Scenario *scenario, uint32_t tid, uint64_t runtime);
/* The same, with by how many ns the scheduler's clock was ahead. */
#define SCENARIO_CLOCK_UNKNOWN INT64_MIN
void stats_ahead(Scenario *scenario, uint32_t tid, uint64_t runtime, int64_t clock_ahead);
void snapshot(Scenario *scenario, uint32_t tid, uint8_t flags, uint16_t state, int syscall);
/* A read of 4096 bytes of file 5 at 8192, submitted by tid at so many ms, completes on a CPU. */
#define SCENARIO_DEVICE (8u << 20)
void read_completes(Scenario *scenario, uint32_t tid, int submitted, uint16_t cpu);
/* Records of a kind were lost from … to …; noticed at the time of the event. */
void loss(Scenario *scenario, uint32_t kind, int from_ms, int to_ms);

/* The end of the window is reported, also before events that come after it. */
void scenario_window_end(Scenario *scenario);
/* The same, and builds the timeline. */
void scenario_finish(Scenario *scenario);
void scenario_free(Scenario *scenario);

/* The nth thread (from 0) with this tid in the timeline; NULL if there is none. */
const Thread *scenario_thread(const Scenario *scenario, uint32_t tid, int nth);

/* Draws a thread into drawn[SCENARIO_LENGTH + 1]. */
void track_draw(const Scenario *scenario, const Thread *thread, char *drawn);
/* The first column where they differ, or -1. */
int track_difference(const char *expected, const char *actual);

/* Fails the test, with a picture, unless the nth thread with this tid looks like that. */
void expect_track_of(const Scenario *scenario, uint32_t tid, int nth, const char *expected);
void expect_track(const Scenario *scenario, uint32_t tid, const char *expected);

/* Checks what holds for every thread: an unbroken chain, whose states add up to its lifetime. */
void check_thread(const Timeline *timeline, const Thread *thread);

#endif
