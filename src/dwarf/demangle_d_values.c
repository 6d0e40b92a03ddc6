/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle_d_values.c - values that are arguments of templates in D's names. */
#include "demangle_d_reader.h"

static bool add_character(DReader *reader, size_t value, char type)
{
	char text[24];

	if (type == 'a' && value >= 0x20 && value < 0x7f)
		snprintf(text, sizeof(text), "'%c'", (char)value);
	else
		snprintf(text, sizeof(text), "'\\%c%0*zx'",
			 type == 'a'   ? 'x'
			 : type == 'u' ? 'u'
				       : 'U',
			 type == 'a'   ? 2
			 : type == 'u' ? 4
				       : 8,
			 value);
	return d_add(reader, text);
}

static bool read_integer(DReader *reader, char type)
{
	const char *digits = reader->p;
	size_t value;

	if (type == 'a' || type == 'u' || type == 'w')
		return d_number(reader, &value) && add_character(reader, value, type);
	if (type == 'b')
		return d_number(reader, &value) && d_add(reader, value ? "true" : "false");
	while (isdigit((unsigned char)*reader->p))
		reader->p++;
	if (reader->p == digits || !d_add_bytes(reader, digits, reader->p - digits))
		return false;
	if (type && strchr("htk", type))
		return d_add(reader, "u");
	return type == 'l' ? d_add(reader, "L") : type != 'm' || d_add(reader, "uL");
}

static bool add_hex_digits(DReader *reader)
{
	const char *start = reader->p;

	while (isdigit((unsigned char)*reader->p) || (*reader->p >= 'A' && *reader->p <= 'F'))
		reader->p++;
	return d_add_bytes(reader, start, reader->p - start);
}

static bool read_real(DReader *reader)
{
	if (d_consume(reader, "NAN"))
		return d_add(reader, "NaN");
	if (d_consume(reader, "INF"))
		return d_add(reader, "Inf");
	if (d_consume(reader, "NINF"))
		return d_add(reader, "-Inf");
	if (d_consume(reader, "N") && !d_add(reader, "-"))
		return false;
	if (!isxdigit((unsigned char)*reader->p) || !d_add(reader, "0x") ||
	    !d_add_bytes(reader, reader->p++, 1) || !d_add(reader, ".") ||
	    !add_hex_digits(reader) || !d_consume(reader, "P") || !d_add(reader, "p"))
		return false;
	if (d_consume(reader, "N") && !d_add(reader, "-"))
		return false;
	if (!isdigit((unsigned char)*reader->p))
		return false;
	while (isdigit((unsigned char)*reader->p))
		if (!d_add_bytes(reader, reader->p++, 1))
			return false;
	return true;
}

static int hex_value(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10
					    : -1;
}

static bool add_string_byte(DReader *reader, int byte)
{
	static const char *const named[] = {
		['\t'] = "\\t", ['\n'] = "\\n", ['\v'] = "\\v", ['\f'] = "\\f", ['\r'] = "\\r"};
	char text[8];

	if (byte < (int)ARRAY_LEN(named) && named[byte])
		return d_add(reader, named[byte]);
	snprintf(text, sizeof(text), byte >= 0x20 && byte < 0x7f ? "%c" : "\\x%02x", byte);
	return d_add(reader, text);
}

/* Reads the kind of character, the number of bytes, "_", and two digits for each. */
static bool read_string(DReader *reader)
{
	char kind = *reader->p++;
	size_t length;

	if (!d_number(reader, &length) || !d_consume(reader, "_") || !d_add(reader, "\""))
		return false;
	while (length-- > 0) {
		int high = hex_value(*reader->p), low = high < 0 ? -1 : hex_value(reader->p[1]);

		if (low < 0 || !add_string_byte(reader, 16 * high + low))
			return false;
		reader->p += 2;
	}
	return d_add(reader, "\"") && (kind == 'a' || d_add_bytes(reader, &kind, 1));
}

/* Reads values between two brackets; pairs are those of an associative array. */
static bool read_values(DReader *reader, const char *open, const char *close, bool pairs)
{
	size_t count, none = reader->text.count;

	reader->p++;
	if (!d_number(reader, &count) || !d_add(reader, open))
		return false;
	for (size_t i = 0; i < count; i++) {
		if ((i > 0 && !d_add(reader, ", ")) || !demangle_d_value(reader, none, none, 0))
			return false;
		if (pairs && (!d_add(reader, ":") || !demangle_d_value(reader, none, none, 0)))
			return false;
	}
	return d_add(reader, close);
}

/* The text from type_name to type_end is the type's. */
static bool read_struct(DReader *reader, size_t type_name, size_t type_end)
{
	char *type = xstrndup(reader->text.items + type_name, type_end - type_name);
	bool good = (type_end == type_name || d_add(reader, type)) &&
		    read_values(reader, "(", ")", /* pairs= */ false);

	free(type);
	return good;
}

static bool read_any_value(DReader *reader, size_t type_name, size_t type_end, char type)
{
	switch (*reader->p) {
	case 'n':
		reader->p++;
		return d_add(reader, "null");
	case 'N':
		reader->p++;
		return d_add(reader, "-") && read_integer(reader, type);
	case 'i':
		reader->p++;
		return read_integer(reader, type);
	case 'e':
		reader->p++;
		return read_real(reader);
	case 'c':
		reader->p++;
		return read_real(reader) && d_add(reader, "+") && d_consume(reader, "c") &&
		       read_real(reader) && d_add(reader, "i");
	case 'a':
	case 'w':
	case 'd':
		return read_string(reader);
	case 'A':
		return read_values(reader, "[", "]", /* pairs= */ type == 'H');
	case 'S':
		return read_struct(reader, type_name, type_end);
	case 'f':
		reader->p++;
		return !strncmp(reader->p, "_D", 2) && demangle_d_mangled(reader);
	default:
		return read_integer(reader, type);
	}
}

bool demangle_d_value(DReader *reader, size_t type_name, size_t type_end, char type)
{
	bool good = d_enter(reader) && read_any_value(reader, type_name, type_end, type);

	reader->depth--;
	return good;
}
