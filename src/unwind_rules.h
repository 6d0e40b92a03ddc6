/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_rules.h - a list in which each rule is once, and the number of a rule in it.
 */
#ifndef WALLPROF_UNWIND_RULES_H
#define WALLPROF_UNWIND_RULES_H

#include "unwind.h"
#include "util.h"

typedef VEC(struct unwind_rule) UnwindRules;

typedef struct UnwindRuleIndex {
	UnwindRules *rules; /* not owned; nobody else adds to it */
	uint32_t *slots;    /* number of a rule + 1; 0 = free */
	size_t mask;
} UnwindRuleIndex;

/* The number of the rule, which is added if it is not there and there are fewer than limit;
 * UINT32_MAX: there are not. */
uint32_t unwind_rule_number(UnwindRuleIndex *index, const struct unwind_rule *rule, uint32_t limit);
void unwind_rule_index_free(UnwindRuleIndex *index);

/* Is every field one of those that unwind.h has? */
bool unwind_rule_valid(const struct unwind_rule *rule);

#endif
