/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode.bpf.h - sends the path of a file, once.
 */
#ifndef WALLPROF_INODE_BPF_H
#define WALLPROF_INODE_BPF_H

#include "fd.bpf.h"
#include "user_stack.bpf.h"

/*
 * Sends REC_INODE of an open file (struct file *), unless it was sent lately. `flags` is
 * INODE_KERNEL or 0; what was sent with INODE_KERNEL is sent again without it. Returns 0, or -1 if
 * the path could not be sent.
 */
extern int inode_emit_file_as(u64 file, u32 flags);

/* The same for an inode (struct inode *), up to the root of its file system; -1 also if it has no
 * name. */
extern int inode_emit(u64 inode, u32 flags);

/* Sends the name of a file that a target uses. */
static __always_inline void inode_emit_file(u64 file)
{
	inode_emit_file_as(file, 0);
}

/*
 * The slot that holds the mark of what was sent; see name_sent. What else is sent of an object has
 * its mark in the slot beside that of the object's name, on the same cache line.
 */
static __always_inline u64 *sent_slot(u64 mark)
{
	return &name_sent[(mark >> 20) & (NAME_SENT_SLOTS - 1)];
}

static __always_inline u64 *sent_beside(u64 mark)
{
	return &name_sent[((mark >> 20) & (NAME_SENT_SLOTS - 1)) ^ 1];
}

#endif
