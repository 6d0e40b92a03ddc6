/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "suggestion.h"
#include "util.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 32

/* Returns the number of mistakes (optimal string alignment distance). */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t rows[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= a_length; i++)
		rows[i][0] = i;
	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		for (size_t j = 1; j <= b_length; j++) {
			size_t changed = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			size_t best = MIN(MIN(rows[i - 1][j], rows[i][j - 1]) + 1, changed);

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, rows[i - 2][j - 2] + 1);
			rows[i][j] = best;
		}
	}
	return rows[a_length][b_length];
}

bool suggestion_is_close(const char *word, const char *name)
{
	size_t length = strlen(word), name_length = strlen(name);

	return length > 2 && length <= WORD_MAX && name_length <= WORD_MAX &&
	       distance(word, length, name, name_length) <= length / 3;
}

static bool has_name(const char *pid, const char *name)
{
	_cleanup_free_ char *path = xasprintf("/proc/%s/comm", pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char comm[64];

	if (!file || !fgets(comm, sizeof(comm), file))
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	/* The kernel keeps 15 bytes of a name. */
	return !strncmp(comm, name, 15) && (strlen(name) > 15 || !strcmp(comm, name));
}

char *suggestion_pids(const char *name, size_t *ret_count)
{
	_cleanup_closedir_ DIR *folder = opendir("/proc");
	const struct dirent *entry;
	char *list = NULL;

	*ret_count = 0;
	while (folder && *name && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)*entry->d_name) || !has_name(entry->d_name, name))
			continue;
		char *longer =
			list ? xasprintf("%s,%s", list, entry->d_name) : xstrdup(entry->d_name);

		free(list);
		list = longer;
		(*ret_count)++;
	}
	return list;
}
