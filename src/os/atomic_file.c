/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "atomic_file.h"
#include "util.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ATTEMPTS  100
#define LINKS_MAX 40 /* as in the kernel */

typedef struct Walk {
	const Invoker *invoker;
	int folder;	/* O_PATH */
	struct stat in; /* of the folder */
	char *rest;	/* of the path, below the folder */
	unsigned links; /* followed so far */
	bool by_link;	/* the last component is what a link leads to */
	OutputPlace *place;
} Walk;

/* ---- trust ------------------------------------------------------------------------------- */

static bool is_trusted(const Walk *walk, uid_t user)
{
	return user == 0 || (walk->invoker && walk->invoker->change && user == walk->invoker->uid);
}

/* Access control lists show in the bits of the group. */
static bool others_may_write(const Walk *walk)
{
	return !is_trusted(walk, walk->in.st_uid) || walk->in.st_mode & S_IWOTH ||
	       (walk->in.st_mode & S_IWGRP && walk->in.st_gid != 0);
}

/*
 * Returns whether another user can have put this file into the folder. The kernel protects the
 * files of those who are not root by its own rules.
 */
static bool is_of_others(const Walk *walk, const struct stat *st)
{
	if (geteuid() != 0 || !others_may_write(walk))
		return false;
	return !(walk->in.st_mode & S_ISVTX && is_trusted(walk, walk->in.st_uid) &&
		 is_trusted(walk, st->st_uid));
}

/* ---- one step --------------------------------------------------------------------------- */

/* Takes ownership of fd, a negative errno or a folder. */
static int enter(Walk *walk, int fd)
{
	if (fd < 0)
		return fd;
	closep(&walk->folder);
	walk->folder = fd;
	return fstat(fd, &walk->in) ? -errno : 0;
}

