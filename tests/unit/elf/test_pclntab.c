/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Go's own table: of objects/pclntab.S, which is laid out by hand as three versions of Go do it,
 * and of what a Go compiler makes, against its own tools and libdw.
 */
#include "object_names_fixture.h"
#include "pclntab.h"
#include "unwind_oracle.h"
#include <fcntl.h>
#include <inttypes.h>

/* ---- written by hand ------------------------------------------------------------------ */

typedef struct Kind {
	const char *options;
	bool go118;
} Kind;

static const Kind kinds[] = {
	{"-static -DVERSION=118", true},
	{"-static -DVERSION=120", false},
	{"-static -DVERSION=126", false},
	{"-static -DVERSION=127", false},
	{"-shared -DRELOCATED -DVERSION=118", true},
	{"-shared -DRELOCATED -DVERSION=120", false},
	{"-shared -DRELOCATED -DVERSION=126", false},
	{"-shared -DRELOCATED -DVERSION=127", false},
};

typedef struct Labels {
	char *text; /* nm's */
} Labels;

/* The place of one, as nm has it. */
static uint64_t label(const Labels *labels, const char *name)
{
	_cleanup_free_ char *end = xasprintf(" %s\n", name);
	const char *found = strstr(labels->text, end), *line = found;

	assert_non_null(found);
	while (line > labels->text && line[-1] != '\n')
		line--;
	return strtoull(line, NULL, 16);
}

static char *assemble(const Kind *kind, Labels *ret_labels)
{
	char *folder = make_folder();

	run("gcc -nostdlib %s '%s/pclntab.S' -o '%s/whole' 2>&1", kind->options, OBJECTS, folder);
	run("strip '%s/whole' -o '%s/stripped'", folder, folder);
	ret_labels->text = output_of(NM " '%s/whole'", folder);
	return folder;
}

static void open_object(const char *folder, const char *name, ElfMap *ret_map)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(elf_map_open(fd, ret_map), 0);
}

static void test_functions(void **state)
{
	static const struct {
		const char *label, *next, *name;
		bool is_top, moves_stack;
	} wanted[] = {
		{"pushes", "stores", "main.(*T[...]).pushes", false, false},
		{"stores", "stores_far", "main.stores", false, false},
		{"stores_far", "stores_none", "main.stores", false, false},
		{"stores_none", "grows", "main.stores", false, false},
		{"grows", "top", "main.grows", false, false},
		{"top", "handler", "runtime.goexit", true, false},
		{"handler", "never_returns", "runtime.sigtramp", true, false},
		{"never_returns", "switches", "runtime.gopreempt_m", false, false},
		{"switches", "own_frame", "runtime.systemstack", false, true},
		{"own_frame", "vforks", "runtime.nanotime1", false, true},
		{"vforks", "leaves", "syscall.rawVforkSyscall", false, false},
		{"leaves", "grows_stack", "runtime.mcall", false, true},
		{"grows_stack", "in_c", "runtime.morestack", false, true},
		{"in_c", "sigreturn", "in_c", false, false},
		{"sigreturn", "go_etext", "runtime.sigreturn", false, false},
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		PclntabFunction function;
		Labels labels;
		char *folder = assemble(&kinds[k], &labels);
		Pclntab table;
		ElfMap map;

		open_object(folder, "stripped", &map);
		assert_int_equal(pclntab_open(map.elf, &table), 0);
		assert_int_equal(table.go118, kinds[k].go118);
		assert_int_equal(table.count, ARRAY_LEN(wanted));
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
			uint64_t start = label(&labels, wanted[i].label);
			uint64_t end = label(&labels, wanted[i].next);

			assert_true(
				pclntab_find(&table, start + random_below(end - start), &function));
			assert_int_equal(function.start, start);
			assert_int_equal(function.end, end);
			assert_string_equal(pclntab_name(&table, function.name), wanted[i].name);
			assert_int_equal(function.is_top, wanted[i].is_top);
			assert_int_equal(function.moves_stack, wanted[i].moves_stack);
		}
		assert_false(pclntab_find(&table, label(&labels, "go_etext"), &function));
		assert_false(pclntab_find(&table, label(&labels, "before"), &function));
		elf_map_close(&map);
		free(labels.text);
		remove_folder(folder);
	}
}

