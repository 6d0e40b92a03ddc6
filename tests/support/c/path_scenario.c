/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "path_scenario.h"
#include "report_sections.h"
#include "test_tools.h"

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

void expect_line(const Scenario *s, const char *wanted)
{
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	report_path_line(stream, s->timeline);
	fclose(stream);
	if (!strstr(text, wanted))
		fail_msg("no \"%s\" in %s", wanted, text);
	free(text);
}
