/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_groups.h - the sums of a timeline's waits by reason, object and stack.
 *
 * Waits are blocked intervals. Idle ones (a server without work) are not included unless requested,
 * because they would be the largest of all. A group has one reason with one basis, one object or
 * none, and one chain of the user functions nearest to the wait.
 */
#ifndef WALLPROF_WAIT_GROUPS_H
#define WALLPROF_WAIT_GROUPS_H

#include "distribution.h"
#include "frames.h"
#include "timeline.h"

typedef VEC(uint32_t) ThreadList; /* Timeline::threads, each once, in order */

typedef struct WaitGroup {
	enum reason reason;
	const char *basis; /* "synchronize_rcu_normal ← map_update_elem", or NULL */
	/* Timeline::objects, or OBJECT_NONE; of several objects the first. */
	uint32_t object;
	/* The number of objects: 1, except for merged groups and OBJECT_NONE. */
	size_t objects;
	const char *chain; /* "read_header ← extract ← main", or "" without a user stack */
	Distribution waits;
	uint64_t delay_ns;  /* how long the threads were runnable afterwards */
	uint64_t path_ns;   /* what wait_groups_charge() added */
	ThreadList threads; /* threads with such waits */
	uint32_t number;    /* until groups are merged */
} WaitGroup;

/* The waits below one function of one library, in any thread. */
typedef struct FunctionWaits {
	const char *function;
	const char *library; /* NULL: none, or unknown memory */
	Distribution waits;
	size_t threads;
	const char *others; /* functions with the same waits, "fill, parse"; NULL: not looked for */
} FunctionWaits;

typedef struct WaitGroups {
	VEC(WaitGroup) list; /* the largest total first */
	uint64_t total_ns;   /* total of all groups */
	uint64_t other_ns;   /* total of groups that are classified by the task state alone */
	struct WaitGroupsPrivate *private;
} WaitGroups;

WaitGroups wait_groups_make(const Timeline *timeline, Frames *frames, bool with_idle);
void wait_groups_free(WaitGroups *groups);

/*
 * Merges groups that differ only by their objects, if there are more than `most`: for example, each
 * file of a folder that is read by the same stack.
 */
void wait_groups_merge_objects(WaitGroups *groups, size_t most);

/*
 * Adds the waits and threads of `from`, which does not change. When all are added,
 * wait_group_sort_threads() makes each thread be there once.
 */
void wait_group_add(WaitGroup *group, const WaitGroup *from);
void wait_group_sort_threads(WaitGroup *group);

typedef void (*FunctionVisitor)(void *user, FunctionWaits *waits);

/*
 * Passes the waits below functions of user stacks to the visitor: of the `most` with the largest
 * total or, if a name is given, only of functions with that name (functions_called()). The argument
 * is valid until the visitor returns. Returns how many there were.
 */
size_t wait_groups_by_function(WaitGroups *groups, const char *name, size_t most,
			       FunctionVisitor visit, void *user);

/*
 * Adds to WaitGroup::path_ns of the group of wait i of a thread. To be called before groups are
 * merged.
 */
void wait_groups_charge(WaitGroups *groups, const Timeline *timeline, uint32_t thread, size_t i,
			uint64_t ns);

/*
 * Does the same as wait_groups_by_function(), but passes only functions that tell something:
 * - of functions with the same waits one: the innermost of the program itself, or else the one that
 *   the program called. If nearly all waits below a function are below another one that it calls,
 *   only the latter is passed;
 * - none that is on nearly all stacks of the threads that have it, as main() and what calls it,
 *   unless waits have no function of the program that is nearer;
 * - none of the run-time system (runtime_functions.h), unless the program has no function there.
 */
size_t wait_groups_telling_functions(WaitGroups *groups, size_t most, FunctionVisitor visit,
				     void *user);

#endif
