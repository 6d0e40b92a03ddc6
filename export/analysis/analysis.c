/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis.h"
#include "cpu_users.h"
#include "critical_path.h"
#include "idle.h"
#include "interpreter_locks.h"
#include "recording_cost.h"
#include "wait_reasons.h"
#include <errno.h>

int analysis_run(Timeline *timeline, Frames *frames, pid_t critical_tid)
{
	uint32_t thread = critical_path_thread(timeline, critical_tid);

	if (critical_tid != 0 && thread == THREAD_NONE)
		return -ESRCH;
	cpu_users_index(timeline);
	wait_reasons_by_stack(timeline, frames);
	recording_cost_find(timeline, frames);
	objects_name_users(timeline);
	wait_name_futexes(timeline, frames);
	objects_find_alike(&timeline->objects);
	interpreter_locks_join_words(timeline);
	critical_path_find(timeline, thread);
	if (critical_tid == 0)
		critical_path_hide(timeline);
	/* A wait on the critical path is never idle. */
	idle_find(timeline);
	return 0;
}
