/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder.h - one recording, from the checks to the finished capture.
 */
#ifndef WALLPROF_RECORDER_H
#define WALLPROF_RECORDER_H

#include "launch.h"
#include "record_options.h"

typedef struct RecordResult {
	int command_status;   /* as a shell gives it; 0 when attached */
	bool command_running; /* still there when the recording ended */
	pid_t command_pid;    /* 0 = none, or reaped */
	bool interrupted;     /* ended by SIGINT or SIGTERM */
	bool started;	      /* the capture holds a recording worth exporting */
} RecordResult;

/*
 * Records into the file `capture_path`. Returns 0, or a negative errno after saying
 * what failed; with result->started set the capture is worth exporting all
 * the same. An exec failure is reported as command_status 126 or 127 and -ENOEXEC.
 */
int recorder_run(const RecordOptions *options, const Invoker *invoker, const char *capture_path,
		 RecordResult *ret_result);

/*
 * Reaps a command that outlives its recording and fills command_status. Returns whether it has
 * ended; with block false, or if a signal interrupts the wait, it may not have.
 */
bool recorder_wait(RecordResult *result, bool block);

#endif
