/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "remedy.h"
#include "util.h"
#include <string.h>

char *remedy_export(const char *capture_path)
{
	_cleanup_free_ char *capture = shell_word(capture_path);

	return xasprintf("wallprof export -o /other/prof.json %s", capture);
}

char *remedy_summary(const char *capture_path)
{
	_cleanup_free_ char *capture = shell_word(capture_path);

	return xasprintf("wallprof report --json %s >/other/summary.json", capture);
}

const char *remedy_other_place(int error)
{
	return strchr(error_text(error), ';') ? "" : "; choose another place with -o";
}
