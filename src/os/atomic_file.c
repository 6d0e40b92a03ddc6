/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "atomic_file.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 100

static int open_temp(AtomicFile *file)
{
	int error;

	for (int i = 0; i < ATTEMPTS; i++) {
		free(file->temp_name);
		file->temp_name = xasprintf("%s.tmp-%d-%d", file->place.name, (int)getpid(), i);
		file->fd = openat(file->place.folder, file->temp_name,
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (file->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	error = -errno;
	free(file->temp_name);
	file->temp_name = NULL; /* an existing file is another's */
	return error;
}

/* Opens the very file that was found, whatever has its name by now. */
static int open_special(AtomicFile *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->place.special);
	file->fd = open(path, O_WRONLY | O_CLOEXEC);
	return file->fd < 0 ? -errno : 0;
}

static int open_found(const char *path, const Invoker *invoker, bool in_place, AtomicFile *file)
{
	const char *slash = strrchr(path, '/');
	int error;

	if (file->place.special >= 0)
		return in_place ? open_special(file) : -ENOTSUP;
	error = open_temp(file);
	if (error)
		return error;
	file->temp_path =
		xasprintf("%.*s%s", slash ? (int)(slash - path + 1) : 0, path, file->temp_name);
	if (invoker && invoker->change && fchown(file->fd, invoker->uid, invoker->gid))
		log_warn("changing the owner of %s failed: %s", path, strerror(errno));
	return 0;
}

int atomic_file_open(const char *path, const Invoker *invoker, bool in_place, AtomicFile *ret_file)
{
	int error;

	*ret_file = ATOMIC_FILE_NONE;
	error = output_place_find(path, invoker, &ret_file->place);
	if (!error)
		error = open_found(path, invoker, in_place, ret_file);
	if (error)
		atomic_file_discard(ret_file);
	return error;
}

const char *atomic_file_error_text(int error)
{
	switch (error) {
	case -ENOTSUP:
		return "it is not a regular file";
	case -ENOLINK:
		return "its path has a link or a pipe that another user can have made";
	default:
		return error_text(error);
	}
}

static int make_old(const AtomicFile *file)
{
	const OutputPlace *place = &file->place;
	_cleanup_free_ char *old = xasprintf("%s.old", place->name);
	struct stat st;

	if (fstatat(place->folder, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	return renameat(place->folder, place->name, place->folder, old) ? -errno : 0;
}

int atomic_file_commit(AtomicFile *file, bool keep_old)
{
	const OutputPlace *place = &file->place;
	int error = keep_old ? make_old(file) : 0;

	if (error)
		return error;
	if (renameat(place->folder, file->temp_name, place->folder, place->name))
		return -errno;
	free(file->temp_name);
	free(file->temp_path);
	file->temp_name = file->temp_path = NULL;
	return 0;
}

void atomic_file_remove(const AtomicFile *file)
{
	unlinkat(file->place.folder, file->place.name, 0);
}

void atomic_file_discard(AtomicFile *file)
{
	closep(&file->fd);
	if (file->temp_name)
		unlinkat(file->place.folder, file->temp_name, 0);
	free(file->temp_name);
	free(file->temp_path);
	output_place_free(&file->place);
	*file = ATOMIC_FILE_NONE;
}
