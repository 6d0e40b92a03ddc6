/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * preflight.h - checks what recording needs of this kernel and of these privileges before anything
 * starts.
 */
#ifndef WALLPROF_PREFLIGHT_H
#define WALLPROF_PREFLIGHT_H

#include "record_options.h"

/*
 * Returns 0 if recording can be tried. Otherwise logs what is missing and the remedies, one line
 * each, and returns a negative errno.
 */
int preflight_check(void);

/*
 * Prints what this kernel and these privileges allow, hook by hook, and starts what a recording
 * with these options starts. Returns 0 if recording can work.
 */
int preflight_doctor(const RecordOptions *options);

#endif
