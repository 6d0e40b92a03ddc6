/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "text.h"
#include "json_writer.h"
#include "util.h"
#include <inttypes.h>
#include <stdio.h>

char *text_printable(const char *name)
{
	char *text = utf8_sanitize(name ? name : "");

	if (!text)
		text = xstrdup(name ? name : "");
	mask_controls(text);
	return text;
}

char *text_others(size_t count, bool files)
{
	const char *plural = count == 1 ? "" : "s";

	return files ? xasprintf("%zu other file%s", count, plural)
		     : xasprintf("%zu other%s", count, plural);
}

char *text_then_runnable(uint64_t ns, uint64_t delay_ns)
{
	if (delay_ns == 0 || delay_ns < ns / 20)
		return xstrdup("");
	return xasprintf(", then %s runnable", DURATION(delay_ns));
}

const char *text_duration(char text[TEXT_SIZE], uint64_t ns)
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

const char *text_percent(char text[TEXT_SIZE], uint64_t ns, uint64_t all_ns)
{
	*text = '\0';
	if (all_ns > 0)
		snprintf(text, TEXT_SIZE, "%.1f %%", 100.0 * ns / all_ns);
	return text;
}

const char *text_count(char text[TEXT_SIZE], uint64_t count)
{
	snprintf(text, TEXT_SIZE, "%" PRIu64, count);
	return text;
}

char *text_hex(char *to, const uint8_t *bytes, size_t count, const char *digits)
{
	for (size_t i = 0; i < count; i++) {
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
	*to = '\0';
	return to;
}
