/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile_libs.h"
#include "safe_open.h"
#include "util.h"
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
	error = profile_libs_member("libs", LIBS_TEXT_MAX, read_profile_chunk, file, ret_text);
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

#define BUFFER_SIZE (64u << 10)
#define KEY_SIZE    64

typedef struct MemberScanner {
	const char *name;
	size_t limit;
	unsigned depth; /* number of open brackets */
	bool in_string, escaped;
	bool is_key;	    /* the current or last string may be a key of the outermost object */
	bool in_value;	    /* the wanted value is being read */
	char key[KEY_SIZE]; /* truncated */
	size_t key_length;  /* of the whole key */
	VEC(char) value;
} MemberScanner;

enum { SCAN_MORE = 1, SCAN_DONE = 0 };

static void scan_string(MemberScanner *scanner, char c)
{
	if (scanner->escaped)
		scanner->escaped = false;
	else if (c == '\\')
		scanner->escaped = true;
	else if (c == '"')
		scanner->in_string = false;
	if (!scanner->in_string || !scanner->is_key || scanner->in_value)
		return;
	if (scanner->key_length < sizeof(scanner->key))
		scanner->key[scanner->key_length] = c;
	scanner->key_length++;
}

static bool is_wanted_key(const MemberScanner *scanner)
{
	return scanner->is_key && scanner->key_length <= sizeof(scanner->key) &&
	       scanner->key_length == strlen(scanner->name) &&
	       !memcmp(scanner->key, scanner->name, scanner->key_length);
}

/* Handles a character outside of strings. */
static int scan_punctuation(MemberScanner *scanner, char c)
{
	switch (c) {
	case '"':
		scanner->in_string = true;
		if (!scanner->in_value)
			scanner->key_length = 0;
		return SCAN_MORE;
	case '{':
	case '[':
		if (scanner->depth == 0 && c != '{')
			return -EBADMSG;
		scanner->is_key = scanner->depth++ == 0;
		return SCAN_MORE;
	case '}':
	case ']':
		if (scanner->depth == 0)
			return -EBADMSG;
		if (--scanner->depth == 0)
			return scanner->in_value ? SCAN_DONE : -ENOENT;
		return SCAN_MORE;
	case ',':
		if (scanner->depth != 1)
			return SCAN_MORE;
		if (scanner->in_value)
			return SCAN_DONE;
		scanner->is_key = true;
		return SCAN_MORE;
	case ':':
		if (scanner->depth == 1 && !scanner->in_value) {
			scanner->in_value = is_wanted_key(scanner);
			scanner->is_key = false;
		}
		return SCAN_MORE;
	default:
		return scanner->depth > 0 || strchr(" \t\r\n", c) ? SCAN_MORE : -EBADMSG;
	}
}

static int scan_char(MemberScanner *scanner, char c)
{
	bool was_in_value = scanner->in_value;
	int state = SCAN_MORE;

	if (scanner->in_string)
		scan_string(scanner, c);
	else
		state = scan_punctuation(scanner, c);
	if (state != SCAN_MORE || !was_in_value)
		return state;
	if (scanner->value.count >= scanner->limit)
		return -EFBIG;
	*vec_push(&scanner->value) = c;
	return SCAN_MORE;
}

static int scan_text(MemberScanner *scanner, JsonMore more, void *user)
{
	_cleanup_free_ char *buffer = xmalloc(BUFFER_SIZE);

	for (;;) {
		ssize_t size = more(user, buffer, BUFFER_SIZE);

		if (size <= 0)
			return size < 0 ? (int)size : -EBADMSG;
		for (ssize_t i = 0; i < size; i++) {
			int state = scan_char(scanner, buffer[i]);

			if (state != SCAN_MORE)
				return state;
		}
	}
}

int profile_libs_member(const char *name, size_t limit, JsonMore more, void *user, char **ret_value)
{
	MemberScanner scanner = {.name = name, .limit = limit};
	int error = scan_text(&scanner, more, user);

	if (error) {
		vec_free(&scanner.value);
		return error;
	}
	*vec_push(&scanner.value) = '\0';
	*ret_value = scanner.value.items;
	return 0;
}
