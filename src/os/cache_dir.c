/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache_dir.h"
#include "as_invoker.h"
#include "safe_open.h"
#include "util.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Holds the size of all files as a decimal number. A folder has tens of thousands of files, so they
 * are listed only if the number is missing or too large.
 */
#define SIZE_FILE ".size"

struct CacheDir {
	AsInvoker as;
	char *path;
	uint64_t size_max;
	uint64_t written; /* bytes since it was opened */
};

/* ---- the folder --------------------------------------------------------------------- */

/*
 * Creates the folders below the base, but not the base: containers and service managers set HOME to
 * a directory that does not exist for programs that must leave nothing behind.
 */
static bool make_folder(char *path, size_t base_length)
{
	struct stat st;

	path[base_length] = '\0';
	if (base_length && (stat(path, &st) || !S_ISDIR(st.st_mode)))
		return false;
	path[base_length] = '/';
	for (char *p = path + base_length + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	return !mkdir(path, 0700) || errno == EEXIST;
}

/* The XDG specification lets programs create $XDG_CACHE_HOME itself, but not its parents. */
static char *folder_path(const Invoker *invoker, const char *name, size_t *ret_base_length)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const char *home = invoker->change ? invoker->home : getenv("HOME");

	if (!invoker->change && cache && *cache == '/') {
		size_t length = strlen(cache);

		while (length > 1 && cache[length - 1] == '/')
			length--;
		*ret_base_length = (const char *)memrchr(cache, '/', length) - cache;
		return xasprintf("%.*s/wallprof/%s", (int)length, cache, name);
	}
	if (!home || *home != '/')
		return NULL;
	*ret_base_length = strlen(home);
	return xasprintf("%s/.cache/wallprof/%s", home, name);
}

static void free_folder(CacheDir *folder)
{
	as_invoker_free(&folder->as);
	free(folder->path);
	free(folder);
}

CacheDir *cache_dir_open(const Invoker *invoker, const char *name, uint64_t size_max)
{
	CacheDir *folder = xcalloc(1, sizeof(*folder));
	size_t base_length;
	bool usable;

	folder->size_max = size_max;
	folder->path = folder_path(invoker, name, &base_length);
	usable = folder->path && as_invoker_prepare(invoker, &folder->as) == 0 &&
		 as_invoker_enter(&folder->as) == 0;
	if (usable) {
		usable = make_folder(folder->path, base_length);
		if (as_invoker_leave(&folder->as))
			usable = false;
	}
	if (usable)
		return folder;
	log_verbose("caching %s failed: no folder for it%s%s", name, folder->path ? " at " : "",
		    folder->path ? folder->path : "");
	free_folder(folder);
	return NULL;
}

char *cache_dir_object_name(const uint8_t *build_id, size_t build_id_len, uint64_t device,
			    uint64_t inode, const char *suffix)
{
	char hex[2 * UINT8_MAX + 1] = "";

	for (size_t i = 0; i < MIN(build_id_len, (size_t)UINT8_MAX); i++)
		sprintf(hex + 2 * i, "%02x", build_id[i]);
	return xasprintf("%s-%016" PRIx64 ".%s", hex, hash_mix(device, inode), suffix);
}

/* ---- its files ------------------------------------------------------------------------ */

int cache_dir_read(const CacheDir *folder, const char *name, struct stat *ret_stat)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder->path, name);
	int fd = as_invoker_enter(&folder->as);

	if (fd < 0)
		return fd;
	fd = safe_open(path, RESOLVE_NO_MAGICLINKS, ret_stat);
	/*
	 * The last use decides what is kept. This is done as the user, because the link may lead
	 * anywhere.
	 */
	if (fd >= 0)
		futimens(fd, NULL);
	as_invoker_leave(&folder->as);
	return fd;
}

static int replace_file(const char *path, const struct iovec *parts, size_t count)
{
	_cleanup_free_ char *temporary = xasprintf("%s.XXXXXX", path);
	int fd = mkostemp(temporary, O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < count && r == 0; i++)
		r = write_all(fd, parts[i].iov_base, parts[i].iov_len);
	if (close(fd) && r == 0)
		r = -errno;
	if (r == 0 && rename(temporary, path))
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

int cache_dir_replace(CacheDir *folder, const char *name, const struct iovec *parts, size_t count)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder->path, name);
	int r = as_invoker_enter(&folder->as);

	if (r < 0)
		return r;
	r = replace_file(path, parts, count);
	as_invoker_leave(&folder->as);
	for (size_t i = 0; i < count && r == 0; i++)
		folder->written += parts[i].iov_len;
	return r;
}

/* ---- its bound -------------------------------------------------------------------------- */

typedef struct CacheFile {
	char *name;
	uint64_t size, mtime_ns;
} CacheFile;

typedef VEC(CacheFile) CacheFiles;

static int compare_ages(const void *a, const void *b)
{
	const CacheFile *x = a, *y = b;

	return x->mtime_ns < y->mtime_ns ? -1 : x->mtime_ns > y->mtime_ns;
}

static uint64_t list_files(int folder, DIR *entries, CacheFiles *files)
{
	struct dirent *entry;
	uint64_t total = 0;
	struct stat st;

	while ((entry = readdir(entries))) {
		if (!strcmp(entry->d_name, SIZE_FILE) ||
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		*vec_push(files) = (CacheFile){
			.name = xstrdup(entry->d_name),
			.size = st.st_size,
			.mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec,
		};
		total += st.st_size;
	}
	return total;
}

/*
 * If the files are too large, deletes the oldest until three quarters of size_max are left. Returns
 * the size of what is left.
 */
static uint64_t prune(const char *path, uint64_t size_max)
{
	_cleanup_closedir_ DIR *entries = opendir(path);
	CacheFiles files = {};
	uint64_t total;

	if (!entries)
		return 0;
	total = list_files(dirfd(entries), entries, &files);
	if (total > size_max) {
		qsort(files.items, files.count, sizeof(*files.items), compare_ages);
		for (size_t i = 0; i < files.count && total > size_max / 4 * 3; i++)
			if (!unlinkat(dirfd(entries), files.items[i].name, 0))
				total -= files.items[i].size;
	}
	for (size_t i = 0; i < files.count; i++)
		free(files.items[i].name);
	vec_free(&files);
	return total;
}

/* Returns false if the file has no number. */
static bool read_size(int fd, uint64_t *ret_size)
{
	char text[32] = "", *end;
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	*ret_size = strtoull(text, &end, 10);
	return length > 0 && *end == '\n';
}

/*
 * Adds what was written to the size of all files, and prunes if it is too large. A file that was
 * replaced counts twice, and of two runs that end at the same time one may not count, until the
 * files are listed.
 */
static void account_written(const CacheDir *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder->path, SIZE_FILE);
	_cleanup_close_ int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	uint64_t size;
	char text[32];

	if (!read_size(fd, &size) || size + folder->written > folder->size_max)
		size = prune(folder->path, folder->size_max);
	else
		size += folder->written;
	snprintf(text, sizeof(text), "%" PRIu64 "\n", size);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, text, strlen(text), 0) < 0)
		log_verbose("writing %s failed: %s", path, strerror(errno));
}

void cache_dir_close(CacheDir *folder)
{
	if (!folder)
		return;
	if (folder->written && !as_invoker_enter(&folder->as)) {
		account_written(folder);
		as_invoker_leave(&folder->as);
	}
	free_folder(folder);
}
