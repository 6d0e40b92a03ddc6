/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake_table_builder.h"
#include "debug_link.h"
#include "sandbox.h"
#include "table_builder.h"
#include "table_worker.h"
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SOCKET 3 /* the child's end: see sandbox.c */
#define OBJECT 4 /* the first descriptor that it gets */

/* What the child that is being made shares with its parent, and what the one before it did. */
static TableRegion region, other_region;

static int start_with_region(SandboxMain main, const int *fds, size_t fd_count,
			     const void *argument, const SandboxLimits *limits,
			     Sandbox *ret_sandbox)
{
	other_region = region;
	region = *(const TableRegion *)argument;
	return sandbox_start(main, fds, fd_count, argument, limits, ret_sandbox);
}

/* For ever, but the compiler must not know: AddressSanitizer asks the kernel before it. */
static void spin(void)
{
	volatile bool on = true;

	while (on)
		;
}

/* Sends it as the child's own code does. All forgers are a child's first object. */
static void forge(TableAnswer answer)
{
	if (write(SOCKET, &answer, sizeof(answer)) != sizeof(answer))
		_exit(1);
}

static void forge_counts(uint64_t rows, uint64_t rules)
{
	forge((TableAnswer){.number = 1, .rows = rows, .rules = rules});
	spin();
}

static void put_made(const UnwindTable *table)
{
	size_t rows = table->rows.count * sizeof(struct unwind_row);

	memcpy(region.base, table->rows.items, rows);
	memcpy(region.base + rows, table->rules.items,
	       table->rules.count * sizeof(struct unwind_rule));
}

/* Now it is the one table, now the other, and in between it is both. */
static void keep_changing(const struct behaviour *behaviour)
{
	UnwindTable a = make_table(behaviour->seed, behaviour->rows);
	UnwindTable b = make_table(behaviour->seed + 1, behaviour->rows);

	put_made(&a);
	forge((TableAnswer){.number = 1, .rows = a.rows.count, .rules = a.rules.count});
	for (volatile bool on = true; on;) {
		put_made(&b);
		put_made(&a);
	}
}

/* Until the parent has cut it: then there is nothing behind this map. */
static void await_shrinking(const ElfMap *file)
{
	char byte;

	while (pread(OBJECT, &byte, 1, 0) == 1)
		;
	if (*(volatile char *)file->image)
		_exit(0);
}

static void spoil(UnwindTable *table, char how, uint64_t seed)
{
	size_t i = 1 + seed % (table->rows.count - 1);

	switch (how) {
	case 'u': /* not sorted */
		table->rows.items[i].pc = table->rows.items[i - 1].pc;
		break;
	case 'r':
		table->rows.items[i].rule = table->rules.count;
		break;
	case 'k':
		table->rules.items[seed % MADE_RULES].cfa = CFA_SIGNAL + 1;
		break;
	case 'b':
		table->rows.items[0].pc = 1;
		break;
	case 'z':
		table->rows.count = 0;
		break;
	case 'Z':
		table->rules.count = 0;
		break;
	}
}

static void misbehave(const struct behaviour *behaviour, const ElfMap *file)
{
	static int *volatile nowhere = (int *)16;
	char byte;

	switch (behaviour->what) {
	case 'c':
		*nowhere = 1;
		break;
	case 'a':
		abort();
	case 'e':
		_exit(0);
	case 's':
		spin();
		break;
	case 'f': /* takes no CPU time */
		while (read(SOCKET, &byte, 1) > 0)
			;
		break;
	case 'h': /* half an answer, and no more */
		if (write(SOCKET, "\1\0\0", 3) != 3)
			_exit(1);
		spin();
		break;
	case 'm':
		forge_counts(region.size, 1);
		break;
	case 'M': /* times 8 it is 8 */
		forge_counts((1ULL << 61) + 1, 1);
		break;
	case 'o': /* more than so small a file can have */
		forge_counts(100000, 1);
		break;
	case 'R':
		forge_counts(3, (1ULL << 60) + 1);
		break;
	case 'n':
		forge((TableAnswer){.number = 2, .result = -ENODATA});
		spin();
		break;
	case 'p': /* a result that it cannot have */
		forge((TableAnswer){.number = 1, .result = 17});
		spin();
		break;
	case 't': /* its own comes after this */
		forge((TableAnswer){.number = 1, .result = -ENODATA});
		break;
	case 'x':
		keep_changing(behaviour);
		break;
	case 'y':
		*(volatile uint8_t *)other_region.base = 1;
		break;
	case 'w':
		await_shrinking(file);
		break;
	}
}

static bool read_behaviour(Elf *elf, struct behaviour *ret_deed)
{
	size_t size;
	const char *image = elf_rawfile(elf, &size);

	if (!image || size < sizeof(Elf64_Ehdr) + sizeof(*ret_deed))
		return false;
	memcpy(ret_deed, image + sizeof(Elf64_Ehdr), sizeof(*ret_deed));
	return true;
}

static bool read_fake_link(Elf *elf, Companion *ret_companion)
{
	struct behaviour behaviour;

	if (!read_behaviour(elf, &behaviour) || !*behaviour.debuglink)
		return false;
	memcpy(ret_companion->name, behaviour.debuglink, sizeof(behaviour.debuglink));
	return true;
}

static int check_fake_link(Elf *elf, Elf *debug, int debug_fd, int64_t size_max)
{
	struct behaviour behaviour;

	(void)elf;
	(void)debug_fd;
	(void)size_max;
	return read_behaviour(debug, &behaviour) && behaviour.what != 'i' ? 0 : -ESTALE;
}

UnwindTable table_of_behaviour(const struct behaviour *behaviour)
{
	UnwindTable table = make_table(behaviour->seed + BASE_SVMA, behaviour->rows);

	if (behaviour->what == 'l')
		table.counts.code = table.counts.code_gaps = 100;
	return table;
}

static int build_fake_table(ElfMap *file, ElfMap *debug, uint64_t base_svma, UnwindTable *ret_table)
{
	struct behaviour behaviour;

	if (!read_behaviour(debug->elf ? debug->elf : file->elf, &behaviour))
		return -ENODATA;
	misbehave(&behaviour, file);
	if (behaviour.what == 'd' || base_svma != BASE_SVMA)
		return -ENODATA;
	*ret_table = table_of_behaviour(&behaviour);
	spoil(ret_table, behaviour.what, behaviour.seed);
	return 0;
}

void fake_table_builder_use(void)
{
	table_worker_calls = (TableWorkerCalls){
		.sandbox_start = start_with_region,
		.debug_link_read = read_fake_link,
		.debug_link_check = check_fake_link,
		.unwind_table_build = build_fake_table,
	};
}
