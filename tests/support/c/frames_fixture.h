/* SPDX-License-Identifier: GPL-2.0-or-later */
/* frames_fixture.h - stacks of one process with one library, and their names as one text. */
#ifndef WALLPROF_TEST_FRAMES_FIXTURE_H
#define WALLPROF_TEST_FRAMES_FIXTURE_H

#include "frames.h"
#include "make_record.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PROCESS 100
#define AVMA	0x7f0000000000
#define BASE	0x1000 /* base SVMA of file 1 */

typedef struct Fixture {
	Frames *frames;
	Timeline timeline;
} Fixture;

static inline void give(const Fixture *fixture, struct record *record)
{
	frames_add(fixture->frames, record);
	free(record);
}

static inline void give_symbol(const Fixture *fixture, uint32_t file, uint64_t address,
			       uint64_t function, const char *name, const char *module)
{
	give(fixture, make_symbol(0, file, address, function, name, module));
}

static inline uint32_t add_stack(Fixture *fixture, int flags, int result, const uint64_t *pcs,
				 uint16_t count)
{
	*vec_push(&fixture->timeline.stacks) = (StackDef){
		.first = fixture->timeline.frames.count,
		.count = count,
		.result = result,
		.flags = flags,
		.defined = true,
	};
	for (uint16_t i = 0; i < count; i++)
		*vec_push(&fixture->timeline.frames) = pcs[i];
	return fixture->timeline.stacks.count - 1;
}

static inline int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->frames = frames_new();
	give(fixture, make_file(1, 0, "/usr/lib/libfoo.so.1", BASE));
	give(fixture, make_file(2, 0, "/usr/lib/libbar.so", 0));
	give(fixture, make_mapping(10, 0, PROCESS, 1, AVMA, AVMA + 0x10000, AVMA));
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	Fixture *fixture = *state;

	frames_free(fixture->frames);
	vec_free(&fixture->timeline.stacks);
	vec_free(&fixture->timeline.frames);
	free(fixture);
	return 0;
}

/* The names of a resolved stack, root first, joined by ';' (valid until the next call). */
static inline const char *resolve(const Fixture *fixture, uint64_t ns, uint32_t user,
				  uint32_t kernel, bool exact)
{
	static char text[4096];
	const uint32_t *indexes;
	size_t count = frames_resolve(fixture->frames, &fixture->timeline, PROCESS, ns, user,
				      kernel, exact, &indexes);

	*text = '\0';
	for (size_t i = 0; i < count; i++) {
		const Frame *frame = &fixture->frames->list.items[indexes[i]];

		if (i > 0)
			strcat(text, ";");
		strcat(text, strings_get(&fixture->frames->strings, frame->function));
	}
	return text;
}

static inline const Frame *last_frame(const Fixture *fixture, uint32_t user, uint32_t kernel,
				      bool exact)
{
	const uint32_t *indexes;
	size_t count = frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, user,
				      kernel, exact, &indexes);

	assert_true(count > 0);
	return &fixture->frames->list.items[indexes[count - 1]];
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
