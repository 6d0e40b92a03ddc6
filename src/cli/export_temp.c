/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export_temp.h"
#include "cgroup.h"
#include "spill.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/*
 * The memory of the arrays, also where there is more: it is wanted for files by then. All else
 * takes less than 150 MB, however long the recording is.
 */
#define ARRAYS_MEMORY_MAX (320u << 20)

/*
 * The arrays, and the copies of those that are sorted or grow, take about so many bytes for each
 * 100 bytes of records where a program does nothing but switch between threads. Other records, such
 * as stacks, take less.
 */
#define ARRAYS_PERCENT 150

/* Returns the folder that the path's file is in. The caller frees it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return xasprintf("%.*s", (int)MAX(slash - path, 1), path);
}

static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/*
 * Makes an empty file without a name in the folder, so that it is gone when it is closed, however
 * the program ends. Returns a descriptor or a negative errno.
 */
static int open_unnamed(const char *folder)
{
	_cleanup_free_ char *name = NULL;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

	if (fd >= 0)
		return fd;
	/* EISDIR: a kernel, EOPNOTSUPP: a file system without O_TMPFILE. */
	if (errno != EISDIR && errno != EOPNOTSUPP)
		return -errno;
	name = xasprintf("%s/.wallprof-XXXXXX", folder);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(name);
	return fd;
}

/* Returns how much memory the arrays may have: at most half of what this process may have. */
static uint64_t arrays_memory(void)
{
	uint64_t limit = cgroup_memory_limit();
	struct rlimit now;

	if (!getrlimit(RLIMIT_DATA, &now))
		limit = MIN(limit, (uint64_t)now.rlim_cur);
	return MIN(limit / 2, (uint64_t)ARRAYS_MEMORY_MAX);
}

/* Returns how large the arrays may get. */
static uint64_t arrays_need(const CaptureReader *reader)
{
	return capture_reader_content(reader) / 100 * ARRAYS_PERCENT;
}

/* Says how much room the file will need, if it will be used. */
static void report_need(const CaptureReader *reader, const char *folder, const char *remedy)
{
	uint64_t need = arrays_need(reader), available;
	struct statvfs fs;

	if (need <= arrays_memory() || statvfs(folder, &fs))
		return;
	need -= arrays_memory();
	available = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (need > available)
		log_warn("temporary files may need %.1f GB in %s, where %.1f GB are available%s",
			 need / 1e9, folder, available / 1e9, remedy);
	else
		log_info("temporary files may need %.1f GB in %s, where %.1f GB are available",
			 need / 1e9, folder, available / 1e9);
}

/* Without the file all arrays are in memory. That matters only if they are large. */
static void report_failure(const CaptureReader *reader, const char *folder, int error,
			   const char *remedy)
{
	const char *text = error_text(error);

	if (arrays_need(reader) <= arrays_memory()) {
		log_verbose("making a temporary file in %s failed: %s; it is not needed", folder,
			    text);
		return;
	}
	/* A limit of the process has a remedy of its own. */
	log_warn("up to %.1f GB will be in memory, because making a temporary file in %s failed: "
		 "%s%s",
		 arrays_need(reader) / 1e9, folder, text, strchr(text, ';') ? "" : remedy);
}

void export_temp_begin(const char *capture_path, const char *output_path,
		       const CaptureReader *reader)
{
	bool beside_capture = !output_path || is_special(output_path);
	_cleanup_free_ char *folder = folder_of(beside_capture ? capture_path : output_path);
	const char *remedy = output_path ? "; choose another place with -o"
					 : "; copy the capture to another place";
	int fd = open_unnamed(folder);
	int error = fd < 0 ? fd : spill_begin(fd, folder, remedy, arrays_memory());

	if (error)
		report_failure(reader, folder, error, remedy);
	else
		report_need(reader, folder, remedy);
}

void export_temp_end(void)
{
	if (spill_peak() > 0)
		log_verbose("temporary files took %.1f GB at most", spill_peak() / 1e9);
	spill_end();
}
