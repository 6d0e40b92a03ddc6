/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python.bpf.c - the frames of the current thread of CPython, 3.8 and later: python_reader.h reads
 * them.
 *
 * The variables for the current thread are empty, or another thread's, once the thread has released
 * the global lock, which it does before nearly every wait. So the thread's state is looked for in
 * the lists of all interpreters once, and its thread_id is compared each time.
 */
#include "scripts.bpf.h"

#define PYTHON_SLOTS 4096
/*
 * After a search that took longer there is none for 32 times its time: for the same thread, and, on
 * that CPU, for a thread that shares its slot.
 */
#define PYTHON_SHORT_NS	   3000
#define PYTHON_RETRY_SHIFT 5

struct python_thread python_threads[PYTHON_SLOTS];
u64 python_codes_sent[PYTHON_SENT_SLOTS];

#define SCRIPT_SENT(scratch, slot) (&python_codes_sent[slot])

#include "python_reader.h"

/* ---- the thread ------------------------------------------------------------------- */

/* Finds the thread's state and reads it, and finds its frame. Returns 0 if there is one. */
__noinline int python_find_thread(struct script_scratch *scratch,
				  const struct script_process *process)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct python_walk walk = {.scratch = scratch};
	struct python_thread *known;
	u64 owner, begin_ns, took_ns;
	bool is_found;

	if (!scratch || !process)
		return -1;
	walk.layout = &process->python;
	known = &python_threads[task->pid & (PYTHON_SLOTS - 1)];
	owner = (u64)task->pid << 32 | process->exec_id;
	if (known->owner == owner) {
		scratch->thread = known->thread;
		is_found = read_thread(scratch, walk.layout);
		if (is_found && has_frame(scratch, walk.layout))
			return 0;
		if (scratch->ns < known->retry_ns)
			return is_found ? 0 : -1;
	} else if (known->owner && scratch->ns < scratch->next_search_ns) {
		return -1;
	}
	scratch->thread = 0;
	if (read_word(scratch, &walk.interpreter, process->runtime + walk.layout->interpreters))
		return -1;
	begin_ns = bpf_ktime_get_ns();
	is_found = search_thread(scratch, &walk);
	known->owner = owner;
	known->thread = scratch->thread;
	known->lock = 0;
	took_ns = bpf_ktime_get_ns() - begin_ns;
	known->retry_ns =
		took_ns < PYTHON_SHORT_NS ? 0 : begin_ns + (took_ns << PYTHON_RETRY_SHIFT);
	scratch->next_search_ns = known->retry_ns;
	return is_found ? 0 : -1;
}

/* ---- the lock --------------------------------------------------------------------- */

/* So much is read of a lock: Python's is called the GIL. */
#define LOCK_BYTES 32

/* Reads which thread has the lock. scratch->bytes has the thread's state before, and not after. */
static __always_inline void read_lock(struct script_scratch *scratch,
				      const struct script_process *process)
{
	const struct python_layout *layout = &process->python;
	struct task_struct *task = bpf_get_current_task_btf();
	struct python_thread *known = &python_threads[task->pid & (PYTHON_SLOTS - 1)];
	u64 lock = known->lock;

	if (!lock && !layout->lock_is_pointer)
		lock = process->runtime + layout->lock;
	else if (!lock &&
		 read_word(scratch, &lock,
			   script_word(scratch, layout->thread_interpreter) + layout->lock))
		return;
	known->lock = lock;
	if (!lock || read_object(scratch, LOCK_BYTES, lock))
		return;
	scratch->lock = lock;
	scratch->lock_holder = script_word(scratch, layout->lock_holder);
	scratch->lock_held = (u32)script_word(scratch, layout->lock_held);
}

/* ---- all of it ------------------------------------------------------------------------------ */

__noinline int python_read(struct script_scratch *scratch, const struct script_process *process)
{
	if (!scratch || !process)
		return 0;
	if (python_find_thread(scratch, process)) {
		scratch->thread = 0;
		return 0;
	}
	read_lock(scratch, process);
	read_frames(scratch, process);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
