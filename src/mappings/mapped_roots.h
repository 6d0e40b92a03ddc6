/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped_roots.h - the root folders of recorded processes, other than wallprof's own: those of
 * containers, or by chroot(2). They stay reachable after the processes have ended.
 */
#ifndef WALLPROF_MAPPED_ROOTS_H
#define WALLPROF_MAPPED_ROOTS_H

#include "util.h"
#include <sys/types.h>

#define MAPPED_ROOT_OWN UINT32_MAX /* wallprof's own root */

typedef struct MappedRoot {
	uint64_t mount_namespace; /* inode */
	dev_t device;
	ino_t inode;
	int fd; /* O_PATH */
} MappedRoot;

typedef struct MappedRoots {
	VEC(MappedRoot) list;
	MappedRoot own;
} MappedRoots;

void mapped_roots_init(MappedRoots *roots);
void mapped_roots_free(MappedRoots *roots);

/*
 * Returns the number of the process's root, which is opened if it is new; MAPPED_ROOT_OWN if it
 * cannot be determined.
 */
uint32_t mapped_roots_hold(MappedRoots *roots, uint32_t ns_tgid);

/* Returns its descriptor, owned by roots; -1: wallprof's own root (safe_open_in()). */
int mapped_roots_fd(const MappedRoots *roots, uint32_t root);

#endif
