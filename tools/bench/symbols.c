/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-symbols COUNT FILE…: how long the names of COUNT random addresses in these ELF files
 * take, as at the end of a recording: once with an empty cache, and then from it.
 *
 * COUNT is divided evenly; WALLPROF_SEED chooses the addresses, which lie in executable
 * segments. Prints seconds and the largest resident size of this process and of a child.
 */
#include "as_invoker.h"
#include "safe_open.h"
#include "symbol_files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef VEC(SymbolTarget) Targets;

typedef struct Counts {
	uint64_t symbols, frames, lines;
} Counts;

static void add_file(AddressSpaces *spaces, uint32_t id, const char *path, const struct stat *st,
		     const ElfIdentity *identity)
{
	size_t length = (sizeof(struct rec_file) + strlen(path) + 8) & ~7UL;
	_cleanup_free_ struct rec_file *file = xcalloc(1, length);

	file->h = (struct record){.len = length, .kind = REC_FILE};
	file->id = id;
	file->base_svma = identity->base_svma;
	file->size = st->st_size;
	file->mtime_ns = st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;
	file->build_id_len = identity->build_id_len;
	memcpy(file->build_id, identity->build_id, sizeof(file->build_id));
	strcpy(file->path, path);
	address_spaces_add(spaces, &file->h);
}

static int compare_targets(const void *a, const void *b)
{
	const SymbolTarget *x = a, *y = b;

	return x->svma < y->svma ? -1 : x->svma > y->svma;
}

static void add_targets(Targets *targets, uint32_t id, const ElfIdentity *identity, size_t count)
{
	size_t first = targets->count, kept = first;
	const ElfSegment *text = NULL;

	for (size_t i = 0; i < identity->loads.count; i++)
		if (identity->loads.items[i].exec)
			text = &identity->loads.items[i];
	for (size_t i = 0; i < count && text; i++)
		*vec_push(targets) = (SymbolTarget){
			.file = id,
			.svma = text->vaddr +
				(((uint64_t)random() << 31) ^ random()) % text->file_size};
	if (targets->count > first)
		qsort(targets->items + first, targets->count - first, sizeof(SymbolTarget),
		      compare_targets);
	for (size_t i = first; i < targets->count; i++)
		if (kept == first || targets->items[kept - 1].svma != targets->items[i].svma)
			targets->items[kept++] = targets->items[i];
	targets->count = kept;
}

static int count_symbol(void *user, const struct record *record)
{
	const struct rec_symbol *symbol = (const struct rec_symbol *)record;
	Counts *counts = user;
	const char *p = symbol->text;

	if (record->kind != REC_SYMBOL)
		return 0;
	counts->symbols++;
	for (uint32_t i = 0; i < symbol->count; i++) {
		uint32_t line;

		memcpy(&line, p, sizeof(line));
		counts->frames++;
		counts->lines += line > 0;
		p += sizeof(line);
		p += strlen(p) + 1;
		p += strlen(p) + 1;
	}
	return 0;
}

static long resident(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage.ru_maxrss / 1024;
}

static void run(const char *label, const AddressSpaces *spaces, const Targets *targets)
{
	Invoker invoker = {};
	AsInvoker as = {};
	Counts counts = {};
	SymbolsSummary summary = {};
	SymbolsSink sink = {
		.open = symbols_open_by_path,
		.open_beside = symbols_open_beside_by_path,
		.open_user = &as,
		.emit = count_symbol,
		.user = &counts,
		.invoker = &invoker,
	};
	uint64_t begin = now_ns();

	symbol_files_resolve(spaces, targets->items, targets->count, &sink, &summary);
	printf("%s: %.3f s, %zu addresses, %lu named, %lu frames, %lu with a line; resident: %ld "
	       "MB, "
	       "largest child %ld MB\n",
	       label, (now_ns() - begin) / 1e9, targets->count, counts.symbols, counts.frames,
	       counts.lines, resident(RUSAGE_SELF), resident(RUSAGE_CHILDREN));
}

int main(int argc, char **argv)
{
	AddressSpaces *spaces = address_spaces_new();
	char folder[] = "/tmp/bench-symbols-XXXXXX";
	const char *seed = getenv("WALLPROF_SEED");
	Targets targets = {};
	uint64_t count;

	if (argc < 3 || parse_u64(argv[1], &count) || !mkdtemp(folder)) {
		fprintf(stderr, "usage: bench-symbols COUNT FILE…\n");
		return 2;
	}
	setenv("XDG_CACHE_HOME", folder, 1);
	srandom(seed ? atoi(seed) : 1);
	for (int i = 2; i < argc; i++) {
		_cleanup_close_ int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		ElfIdentity identity;
		struct stat st;

		if (fstat(fd, &st) || elf_identify(fd, &identity)) {
			fprintf(stderr, "%s: no ELF file\n", argv[i]);
			return 1;
		}
		add_file(spaces, i - 1, argv[i], &st, &identity);
		add_targets(&targets, i - 1, &identity, count / (argc - 2));
		elf_identity_free(&identity);
	}
	run("cold", spaces, &targets);
	run("cached", spaces, &targets);
	vec_free(&targets);
	address_spaces_free(spaces);
	printf("the cache was %s\n", folder);
	return 0;
}
