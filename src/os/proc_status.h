/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc_status.h - what /proc/PID says of a process: status, stat and task, as proc(5) has them. */
#ifndef WALLPROF_PROC_STATUS_H
#define WALLPROF_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The last number on the line that begins with name, colon included; of "NSpid:" that is the
 * one in the innermost PID namespace. 0 if there is no such process or line.
 */
pid_t proc_status_number(pid_t pid, const char *name);

/*
 * When a process or thread began, in ticks of the kernel's (sysconf(_SC_CLK_TCK)) since the machine
 * did; with its number it tells one from another that has the number later. 0: there is none.
 */
uint64_t proc_start_ticks(pid_t pid);

/* Whether the process's main thread is running or waits for a CPU; false if it does not exist. */
bool proc_is_runnable(pid_t pid);

/*
 * The number below which /proc has what the process maps and its files: a process whose main
 * thread has ended has nothing below its own any more, but its other threads do. The process's own
 * if there is no such thread.
 */
pid_t proc_living_thread(pid_t pid);

/*
 * Whether /proc is mounted, and numbers processes as the kernel does for this process: not so where
 * a PID namespace has the /proc of another one.
 */
bool proc_is_ours(void);
#define PROC_REMEDY "mount -t proc proc /proc"

#endif