/* From a label on. */
typedef struct Row {
	const char *label;
	int offset; /* CFA - rsp */
	bool bp_saved;
	struct unwind_rule rule; /* if offset is 0 */
} Row;

#define BY_BP(which)                                                                               \
	{                                                                                          \
		.cfa = CFA_REG, .cfa_reg = DWARF_RBP, .cfa_offset = 16, .bp = BP_AT_CFA,           \
		.bp_offset = -16, .bx = BX_LOST, .stack = which                                    \
	}

static const Row rows[] = {
	{"pushes", 8, false, {}},
	{"pushes_1", 16, true, {}},
	{"pushes_2", 32, true, {}},
	{"pushes_3", 16, true, {}},
	{"pushes_4", 8, false, {}},
	{"pushes_end", 8, false, {}},
	{"stores", 8, false, {}},
	{"stores_1", 32, false, {}},
	{"stores_saved", 32, true, {}},
	{"stores_2", 8, false, {}},
	{"stores_far", 8, false, {}},
	{"stores_far_1", 1032, false, {}},
	{"stores_far_saved", 1032, true, {}},
	{"stores_far_2", 8, false, {}},
	{"stores_none", 8, false, {}},
	{"stores_none_1", 16, false, {}},
	{"stores_none_saved", 16, true, {}},
	{"stores_none_2", 8, false, {}},
	{"grows", 8, false, {}},
	{"grows_1", 16, false, {}},
	{"grows_2", 8, false, {}},
	/* Nothing is said of it, and it is no padding. */
	{"grows_3", 0, false, {.cfa = CFA_NONE, .extra = NONE_BROKEN}},
	{"top", 0, false, {.cfa = CFA_END}},
	{"handler", 8, false, {}},
	{"never_returns", 0, false, {.cfa = CFA_END}},
	{"switches", 8, false, {}},
	{"switches_1", 0, false, BY_BP(STACK_GUESS)},
	{"own_frame", 8, false, {}},
	{"own_frame_1", 16, true, {}},
	{"own_frame_2", 0, false, BY_BP(STACK_OTHER)},
	{"own_frame_3", 8, false, {}},
	{"own_frame_4", 0, false, BY_BP(STACK_OTHER)},
	{"own_frame_5", 8, false, {}},
	{"vforks", 8, false, {}},
	{"vforks_1",
	 0,
	 false,
	 {.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .ra = RA_REG + 12, .bx = BX_LOST}},
	{"vforks_2", 8, false, {}},
	{"leaves", 8, false, {}},
	{"leaves_1", 0, false, {.cfa = CFA_END}},
	{"grows_stack", 8, false, {}},
	{"grows_stack_1", 0, false, {.cfa = CFA_NONE, .extra = NONE_REGISTER}},
	/* Found by its instructions. */
	{"in_c", 0, false, {.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset = 8}},
	{"sigreturn", 0, false, {.cfa = CFA_SIGNAL}},
};

static struct unwind_rule wanted_rule(const Row *row)
{
	if (row->offset == 0)
		return row->rule;
	return (struct unwind_rule){
		.cfa = CFA_REG,
		.cfa_reg = DWARF_RSP,
		.cfa_offset = row->offset,
		.bp = row->bp_saved ? BP_AT_CFA : BP_SAME,
		.bp_offset = row->bp_saved ? -16 : 0,
		.bx = BX_LOST,
	};
}

