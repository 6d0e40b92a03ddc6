/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readable names as c++filt has them, and names that were made to keep a reader busy for ever. */
#include "demangle.h"
#include "symbol_record.h"
#include "test_tools.h"
#include <fcntl.h>
#include <sys/resource.h>

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
	names = output_of(NM " -D --defined-only %.*s | sed 's/.* //; s/@.*//'",
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
		names = output_of(NM " --defined-only '%s/a' | sed 's/.* //' | grep -E "
				     "'^_(R|ZN)'",
				  folder);
		assert_true(compare_names(names) > SAMPLE / 2);
		compared++;
	}
	remove_folder(folder);
	if (!compared)
		skip_because("rustc could not compile");
}

/* ---- D, Ada, Fortran, Haskell ------------------------------------------------------------- */

/* Compares all names with c++filt of that style. Returns how many are readable. */
static size_t compare_all(const char *style, const char *names, char *(*read)(const char *name))
{
	_cleanup_free_ char *folder = make_folder(), *readable = NULL, *copy = xstrdup(names);
	_cleanup_free_ char *path = xasprintf("%s/names", folder);
	size_t count = 0, same_as_next = 0;
	Lines raw, wanted;

	write_file(folder, "names", names);
	readable = output_of("c++filt -s %s < '%s'", style, path);
	run("rm -r '%s'", folder);
	raw = split_lines(copy);
	wanted = split_lines(readable);
	assert_int_equal(wanted.count, raw.count);
	for (size_t i = 0; i < raw.count; i++) {
		_cleanup_free_ char *found = read(raw.items[i]);
		bool unread = *wanted.items[i] == '<' || !strcmp(wanted.items[i], raw.items[i]);

		if (!found && unread)
			continue;
		assert_string_equal(found ? found : raw.items[i], wanted.items[i]);
		count++;
		/* The truth altered: the name behind it. */
		same_as_next += i + 1 < raw.count && !strcmp(found, wanted.items[i + 1]);
	}
	assert_true(same_as_next * 2 < count);
	print_message("%s: %zu of %zu names are readable\n", style, count, raw.count);
	vec_free(&raw);
	vec_free(&wanted);
	return count;
}

static void test_d(void **state)
{
	_cleanup_free_ char *names = try_output(
		"for f in $(ls /usr/lib/*/libgphobos.so.* /usr/lib/*/libphobos2-ldc-shared.so.*"
		" /usr/lib/*/libdruntime-ldc-shared.so.* 2>/dev/null); do " NM
		" -D --defined-only $f; done | sed 's/.* //; s/@.*//' | grep ^_D");

	(void)state;
	if (!names || !*names)
		skip_because("no library of D: packages gdc, ldc");
	assert_true(compare_all("dlang", names, demangle) > SAMPLE);
}

