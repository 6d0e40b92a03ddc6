/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wait_groups_private.h - what wait_groups.c and wait_functions.c share. */
#ifndef WALLPROF_WAIT_GROUPS_PRIVATE_H
#define WALLPROF_WAIT_GROUPS_PRIVATE_H

#include "functions.h"
#include "wait_groups.h"

/* One user stack of one process, and the waits in it. */
typedef struct StackWaits {
	uint32_t chain;		 /* Strings */
	VEC(uint32_t) functions; /* WaitGroupsPrivate::functions, each once, the outermost first */
	/* Of these, without what the run-time system does inside (runtime_functions.h). */
	size_t shown;
	/* The innermost function of the program itself; MAP_NONE: no function is known. */
	uint32_t own;
	Distribution waits;
	ThreadList threads;
} StackWaits;

struct WaitGroupsPrivate {
	Frames *frames;
	Functions functions;
	Strings chains;
	Map stack_index; /* (process, user stack) -> stacks */
	VEC(StackWaits) stacks;
	Map group_index;
	VEC(bool) of_runtime;	 /* functions -> whether it is of the run-time system */
	VEC(uint32_t) places;	 /* WaitGroup::number -> WaitGroups::list */
	VEC(uint64_t) thread_ns; /* Timeline::threads -> the time of its waits */
};

/* Sorts the threads; each is there once. */
void wait_groups_sort_threads(ThreadList *list);

#endif
