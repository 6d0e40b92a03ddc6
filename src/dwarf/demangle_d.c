/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demangle_d.c - reads D's mangled names. Follows the D language specification, "Application Binary
 * Interface", section "Name Mangling" (https://dlang.org/spec/abi.html#name_mangling).
 *
 * libiberty reads them as well, but without bounds: a reference back to a type can double the text,
 * and some places are tried in two ways, so that a short name may take hours.
 */
#include "demangle_d.h"
#include "demangle_d_reader.h"

static bool read_type(DReader *reader);
static bool read_qualified(DReader *reader, bool with_modifiers);

/* ---- text ------------------------------------------------------------------ */

static void reverse(char *from, char *to)
{
	while (from < to) {
		char c = *from;

		*from++ = *--to;
		*to = c;
	}
}

/* Exchanges the text from first to middle with what follows it. */
static void rotate(DReader *reader, size_t first, size_t middle)
{
	char *text = reader->text.items;

	reverse(text + first, text + middle);
	reverse(text + middle, text + reader->text.count);
	reverse(text + first, text + reader->text.count);
}

/* Puts a text before all that follows `first`. */
static bool insert(DReader *reader, size_t first, const char *text)
{
	size_t middle = reader->text.count;

	if (!d_add(reader, text))
		return false;
	rotate(reader, first, middle);
	return true;
}

/* ---- numbers, references --------------------------------------------------- */

/* Reads "Q" and a distance of base 26, whose last digit is small. Returns the place or NULL. */
static const char *read_reference(const char **p, const char *name)
{
	const char *here = *p;
	size_t distance = 0;

	for (++*p; isupper((unsigned char)**p); ++*p) {
		distance = 26 * distance + (**p - 'A');
		if (distance > D_TEXT_MAX)
			return NULL;
	}
	if (!islower((unsigned char)**p))
		return NULL;
	distance = 26 * distance + (*(*p)++ - 'a');
	return distance > 0 && distance <= (size_t)(here - name) ? here - distance : NULL;
}

/* ---- identifiers ----------------------------------------------------------- */

static bool is_call(const char *p)
{
	return *p && strchr("FUVWRY", *p);
}

static bool is_identifier(const DReader *reader)
{
	const char *p = reader->p, *place;

	if (isdigit((unsigned char)*p) || !strncmp(p, "__T", 3) || !strncmp(p, "__U", 3))
		return true;
	if (*p != 'Q')
		return false;
	place = read_reference(&p, reader->name);
	return place && isdigit((unsigned char)*place);
}

/* What the compiler makes has a name of its own in front: "initializer for a.b". */
static bool add_made(DReader *reader, const char *name, size_t length)
{
	static const struct {
		const char *name, *prefix;
	} made[] = {
		{"__initZ", "initializer for "},      {"__vtblZ", "vtable for "},
		{"__ClassZ", "ClassInfo for "},	      {"__InterfaceZ", "Interface for "},
		{"__ModuleInfoZ", "ModuleInfo for "},
	};

	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		if (length + 1 != strlen(made[i].name) || strncmp(name, made[i].name, length + 1) ||
		    reader->text.count == 0)
			continue;
		reader->text.count--; /* the dot */
		return insert(reader, 0, made[i].prefix);
	}
	return d_add_bytes(reader, name, length);
}

/* Local functions of one name differ by a scope that is not part of the source. */
static bool is_scope(const char *name, size_t length)
{
	if (length < 4 || strncmp(name, "__S", 3))
		return false;
	for (size_t i = 3; i < length; i++)
		if (!isdigit((unsigned char)name[i]))
			return false;
	return true;
}

static bool read_plain(DReader *reader)
{
	const char *name;
	size_t length;

	if (!d_number(reader, &length) || length == 0 || strlen(reader->p) < length)
		return false;
	name = reader->p;
	reader->p += length;
	if (is_scope(name, length)) {
		if (reader->text.count > 0 && reader->text.items[reader->text.count - 1] == '.')
			reader->text.count--;
		return true;
	}
	if (length == 6 && !strncmp(name, "__ctor", length))
		return d_add(reader, "this");
	if (length == 6 && !strncmp(name, "__dtor", length))
		return d_add(reader, "~this");
	if (length == 10 && !strncmp(name, "__postblitMFZ", 13)) {
		reader->p += 3;
		return d_add(reader, "this(this)");
	}
	return add_made(reader, name, length);
}

