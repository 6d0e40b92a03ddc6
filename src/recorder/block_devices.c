/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "block_devices.h"
#include "records.h"
#include "util.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * Returns the first line of a file without its newline, or NULL if it cannot be read. The caller
 * frees it.
 */
static char *read_line(const char *folder, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getline(&line, &size, file) <= 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Returns the disk of a partition, or 0 for any other device. */
static uint32_t parent_disk(const char *folder)
{
	_cleanup_free_ char *partition = read_line(folder, "partition");
	_cleanup_free_ char *number = partition ? read_line(folder, "../dev") : NULL;

	return number ? device_number(number) : 0;
}

/*
 * Returns the devices that a device is made of, "a, b", or the file behind a loop device. The
 * caller frees it.
 */
static char *underlying_devices(const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/slaves", folder);
	_cleanup_closedir_ DIR *slaves = NULL;
	char *text = read_line(folder, "loop/backing_file");
	struct dirent *entry;

	if (text)
		return text;
	text = xstrdup("");
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
	int text_length;

	if (!folder)
		return 0;
	below = underlying_devices(folder);
	mounted = mount_point(number);
	text_length = asprintf(&text, "%s%c%s%c%s", strrchr(folder, '/') + 1, 0, below, 0, mounted);
	if (text_length < 0 || text_length >= UINT16_MAX)
		return 0;
	size = text_length + 1;
	length = (sizeof(*record) + size + 7) & ~7UL;
	record = xcalloc(1, length);
	record->h = (struct record){.len = length, .kind = REC_DEVICE, .ns = now_ns()};
	record->device = device_number(number);
	record->disk = parent_disk(folder);
	record->size = size;
	memcpy(record->text, text, size);
	return sink(user, &record->h);
}

int block_devices_write(RecordSink sink, void *user)
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
