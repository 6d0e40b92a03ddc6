/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scripts.bpf.h - what the readers of all interpreters share. A reader is one file per language
 * (python.bpf.c) with a function that fills script_scratch::stack for the current thread.
 */
#ifndef WALLPROF_SCRIPTS_BPF_H
#define WALLPROF_SCRIPTS_BPF_H

#include "wallprof.bpf.h"

#define SCRIPT_FUNCTION				__noinline int
#define SCRIPT_READ(scratch, to, size, address) bpf_probe_read_user(to, size, (void *)(address))
#define SCRIPT_LOOP(count, function, context)	bpf_loop(count, function, context, 0)

#include "script_reader.h"

/*
 * Fills scratch->stack with the frames of the current thread, leaf first, and its lock. The frames
 * have addresses of code, and scratch->ids the ids. The id of the stack is made from
 * scratch->hash.
 */
extern int python_read(struct script_scratch *scratch, const struct script_process *process);
/* It is in python_reader.h. */
extern int python_describe(struct script_scratch *scratch, const struct script_process *process);

#endif
