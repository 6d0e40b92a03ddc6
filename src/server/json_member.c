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
	unsigned depth; /* of brackets that are open */
	bool in_string, escaped;
	bool is_key;   /* the string that is read, or was, may be a key of the outermost object */
	bool in_value; /* the value is being read */
	char key[KEY_SIZE]; /* as much of it as has room */
	size_t key_length;  /* all of it */
	VEC(char) value;
} MemberScanner;

enum { SKIM_ON = 1, SKIM_DONE = 0 };

static void scan_string(MemberScanner *skimmer, char c)
{
	if (skimmer->escaped)
		skimmer->escaped = false;
	else if (c == '\\')
		skimmer->escaped = true;
	else if (c == '"')
		skimmer->in_string = false;
	if (!skimmer->in_string || !skimmer->is_key || skimmer->in_value)
		return;
	if (skimmer->key_length < sizeof(skimmer->key))
		skimmer->key[skimmer->key_length] = c;
	skimmer->key_length++;
}

static bool is_wanted_key(const MemberScanner *skimmer)
{
	return skimmer->is_key && skimmer->key_length <= sizeof(skimmer->key) &&
	       skimmer->key_length == strlen(skimmer->name) &&
	       !memcmp(skimmer->key, skimmer->name, skimmer->key_length);
}

/* What stands outside of strings. */
static int scan_punctuation(MemberScanner *skimmer, char c)
{
	switch (c) {
	case '"':
		skimmer->in_string = true;
		if (!skimmer->in_value)
			skimmer->key_length = 0;
		return SKIM_ON;
	case '{':
	case '[':
		if (skimmer->depth == 0 && c != '{')
			return -EBADMSG;
		skimmer->is_key = skimmer->depth++ == 0;
		return SKIM_ON;
	case '}':
	case ']':
		if (skimmer->depth == 0)
			return -EBADMSG;
		if (--skimmer->depth == 0)
			return skimmer->in_value ? SKIM_DONE : -ENOENT;
		return SKIM_ON;
	case ',':
		if (skimmer->depth != 1)
			return SKIM_ON;
		if (skimmer->in_value)
			return SKIM_DONE;
		skimmer->is_key = true;
		return SKIM_ON;
	case ':':
		if (skimmer->depth == 1 && !skimmer->in_value) {
			skimmer->in_value = is_wanted_key(skimmer);
			skimmer->is_key = false;
		}
		return SKIM_ON;
	default:
		return skimmer->depth > 0 || strchr(" \t\r\n", c) ? SKIM_ON : -EBADMSG;
	}
}

static int take(MemberScanner *skimmer, char c)
{
	bool was_taking = skimmer->in_value;
	int state = SKIM_ON;

	if (skimmer->in_string)
		scan_string(skimmer, c);
	else
		state = scan_punctuation(skimmer, c);
	if (state != SKIM_ON || !was_taking)
		return state;
	if (skimmer->value.count >= skimmer->limit)
		return -EFBIG;
	*vec_push(&skimmer->value) = c;
	return SKIM_ON;
}

static int scan_text(MemberScanner *skimmer, JsonMore more, void *user)
{
	_cleanup_free_ char *buffer = xmalloc(BUFFER_SIZE);

	for (;;) {
		ssize_t size = more(user, buffer, BUFFER_SIZE);

		if (size <= 0)
			return size < 0 ? (int)size : -EBADMSG;
		for (ssize_t i = 0; i < size; i++) {
			int state = take(skimmer, buffer[i]);

			if (state != SKIM_ON)
				return state;
		}
	}
}

int json_member(const char *name, size_t limit, JsonMore more, void *user, char **ret_value)
{
	MemberScanner skimmer = {.name = name, .limit = limit};
	int error = scan_text(&skimmer, more, user);

	if (error) {
		vec_free(&skimmer.value);
		return error;
	}
	*vec_push(&skimmer.value) = '\0';
	*ret_value = skimmer.value.items;
	return 0;
}
