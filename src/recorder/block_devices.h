/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_devices.h - records the machine's block devices: their names, and the devices or files
 * below them.
 */
#ifndef WALLPROF_BLOCK_DEVICES_H
#define WALLPROF_BLOCK_DEVICES_H

#include "loss.h"

/*
 * Sends a REC_DEVICE for each block device that exists now (/sys/dev/block; the kernel's
 * Documentation/ABI). A device that is removed meanwhile is omitted. Returns 0 or the sink's error.
 */
int block_devices_write(RecordSink sink, void *user);

#endif
