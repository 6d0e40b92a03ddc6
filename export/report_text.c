/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_text.h"
#include "json.h"
#include "util.h"
#include <stdio.h>

char *printable(const char *name)
{
	char *text = utf8_sanitize(name ? name : "");

	if (!text)
		text = xstrdup(name ? name : "");
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] < 0xa0) /* U+0080 … U+009F are control characters too */
			p[0] = p[1] = '?';
	}
	return text;
}

const char *duration(char text[TEXT_SIZE], uint64_t ns)
{
	if (ns >= NSEC_PER_SEC)
		snprintf(text, TEXT_SIZE, "%.3f s", (double)ns / NSEC_PER_SEC);
	else if (ns >= NSEC_PER_MSEC)
		snprintf(text, TEXT_SIZE, "%.3f ms", (double)ns / NSEC_PER_MSEC);
	else if (ns > 0)
		snprintf(text, TEXT_SIZE, "%.1f us", (double)ns / NSEC_PER_USEC);
	else
		snprintf(text, TEXT_SIZE, "0 s");
	return text;
}