/* Reads a value of a template: first its type, which some values need for their form. */
static bool read_value_argument(DReader *reader)
{
	size_t first = reader->text.count, end;
	const char *p = reader->p;
	char type = *p;

	if (type == 'Q') {
		const char *place = read_reference(&p, reader->name);

		type = place ? *place : 0;
	}
	if (!read_type(reader))
		return false;
	end = reader->text.count;
	if (!demangle_d_value(reader, first, end, type))
		return false;
	/* The type was only needed for the value. */
	memmove(reader->text.items + first, reader->text.items + end, reader->text.count - end);
	reader->text.count -= end - first;
	return true;
}

static bool read_external_name(DReader *reader)
{
	size_t length;

	if (!d_number(reader, &length) || strlen(reader->p) < length)
		return false;
	reader->p += length;
	return d_add_bytes(reader, reader->p - length, length);
}

static bool read_template_argument(DReader *reader)
{
	if (*reader->p == 'H') /* a specialised parameter */
		reader->p++;
	switch (*reader->p++) {
	case 'T':
		return read_type(reader);
	case 'V':
		return read_value_argument(reader);
	case 'S':
		if (!strncmp(reader->p, "_D", 2))
			return demangle_d_mangled(reader);
		return read_qualified(reader, /* with_modifiers= */ false);
	case 'X':
		return read_external_name(reader);
	default:
		return false;
	}
}

/* Reads "__T", a name, arguments, "Z". */
static bool read_template(DReader *reader)
{
	reader->p += 3;
	if (!is_identifier(reader) || !d_enter(reader) || !read_qualified(reader, false) ||
	    !d_add(reader, "!("))
		return false;
	for (unsigned n = 0; *reader->p != 'Z'; n++)
		if ((n > 0 && !d_add(reader, ", ")) || !read_template_argument(reader))
			return false;
	reader->p++;
	reader->depth--;
	return d_add(reader, ")");
}

/* Older compilers wrote the length of a template before it. */
static bool read_sized_template(DReader *reader)
{
	const char *end;
	size_t length;

	if (!d_number(reader, &length) || strlen(reader->p) < length)
		return false;
	end = reader->p + length;
	return read_template(reader) && reader->p == end;
}

static bool is_template(const char *p)
{
	return !strncmp(p, "__T", 3) || !strncmp(p, "__U", 3);
}

static bool read_identifier(DReader *reader)
{
	const char *p = reader->p, *place, *rest;
	bool good;

	if (is_template(p))
		return read_template(reader);
	if (*p == 'Q') {
		place = read_reference(&reader->p, reader->name);
		if (!place || !isdigit((unsigned char)*place))
			return false;
		rest = reader->p;
		reader->p = place;
		good = read_plain(reader);
		reader->p = rest;
		return good;
	}
	while (isdigit((unsigned char)*p))
		p++;
	return is_template(p) ? read_sized_template(reader) : read_plain(reader);
}

/* ---- functions ------------------------------------------------------------- */

static const struct {
	const char *code, *text;
} attributes[] = {
	{"Na", "pure "},     {"Nb", "nothrow "}, {"Nc", "ref "},   {"Nd", "@property "},
	{"Ne", "@trusted "}, {"Nf", "@safe "},	 {"Ni", "@nogc "}, {"Nj", "return "},
	{"Nl", "scope "},    {"Nm", "@live "},
};

static bool read_attributes(DReader *reader)
{
	for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
		if (d_consume(reader, attributes[i].code)) {
			if (!d_add(reader, attributes[i].text))
				return false;
			i = SIZE_MAX; /* from the first one again */
		}
	return true;
}

static bool add_convention(DReader *reader, char convention)
{
	switch (convention) {
	case 'U':
		return d_add(reader, "extern(C) ");
	case 'W':
		return d_add(reader, "extern(Windows) ");
	case 'V':
		return d_add(reader, "extern(Pascal) ");
	case 'R':
		return d_add(reader, "extern(C++) ");
	case 'Y':
		return d_add(reader, "extern(Objective-C) ");
	default:
		return true;
	}
}

static bool read_storage(DReader *reader)
{
	if (d_consume(reader, "M") && !d_add(reader, "scope "))
		return false;
	if (d_consume(reader, "Nk") && !d_add(reader, "return "))
		return false;
	if (d_consume(reader, "I") && !d_add(reader, "in "))
		return false;
	if (d_consume(reader, "J"))
		return d_add(reader, "out ");
	if (d_consume(reader, "K"))
		return d_add(reader, "ref ");
	return !d_consume(reader, "L") || d_add(reader, "lazy ");
}

