/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record.h - one recording, from the checks to the finished capture.
 */
#ifndef WALLPROF_RECORD_H
#define WALLPROF_RECORD_H

#include "launch.h"
#include "options.h"

typedef struct RecordResult {
	int command_status;   /* as a shell gives it; 0 when attached */
	bool command_running; /* still there when the recording ended */
	pid_t command_pid;
	bool interrupted; /* ended by SIGINT or SIGTERM */
	bool opened;	  /* the capture file was made (or emptied) */
	bool started;	  /* the capture holds a recording worth exporting */
} RecordResult;

/*
 * Records into the file `capture_path`. Returns 0, or a negative errno after saying
 * what failed; with result->started set the capture is worth exporting all
 * the same. An exec failure is reported as command_status 126 or 127 and -ENOEXEC.
 */
int record_run(const Options *options, const Invoker *invoker, const char *capture_path,
	       RecordResult *ret_result);

/* Waits for a command that outlives its recording; fills command_status. */
void record_wait(RecordResult *result);

#endif
