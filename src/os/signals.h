/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * signals.h - handles SIGINT, SIGTERM and SIGHUP (unless it is ignored) for the whole run.
 *
 * The first request ends the recording, and the profile is still written. The second one aborts the
 * export, but keeps the capture and says where it is. One that comes while names are looked up ends
 * only that. During a recording the signals are read from
 * a descriptor; afterwards handlers count them.
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
 * Blocks the signals, sets SIGCHLD to its default and ignores SIGPIPE. The previous actions are
 * kept for the command. Call before anything is created.
 */
void signals_begin(void);

/* In the child, before exec: restores all actions that wallprof itself was started with. */
void signals_restore(void);

/* Returns a signalfd for these three, or a negative errno. The caller closes it. */
int signals_open(void);

/*
 * Does the same for SIGUSR1, which starts a recording that waits for it, or ends that of a flight
 * recorder. It does nothing else.
 */
int signals_open_second(void);

/*
 * Returns whether there was a request at a descriptor of signals_open(); *ret_from_terminal (may be
 * NULL): the command has received it too.
 */
bool signals_consume(int fd, bool *ret_from_terminal);

/* Returns whether SIGUSR1 came at a descriptor of signals_open_second(). */
bool signals_consume_second(int fd);

/*
 * Notes the time if no signal is pending. Call it often while the signals are blocked: a signal
 * that is found pending later came after the last call. Without this, a signal that is pending
 * during a long step would look like a late, second request.
 */
void signals_note_time(void);

/*
 * The recording is over: from now on the second request ends wallprof with a message that the
 * recording is in capture_path. NULL: nothing can be lost, so the first one does.
 */
void signals_guard(const char *capture_path);

/*
 * Names are looked up: a request ends only that, and a further one aborts. A lookup asks every
 * fifth of a second whether it was stopped.
 */
void signals_begin_lookup(void);
bool signals_lookup_stopped(void);
void signals_end_lookup(void);
#define SIGNALS_LOOKUP_POLL_MS 200

/* A file that must be deleted if wallprof ends early; NULL = none. */
void signals_unfinished(const char *temp_path);

/* All is written: from now on a signal only interrupts system calls that wait. */
void signals_release(void);

#endif
