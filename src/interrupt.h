/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interrupt.h - what SIGINT, SIGTERM and SIGHUP (unless it is ignored) do, from start to end.
 *
 * The first one ends the recording, and the profile is still written; the second gives
 * up the export, but keeps the capture and says where it is. During a recording they
 * are read from a descriptor; afterwards handlers count them.
 */
#ifndef WALLPROF_INTERRUPT_H
#define WALLPROF_INTERRUPT_H

#include <stdbool.h>

/*
 * Blocks the signals, and gives SIGCHLD its default and SIGPIPE no effect. What was
 * before is kept for the command. Call before anything is created.
 */
void interrupt_begin(void);

/* In the child, before exec: everything as wallprof itself was given it. */
void interrupt_restore(void);

/* A signalfd for these three, or a negative errno. The caller closes it. */
int interrupt_open(void);

/*
 * Likewise for SIGUSR1, which begins a recording that waits for it, or ends that of a flight
 * recorder. It does nothing else.
 */
int interrupt_open_second(void);

/* Whether one came; *ret_from_terminal (may be NULL): the command has had it too. */
bool interrupt_take(int fd, bool *ret_from_terminal);

/*
 * The recording is over: from now on the second signal ends wallprof, saying that the
 * recording is in capture_path. NULL: nothing can be lost, so the first one does.
 */
void interrupt_guard(const char *capture_path);

/* A file that must not be left behind if that happens; NULL = none. */
void interrupt_unfinished(const char *temp_path);

/* All is written: from now on a signal only interrupts what waits. */
void interrupt_release(void);

/* How many came so far. */
int interrupt_count(void);

#endif
