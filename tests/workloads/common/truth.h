/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * truth.h - what a test workload knows about its own threads.
 *
 * A workload does exactly what its command line says and writes down, thread by
 * thread, what that was: how long each wait took by its own clock, the CPU time
 * and the context switches that the kernel charged to it. The end-to-end tests
 * hold profiles against this. It goes as JSON to the file named by --truth, or
 * to stdout. Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef WALLPROF_TRUTH_H
#define WALLPROF_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

#define NSEC_PER_SEC  1000000000ULL
#define NSEC_PER_MSEC 1000000ULL

typedef struct TruthThread TruthThread;

/*
 * Reads "--truth FILE" and the options of the workload, each "--NAME NUMBER",
 * into values (which hold the defaults). Anything else ends the program with a
 * message and status 2.
 */
typedef struct TruthOption {
	const char *name;
	uint64_t *value;
} TruthOption;
void truth_options(int argc, char **argv, const TruthOption *options);

/* The file named by --truth, or NULL; the file to write to instead. */
const char *truth_file(void);
void truth_set_file(const char *path);

uint64_t truth_now(void);

/* The calling thread's CPU time. */
uint64_t truth_cpu(void);

/* CLOCK_REALTIME minus CLOCK_MONOTONIC. */
uint64_t truth_realtime_offset(void);

/* Begins the account of the calling thread and names it (15 characters). */
TruthThread *truth_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Keeps the process on the first so many of its CPUs. */
void truth_confine(uint64_t cpus);

/* Starts a thread that runs function(number); it ends in truth_park. */
void truth_spawn(void *(*function)(void *), uint64_t number);

/*
 * A wait of the calling thread that began at begin_ns and ended now. kind is a
 * word that the tests know: sleep, mutex, condvar, join, pipe, network, child.
 */
void truth_wait(TruthThread *thread, const char *kind, uint64_t begin_ns);

/* What the thread's last wait was for, from an independent source; "": there is none. */
#define TRUTH_OBJECT_SIZE 256
void truth_object(TruthThread *thread, const char *object);

/*
 * Ends the account of a thread that is not the main one and keeps the thread
 * asleep until the process ends, so that its counts in /proc are final.
 */
void truth_park(TruthThread *thread) __attribute__((noreturn));

/*
 * Ends the main thread's account after all others are parked, writes the truth
 * and exits with status 0.
 */
void truth_finish(TruthThread *main_thread) __attribute__((noreturn));

/* Sleeps this long, whatever signals come. */
void truth_sleep(uint64_t ns);

/* Burns CPU in user mode until the thread has used this much more of it. */
void truth_burn(uint64_t cpu_ns);

/* Ends the program with "NAME: what: error" and status 1 if failed. */
void truth_check(bool ok, const char *what);

#endif
