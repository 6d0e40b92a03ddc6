/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inodes.h - what files are called that faults and requests are about (REC_INODE).
 */
#ifndef WALLPROF_INODES_H
#define WALLPROF_INODES_H

#include "records.h"
#include "util.h"

#define INODE_NONE UINT32_MAX

typedef struct Inode {
	uint32_t device; /* major << 20 | minor */
	uint32_t generation;
	uint64_t number;
	char *path;    /* "/usr/lib/libc.so.6"; "sda1:/lib/libc.so.6"; "inode 123 of device 8:1" */
	uint8_t flags; /* enum inode_flags: what is known of the path */
} Inode;

/* All zeros is an empty one. */
typedef struct Inodes {
	VEC(Inode) list;
	Map index;
} Inodes;

void inodes_free(Inodes *inodes);

/* Takes what a file is called. The last word counts, unless it says less than an earlier one. */
void inodes_add(Inodes *inodes, const struct rec_inode *record);

/* The place in the list of a file, made if nothing was said of it yet; INODE_NONE for inode 0. */
uint32_t inodes_reference(Inodes *inodes, uint32_t device, uint64_t number, uint32_t generation);

/* Of a file whose path begins at the root of its file system (INODE_MOUNT): that root is there. */
void inode_mounted(Inode *inode, const char *path);
/* Likewise: nobody knows where that root is. device: what the file system is on. */
void inode_not_mounted(Inode *inode, const char *device);

#endif
