/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.bpf.h - the device and the file of a bio (bio.bpf.c). Kernel pointers are passed as numbers
 * (fd.bpf.c says why).
 */
#ifndef WALLPROF_BLOCK_BPF_H
#define WALLPROF_BLOCK_BPF_H

#include "user_stack.bpf.h"

/* The whole disk that a bio (struct bio *) is for: major << 20 | minor. */
extern u32 block_disk_of(u64 bio);

/* Stores the device, operation, sector and bytes of a bio. */
extern int block_describe_bio(struct rec_request *record, u64 bio);

/* Stores the file of a bio that the current task submits, and sends the file's path. */
extern int block_find_file(struct rec_request *record, u64 bio);

#endif
