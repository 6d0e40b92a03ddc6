/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder.h - one recording, from the checks to the finished capture.
 */
#ifndef WALLPROF_RECORDER_H
#define WALLPROF_RECORDER_H

#include "invoker.h"
#include "record_options.h"

typedef struct RecordResult {
	int command_status;   /* as in a shell; 0 without a command */
	bool command_running; /* still running when the recording ended */
	pid_t command_pid;    /* 0 = no command, or reaped */
	bool interrupted;     /* ended by SIGINT or SIGTERM */
	bool started;	      /* the capture holds a recording worth exporting */
	int capture_fd;	      /* of the capture, for reading; -1 = there is none; the caller's */
} RecordResult;

/*
 * Records into the file `capture_path`. Returns 0 or a negative errno, logged; if result->started
 * is set, the capture is worth exporting nevertheless. If exec fails, command_status is 126 or 127
 * and the result -ENOEXEC.
 */
int recorder_run(const RecordOptions *options, const Invoker *invoker, const char *capture_path,
		 RecordResult *ret_result);

/*
 * Reaps a command that outlives its recording and sets command_status. Returns whether it has
 * ended; if block is false, or if a signal interrupts the wait, it may not have.
 */
bool recorder_wait(RecordResult *result, bool block);

#endif
