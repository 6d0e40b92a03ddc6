/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idle_private.h - shared by the files of idle.h: idle.c has the rule, idle_places.c finds the
 * outermost loops, idle_waits.c looks at one wait. Each calls only those after it.
 */
#ifndef WALLPROF_IDLE_PRIVATE_H
#define WALLPROF_IDLE_PRIVATE_H

#include "timeline.h"

enum ending {
	ENDING_UNKNOWN, /* the waker was not recorded */
	ENDING_OPEN,
	ENDING_OUTSIDE, /* by an interrupt, or by a task that is not recorded */
	ENDING_TIMER,
	ENDING_THREAD,
};

/* A place where a thread waits repeatedly, identified by its user stack. */
typedef struct WaitPlace {
	uint32_t stack;		  /* Timeline::stacks */
	size_t first, last;	  /* the first and the last such wait (Thread::intervals) */
	size_t times, by_threads; /* number of waits, and of those that a thread ended */
	bool for_job;		  /* it can be a wait for the next job */
	bool for_client;	  /* clients of the program are at the other end */
	/*
	 * The number of frames of the outermost loop, which also calls the other work; or
	 * FORK_NONE.
	 */
	uint32_t fork;
} WaitPlace;

#define FORK_NONE UINT32_MAX

typedef VEC(WaitPlace) WaitPlaces;

typedef struct IdleFinder {
	Timeline *timeline;
	uint32_t *same;	   /* by stack: the first stack with the same frames */
	bool *for_clients; /* by Timeline::objects: clients are at the other end */
	/*
	 * By (process, stack). times: the number of waits; threads: the thread that waits, if it is
	 * the only one; awaited: the number of waits that threads end and that count; job_places:
	 * the places where the process's threads are known to wait for jobs.
	 */
	Map times, threads, awaited, job_places;
	WaitPlaces *places;	 /* by thread */
	uint8_t **verdicts;	 /* by thread, and interval: enum verdict */
	uint8_t **on_path;	 /* by thread, and interval; NULL: none of the thread's is */
	uint64_t *on_path_until; /* by thread: the last moment; 0: never */
} IdleFinder;

/* ---- idle_waits.c: which waits can be idle, and what ended them ------------------------------ */

/*
 * Finds the sockets that listen or were accepted, and the epoll descriptors that watch such
 * sockets.
 */
void idle_find_clients(IdleFinder *finder);

/* Returns whether the rule applies to that wait at all. */
bool idle_is_candidate(const IdleFinder *finder, const Thread *thread, size_t i);

/* The end of a thread or a process is not a reply: a wait for one that does not end is idle. */
bool idle_is_for_end(const Interval *wait);

/* A wait in the program's own scheduler shows that the thread has no work. */
bool idle_is_without_work(const Timeline *timeline, const Interval *wait);

/* Returns whether the wait can be for the thread's next job. */
bool idle_can_be_for_job(const IdleFinder *finder, const Interval *wait);

/*
 * Returns whether the wait is for a connection, or for data from one that the program has accepted.
 */
bool idle_is_for_client(const IdleFinder *finder, const Thread *thread, size_t i);

/* Returns whether the wait is for data from a server to which the program has connected. */
bool idle_is_for_reply(const IdleFinder *finder, const Thread *thread, size_t i);

enum ending idle_ending(const IdleFinder *finder, const Thread *thread, size_t i);

/* ---- idle_places.c: where the outermost loops are -------------------------------------------- */

/* Examines the waits of all threads; sets all of the finder except on_path and on_path_until. */
void idle_places_find(IdleFinder *finder);

void idle_places_free(IdleFinder *finder);

/* Returns the wait's place: the first stack with the same frames, or STACK_NONE. */
uint32_t idle_stack(const IdleFinder *finder, const Interval *wait);

/* Returns the thread's place with that stack; NULL: none. */
const WaitPlace *idle_place(const IdleFinder *finder, uint32_t thread, uint32_t stack);

/* Returns whether no other thread of the process waits there. */
bool idle_is_only_thread(const IdleFinder *finder, uint32_t thread, uint32_t stack);

/*
 * Returns whether the stack departs from a loop in which the thread waits for its clients, as the
 * work for them does.
 */
bool idle_is_in_request(const IdleFinder *finder, uint32_t thread, uint32_t stack);

/* Returns whether threads repeatedly end waits there, and none of these is between jobs. */
bool idle_is_awaited_place(const IdleFinder *finder, const Thread *thread, uint32_t stack);

/* Returns whether threads end so many of the waits that all timeouts there are waits for them. */
bool idle_often_by_threads(const WaitPlace *place);

#endif
