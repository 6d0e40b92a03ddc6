/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_devices.h - the machine's block devices: names, and what each lies on.
 */
#ifndef WALLPROF_BLOCK_DEVICES_H
#define WALLPROF_BLOCK_DEVICES_H

#include "loss.h"

/*
 * Sends a REC_DEVICE for each block device that there is now (/sys/dev/block; Documentation/ABI of
 * the kernel). A device that goes away meanwhile is left out. Returns 0 or the sink's error.
 */
int block_devices_write(RecordSink sink, void *user);

#endif
