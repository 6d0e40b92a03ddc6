/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "script_text.h"
#include <string.h>

#define REPLACEMENT 0xfffd
#define ELLIPSIS    0x2026

static char *put_utf8(char *to, uint32_t point)
{
	if (point >= 0xdc80 && point <= 0xdcff) {
		*to++ = (char)(point & 0xff);
		return to;
	}
	if (point == 0 || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		point = REPLACEMENT;
	if (point < 0x80) {
		*to++ = (char)point;
	} else if (point < 0x800) {
		*to++ = (char)(0xc0 | point >> 6);
		*to++ = (char)(0x80 | (point & 0x3f));
	} else if (point < 0x10000) {
		*to++ = (char)(0xe0 | point >> 12);
		*to++ = (char)(0x80 | (point >> 6 & 0x3f));
		*to++ = (char)(0x80 | (point & 0x3f));
	} else {
		*to++ = (char)(0xf0 | point >> 18);
		*to++ = (char)(0x80 | (point >> 12 & 0x3f));
		*to++ = (char)(0x80 | (point >> 6 & 0x3f));
		*to++ = (char)(0x80 | (point & 0x3f));
	}
	return to;
}

char *script_text(const uint8_t *bytes, size_t size, size_t room, uint8_t kind)
{
	char *text, *to;

	if ((kind != 1 && kind != 2 && kind != 4) || size < kind)
		return NULL;
	text = to = xmalloc(4 * (size / kind + 1) + 1);
	for (size_t i = 0; i + kind <= size; i += kind) {
		uint32_t point = 0;

		memcpy(&point, bytes + i, kind);
		to = put_utf8(to, point);
	}
	if (size >= room)
		to = put_utf8(to, ELLIPSIS);
	*to = '\0';
	return text;
}
