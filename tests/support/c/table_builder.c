/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_builder.h"

UnwindTable make_table(uint64_t seed, size_t rows)
{
	UnwindTable table = {};
	uint32_t pc = 0;

	*vec_push(&table.rules) = (struct unwind_rule){.cfa = CFA_NONE, .extra = NONE_GAP};
	for (int32_t i = 1; i < MADE_RULES; i++)
		*vec_push(&table.rules) = (struct unwind_rule){
			.cfa = CFA_REG,
			.cfa_reg = i % 2 ? DWARF_RSP : DWARF_RBP,
			.bp = i % 3 ? BP_AT_CFA : BP_SAME,
			.cfa_offset = 8 * i,
			.bp_offset = i % 3 ? -8 * i : 0,
		};
	/* One of each other kind that has values of its own. */
	table.rules.items[3].cfa = CFA_DEREF;
	table.rules.items[4].cfa = CFA_DEREF;
	table.rules.items[4].cfa_reg |= 12 << CFA_INDEX_SHIFT;
	table.rules.items[4].extra = -8;
	table.rules.items[5].cfa = CFA_PLT;
	table.rules.items[5].extra = 11;
	table.rules.items[6] = (struct unwind_rule){.cfa = CFA_END};
	table.rules.items[7] = (struct unwind_rule){.cfa = CFA_SIGNAL};
	for (int16_t i = NONE_GAP + 1; i <= NONE_UNKNOWN_CODE; i++)
		table.rules.items[7 + i] = (struct unwind_rule){.cfa = CFA_NONE, .extra = i};
	table.rules.items[20].ra = RA_REG + 10;
	for (uint8_t i = 0; i < BP_LOST; i++)
		table.rules.items[21 + i].bp = i + 1;
	table.rules.items[26].bp = BP_IN_REG + 12;
	table.rules.items[27].bx = BX_AT_CFA;
	table.rules.items[27].bx_offset = -16;
	table.rules.items[28].bx = BX_LOST;
	for (uint8_t i = STACK_OTHER; i <= STACK_SAME_GUESS; i++)
		table.rules.items[29 + i].stack = i;
	for (size_t i = 0; i < rows; i++) {
		uint32_t rule = 1 + (2 * i + hash_mix(seed, i) % 2) % (MADE_RULES - 1);
		bool gap = i == 0 || i == rows - 1;

		*vec_push(&table.rows) = (struct unwind_row){.pc = pc, .rule = gap ? 0 : rule};
		pc += 1 + hash_mix(i, seed) % 40;
	}
	memset(&table.counts, 0, sizeof(table.counts));
	memcpy(&table.counts, &seed, MIN(sizeof(seed), sizeof(table.counts)));
	return table;
}

bool same_tables(const UnwindTable *a, const UnwindTable *b)
{
	return a->rows.count == b->rows.count && a->rules.count == b->rules.count &&
	       !memcmp(a->rows.items, b->rows.items, a->rows.count * sizeof(*a->rows.items)) &&
	       !memcmp(a->rules.items, b->rules.items, a->rules.count * sizeof(*a->rules.items)) &&
	       !memcmp(&a->counts, &b->counts, sizeof(a->counts));
}