static bool read_parameters(DReader *reader)
{
	if (!d_add(reader, "("))
		return false;
	for (unsigned n = 0;; n++) {
		if (d_consume(reader, "X"))
			return d_add(reader, "...)");
		if (d_consume(reader, "Y"))
			return d_add(reader, n ? ", ...)" : "...)");
		if (d_consume(reader, "Z"))
			return d_add(reader, ")");
		if ((n > 0 && !d_add(reader, ", ")) || !read_storage(reader) || !read_type(reader))
			return false;
	}
}

/* Reads a type of a function: the text is convention, returned type, parameters, attributes. */
static bool read_function(DReader *reader)
{
	size_t first, parameters;
	char convention = *reader->p;

	if (!is_call(reader->p) || !d_enter(reader))
		return false;
	reader->p++;
	if (!add_convention(reader, convention))
		return false;
	first = reader->text.count;
	if (!read_attributes(reader))
		return false;
	parameters = reader->text.count;
	if (!read_parameters(reader) || !d_add(reader, " "))
		return false;
	rotate(reader, first, parameters);
	parameters = reader->text.count;
	if (!read_type(reader))
		return false;
	rotate(reader, first, parameters);
	reader->depth--;
	return true;
}

static bool read_modifiers(DReader *reader)
{
	for (;;) {
		if (d_consume(reader, "x"))
			return d_add(reader, " const");
		if (d_consume(reader, "y"))
			return d_add(reader, " immutable");
		if (d_consume(reader, "O")) {
			if (!d_add(reader, " shared"))
				return false;
		} else if (d_consume(reader, "Ng")) {
			if (!d_add(reader, " inout"))
				return false;
		} else {
			return true;
		}
	}
}

/*
 * Reads parameters that belong to a name, not to a type: something must follow them. Attributes are
 * not part of the name.
 */
static bool read_name_parameters(DReader *reader, bool with_modifiers)
{
	size_t first = reader->text.count, end;

	if (d_consume(reader, "M") && !read_modifiers(reader))
		return false;
	end = reader->text.count;
	if (!is_call(reader->p))
		return false;
	reader->p++;
	if (!read_attributes(reader))
		return false;
	reader->text.count = end;
	if (!read_parameters(reader) || !*reader->p)
		return false;
	rotate(reader, first, end);
	if (!with_modifiers)
		reader->text.count -= end - first;
	return true;
}

static bool read_qualified(DReader *reader, bool with_modifiers)
{
	unsigned parts = 0;

	if (!d_enter(reader))
		return false;
	do {
		if (*reader->p == '0') { /* it has no name */
			while (*reader->p == '0')
				reader->p++;
			continue;
		}
		if ((parts++ > 0 && !d_add(reader, ".")) || !read_identifier(reader))
			return false;
		if (*reader->p == 'M' || is_call(reader->p)) {
			const char *start = reader->p;
			size_t saved = reader->text.count;
			unsigned depth = reader->depth;

			/* Anything else is the type of the whole. */
			if (reader->steps >= D_STEPS_MAX)
				return false;
			if (!read_name_parameters(reader, with_modifiers)) {
				reader->p = start;
				reader->text.count = saved;
				reader->depth = depth;
				break;
			}
		}
	} while (is_identifier(reader));
	reader->depth--;
	return reader->steps < D_STEPS_MAX;
}

/* ---- types ----------------------------------------------------------------- */

static const char *basic_type(char code)
{
	static const char *const names[] = {
		['v' - 'a'] = "void",	['g' - 'a'] = "byte",	      ['h' - 'a'] = "ubyte",
		['s' - 'a'] = "short",	['t' - 'a'] = "ushort",	      ['i' - 'a'] = "int",
		['k' - 'a'] = "uint",	['l' - 'a'] = "long",	      ['m' - 'a'] = "ulong",
		['f' - 'a'] = "float",	['d' - 'a'] = "double",	      ['e' - 'a'] = "real",
		['o' - 'a'] = "ifloat", ['p' - 'a'] = "idouble",      ['j' - 'a'] = "ireal",
		['q' - 'a'] = "cfloat", ['r' - 'a'] = "cdouble",      ['c' - 'a'] = "creal",
		['b' - 'a'] = "bool",	['a' - 'a'] = "char",	      ['u' - 'a'] = "wchar",
		['w' - 'a'] = "dchar",	['n' - 'a'] = "typeof(null)",
	};
	size_t i = (unsigned char)code - 'a';

	return code >= 'a' && i < ARRAY_LEN(names) ? names[i] : NULL;
}

static bool read_wrapped(DReader *reader, const char *before)
{
	return d_add(reader, before) && read_type(reader) && d_add(reader, ")");
}

static bool read_array(DReader *reader)
{
	char size[24] = "[]";
	size_t number;

	if (*reader->p++ == 'G') {
		if (!d_number(reader, &number))
			return false;
		snprintf(size, sizeof(size), "[%zu]", number);
	}
	return read_type(reader) && d_add(reader, size);
}

