/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * graphs.h - a graph of tasks: what each of its threads and processes does, and when.
 *
 * A task is a list of operations. One task at a time has the token: it computes, sleeps, waits for
 * the disk, and passes the token to a task that waits for it. The token's way is the critical path
 * that the graph is made to have. All of it lies in memory that the graph's processes share.
 */
#ifndef WALLPROF_GRAPHS_H
#define WALLPROF_GRAPHS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OPS_MAX	    96
#define TASKS_MAX   32
#define OBJECTS_MAX 96

typedef enum OpKind {
	OP_COMPUTE, /* for `arg` microseconds of CPU time */
	OP_SLEEP,   /* for `arg` microseconds */
	OP_DISK,    /* writes the block `arg` of the file, and waits for the device */
	OP_GIVE,    /* ends the wait for object `arg` */
	OP_TAKE,    /* waits until object `arg` is given */
	OP_THREAD,  /* creates task `arg` as a thread */
	OP_CHILD,   /* creates task `arg` as a process */
	OP_JOIN,    /* waits for the end of thread `arg` */
	OP_REAP,    /* waits for the end of process `arg` */
} OpKind;

typedef struct Op {
	OpKind kind;
	uint32_t arg;
	bool has_token; /* done by the task that has it */
	/* Measured by the task's own clocks: */
	uint64_t from_ns, to_ns;
	/*
	 * The time for which the task was running or runnable, by the kernel's account: before and
	 * during the operation.
	 */
	uint64_t from_awake_ns, awake_ns;
	uint64_t waiter_awake_ns;     /* of OP_GIVE: the taker's, up to then */
	uint64_t locked_ns;	      /* of OP_COMPUTE: the time that locking a mutex took */
	uint64_t sleeps, preemptions; /* the kernel's counts of switches */
} Op;

typedef enum ObjectKind {
	OBJECT_SEMAPHORE,
	OBJECT_CONDVAR,
	OBJECT_EVENTFD,
	OBJECT_PIPE,
	OBJECT_MUTEX, /* the giver holds it from the beginning */
	OBJECT_KINDS,
} ObjectKind;

typedef struct Object {
	ObjectKind kind;
	uint32_t giver, taker;
	bool is_given; /* of a condition variable */
	int fds[2];    /* to read and to write */
	sem_t semaphore;
	pthread_mutex_t mutex;
	pthread_cond_t condvar;
} Object;

typedef struct Task {
	Op ops[OPS_MAX];
	uint32_t op_count;
	bool is_pool;	  /* it exists before the token moves, and does not end */
	bool is_busy;	  /* while the graph is planned: it waits for the task being planned */
	uint32_t creator; /* the task that waits for the end, if any does */
	pid_t tid;
	pthread_t thread;
	uint64_t begin_ns, end_ns;
	uint64_t waiter_awake_ns; /* the creator's at the end, as Op::waiter_awake_ns */
	uint64_t age_ns;	  /* at begin_ns, the time for which it was running or runnable */
	uint64_t sleeps;	  /* up to then */
} Task;

typedef struct Graph {
	Task tasks[TASKS_MAX];
	Object objects[OBJECTS_MAX];
	uint32_t task_count, object_count;
	uint32_t idle_count, ticker_count; /* threads that are off the path */
	pthread_mutex_t shared;		   /* of computing tasks and tickers, for a moment */
	pthread_mutex_t unrelated;	   /* of tickers alone */
	uint64_t random;
} Graph;

/* TASK_RUN is the program's main thread, TASK_MAIN the graph's. */
#define TASK_RUN  0
#define TASK_MAIN 1

uint32_t graph_random(uint64_t *state, uint32_t from, uint32_t to);

/* Fills in the tasks' operations. disk: they may write to a file. */
void graph_plan(Graph *graph, uint64_t seed, bool disk);

#endif
