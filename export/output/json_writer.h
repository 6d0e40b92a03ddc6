/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json_writer.h - writes JSON directly to an Output, without a tree and without a printf per
 * number.
 *
 * The caller pairs begin and end; the writer adds the commas. Strings may hold any bytes: each byte
 * that is not UTF-8 becomes U+FFFD.
 */
#ifndef WALLPROF_JSON_WRITER_H
#define WALLPROF_JSON_WRITER_H

#include "output.h"
#include <string.h>

typedef struct Json {
	Output *out;
	bool comma; /* a value came before at this level */
} Json;

/* The most characters that json_format_u64() and json_format_ms() write. */
#define FORMAT_MAX 32

/* These write at p, without a NUL, and return the end. */
char *json_format_u64(char *p, uint64_t value);
/* Milliseconds are exact: they have up to six decimals, and trailing zeros are cut. */
char *json_format_ms(char *p, uint64_t ns);
/* Microseconds are exact: they have up to three decimals. */
char *json_format_us(char *p, uint64_t ns);

/* Reserves room for one value of at most size bytes; writes the comma before it. */
static inline char *json_value(Json *json, size_t size)
{
	char *p = output_reserve(json->out, size + 1);

	if (json->comma) {
		*p++ = ',';
		json->out->used++;
	}
	json->comma = true;
	return p;
}

static inline void json_value_end(Json *json, const char *end)
{
	json->out->used = end - json->out->buffer;
}

static inline void json_u64(Json *json, uint64_t value)
{
	json_value_end(json, json_format_u64(json_value(json, FORMAT_MAX), value));
}

static inline void json_ms(Json *json, uint64_t ns)
{
	json_value_end(json, json_format_ms(json_value(json, FORMAT_MAX), ns));
}

void json_s64(Json *json, int64_t value);
void json_bool(Json *json, bool value);
/* Not json_null() and json_string(): libjansson, which is in the same program, has these. */
void json_put_null(Json *json);
void json_put_string(Json *json, const char *s);
/* Does the same for size bytes with a NUL after them; a NUL among them becomes U+FFFD. */
void json_text(Json *json, const char *s, size_t size);

void json_begin_object(Json *json);
void json_end_object(Json *json);
void json_begin_array(Json *json);
void json_end_array(Json *json);

void json_key(Json *json, const char *key);

/* These write key and value in one call. */
void json_key_u64(Json *json, const char *key, uint64_t value);
void json_key_s64(Json *json, const char *key, int64_t value);
void json_key_ms(Json *json, const char *key, uint64_t ns);
void json_key_us(Json *json, const char *key, uint64_t ns);
void json_key_bool(Json *json, const char *key, bool value);
void json_key_null(Json *json, const char *key);
void json_key_string(Json *json, const char *key, const char *value);
void json_key_object(Json *json, const char *key);
void json_key_array(Json *json, const char *key);

/*
 * Returns the length (1 to 4) of the well-formed UTF-8 sequence at s, 0 if there is none. It stops
 * at a NUL.
 */
size_t utf8_length(const char *s);
/* Returns a well-formed copy of s, which the caller frees; NULL if s is well-formed already. */
char *utf8_sanitize(const char *s);

#endif
