/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readable names as c++filt has them, and names that were made to keep a reader busy for ever. */
#include "demangle.h"
#include "test_tools.h"
#include <fcntl.h>

#define SAMPLE	400
#define HUGE_NS NSEC_PER_SEC

typedef VEC(char *) Lines;

/* Splits text into its lines, which stay in it. */
static Lines split_lines(char *text)
{
	Lines lines = {};

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		*vec_push(&lines) = line;
	return lines;
}

/* Compares some of the names with c++filt; returns how many are readable. */
static size_t compare_names(char *names)
{
	_cleanup_free_ char *folder = make_folder(), *readable = NULL;
	Lines raw = split_lines(names), wanted;
	VEC(char *) chosen = {};
	_cleanup_free_ char *path = xasprintf("%s/names", folder);
	FILE *file = fopen(path, "w");
	size_t count = 0;

	for (size_t i = 0; i < SAMPLE && raw.count; i++) {
		*vec_push(&chosen) = raw.items[random_below(raw.count)];
		fprintf(file, "%s\n", chosen.items[i]);
	}
	fclose(file);
	/* -i: without the hash that ends Rust's names. */
	readable = output_of("c++filt -i < '%s'", path);
	run("rm -r '%s'", folder);
	wanted = split_lines(readable);
	assert_int_equal(wanted.count, chosen.count);
	for (size_t i = 0; i < chosen.count; i++) {
		_cleanup_free_ char *found = demangle(chosen.items[i]);

		assert_string_equal(found ? found : chosen.items[i], wanted.items[i]);
		count += found != NULL;
	}
	vec_free(&raw);
	vec_free(&wanted);
	vec_free(&chosen);
	return count;
}

static void test_cpp(void **state)
{
	_cleanup_free_ char *library = try_output("g++ -print-file-name=libstdc++.so.6");
	_cleanup_free_ char *names = NULL;

	(void)state;
	if (!library)
		skip_because("no g++");
	names = output_of("nm -D --defined-only %.*s | sed 's/.* //; s/@.*//'",
			  (int)strcspn(library, "\n"), library);
	assert_true(compare_names(names) > SAMPLE / 2);
}

static void test_rust(void **state)
{
	static const char *const versions[] = {"legacy", "v0"};
	size_t compared = 0;
	char *folder;

	(void)state;
	if (!has_program("rustc"))
		skip_because("no rustc");
	folder = make_folder();
	write_file(folder, "a.rs",
		   "use std::collections::HashMap;\n"
		   "trait T { fn t(&self) -> String; }\n"
		   "impl<A: std::fmt::Debug, B> T for HashMap<A, B> {\n"
		   "    fn t(&self) -> String { format!(\"{:?}\", self.keys()) }\n"
		   "}\n"
		   "fn main() {\n"
		   "    let mut m = HashMap::new();\n"
		   "    m.insert([1u8; 3], |x: i32| x + 1);\n"
		   "    println!(\"{}\", m.t());\n"
		   "}\n");
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		_cleanup_free_ char *made =
			try_output("RUSTC_BOOTSTRAP=1 rustc --edition 2021 -C "
				   "symbol-mangling-version=%s %s -o '%s/a' "
				   "'%s/a.rs' 2>&1",
				   versions[i], i ? "" : "-Z unstable-options", folder, folder);
		_cleanup_free_ char *names = NULL;

		if (!made) {
			print_message("rustc does not make %s names\n", versions[i]);
			continue;
		}
		names = output_of("nm --defined-only '%s/a' | sed 's/.* //' | grep -E "
				  "'^_(R|ZN)'",
				  folder);
		assert_true(compare_names(names) > SAMPLE / 2);
		compared++;
	}
	remove_folder(folder);
	if (!compared)
		skip_because("rustc could not compile");
}

static void check_name(const char *name, const char *wanted)
{
	_cleanup_free_ char *found = demangle(name);

	if (!wanted)
		assert_null(found);
	else
		assert_string_equal(found, wanted);
}

