/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "path_scenario.h"
#include "critical_path.h"
#include "report_sections.h"
#include "test_tools.h"
#include <string.h>

void begin(Scenario *s, int length)
{
	scenario_begin(s, length, false);
	birth(at(s, 0), FIRST, FIRST);
	wake_new(at(s, 0), FIRST, 10);
	in(at(s, 0), FIRST, 0);
}

void create(Scenario *s, int ms, uint32_t tid, uint32_t creator, int runs_ms)
{
	birth(at(s, ms), tid, FIRST);
	wake_new(at(s, ms), tid, creator);
	in(at(s, runs_ms), tid, 1);
}

void expect_path(Scenario *s, uint32_t tid, const char *wanted)
{
	const Thread *path_track = &s->timeline->path.track;
	char drawn[SCENARIO_LENGTH + 1] = {};

	critical_path_find(s->timeline, critical_path_thread(s->timeline, tid + 1000));
	check_thread(s->timeline, path_track);
	memset(drawn, '.', s->length);
	for (size_t i = 0; i < path_track->intervals.count; i++) {
		const Thread *owner = interval_owner(s->timeline, path_track, i);
		char letter = owner->tid - FIRST +
			      (path_track->intervals.items[i].state == STATE_RUNNING ? 'A' : 'a');

		for (int ms = 0; ms < s->length; ms++)
			if (scenario_ns(ms) >= path_track->intervals.items[i].start_ns &&
			    scenario_ns(ms) < interval_end(path_track, i))
				drawn[ms] = letter;
	}
	assert_string_equal(drawn, wanted);
}

void expect_line(const Scenario *s, const char *wanted)
{
	char *text = report_path_text(s->timeline);

	if (!strstr(text, wanted))
		fail_msg("no \"%s\" in %s", wanted, text);
	free(text);
}
