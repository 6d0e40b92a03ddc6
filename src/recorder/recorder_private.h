/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder_private.h - one recording, as the parts of it share it:
 *
 *   recorder_setup.c     everything up to the moment before the window begins, but for
 *   recorder_targets.c   whom it is about
 *   recorder_drain.c     from the kernel's buffers into the capture
 *   recorder.c           the window, and what comes after it
 *   recorder_warnings.c  what it does not have
 */
#ifndef WALLPROF_RECORDER_PRIVATE_H
#define WALLPROF_RECORDER_PRIVATE_H

#include "atomic_file.h"
#include "capture.h"
#include "flight_recorder.h"
#include "idle_cpus.h"
#include "launch.h"
#include "loss.h"
#include "mapped_files.h"
#include "online_cpus.h"
#include "programs.h"
#include "recorder.h"
#include "sideband.h"
#include "unwinder.h"

/* A process that was named, or a thread. */
typedef struct NamedTarget {
	int fd; /* pidfd of the process */
	pid_t pid;
	pid_t tid;	/* 0: all of the process; else this thread of it, */
	uint64_t start; /* proc_start_ticks() of it */
} NamedTarget;

typedef struct Recording {
	const RecordOptions *options;
	const Invoker *invoker;
	const char *capture_path;
	AtomicFile capture_file; /* has its name once the window begins */
	RecordResult *result;
	CaptureWriter *writer;
	FlightRecorder *flight; /* until the end, if only the last part is kept; else NULL */
	uint64_t segments_dropped,
		kept_ns;      /* flight_recorder_segments_dropped(), and how long what is left is */
	bool flight_empty;    /* there was no room for it */
	uint64_t named_bytes; /* of the capture before its first event */
	Programs *programs;
	LossMeter *losses;
	OnlineCpus *online_cpus; /* or NULL */
	IdleCpus *idle_cpus;	 /* of the whole system; or NULL */
	MappedFiles *files;
	Sideband *sideband;
	Unwinder *unwinder; /* NULL: no stacks by unwind tables */
	Launch launch;
	ProgramsScope scope;
	bool launched;	       /* a child waits to become the command */
	bool launched_running; /* it was let go */
	int epoll_fd, signal_fd, timer_fd;
	int stop_fd;		     /* a flight recorder's: for the signal that ends it, or -1 */
	int command_fd;		     /* pidfd of the command */
	VEC(NamedTarget) named;	     /* who was named and still lives */
	Map ns_tgids;		     /* tgid -> ns_tgid, of processes that are recorded */
	Map starts;		     /* tgid -> start_key() of the process that has it */
	VEC(uint32_t) new_processes; /* whose mappings must be read from /proc, as ns_tgid */
	bool before_window;	     /* those of all who are described now */
	bool iterating;		     /* an iterator is being run: no other one may be */
	Map threads;		     /* tid -> nothing, of threads that are recorded alone; */
	size_t threads_left;	     /* so many still live */
	uint64_t window_start_ns;
	uint64_t last_flush_ns;
	uint64_t last_progress_ns; /* 0 = no live line */
	uint64_t grace_end_ns; /* when an interrupted command's grace ends; 0 = not interrupted */
	bool done;
} Recording;

/*
 * Checks, opens, loads, forks. Returns 0 or a negative errno after saying what failed; then nothing
 * runs, and the caller tears down.
 */
int recording_open(Recording *recording);

/*
 * Whoever was named: opened, so that its number cannot be used again unnoticed. Returns as
 * recording_open().
 */
int recording_open_targets(Recording *recording);

/*
 * Marks and describes what is to be recorded, and makes its unwind tables: from here on all is
 * told. Returns as recording_open().
 */
int recording_find_targets(Recording *recording);

/* Describes those that have joined since the last time. Returns 0 or a negative errno. */
int recording_describe_joined(Recording *recording);

/* Once the programs are stopped and all is drained. Returns 0 or a negative errno. */
int recording_write_warnings(Recording *recording);

/* A RecordSink into the capture. */
int recording_write(void *recording, const struct record *record);

/* The same for what tells of mappings, which the unwinder follows. */
int recording_write_mapping(void *recording, const struct record *record);

/*
 * One round: everything older than its beginning is in the capture afterwards, but for the youngest
 * mappings (sideband_process()), which the last round takes, too.
 */
int recording_drain(Recording *recording);
int recording_drain_last(Recording *recording);

#endif
