/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_line.h - the line about disks: that the run waited for one, or for the requests of others.
 *
 * A wait for a disk ends with a request. Until then the disk completes others, and the time up to
 * each completion is charged to the process that submitted that request. A disk that works on many
 * requests at once is divided among them in this way.
 */
#ifndef WALLPROF_DISK_LINE_H
#define WALLPROF_DISK_LINE_H

#include "timeline.h"

/*
 * Returns "for 6.200 s of 8.700 s vda completed requests of others: dd big.img (6.000 s), fio
 * (200.000 ms)", of the waits on the critical path or, without a path, of all threads. Where others
 * had less than a fifth of it, or these waits are hardly any time, it is "46.157 s of 50.306 s
 * waited for it; vda read 4.3 MB, wrote 17.9 MB", if that is at least half of the path; else NULL.
 * The caller frees it.
 */
char *disk_line_text(const Timeline *timeline);

#endif
