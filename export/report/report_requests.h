/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_requests.h - what the report says of requests to block devices.
 *
 * A thread's bytes are in text those of the kernel's own account, as iotop shows them: what it made
 * dirty is written, whoever brings it to the disk. In JSON that is in "kernel", and "io" is of the
 * requests that it submitted; of a request to a device that lies on others (dm, md) only the upper
 * one is counted. A device's are all that it completed in the window, whoever submitted them.
 */
#ifndef WALLPROF_REPORT_REQUESTS_H
#define WALLPROF_REPORT_REQUESTS_H

#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

/*
 * By device, by thread and by file, what limits held back, and of how many it is not known who
 * submitted them; nothing if there were none.
 */
void report_requests_print(FILE *file, const Timeline *timeline);

/* The members "io" of a thread's object, and "devices", "io_files" and "ownerless_requests"
 * of the whole report. */
void report_requests_of_thread(Json *json, const Timeline *timeline, const Thread *thread);
void report_requests(Json *json, const Timeline *timeline);

#endif