static bool read_associative(DReader *reader)
{
	size_t first = reader->text.count, value;

	reader->p++;
	if (!read_type(reader))
		return false;
	value = reader->text.count;
	if (!read_type(reader) || !d_add(reader, "["))
		return false;
	rotate(reader, first, value);
	return d_add(reader, "]");
}

/*
 * Only a reference from before the present one may be followed, so they end; the number of steps
 * bounds how often.
 */
static bool read_type_reference(DReader *reader, bool is_function)
{
	const char *place, *rest;
	size_t here = reader->p - reader->name, saved = reader->reference;
	bool good;

	if (here >= reader->reference)
		return false;
	place = read_reference(&reader->p, reader->name);
	if (!place)
		return false;
	rest = reader->p;
	reader->reference = here;
	reader->p = place;
	good = is_function ? read_function(reader) : read_type(reader);
	reader->reference = saved;
	reader->p = rest;
	return good;
}

static bool read_delegate(DReader *reader)
{
	size_t first = reader->text.count, end;

	reader->p++;
	if (!read_modifiers(reader))
		return false;
	end = reader->text.count;
	if (!(*reader->p == 'Q' ? read_type_reference(reader, /* is_function= */ true)
				: read_function(reader)) ||
	    !d_add(reader, "delegate"))
		return false;
	rotate(reader, first, end);
	return true;
}

static bool read_tuple(DReader *reader)
{
	size_t count;

	reader->p++;
	if (!d_number(reader, &count) || !d_add(reader, "Tuple!("))
		return false;
	for (size_t i = 0; i < count; i++)
		if ((i > 0 && !d_add(reader, ", ")) || !read_type(reader))
			return false;
	return d_add(reader, ")");
}

static bool read_compound(DReader *reader)
{
	switch (*reader->p) {
	case 'O':
		reader->p++;
		return read_wrapped(reader, "shared(");
	case 'x':
		reader->p++;
		return read_wrapped(reader, "const(");
	case 'y':
		reader->p++;
		return read_wrapped(reader, "immutable(");
	case 'A':
	case 'G':
		return read_array(reader);
	case 'H':
		return read_associative(reader);
	case 'P':
		reader->p++;
		if (is_call(reader->p))
			return read_function(reader) && d_add(reader, "function");
		return read_type(reader) && d_add(reader, "*");
	case 'C':
	case 'S':
	case 'E':
	case 'T':
		reader->p++;
		return is_identifier(reader) && read_qualified(reader, /* with_modifiers= */ false);
	case 'D':
		return read_delegate(reader);
	case 'B':
		return read_tuple(reader);
	case 'Q':
		return read_type_reference(reader, /* is_function= */ false);
	default:
		return read_function(reader) && d_add(reader, "function");
	}
}

static bool read_type(DReader *reader)
{
	const char *basic = basic_type(*reader->p);
	bool good;

	if (!d_enter(reader))
		return false;
	if (basic) {
		reader->p++;
		good = d_add(reader, basic);
	} else if (d_consume(reader, "Ng")) {
		good = read_wrapped(reader, "inout(");
	} else if (d_consume(reader, "Nh")) {
		good = read_wrapped(reader, "__vector(");
	} else if (d_consume(reader, "Nn")) {
		good = d_add(reader, "typeof(*null)");
	} else if (d_consume(reader, "zi")) {
		good = d_add(reader, "cent");
	} else if (d_consume(reader, "zk")) {
		good = d_add(reader, "ucent");
	} else {
		good = read_compound(reader);
	}
	reader->depth--;
	return good;
}

/* ---- all ------------------------------------------------------------------- */

/* "_D", a name, and its type, which is left out; "Z" instead of that is what a compiler made. */
bool demangle_d_mangled(DReader *reader)
{
	size_t end;

	reader->p += 2;
	if (!is_identifier(reader) || !read_qualified(reader, /* with_modifiers= */ true))
		return false;
	if (d_consume(reader, "Z"))
		return true;
	end = reader->text.count;
	if (!read_type(reader))
		return false;
	reader->text.count = end;
	return true;
}

char *demangle_d(const char *name)
{
	DReader reader = {.name = name, .p = name, .reference = SIZE_MAX};

	if (!strcmp(name, "_Dmain"))
		return xstrdup("D main");
	if (strncmp(name, "_D", 2) || !demangle_d_mangled(&reader) || *reader.p) {
		vec_free(&reader.text);
		return NULL;
	}
	*vec_push(&reader.text) = '\0';
	return reader.text.items;
}
