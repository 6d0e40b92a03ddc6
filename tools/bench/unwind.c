/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-unwind ROUNDS FILE…: how long the unwind tables of these ELF files take, and what is in
 * them. Prints for each the median of ROUNDS, the file being in memory already.
 */
#include "unwind_table.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS_MAX 1000

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int open_elf(const char *path, ElfMap *ret_file, ElfIdentity *ret_identity)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : elf_map_open(fd, ret_file);

	if (r < 0)
		return r;
	r = elf_file_identify(ret_file->elf, ret_identity);
	if (r < 0)
		elf_map_close(ret_file);
	return r;
}

static void close_elf(ElfMap *file, ElfIdentity *identity)
{
	elf_identity_free(identity);
	elf_map_close(file);
}

/* Opening the file included. */
static int build(const char *path, UnwindTable *ret_table, uint64_t *ret_ns)
{
	uint64_t begin = now_ns();
	ElfIdentity identity;
	ElfMap file;
	int r = open_elf(path, &file, &identity);

	if (r < 0)
		return r;
	r = unwind_table_build(&file, /* debug= */ NULL, identity.base_svma, ret_table);
	close_elf(&file, &identity);
	*ret_ns = now_ns() - begin;
	return r;
}

static int cover(const char *path, const UnwindTable *table, UnwindCoverage *ret_coverage)
{
	ElfIdentity identity;
	ElfMap file;
	int r = open_elf(path, &file, &identity);

	if (r < 0)
		return r;
	*ret_coverage = unwind_table_coverage(table, &identity);
	close_elf(&file, &identity);
	return 0;
}

static void print(const char *path, const UnwindTable *table, const UnwindCoverage *coverage,
		  uint64_t ns)
{
	static const char *const kinds[UNWIND_CFAS] = {"none",	"end", "register",
						       "deref", "plt", "signal"};
	const UnwindCounts *counts = &table->counts;
	uint64_t dropped = 0, bytes = 0;

	for (size_t i = 0; i < UNWIND_DROPS; i++)
		dropped += counts->drops[i];
	for (size_t i = 0; i < UNWIND_CFAS; i++)
		bytes += coverage->bytes[i];
	printf("%s: %.2f ms, %" PRIu64 " FDEs (%" PRIu64 " dropped), %zu rows, %zu rules, %.2f %% "
	       "of %" PRIu64 " executable bytes in gaps; rows:",
	       path, ns / 1e6, counts->fdes, dropped, table->rows.count, table->rules.count,
	       bytes ? 100.0 * coverage->none_bytes[NONE_GAP] / bytes : 0, bytes);
	for (size_t i = 0; i < UNWIND_CFAS; i++)
		printf(" %s %" PRIu64, kinds[i], coverage->rows[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static uint64_t times[ROUNDS_MAX];
	uint64_t rounds;

	if (argc < 3 || parse_u64(argv[1], &rounds) || rounds == 0 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench-unwind ROUNDS FILE…\n");
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		UnwindTable table = {};
		UnwindCoverage coverage;
		int r = 0;

		for (uint64_t round = 0; round < rounds && r == 0; round++) {
			unwind_table_free(&table);
			r = build(argv[i], &table, &times[round]);
		}
		if (r == 0)
			r = cover(argv[i], &table, &coverage);
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return 1;
		}
		qsort(times, rounds, sizeof(*times), compare);
		print(argv[i], &table, &coverage, times[rounds / 2]);
		unwind_table_free(&table);
	}
	return 0;
}
