/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of /proc/PID/maps. What is understood is what scanf(3) understands, too. */
#include "fuzz.h"
#include "proc_maps.h"
#include <inttypes.h>

static void compare_with_scanf(const char *line, const ProcMapping *mapping)
{
	uint64_t start, end, pgoff, inode;
	char perms[5];

	fuzz_require(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4c %" SCNx64 " %*x:%*x %" SCNu64,
			    &start, &end, perms, &pgoff, &inode) == 5);
	fuzz_require(start == mapping->start && end == mapping->end);
	fuzz_require(pgoff == mapping->pgoff && inode == mapping->inode);
	fuzz_require((perms[2] == 'x') == mapping->exec);
}

static void read_line(const char *text, size_t size)
{
	_cleanup_free_ char *original = xcalloc(1, size + 1);
	_cleanup_free_ char *line = NULL;
	ProcMapping mapping;

	memcpy(original, text, size);
	line = xstrdup(original);
	if (!proc_maps_parse(line, &mapping))
		return;
	fuzz_require(mapping.start < mapping.end);
	fuzz_require(mapping.path > line && mapping.path <= line + strlen(original));
	compare_with_scanf(original, &mapping);
	fuzz_require(strlen(mapping.path) <= strlen(original));
}

static int find_own_code(void *user, const ProcMapping *mapping)
{
	uint64_t code = (uintptr_t)read_line;

	*(bool *)user |= mapping->exec && mapping->start <= code && code < mapping->end;
	return 0;
}

/* The kernel's own lines are understood, too. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	bool found = false;

	(void)argc;
	(void)argv;
	fuzz_require(proc_maps_each(getpid(), find_own_code, &found) == 0 && found);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *end = p + size;

	while (p < end) {
		const char *newline = memchr(p, '\n', end - p);
		const char *next = newline ? newline + 1 : end;

		read_line(p, next - p);
		p = next;
	}
	return 0;
}
