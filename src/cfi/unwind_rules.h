/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_rules.h - a list in which each rule is once, and the number of a rule in it.
 */
#ifndef WALLPROF_UNWIND_RULES_H
#define WALLPROF_UNWIND_RULES_H

#include "unwind_rows.h"
#include "util.h"

typedef VEC(struct unwind_rule) UnwindRules;

/*
 * A rule as two words, for those who make and look up rules by the million: it stays in registers.
 * One that is written field by field, or word by word, and then read as a whole, is not there
 * before all of it has reached the cache, and this took a fifth of the time that a table takes.
 */
typedef struct UnwindRuleWords {
	uint64_t low, high;
} UnwindRuleWords;

_Static_assert(sizeof(UnwindRuleWords) == sizeof(struct unwind_rule), "nothing between the fields");

static inline UnwindRuleWords unwind_rule_words(const struct unwind_rule *rule)
{
	UnwindRuleWords words;

	memcpy(&words, rule, sizeof(words));
	return words;
}

/* With the rule itself: a look-up touches nothing else. */
typedef struct UnwindRuleSlot {
	UnwindRuleWords rule;
	uint32_t number; /* of the rule + 1; 0 = free */
} UnwindRuleSlot;

typedef struct UnwindRuleIndex {
	UnwindRules *rules; /* not owned; nobody else adds to it */
	UnwindRuleSlot *slots;
	size_t mask;
} UnwindRuleIndex;

/* The rule's slot, or the free one where it belongs. There are slots. */
static inline UnwindRuleSlot *unwind_rule_slot(const UnwindRuleIndex *index, UnwindRuleWords rule)
{
	uint64_t hash = (rule.low * 0x9e3779b97f4a7c15ULL ^ rule.high) * 0xd6e8feb86659fd93ULL;
	size_t i = hash >> 32 & index->mask;

	while (index->slots[i].number &&
	       (index->slots[i].rule.low != rule.low || index->slots[i].rule.high != rule.high))
		i = (i + 1) & index->mask;
	return &index->slots[i];
}

/* For unwind_rule_number(): one that is not there. */
uint32_t unwind_rule_add(UnwindRuleIndex *index, UnwindRuleWords rule, uint32_t limit);

/* The number of the rule, which is added if it is not there and there are fewer than limit;
 * UINT32_MAX: there are not. */
static inline uint32_t unwind_rule_number(UnwindRuleIndex *index, UnwindRuleWords rule,
					  uint32_t limit)
{
	uint32_t number = index->slots ? unwind_rule_slot(index, rule)->number : 0;

	return number ? number - 1 : unwind_rule_add(index, rule, limit);
}
void unwind_rule_index_free(UnwindRuleIndex *index);

/* Is every field of each rule one of those that unwind_rows.h has? */
bool unwind_rules_valid(const UnwindRules *rules);

#endif
