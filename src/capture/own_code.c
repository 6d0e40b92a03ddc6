/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "own_code.h"
#include <stdio.h>
#include <string.h>

static int compare_ranges(const void *a, const void *b)
{
	const AddressRange *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

void own_code_parse(OwnCode *code, const char *text, size_t length)
{
	_cleanup_free_ char *copy = xasprintf("%.*s", (int)length, text);
	char *rest = copy;

	code->count = 0;
	for (char *word; (word = strsep(&rest, " "));) {
		unsigned long long start;
		unsigned int size;

		if (sscanf(word, "%llx+%x", &start, &size) == 2 && start + size > start)
			*vec_push(code) = (AddressRange){start, start + size};
	}
	if (code->count > 1)
		qsort(code->items, code->count, sizeof(AddressRange), compare_ranges);
}

bool own_code_contains(const OwnCode *code, uint64_t address)
{
	size_t i = partition_point(middle, code->count, code->items[middle].end <= address);

	return i < code->count && code->items[i].start <= address;
}
