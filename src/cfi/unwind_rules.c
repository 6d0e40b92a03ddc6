/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_rules.h"

#define FIRST_SLOTS 256

static void fill_slot(UnwindRuleIndex *index, UnwindRuleWords rule, uint32_t number)
{
	*unwind_rule_slot(index, rule) = (UnwindRuleSlot){.rule = rule, .number = number + 1};
}

static void grow(UnwindRuleIndex *index)
{
	size_t slots = index->slots ? 2 * (index->mask + 1) : FIRST_SLOTS;

	free(index->slots);
	index->slots = xcalloc(slots, sizeof(*index->slots));
	index->mask = slots - 1;
	for (size_t i = 0; i < index->rules->count; i++)
		fill_slot(index, unwind_rule_words(&index->rules->items[i]), i);
}

uint32_t unwind_rule_add(UnwindRuleIndex *index, UnwindRuleWords rule, uint32_t limit)
{
	uint32_t number = index->rules->count;

	if (number >= limit)
		return UINT32_MAX;
	if (!index->slots || number >= index->mask / 2)
		grow(index);
	memcpy(vec_push(index->rules), &rule, sizeof(rule));
	fill_slot(index, rule, number);
	return number;
}

void unwind_rule_index_free(UnwindRuleIndex *index)
{
	free(index->slots);
	*index = (UnwindRuleIndex){};
}

/* The walk follows rbx, rbp and rsp elsewhere than with the other registers. */
static bool is_valid_index(uint8_t reg)
{
	return reg != DWARF_RBX && reg != DWARF_RBP && reg != DWARF_RSP;
}

static bool is_valid_cfa(const struct unwind_rule *rule)
{
	switch (rule->cfa) {
	case CFA_NONE:
		return rule->extra >= NONE_GAP && rule->extra <= NONE_UNKNOWN_CODE;
	case CFA_END:
	case CFA_SIGNAL:
		return true;
	case CFA_REG:
		return rule->cfa_reg < DWARF_REGS;
	case CFA_DEREF:
		return is_valid_index(rule->cfa_reg >> CFA_INDEX_SHIFT);
	case CFA_PLT:
		return rule->extra >= 0 && rule->extra < 16;
	}
	return false;
}

static bool is_valid(const struct unwind_rule *rule)
{
	bool ra = rule->ra == RA_AT_CFA || (rule->ra >= RA_REG && rule->ra < RA_REG + DWARF_REGS);
	bool bp =
		rule->bp <= BP_LOST || (rule->bp >= BP_IN_REG && rule->bp < BP_IN_REG + DWARF_REGS);

	return is_valid_cfa(rule) && ra && bp && rule->bx <= BX_LOST &&
	       rule->stack <= (rule->cfa == CFA_REG || rule->cfa == CFA_DEREF ? STACK_SAME_GUESS
									      : STACK_SAME);
}

bool unwind_rules_valid(const UnwindRules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		if (!is_valid(&rules->items[i]))
			return false;
	return true;
}
