/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscalls.h - the system calls that wallprof knows, for the BPF programs, which read the
 * arguments, and for the exporter, which names the waits.
 */
#ifndef WALLPROF_SYSCALLS_H
#define WALLPROF_SYSCALLS_H

#include "syscalls_x86_64.h"

enum syscall_number {
#define CALL(NAME, name, number) SYSCALL_##NAME = number,
	SYSCALLS(CALL)
#undef CALL
		SYSCALL_FUTEX_WAIT = SYSCALL_NUMBER_FUTEX_WAIT,
};

#endif
