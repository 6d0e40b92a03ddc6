/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_reasons_fixture.h - waits with stacks of functions of given names, for tests of their
 * reasons.
 */
#ifndef WALLPROF_TEST_WAIT_REASONS_FIXTURE_H
#define WALLPROF_TEST_WAIT_REASONS_FIXTURE_H

#include "frames_fixture.h"

#define KERNEL_TEXT 0xffffffff81000000
#define FRAMES_MAX  16

/* Adds a stack of the functions in names, separated by blanks. Returns its index. */
uint32_t stack_of(Fixture *fixture, const char *names, bool user);
uint32_t kernel_stack(Fixture *fixture, const char *names);

/* Adds a thread with one wait of 10 ns, which is returned. */
Interval *wait_in(Fixture *fixture, const char *names, enum reason reported, enum reason_rule rule);
/* Removes the threads again. */
void forget(Fixture *fixture);
/* Fails the test if a wait with this stack and reason does not get that reason and basis. */
void expect(Fixture *fixture, const char *names, enum reason reported, enum reason wanted,
	    const char *basis);

#endif
