/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frames_fixture.h"
#include "make_record.h"

void give_record(const Fixture *fixture, struct record *record)
{
	frames_add(fixture->frames, record);
	free(record);
}

void give_symbol(const Fixture *fixture, uint32_t file, uint64_t address, uint64_t function,
		 const char *name, const char *module)
{
	give_record(fixture, make_symbol(0, file, address, function, name, module));
}

uint32_t add_stack(Fixture *fixture, int flags, int result, const uint64_t *pcs, uint16_t count)
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

int frames_fixture_set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->frames = frames_new();
	give_record(fixture, make_file(1, 0, "/usr/lib/libfoo.so.1", BASE));
	give_record(fixture, make_file(2, 0, "/usr/lib/libbar.so", 0));
	give_record(fixture, make_mapping(10, 0, PROCESS, 1, AVMA, AVMA + 0x10000, AVMA));
	*state = fixture;
	return 0;
}

int frames_fixture_tear_down(void **state)
{
	Fixture *fixture = *state;

	frames_free(fixture->frames);
	vec_free(&fixture->timeline.stacks);
	vec_free(&fixture->timeline.frames);
	free(fixture);
	return 0;
}

const char *resolve(const Fixture *fixture, uint64_t ns, uint32_t user, uint32_t kernel, bool exact)
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
