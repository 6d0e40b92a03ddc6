/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile_libs.h"
#include "json_member.h"
#include "safe_open.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>

#define LIBS_TEXT_MAX (64u << 20)

static ssize_t read_profile_chunk(void *file, char *buffer, size_t size)
{
	int got = gzread(file, buffer, size);

	return got < 0 ? -EBADMSG : got;
}

/* zlib also reads uncompressed files. */
static int read_text(const char *profile, char **ret_text)
{
	struct stat st;
	int fd = safe_open(profile, 0, &st), error;
	gzFile file;

	if (fd < 0)
		return fd;
	file = gzdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	error = json_member("libs", LIBS_TEXT_MAX, read_profile_chunk, file, ret_text);
	gzclose(file);
	return error == -ENOENT ? -EBADMSG : error;
}

/* Parses pairs of hexadecimal digits, at most 20. Returns the number of bytes. */
static uint8_t read_build_id(const char *text, uint8_t id[static 20])
{
	uint8_t length = 0;
	unsigned int byte;

	while (text && length < 20 && sscanf(text, "%2x", &byte) == 1 && text[1]) {
		id[length++] = byte;
		text += 2;
		if (!*text)
			break;
	}
	return length;
}

static void add_lib(ProfileLibs *libs, const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "debugName"));
	const char *id = json_string_value(json_object_get(row, "breakpadId"));
	const char *path = json_string_value(json_object_get(row, "path"));
	ServedLib *lib;

	if (!name || !id || !path)
		return;
	lib = vec_push(libs);
	*lib = (ServedLib){
		.debug_name = xstrdup(name), .debug_id = xstrdup(id), .path = xstrdup(path)};
	lib->build_id_len =
		read_build_id(json_string_value(json_object_get(row, "codeId")), lib->build_id);
}

int profile_libs_read(const char *profile, ProfileLibs *ret_libs)
{
	_cleanup_free_ char *text = NULL;
	json_t *rows, *row;
	size_t i;
	int error;

	*ret_libs = (ProfileLibs){};
	error = read_text(profile, &text);
	if (error)
		return error;
	rows = json_loads(text, 0, NULL);
	if (!json_is_array(rows)) {
		json_decref(rows);
		return -EBADMSG;
	}
	json_array_foreach(rows, i, row) add_lib(ret_libs, row);
	json_decref(rows);
	return 0;
}

void profile_libs_free(ProfileLibs *libs)
{
	for (size_t i = 0; i < libs->count; i++) {
		free(libs->items[i].debug_name);
		free(libs->items[i].debug_id);
		free(libs->items[i].path);
	}
	vec_free(libs);
}

const ServedLib *profile_libs_find(const ProfileLibs *libs, const char *debug_name,
				   const char *debug_id)
{
	for (size_t i = 0; i < libs->count; i++)
		if (!strcmp(libs->items[i].debug_name, debug_name) &&
		    !strcasecmp(libs->items[i].debug_id, debug_id))
			return &libs->items[i];
	return NULL;
}
