/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names, lines and inlined calls of all addresses against addr2line and llvm-symbolizer, which know
 * nothing of libdw, in programs that several compilers made in many ways.
 */
#include "object_names_fixture.h"
#include "test_tools.h"
#include <inttypes.h>
#include <stdio.h>

#define FRAMES_MAX  64
#define FIRST_LINES 120	 /* objects/first.cc has fewer */
#define ADDRESSES   6000 /* about so many of a program are looked up */

enum oracle { ADDR2LINE = 1, LLVM = 2 };

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
static Chain *ask_oracle(enum oracle oracle, const char *demangle, const char *path,
			 const uint64_t *addresses, size_t count, char **ret_text)
{
	_cleanup_free_ char *list = xasprintf("%s.addresses", path);
	const char *tool = oracle == ADDR2LINE ? "addr2line -a -i -f"
					       : "llvm-symbolizer --output-style=GNU -a --inlines "
						 "--functions=linkage --no-demangle";
	Chain *chains = xcalloc(count, sizeof(*chains)), *chain = NULL;
	FILE *file = fopen(list, "w");
	size_t seen = 0;

	for (size_t i = 0; i < count; i++)
		fprintf(file, "0x%" PRIx64 "\n", addresses[i]);
	fclose(file);
	*ret_text = output_of("%s -e '%s' < '%s' | %s", tool, path, list, demangle);
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

static Functions ask_nm(const char *demangle, const char *path, char **ret_text)
{
	Functions functions = {};

	*ret_text = output_of("nm -C -S --defined-only '%s' | grep -E ' [tTwWiuV] ' | %s", path,
			      demangle);
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
	size_t addresses, frames, inlined, wrong;
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
 * llvm-symbolizer calls the outermost one so, also "f [clone .cold]".
 */
static bool same_name(const Functions *functions, uint64_t address, const char *name,
		      const char *wanted, bool innermost, bool outermost)
{
	return !strcmp(name, wanted) || (outermost && nm_has(functions, address, name)) ||
	       ((innermost || outermost) && nm_has(functions, address, wanted));
}

/* A stub, the table's head, or padding: addr2line names none; test_object_names_elf.c looks at
 * them. */
static bool is_plt(const struct rec_symbol *symbol)
{
	return symbol->count == 1 && (symbol->h.flags & (SYMBOL_NAMELESS | SYMBOL_PLANTED) ||
				      strstr(frame_of(symbol, 0).name, "@plt"));
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

typedef VEC(uint64_t) Addresses;

/*
 * Outside of a long run, leaves one of each `step` neighbours at random: the oracles and c++filt
 * would take longer than the compilers. An instruction has 4 bytes on average.
 */
static void thin_out(Addresses *addresses)
{
	size_t step = is_long_run() ? 1 : addresses->count / ADDRESSES + 1, kept = 0;

	for (size_t i = 0; i + step <= addresses->count; i += step)
		addresses->items[kept++] = addresses->items[i + random_below(step)];
	addresses->count = kept;
}

/* Each byte of the code, or of much code a part. */
static Addresses code_addresses(const char *path)
{
	static const char *const names[] = {".text", ".plt", ".plt.sec", ".init", ".fini"};
	Addresses addresses = {};
	uint64_t start, size;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (find_section(path, names[i], &start, &size))
			for (uint64_t at = 0; at < size; at++)
				*vec_push(&addresses) = start + at;
	addresses.count = sort_addresses(addresses.items, addresses.count);
	thin_out(&addresses);
	return addresses;
}

static uint64_t size_of_dropped(const char *path)
{
	_cleanup_free_ char *size =
		output_of("cd \"$(dirname '%s')\" && nm prog | grep -q never_called || "
			  "nm -S second.o 2>&1 | awk '/never_called/ { print $2 }'",
			  path);

	return strtoul(size, NULL, 16);
}

/* Compares what was found with what an oracle says of each address. */
static Counts count_differences(const Naming *naming, const Functions *functions,
				const Chain *chains)
{
	Counts counts = {.addresses = naming->count};

	for (size_t i = 0; i < naming->count; i++) {
		const struct rec_symbol *symbol = naming->answers[i];
		uint64_t address = naming->addresses[i];

		counts.frames += symbol && frame_of(symbol, symbol->count - 1).line;
		counts.inlined += symbol && symbol->count > 2;
		counts.shifted += i > 0 && !same_chain(functions, address, &chains[i],
						       naming->answers[i - 1]);
		if (same_chain(functions, address, &chains[i], symbol))
			continue;
		if (counts.wrong++ < 5)
			print_difference(address, &chains[i], symbol);
	}
	return counts;
}

/* ---- programs ------------------------------------------------------------------------------ */

#define TYPES	 " -fdebug-types-section" /* units of types, which others name by signature */
#define BOTH	 (ADDR2LINE | LLVM)
#define ZSTD	 "objcopy --compress-debug-sections=zstd prog"
#define ZSTD_DWO "objcopy --compress-debug-sections=zstd first.dwo && " ZSTD
#define DWP	 "timeout 60 llvm-dwp -e prog -o prog.dwp && rm first.dwo second.dwo"
#define GNU_DWP	 "timeout 60 dwp -e prog -o prog.dwp && rm first.dwo second.dwo"

/*
 * addr2line of binutils 2.40 cannot read the ranges of clang's DWARF 5, nor .dwo files;
 * llvm-symbolizer 14 knows no zstd. Of gcc's DWARF 5, dwp 2.40 crashes and llvm-dwp 14 does not
 * end.
 */
static const struct variant {
	const char *compiler, *cpp, *options, *link;
	unsigned oracles;
	const char *pack; /* what is done to the program after the oracle was asked */
} variants[] = {
	{"gcc", "g++", "-O2 -g -gdwarf-5", "", BOTH, ""},
	{"gcc", "g++", "-O2 -g -gdwarf-4 -no-pie", "-no-pie", BOTH, ""},
	{"gcc", "g++", "-O3 -g -gz", "", BOTH, ""},
	{"gcc", "g++", "-O2 -g -ffunction-sections", "-Wl,--gc-sections", BOTH, ""},
	{"gcc", "g++", "-O2 -g -fno-asynchronous-unwind-tables -fno-omit-frame-pointer", "", BOTH,
	 ""},
	{"gcc", "g++", "-Og -g", "", BOTH, ""},
	{"gcc", "g++", "-O0 -g", "", BOTH, ""},
	{"gcc", "g++", "-O2 -g -flto", "-flto -O2", BOTH, ""},
	{"gcc", "g++", "-O2 -g", "", ADDR2LINE, ZSTD},
	{"gcc", "g++", "-O2 -g -gdwarf-5 -gsplit-dwarf", "", LLVM, ""},
	{"gcc", "g++", "-O2 -g -gdwarf-4 -gsplit-dwarf -ffunction-sections", "", LLVM, ""},
	{"gcc", "g++", "-O2 -g -gdwarf-5 -gsplit-dwarf", "", LLVM, ZSTD_DWO},
	{"gcc", "g++", "-O2 -g -gdwarf-4 -gsplit-dwarf", "", LLVM, GNU_DWP},
	{"gcc", "g++", "-O2 -g -gdwarf-4" TYPES, "", BOTH, ""},
	{"gcc", "g++", "-O2 -g -gdwarf-5 -gsplit-dwarf" TYPES, "", LLVM, ""},
	{"gcc", "g++", "-O2 -g -gdwarf-4 -gsplit-dwarf" TYPES, "", LLVM, GNU_DWP},
	{"clang", "clang++", "-O2 -gdwarf-5", "", LLVM, ""},
	{"clang", "clang++", "-O2 -gdwarf-4 -ffunction-sections", "-Wl,--gc-sections", BOTH, ""},
	{"clang", "clang++", "-O1 -g -gz", "", LLVM, ""},
	{"clang", "clang++", "-O2 -gdwarf-5 -gsplit-dwarf", "", LLVM, ""},
	{"clang", "clang++", "-O2 -gdwarf-4 -gsplit-dwarf -ffunction-sections", "", LLVM, ""},
	{"clang", "clang++", "-O2 -gdwarf-4 -gsplit-dwarf", "", LLVM, DWP},
	{"clang", "clang++", "-O2 -gdwarf-5 -gsplit-dwarf -ffunction-sections", "", LLVM, DWP},
	{"clang", "clang++", "-O2 -gdwarf-5 -gsplit-dwarf -fsplit-dwarf-inlining", "", LLVM, ""},
	{"clang", "clang++", "-O2 -gdwarf-5" TYPES, "", LLVM, ""},
	{"clang", "clang++", "-O2 -gdwarf-4 -gsplit-dwarf" TYPES, "", LLVM, ""},
	{"clang", "clang++", "-O2 -gdwarf-5 -gsplit-dwarf" TYPES, "", LLVM, DWP},
};

/* c++filt writes each line for itself, which takes long: only D needs it twice. */
static const char *demangler_of(const struct variant *variant)
{
	bool is_d = !strcmp(variant->cpp, "ldc2") || !strcmp(variant->cpp, "gdc");

	return is_d ? "c++filt -i | c++filt -i -s dlang" : "c++filt -i";
}

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
	print_message("%s %s: %zu addresses, %zu with lines, %zu deeply inlined, %zu wrong\n",
		      compiler, options, counts->addresses, counts->frames, counts->inlined,
		      counts->wrong);
	assert_true(counts->frames > counts->addresses / 2);
	assert_true(counts->shifted > counts->addresses / 30);
	assert_int_equal(counts->wrong, 0);
}

/* It is the compilers that take time: outside of a long run, a part of the builds is made. */
static size_t variants_step(void)
{
#ifdef __SANITIZE_ADDRESS__
	return is_long_run() ? 1 : 10;
#else
	return is_long_run() ? 1 : 5;
#endif
}

static const struct {
	enum oracle oracle;
	const char *name;
} oracles[] = {{ADDR2LINE, "addr2line"}, {LLVM, "llvm-symbolizer"}};

/* What the oracles say; it is asked before the program is packed. */
typedef struct Said {
	Chain *chains[ARRAY_LEN(oracles)]; /* NULL = not asked */
	char *texts[ARRAY_LEN(oracles)];
} Said;

static Said ask_oracles(const struct variant *variant, const char *path, const Addresses *addresses)
{
	Said said = {};

	for (size_t i = 0; i < ARRAY_LEN(oracles); i++) {
		if (!(variant->oracles & oracles[i].oracle))
			continue;
		if (has_program(oracles[i].name))
			said.chains[i] =
				ask_oracle(oracles[i].oracle, demangler_of(variant), path,
					   addresses->items, addresses->count, &said.texts[i]);
		else
			print_message("%s %s: skipped, no %s\n", variant->cpp, variant->options,
				      oracles[i].name);
	}
	return said;
}

/* Returns by how many oracles it was compared. */
static unsigned compare_said(const struct variant *variant, const char *path,
			     const Addresses *addresses, const Said *said)
{
	_cleanup_free_ char *symbols = NULL;
	Functions functions = ask_nm(demangler_of(variant), path, &symbols);
	Naming naming = {.addresses = addresses->items,
			 .count = addresses->count,
			 .find = open_split_file,
			 .user = (char *)path};
	unsigned compared = 0;

	functions.dropped = size_of_dropped(path);
	run("cd \"$(dirname '%s')\" && %s", path, *variant->pack ? variant->pack : "true");
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(oracles); i++) {
		Counts counts;

		if (!said->chains[i])
			continue;
		functions.mixed_files =
			oracles[i].oracle == ADDR2LINE && strstr(variant->options, "-flto");
		counts = count_differences(&naming, &functions, said->chains[i]);
		print_message("%s: ", oracles[i].name);
		check_counts(&counts, variant->cpp, variant->options);
		if (!strstr(variant->options, "-O0") && !strstr(variant->options, "-Og"))
			assert_true(counts.inlined > counts.addresses / 200);
		compared++;
	}
	for (size_t kind = 0; kind < DWARF_MISSING_KINDS; kind++)
		assert_int_equal(naming.missing[kind], 0);
	free_naming(&naming);
	vec_free(&functions.list);
	return compared;
}

static bool has_packer(const struct variant *variant)
{
	return !*variant->pack ||
	       has_program(strcmp(variant->pack, GNU_DWP) == 0 ? "dwp" : "llvm-dwp");
}

static unsigned compare(const struct variant *variant,
			bool (*make)(const struct variant *variant, const char *folder))
{
	char *folder;
	_cleanup_free_ char *path = NULL;
	Addresses addresses;
	unsigned compared;
	Said said;

	if (!has_packer(variant)) {
		print_message("%s %s: skipped, no dwp\n", variant->cpp, variant->options);
		return 0;
	}
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	if (!make(variant, folder))
		fail_msg("could not compile: %s %s", variant->cpp, variant->options);
	addresses = code_addresses(path);
	said = ask_oracles(variant, path, &addresses);
	compared = compare_said(variant, path, &addresses, &said);
	for (size_t i = 0; i < ARRAY_LEN(oracles); i++) {
		free(said.chains[i]);
		free(said.texts[i]);
	}
	vec_free(&addresses);
	remove_folder(folder);
	return compared;
}

static void test_c_and_cpp(void **state)
{
	size_t compared = 0, step = variants_step();

	(void)state;
	for (size_t i = random_below(step); i < ARRAY_LEN(variants); i += step)
		if (has_program(variants[i].cpp))
			compared += compare(&variants[i], build);
		else
			print_message("skipped, no %s\n", variants[i].cpp);
	if (!compared)
		skip_because("no compiler, or neither addr2line nor llvm-symbolizer");
}

/* The libraries of these languages are shared, so that the program's code is its own. */
static bool build_rust(const struct variant *variant, const char *folder)
{
	_cleanup_free_ char *done = try_output(
		"cd '%s' && RUSTC_BOOTSTRAP=1 rustc --edition 2021 -Z unstable-options -C "
		"prefer-dynamic %s -o prog '" OBJECTS "/fourth.rs' 2>&1",
		folder, variant->options);

	return done;
}

static bool build_d(const struct variant *variant, const char *folder)
{
	_cleanup_free_ char *done =
		try_output("cd '%s' && cp '" OBJECTS "/fifth.d' . && %s %s fifth.d 2>&1", folder,
			   variant->cpp, variant->options);

	return done;
}

/* Compares each `step`th build, from number `first` on. */
static void compare_all(const struct variant *list, size_t count, size_t first, size_t step,
			bool (*make)(const struct variant *variant, const char *folder))
{
	unsigned compared = 0;

	for (size_t i = first; i < count; i += step)
		if (has_program(list[i].cpp))
			compared += compare(&list[i], make);
		else
			print_message("skipped, no %s\n", list[i].cpp);
	if (!compared)
		skip_because("no compiler, or neither addr2line nor llvm-symbolizer");
}

#define LEGACY	 "-C symbol-mangling-version=legacy -C opt-level=2 -g"
#define V0	 "-C symbol-mangling-version=v0 -C opt-level=2 -g"
#define UNPACKED " -C split-debuginfo=unpacked"
#define PACKED	 " -C split-debuginfo=packed"

static void test_rust(void **state)
{
	static const struct variant builds[] = {
		{"rustc", "rustc", LEGACY, "", BOTH, ""},
		{"rustc", "rustc", V0 PACKED, "", LLVM, ""},
		{"rustc", "rustc", V0, "", BOTH, ZSTD},
		{"rustc", "rustc", LEGACY UNPACKED, "", LLVM, ""},
	};
	size_t step = is_long_run() ? 1 : 2;

	(void)state;
	compare_all(builds, ARRAY_LEN(builds), random_below(step), step, build_rust);
}

static void test_d(void **state)
{
	static const struct variant builds[] = {
		{"ldc2", "ldc2", "-g -O2 -link-defaultlib-shared -of=prog", "", BOTH, ""},
		{"gdc", "gdc", "-g -O2 -shared-libphobos -o prog", "", BOTH, ""},
		{"ldc2", "ldc2", "-g -O3 -link-defaultlib-shared -of=prog", "", BOTH, ZSTD},
		{"gdc", "gdc", "-g -O3 -shared-libphobos -o prog", "", BOTH, ZSTD},
	};
	size_t step = is_long_run() ? 1 : 4; /* gdc takes 7 s for one */

	(void)state;
	compare_all(builds, ARRAY_LEN(builds), random_below(step), step, build_d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c_and_cpp),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_d),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
