/* SPDX-License-Identifier: GPL-2.0-or-later */
/* doctor.h - prints what can be recorded here, and the remedy of what is missing. */
#ifndef WALLPROF_DOCTOR_H
#define WALLPROF_DOCTOR_H

#include "record_options.h"

/*
 * Prints five lines for a person: recording, stacks, events, names, limits. With -v every hook
 * follows, every privilege and what loading took. Starts what a recording with these options
 * starts. Returns 0 if recording can work.
 */
int doctor_print(const RecordOptions *options);

#endif
