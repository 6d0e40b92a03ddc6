/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_go.c - functions of a Go program by its own table, which strip(1) does not remove.
 */
#include "elf_symbols.h"
#include <string.h>

void elf_symbols_add_go(ElfSymbols *symbols, const Pclntab *table)
{
	size_t base = symbols->names.count;

	if (table->names.size >= INT32_MAX - base)
		return;
	vec_append(&symbols->names, (const char *)table->names.at, table->names.size);
	for (uint32_t i = 0; i < table->count; i++) {
		PclntabFunction function;

		if (!pclntab_function(table, i, &function) || !*pclntab_name(table, function.name))
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
