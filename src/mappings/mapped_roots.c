/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mapped_roots.h"
#include "proc_status.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Finds the root folder of the process. Returns false if it cannot be determined. */
static bool find_root(const char *process, MappedRoot *root)
{
	_cleanup_free_ char *mounts_path = xasprintf("%s/ns/mnt", process);
	_cleanup_free_ char *root_path = xasprintf("%s/root/", process);
	struct stat mounts, folder;

	if (stat(mounts_path, &mounts) || stat(root_path, &folder))
		return false;
	root->mount_namespace = mounts.st_ino;
	root->device = folder.st_dev;
	root->inode = folder.st_ino;
	return true;
}

static bool same_root(const MappedRoot *a, const MappedRoot *b)
{
	return a->mount_namespace == b->mount_namespace && a->device == b->device &&
	       a->inode == b->inode;
}

void mapped_roots_init(MappedRoots *roots)
{
	*roots = (MappedRoots){.own = {.fd = -1}};
	find_root("/proc/self", &roots->own);
}

void mapped_roots_free(MappedRoots *roots)
{
	for (size_t i = 0; i < roots->list.count; i++)
		close(roots->list.items[i].fd);
	vec_free(&roots->list);
}

uint32_t mapped_roots_hold(MappedRoots *roots, uint32_t ns_tgid)
{
	MappedRoot root = {.fd = -1};
	char path[64];

	ns_tgid = proc_living_thread(ns_tgid);
	snprintf(path, sizeof(path), "/proc/%u", ns_tgid);
	if (!find_root(path, &root) || same_root(&root, &roots->own))
		return MAPPED_ROOT_OWN;
	for (size_t i = 0; i < roots->list.count; i++)
		if (same_root(&root, &roots->list.items[i]))
			return i;
	snprintf(path, sizeof(path), "/proc/%u/root/", ns_tgid);
	root.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root.fd < 0)
		return MAPPED_ROOT_OWN;
	*vec_push(&roots->list) = root;
	return roots->list.count - 1;
}

int mapped_roots_fd(const MappedRoots *roots, uint32_t root)
{
	return root == MAPPED_ROOT_OWN ? -1 : roots->list.items[root].fd;
}
