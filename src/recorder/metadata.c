/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metadata.h"
#include "file_names.h"
#include "records.h"
#include "util.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

typedef struct MetaSink {
	RecordSink sink;
	void *user;
	int error; /* the first error */
} MetaSink;

static void __attribute__((format(printf, 3, 4)))
put(MetaSink *sink, const char *key, const char *format, ...)
{
	_cleanup_free_ char *value = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&value, format, args) < 0)
		value = xstrdup("");
	va_end(args);

	size_t text_length = strlen(key) + 1 + strlen(value) + 1;
	size_t length = (sizeof(struct rec_meta) + text_length + 7) & ~7UL;
	_cleanup_free_ struct rec_meta *record = xcalloc(1, length);

	record->h = (struct record){.len = length, .kind = REC_META, .ns = now_ns()};
	snprintf(record->text, text_length, "%s=%s", key, value);
	if (!sink->error)
		sink->error = sink->sink(sink->user, &record->h);
}

/* Returns the words joined by spaces and quoted for a shell. */
static char *join_command(char **words)
{
	char *text = xstrdup("");

	for (; *words; words++) {
		_cleanup_free_ char *word = shell_word(*words);
		char *longer = xasprintf("%s%s%s", text, *text ? " " : "", word);

		free(text);
		text = longer;
	}
	return text;
}

/* Returns the first line of a file, or "". The caller frees it. */
static char *first_line(const char *folder, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!file || getline(&line, &size, file) <= 0) {
		free(line);
		return xstrdup("");
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static char *cpu_model(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/cpuinfo", "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, "model name", strlen("model name")) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		return xstrdup(colon + strspn(colon, ": \t"));
	}
	return xstrdup("");
}

static void put_ids(MetaSink *sink, const char *key, const pid_t *ids, size_t count)
{
	_cleanup_free_ char *text = xstrdup("");

	for (size_t i = 0; i < count; i++) {
		char *longer = xasprintf("%s%s%d", text, i ? "," : "", ids[i]);

		free(text);
		text = longer;
	}
	if (count)
		put(sink, key, "%s", text);
}

static void put_targets(MetaSink *sink, const MetadataInput *input)
{
	const RecordOptions *options = input->options;

	if (options->command) {
		_cleanup_free_ char *command = join_command(options->command);

		put(sink, "command", "%s", command);
		put(sink, "command_tid", "%d", input->command_pid);
		put(sink, "recorder_pid", "%d", getpid());
	}
	put_ids(sink, "attached_pids", options->pids, options->pid_count);
	put_ids(sink, "attached_tids", options->tids, options->tid_count);
	if (options->cgroup)
		put(sink, "cgroup", "%s", options->cgroup);
	if (options->kernel_threads)
		put(sink, "kernel_threads", "yes");
}