static void test_by_hand(void **state)
{
	(void)state;
	check_name("_ZN3foo3barEi", "foo::bar(int)");
	check_name("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		   "core::fmt::Write::write_fmt");
	check_name("_RNvC6_123foo3bar", "123foo::bar");
	check_name("_RNvMs_C1aNtB4_1S1f", "<a::S>::f");
	check_name("_ZN3FooC1Ev", "Foo::Foo()");
}

static void test_not_mangled(void **state)
{
	static const char *const names[] = {"",	    "main", "_",      "_Z",  "_R",  "_ZN",
					    "_Z\1", "Z1fv", "_start", "_RN", "__Z", "write@plt"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check_name(names[i], NULL);
}

/* ---- hostile names ------------------------------------------------------------------------ */

/* Returns quickly, whatever it says. */
static void try_hostile(const char *name)
{
	uint64_t began = now_ns();
	_cleanup_free_ char *found = demangle(name);

	assert_true(now_ns() - began < HUGE_NS);
	if (found)
		assert_true(strlen(found) <= 16384);
}

typedef VEC(char) Name;

__attribute__((format(printf, 2, 3))) static void add(Name *name, const char *format, ...)
{
	char text[64];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	vec_append(name, text, strlen(text));
}

/* A base 36 number as substitutions have it: S_, S0_, S1_ … */
static void add_substitution(Name *name, unsigned number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	add(name, "S");
	if (number > 36)
		add(name, "%c", digits[(number - 1) / 36]);
	if (number > 0)
		add(name, "%c", digits[(number - 1) % 36]);
	add(name, "_");
}

/* f(P, P<P, P>, P<P<P, P>, P<P, P>>, …): each parameter is twice as long as the one before. */
static char *doubling_cpp(unsigned count)
{
	Name name = {};

	add(&name, "_Z1f1P");
	for (unsigned i = 0; i < count; i++) {
		add(&name, "S_I");
		add_substitution(&name, i);
		add_substitution(&name, i);
		add(&name, "E");
	}
	*vec_push(&name) = '\0';
	return name.items;
}

/* Where a backward reference of a v0 name points: base 62, less one. */
static void add_reference(Name *name, size_t place)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	add(name, "B");
	if (place > 62)
		add(name, "%c", digits[(place - 1) / 62]);
	add(name, "%c_", digits[(place - 1) % 62]);
}

/* a::f::<u8, (u8, u8), ((u8, u8), (u8, u8)), …> */
static char *doubling_rust(unsigned count)
{
	size_t place, next;
	Name name = {};

	add(&name, "_RINvC1a1fh");
	place = name.count - 3; /* counted behind "_R" */
	for (unsigned i = 0; i < count; i++) {
		next = name.count - 2;
		add(&name, "T");
		add_reference(&name, place);
		add_reference(&name, place);
		add(&name, "E");
		place = next;
	}
	add(&name, "E");
	*vec_push(&name) = '\0';
	return name.items;
}

static void test_doubling_names(void **state)
{
	(void)state;
	/* Short ones are right: the names are what they shall be. */
	for (unsigned count = 1; count < 4; count++) {
		_cleanup_free_ char *cpp = doubling_cpp(count), *rust = doubling_rust(count);
		_cleanup_free_ char *names = xasprintf("%s\n%s\n", cpp, rust);

		assert_int_equal(compare_names(names), SAMPLE);
	}
	for (unsigned count = 10; count < 300; count += 10) {
		_cleanup_free_ char *cpp = doubling_cpp(count), *rust = doubling_rust(count);

		try_hostile(cpp);
		try_hostile(rust);
	}
}

static void test_deep_names(void **state)
{
	static const struct {
		const char *before, *piece, *after;
	} kinds[] = {
		{"_Z1f", "P", "i"},	   {"_Z1f", "1AI", "i"},      {"_ZN", "1a", "E"},
		{"_RINvC1a1f", "R", "hE"}, {"_RINvC1a1f", "T", "hE"}, {"_R", "NvMC1a", "h"},
		{"_Z1f", "DpT_", "E"},	   {"_Z", "3", ""},
	};

	(void)state;
	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++)
		for (unsigned count = 1; count < 10000; count *= 3) {
			Name name = {};

			add(&name, "%s", kinds[kind].before);
			for (unsigned i = 0; i < count; i++)
				add(&name, "%s", kinds[kind].piece);
			add(&name, "%s", kinds[kind].after);
			*vec_push(&name) = '\0';
			try_hostile(name.items);
			vec_free(&name);
		}
}

/* Good names with bytes changed. */
static void test_spoilt_names(void **state)
{
	static const char *const good[] = {
		("_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIP"
		 "iS1_EEDpOT_"),
		"_RNCNvMs5_NtNtC3std6thread5localINtB5_8LocalKeyNtNtC1a1b1cE4with0B3_",
		"_ZN4core3ptr49drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE"};

	(void)state;
	for (int round = 0; round < 20000; round++) {
		const char *from = good[random_below(ARRAY_LEN(good))];
		_cleanup_free_ char *name = xstrdup(from);

		for (uint64_t changes = 1 + random_below(4); changes > 0; changes--)
			name[2 + random_below(strlen(from) - 2)] =
				random_below(2) ? from[random_below(strlen(from))]
						: (char)(1 + random_below(255));
		try_hostile(name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpp),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_not_mangled),
		cmocka_unit_test(test_doubling_names),
		cmocka_unit_test(test_deep_names),
		cmocka_unit_test(test_spoilt_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
