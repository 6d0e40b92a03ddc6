/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_groups.h - all waits of a timeline, added up by what they were for and where.
 *
 * Waits are blocked intervals; those that are idle (a server without work) are left out unless they
 * are asked for, for they would be the largest of all. A group has one reason with one evidence,
 * one file or none, and one chain of the user functions nearest to the wait.
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
	uint32_t object;   /* Timeline::objects, or OBJECT_NONE; of several: the first */
	size_t objects;	   /* how many: 1, but for those that were merged, and OBJECT_NONE */
	const char *chain; /* "read_header ← extract ← main", or "" without a user stack */
	Distribution waits;
	uint64_t delay_ns;  /* for which the threads then wanted a CPU */
	ThreadList threads; /* that waited so */
} WaitGroup;

/* The waits that lie below one function of one library, in whatever thread. */
typedef struct FunctionWaits {
	const char *function;
	const char *library; /* NULL: none, or unknown memory */
	Distribution waits;
	size_t threads;
} FunctionWaits;

typedef struct WaitGroups {
	VEC(WaitGroup) list; /* the largest total first */
	uint64_t total_ns;   /* of all of them */
	uint64_t other_ns;   /* of that, named by the state alone */
	struct WaitGroupsPrivate *private;
} WaitGroups;

WaitGroups wait_groups_make(const Timeline *timeline, Frames *frames, bool with_idle);
void wait_groups_free(WaitGroups *groups);

/*
 * Makes one group of those that differ by their objects alone, where these are more than `most`:
 * each file of a folder is read at the same place.
 */
void wait_groups_merge_objects(WaitGroups *groups, size_t most);

/* Adds the waits and threads of `from`, which stays as it is. */
void wait_group_add(WaitGroup *group, const WaitGroup *from);

typedef void (*FunctionVisitor)(void *user, FunctionWaits *waits);

/*
 * Shows the waits below functions of user stacks: of the `most` with the largest total, or only of
 * those that are called so (functions_called()) if a name is given. What is shown is valid until
 * the visitor returns. Returns how many there were.
 */
size_t wait_groups_by_function(WaitGroups *groups, const char *name, size_t most,
			       FunctionVisitor visit, void *user);

#endif
