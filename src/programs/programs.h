/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * programs.h - the BPF programs, from loading to unloading.
 */
#ifndef WALLPROF_PROGRAMS_H
#define WALLPROF_PROGRAMS_H

#include "cgroup.h"
#include "fault_hooks.h"
#include "loss.h"
#include "maps.h"
#include "sample_timer.h"
#include "table_registry.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Who is recorded besides those that are marked; the whole of what is not false or 0. */
typedef struct ProgramsScope {
	bool whole_system;
	bool kernel_threads;
	bool threads; /* threads are marked, and not processes */
	Cgroup cgroup;
} ProgramsScope;

typedef struct ProgramsOptions {
	ProgramsScope scope;
	uint64_t ring_size; /* bytes of each ring: a power of two, at least a page */
	enum kernel_stacks kernel_stacks;
	enum user_stacks user_stacks;
	uint64_t unwind_memory; /* bytes for the unwind tables and the processes' mappings */
	FaultOptions faults;
	uint64_t waker_threshold_ns; /* or WAKER_THRESHOLD_NONE */
	bool best_fault_source;	     /* faults.source is to be the best that this kernel allows */
	bool cost;		     /* count the programs' run time */
	/* What runs already is not to be disturbed: loading keeps one CPU busy at a time, and so
	 * does unloading. Both take longer. (A command that goes on when its recording ends
	 * sees all freed at once.) */
	bool one_cpu;
} ProgramsOptions;

typedef struct Programs Programs;

/*
 * Loads all programs and attaches those that follow tasks; nothing is recorded until
 * a target is marked. Returns 0 or a negative errno; the reason is logged.
 */
int programs_start(const ProgramsOptions *options, Programs **ret_programs);

/* Marks process pid (as seen from here) and its threads as targets. Returns 0, -ESRCH, or -errno.
 */
int programs_mark(Programs *programs, pid_t pid);
/* If threads are marked: the same of one. */
int programs_mark_thread(Programs *programs, pid_t tid);
/* The same for the command that wallprof launched. */
int programs_mark_command(Programs *programs, pid_t pid);
/* Marks all processes that descend from targets. */
int programs_mark_descendants(Programs *programs);
/* Marks whom the scope names, and not one by one. */
int programs_mark_scope_targets(Programs *programs);

/* Starts the timer ticks (sample_timer.h). Returns 0 or a negative errno, logged. */
int programs_start_ticks(Programs *programs, unsigned int frequency);
/* To be called often: they come only where targets run. */
void programs_review_ticks(Programs *programs);
/* Somebody has become a target then who may be running, unseen. */
void programs_enable_ticks(Programs *programs, uint64_t since_ns);
/* Once they are stopped: what was missed from since_ns on, where they rested. */
SampleTimerCounts programs_ticks_counts(const Programs *programs, uint64_t since_ns);
/* Readable when a target has come to a CPU where ticks rest, if asked for its edges (EPOLLET). */
int programs_wake_fd(const Programs *programs);

/*
 * From the start until then a stack that can't be walked is not copied, and those of threads asleep
 * are not in a snapshot: the tables of what runs already are still being made.
 */
void programs_tables_ready(Programs *programs);

/* How long the start took; with programs_start_ticks(), all of it. */
typedef struct ProgramsTimes {
	uint64_t load_ns;   /* opening and loading all programs, their maps, and the tables'
			       first chunk of memory */
	uint64_t attach_ns; /* to their hooks, and the ticks on every CPU */
} ProgramsTimes;

ProgramsTimes programs_times(const Programs *programs);

/*
 * Sends REC_TASK, REC_SNAPSHOT and REC_STATS of every thread of every target. They come in
 * pieces; `between` is called after each piece, and at the end, to drain the rings.
 */
int programs_snapshot(Programs *programs, bool at_end, int (*between)(void *user), void *user);
/* The same of one process. */
int programs_snapshot_process(Programs *programs, pid_t pid, int (*between)(void *user),
			      void *user);

/* The hooks in use, separated by commas; to be freed. */
char *programs_hooks(const Programs *programs);

/* How well a waker is distinguished from an interrupt: META's waking-context. Static. */
const char *programs_waking_context(const Programs *programs);

/*
 * The address ranges of the programs' code, "ffffffffc0123000+1a4 …" (start and size, both
 * hexadecimal), for META's own-code: the code has no name, or none that identifies it. "" if the
 * kernel hides the addresses. To be freed.
 */
char *programs_own_code(const Programs *programs);

/* How page faults are seen: what was asked for, or what was best. */
FaultOptions programs_faults(const Programs *programs);
/* What became of those that are not told. */
struct fault_counts programs_fault_counts(const Programs *programs);
/* Once the programs are stopped: what is still under way counts as unfinished. */
struct request_counts programs_request_counts(const Programs *programs);

/*
 * After programs_stop: adds to the losses how often the kernel did not run a program because the
 * program was already running on that CPU.
 */
void programs_add_misses(Programs *programs, LossMeter *losses, uint64_t since_ns);

/* How often the kernel did not run the program of that name, which sends no records itself. */
uint64_t programs_missed(const Programs *programs, const char *name);

/* Hands every record that waits in the rings to take, which returns 0 or a negative errno. */
int programs_drain(Programs *programs, int (*take)(void *user, const struct record *record),
		   void *user);

/* One account per CPU, shared with the running programs. */
struct cpu_account *programs_accounts(Programs *programs, size_t *ret_count);

/* What the tables are written to; all of it the programs'. */
UnwindMaps programs_unwind_maps(Programs *programs);

/* When the command's last thread left its CPU for good, or 0 if it has not yet. */
uint64_t programs_command_end(const Programs *programs);

/* Detaches all programs: no record is made after this returns. */
void programs_stop(Programs *programs);

/* What the programs cost (ProgramsOptions::cost): a line each. */
void programs_print_cost(Programs *programs, FILE *out, uint64_t window_ns);

/*
 * Once nothing is asked of them any more: they go, and with them what they counted, their accounts
 * and all of programs_unwind_maps() but its memory, which stays until programs_free(). So do the
 * other large maps if ProgramsOptions::one_cpu.
 */
void programs_unload(Programs *programs);

/*
 * With ProgramsOptions::one_cpu it waits until the kernel is done with the programs, 300 ms after
 * programs_unload(), and then for each large map.
 */
void programs_free(Programs *programs);

/* What `doctor` learns of one BPF program. */
typedef struct Probe {
	const char *program, *hook, *purpose;
	bool optional;		 /* without it less is recorded, or otherwise */
	int error;		 /* 0, or why it cannot be loaded and attached */
	uint32_t verified_insns; /* instructions the verifier processed, repeated ones too */
	uint64_t load_ns; /* of this program alone: the verifier's time, and the translator's */
} Probe;

/* For `doctor`: tries to load the programs, all at once or else each by itself, and to attach each.
 */
void programs_probe(void (*visit)(void *user, const Probe *probe), void *user);

#endif
