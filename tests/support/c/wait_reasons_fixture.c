/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wait_reasons_fixture.h"
#include "futex_kinds.h"
#include "kernel_rules.h"
#include "test_tools.h"
#include "wait_fields.h"
#include "wait_reasons.h"
#include <asm/unistd_64.h>

uint32_t stack_of(Fixture *fixture, const char *names, bool user)
{
	static uint64_t next_of[] = {KERNEL_TEXT, BASE};
	_cleanup_free_ char *copy = xstrdup(names);
	uint64_t pcs[FRAMES_MAX], *next = &next_of[user];
	uint16_t count = 0;
	char *rest;

	for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		assert_true(count < FRAMES_MAX);
		*next += 0x100;
		/*
		 * The return address of a call; a user stack begins with the instruction that is
		 * executed.
		 */
		pcs[count] = (user ? AVMA : 0) + *next + (count > 0 || !user);
		count++;
		give_symbol(fixture, user, *next, *next, name, NULL);
	}
	return add_stack(fixture, user ? STACK_USER : 0, STACK_COMPLETE, pcs, count);
}

uint32_t kernel_stack(Fixture *fixture, const char *names)
{
	return stack_of(fixture, names, /* user= */ false);
}

Interval *wait_in(Fixture *fixture, const char *names, enum reason reported, enum reason_rule rule)
{
	Thread thread = {.start_ns = 0, .end_ns = 10};

	*vec_push(&thread.intervals) = (Interval){
		.user_stack = STACK_NONE,
		.kernel_stack = names ? kernel_stack(fixture, names) : STACK_NONE,
		.waker = THREAD_NONE,
		.cpu_user = THREAD_NONE,
		.syscall = -1,
		.state = STATE_BLOCKED,
		.reason = reported,
		.rule = rule,
	};
	thread.reason_ledger[reported] = 10;
	*vec_push(&fixture->timeline.threads) = thread;
	return thread.intervals.items;
}

void forget(Fixture *fixture)
{
	for (size_t i = 0; i < fixture->timeline.threads.count; i++) {
		vec_free(&fixture->timeline.threads.items[i].intervals);
		vec_free(&fixture->timeline.threads.items[i].request_waits);
		vec_free(&fixture->timeline.threads.items[i].faults);
		vec_free(&fixture->timeline.threads.items[i].waker_stacks);
	}
	vec_free(&fixture->timeline.threads);
	strings_free(&fixture->timeline.basis);
}

void expect(Fixture *fixture, const char *names, enum reason reported, enum reason wanted,
	    const char *basis)
{
	Interval *wait = wait_in(fixture, names, reported, RULE_STATE);
	_cleanup_free_ char *text = NULL;

	wait_reasons_by_stack(&fixture->timeline, fixture->frames);
	text = wait_basis(&fixture->timeline, wait);
	if (wait->reason != wanted || strcmp(text, basis) != 0)
		fail_msg("%s: is %s by %s, should be %s by %s", names,
			 reason_info[wait->reason].leaf, text, reason_info[wanted].leaf, basis);
	assert_int_equal(fixture->timeline.threads.items[0].reason_ledger[wanted], 10);
	forget(fixture);
}
