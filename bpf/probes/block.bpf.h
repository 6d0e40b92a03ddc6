/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.bpf.h - what a bio is about (bio.bpf.c). Kernel pointers are passed as numbers (fd.bpf.c
 * says why).
 */
#ifndef WALLPROF_BLOCK_BPF_H
#define WALLPROF_BLOCK_BPF_H

#include "user_stack.bpf.h"

/* The whole disk that a bio (struct bio *) is for: major << 20 | minor. */
extern u32 block_disk_of(u64 bio);

/* Device, operation, sector and bytes of a bio. */
extern int block_describe_bio(struct rec_request *record, u64 bio);

/* The file that a bio that the current task submits is about; and its name is sent. */
extern int block_find_file(struct rec_request *record, u64 bio);

#endif
