/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "file_kind.h"
#include "capture_format.h"
#include "util.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool is_capture(const struct capture_header *head)
{
	static const u8 name[sizeof(head->name)] = CAPTURE_NAME;

	return head->magic == CAPTURE_SKIPPABLE_MAGIC && !memcmp(head->name, name, sizeof(name));
}

/* Any file may be compressed, so the name of a compressed one has to be that of a profile. */
static bool is_profile(const struct capture_header *head, const char *path)
{
	static const u8 gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};

	if (*(const char *)head == '{')
		return true;
	return strstr(path, ".json") &&
	       (!memcmp(head, gzip, sizeof(gzip)) || !memcmp(head, zstd, sizeof(zstd)));
}

enum file_kind file_kind_of(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct capture_header head = {};

	if (fd < 0 || pread(fd, &head, sizeof(head), 0) <= 0)
		return FILE_KIND_OTHER;
	if (is_capture(&head))
		return FILE_KIND_CAPTURE;
	return is_profile(&head, path) ? FILE_KIND_PROFILE : FILE_KIND_OTHER;
}