static void put_machine(MetaSink *sink)
{
	_cleanup_free_ char *boot_id = first_line("/proc/sys/kernel/random", "boot_id");
	_cleanup_free_ char *online = first_line("/sys/devices/system/cpu", "online");
	_cleanup_free_ char *model = cpu_model();
	struct sysinfo memory = {};
	struct utsname uts;

	uname(&uts);
	sysinfo(&memory);
	put(sink, "kernel", "%s", uts.release);
	put(sink, "machine", "%s", uts.machine);
	put(sink, "hostname", "%s", uts.nodename);
	put(sink, "boot_id", "%s", boot_id);
	put(sink, "cpus", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	put(sink, "cpus_online", "%s", online);
	put(sink, "cpu_model", "%s", model);
	put(sink, "memory", "%llu", (unsigned long long)memory.totalram * memory.mem_unit);
}

int metadata_write_one(const char *key, const char *value, RecordSink sink, void *user)
{
	MetaSink meta = {.sink = sink, .user = user};

	put(&meta, key, "%s", value);
	return meta.error;
}

int metadata_write(const MetadataInput *input, RecordSink sink, void *user)
{
	static const char *const kernel_stacks[] = {"none", "blocked", "all"};
	static const char *const user_stacks[] = {"none", "fp", "dwarf"};
	static const char *const fault_sources[] = {"off", "fentry", "events"};
	const RecordOptions *options = input->options;
	MetaSink meta = {.sink = sink, .user = user};

	put(&meta, "version", "%s", WALLPROF_VERSION);
	put_targets(&meta, input);
	put_machine(&meta);
	put(&meta, "clock", "CLOCK_MONOTONIC");
	put(&meta, "hooks", "%s", input->hooks);
	put(&meta, "waking-context", "%s", input->waking_context);
	put(&meta, "recording-cost", "by run");
	put(&meta, "strangers", options->whole_system ? "all" : "while targets wait");
	put(&meta, "file-names", "%s",
	    file_names_are_withheld(options) ? "files that targets use" : "all");
	if (!options->no_args)
		put(&meta, "args", "at exec and attach");
	put(&meta, "own-code", "%s", input->own_code);
	put(&meta, "frequency", "%u", options->frequency);
	if (options->adapt_frequency)
		put(&meta, "frequency_share", "%g", input->ticks_share);
	put(&meta, "kernel_stacks", "%s", kernel_stacks[options->kernel_stacks]);
	put(&meta, "stacks", "%s", user_stacks[options->user_stacks]);
	put(&meta, "fault_source", "%s", fault_sources[input->faults.source]);
	if (input->faults.threshold_ns == FAULT_THRESHOLD_NONE)
		put(&meta, "fault_threshold_ns", "none");
	else
		put(&meta, "fault_threshold_ns", "%llu",
		    (unsigned long long)input->faults.threshold_ns);
	if (options->waker_threshold_ns == WAKER_THRESHOLD_NONE)
		put(&meta, "waker_threshold_ns", "none");
	else
		put(&meta, "waker_threshold_ns", "%llu",
		    (unsigned long long)options->waker_threshold_ns);
	if (options->budget > 0)
		put(&meta, "budget", "%g", options->budget);
	put(&meta, "unwind_memory", "%llu", (unsigned long long)options->unwind_memory);
	put(&meta, "ring_size", "%llu", (unsigned long long)input->rings.size);
	put(&meta, "ring_cpus", "%u", input->rings.group_cpus);
	put(&meta, "ring_groups", "%u", input->rings.groups);
	if (options->flight_ns)
		put(&meta, "flight_recorder_ns", "%llu", (unsigned long long)options->flight_ns);
	return meta.error;
}

int metadata_write_stolen(const char *key, RecordSink sink, void *user)
{
	_cleanup_free_ char *line = first_line("/proc", "stat");
	MetaSink meta = {.sink = sink, .user = user};
	unsigned long long ticks;
	long rate = sysconf(_SC_CLK_TCK);

	/* the fields are user, nice, system, idle, iowait, irq, softirq, steal */
	if (rate > 0 && sscanf(line, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) == 1)
		put(&meta, key, "%llu", ticks * (NSEC_PER_SEC / (unsigned long long)rate));
	return meta.error;
}

int metadata_write_cpu_limit(const CgroupCpuLimits *limits, RecordSink sink, void *user)
{
	uint64_t throttled_ns;
	const CgroupCpuLimit *limit = cgroup_cpu_limits_most(limits, &throttled_ns);
	MetaSink meta = {.sink = sink, .user = user};

	if (!limit)
		return 0;
	put(&meta, "cpu_limit_cgroup", "%s", *limit->path ? limit->path : "/");
	put(&meta, "cpu_limit_quota_us", "%llu", (unsigned long long)limit->quota_us);
	put(&meta, "cpu_limit_period_us", "%llu", (unsigned long long)limit->period_us);
	put(&meta, "cpu_limit_throttled_ns", "%llu", (unsigned long long)throttled_ns);
	return meta.error;
}

/* ---- block devices ------------------------------------------------------------------ */

#define DEVICES "/sys/dev/block"

/* Returns the kernel's dev_t of "8:1", or 0 if the text is not a device number. */
static uint32_t device_number(const char *text)
{
	unsigned int major, minor;
	char rest;

	if (sscanf(text, "%u:%u%c", &major, &minor, &rest) < 2)
		return 0;
	return major << 20 | minor;
}

/* Returns the disk of a partition, or 0 for any other device. */
static uint32_t parent_disk(const char *folder)
{
	_cleanup_free_ char *partition = first_line(folder, "partition");
	_cleanup_free_ char *number = first_line(folder, "../dev");

	return *partition ? device_number(number) : 0;
}

/*
 * Returns the devices that a device is made of, "a, b", or the file behind a loop device. The
 * caller frees it.
 */
static char *underlying_devices(const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/slaves", folder);
	_cleanup_closedir_ DIR *slaves = NULL;
	char *text = first_line(folder, "loop/backing_file");
	struct dirent *entry;

	if (*text)
		return text;
	slaves = opendir(path);
	while (slaves && (entry = readdir(slaves))) {
		char *longer;

		if (entry->d_name[0] == '.')
			continue;
		longer = xasprintf("%s%s%s", text, *text ? ", " : "", entry->d_name);
		free(text);
		text = longer;
	}
	return text;
}

/* mountinfo writes blanks and other special characters as three octal digits: "My\\040Disk". */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		unsigned int byte;

		if (sscanf(text, "\\%3o", &byte) == 1 && strspn(text + 1, "01234567") >= 3) {
			*to++ = byte;
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/*
 * Returns where the root of the file system on a device is mounted in wallprof's mount namespace,
 * or "": the first such mount (proc_pid_mountinfo(5)). The caller frees it.
 */
static char *mount_point(const char *number)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		char device[32], root[2], *found;
		int at = 0;

		if (sscanf(line, "%*d %*d %31s %1s %n", device, root, &at) != 2 || at == 0 ||
		    strcmp(device, number) != 0 || line[at - 1] != ' ' || line[at - 2] != '/')
			continue;
		found = xasprintf("%.*s", (int)strcspn(line + at, " "), line + at);
		unescape(found);
		return found;
	}
	return xstrdup("");
}

