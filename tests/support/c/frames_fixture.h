/* SPDX-License-Identifier: GPL-2.0-or-later */
/* frames_fixture.h - stacks of one process with one library, and their names as one text. */
#ifndef WALLPROF_TEST_FRAMES_FIXTURE_H
#define WALLPROF_TEST_FRAMES_FIXTURE_H

#include "frames.h"
#include "test_tools.h"

#define PROCESS 100
#define AVMA	0x7f0000000000
#define BASE	0x1000 /* base SVMA of file 1 */

typedef struct Fixture {
	Frames *frames;
	Timeline timeline;
} Fixture;

/* Adds a record to the frames, and frees it. */
void give_record(const Fixture *fixture, struct record *record);
void give_symbol(const Fixture *fixture, uint32_t file, uint64_t address, uint64_t function,
		 const char *name, const char *module);
/* Adds a stack to the timeline. Returns its index. */
uint32_t add_stack(Fixture *fixture, int flags, int result, const uint64_t *pcs, uint16_t count);

/* The fixture has two libraries; the first of them is mapped at AVMA. */
int frames_fixture_set_up(void **state);
int frames_fixture_tear_down(void **state);
#define WITH_FIXTURE(test)                                                                         \
	cmocka_unit_test_setup_teardown(test, frames_fixture_set_up, frames_fixture_tear_down)

/* Returns the names of a resolved stack, root first, joined by ';', until the next call. */
const char *resolve(const Fixture *fixture, uint64_t ns, uint32_t user, uint32_t kernel,
		    bool exact);

#endif
