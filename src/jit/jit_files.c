/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_files.h"
#include "proc_status.h"
#include "safe_open.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PAUSE_NS (25 * NSEC_PER_MSEC)

/* When a process began, CLOCK_REALTIME, to a clock tick; 0 if it is not known. */
static uint64_t start_of(uint64_t ticks)
{
	uint64_t tick_ns = NSEC_PER_SEC / sysconf(_SC_CLK_TCK);

	if (!ticks)
		return 0;
	return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + ticks * tick_ns;
}

/*
 * The file belongs to an earlier process with this id; a small difference may come from setting the
 * clock.
 */
static bool is_stale(const JitFile *file, const struct stat *st)
{
	return st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec + NSEC_PER_SEC <
	       file->start_ns;
}

/* Whether the process still lives, and not another one with its id; then its rights are current. */
static bool update_rights(JitFile *file)
{
	OpenRights rights;
	uint64_t ticks = proc_start_ticks(file->ns_tgid);

	if (!file->start_ticks || ticks != file->start_ticks ||
	    safe_open_rights_of(file->ns_tgid, &rights))
		return false;
	/* The id may have been reused in between. */
	if (proc_start_ticks(file->ns_tgid) != ticks)
		return false;
	file->rights = rights;
	return true;
}

/*
 * It must be the user's own, or root's that all may read: the path may be a link of the user to a
 * file of another one.
 */
static bool may_name(const JitFile *file, const struct stat *st, bool lives)
{
	if (!lives)
		return st->st_uid == file->rights.uid && st->st_nlink == 1;
	return st->st_uid == file->rights.uid || (st->st_uid == 0 && st->st_mode & S_IROTH);
}

/* The folder /tmp may be a link of the system. */
static int open_map(const JitFile *file, bool lives, struct stat *ret_stat)
{
	int fd = safe_open_in(file->root_fd, file->path, ret_stat);
	struct stat link;
	int found;

	if (fd < 0 || lives)
		return fd;
	found = fstatat(file->root_fd < 0 ? AT_FDCWD : file->root_fd,
			file->path + (file->root_fd >= 0), &link, AT_SYMLINK_NOFOLLOW);
	if (found || link.st_ino != ret_stat->st_ino || link.st_dev != ret_stat->st_dev)
		closep(&fd);
	return fd;
}

static void try_open(JitFile *file)
{
	bool lives;
	struct stat st;
	OwnRights own;

	if (file->fd >= 0)
		return;
	lives = update_rights(file);
	if (safe_open_enter(&file->rights, &own))
		return;
	file->fd = open_map(file, lives, &st);
	if (safe_open_leave(&own))
		closep(&file->fd);
	if (file->fd >= 0 && (!may_name(file, &st, lives) || is_stale(file, &st)))
		closep(&file->fd);
	file->at_end = !lives;
}

/* A file for which no descriptor can be kept is opened again when it is read. */
static void try_keep(JitFile *file)
{
	try_open(file);
	if (file->fd >= 0 && !safe_open_may_keep(file->fd)) {
		closep(&file->fd);
		file->at_end = true;
	}
}

/*
 * It is not another process with this id; values that are computed from two clocks may differ a
 * little.
 */
static bool same_process(const JitFile *known, const JitFile *file)
{
	uint64_t a = known->start_ns, b = file->start_ns;

	return !a || !b || MAX(a, b) - MIN(a, b) < NSEC_PER_SEC / 10;
}

void jit_files_note_process(JitFiles *files, uint32_t ns_tgid, int root_fd)
{
	uint32_t known = map_get(&files->perf_maps, ns_tgid), pid;
	JitFile file = {.kind = JIT_PERF_MAP, .ns_tgid = ns_tgid, .fd = -1, .root_fd = root_fd};

	file.start_ticks = proc_start_ticks(ns_tgid);
	file.start_ns = start_of(file.start_ticks);
	if (known != MAP_NONE && same_process(&files->list.items[known], &file)) {
		try_keep(&files->list.items[known]);
		return;
	}
	pid = proc_status_number(ns_tgid, "NSpid:");
	if (!pid || safe_open_rights_of(ns_tgid, &file.rights))
		return;
	file.path = xasprintf("/tmp/perf-%" PRIu32 ".map", pid);
	try_keep(&file);
	file.retry_interval_ns = FIRST_PAUSE_NS;
	file.next_try_ns = now_ns() + file.retry_interval_ns;
	files->next_try_ns = MIN(files->next_try_ns, file.next_try_ns);
	map_set(&files->perf_maps, ns_tgid, files->list.count);
	*vec_push(&files->list) = file;
}

void jit_files_retry(JitFiles *files, uint64_t ns)
{
	if (ns < files->next_try_ns)
		return;
	files->next_try_ns = UINT64_MAX;
	for (size_t i = 0; i < files->list.count; i++) {
		JitFile *file = &files->list.items[i];

		if (file->fd >= 0 || file->at_end)
			continue;
		if (ns >= file->next_try_ns) {
			try_keep(file);
			file->retry_interval_ns *= 2;
			file->next_try_ns = ns + file->retry_interval_ns;
		}
		files->next_try_ns = MIN(files->next_try_ns, file->next_try_ns);
	}
}

bool jit_files_is_dump(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned pid;
	int end = 0;

	return name && sscanf(name, "/jit-%u.dump%n", &pid, &end) == 1 && end &&
	       (!name[end] || !strcmp(name + end, " (deleted)"));
}

const JitFile *jit_files_by_id(const JitFiles *files, uint32_t id)
{
	for (size_t i = 0; id && i < files->list.count; i++)
		if (files->list.items[i].id == id)
			return &files->list.items[i];
	return NULL;
}

void jit_files_add_dump(JitFiles *files, uint32_t ns_tgid, const char *path, int root_fd,
			const OpenRights *rights, int fd)
{
	*vec_push(&files->list) = (JitFile){
		.kind = JIT_DUMP,
		.ns_tgid = ns_tgid,
		.fd = fd >= 0 && safe_open_may_keep(fd) ? fd : -1,
		.at_end = true,
		.path = xstrdup(path),
		.root_fd = root_fd,
		.rights = *rights,
	};
	if (fd >= 0 && !safe_open_may_keep(fd))
		close(fd);
}

bool jit_files_open_last(JitFile *file)
{
	try_open(file);
	return file->fd >= 0;
}

void jit_files_free(JitFiles *files)
{
	for (size_t i = 0; i < files->list.count; i++) {
		closep(&files->list.items[i].fd);
		free(files->list.items[i].path);
	}
	vec_free(&files->list);
	map_free(&files->perf_maps);
}