static int open_path(int folder, const char *name, int flags)
{
	int fd = openat(folder, name, O_PATH | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

/* Replaces the first component, which ended before `rest`, by what the link says. */
static int follow_text(Walk *walk, int link, const char *rest)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(link, "", text, sizeof(text) - 1);
	char *path;

	if (length <= 0)
		return length < 0 ? -errno : -ENOENT;
	text[length] = '\0';
	path = *rest ? xasprintf("%s/%s", text, rest) : xstrdup(text);
	free(walk->rest);
	walk->rest = path;
	return *text == '/' ? enter(walk, open_path(AT_FDCWD, "/", O_DIRECTORY)) : 0;
}

static bool is_of_proc(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* Takes ownership of fd, what the path leads to. */
static int end_at_special(Walk *walk, int fd)
{
	walk->place->special = fd;
	return 0;
}

/*
 * Links of /proc lead to open files, whatever their text says: into other namespaces, or to a pipe
 * that has no path. Only a regular file needs a path.
 */
static int follow_proc(Walk *walk, int link, const char *name, const char *rest)
{
	struct stat st;
	int fd = open_path(walk->folder, name, 0);

	if (fd < 0 || *rest) {
		memmove(walk->rest, rest, strlen(rest) + 1);
		return enter(walk, fd);
	}
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return end_at_special(walk, fd);
	close(fd);
	return follow_text(walk, link, rest);
}

static int follow(Walk *walk, int link, const struct stat *st, const char *name, const char *rest)
{
	if (is_of_others(walk, st))
		return -ENOLINK;
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	walk->by_link |= !*rest;
	return is_of_proc(link) ? follow_proc(walk, link, name, rest)
				: follow_text(walk, link, rest);
}

static int end_at(Walk *walk, int fd, const struct stat *st, const char *name)
{
	const Invoker *invoker = walk->invoker;

	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (!S_ISREG(st->st_mode)) {
		if (is_of_others(walk, st) && !is_trusted(walk, st->st_uid))
			return -ENOLINK;
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : end_at_special(walk, fd);
	}
	if (invoker && invoker->change && st->st_uid != invoker->uid && walk->by_link)
		return -EPERM;
	walk->place->name = xstrdup(name);
	return 0;
}

/* Enters a folder. Returns -ENOTDIR if it is a file or a link, which must be looked at first. */
static int step_into(Walk *walk, const char *name)
{
	return enter(walk, open_path(walk->folder, name, O_DIRECTORY | O_NOFOLLOW));
}

/* Walks one component, `name`, after which `rest` remains. */
static int step(Walk *walk, const char *name, const char *rest)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int error = *rest ? step_into(walk, name) : -ENOTDIR;

	if (error != -ENOTDIR) {
		memmove(walk->rest, rest, strlen(rest) + 1);
		return error;
	}
	fd = open_path(walk->folder, name, O_NOFOLLOW);
	if (fd == -ENOENT && !*rest) {
		walk->place->name = xstrdup(name);
		return 0;
	}
	if (fd < 0 || fstat(fd, &st))
		return fd < 0 ? fd : -errno;
	if (S_ISLNK(st.st_mode))
		return follow(walk, fd, &st, name, rest);
	return *rest ? -ENOTDIR : end_at(walk, fd, &st, name);
}

static int next_step(Walk *walk)
{
	const char *begin = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(begin, "/");
	const char *rest = begin + length + strspn(begin + length, "/");
	_cleanup_free_ char *name = xstrndup(begin, length);

	if (length == 0)
		return -EISDIR;
	if (!*rest && begin[length] == '/')
		rest = "."; /* "folder/" is the folder */
	return step(walk, name, rest);
}

/* ---- the whole path ----------------------------------------------------------------------- */

static int find_place(const char *path, const Invoker *invoker, OutputPlace *ret_place)
{
	Walk walk = {.invoker = invoker, .folder = -1, .place = ret_place, .rest = xstrdup(path)};
	int error = *path ? 0 : -ENOENT;

	*ret_place = OUTPUT_PLACE_NONE;
	if (!error)
		error = enter(&walk, open_path(AT_FDCWD, *path == '/' ? "/" : ".", O_DIRECTORY));
	while (!error && !ret_place->name && ret_place->special < 0)
		error = next_step(&walk);
	ret_place->folder = walk.folder;
	free(walk.rest);
	return error;
}

static void free_place(OutputPlace *place)
{
	closep(&place->folder);
	closep(&place->special);
	free(place->name);
	*place = OUTPUT_PLACE_NONE;
}

/* ---- what killed runs left -------------------------------------------------------------- */

/* A run that lives has its file locked, also one in another PID namespace. */
static bool is_locked(int folder, const char *name)
{
	_cleanup_close_ int fd =
		openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 || flock(fd, LOCK_EX | LOCK_NB);
}

/* Returns whether it is "NAME.tmp-PID-NUMBER", and no process has that ID. */
static bool is_of_ended_run(const char *entry, const char *name)
{
	size_t length = strlen(name);
	int pid, number, end = 0;

	if (strncmp(entry, name, length) ||
	    sscanf(entry + length, ".tmp-%d-%d%n", &pid, &number, &end) != 2 ||
	    entry[length + end] || pid <= 0)
		return false;
	return kill(pid, 0) && errno == ESRCH;
}

static void remove_left(int folder, const char *entry, const char *path, const Invoker *invoker)
{
	struct stat st;

	if (fstatat(folder, entry, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (st.st_uid != geteuid() && !(invoker && invoker->change && st.st_uid == invoker->uid))
		return;
	if (!is_locked(folder, entry) && !unlinkat(folder, entry, 0))
		log_info("removed %s beside %s, which a killed run left (%.1f MB)", entry, path,
			 st.st_size / 1e6);
}

/* It is unfinished: a capture has another name as soon as it has events. */
static void remove_all_left(const AtomicFile *file, const char *path, const Invoker *invoker)
{
	int fd = openat(file->place.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!folder) {
		closep(&fd);
		return;
	}
	while ((entry = readdir(folder)))
		if (is_of_ended_run(entry->d_name, file->place.name))
			remove_left(file->place.folder, entry->d_name, path, invoker);
	closedir(folder);
}

/* ---- the file --------------------------------------------------------------------------- */

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
	remove_all_left(file, path, invoker);
	error = open_temp(file);
	if (error)
		return error;
	flock(file->fd, LOCK_EX | LOCK_NB); /* for remove_all_left() of other runs */
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
	error = find_place(path, invoker, &ret_file->place);
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

void atomic_file_remove_path(const char *path, const Invoker *invoker)
{
	OutputPlace place;

	if (!find_place(path, invoker, &place) && place.name)
		unlinkat(place.folder, place.name, 0);
	free_place(&place);
}

void atomic_file_discard(AtomicFile *file)
{
	closep(&file->fd);
	if (file->temp_name)
		unlinkat(file->place.folder, file->temp_name, 0);
	free(file->temp_name);
	free(file->temp_path);
	free_place(&file->place);
	*file = ATOMIC_FILE_NONE;
}