static void test_ada(void **state)
{
	_cleanup_free_ char *names =
		try_output("for f in $(ls /usr/lib/*/libgnat-*.so* 2>/dev/null); do " NM
			   " -D --defined-only $f; done | sed 's/.* //; s/@.*//'");

	(void)state;
	if (!names || !*names)
		skip_because("no library of Ada: package gnat");
	assert_true(compare_all("gnat", names, demangle_ada) > SAMPLE);
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

/* Those of Fortran are as GDB's "break mm::mid" takes them, those of Haskell as its source. */
static void test_plain(void **state)
{
	(void)state;
	check_name("__mm_MOD_mid", "mm::mid");
	check_name("__a_b_MOD_c_d.constprop.0", "a_b::c_d [clone .constprop.0]");
	check_name("__Mm_MOD_mid", NULL);
	check_name("__mm_MOD_", NULL);
	check_name("mm_MOD_mid", NULL);
	check_name("base_GHCziBase_zpzp_info", "base:GHC.Base.++");
	check_name("Main_zdwgo_info", "Main.$wgo");
	check_name("ghczmprim_GHCziTuple_Z2T_info", "ghc-prim:GHC.Tuple.(,)");
	check_name("Main_Z3H_info", "Main.(#,,#)");
	check_name("Main_main_info", NULL); /* it may be another language's, and is readable */
	check_name("get_puzzle_info", NULL);
	check_name("main_zdwgo_info", NULL);
	/* Words of C with a z. */
	check_name("Gzip_read_info", NULL);
	check_name("Resize_get_info", NULL);
	check_name("Video_resize_info", NULL);
	check_name("Main_zx_info", NULL);
	check_name("Main_Z9_info", NULL);
	check_name("ada__text_io__put_line__2", "ada.text_io.put_line");
	check_name("system__tasking__stages__create_task", "system.tasking.stages.create_task");
	check_name("system__init", NULL); /* it may be C's */
	check_name("_ada_w", "w");
	check_name("w__inner__mid.0", NULL); /* it may be C's */
	check_name("_Dmain", "D main");
	check_name("_D1w3midFiZv", "w.mid(int)");
	check_name("_D1w3midFiZ", NULL);
	check_name("_DYNAMIC", NULL);
}

/* A name in a record is cut between two characters, and ends in an ellipsis. */
static void test_cut_names(void **state)
{
	SymbolRecord record = {};
	char name[5000];

	(void)state;
	for (size_t shift = 0; shift < 3; shift++) {
		const struct rec_symbol *symbol;
		const char *cut;

		memset(name, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(name); i += 3)
			strcpy(name + i, "€");
		symbol_record_begin(&record, 1);
		symbol_record_add(&record, name, "", 0);
		symbol = symbol_record_finish(&record, NULL);
		cut = symbol->text + sizeof(uint32_t);
		assert_true(strlen(cut) <= 4096 + strlen("…"));
		assert_true(text_ends_with(cut, "€…"));
		assert_int_equal((strlen(cut) - shift) % 3, 0);
	}
	symbol_record_free(&record);
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

/* H…Hi Qb Qc…: each type refers back to the one before it, and so is twice as long. */
static char *doubling_d(unsigned count)
{
	Name name = {};

	add(&name, "_D1a1b");
	for (unsigned i = 0; i < count; i++)
		add(&name, "H");
	add(&name, "i");
	for (unsigned i = 0; i < count; i++) {
		/* The type begins i places before the one that was last. */
		size_t distance = name.count - (strlen("_D1a1b") + count - i);

		add(&name, "Q");
		if (distance >= 26)
			add(&name, "%c", (char)('A' + distance / 26));
		add(&name, "%c", (char)('a' + distance % 26));
	}
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
		if (count <= 200) {
			_cleanup_free_ char *d = doubling_d(count);

			try_hostile(d);
		}
	}
}

/* libiberty's own limit is 1,024 characters, because of the stack that longer names take. */
static void test_long_names(void **state)
{
	struct rlimit before, more;
	Name nested = {};
	_cleanup_free_ char *readable = NULL, *doubled = NULL;
	SymbolRecord record = {};
	const char *cut;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
	more = (struct rlimit){.rlim_cur = 64 << 20, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_STACK, &more), 0);
	add(&nested, "_Z1f");
	for (unsigned i = 0; i < 800; i++)
		add(&nested, "3abc");
	*vec_push(&nested) = '\0';
	readable = demangle(nested.items);
	assert_non_null(readable);
	assert_int_equal(strncmp(readable, "f(abc, abc, abc", 15), 0);
	vec_free(&nested);
	/* What is too long to be read is cut, visibly: nothing less than a record takes. */
	doubled = doubling_cpp(40);
	free(readable);
	readable = demangle(doubled);
	assert_non_null(readable);
	symbol_record_begin(&record, 1);
	symbol_record_add(&record, readable, "", 0);
	cut = symbol_record_finish(&record, NULL)->text + sizeof(uint32_t);
	assert_int_equal(strlen(cut), SYMBOL_TEXT_MAX + strlen("…"));
	assert_true(text_ends_with(cut, "…"));
	assert_int_equal(strncmp(cut, readable, SYMBOL_TEXT_MAX), 0);
	symbol_record_free(&record);
	assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
}

static void test_deep_names(void **state)
{
	static const struct {
		const char *before, *piece, *after;
	} kinds[] = {
		{"_Z1f", "P", "i"},	   {"_Z1f", "1AI", "i"},      {"_ZN", "1a", "E"},
		{"_RINvC1a1f", "R", "hE"}, {"_RINvC1a1f", "T", "hE"}, {"_R", "NvMC1a", "h"},
		{"_Z1f", "DpT_", "E"},	   {"_Z", "3", ""},	      {"_D1a1f", "A", "i"},
		{"_D1a1f", "PF", "Zv"},	   {"_D1a1f", "FC1a", "Zv"},  {"_D", "1aFC", "1aZv"},
		{"_D1a1f", "Hi", "i"},	   {"_D", "1a__T1f", "Z1fv"}, {"_D1a", "__T1fT", "iZv"},
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
		cmocka_unit_test(test_cpp),	    cmocka_unit_test(test_rust),
		cmocka_unit_test(test_d),	    cmocka_unit_test(test_ada),
		cmocka_unit_test(test_by_hand),	    cmocka_unit_test(test_plain),
		cmocka_unit_test(test_long_names),  cmocka_unit_test(test_cut_names),
		cmocka_unit_test(test_not_mangled), cmocka_unit_test(test_doubling_names),
		cmocka_unit_test(test_deep_names),  cmocka_unit_test(test_spoilt_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
