/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc_maps.c - "start-end perms pgoff major:minor inode path", numbers in base 16 but the inode.
 */
#include "proc_maps.h"
#include "util.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* "rwxp", "r--s", … */
#define PERMS	  "rwxps-"
#define PERMS_LEN 4

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses a number and the character behind it; moves *p behind both. */
static bool parse_number(char **p, unsigned base, char delimiter, uint64_t *ret_value)
{
	char *q = *p;
	uint64_t value = 0;

	for (int digit; (digit = digit_value(*q)) >= 0 && (unsigned)digit < base; q++) {
		if (value > (UINT64_MAX - (unsigned)digit) / base)
			return false;
		value = value * base + (unsigned)digit;
	}
	if (q == *p || *q != delimiter)
		return false;
	*p = q + 1;
	*ret_value = value;
	return true;
}

static bool parse_perms(char **p, ProcMapping *mapping)
{
	const char *perms = *p;

	if (strspn(perms, PERMS) != PERMS_LEN || perms[PERMS_LEN] != ' ')
		return false;
	mapping->read = perms[0] == 'r';
	mapping->write = perms[1] == 'w';
	mapping->exec = perms[2] == 'x';
	mapping->shared = perms[3] == 's';
	*p += PERMS_LEN + 1;
	return true;
}

/* Parses the inode and what follows it: blanks and the path, or nothing. */
static bool parse_inode(char **p, uint64_t *ret_inode)
{
	size_t length = strspn(*p, "0123456789");
	char last = (*p)[length];

	/* Nothing follows the inode of a mapping without a path, not even a blank. */
	if (!parse_number(p, 10, last, ret_inode) || (last && last != ' '))
		return false;
	if (!last)
		(*p)--;
	return true;
}

/* A newline in a path is written as \012. */
static void unescape_newlines(char *path)
{
	static const char escaped[] = "\\012";
	const char *from = path;
	char *to = path;

	while (*from) {
		if (!strncmp(from, escaped, sizeof(escaped) - 1)) {
			*to++ = '\n';
			from += sizeof(escaped) - 1;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

bool proc_maps_parse(char *line, ProcMapping *ret_mapping)
{
	ProcMapping mapping;
	uint64_t device;
	char *p = line;

	line[strcspn(line, "\n")] = '\0';
	if (!parse_number(&p, 16, '-', &mapping.start) ||
	    !parse_number(&p, 16, ' ', &mapping.end) || mapping.end <= mapping.start ||
	    !parse_perms(&p, &mapping) || !parse_number(&p, 16, ' ', &mapping.pgoff) ||
	    !parse_number(&p, 16, ':', &device) || !parse_number(&p, 16, ' ', &device) ||
	    !parse_inode(&p, &mapping.inode))
		return false;
	p += strspn(p, " ");
	unescape_newlines(p);
	mapping.path = p;
	*ret_mapping = mapping;
	return true;
}

int proc_maps_each(pid_t tid, int (*each)(void *user, const ProcMapping *mapping), void *user)
{
	_cleanup_fclose_ FILE *maps = NULL;
	_cleanup_free_ char *line = NULL;
	char path[64];
	size_t capacity = 0;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (r == 0 && getline(&line, &capacity, maps) > 0) {
		ProcMapping mapping;

		if (proc_maps_parse(line, &mapping))
			r = each(user, &mapping);
	}
	return r;
}

bool proc_maps_is_anonymous(const char *path)
{
	static const char *const prefixes[] = {"[",	    "//anon", "/anon_hugepage",
					       "/dev/zero", "/SYSV",  "anon_inode:"};

	if (!*path)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}