static int write_device(const char *number, RecordSink sink, void *user)
{
	_cleanup_free_ char *link = xasprintf(DEVICES "/%s", number);
	_cleanup_free_ char *folder = realpath(link, NULL);
	_cleanup_free_ char *below = NULL, *mounted = NULL, *text = NULL;
	_cleanup_free_ struct rec_device *record = NULL;
	size_t size, length;

	if (!folder)
		return 0;
	below = underlying_devices(folder);
	mounted = mount_point(number);
	text = xasprintf("%s%c%s%c%s", strrchr(folder, '/') + 1, 0, below, 0, mounted);
	size = strlen(strrchr(folder, '/') + 1) + 1 + strlen(below) + 1 + strlen(mounted) + 1;
	if (size > UINT16_MAX)
		return 0;
	length = (sizeof(*record) + size + 7) & ~7UL;
	record = xcalloc(1, length);
	record->h = (struct record){.len = length, .kind = REC_DEVICE, .ns = now_ns()};
	record->device = device_number(number);
	record->disk = parent_disk(folder);
	record->size = size;
	memcpy(record->text, text, size);
	return sink(user, &record->h);
}

int metadata_write_devices(RecordSink sink, void *user)
{
	_cleanup_closedir_ DIR *devices = opendir(DEVICES);
	struct dirent *entry;

	/* A container without /sys, or a kernel without block devices, has no such folder. */
	while (devices && (entry = readdir(devices))) {
		int error =
			device_number(entry->d_name) ? write_device(entry->d_name, sink, user) : 0;

		if (error)
			return error;
	}
	return 0;
}
