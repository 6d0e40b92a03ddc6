/* SPDX-License-Identifier: GPL-2.0-or-later */
/* programs.h - loads, attaches, drains and unloads the BPF programs. */
#ifndef WALLPROF_PROGRAMS_H
#define WALLPROF_PROGRAMS_H

#include "cgroup.h"
#include "fault_hooks.h"
#include "loss.h"
#include "maps.h"
#include "ring_buffers.h"
#include "sample_timer.h"
#include "table_registry.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Targets in addition to the marked ones: everything that is not false or 0 here. */
typedef struct ProgramsScope {
	bool whole_system;
	bool kernel_threads;
	bool threads; /* threads are marked instead of processes */
	Cgroup cgroup;
} ProgramsScope;

typedef struct ProgramsOptions {
	ProgramsScope scope;
	RingLayout rings;
	enum kernel_stacks kernel_stacks;
	enum user_stacks user_stacks;
	uint64_t unwind_memory; /* bytes for the unwind tables and the processes' mappings */
	FaultOptions faults;
	uint64_t waker_threshold_ns; /* or WAKER_THRESHOLD_NONE */
	bool best_fault_source;	     /* choose faults.source: the best that this kernel allows */
	bool args;		     /* record argument lists at execs */
	bool running;		     /* processes are recorded that run before they are marked */
	bool all_files;		     /* no name of a file is withheld: file_names.h */
	bool cost;		     /* count the programs' run time */
	bool phases;		     /* with cost: measure phases of programs, too */
	bool budget;		     /* thin stacks and objects: programs_set_budget() */
	/*
	 * Running programs must not be disturbed: loading and unloading use one CPU at a time, and
	 * take longer. (If the command continues after the recording, it sees everything freed at
	 * once.)
	 */
	bool one_cpu;
} ProgramsOptions;

typedef struct Programs Programs;

/*
 * Loads all programs and attaches those for hooks. Nothing is recorded until a target is marked.
 * Returns 0 or a negative errno, logged.
 */
int programs_start(const ProgramsOptions *options, Programs **ret_programs);

/*
 * Marks process pid (in wallprof's PID namespace) and its threads as targets. Returns 0, -ESRCH, or
 * another negative errno.
 */
int programs_mark(Programs *programs, pid_t pid);
/* Marks one thread, if ProgramsScope::threads is set. */
int programs_mark_thread(Programs *programs, pid_t tid);
/* Marks the command that wallprof started. */
int programs_mark_command(Programs *programs, pid_t pid);
/* Marks all processes that descend from targets. */
int programs_mark_descendants(Programs *programs);
/* Marks all tasks that the scope selects. */
int programs_mark_scope_targets(Programs *programs);

/* Starts the sampling timers (sample_timer.h). Returns 0 or a negative errno, logged. */
int programs_start_ticks(Programs *programs, unsigned int frequency);
/* Changes the rate of started ticks. Returns 0 or a negative errno; then it is unchanged. */
int programs_set_tick_rate(Programs *programs, unsigned int frequency);
/* Returns whether the timer of any CPU is enabled. */
bool programs_ticks_run(const Programs *programs);

/* The sampling ticks of all CPUs so far. */
typedef struct TickCounts {
	uint64_t ticks;	     /* interrupts */
	uint64_t samples;    /* those that hit a target, including those whose records were lost */
	uint64_t samples_ns; /* the time of the program in these */
} TickCounts;

TickCounts programs_tick_counts(const Programs *programs);
/*
 * Attaches to the events of a CPU that has come online since since_ns: the kernel has removed them.
 * Returns 0 or a negative errno, -ENODEV if the CPU is offline again.
 */
int programs_reopen_cpu(Programs *programs, size_t cpu, uint64_t since_ns);
/* Is called often: enables and disables the timers, which run only where targets run. */
void programs_review_ticks(Programs *programs);
/* Enables all timers, because a task that became a target at since_ns may be running. */
void programs_enable_ticks(Programs *programs, uint64_t since_ns);
/*
 * Returns the time without samples since since_ns, where timers were off. It is called after they
 * are stopped.
 */
SampleTimerCounts programs_ticks_counts(const Programs *programs, uint64_t since_ns);
/*
 * Adds descriptors that are readable when a target runs on a CPU whose timer is off. Returns 0 or a
 * negative errno.
 */
int programs_add_to_epoll(const Programs *programs, int epoll_fd);
/* Returns whether the descriptor is one of these. */
bool programs_own_fd(const Programs *programs, int fd);

/*
 * Informs the programs that the tables of running processes are ready. Until then, stacks that
 * cannot be walked are not copied, and a snapshot has no stacks of sleeping threads.
 */
void programs_tables_ready(Programs *programs);

/* The time that the start took, including programs_start_ticks(). */
typedef struct ProgramsTimes {
	uint64_t load_ns;   /* opening and loading all programs, their maps and the first chunk for
			       tables */
	uint64_t attach_ns; /* attaching them to hooks and starting the timers on every CPU */
	uint64_t verified_insns; /* instructions that the verifier processed, of all programs */
} ProgramsTimes;

