/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names, lines and inlined calls of random addresses against addr2line, which knows nothing of
 * libdw, in programs that several compilers made in many ways.
 */
#include "object_names_fixture.h"
#include "test_tools.h"
#include <inttypes.h>
#include <stdio.h>

#define SAMPLE	    600
#define FRAMES_MAX  64
#define FIRST_LINES 120 /* objects/first.cc has fewer */

/* ---- what addr2line says ------------------------------------------------------------------ */

typedef struct Chain {
	char *names[FRAMES_MAX], *sources[FRAMES_MAX];
	uint32_t lines[FRAMES_MAX];
	size_t count; /* innermost first */
} Chain;

static void add_frame(Chain *chain, char *name, char *place)
{
	char *colon = strrchr(place, ':'), *slash;

	assert_non_null(colon);
	assert_true(chain->count < FRAMES_MAX);
	*colon = '\0';
	slash = strrchr(place, '/');
	chain->names[chain->count] = name;
	chain->sources[chain->count] = slash ? slash + 1 : place;
	chain->lines[chain->count++] = strtoul(colon + 1, NULL, 10);
}

/*
 * Its answers, in order; the text is to be freed after the chains. Both addr2lines print linkage
 * names, and one demangler makes them readable: LLVM's own writes lambdas and spaces otherwise than
 * libiberty does.
 */
static Chain *ask_addr2line(const char *oracle, const char *path, const uint64_t *addresses,
			    size_t count, char **ret_text)
{
	_cleanup_free_ char *list = xasprintf("%s.addresses", path);
	Chain *chains = xcalloc(count, sizeof(*chains)), *chain = NULL;
	FILE *file = fopen(list, "w");
	size_t seen = 0;

	for (size_t i = 0; i < count; i++)
		fprintf(file, "0x%" PRIx64 "\n", addresses[i]);
	fclose(file);
	*ret_text = output_of("%s -a -i -f -e '%s' < '%s' | c++filt -i", oracle, path, list);
	for (char *name = strtok(*ret_text, "\n"); name; name = strtok(NULL, "\n")) {
		uint64_t address;

		if (sscanf(name, "0x%" SCNx64, &address) == 1) {
			assert_true(seen < count);
			assert_int_equal(address, addresses[seen]);
			chain = &chains[seen++];
			continue;
		}
		add_frame(chain, name, strtok(NULL, "\n"));
	}
	assert_int_equal(seen, count);
	return chains;
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* Functions of the symbol table, by nm. */
typedef struct Function {
	uint64_t start, size;
	char *name;
} Function;

typedef struct Functions {
	VEC(Function) list;
	uint64_t dropped; /* size of one that is not there any more */
	bool mixed_files; /* addr2line numbers the files of LTO's units wrongly */
} Functions;

static Functions ask_nm(const char *path, char **ret_text)
{
	Functions functions = {};

	*ret_text = output_of("nm -C -S --defined-only '%s' | grep -E ' [tTwWiuV] '", path);
	for (char *line = strtok(*ret_text, "\n"); line; line = strtok(NULL, "\n")) {
		Function function = {};
		int place = 0;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %*c %n", &function.start, &function.size,
			   &place) != 2 ||
		    place == 0) {
			function.size = 0; /* not in DWARF */
			assert_int_equal(sscanf(line, "%*x %*c %n", &place), 0);
		}
		function.name = line + place;
		*vec_push(&functions.list) = function;
	}
	return functions;
}

/* Does the symbol table call it so there? */
static bool nm_has(const Functions *functions, uint64_t address, const char *name)
{
	for (size_t i = 0; i < functions->list.count; i++) {
		const Function *function = &functions->list.items[i];

		if (address - function->start < function->size &&
		    (!name || !strcmp(function->name, name)))
			return true;
	}
	return false;
}

static bool nm_knows(const Functions *functions, const char *name)
{
	for (size_t i = 0; i < functions->list.count; i++)
		if (!strncmp(functions->list.items[i].name, name, strlen(name)))
			return true;
	return false;
}

typedef struct Counts {
	size_t frames, inlined, wrong;
	size_t shifted; /* wrong with the answers of the address before: the truth altered */
} Counts;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Where DWARF has no function addr2line names the symbol before, however far that is. And it
 * calls the innermost function as the symbol table calls the outermost, if it is nearer.
 */
static bool same_name(const Functions *functions, uint64_t address, const char *name,
		      const char *wanted, bool innermost, bool outermost)
{
	return !strcmp(name, wanted) || (outermost && nm_has(functions, address, name)) ||
	       (innermost && nm_has(functions, address, wanted));
}

