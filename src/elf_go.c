/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_go.c - functions of a Go program by its own table, which stays when its symbols are stripped.
 */
#include "elf_symbols.h"
#include "pclntab.h"
#include <string.h>

/* More than any program has. */
#define FUNCTIONS_MAX (16u << 20)

void elf_symbols_add_go(ElfSymbols *symbols, Elf *elf)
{
	size_t base = symbols->names.count;
	Pclntab table;

	if (pclntab_open(elf, &table) < 0 || table.names.size >= INT32_MAX - base)
		return;
	vec_append(&symbols->names, (const char *)table.names.at, table.names.size);
	for (uint32_t i = 0; i < MIN(table.count, FUNCTIONS_MAX); i++) {
		PclntabFunction function;

		if (!pclntab_function(&table, i, &function) ||
		    !*pclntab_name(&table, function.name))
			continue;
		*vec_push(&symbols->candidates) = (ElfCandidate){
			.symbol = {.start = function.start,
				   .size = function.end - function.start,
				   .name = base + function.name},
			.limit = function.end,
			.source = SYMBOL_GO,
		};
	}
}
