/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json_writer.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
				  "25262728293031323334353637383940414243444546474849"
				  "50515253545556575859606162636465666768697071727374"
				  "75767778798081828384858687888990919293949596979899";

char *json_format_u64(char *p, uint64_t value)
{
	char digits[20];
	char *end = digits + sizeof(digits), *d = end;

	while (value >= 100) {
		d -= 2;
		memcpy(d, digit_pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		d -= 2;
		memcpy(d, digit_pairs + value * 2, 2);
	} else {
		*--d = '0' + value;
	}
	memcpy(p, d, end - d);
	return p + (end - d);
}

char *json_format_ms(char *p, uint64_t ns)
{
	uint32_t fraction = ns % NSEC_PER_MSEC;

	p = json_format_u64(p, ns / NSEC_PER_MSEC);
	if (fraction == 0)
		return p;
	*p = '.';
	memcpy(p + 1, digit_pairs + fraction / 10000 * 2, 2);
	memcpy(p + 3, digit_pairs + fraction / 100 % 100 * 2, 2);
	memcpy(p + 5, digit_pairs + fraction % 100 * 2, 2);
	p += 7;
	while (p[-1] == '0')
		p--;
	return p;
}

char *json_format_us(char *p, uint64_t ns)
{
	uint32_t fraction = ns % 1000;

	p = json_format_u64(p, ns / 1000);
	if (fraction == 0)
		return p;
	*p = '.';
	p[1] = '0' + fraction / 100;
	memcpy(p + 2, digit_pairs + fraction % 100 * 2, 2);
	p += 4;
	while (p[-1] == '0')
		p--;
	return p;
}

static void json_literal(Json *json, const char *text, size_t length)
{
	char *p = json_value(json, length);

	memcpy(p, text, length);
	json_value_end(json, p + length);
}

void json_s64(Json *json, int64_t value)
{
	char *p = json_value(json, FORMAT_MAX);
	uint64_t magnitude = value;

	if (value < 0) {
		*p++ = '-';
		magnitude = -magnitude;
	}
	json_value_end(json, json_format_u64(p, magnitude));
}

void json_bool(Json *json, bool value)
{
	if (value)
		json_literal(json, "true", 4);
	else
		json_literal(json, "false", 5);
}

void json_put_null(Json *json)
{
	json_literal(json, "null", 4);
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t utf8_length(const char *s)
{
	unsigned char lead = s[0], next = s[0] ? s[1] : 0;

	if (lead == 0)
		return 0;
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4 || !is_continuation(s[1]))
		return 0;
	if (lead < 0xe0)
		return 2;
	if (!is_continuation(s[2]))
		return 0;
	/* Overlong forms and surrogates are not valid. */
	if (lead < 0xf0)
		return (lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) ? 0 : 3;
	if (!is_continuation(s[3]))
		return 0;
	return (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f) ? 0 : 4;
}

char *utf8_sanitize(const char *s)
{
	const char *bad = s;
	size_t length;

	while ((length = utf8_length(bad)) > 0)
		bad += length;
	if (*bad == '\0')
		return NULL;

	char *copy = xmalloc(strlen(s) * strlen(REPLACEMENT) + 1), *p = copy;
	while (*s) {
		length = utf8_length(s);
		if (length > 0) {
			memcpy(p, s, length);
			p += length;
			s += length;
		} else {
			p = stpcpy(p, REPLACEMENT);
			s++;
		}
	}
	*p = '\0';
	return copy;
}

/* Writes one character of a string, escaped, at p; moves *s to the next one. */
static char *put_character(char *p, const char **s)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char c = **s;
	size_t length = utf8_length(*s);

	if (length == 0) {
		*s += 1;
		return mempcpy(p, REPLACEMENT, strlen(REPLACEMENT));
	}
	if (c == '\n' || c == '\t') { /* every line of a source has them */
		*p++ = '\\';
		*p++ = c == '\n' ? 'n' : 't';
		*s += 1;
		return p;
	}
	if (c < 0x20) {
		p = mempcpy(p, "\\u00", 4);
		*p++ = hex[c >> 4];
		*p++ = hex[c & 15];
		*s += 1;
		return p;
	}
	if (c == '"' || c == '\\')
		*p++ = '\\';
	p = mempcpy(p, *s, length);
	*s += length;
	return p;
}

void json_text(Json *json, const char *s, size_t size)
{
	const char *end = s + size;
	Output *out = json->out;
	char *p = json_value(json, 1);

	*p = '"';
	json_value_end(json, p + 1);
	while (s < end) {
		p = output_reserve(out, 8);
		json_value_end(json, put_character(p, &s));
	}
	*output_reserve(out, 1) = '"';
	out->used++;
}

void json_put_string(Json *json, const char *s)
{
	json_text(json, s, strlen(s));
}

static void json_begin(Json *json, char c)
{
	char *p = json_value(json, 1);

	*p = c;
	json_value_end(json, p + 1);
	json->comma = false;
}

static void json_end(Json *json, char c)
{
	*output_reserve(json->out, 1) = c;
	json->out->used++;
	json->comma = true;
}

void json_begin_object(Json *json)
{
	json_begin(json, '{');
}

void json_end_object(Json *json)
{
	json_end(json, '}');
}

void json_begin_array(Json *json)
{
	json_begin(json, '[');
}

void json_end_array(Json *json)
{
	json_end(json, ']');
}

void json_key(Json *json, const char *key)
{
	json_put_string(json, key);
	*output_reserve(json->out, 1) = ':';
	json->out->used++;
	json->comma = false;
}

void json_key_u64(Json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_key_s64(Json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_s64(json, value);
}

void json_key_ms(Json *json, const char *key, uint64_t ns)
{
	json_key(json, key);
	json_ms(json, ns);
}

void json_key_us(Json *json, const char *key, uint64_t ns)
{
	json_key(json, key);
	json_value_end(json, json_format_us(json_value(json, FORMAT_MAX), ns));
}

void json_key_bool(Json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

void json_key_null(Json *json, const char *key)
{
	json_key(json, key);
	json_put_null(json);
}

void json_key_string(Json *json, const char *key, const char *value)
{
	json_key(json, key);
	json_put_string(json, value);
}

void json_key_object(Json *json, const char *key)
{
	json_key(json, key);
	json_begin_object(json);
}

void json_key_array(Json *json, const char *key)
{
	json_key(json, key);
	json_begin_array(json);
}