static bool row_holds(const Built *built, const Labels *labels, const Row *row)
{
	struct unwind_rule rule = wanted_rule(row);
	uint64_t pc = label(labels, row->label) - built->identity.base_svma;

	return !memcmp(rule_at(&built->table, pc), &rule, sizeof(rule));
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		Labels labels;
		char *folder = assemble(&kinds[k], &labels);
		_cleanup_free_ char *path = xasprintf("%s/stripped", folder);
		Built built = build_table(path, NULL);
		uint64_t base = built.identity.base_svma;
		Row altered = rows[0];

		assert_int_equal(built.result, 0);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			if (!row_holds(&built, &labels, &rows[i]))
				fail_msg("%s: %s", kinds[k].options, rows[i].label);
		altered.offset += 8;
		assert_false(row_holds(&built, &labels, &altered));
		/* Where a handler returns to is looked for a byte before. */
		assert_int_equal(rule_at(&built.table, label(&labels, "sigreturn") - base - 1)->cfa,
				 CFA_SIGNAL);
		assert_int_equal(rule_at(&built.table, label(&labels, "go_etext") - base)->cfa,
				 CFA_NONE);
		assert_int_equal(built.table.counts.fdes, 14); /* not in_c */
		free_built(&built);
		free(labels.text);
		remove_folder(folder);
	}
}

static void check_frame(const struct rec_symbol *symbol, size_t n, const char *name,
			const char *source, uint32_t line)
{
	NamedFrame frame = frame_of(symbol, n);

	assert_string_equal(frame.name, name);
	assert_string_equal(frame.source, source);
	assert_int_equal(frame.line, line);
}

static void test_frames(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		Labels labels;
		char *folder = assemble(&kinds[k], &labels);
		_cleanup_free_ char *path = xasprintf("%s/stripped", folder);
		const uint64_t addresses[] = {label(&labels, "pushes_1"),
					      label(&labels, "pushes_2"), label(&labels, "inner_0"),
					      label(&labels, "stores")};
		Naming naming = {.addresses = addresses, .count = ARRAY_LEN(addresses)};
		struct rec_symbol **answers;

		assert_int_equal(name_objects(&naming, path, NULL), 0);
		/* Found by the names alone, which stay if the rest takes too long, and again. */
		assert_int_equal(naming.sent, ARRAY_LEN(addresses));
		assert_int_equal(naming.emitted, 2 * ARRAY_LEN(addresses));
		answers = naming.answers;
		assert_int_equal(answers[0]->count, 1);
		check_frame(answers[0], 0, "main.(*T[...]).pushes", "/go/main.go", 10);
		check_frame(answers[1], 0, "main.(*T[...]).pushes", "/go/main.go", 12);
		assert_int_equal(answers[2]->count, 2);
		check_frame(answers[2], 0, "main.(*T[...]).pushes", "/go/main.go", 12);
		check_frame(answers[2], 1, "main.inner", "/go/inner.go", 100);
		check_frame(answers[3], 0, "main.stores", "", 0);
		assert_int_equal(answers[3]->function, addresses[3]);
		free_naming(&naming);
		free(labels.text);
		remove_folder(folder);
	}
}

/* ---- made by Go ------------------------------------------------------------------------- */

#define PROGRAM                                                                                    \
	"package main\n"                                                                           \
	"import (\"fmt\"; \"os\"; \"os/exec\"; \"sort\"; \"strings\"; \"sync\"; \"time\")\n"       \
	"func small(x int) int { return x * 3 }\n"                                                 \
	"//go:noinline\nfunc large(x int) string { var a [3000]byte; for i := range a { "          \
	"a[i] = byte(small(x)) }; return strings.Repeat(string(a[:]), small(x)) }\n"               \
	"func main() { var m sync.Mutex; go func() { m.Lock(); time.Sleep(1); m.Unlock() }()\n"    \
	"s := []string{large(1), \"b\"}; sort.Strings(s); fmt.Fprintln(os.Stderr, s)\n"            \
	"if len(os.Args) > 1 { exec.Command(os.Args[1]).Run() } }\n"

