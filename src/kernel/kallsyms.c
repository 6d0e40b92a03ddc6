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

#define READ_SIZE 4096 /* the kernel formats a page at a time; stdio would read a quarter of it */
/* The kernel lists its own symbols in the order of their addresses, then modules and BPF. */
#define CODE_END "_etext"

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
	uint64_t last_start; /* of the last line */
	bool unsorted;	     /* lines are not in the order of their addresses: modules follow */
};

static bool is_function(char type)
{
	return strchr("tTwW", type) != NULL;
}

static uint32_t keep_module(Kallsyms *kallsyms, const char *module)
{
	_cleanup_free_ char *copy = strndup(module, strcspn(module, " \t\n"));

	return strings_intern(&kallsyms->modules, copy);
}

static uint32_t keep_name(Kallsyms *kallsyms, const char *name, size_t length)
{
	uint32_t offset = kallsyms->text.count;

	vec_append(&kallsyms->text, name, length);
	*vec_push(&kallsyms->text) = '\0';
	return offset;
}

/* Returns the value of a digit, or a negative number. */
static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/*
 * Parses the address that the text begins with. Returns what follows it. There are more than
 * 100,000 lines, and strtoull() takes three times as long.
 */
static const char *parse_address(const char *text, uint64_t *ret_address)
{
	uint64_t address = 0;

	for (int digit; (digit = digit_value(*text)) >= 0; text++)
		address = address << 4 | digit;
	*ret_address = address;
	return text;
}

/* Returns false after the end of the kernel's own code. Skips lines that are not symbols. */
static bool parse_line(Kallsyms *kallsyms, const char *line)
{
	uint64_t start;
	const char *rest = parse_address(line, &start), *name, *module;
	size_t length;
	bool function;

	if (rest == line || rest[0] != ' ' || !rest[1] || rest[2] != ' ')
		return true;
	name = rest + 3;
	length = strcspn(name, " \t\n");
	if (length == 0 || kallsyms->text.count > UINT32_MAX / 2)
		return true;
	module = name + length + strspn(name + length, " \t\n");
	function = is_function(rest[1]);
	kallsyms->unsorted |= start < kallsyms->last_start;
	kallsyms->last_start = start;
	*vec_push(&kallsyms->functions) = (Entry){
		.start = start,
		.name = function ? keep_name(kallsyms, name, length) : 0,
		.module = *module ? keep_module(kallsyms, module) : UINT32_MAX,
		.order = kallsyms->functions.count,
		.function = function,
		.local = rest[1] == 't',
	};
	return length != strlen(CODE_END) || memcmp(name, CODE_END, length);
}

/* Whether x, and not y with the same start, names the function there. */
static bool is_preferred(const Entry *x, const Entry *y)
{
	if (x->function != y->function)
		return x->function;
	if (x->local != y->local)
		return y->local;
	return x->order < y->order;
}

static int compare_starts(const void *a, const void *b)
{
	const Entry *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts, sets the sizes of functions by what follows them, and drops all else. */
static void finalize(Kallsyms *kallsyms)
{
	Entry *items = kallsyms->functions.items;
	size_t count = kallsyms->functions.count, kept = 0;

	if (kallsyms->unsorted)
		qsort(items, count, sizeof(*items), compare_starts);
	for (size_t i = 0, next; i < count; i = next) {
		Entry best = items[i];

		for (next = i + 1; next < count && items[next].start == best.start; next++)
			if (is_preferred(&items[next], &best))
				best = items[next];
		if (!best.function)
			continue;
		if (next < count && items[next].start - best.start <= FUNCTION_MAX)
			best.size = items[next].start - best.start;
		items[kept++] = best;
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

int kallsyms_load(const char *path, uint64_t highest, Kallsyms **ret_kallsyms)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_(kallsyms_freep) Kallsyms *kallsyms = NULL;
	_cleanup_free_ char *line = NULL;
	char buffer[READ_SIZE];
	size_t capacity = 0;
	bool in_code = true;
	int error;

	if (!file)
		return -errno;
	kallsyms = xcalloc(1, sizeof(*kallsyms));
	errno = 0;
	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	while ((in_code || highest >= kallsyms->last_start) && getline(&line, &capacity, file) >= 0)
		in_code = parse_line(kallsyms, line);
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
