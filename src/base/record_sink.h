/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_sink.h - how records are passed on from where they are made.
 */
#ifndef WALLPROF_RECORD_SINK_H
#define WALLPROF_RECORD_SINK_H

#include "records.h"

/* Takes a record, which is the caller's and may be on its stack. Returns 0 or a negative errno. */
typedef int (*RecordSink)(void *user, const struct record *record);

#endif
