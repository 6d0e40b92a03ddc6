/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_line.h - which other processes' requests a disk completed while a thread waited for its own.
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
 * (200.000 ms)", of the waits on the critical path or, without a path, of all threads. NULL: others
 * had less than a fifth of it, or these waits are hardly any time. The caller frees it.
 */
char *disk_line_text(const Timeline *timeline);

#endif
