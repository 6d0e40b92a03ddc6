/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder_private.h - the recording, shared by:
 *
 *   recorder_setup.c     everything before the window begins, except
 *   recorder_targets.c   finding and describing the targets
 *   recorder_args.c      argument lists from /proc
 *   recorder_drain.c     from the kernel's buffers into the capture; functions of interpreters
 *   recorder_budget.c    keeping --budget
 *   recorder_ticks.c     the rate of the sampling ticks
 *   recorder.c           the window, and what follows it
 *   recorder_warnings.c  warnings about what is missing
 */
#ifndef WALLPROF_RECORDER_PRIVATE_H
#define WALLPROF_RECORDER_PRIVATE_H

#include "atomic_file.h"
#include "budget.h"
#include "capture.h"
#include "cpus.h"
#include "file_names.h"
#include "flight_recorder.h"
#include "interrupt_cost.h"
#include "launch.h"
#include "loss.h"
#include "mapped_files.h"
#include "programs.h"
#include "recorder.h"
#include "sideband.h"
#include "sources.h"
#include "suspends.h"
#include "symbols.h"
#include "unwinder.h"

/* A process or a thread given by -p or -t. */
typedef struct NamedTarget {
	int fd; /* pidfd of the process */
	pid_t pid;
	pid_t tid;	/* 0 = the whole process; otherwise only this thread */
	uint64_t start; /* proc_start_ticks() of the thread or process */
} NamedTarget;

/* The sampling ticks in the window. */
typedef struct RecordedTicks {
	unsigned int frequency; /* at present */
	InterruptCost cost;	/* while it is measured */
	uint64_t next_slice_ns; /* the earliest time of the measurement's next slice */
	bool measured;		/* or it is known that it cannot be measured: */
	uint64_t interrupt_ns;	/* what one interrupt takes; 0 = not known */
	uint64_t ran_ns;	/* for how long the timer of any CPU has run */
	uint64_t seen_ns;	/* up to when that is known */
	bool chosen;		/* the rate does not change any more, if it may change */
	TickCounts at_start, at_choice;
} RecordedTicks;

/*
 * A source file of such functions, by a process that runs one of them. The process chooses the
 * path, and many users run one interpreter, so root reads it with that process's rights alone.
 */
typedef struct ScriptUse {
	uint32_t file;	/* the interpreter's FILE id: the path is looked for in the same root */
	uint32_t count; /* of functions */
	OpenRights rights;
} ScriptUse;

/* Programs that an interpreter runs. */
typedef struct RecordedScripts {
	Interpreters *interpreters; /* NULL: stacks do not use unwind tables */
	Sleepers *sleepers;
	bool tried;	     /* the BPF programs are loaded, or cannot be */
	int error;	     /* why they cannot be loaded, a negative errno; 0 = no error */
	Strings paths;	     /* of source files */
	VEC(ScriptUse) uses; /* by number of the path */
} RecordedScripts;

typedef struct Recording {
	const RecordOptions *options;
	const Invoker *invoker;
	const char *capture_path;
	AtomicFile capture_file; /* gets its name when the window begins */
	RecordResult *result;
	CaptureWriter *writer;
	FlightRecorder *flight; /* until the end, if only the last part is kept; otherwise NULL */
	uint64_t segments_dropped; /* flight_recorder_segments_dropped() */
	uint64_t kept_ns;	   /* the length of what a flight recorder kept */
	bool flight_empty;	   /* nothing of it could be written to a full disk */
	uint64_t named_bytes;	   /* size of the capture before its first event */
	Programs *programs;
	LossMeter *losses;
	OnlineCpus *online_cpus;  /* or NULL */
	IdleCpus *idle_cpus;	  /* only for the whole system; or NULL */
	Suspends suspends;	  /* since the window began */
	uint64_t cpus_checked_ns; /* when the events of all online CPUs were last known to exist */
	uint64_t cpus_reopened,
		cpus_failed;	    /* CPUs that came online and whose events were opened, or not */
	FileNames file_names;	    /* empty if no names are withheld */
	CgroupCpuLimits cpu_limits; /* of the cgroups of recorded processes */
	MappedFiles *files;
	Sideband *sideband;
	Unwinder *unwinder; /* NULL: stacks do not use unwind tables */
	RecordedScripts scripts;
	Launch launch;
	ProgramsScope scope;
	bool launched;	       /* the process of the command exists */
	bool launched_running; /* it was released to exec the command */
	int epoll_fd, signal_fd, timer_fd;
	int stop_fd;		/* a flight recorder's signalfd for SIGUSR1, or -1 */
	int command_fd;		/* pidfd of the command */
	VEC(NamedTarget) named; /* given targets that still run */
	ProcessTable processes;
	VEC(uint32_t) new_processes; /* ns_tgid of those whose mappings must be read from /proc */
	bool before_window;	     /* /proc must be read for all processes that are described */
	bool iterating;		     /* an iterator runs, so no other one may */
	Budget budget;		     /* if RecordOptions::budget is set */
	RecordedTicks ticks;
	uint64_t next_visit_ns; /* the earliest next visit of threads that lack stacks */
	Map threads;		/* set of tids, if only threads are recorded */
	size_t threads_left;	/* number of those that have not ended */
	uint64_t window_start_ns;
	uint64_t last_flush_ns;
	uint64_t coalesce_ns;	   /* the last pause after mappings, 0 = none yet */
	uint64_t last_progress_ns; /* 0 = progress is not shown */
	uint64_t grace_end_ns;	   /* when the recording of an interrupted command ends; 0 = not
				      interrupted */
	bool done;
} Recording;

