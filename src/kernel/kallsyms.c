/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms.c - parses lines of "address type name [module]" and finds the function of an address.
 *
 * Data symbols are read too, only to end the function before them: the text has no sizes.
 */
#include "kallsyms.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If a function is longer than this, its end is rather missing in the list. */
#define FUNCTION_MAX (1u << 20)
/* If the end of a function is not known, it is taken to be at most this long. */
#define UNKNOWN_END_MAX (64u << 10)

typedef struct Entry {
	uint64_t start;
	uint32_t name;	 /* Kallsyms::text */
	uint32_t module; /* Strings, or UINT32_MAX */
	uint32_t order;	 /* line */
	uint32_t size;
	bool function, local;
} Entry;

struct Kallsyms {
	VEC(Entry) functions; /* start ascending, one per start */
	VEC(char) text;
	Strings modules;
};

static bool is_function(char type)
{
	return strchr("tTwW", type) != NULL;
}

static uint32_t keep_name(Kallsyms *kallsyms, const char *name)
{
	uint32_t offset = kallsyms->text.count;

	do
		*vec_push(&kallsyms->text) = *name;
	while (*name++);
	return offset;
}

/* Splits off the next word of *p, or returns NULL. */
static char *next_word(char **p)
{
	char *word = *p + strspn(*p, " \t\n");
	size_t length = strcspn(word, " \t\n");

	if (length == 0)
		return NULL;
	*p = word + length + (word[length] != '\0');
	word[length] = '\0';
	return word;
}

/* Skips lines that are not symbols. */
static void parse_line(Kallsyms *kallsyms, char *line)
{
	char *address = next_word(&line), *type, *name, *module, *end;
	uint64_t start;

	if (!address)
		return;
	type = next_word(&line);
	name = type ? next_word(&line) : NULL;
	if (!name || type[1])
		return;
	module = next_word(&line);
	start = strtoull(address, &end, 16);
	if (*end || kallsyms->text.count > UINT32_MAX / 2)
		return;
	*vec_push(&kallsyms->functions) = (Entry){
		.start = start,
		.name = is_function(*type) ? keep_name(kallsyms, name) : 0,
		.module = module ? strings_intern(&kallsyms->modules, module) : UINT32_MAX,
		.order = kallsyms->functions.count,
		.function = is_function(*type),
		.local = *type == 't',
	};
}

static int compare_entries(const void *a, const void *b)
{
	const Entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->function != y->function)
		return y->function - x->function;
	if (x->local != y->local)
		return x->local - y->local;
	return x->order < y->order ? -1 : 1;
}

/* Sorts, sets the sizes of functions by what follows them, and drops all else. */
static void finalize(Kallsyms *kallsyms)
{
	Entry *items = kallsyms->functions.items;
	size_t count = kallsyms->functions.count, kept = 0;

	if (count == 0)
		return;
	qsort(items, count, sizeof(*items), compare_entries);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count; next++)
			if (items[next].start != items[i].start)
				break;
		if (!items[i].function)
			continue;
		items[kept] = items[i];
		if (next < count && items[next].start - items[i].start <= FUNCTION_MAX)
			items[kept].size = items[next].start - items[i].start;
		kept++;
	}
	kallsyms->functions.count = kept;
}

/* Returns 0 if a function has an address; else the error of kallsyms_load(). */
static int check_addresses(const Kallsyms *kallsyms)
{
	for (size_t i = 0; i < kallsyms->functions.count; i++)
		if (kallsyms->functions.items[i].start)
			return 0;
	return kallsyms->functions.count > 0 ? -EPERM : -ENODATA;
}

int kallsyms_load(const char *path, Kallsyms **ret_kallsyms)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_(kallsyms_freep) Kallsyms *kallsyms = NULL;
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	int error;

	if (!file)
		return -errno;
	kallsyms = xcalloc(1, sizeof(*kallsyms));
	errno = 0;
	while (getline(&line, &capacity, file) >= 0)
		parse_line(kallsyms, line);
	if (ferror(file))
		return errno ? -errno : -EIO;
	error = check_addresses(kallsyms);
	if (error)
		return error;
	finalize(kallsyms);
	*ret_kallsyms = take_pointer(kallsyms);
	return 0;
}

int kallsyms_check(const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	uint64_t address;
	int r = -ENODATA;

	if (!file)
		return -errno;
	while (fscanf(file, "%" SCNx64 " %*[^\n]", &address) == 1) {
		if (address)
			return 0;
		r = -EPERM;
	}
	return r;
}

const char *kallsyms_error_text(int error)
{
	switch (error) {
	case -EPERM:
		return "addresses are hidden; sysctl kernel.kptr_restrict=1, and CAP_SYSLOG of "
		       "the host";
	case -ENODATA:
		return "the file is empty (hidden by a container?); umount /proc/kallsyms";
	default:
		return error_text(error);
	}
}

void kallsyms_free(Kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	vec_free(&kallsyms->functions);
	vec_free(&kallsyms->text);
	strings_free(&kallsyms->modules);
	free(kallsyms);
}

bool kallsyms_find(const Kallsyms *kallsyms, uint64_t avma, KernelSymbol *ret_symbol)
{
	size_t next = partition_point(middle, kallsyms->functions.count,
				      kallsyms->functions.items[middle].start <= avma);
	const Entry *entry;

	if (next == 0)
		return false;
	entry = &kallsyms->functions.items[next - 1];
	if (avma - entry->start >= (entry->size ? entry->size : UNKNOWN_END_MAX))
		return false;
	*ret_symbol = (KernelSymbol){
		.start = entry->start,
		.size = entry->size,
		.name = kallsyms->text.items + entry->name,
		.module = entry->module == UINT32_MAX
				  ? NULL
				  : strings_get(&kallsyms->modules, entry->module),
	};
	return true;
}
