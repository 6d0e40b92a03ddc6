/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cgroup.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

/* ---- CPU time ----------------------------------------------------------------------------- */

/* Returns the number behind a word at the beginning of a line of a file; UINT64_MAX: none. */
static uint64_t read_field(const char *path, const char *word)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t length = strlen(word);
	char line[LINE_SIZE];
	uint64_t number;

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, word, length) && line[length] == ' ' &&
		    !parse_u64(line + length + 1, &number))
			return number;
	}
	return UINT64_MAX;
}

/* Returns how long the cgroup has been throttled; UINT64_MAX: it is gone, or does not say. */
static uint64_t throttled_ns(const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/cpu.stat", folder);
	uint64_t us = read_field(path, "throttled_usec");

	return us == UINT64_MAX ? read_field(path, "throttled_time") : us * 1000;
}

/* Returns false if it has no limit, as the root cgroup. */
static bool read_cpu_limit(const char *folder, CgroupCpuLimit *limit)
{
	_cleanup_free_ char *max = xasprintf("%s/cpu.max", folder);
	_cleanup_free_ char *quota = xasprintf("%s/cpu.cfs_quota_us", folder);
	_cleanup_free_ char *period = xasprintf("%s/cpu.cfs_period_us", folder);
	_cleanup_fclose_ FILE *file = fopen(max, "re");

	if (file)
		return fscanf(file, "%" SCNu64 " %" SCNu64, &limit->quota_us, &limit->period_us) ==
			       2 &&
		       limit->period_us > 0;
	/* "-1" is no limit. */
	limit->quota_us = read_number(quota);
	limit->period_us = read_number(period);
	return limit->quota_us != UINT64_MAX && limit->period_us != UINT64_MAX &&
	       limit->period_us > 0;
}

/* Looks at a cgroup and those above it, up to the first one that was looked at before. */
static void add_cpu_limits(CgroupCpuLimits *limits, const char *hierarchy, char *path)
{
	for (;;) {
		CgroupCpuLimit limit = {};
		_cleanup_free_ char *folder = xasprintf("%s%s", hierarchy, path);
		size_t known = limits->seen.list.count;
		char *slash = strrchr(path, '/');

		if (strings_intern(&limits->seen, folder) < known)
			return;
		if (read_cpu_limit(folder, &limit)) {
			limit.throttled_ns = throttled_ns(folder);
			limit.path = xstrdup(path);
			limit.folder = take_pointer(folder);
			*vec_push(&limits->list) = limit;
		}
		if (!slash)
			return;
		*slash = '\0';
	}
}

void cgroup_cpu_limits_add(CgroupCpuLimits *limits, uint32_t ns_tgid)
{
	const char *root = limits->root ?: CGROUPS;
	_cleanup_free_ char *name =
		xasprintf("%s/%" PRIu32 "/cgroup", limits->proc ?: "/proc", ns_tgid);
	_cleanup_free_ char *old = xasprintf("%s/cpu", root);
	_cleanup_fclose_ FILE *file = fopen(name, "re");
	char line[LINE_SIZE];

	while (file && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if (!controllers[1])
			add_cpu_limits(limits, root, path);
		else if (has_word(controllers + 1, "cpu", 3))
			add_cpu_limits(limits, old, path);
	}
}

const CgroupCpuLimit *cgroup_cpu_limits_most(const CgroupCpuLimits *limits, uint64_t *ret_ns)
{
	const CgroupCpuLimit *most = NULL;

	*ret_ns = 0;
	for (size_t i = 0; i < limits->list.count; i++) {
		const CgroupCpuLimit *limit = &limits->list.items[i];
		uint64_t now = throttled_ns(limit->folder);

		if (now == UINT64_MAX || now - MIN(limit->throttled_ns, now) <= *ret_ns)
			continue;
		*ret_ns = now - limit->throttled_ns;
		most = limit;
	}
	return most;
}

void cgroup_cpu_limits_free(CgroupCpuLimits *limits)
{
	for (size_t i = 0; i < limits->list.count; i++) {
		free(limits->list.items[i].folder);
		free(limits->list.items[i].path);
	}
	vec_free(&limits->list);
	strings_free(&limits->seen);
}