/*
 * Checks, opens, loads and forks. Returns 0 or a negative errno, logged; then nothing runs, and the
 * caller tears down.
 */
int recording_open(Recording *recording);

/*
 * Opens the given processes and threads, so that a reuse of their IDs is noticed. Returns as
 * recording_open().
 */
int recording_open_targets(Recording *recording);

/*
 * Returns whether processes are recorded that run before they are marked, of which threads may be
 * asleep. recording_open_targets() must have been called.
 */
bool recording_has_running(const Recording *recording);

/*
 * Marks and describes the targets and makes their unwind tables: from here on all events are
 * recorded. Returns as recording_open().
 */
int recording_find_targets(Recording *recording);

/*
 * Describes all targets, and drains meanwhile. `iterating` must be set. Returns 0 or a negative
 * errno.
 */
int recording_describe(Recording *recording, bool at_end);

/*
 * Describes processes that have become targets since the last call. Returns 0 or a negative errno.
 */
int recording_describe_joined(Recording *recording);

/*
 * Records the argument list that /proc shows for a process, unless it is the one that was recorded
 * last. What cannot be read is left out. Returns 0 or a negative errno.
 */
int recording_add_args(Recording *recording, uint32_t ns_tgid);

/* The same for all processes that have not ended. */
int recording_add_all_args(Recording *recording);

/* Remembers which argument list BPF has recorded. */
void recording_on_args(Recording *recording, const struct rec_args *args);

/*
 * Logs what is missing and writes it as notes, after the programs are stopped and all rings are
 * drained. Returns 0 or a negative errno.
 */
int recording_write_warnings(Recording *recording);

/* Logs which files could not be named. */
void recording_report_symbols(const SymbolsSummary *summary);

/* Writes a note into the capture, for the report and the profile. Returns 0 or a negative errno. */
int recording_write_note(Recording *recording, const char *text);

/* Looks for interpreters among the mapped files from now on. Returns 0. */
int recording_open_scripts(Recording *recording);
void recording_close_scripts(Recording *recording);
/* Loads the BPF programs for interpreters, once one is mapped. It is called after each drain. */
void recording_load_scripts(Recording *recording);
/* Notes the source file of a function that BPF has reported. */
void recording_on_script_code(Recording *recording, const struct rec_script_code *code);
/* Weighs these source files; sources may be NULL. */
void recording_weigh_scripts(Recording *recording, Sources *sources);
/* A SourcesOpen (sources.h) for the sources of scripts and of files. user: the recording. */
int recording_open_source(void *user, uint32_t file, const char *path, struct stat *ret_stat);
/* Warns of interpreters that are not read. Returns 0 or a negative errno. */
int recording_warn_scripts(Recording *recording);

/* Logs that the capture could not be written, and returns the error. */
int recording_write_failed(const Recording *recording, int error);

/* A RecordSink that writes to the capture. */
int recording_write(void *recording, const struct record *record);

/* Does the same for records about mappings, which the unwinder follows. */
int recording_write_mapping(void *recording, const struct record *record);

/*
 * Drains all sources once. Afterwards everything older than its start is in the capture, except the
 * latest mappings (sideband_process()), which the last drain writes as well.
 */
int recording_drain(Recording *recording);
int recording_drain_last(Recording *recording);

/* Is called when the window begins: CPUs and suspends are observed from then on. */
void recording_begin_cpu_checks(Recording *recording);

/*
 * Adjusts how many stacks are taken, if there is a budget. It is called often, between drains.
 * Returns 0 or a negative errno.
 */
int recording_keep_budget(Recording *recording);

/* Is called when the window begins, after the ticks have started. */
void recording_begin_ticks(Recording *recording);

/*
 * Measures what the interrupt of a tick costs, and then chooses the rate (tick_rate.h) unless the
 * user has. It is called often, between drains. Returns 0 or a negative errno.
 */
int recording_adapt_ticks(Recording *recording);

/* Returns the share of a CPU that ticks may take. */
double recording_ticks_share(const RecordOptions *options);

/*
 * Returns the time that interrupts of ticks have taken from targets since the rate was chosen; 0 if
 * the user has chosen it, or if it is not known.
 */
uint64_t recording_interrupts_ns(const Recording *recording);

/*
 * Writes how many ticks there were in the window. It is called after the programs are stopped.
 * Returns 0 or a negative errno.
 */
int recording_write_ticks(Recording *recording);

#endif
