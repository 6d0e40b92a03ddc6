/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * path_scenario.h - a scenario of threads of one process, from tid 20 on, and its path as reported.
 */
#ifndef WALLPROF_TEST_PATH_SCENARIO_H
#define WALLPROF_TEST_PATH_SCENARIO_H

#include "scenario.h"

#define FIRST 20

/* The first thread runs from the beginning. */
void begin(Scenario *s, int length);

/* Creates a thread of the process at one time, which gets a CPU at another. */
void create(Scenario *s, int ms, uint32_t tid, uint32_t creator, int runs_ms);

/*
 * Finds the path that ends with the thread, and compares it with a drawing of which thread is on it
 * in each millisecond: 'a' for thread 20, 'b' for 21, …; a capital letter if it ran.
 */
void expect_path(Scenario *s, uint32_t tid, const char *wanted);

/* Fails the test if the line about the path does not contain the text. */
void expect_line(const Scenario *s, const char *wanted);

#endif
