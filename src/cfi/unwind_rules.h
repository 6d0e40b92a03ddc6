/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_rules.h - a list of unique rules, and an index from a rule to its number in the list.
 */
#ifndef WALLPROF_UNWIND_RULES_H
#define WALLPROF_UNWIND_RULES_H

#include "unwind_rows.h"
#include "util.h"

typedef VEC(struct unwind_rule) UnwindRules;

/*
 * A rule as two words, for code that makes and looks up millions of rules: it stays in registers. A
 * rule that is written by field, or by word, and then read as a whole stalls until all of it has
 * reached the cache; this was a fifth of the time to build a table.
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

/* The slot contains the rule itself: a lookup touches nothing else. */
typedef struct UnwindRuleSlot {
	UnwindRuleWords rule;
	uint32_t number; /* of the rule, plus 1; 0 = free */
} UnwindRuleSlot;

typedef struct UnwindRuleIndex {
	UnwindRules *rules; /* not owned; only the index adds to it */
	UnwindRuleSlot *slots;
	size_t mask;
} UnwindRuleIndex;

/* Returns the rule's slot, or the free one where it belongs. There must be slots. */
static inline UnwindRuleSlot *unwind_rule_slot(const UnwindRuleIndex *index, UnwindRuleWords rule)
{
	uint64_t hash = (rule.low * 0x9e3779b97f4a7c15ULL ^ rule.high) * 0xd6e8feb86659fd93ULL;
	size_t i = hash >> 32 & index->mask;

	while (index->slots[i].number &&
	       (index->slots[i].rule.low != rule.low || index->slots[i].rule.high != rule.high))
		i = (i + 1) & index->mask;
	return &index->slots[i];
}

/* For unwind_rule_number(): adds a rule that is not in the list. */
uint32_t unwind_rule_add(UnwindRuleIndex *index, UnwindRuleWords rule, uint32_t limit);

/*
 * Returns the number of the rule, which is added if it is new and there are fewer than limit;
 * UINT32_MAX: the list is full.
 */
static inline uint32_t unwind_rule_number(UnwindRuleIndex *index, UnwindRuleWords rule,
					  uint32_t limit)
{
	uint32_t number = index->slots ? unwind_rule_slot(index, rule)->number : 0;

	return number ? number - 1 : unwind_rule_add(index, rule, limit);
}
void unwind_rule_index_free(UnwindRuleIndex *index);

/* Returns whether every field of each rule has a value that unwind_rows.h defines. */
bool unwind_rules_valid(const UnwindRules *rules);

#endif
