/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_rules.h"

#define FIRST_SLOTS 256

static size_t slot_of(const UnwindRuleIndex *index, const struct unwind_rule *rule)
{
	uint64_t words[2];

	_Static_assert(sizeof(words) == sizeof(*rule), "no byte is left out, and none is padding");
	memcpy(words, rule, sizeof(words));
	return hash_mix(words[0], words[1]) & index->mask;
}

static void grow(UnwindRuleIndex *index)
{
	size_t slots = index->slots ? 2 * (index->mask + 1) : FIRST_SLOTS;

	free(index->slots);
	index->slots = xcalloc(slots, sizeof(*index->slots));
	index->mask = slots - 1;
	for (size_t i = 0; i < index->rules->count; i++) {
		size_t slot = slot_of(index, &index->rules->items[i]);

		while (index->slots[slot])
			slot = (slot + 1) & index->mask;
		index->slots[slot] = i + 1;
	}
}

uint32_t unwind_rule_number(UnwindRuleIndex *index, const struct unwind_rule *rule, uint32_t limit)
{
	size_t slot;

	if (!index->slots || index->rules->count > index->mask / 2)
		grow(index);
	slot = slot_of(index, rule);
	while (index->slots[slot]) {
		uint32_t number = index->slots[slot] - 1;

		if (!memcmp(&index->rules->items[number], rule, sizeof(*rule)))
			return number;
		slot = (slot + 1) & index->mask;
	}
	if (index->rules->count >= limit)
		return UINT32_MAX;
	*vec_push(index->rules) = *rule;
	index->slots[slot] = index->rules->count;
	return index->rules->count - 1;
}

void unwind_rule_index_free(UnwindRuleIndex *index)
{
	free(index->slots);
	*index = (UnwindRuleIndex){};
}

static bool is_valid_cfa(const struct unwind_rule *rule)
{
	switch (rule->cfa) {
	case CFA_NONE:
		return rule->extra >= NONE_GAP && rule->extra <= NONE_FOREIGN;
	case CFA_END:
	case CFA_SIGNAL:
		return true;
	case CFA_REG:
	case CFA_DEREF:
		return rule->cfa_reg < DWARF_REGS;
	case CFA_PLT:
		return rule->extra >= 0 && rule->extra < 16;
	}
	return false;
}

bool unwind_rule_valid(const struct unwind_rule *rule)
{
	bool ra = rule->ra == RA_AT_CFA || (rule->ra >= RA_REG && rule->ra < RA_REG + DWARF_REGS);
	bool bp =
		rule->bp <= BP_LOST || (rule->bp >= BP_IN_REG && rule->bp < BP_IN_REG + DWARF_REGS);

	return is_valid_cfa(rule) && ra && bp && rule->bx <= BX_LOST && rule->reserved == 0;
}
