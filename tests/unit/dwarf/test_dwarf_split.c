/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Split debug information of many units, as link-time optimization makes it: all units of a module
 * are in one .dwo file, and refer to each other there. The module is written here, with numbers
 * that a seed draws, so the names and lines of each function are known.
 */
#include "object_names_fixture.h"
#include "test_tools.h"
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#define INNER_LINE  3
#define CALL_LINE   20
#define LINES	    50
#define RETURN_LINE 80
#define NOPS	    5 /* the length of an inlined call varies */

/* Unit k has outer_k, into which the inner function of another unit is inlined. */
typedef struct Module {
	const char *name;
	unsigned units;
	unsigned factor, shift; /* which: see inlined_unit() */
	bool one_section;	/* all functions are in one section */
} Module;

static unsigned inlined_unit(const Module *module, unsigned k)
{
	return (k * module->factor + module->shift) % module->units;
}

/* ---- the module as LLVM's assembly language ------------------------------------------------ */

#define SPLIT_FLAGS "isOptimized: true, runtimeVersion: 0, splitDebugInlining: false"
#define FUNCTION_FLAGS                                                                             \
	"spFlags: DISPFlagDefinition | DISPFlagOptimized, type: !2, retainedNodes: !3"

/* The metadata of unit k are those from 10 + 10 * k on. */
static void write_unit(FILE *file, const Module *module, unsigned k, const char *folder)
{
	unsigned first = 10 + 10 * k, inlined = 10 + 10 * inlined_unit(module, k);

	fprintf(file, "!%u = !DIFile(filename: \"%s%u.c\", directory: \"%s\")\n", first,
		module->name, k, folder);
	fprintf(file,
		"!%u = distinct !DICompileUnit(language: DW_LANG_C99, file: !%u, producer: "
		"\"test\", splitDebugFilename: \"%s.dwo\", emissionKind: FullDebug, " SPLIT_FLAGS
		")\n",
		first + 1, first, module->name);
	fprintf(file,
		"!%u = distinct !DISubprogram(name: \"inner_%s_%u\", scope: !%u, file: !%u, line: "
		"2, scopeLine: 2, unit: !%u, " FUNCTION_FLAGS ")\n",
		first + 2, module->name, k, first, first, first + 1);
	fprintf(file,
		"!%u = distinct !DISubprogram(name: \"outer_%s_%u\", scope: !%u, file: !%u, line: "
		"10, scopeLine: 10, unit: !%u, " FUNCTION_FLAGS ")\n",
		first + 3, module->name, k, first, first, first + 1);
	fprintf(file, "!%u = distinct !DILocation(line: %u, column: 1, scope: !%u)\n", first + 4,
		CALL_LINE + k % LINES, first + 3);
	fprintf(file, "!%u = !DILocation(line: %u, column: 1, scope: !%u, inlinedAt: !%u)\n",
		first + 5, INNER_LINE + k % LINES, inlined + 2, first + 4);
	fprintf(file, "!%u = !DILocation(line: %u, column: 1, scope: !%u)\n", first + 6,
		RETURN_LINE, first + 3);
}

static void write_module(const Module *module, const char *folder, unsigned dwarf)
{
	_cleanup_free_ char *path = xasprintf("%s/%s.ll", folder, module->name);
	FILE *file = fopen(path, "w");

	fprintf(file, "target triple = \"x86_64-pc-linux-gnu\"\n");
	for (unsigned k = 0; k < module->units; k++)
		fprintf(file,
			"define void @outer_%s_%u() !dbg !%u {\n"
			"  call void asm sideeffect \".fill %u, 1, 0x90\", \"\"(), !dbg !%u\n"
			"  ret void, !dbg !%u\n}\n",
			module->name, k, 10 + 10 * k + 3, 1 + k % NOPS, 10 + 10 * k + 5,
			10 + 10 * k + 6);
	fprintf(file, "!llvm.module.flags = !{!0, !1}\n"
		      "!0 = !{i32 2, !\"Debug Info Version\", i32 3}\n");
	fprintf(file,
		"!1 = !{i32 2, !\"Dwarf Version\", i32 %u}\n"
		"!2 = !DISubroutineType(types: !4)\n!3 = !{}\n!4 = !{null}\n!llvm.dbg.cu = !{",
		dwarf);
	for (unsigned k = 0; k < module->units; k++)
		fprintf(file, "%s!%u", k ? ", " : "", 10 + 10 * k + 1);
	fprintf(file, "}\n");
	for (unsigned k = 0; k < module->units; k++)
		write_unit(file, module, k, folder);
	fclose(file);
}

