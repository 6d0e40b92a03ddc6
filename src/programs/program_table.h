/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * program_table.h - the table of all BPF programs: what each is for, when it is loaded, and what a
 * recording lacks if the kernel does not run it.
 */
#ifndef WALLPROF_PROGRAM_TABLE_H
#define WALLPROF_PROGRAM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum program_need {
	PROGRAM_REQUIRED,
	PROGRAM_OPTIONAL, /* without it, events of its kind are not recorded */
	/*
	 * As PROGRAM_OPTIONAL, but the kernel may lack the hook. Without it, the event is recorded
	 * with less information.
	 */
	PROGRAM_DISPENSABLE,
};

/* The programs are loaded in groups, at the same time (load_groups.c). */
enum load_group {
	LOAD_GROUP_SWITCH, /* most of what is attached to tracepoints; has all maps and variables */
	LOAD_GROUP_TICK,   /* new tasks, ticks, iterators; loads as long as the other */
	LOAD_GROUPS,
};

/* When a program of page faults is loaded. */
enum fault_use {
	FAULT_USE_NEVER,
	FAULT_USE_ALWAYS,
	FAULT_USE_WITH_THRESHOLD,
	FAULT_USE_WITHOUT_THRESHOLD,
};

typedef struct ProgramInfo {
	const char *name, *section; /* in the BPF object */
	const char *purpose;	    /* what doctor prints after the hook */
	enum program_need need;
	enum load_group group;
	bool for_args;	  /* loaded only if argument lists are recorded */
	bool for_running; /* loaded only if processes are recorded that run already */
	bool for_cgroups; /* loaded only if a cgroup is recorded */
	bool for_names;	  /* loaded only if names of files may be withheld */
	bool for_faults;  /* loaded depending on the source of page faults: */
	enum fault_use fentry, events;
	/* If the kernel misses a run: the kind of the lost record, or REC_NONE, and */
	uint8_t lost_kind;
	/* what is not known of block I/O requests: a text after their count, or NULL. */
	const char *missed_requests;
} ProgramInfo;

/* Returns entry i, in the order in which doctor prints them, or NULL after the last. */
const ProgramInfo *program_info(size_t i);

/* Returns the entry of the program of this name, or NULL. */
const ProgramInfo *program_info_of(const char *name);

#endif
