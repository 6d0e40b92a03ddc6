/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_sink.h - how the code that makes records passes them on.
 */
#ifndef WALLPROF_RECORD_SINK_H
#define WALLPROF_RECORD_SINK_H

#include "records.h"

/*
 * Consumes a record, which belongs to the caller and may be on its stack. Returns 0 or a negative
 * errno.
 */
typedef int (*RecordSink)(void *user, const struct record *record);

#endif
