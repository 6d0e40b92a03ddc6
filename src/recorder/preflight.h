/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * preflight.h - what recording needs of this kernel and of these privileges, checked
 * before anything starts.
 */
#ifndef WALLPROF_PREFLIGHT_H
#define WALLPROF_PREFLIGHT_H

#include "record_options.h"

/*
 * Returns 0 if recording can be tried. Otherwise logs, one line each, what is missing
 * and what to do about it, and returns a negative errno.
 */
int preflight_check(void);

/*
 * Prints what this kernel and these privileges allow, hook by hook; starts what a recording with
 * these options starts. Returns 0 if recording can work.
 */
int preflight_doctor(const RecordOptions *options);

#endif
