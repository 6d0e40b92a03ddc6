/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc_status.h - /proc/PID/status, as proc_pid_status(5) has it. */
#ifndef WALLPROF_PROC_STATUS_H
#define WALLPROF_PROC_STATUS_H

#include <sys/types.h>

/*
 * The last number on the line that begins with name, colon included; of "NSpid:" that is the
 * one in the innermost PID namespace. 0 if there is no such process or line.
 */
pid_t proc_status_number(pid_t pid, const char *name);

#endif
