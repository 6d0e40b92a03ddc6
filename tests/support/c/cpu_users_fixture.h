/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpu_users_fixture.h - the parts of a wait for a CPU as text, for tests of the division. */
#ifndef WALLPROF_TEST_CPU_USERS_FIXTURE_H
#define WALLPROF_TEST_CPU_USERS_FIXTURE_H

#include "cpu_users.h"

/* Returns the parts of interval i, which the caller frees. */
char *cpu_users_of(const Timeline *timeline, const Thread *thread, size_t i);

#endif
