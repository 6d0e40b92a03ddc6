/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc_status.h - reads status, stat and task in /proc/PID (proc(5)). */
#ifndef WALLPROF_PROC_STATUS_H
#define WALLPROF_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The last number on the line that begins with name, colon included; for "NSpid:" that is the id in
 * the innermost PID namespace. 0 if there is no such process or line.
 */
pid_t proc_status_number(pid_t pid, const char *name);

/*
 * Returns the start time of a process or thread, in clock ticks (sysconf(_SC_CLK_TCK)) since boot.
 * Together with the id it identifies a process, although ids are reused. 0: there is none.
 */
uint64_t proc_start_ticks(pid_t pid);

/* Whether the process's main thread is running or runnable; false if there is no such process. */
bool proc_is_runnable(pid_t pid);

/*
 * The id under which /proc shows the mappings and files of a process: if the main thread has ended,
 * /proc shows nothing under the process's own id, but does under that of another thread. Returns
 * the process's own id if there is no such thread.
 */
pid_t proc_living_thread(pid_t pid);

/*
 * Whether /proc is mounted and has the process ids of this process's PID namespace: in a PID
 * namespace /proc may be that of another one.
 */
bool proc_is_ours(void);
#define PROC_REMEDY "mount -t proc proc /proc"

#endif
