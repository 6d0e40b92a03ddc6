/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json_member.h"
#include "util.h"
#include <errno.h>
#include <string.h>

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

int json_member(const char *name, size_t limit, JsonMore more, void *user, char **ret_value)
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
