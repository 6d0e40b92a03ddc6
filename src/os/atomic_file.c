/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "atomic_file.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 100

/* Finds where path leads to. */
static int find_target(const char *path, const Invoker *invoker, char **ret_place)
{
	struct stat st, link;

	if (stat(path, &st) < 0) {
		if (errno != ENOENT || *path == '\0')
			return -errno;
		*ret_place = xstrdup(path);
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	if (invoker && invoker->change && st.st_uid != invoker->uid &&
	    (lstat(path, &link) < 0 || S_ISLNK(link.st_mode)))
		return -EPERM;
	*ret_place = realpath(path, NULL);
	return *ret_place ? 0 : -errno;
}

static int open_temp(AtomicFile *file)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		free(file->temp_path);
		file->temp_path = xasprintf("%s.tmp-%d-%d", file->path, (int)getpid(), i);
		file->fd = open(file->temp_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (file->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

int atomic_file_open(const char *path, const Invoker *invoker, AtomicFile *ret_file)
{
	AtomicFile file = {.fd = -1};
	int error = find_target(path, invoker, &file.path);

	if (!error)
		error = open_temp(&file);
	if (error) {
		free(file.temp_path);
		free(file.path);
		return error;
	}
	if (invoker && invoker->change && fchown(file.fd, invoker->uid, invoker->gid))
		log_warn("changing the owner of %s failed: %s", path, strerror(errno));
	*ret_file = file;
	return 0;
}

static int make_old(const char *path)
{
	_cleanup_free_ char *old = xasprintf("%s.old", path);
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	return rename(path, old) ? -errno : 0;
}

int atomic_file_commit(AtomicFile *file, bool keep_old)
{
	int error = keep_old ? make_old(file->path) : 0;

	if (error)
		return error;
	if (rename(file->temp_path, file->path))
		return -errno;
	free(file->temp_path);
	file->temp_path = NULL;
	return 0;
}

void atomic_file_discard(AtomicFile *file)
{
	closep(&file->fd);
	if (file->temp_path)
		unlink(file->temp_path);
	free(file->temp_path);
	free(file->path);
	*file = (AtomicFile){.fd = -1};
}