/* A stub, or the table's head: addr2line names none; test_object_names_elf.c looks at them. */
static bool is_plt(const struct rec_symbol *symbol)
{
	return symbol->count == 1 &&
	       (symbol->h.flags & SYMBOL_NAMELESS || strstr(frame_of(symbol, 0).name, "@plt"));
}

/* binutils 2.40 can take a header's line for one of ours, which is not that long. */
static bool is_beyond(const Chain *chain, size_t i)
{
	return !strcmp(chain->sources[i], "first.cc") && chain->lines[i] > FIRST_LINES;
}

static bool same_chain(const Functions *functions, uint64_t address, const Chain *chain,
		       const struct rec_symbol *symbol)
{
	/* Between functions, or without a name for it. */
	if (!symbol)
		return chain->count == 1 && !nm_has(functions, address, NULL);
	if (is_plt(symbol))
		return !nm_has(functions, address, NULL);
	/* It believes in a function that the linker has dropped, as if that were at 0. */
	if (address < functions->dropped)
		return nm_knows(functions, frame_of(symbol, 0).name);
	if (symbol->count != chain->count)
		return false;
	for (uint32_t n = 0; n < symbol->count; n++) {
		NamedFrame frame = frame_of(symbol, n);
		size_t i = chain->count - 1 - n;

		if (!same_name(functions, address, frame.name, chain->names[i], i == 0, n == 0) ||
		    frame.line != chain->lines[i])
			return false;
		if (frame.line && !functions->mixed_files && !is_beyond(chain, i) &&
		    strcmp(base_name(frame.source), chain->sources[i]))
			return false;
	}
	return true;
}

static void print_difference(uint64_t address, const Chain *chain, const struct rec_symbol *symbol)
{
	print_message("%#" PRIx64 "\n", address);
	for (size_t i = chain->count; i-- > 0;)
		print_message("    addr2line: %s %s:%u\n", chain->names[i], chain->sources[i],
			      chain->lines[i]);
	for (uint32_t n = 0; symbol && n < symbol->count; n++) {
		NamedFrame frame = frame_of(symbol, n);

		print_message("    wallprof:  %s %s:%u\n", frame.name, base_name(frame.source),
			      frame.line);
	}
}

static size_t choose_addresses(const char *path, uint64_t addresses[static SAMPLE])
{
	static const char *const others[] = {".plt", ".plt.sec", ".init", ".fini"};
	uint64_t start, size;

	assert_true(find_section(path, ".text", &start, &size));
	for (size_t i = 0; i < SAMPLE; i++)
		addresses[i] = start + random_below(size);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (find_section(path, others[i], &start, &size))
			addresses[i] = start + random_below(size);
	return sort_addresses(addresses, SAMPLE);
}

static uint64_t size_of_dropped(const char *path)
{
	_cleanup_free_ char *size =
		output_of("cd \"$(dirname '%s')\" && nm prog | grep -q never_called || "
			  "nm -S second.o 2>&1 | awk '/never_called/ { print $2 }'",
			  path);

	return strtoul(size, NULL, 16);
}

static Counts compare_with(const char *oracle, const char *path, bool lto)
{
	_cleanup_free_ char *text = NULL, *symbols = NULL;
	uint64_t addresses[SAMPLE];
	Naming naming = {.addresses = addresses, .count = choose_addresses(path, addresses)};
	Chain *chains = ask_addr2line(oracle, path, addresses, naming.count, &text);
	Functions functions = ask_nm(path, &symbols);
	Counts counts = {};

	functions.mixed_files = lto;
	functions.dropped = size_of_dropped(path);
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	for (size_t i = 0; i < naming.count; i++) {
		const struct rec_symbol *symbol = naming.answers[i];

		counts.frames += symbol && frame_of(symbol, symbol->count - 1).line;
		counts.inlined += symbol && symbol->count > 2;
		counts.shifted += i > 0 && !same_chain(&functions, addresses[i], &chains[i],
						       naming.answers[i - 1]);
		if (same_chain(&functions, addresses[i], &chains[i], symbol))
			continue;
		if (counts.wrong++ < 5)
			print_difference(addresses[i], &chains[i], symbol);
	}
	free_naming(&naming);
	vec_free(&functions.list);
	free(chains);
	return counts;
}

/* ---- programs ------------------------------------------------------------------------------ */

