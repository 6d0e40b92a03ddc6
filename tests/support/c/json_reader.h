/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json_reader.h - a strict JSON reader for tests, which fails the test on anything that
 * is not JSON or not UTF-8. Numbers stay text, so that they can be compared exactly.
 */
#ifndef WALLPROF_TEST_JSON_READER_H
#define WALLPROF_TEST_JSON_READER_H

#include <stddef.h>
#include <stdint.h>

typedef struct Node {
	char type; /* { [ " 0 (number) t f n */
	char *key; /* of a member of an object */
	char *text;
	struct Node *items;
	size_t count, capacity;
} Node;

void node_free(Node *node);

/* Reads the whole text, which may end in a newline. */
Node *node_read(const char *text);

/* Returns a member of an object, or NULL. */
const Node *node_find(const Node *node, const char *key);

/* Returns a member that must be there. */
const Node *node_get(const Node *node, const char *key);
const Node *node_at(const Node *node, size_t i);
const char *node_string(const Node *node);
long long node_int(const Node *node);

/* Returns a number of at most so many decimals, in units of the last of them; it is exact. */
uint64_t node_parts(const Node *node, int decimals);

/* Returns milliseconds as nanoseconds. */
uint64_t node_ns(const Node *node);

#endif
