/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cgroup.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINE_SIZE 4096
#define CGROUPS	  "/sys/fs/cgroup"

/* Opens a folder by its path, or below the usual mount points of cgroups. */
static int open_folder(const char *path)
{
	static const char *const places[] = {"", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/",
					     "/sys/fs/cgroup/systemd/"};
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		_cleanup_free_ char *folder = xasprintf("%s%s", places[i], path);
		int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && !fstatfs(fd, &fs) &&
		    (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

/* Returns whether the word is in a comma-separated list. */
static bool has_word(const char *list, const char *word, size_t length)
{
	while (*list) {
		size_t size = strcspn(list, ",\n");

		if (size == length && !strncmp(list, word, length))
			return true;
		list += size + (list[size] != '\0');
	}
	return false;
}

/*
 * Reads /proc/self/cgroup: "4:cpu,cpuacct:/path". Returns the number of the controller's line, or
 * 0.
 */
static uint32_t hierarchy_of(const char *controllers)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/cgroup", "re");
	char line[LINE_SIZE];

	while (file && fgets(line, sizeof(line), file)) {
		unsigned int number;
		int at = 0;

		if (sscanf(line, "%u:%n", &number, &at) != 1 || !at || !number)
			continue;
		line[at + strcspn(line + at, ":")] = '\0';
		/*
		 * The mount also has other options: the first of the line's controllers is enough.
		 */
		if (line[at] && has_word(controllers, line + at, strcspn(line + at, ",")))
			return number;
	}
	return 0;
}

/*
 * In version 1 each hierarchy is a mount, and its options, the last field in mountinfo (see
 * proc_pid_mountinfo(5)), name its controllers.
 */
static uint32_t mounted_hierarchy(dev_t device)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[LINE_SIZE];
	uint32_t found = 0;

	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *options = strrchr(line, ' ');
		unsigned int first, second;

		if (options && sscanf(line, "%*d %*d %u:%u", &first, &second) == 2 &&
		    first == major(device) && second == minor(device))
			found = hierarchy_of(options + 1);
	}
	return found;
}

int cgroup_find(const char *path, Cgroup *ret_cgroup)
{
	_cleanup_close_ int fd = open_folder(path);
	struct stat status;
	struct statfs fs;

	if (fd < 0) {
		log_error(
			"no such cgroup: %s; give a folder below /sys/fs/cgroup, or the path after "
			"the last colon in /proc/PID/cgroup",
			path);
		return fd;
	}
	if (fstat(fd, &status) || fstatfs(fd, &fs))
		return -errno;
	/* The id of a cgroup is its folder's inode where inodes have 64 bits (kernfs_id_ino()). */
	*ret_cgroup = (Cgroup){.id = status.st_ino};
	if (fs.f_type == CGROUP2_SUPER_MAGIC)
		return 0;
	ret_cgroup->hierarchy = mounted_hierarchy(status.st_dev);
	if (ret_cgroup->hierarchy)
		return 0;
	log_error("finding the hierarchy of cgroup %s failed: it is not in /proc/self/mountinfo "
		  "and /proc/self/cgroup",
		  path);
	return -ENODEV;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* "max" is no number, and no limit. */
static uint64_t read_number(const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char text[64];
	uint64_t number;

	if (!file || !fgets(text, sizeof(text), file))
		return UINT64_MAX;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, &number) ? UINT64_MAX : number;
}

/* Returns the smallest limit of the cgroup and those above it. */
static uint64_t limit_of_cgroup(const char *root, const char *file, char *cgroup)
{
	uint64_t limit = UINT64_MAX;
	char *slash;

	do {
		_cleanup_free_ char *path = xasprintf("%s%s/%s", root, cgroup, file);
		uint64_t here = read_number(path);

		limit = MIN(limit, here);
		slash = strrchr(cgroup, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return limit;
}

/* A line of /proc/self/cgroup is "0::/path" (version 2), or "4:memory:/path". */
static uint64_t limit_of_line(char *line)
{
	char *controllers = strchr(line, ':');
	char *cgroup = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!cgroup)
		return UINT64_MAX;
	*cgroup++ = '\0';
	cgroup[strcspn(cgroup, "\n")] = '\0';
	if (!strcmp(controllers + 1, "memory"))
		return limit_of_cgroup(CGROUPS "/memory", "memory.limit_in_bytes", cgroup);
	return controllers[1] ? UINT64_MAX : limit_of_cgroup(CGROUPS, "memory.max", cgroup);
}

uint64_t cgroup_memory_limit(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t limit = UINT64_MAX;
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		uint64_t of_line = limit_of_line(line);

		limit = MIN(limit, of_line);
	}
	free(line);
	return limit;
}
