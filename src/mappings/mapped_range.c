/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mapped_range.h"
#include "proc_status.h"
#include "safe_open.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static int open_by_method(const MappedRange *range, enum mapped_method way, struct stat *ret_stat)
{
	char path[64];
	pid_t tid;

	if (way == MAPPED_BY_PATH)
		return safe_open_in(range->root_fd, range->path, ret_stat);
	tid = proc_living_thread(range->ns_tgid);
	if (way == MAPPED_BY_EXE)
		snprintf(path, sizeof(path), "/proc/%d/exe", tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, tid,
			 range->start, range->end);
	return safe_open(path, 0, ret_stat);
}

/*
 * The error of the link counts, unless the link was refused: the path may name anything by then.
 * Descriptors may be missing for any of them.
 */
static int reason(const int errors[MAPPED_METHODS])
{
	if (errors[MAPPED_BY_PATH] == -EMFILE)
		return -EMFILE;
	if (errors[MAPPED_BY_LINK] != -EPERM)
		return errors[MAPPED_BY_LINK];
	return errors[MAPPED_BY_PATH] == -EACCES ? -EACCES : -EPERM;
}

int mapped_range_open(const MappedRange *range, MappedFits fits, void *user, struct stat *ret_stat)
{
	int errors[MAPPED_METHODS];

	for (enum mapped_method way = 0; way < MAPPED_METHODS; way++) {
		int fd = open_by_method(range, way, ret_stat);

		errors[way] = fd < 0 ? fd : fits(user, way, fd, ret_stat);
		if (errors[way] == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return reason(errors);
}
