/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json_reader.h"
#include "json_writer.h"
#include "test_tools.h"
#include "util.h"
#include <ctype.h>

/* No string that tests read is longer. */
#define READ_TEXT_MAX 4096

static void node_free_content(Node *node)
{
	for (size_t i = 0; i < node->count; i++)
		node_free_content(&node->items[i]);
	free(node->items);
	free(node->key);
	free(node->text);
}

void node_free(Node *node)
{
	node_free_content(node);
	free(node);
}

static char *read_text(const char **p)
{
	char *text = xmalloc(READ_TEXT_MAX), *out = text, *end = text + READ_TEXT_MAX - 5;
	unsigned int code;

	assert_int_equal(*(*p)++, '"');
	while (**p != '"') {
		size_t length = utf8_length(*p);

		assert_true(length > 0 && (unsigned char)**p >= 0x20 && out < end);
		if (**p == '\\' && (*p)[1] == 'u') {
			assert_int_equal(sscanf(*p + 2, "%4x", &code), 1);
			assert_true(code < 0x80);
			*out++ = code;
			*p += 6;
			continue;
		}
		if (**p == '\\' && ((*p)[1] == 'n' || (*p)[1] == 't')) {
			*out++ = (*p)[1] == 'n' ? '\n' : '\t';
			*p += 2;
			continue;
		}
		if (**p == '\\') {
			++*p;
			assert_non_null(strchr("\"\\/", **p));
		}
		memcpy(out, *p, length);
		out += length;
		*p += length;
	}
	++*p;
	*out++ = '\0';
	return xrealloc(text, out - text);
}

static void read_number(Node *node, const char **p)
{
	const char *start = *p;

	node->type = '0';
	if (**p == '-')
		++*p;
	assert_true(isdigit((unsigned char)**p));
	assert_false(**p == '0' && isdigit((unsigned char)(*p)[1]));
	while (isdigit((unsigned char)**p))
		++*p;
	if (**p == '.') {
		++*p;
		assert_true(isdigit((unsigned char)**p));
		while (isdigit((unsigned char)**p))
			++*p;
	}
	node->text = strndup(start, *p - start);
}

static void read_node(Node *node, const char **p)
{
	static const char *const words[] = {"true", "false", "null"};
	char close = **p == '{' ? '}' : ']';

	if (**p == '"') {
		node->type = '"';
		node->text = read_text(p);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strncmp(*p, words[i], strlen(words[i])) == 0) {
			node->type = **p;
			*p += strlen(words[i]);
			return;
		}
	}
	if (**p != '{' && **p != '[') {
		read_number(node, p);
		return;
	}
	node->type = *(*p)++;
	while (**p != close) {
		Node *item = vec_push(node);

		*item = (Node){};
		if (node->type == '{') {
			item->key = read_text(p);
			assert_int_equal(*(*p)++, ':');
		}
		read_node(item, p);
		if (**p == ',') {
			++*p;
			assert_true(**p != close);
		} else {
			assert_int_equal(**p, close);
		}
	}
	++*p;
}

Node *node_read(const char *text)
{
	Node *node = xcalloc(1, sizeof(*node));

	read_node(node, &text);
	if (*text == '\n')
		text++;
	assert_int_equal(*text, '\0');
	return node;
}

const Node *node_find(const Node *node, const char *key)
{
	const Node *found = NULL;

	assert_int_equal(node->type, '{');
	for (size_t i = 0; i < node->count; i++) {
		if (strcmp(node->items[i].key, key) == 0) {
			assert_null(found);
			found = &node->items[i];
		}
	}
	return found;
}

const Node *node_get(const Node *node, const char *key)
{
	const Node *found = node_find(node, key);

	if (!found)
		fail_msg("no member \"%s\"", key);
	return found;
}

const Node *node_at(const Node *node, size_t i)
{
	assert_int_equal(node->type, '[');
	assert_true(i < node->count);
	return &node->items[i];
}

const char *node_string(const Node *node)
{
	assert_int_equal(node->type, '"');
	return node->text;
}

long long node_int(const Node *node)
{
	assert_int_equal(node->type, '0');
	assert_null(strchr(node->text, '.'));
	return strtoll(node->text, NULL, 10);
}

uint64_t node_parts(const Node *node, int decimals)
{
	char *point;
	uint64_t parts;

	assert_int_equal(node->type, '0');
	parts = strtoull(node->text, &point, 10);
	for (point += *point == '.'; decimals > 0; decimals--)
		parts = parts * 10 + (*point ? *point++ - '0' : 0);
	assert_int_equal(*point, '\0');
	return parts;
}

uint64_t node_ns(const Node *node)
{
	return node_parts(node, 6);
}
