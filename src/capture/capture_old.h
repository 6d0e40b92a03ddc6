/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_old.h - converts records of version 2 of the capture file to the present format.
 *
 * In version 2 (wallprof 0.1.0) the length of a record said which optional parts it had, and some
 * records had no room for a mask.
 */
#ifndef WALLPROF_CAPTURE_OLD_H
#define WALLPROF_CAPTURE_OLD_H

#include "capture_format.h"

/*
 * Returns a frame with the converted records, which the caller frees; frees frame. What follows a
 * record of impossible length is left unchanged.
 */
CaptureFrame *capture_old_renew(CaptureFrame *frame);

#endif