/* All tests use two programs of the same code, the second one stripped. */
static char *go_folder;

static int build_go(void **state)
{
	(void)state;
	if (!has_program("go"))
		return 0;
	go_folder = make_folder();
	write_file(go_folder, "a.go", PROGRAM);
	run("cd '%s' && export GOCACHE=\"${GOCACHE:-%s/cache}\" GOTOOLCHAIN=local && go build -o "
	    "whole a.go && "
	    "go build -ldflags '-s -w' -o stripped a.go",
	    go_folder, go_folder);
	return 0;
}

static int remove_go(void **state)
{
	(void)state;
	if (go_folder)
		remove_folder(go_folder);
	return 0;
}

/* The path of one of them, allocated; or skips the test. */
static char *go_path(const char *name)
{
	if (!go_folder)
		skip();
	return xasprintf("%s/%s", go_folder, name);
}

/* go tool nm of the program with symbols: "  401000 T runtime.text" or "t". */
static void test_names_of_go(void **state)
{
	_cleanup_free_ char *whole = go_path("whole");
	_cleanup_free_ char *text = output_of("go tool nm '%s'", whole);
	char *save;
	size_t found = 0, functions = 0;
	PclntabFunction function;
	Pclntab table;
	ElfMap map;

	(void)state;
	open_object(go_folder, "stripped", &map);
	assert_int_equal(pclntab_open(map.elf, &table), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char kind, name[256], *suffix;
		uint64_t address;

		if (sscanf(line, "%" SCNx64 " %c %255[^\n]", &address, &kind, name) != 3 ||
		    (kind != 'T' && kind != 't'))
			continue;
		functions++;
		/* Assemblers' functions have one name for each way to call them. */
		if ((suffix = strstr(name, ".abi0")))
			*suffix = '\0';
		found += pclntab_find(&table, address, &function) && function.start == address &&
			 !strcmp(pclntab_name(&table, function.name), name);
	}
	printf("    %zu of %zu functions\n", found, functions);
	/* Not those that mark where the code begins and ends. */
	assert_true(functions > 1000 && found + 5 >= functions);
	assert_true(table.count <= functions);
	elf_map_close(&map);
}

typedef struct Depths {
	size_t compared, same;
	size_t popped; /* in a register, and counted in both others */
} Depths;

/*
 * Go's linker describes a return address that was popped as if it still were on the stack, below
 * the stack pointer, where a signal's handler overwrites it. The rule has it in r12, which is
 * where syscall.rawVforkSyscall of each version of Go puts it.
 */
static bool is_popped(const Caller *by_libdw, const Machine *machine)
{
	return by_libdw->covered && by_libdw->cfa.number == machine->regs[DWARF_RSP];
}

/* The depths of all functions that have them, by the linker's .debug_frame as libdw reads it. */
static Depths compare_depths(const Built *built, const Oracle *oracle, const Pclntab *table,
			     int altered)
{
	PclntabFunction function;
	Depths depths = {};

	for (uint32_t i = 0; i < table->count; i++) {
		if (!pclntab_function(table, i, &function))
			continue;
		for (uint64_t pc = function.start; pc < function.end; pc += 1 + random_below(4)) {
			struct unwind_rule rule =
				*rule_at(&built->table, pc - built->identity.base_svma);
			Machine machine = random_machine(pc);
			Caller by_libdw, by_rule;
			uint64_t wanted_ra;

			if (rule.cfa != CFA_REG || rule.stack)
				continue;
			rule.cfa_offset += altered;
			by_libdw = ask_libdw(oracle, pc, &machine);
			by_rule = ask_rule(&rule, &machine);
			wanted_ra = by_libdw.ra.number;
			if (is_popped(&by_libdw, &machine)) {
				wanted_ra = machine.regs[12];
				depths.popped++;
			}
			depths.compared += by_libdw.covered;
			depths.same += by_libdw.covered &&
				       by_libdw.cfa.number == by_rule.cfa.number &&
				       wanted_ra == by_rule.ra.number;
		}
	}
	return depths;
}