ProgramsTimes programs_times(const Programs *programs);

/*
 * Sends REC_TASK, REC_SNAPSHOT and REC_STATS for every thread of every target. They come in pieces;
 * `between` is called after each piece and at the end, to drain the rings.
 */
int programs_snapshot(Programs *programs, bool at_end, int (*between)(void *user), void *user);
/* Does the same for one process. */
int programs_snapshot_process(Programs *programs, pid_t pid, int (*between)(void *user),
			      void *user);

/* Waits of so many units of 1024 ns always have their stacks; shorter ones by chance. */
void programs_set_budget(Programs *programs, uint32_t certain_units);
/*
 * Returns whether a thread that chance left without stacks has slept for BUDGET_LONG_NS or more.
 * programs_snapshot_sleepers() sends REC_SNAPSHOT with the stacks of all of these; `between` is as
 * in programs_snapshot().
 */
bool programs_lack_stacks(const Programs *programs);
int programs_snapshot_sleepers(Programs *programs, int (*between)(void *user), void *user);

/* Returns the hooks in use, separated by commas. The caller frees the text. */
char *programs_hooks(const Programs *programs);

/*
 * Returns how well a waker is distinguished from an interrupt: META's waking-context. The text is
 * static.
 */
const char *programs_waking_context(const Programs *programs);

/*
 * Returns the address ranges of the programs' code, "ffffffffc0123000+1a4 …" (start and size in
 * hexadecimal), for META's own-code: the code has no name, or none that identifies it. Returns ""
 * if the kernel hides the addresses. The caller frees the text.
 */
char *programs_own_code(const Programs *programs);

/* Returns how page faults are observed: as requested, or the best source. */
FaultOptions programs_faults(const Programs *programs);
/* Returns the counts of page faults that are not recorded. */
struct fault_counts programs_fault_counts(const Programs *programs);
/*
 * Returns the counts of requests that are not recorded or incomplete. It is called after the
 * programs are stopped: requests in flight are counted then.
 */
struct request_counts programs_request_counts(const Programs *programs);

/*
 * Adds to the losses how often the kernel did not run a program because the program was already
 * running on that CPU. It is called after programs_stop().
 */
void programs_add_misses(Programs *programs, LossMeter *losses, uint64_t since_ns);

/*
 * Returns how often the kernel did not run the program of that name, which itself sends no records.
 */
uint64_t programs_missed(const Programs *programs, const char *name);

/* Passes the records that are in the rings to on_record: ring_reader_drain(). */
int programs_drain(Programs *programs, int (*on_record)(void *user, const struct record *record),
		   void *user);

/* Returns what reads the rings, to ask how far they are drained. The programs own it. */
const RingReader *programs_ring_reader(const Programs *programs);
RingLayout programs_ring_layout(const Programs *programs);

/* Returns the accounts, one for each CPU, shared with the running programs. */
struct cpu_account *programs_accounts(Programs *programs, size_t *ret_count);

/* Returns the maps and memory that tables are written to. The programs own them. */
UnwindMaps programs_unwind_maps(Programs *programs);

/*
 * Loads the programs that read the frames of interpreters, if they are not loaded. Returns the
 * descriptor of the map of processes with an interpreter (script_maps.h), which the programs own,
 * or a negative errno; then all else is recorded as before.
 */
int programs_load_scripts(Programs *programs);

/*
 * Returns the time of the final switch-out of the command's last thread, or 0 if it has not ended.
 */
uint64_t programs_command_end(const Programs *programs);

/* Detaches all programs: no record is made after this returns. */
void programs_stop(Programs *programs);

/* Prints the cost of each program (ProgramsOptions::cost), one line each. */
void programs_print_cost(Programs *programs, FILE *out, uint64_t window_ns);

/*
 * Frees the programs, their counts and accounts, and everything of programs_unwind_maps() except
 * its memory, which stays until programs_free(). With ProgramsOptions::one_cpu, the other large
 * maps stay until then, too.
 */
void programs_unload(Programs *programs);

/*
 * Frees the rest. With ProgramsOptions::one_cpu it waits until the kernel has freed the programs,
 * 300 ms after programs_unload(), and then for each large map.
 */
void programs_free(Programs *programs);

/* What `doctor` finds out about one BPF program. */
typedef struct Probe {
	const char *program, *hook, *purpose;
	bool optional;		 /* wallprof can record without it */
	int error;		 /* 0, or why it cannot be loaded and attached */
	uint32_t verified_insns; /* instructions that the verifier processed, with repetitions */
	uint64_t load_ns;	 /* verifying and translating this program alone */
} Probe;

/* Loads the programs for `doctor`, all at once or else each by itself, and attaches each. */
void programs_probe(void (*visit)(void *user, const Probe *probe), void *user);

#endif
