/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_sections.h"

/* Where the terminal lacks a colour, it has the nearest one: orange is yellow, light red is red. */
static const enum page_style styles[CATEGORY_COUNT] = {
	[CATEGORY_USER] = PAGE_YELLOW,	[CATEGORY_KERNEL] = PAGE_YELLOW,
	[CATEGORY_DISK] = PAGE_RED,	[CATEGORY_FAULT] = PAGE_RED,
	[CATEGORY_LOCK] = PAGE_MAGENTA, [CATEGORY_THREAD] = PAGE_BLUE,
	[CATEGORY_NETWORK] = PAGE_BLUE, [CATEGORY_PIPE] = PAGE_BLUE,
	[CATEGORY_RUNNABLE] = PAGE_RED, [CATEGORY_IDLE] = PAGE_DIM,
	[CATEGORY_JOBS] = PAGE_DIM,	[CATEGORY_UNKNOWN] = PAGE_DIM,
};

const char *report_colour(const Page *page, enum category category)
{
	/* Categories without a line have the terminal's own colour. */
	return styles[category] == PAGE_PLAIN ? "" : page_style(page, styles[category]);
}

char *report_reason_text(const Page *page, enum reason reason)
{
	return xasprintf("%s%s%s", report_colour(page, reason_info[reason].category),
			 reason_info[reason].leaf, page_style(page, PAGE_PLAIN));
}

const char *report_text_colour(const Page *page, const char *text)
{
	if (!strncmp(text, "running", strlen("running")))
		return report_colour(page, CATEGORY_USER);
	for (size_t i = 0; i < REASON_COUNT && *text == '['; i++) {
		const char *leaf = reason_info[i].leaf;

		if (leaf && !strncmp(text, leaf, strlen(leaf)))
			return report_colour(page, reason_info[i].category);
	}
	return "";
}