static void test_depths_of_go(void **state)
{
	_cleanup_free_ char *whole = go_path("whole");
	_cleanup_free_ char *stripped = go_path("stripped");
	Built built = build_table(stripped, NULL);
	Oracle oracle = open_oracle(whole, NULL);
	Depths depths;
	Pclntab table;

	(void)state;
	assert_int_equal(built.result, 0);
	assert_int_equal(pclntab_open(built.file.elf, &table), 0);
	depths = compare_depths(&built, &oracle, &table, 0);
	printf("    %zu of %zu places, %zu of them popped\n", depths.same, depths.compared,
	       depths.popped);
	assert_true(depths.compared > 50000 && depths.popped > 0);
	assert_int_equal(depths.same, depths.compared);
	depths = compare_depths(&built, &oracle, &table, 8);
	assert_int_equal(depths.same, 0);
	close_oracle(&oracle);
	free_built(&built);
}

/* go tool addr2line: the function that holds the address, and the innermost line there. */
static void test_lines_of_go(void **state)
{
	_cleanup_free_ char *whole = go_path("whole");
	_cleanup_free_ char *stripped = go_path("stripped");
	_cleanup_free_ char *text = NULL;
	char *save;
	VEC(uint64_t) addresses = {};
	VEC(char) asked = {};
	Naming naming;
	size_t inlined = 0, at = 0;
	Pclntab table;
	ElfMap map;

	(void)state;
	open_object(go_folder, "stripped", &map);
	assert_int_equal(pclntab_open(map.elf, &table), 0);
	for (int i = 0; i < 2000; i++) {
		PclntabFunction function;

		if (pclntab_function(&table, random_below(table.count), &function))
			*vec_push(&addresses) =
				function.start + random_below(function.end - function.start);
	}
	addresses.count = sort_addresses(addresses.items, addresses.count);
	for (size_t i = 0; i < addresses.count; i++) {
		_cleanup_free_ char *line = xasprintf("0x%" PRIx64 "\n", addresses.items[i]);

		vec_append(&asked, line, strlen(line));
	}
	*vec_push(&asked) = '\0';
	write_file(go_folder, "asked", asked.items);
	text = output_of("go tool addr2line '%s' <'%s/asked'", whole, go_folder);
	naming = (Naming){.addresses = addresses.items, .count = addresses.count};
	assert_int_equal(name_objects(&naming, stripped, NULL), 0);
	for (char *name = strtok_r(text, "\n", &save); name && at < addresses.count; at++) {
		const struct rec_symbol *answer = naming.answers[at];
		char *line = strtok_r(NULL, "\n", &save), *suffix = strstr(name, ".abi0");
		_cleanup_free_ char *ours = NULL;
		NamedFrame innermost;

		assert_non_null(answer);
		if (suffix)
			*suffix = '\0';
		assert_string_equal(frame_of(answer, 0).name, name);
		innermost = frame_of(answer, answer->count - 1);
		inlined += answer->count > 1;
		ours = xasprintf("%s:%" PRIu32, innermost.source, innermost.line);
		assert_string_equal(*innermost.source ? ours : line, line);
		name = strtok_r(NULL, "\n", &save);
	}
	assert_int_equal(at, addresses.count);
	printf("    %zu of %zu addresses are in inlined calls\n", inlined, at);
	assert_true(inlined > 20);
	free_naming(&naming);
	vec_free(&addresses);
	vec_free(&asked);
	elf_map_close(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),    cmocka_unit_test(test_rows),
		cmocka_unit_test(test_frames),	     cmocka_unit_test(test_names_of_go),
		cmocka_unit_test(test_depths_of_go), cmocka_unit_test(test_lines_of_go),
	};

	return cmocka_run_group_tests_name("pclntab", tests, build_go, remove_go);
}