static void compile_module(const Module *module, const char *folder, unsigned dwarf)
{
	write_module(module, folder, dwarf);
	/*
	 * Link-time optimization puts each function into a section of its own. For one section
	 * clang 15 and later writes by default what this option makes earlier ones write: ranges
	 * that are relative to an address that is nowhere.
	 */
	run("cd '%s' && clang -Wno-everything %s -c %s.ll -o %s.o -Xclang -split-dwarf-file "
	    "-Xclang %s.dwo -Xclang -split-dwarf-output -Xclang %s.dwo -mllvm "
	    "-split-dwarf-cross-cu-references 2>&1",
	    folder,
	    module->one_section ? "-mllvm -minimize-addr-in-v5=Ranges" : "-ffunction-sections",
	    module->name, module->name, module->name, module->name);
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* The first instruction of each outer function, and which it is: module and unit. */
typedef struct Start {
	uint64_t address;
	char module;
	unsigned unit;
} Start;

static int compare_starts(const void *a, const void *b)
{
	const Start *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

typedef struct Program {
	const char *path;
	const Module *modules;
	size_t count;
	Start *starts; /* ascending */
	uint64_t *addresses;
	size_t functions;
} Program;

static void find_functions(Program *program)
{
	_cleanup_free_ char *text = output_of("nm '%s' | grep ' outer_'", program->path);
	VEC(Start) starts = {};

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		Start start;

		assert_int_equal(sscanf(line, "%" SCNx64 " %*c outer_%c_%u", &start.address,
					&start.module, &start.unit),
				 3);
		*vec_push(&starts) = start;
	}
	qsort(starts.items, starts.count, sizeof(Start), compare_starts);
	program->starts = starts.items;
	program->functions = starts.count;
	program->addresses = xcalloc(starts.count, sizeof(uint64_t));
	for (size_t i = 0; i < starts.count; i++)
		program->addresses[i] = starts.items[i].address;
}

static const Module *module_of(const Program *program, const Start *start)
{
	for (size_t i = 0; i < program->count; i++)
		if (*program->modules[i].name == start->module)
			return &program->modules[i];
	fail_msg("no module %c", start->module);
	return NULL;
}

/* Whether the names and lines are those of the module; with a shift, those that they are not. */
static bool is_right(const Program *program, const Start *start, const struct rec_symbol *symbol,
		     unsigned shift)
{
	const Module *module = module_of(program, start);
	unsigned k = start->unit, inlined = inlined_unit(module, k + shift);
	_cleanup_free_ char *outer = xasprintf("outer_%s_%u", module->name, k);
	_cleanup_free_ char *inner = xasprintf("inner_%s_%u", module->name, inlined);

	return symbol && symbol->count == 2 && !strcmp(frame_of(symbol, 0).name, outer) &&
	       frame_of(symbol, 0).line == CALL_LINE + k % LINES &&
	       !strcmp(frame_of(symbol, 1).name, inner) &&
	       frame_of(symbol, 1).line == INNER_LINE + k % LINES;
}

static size_t count_right(const Program *program, const Naming *naming, unsigned shift)
{
	size_t right = 0;

	for (size_t i = 0; i < program->functions; i++)
		right += is_right(program, &program->starts[i], naming->answers[i], shift);
	return right;
}

/* Inlined calls that have another function's name. */
static size_t count_wrong(const Program *program, const Naming *naming)
{
	size_t wrong = 0;

	for (size_t i = 0; i < program->functions; i++) {
		const struct rec_symbol *symbol = naming->answers[i];

		wrong += symbol && symbol->count > 1 && *frame_of(symbol, 1).name &&
			 !is_right(program, &program->starts[i], symbol, 0);
	}
	return wrong;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static Naming name_all(const Program *program, double *ret_seconds)
{
	Naming naming = {.addresses = program->addresses,
			 .count = program->functions,
			 .find = open_split_file,
			 .user = (char *)program->path};
	double begin = cpu_seconds();

	assert_int_equal(name_objects(&naming, program->path, NULL), 0);
	*ret_seconds = cpu_seconds() - begin;
	return naming;
}

/* All names are right; those of other units would not be. */
static double expect_all(const Program *program)
{
	double seconds;
	Naming naming = name_all(program, &seconds);

	assert_int_equal(count_right(program, &naming, 0), program->functions);
	assert_true(count_right(program, &naming, 1) < program->functions / 2);
	for (size_t kind = 0; kind < DWARF_MISSING_KINDS; kind++)
		assert_int_equal(naming.missing[kind], 0);
	free_naming(&naming);
	return seconds;
}

/* ---- tests --------------------------------------------------------------------------------- */

static Program link_program(const Module *modules, size_t count, const char *folder, char *path)
{
	Program program = {.path = path, .modules = modules, .count = count};

	write_file(folder, "main.c", "int main(void) { return 0; }\n");
	run("cd '%s' && clang -c main.c -o main.o && clang *.o -o prog 2>&1", folder);
	find_functions(&program);
	return program;
}

static void free_program(Program *program)
{
	free(program->starts);
	free(program->addresses);
}

static Module draw_module(const char *name, unsigned units)
{
	/* It has no factor in common with the numbers of units here: all are inlined somewhere. */
	return (Module){.name = name,
			.units = units,
			.factor = 1 + 10 * (1 + random_below(5)),
			.shift = 1 + random_below(units / 2)};
}

static void need_tools(void)
{
	if (!has_program("clang") || !has_program("llvm-dwp"))
		skip_because("no clang, or no llvm-dwp");
}

/* Two modules in one package, and each in its .dwo file. */
static void test_references_between_units(void **state)
{
	const Module modules[] = {draw_module("a", 60), draw_module("b", 40)};

	(void)state;
	need_tools();
	for (unsigned dwarf = 4; dwarf <= 5; dwarf++) {
		char *folder = make_folder();
		_cleanup_free_ char *path = xasprintf("%s/prog", folder);
		Program program;

		for (size_t i = 0; i < ARRAY_LEN(modules); i++)
			compile_module(&modules[i], folder, dwarf);
		program = link_program(modules, ARRAY_LEN(modules), folder, path);
		assert_int_equal(program.functions, 100);
		expect_all(&program);
		run("cd '%s' && timeout 60 llvm-dwp a.dwo b.dwo -o prog.dwp 2>&1 && rm *.dwo",
		    folder);
		expect_all(&program);
		free_program(&program);
		remove_folder(folder);
	}
}

/* A number of 32 bits in the index of the package. */
static uint32_t *word_at(uint8_t *index, size_t offset)
{
	return (uint32_t *)(index + offset);
}

/*
 * Alters the package's index, so that the entries of one unit in the middle belong to none. Columns
 * begin with the entries, in what llvm-dwp makes.
 */
static void drop_unit(const char *folder)
{
	_cleanup_free_ char *path = xasprintf("%s/index", folder);
	uint8_t index[16384] __attribute__((aligned(8)));
	uint32_t columns, units, slots;
	size_t size, rows, dropped = 0;
	FILE *file;

	run("cd '%s' && objcopy --dump-section .debug_cu_index=index prog.dwp 2>&1", folder);
	file = fopen(path, "r");
	size = fread(index, 1, sizeof(index), file);
	fclose(file);
	columns = *word_at(index, 4);
	units = *word_at(index, 8);
	slots = *word_at(index, 12);
	rows = 16 + 12 * slots;
	assert_true(size < sizeof(index) && units > 3);
	assert_int_equal(*word_at(index, rows), 1);
	rows += 4 * columns;
	for (uint32_t row = 0; row < units; row++)
		if (*word_at(index, rows + 4 * columns * row) > 0)
			dropped = row; /* any but the first one, which begins at 0 */
	for (uint32_t row = 0; row < units; row++) {
		uint32_t at = *word_at(index, rows + 4 * columns * row);

		if (at > 0 && at < *word_at(index, rows + 4 * columns * dropped))
			dropped = row;
	}
	*word_at(index, rows + 4 * columns * dropped) = 0;
	*word_at(index, rows + 4 * columns * (units + dropped)) = 0;
	file = fopen(path, "w");
	assert_int_equal(fwrite(index, 1, size, file), size);
	fclose(file);
	run("cd '%s' && objcopy --update-section .debug_cu_index=index prog.dwp 2>&1", folder);
}

/* Between the units of a module there are others: where a reference leads is not known. */
static void test_unknown_places(void **state)
{
	const Module modules[] = {draw_module("a", 60)};
	char *folder;
	_cleanup_free_ char *path = NULL;
	Program program;
	double seconds;
	Naming naming;

	(void)state;
	need_tools();
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	compile_module(&modules[0], folder, 5);
	program = link_program(modules, ARRAY_LEN(modules), folder, path);
	run("cd '%s' && timeout 60 llvm-dwp a.dwo -o prog.dwp 2>&1 && rm *.dwo", folder);
	drop_unit(folder);
	naming = name_all(&program, &seconds);
	assert_int_equal(count_wrong(&program, &naming), 0);
	assert_true(count_right(&program, &naming, 0) < program.functions);
	free_naming(&naming);
	free_program(&program);
	remove_folder(folder);
}

/* Adds a byte to each unit's range in the program, so that it does not have its lines' size. */
static void lengthen_ranges(const char *folder, unsigned units)
{
	_cleanup_free_ char *path = xasprintf("%s/lists", folder);
	uint8_t lists[4096];
	size_t size, changed = 0;
	FILE *file;

	run("cd '%s' && objcopy --dump-section .debug_rnglists=lists prog 2>&1", folder);
	file = fopen(path, "r");
	size = fread(lists, 1, sizeof(lists), file);
	fclose(file);
	assert_true(size < sizeof(lists));
	/* DW_RLE_offset_pair from 0 to the size, and the end of the list. */
	for (size_t i = 12 + 4 * (units - 1); i + 4 <= size; i += 4) {
		assert_true(lists[i] == 4 && lists[i + 1] == 0 && lists[i + 3] == 0);
		lists[i + 2]++;
		changed++;
	}
	/* The first unit is where the section begins, and has its address. */
	assert_int_equal(changed, units - 1);
	file = fopen(path, "w");
	assert_int_equal(fwrite(lists, 1, size, file), size);
	fclose(file);
	run("cd '%s' && objcopy --update-section .debug_rnglists=lists prog 2>&1", folder);
}

/* Where such a unit is, its lines say; if they do not fit its range, nothing is known of it. */
static void test_ranges_without_base(void **state)
{
	Module modules[] = {draw_module("a", 60)};
	char *folder;
	_cleanup_free_ char *path = NULL;
	Program program;
	double seconds;
	Naming naming;

	(void)state;
	need_tools();
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	modules[0].one_section = true;
	compile_module(&modules[0], folder, 5);
	program = link_program(modules, ARRAY_LEN(modules), folder, path);
	expect_all(&program);
	run("cd '%s' && timeout 60 llvm-dwp a.dwo -o prog.dwp 2>&1 && rm *.dwo", folder);
	expect_all(&program);
	lengthen_ranges(folder, modules[0].units);
	naming = name_all(&program, &seconds);
	assert_int_equal(count_wrong(&program, &naming), 0);
	assert_int_equal(count_right(&program, &naming, 0), 1);
	free_naming(&naming);
	free_program(&program);
	remove_folder(folder);
}

/* The time grows with the number of units, not with its square. */
static void test_many_units(void **state)
{
	static const unsigned counts[] = {625, 2500};
	double seconds[2][2];

	(void)state;
	need_tools();
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		const Module module = draw_module("a", counts[i]);
		char *folder = make_folder();
		_cleanup_free_ char *path = xasprintf("%s/prog", folder);
		Program program;

		compile_module(&module, folder, 5);
		program = link_program(&module, 1, folder, path);
		seconds[0][i] = expect_all(&program);
		run("cd '%s' && timeout 60 llvm-dwp a.dwo -o prog.dwp 2>&1 && rm *.dwo", folder);
		seconds[1][i] = expect_all(&program);
		print_message("%u units: .dwo %.3f s, .dwp %.3f s\n", counts[i], seconds[0][i],
			      seconds[1][i]);
		free_program(&program);
		remove_folder(folder);
	}
	/* Four times as many would take 16 times as long. */
	for (size_t kind = 0; kind < 2; kind++)
		assert_true(seconds[kind][1] < 9 * seconds[kind][0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references_between_units),
		cmocka_unit_test(test_unknown_places),
		cmocka_unit_test(test_ranges_without_base),
		cmocka_unit_test(test_many_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
