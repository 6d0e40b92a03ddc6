/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safe_open.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without /proc the path is opened a second time; it must still name the same file. */
static int reopen(int folder, const char *path, uint64_t resolve, const struct stat *wanted)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC, .resolve = resolve};
	_cleanup_close_ int fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
	struct stat st;
	int found;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (st.st_dev != wanted->st_dev || st.st_ino != wanted->st_ino)
		return -EAGAIN;
	found = fd;
	fd = -1;
	return found;
}

/*
 * Opens first only a reference (O_PATH), whose type can be checked; then that very file, whatever
 * the path names by then.
 */
static int open_at(int folder, const char *path, uint64_t resolve, struct stat *ret_stat)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
	_cleanup_close_ int path_fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
	char fd_path[64];
	int fd;

	if (path_fd < 0 || fstat(path_fd, ret_stat))
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -EINVAL;
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", path_fd);
	/*
	 * O_NONBLOCK: do not wait up to 45 s for a process that has a lease on the file, see
	 * fcntl(2).
	 */
	fd = open(fd_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? reopen(folder, path, resolve, ret_stat) : -errno;
}

int safe_open(const char *path, uint64_t resolve, struct stat *ret_stat)
{
	return open_at(AT_FDCWD, path, resolve, ret_stat);
}

int safe_open_in(int root_fd, const char *path, struct stat *ret_stat)
{
	return root_fd < 0
		       ? safe_open(path, 0, ret_stat)
		       : open_at(root_fd, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, ret_stat);
}
