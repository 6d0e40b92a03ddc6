/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * signals.h - what SIGINT, SIGTERM and SIGHUP (unless it is ignored) do, from start to end.
 *
 * The first request ends the recording, and the profile is still written; the second gives
 * up the export, but keeps the capture and says where it is. During a recording the signals
 * are read from a descriptor; afterwards handlers count them.
 *
 * One request may be several signals: timeout(1) sends one to its child and then one to the whole
 * process group, and so do shells and service managers. Any of the three signals that comes less
 * than half a second after a request belongs to that request.
 */
#ifndef WALLPROF_SIGNALS_H
#define WALLPROF_SIGNALS_H

#include <stdbool.h>

/*
 * Ignores SIGXFSZ: beyond the limit on file sizes (ulimit -f) write(2) then fails with EFBIG
 * instead of killing the process. The previous action is kept for the command. Call first.
 */
void signals_ignore_file_limit(void);

/*
 * Blocks the signals, and gives SIGCHLD its default and SIGPIPE no effect. What was
 * before is kept for the command. Call before anything is created.
 */
void signals_begin(void);

/* In the child, before exec: everything as wallprof itself was given it. */
void signals_restore(void);

/* A signalfd for these three, or a negative errno. The caller closes it. */
int signals_open(void);

/*
 * Likewise for SIGUSR1, which begins a recording that waits for it, or ends that of a flight
 * recorder. It does nothing else.
 */
int signals_open_second(void);

/*
 * Whether a request came at a descriptor of signals_open(); *ret_from_terminal (may be NULL): the
 * command has had it too.
 */
bool signals_consume(int fd, bool *ret_from_terminal);

/* Whether SIGUSR1 came at a descriptor of signals_open_second(). */
bool signals_consume_second(int fd);

/*
 * Notes the time if no signal is pending. Call it now and then while the signals are blocked: a
 * signal that is found pending later came after the last call. Without this, a signal that is
 * pending during a long step would look like a late, second request.
 */
void signals_note_time(void);

/*
 * The recording is over: from now on the second request ends wallprof, saying that the
 * recording is in capture_path. NULL: nothing can be lost, so the first one does.
 */
void signals_guard(const char *capture_path);

/* A file that must not be left behind if wallprof ends early; NULL = none. */
void signals_unfinished(const char *temp_path);

/* All is written: from now on a signal only interrupts what waits. */
void signals_release(void);

#endif
