/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "static_files.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HTML "text/html; charset=utf-8"
#define JSON "application/json; charset=utf-8"

/* Takes ownership of fd. */
static int adopt_plain_file(int fd, ServedFile *ret_file)
{
	struct stat st;
	int error = 0;

	if (fstat(fd, &st))
		error = -errno;
	else if (!S_ISREG(st.st_mode))
		error = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (error) {
		close(fd);
		return error;
	}
	*ret_file = (ServedFile){.fd = fd, .size = st.st_size};
	return 0;
}

/*
 * The first bytes decide, not the name. Compressed data is sent as it is; the browser decompresses
 * it.
 */
static int detect_encoding(ServedFile *file)
{
	unsigned char head[2] = {};

	if (pread(file->fd, head, sizeof(head), 0) < 0)
		return -errno;
	file->type = JSON;
	if (head[0] == 0x1f && head[1] == 0x8b)
		file->encoding = "gzip";
	else if (head[0] == '<')
		file->type = HTML;
	else if (head[0] != '{' && head[0] != '[')
		return -EMEDIUMTYPE;
	return 0;
}

int static_files_profile(const char *path, ServedFile *ret_file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = fd < 0 ? -errno : adopt_plain_file(fd, ret_file);

	if (error)
		return error;
	error = detect_encoding(ret_file);
	if (error)
		close(ret_file->fd);
	return error;
}

static const char *type_of_name(const char *path)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {
		{".html", HTML},
		{".js", "text/javascript; charset=utf-8"},
		{".css", "text/css; charset=utf-8"},
		{".mjs", "text/javascript; charset=utf-8"},
		{".json", JSON},
		{".map", JSON},
		{".svg", "image/svg+xml"},
		{".png", "image/png"},
		{".jpg", "image/jpeg"},
		{".gif", "image/gif"},
		{".webm", "video/webm"},
		{".ico", "image/x-icon"},
		{".woff2", "font/woff2"},
		{".wasm", "application/wasm"},
		{".webmanifest", "application/manifest+json"},
		{".txt", "text/plain; charset=utf-8"},
		{".md", "text/plain; charset=utf-8"},
		{".ftl", "text/plain; charset=utf-8"},
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_LEN(types); i++)
		if (!strcasecmp(dot, types[i].suffix))
			return types[i].type;
	return "application/octet-stream";
}

int static_files_below(int folder_fd, const char *path, ServedFile *ret_file)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	int fd = syscall(SYS_openat2, folder_fd, path, &how, sizeof(how)), error;

	if (fd < 0)
		return -errno;
	error = adopt_plain_file(fd, ret_file);
	if (error)
		return error;
	ret_file->type = type_of_name(path);
	return 0;
}
