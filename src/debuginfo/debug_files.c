/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debug_files.h"
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUG_ROOT "/usr/lib/debug"

/*
 * The sections of a program decide which path is opened here. The worst that this can open is
 * another ELF file, for a child that can only read it.
 */
static int open_elf(const DebugFiles *files, const char *path, bool by_dwarf, TriedFile *ret_tried)
{
	OpenBeside open = by_dwarf ? files->open_named : files->open;
	int fd = open(files->open_user, files->file, path);
	char magic[SELFMAG];
	struct stat st;

	*ret_tried = (TriedFile){.by_dwarf = by_dwarf};
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || pread(fd, magic, SELFMAG, 0) != SELFMAG ||
	    memcmp(magic, ELFMAG, SELFMAG)) {
		close(fd);
		return -ENOEXEC;
	}
	ret_tried->size = st.st_size;
	ret_tried->mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	return fd;
}

/* Takes ownership of path. */
static int try_path_as(DebugFiles *files, char *path, bool by_dwarf)
{
	TriedFile tried;
	int fd = open_elf(files, path, by_dwarf, &tried);

	tried.path = path;
	*vec_push(&files->tried) = tried;
	return fd;
}

static int try_path(DebugFiles *files, char *path)
{
	return try_path_as(files, path, /* by_dwarf= */ false);
}

static int remember(DebugFiles *files, int fd)
{
	if (fd >= 0) {
		free(files->found);
		files->found = xstrdup(files->tried.items[files->tried.count - 1].path);
	}
	return fd;
}

static char *build_id_path(const uint8_t *build_id, size_t length)
{
	char hex[2 * UINT8_MAX + 1];

	for (size_t i = 0; i < length; i++)
		sprintf(hex + 2 * i, "%02x", build_id[i]);
	return xasprintf(DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

int debug_files_by_build_id(DebugFiles *files)
{
	if (files->file->build_id_len < 2)
		return -ENOENT;
	return remember(files, try_path(files, build_id_path(files->file->build_id,
							     files->file->build_id_len)));
}

/* Returns the length of the folder's name, without its last slash. */
static int folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash - path : 0;
}

/* Each of these returns the path of that candidate, allocated, or NULL if there is none. */

static char *link_path(const DebugFiles *files, const char *name, unsigned candidate)
{
	const char *object = files->file->path;
	int length = folder_length(object);

	if (strchr(name, '/') || !strcmp(name, "..") || *object != '/')
		return NULL;
	switch (candidate) {
	case 0:
		return xasprintf("%.*s/%s", length, object, name);
	case 1:
		return xasprintf("%.*s/.debug/%s", length, object, name);
	case 2:
		return xasprintf(DEBUG_ROOT "%.*s/%s", length, object, name);
	default:
		return NULL;
	}
}

static char *dwz_path(const DebugFiles *files, const Companion *companion)
{
	const char *from = files->found ? files->found : files->file->path;
	const char *name = companion->name;

	switch (companion->candidate) {
	case 0:
		return *name == '/' ? xstrdup(name)
				    : xasprintf("%.*s/%s", folder_length(from), from, name);
	case 1:
		return companion->build_id_len >= 2
			       ? build_id_path(companion->build_id, companion->build_id_len)
			       : NULL;
	default:
		return NULL;
	}
}

/* The path if it is absolute, and then what of it can be beside the object. */
static char *dwo_path(const DebugFiles *files, const Companion *companion)
{
	const char *object = files->file->path, *name = companion->name;
	const char *tail = name + companion->tail, *slash = strrchr(tail, '/');
	int length = folder_length(object);

	switch (companion->candidate) {
	case 0:
		return *name == '/' ? xstrdup(name) : NULL;
	case 1:
		return *tail && *tail != '/' ? xasprintf("%.*s/%s", length, object, tail) : NULL;
	case 2:
		return slash && slash[1] ? xasprintf("%.*s%s", length, object, slash) : NULL;
	default:
		return NULL;
	}
}

/* GDB and LLVM look for it beside the object, and GDB also below the folder of debug files. */
static char *dwp_path(const DebugFiles *files, const Companion *companion)
{
	switch (companion->candidate) {
	case 0:
		return xasprintf("%s.dwp", files->file->path);
	case 1:
		return files->found ? xasprintf("%s.dwp", files->found) : NULL;
	case 2:
		return xasprintf(DEBUG_ROOT "%s.dwp", files->file->path);
	default:
		return NULL;
	}
}

/* Takes ownership of path, which may be NULL. */
static int try_split(DebugFiles *files, char *path)
{
	if (path && files->open_named && *files->file->path == '/')
		return try_path_as(files, path, /* by_dwarf= */ true);
	free(path);
	return -ENOENT;
}

static int find_dwp(DebugFiles *files, const Companion *companion)
{
	int fd = try_split(files, dwp_path(files, companion));

	if (fd >= 0 && !files->package)
		files->package = xstrdup(files->tried.items[files->tried.count - 1].path);
	return fd;
}

int debug_files_by_link(DebugFiles *files, const char *name, unsigned candidate)
{
	char *path = link_path(files, name, candidate);

	return path ? remember(files, try_path(files, path)) : -ENOENT;
}

int debug_files_companion(DebugFiles *files, const Companion *companion)
{
	char *path;

	switch (companion->kind) {
	case COMPANION_DEBUG:
		return debug_files_by_link(files, companion->name, companion->candidate);
	case COMPANION_DWZ:
		path = dwz_path(files, companion);
		return path ? try_path(files, path) : -ENOENT;
	case COMPANION_DWO:
		return try_split(files, dwo_path(files, companion));
	case COMPANION_DWP:
		return find_dwp(files, companion);
	default:
		return -EINVAL;
	}
}

bool debug_files_unchanged(const DebugFiles *files, const TriedFile *tried)
{
	TriedFile now;
	int fd;

	if (tried->by_dwarf && !files->open_named)
		return false;
	fd = open_elf(files, tried->path, tried->by_dwarf, &now);
	closep(&fd);
	return now.size == tried->size && now.mtime_ns == tried->mtime_ns;
}

void debug_files_free(DebugFiles *files)
{
	for (size_t i = 0; i < files->tried.count; i++)
		free(files->tried.items[i].path);
	vec_free(&files->tried);
	free(files->found);
	free(files->package);
}