/* addr2line of binutils 2.40 cannot read the ranges of clang's DWARF 5. */
static const struct variant {
	const char *compiler, *cpp, *options, *link, *oracle;
} variants[] = {
	{"gcc", "g++", "-O2 -g -gdwarf-5", "", "addr2line"},
	{"gcc", "g++", "-O2 -g -gdwarf-4 -no-pie", "-no-pie", "addr2line"},
	{"gcc", "g++", "-O3 -g -gz", "", "addr2line"},
	{"gcc", "g++", "-O2 -g -ffunction-sections", "-Wl,--gc-sections", "addr2line"},
	{"gcc", "g++", "-O2 -g -fno-asynchronous-unwind-tables -fno-omit-frame-pointer", "",
	 "addr2line"},
	{"gcc", "g++", "-Og -g", "", "addr2line"},
	{"gcc", "g++", "-O0 -g", "", "addr2line"},
	{"gcc", "g++", "-O2 -g -flto", "-flto -O2", "addr2line"},
	{"clang", "clang++", "-O2 -gdwarf-5", "", "llvm-addr2line"},
	{"clang", "clang++", "-O2 -gdwarf-4 -ffunction-sections", "-Wl,--gc-sections", "addr2line"},
	{"clang", "clang++", "-O1 -g -gz", "", "llvm-addr2line"},
};

static bool build(const struct variant *variant, const char *folder)
{
	_cleanup_free_ char *done =
		try_output("cd '%s' && S='" OBJECTS "' && "
			   "%s %s %s -c \"$S/first.cc\" -o first.o 2>&1 && "
			   "%s %s %s -c \"$S/second.c\" -o second.o 2>&1 && "
			   "%s -O2 -c \"$S/third.c\" -o third.o 2>&1 && "
			   "%s %s second.o first.o third.o -o prog 2>&1",
			   folder, variant->cpp, variant->options, "-Wno-all", variant->compiler,
			   variant->options, *variant->compiler == 'g' ? "-DNESTED" : "",
			   variant->compiler, variant->cpp, variant->link);

	return done;
}

static void check_counts(const Counts *counts, const char *compiler, const char *options)
{
	print_message("%s %s: %zu with lines, %zu deeply inlined\n", compiler, options,
		      counts->frames, counts->inlined);
	assert_true(counts->frames > SAMPLE / 2);
	assert_true(counts->shifted > SAMPLE / 3);
	assert_int_equal(counts->wrong, 0);
}

/* It is the compilers that take time: outside of a long run, the sanitizers see a third of them. */
static size_t variants_step(void)
{
#ifdef __SANITIZE_ADDRESS__
	return is_long_run() ? 1 : 3;
#else
	return 1;
#endif
}

static void test_as_addr2line(void **state)
{
	size_t compared = 0, step = variants_step();

	(void)state;
	for (size_t i = random_below(step); i < ARRAY_LEN(variants); i += step) {
		_cleanup_free_ char *path = NULL;
		char *folder;
		Counts counts;

		if (!has_program(variants[i].cpp) || !has_program(variants[i].oracle))
			continue;
		folder = make_folder();
		if (!build(&variants[i], folder))
			fail_msg("could not compile: %s %s", variants[i].compiler,
				 variants[i].options);
		path = xasprintf("%s/prog", folder);
		counts = compare_with(variants[i].oracle, path,
				      strstr(variants[i].options, "-flto"));
		check_counts(&counts, variants[i].compiler, variants[i].options);
		if (!strstr(variants[i].options, "-O0") && !strstr(variants[i].options, "-Og"))
			assert_true(counts.inlined > SAMPLE / 20);
		remove_folder(folder);
		compared++;
	}
	if (!compared)
		skip_because("no compiler");
}

static void test_rust_as_addr2line(void **state)
{
	static const char *const versions[] = {"legacy", "v0"};

	(void)state;
	if (!has_program("rustc"))
		skip_because("no rustc");
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		char *folder = make_folder();
		_cleanup_free_ char *path = xasprintf("%s/prog", folder);
		_cleanup_free_ char *made =
			try_output("RUSTC_BOOTSTRAP=1 rustc --edition 2021 -Z unstable-options "
				   "-C symbol-mangling-version=%s -C opt-level=2 -g -o '%s' "
				   "'" OBJECTS "/fourth.rs' 2>&1",
				   versions[i], path);
		Counts counts;

		assert_non_null(made);
		counts = compare_with("addr2line", path, /* lto= */ false);
		check_counts(&counts, "rustc", versions[i]);
		remove_folder(folder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_addr2line),
		cmocka_unit_test(test_rust_as_addr2line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
