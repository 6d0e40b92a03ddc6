/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind tables of real objects, and of such as are compiled here, against libdw. */
#include "unwind_oracle.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/auxv.h>

#define RANDOM_PLACES 2 /* in each row */

/* How the two may differ, and why. */
enum verdict {
	SAME,
	BOTH_NONE,	   /* no FDE */
	SAME_END,	   /* the return address is undefined */
	OURS_PADDING,	   /* alignment behind a function: its last row holds on */
	OURS_ENTRY,	   /* the first function of the program, without an FDE */
	OURS_CODE,	   /* start-up code that is known by its bytes */
	OURS_SIGNAL,	   /* the byte before a signal's restorer */
	THEIRS_EXPRESSION, /* the CFA by an expression that no rule stands for */
	THEIRS_REGISTER,   /* return address or rsp are where no rule has them */
	THEIRS_BP,	   /* rbp is where no rule has it; all else is the same */
	THEIRS_BX,	   /* so is rbx */
	WRONG,
	VERDICTS
};

static const char *const verdict_names[VERDICTS] = {
	"same",
	"none",
	"end",
	"padding (ours)",
	"entry (ours)",
	"code (ours)",
	"signal (ours)",
	"expression (libdw)",
	"register (libdw)",
	"rbp (libdw)",
	"rbx (libdw)",
	"wrong",
};

typedef struct Verdicts {
	size_t counts[VERDICTS];
} Verdicts;

static bool equal(Value a, Value b)
{
	return a.kind == VALUE_KNOWN && b.kind == VALUE_KNOWN && a.number == b.number;
}

/* We may know less, but nothing else. */
static bool same_or_lost(Value ours, Value libdw)
{
	return ours.kind == VALUE_UNDEFINED || equal(ours, libdw);
}

/* Does libdw know a function that ends less than 16 bytes before? */
static bool is_padding(const Oracle *oracle, uint64_t svma)
{
	for (uint64_t back = 1; back < UNWIND_PADDING; back++) {
		Machine machine = random_machine(svma - back);

		if (ask_libdw(oracle, svma - back, &machine).covered)
			return true;
	}
	return false;
}

/* Where libdw knows nothing. */
static enum verdict judge_uncovered(const Oracle *oracle, const Built *built, uint64_t pc,
				    const struct unwind_rule *rule)
{
	uint64_t svma = built->identity.base_svma + pc;
	Machine machine = random_machine(svma + 1);

	if (rule->cfa == CFA_NONE && (rule->extra == NONE_GAP || rule->extra == NONE_UNKNOWN_CODE))
		return BOTH_NONE;
	if (is_padding(oracle, svma))
		return OURS_PADDING;
	if (rule->cfa == CFA_REG || rule->cfa == CFA_DEREF)
		return OURS_CODE;
	if (rule->cfa == CFA_SIGNAL && ask_libdw(oracle, svma + 1, &machine).covered)
		return OURS_SIGNAL;
	return rule->cfa == CFA_END && pc >= built->entry ? OURS_ENTRY : WRONG;
}

/* Where we have no rule and libdw has. */
static enum verdict judge_none(const struct unwind_rule *rule, const Caller *libdw)
{
	Value at_cfa = {libdw->cfa.kind, memory_at(libdw->cfa.number - 8)};

	if (rule->extra == NONE_EXPRESSION)
		return libdw->cfa_by_expression ? THEIRS_EXPRESSION : WRONG;
	if (rule->extra == NONE_REGISTER)
		return !equal(libdw->ra, at_cfa) || !equal(libdw->sp, libdw->cfa) ? THEIRS_REGISTER
										  : WRONG;
	return WRONG;
}

static enum verdict judge_rule(const struct unwind_rule *rule, const Machine *machine,
			       const Caller *libdw)
{
	Caller ours = ask_rule(rule, machine);

	if (!equal(ours.cfa, libdw->cfa) || !equal(ours.ra, libdw->ra) ||
	    !equal(ours.sp, libdw->sp))
		return WRONG;
	if (!same_or_lost(ours.bp, libdw->bp) || !same_or_lost(ours.bx, libdw->bx))
		return WRONG;
	if (ours.bp.kind != libdw->bp.kind)
		return THEIRS_BP;
	return ours.bx.kind != libdw->bx.kind ? THEIRS_BX : SAME;
}

static enum verdict judge(const Oracle *oracle, const Built *built, uint64_t pc)
{
	const struct unwind_rule *rule = rule_at(&built->table, pc);
	uint64_t svma = built->identity.base_svma + pc;
	Machine machine = random_machine(svma);
	Caller libdw = ask_libdw(oracle, svma, &machine);

	if (!libdw.covered)
		return judge_uncovered(oracle, built, pc, rule);
	if (rule->cfa == CFA_END)
		return libdw.ra.kind == VALUE_UNDEFINED ? SAME_END : WRONG;
	if (rule->cfa == CFA_NONE)
		return judge_none(rule, &libdw);
	return judge_rule(rule, &machine, &libdw);
}

static void judge_at(const Oracle *oracle, const Built *built, uint64_t pc, Verdicts *verdicts)
{
	enum verdict verdict = judge(oracle, built, pc);
	const struct unwind_rule *rule = rule_at(&built->table, pc);

	if (verdict == WRONG && verdicts->counts[WRONG] < 5)
		print_message("%#" PRIx64 ": cfa %u reg %u %+d extra %d, ra %u, bp %u %+d, "
			      "bx %u %+d\n",
			      built->identity.base_svma + pc, rule->cfa, rule->cfa_reg,
			      rule->cfa_offset, rule->extra, rule->ra, rule->bp, rule->bp_offset,
			      rule->bx, rule->bx_offset);
	verdicts->counts[verdict]++;
}

/* First and last byte of each row, and some inside; at most about `most` rows, evenly. */
static Verdicts compare(const Oracle *oracle, const Built *built, size_t most)
{
	const UnwindTable *table = &built->table;
	size_t step = 1 + table->rows.count / most;
	Verdicts verdicts = {};

	for (size_t i = random_below(step); i < table->rows.count; i += step) {
		uint64_t from = table->rows.items[i].pc;
		uint64_t to = i + 1 < table->rows.count ? table->rows.items[i + 1].pc : 1ULL << 32;

		judge_at(oracle, built, from, &verdicts);
		judge_at(oracle, built, to - 1, &verdicts);
		for (int k = 0; k < RANDOM_PLACES; k++)
			judge_at(oracle, built, from + random_below(to - from), &verdicts);
	}
	return verdicts;
}

static void print_verdicts(const char *name, const UnwindTable *table, const Verdicts *verdicts)
{
	print_message("%s: %zu rows, %zu rules;", name, table->rows.count, table->rules.count);
	for (size_t i = 0; i < VERDICTS; i++)
		if (verdicts->counts[i])
			print_message(" %zu %s", verdicts->counts[i], verdict_names[i]);
	print_message("\n");
}

/* 0 if there are no sections. */
static uint64_t code_bytes(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	uint64_t sum = 0;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR &&
		    header.sh_type != SHT_NOBITS)
			sum += header.sh_size;
	return sum;
}

/* All that is executable is counted, and so is each row. */
static void check_counts(const Built *built)
{
	const UnwindCoverage *coverage = &built->coverage;
	uint64_t bytes = 0, rows = 0, none = 0, executable = 0;
	uint64_t code = code_bytes(built->file.elf);

	for (size_t i = 0; i < UNWIND_CFAS; i++) {
		bytes += coverage->bytes[i];
		rows += coverage->rows[i];
	}
	for (size_t i = 0; i < UNWIND_NONES; i++)
		none += coverage->none_bytes[i];
	for (size_t i = 0; i < built->identity.loads.count; i++)
		if (built->identity.loads.items[i].exec)
			executable += built->identity.loads.items[i].file_size;
	assert_int_equal(bytes, executable);
	assert_int_equal(none, coverage->bytes[CFA_NONE]);
	assert_int_equal(built->table.counts.code, code ? code : executable);
	assert_true(built->table.counts.code_gaps <=
		    coverage->none_bytes[NONE_GAP] + coverage->none_bytes[NONE_UNKNOWN_CODE]);
	assert_int_equal(rows, built->table.rows.count);
	assert_int_equal(coverage->none_bytes[NONE_BROKEN], 0);
	assert_int_equal(coverage->none_bytes[NONE_OVERFLOW], 0);
	assert_int_equal(built->table.counts.unread, 0);
	/* Nothing of what is covered reaches beyond it. */
	assert_int_equal(rule_at(&built->table, UINT32_MAX)->cfa, CFA_NONE);
}

static Verdicts check_object(const char *path, const char *debug_path, size_t most)
{
	Built built = build_table(path, debug_path);
	Oracle oracle = open_oracle(path, debug_path);
	Verdicts verdicts;

	assert_int_equal(built.result, 0);
	check_counts(&built);
	verdicts = compare(&oracle, &built, most);
	print_verdicts(path, &built.table, &verdicts);
	assert_int_equal(verdicts.counts[WRONG], 0);
	assert_true(verdicts.counts[SAME] > 0);
	close_oracle(&oracle);
	free_built(&built);
	return verdicts;
}

/* ---- what the system has --------------------------------------------------------------- */

static bool check_if_elf(const char *path)
{
	_cleanup_free_ char *magic = try_output("head -c4 '%s' 2>/dev/null | grep ELF", path);

	if (magic)
		check_object(path, NULL, 50000);
	return magic;
}

static void test_system_objects(void **state)
{
	static const char *const libraries[] = {
		"libc.so.6", "ld-linux-x86-64.so.2", "libcrypto.so.3", "libstdc++.so.6",
		"libm.so.6", "libLLVM-14.so.1",
	};
	static const char *const programs[] = {"/usr/bin/python3", "gdb", "bash", "node"};
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		_cleanup_free_ char *path = xasprintf("/usr/lib/x86_64-linux-gnu/%s", libraries[i]);

		found += check_if_elf(path);
	}
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		_cleanup_free_ char *path =
			try_output("p=$(command -v %s) && printf %%s \"$p\"", programs[i]);

		found += path && check_if_elf(path);
	}
	assert_true(found >= 2);
}

/* The kernel's, which is in no file. */
static void test_vdso(void **state)
{
	const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	char *folder;
	size_t size;

	(void)state;
	if (!vdso)
		skip_because("no vDSO");
	folder = make_folder();
	path = xasprintf("%s/vdso", folder);
	size = vdso->e_shoff + vdso->e_shnum * sizeof(Elf64_Shdr);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write_all(fd, vdso, size), 0);
	check_object(path, NULL, 20000);
	remove_folder(folder);
}

/* The C library's own restorer, __vfork and __libc_start_call_main's caller. */
static void test_libc_rules(void **state)
{
	static const char path[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	size_t in_register = 0;
	Built built;

	(void)state;
	if (access(path, R_OK))
		skip_because("no glibc there");
	built = build_table(path, NULL);
	for (size_t i = 0; i < built.table.rules.count; i++)
		in_register += built.table.rules.items[i].ra >= RA_REG;
	assert_int_equal(built.coverage.rows[CFA_SIGNAL], 1);
	assert_true(built.coverage.rows[CFA_END] >= 1);
	assert_true(built.coverage.rows[CFA_PLT] <= 1);
	assert_true(in_register >= 1);
	free_built(&built);
}

/* ---- compiled here ------------------------------------------------------------------------ */

#define PROGRAM                                                                                    \
	"#include <alloca.h>\n#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n"      \
	"#define OUT __attribute__((noinline))\n"                                                  \
	"extern void use(void *); void (*volatile sink)(void *);\n"                                \
	"void use(void *p) { if (sink) sink(p); }\n"                                               \
	"OUT int leaf(int x) { return x * 3 + 1; }\n"                                              \
	"OUT int stack(int x) { char b[4000]; memset(b, x, sizeof(b)); use(b); return b[x & 7]; }" \
	"\n"                                                                                       \
	"OUT int dynamic(int n) { char *p = alloca(n); memset(p, n, n); use(p); return p[n / 2]; " \
	"}\n"                                                                                      \
	"OUT int aligned(int a, int b, int c, int d, int e, int f, int g, int h) {\n"              \
	" __attribute__((aligned(64))) char x[128]; char *p = alloca(a); use(x); use(p);\n"        \
	" return x[b] + p[c] + d + e + f + g + h; }\n"                                             \
	"OUT __attribute__((noreturn)) void never(int x) { use(&x); exit(x); }\n"                  \
	"OUT int tail(int x) { if (x > 7) never(x); use(&x); if (x > 5) abort(); return x; }\n"    \
	"OUT __attribute__((cold)) int rare(int x) { printf(\"%d\\n\", x); use(&x); return x; }\n" \
	"OUT int hot(int x) { int s = 0; for (int i = 0; i < x; i++) { use(&i); s += i;\n"         \
	" if (__builtin_expect(s == 99, 0)) { s += rare(s); use(&s); abort(); } } return s; }\n"   \
	"OUT int many(int a, int b, int c, int d, int e, int f, int g, int h)\n"                   \
	"{ int s = a; for (; a < b; a++) { use(&c); s += stack(a) * d + e * f + g * h + leaf(s);"  \
	" } return s; }\n"                                                                         \
	"int main(int n, char **v) { return leaf(n) + stack(n) + dynamic(n) +\n"                   \
	" aligned(n, 1, 2, 3, 4, 5, 6, 7) + tail(n) + hot(n) + many(n, 1, 2, 3, 4, 5, 6, 7); }\n"

static char *make_program(void)
{
	char *folder = make_folder();

	write_file(folder, "a.c", PROGRAM);
	return folder;
}

static void test_compiled(void **state)
{
	static const char *const commands[] = {
		"gcc -O0",
		"gcc -O1",
		"gcc -O2",
		"gcc -O2 -fno-omit-frame-pointer",
		"gcc -O2 -fno-asynchronous-unwind-tables -fno-exceptions -g",
		"gcc -O2 -fno-asynchronous-unwind-tables -fno-exceptions -g -gz=zlib",
		"gcc -O2 -fno-asynchronous-unwind-tables -fno-exceptions -gdwarf-3",
		"gcc -O1 -fasynchronous-unwind-tables -g -Wl,-z,separate-code",
		"gcc -O2 -Wl,-z,noseparate-code -no-pie",
		"gcc -O2 -freorder-functions -ffunction-sections -Wl,--gc-sections",
		"gcc -O2 -mforce-drap -mstackrealign",
		"gcc -O2 -shared -fPIC",
		"gcc -O2 -static",
		"gcc -Os -Wl,-z,lazy -fcf-protection=full -Wl,-z,ibtplt",
		"clang -O0",
		"clang -O2",
		"clang -O2 -fno-asynchronous-unwind-tables -fno-exceptions -g",
		"clang -O1 -fno-omit-frame-pointer -g -gdwarf-5",
	};
	char *folder;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_program();
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		_cleanup_free_ char *path = xasprintf("%s/prog%zu", folder, i);
		_cleanup_free_ char *built =
			try_output("cd '%s' && %s a.c -w -o prog%zu 2>&1", folder, commands[i], i);

		if (!built)
			print_message("not built: %s\n", commands[i]);
		assert_true(built || strncmp(commands[i], "gcc", 3));
		print_message("%s: ", commands[i]);
		if (built)
			check_object(path, NULL, 20000);
	}
	remove_folder(folder);
}

/* Only .debug_frame knows the program's functions, here and in a file of its own. */
static void test_debug_frame(void **state)
{
	char *folder;
	_cleanup_free_ char *whole = NULL, *stripped = NULL, *debug = NULL;
	Built with, without, own;

	(void)state;
	if (!has_program("gcc") || !has_program("objcopy"))
		skip_because("no gcc or no objcopy");
	folder = make_program();
	whole = xasprintf("%s/prog", folder);
	stripped = xasprintf("%s/stripped", folder);
	debug = xasprintf("%s/prog.debug", folder);
	run("cd '%s' && gcc -w -O2 -g -gz=zlib -fno-asynchronous-unwind-tables -fno-exceptions a.c "
	    "-o prog && objcopy --only-keep-debug prog prog.debug && strip prog -o stripped",
	    folder);
	check_object(stripped, debug, 20000);
	own = build_table(whole, NULL);
	with = build_table(stripped, debug);
	without = build_table(stripped, NULL);
	assert_int_equal(with.table.rows.count, own.table.rows.count);
	assert_memory_equal(with.table.rows.items, own.table.rows.items,
			    own.table.rows.count * sizeof(struct unwind_row));
	assert_memory_equal(with.table.rules.items, own.table.rules.items,
			    own.table.rules.count * sizeof(struct unwind_rule));
	assert_true(without.coverage.bytes[CFA_NONE] > with.coverage.bytes[CFA_NONE]);
	assert_true(with.table.counts.fdes > without.table.counts.fdes + 7);
	assert_true(without.table.counts.code_gaps + without.table.counts.code_followed >
		    without.table.counts.code / 2);
	assert_true(with.table.counts.code_gaps < with.table.counts.code / 10);
	free_built(&own);
	free_built(&with);
	free_built(&without);
	remove_folder(folder);
}

/* The same table by way of the program headers. */
static void test_no_section_headers(void **state)
{
	_cleanup_free_ char *path = NULL;
	uint64_t none[1] = {0};
	size_t unknown = 0;
	char *folder;
	Built with, without;
	int fd;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_program();
	path = xasprintf("%s/prog", folder);
	run("cd '%s' && gcc -w -O2 -s a.c -o prog", folder);
	with = build_table(path, NULL);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, none, sizeof(none), offsetof(Elf64_Ehdr, e_shoff)), 8);
	assert_int_equal(pwrite(fd, none, 4, offsetof(Elf64_Ehdr, e_shnum)), 4);
	close(fd);
	check_object(path, NULL, 20000);
	without = build_table(path, NULL);
	/* Only where code ends between functions is not known. */
	for (size_t i = 0; i < with.table.rows.count; i++) {
		uint32_t pc = with.table.rows.items[i].pc;
		const struct unwind_rule *one = rule_at(&with.table, pc);
		const struct unwind_rule *other = rule_at(&without.table, pc);

		if (one->cfa == CFA_NONE || other->cfa == CFA_NONE)
			unknown++;
		else
			assert_memory_equal(one, other, sizeof(*one));
	}
	assert_true(unknown < with.table.rows.count / 4);
	free_built(&with);
	free_built(&without);
	remove_folder(folder);
}

/* ---- what no FDE covers ---------------------------------------------------------------------- */

#define SIGNAL_FRAME                                                                               \
	" .cfi_startproc simple\n .cfi_signal_frame\n"                                             \
	" .cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6\n .cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0\n"         \
	" .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1\n .cfi_escape 0x10, 7, 3, 0x77, 0xa0, 1\n"        \
	" mov $15, %rax\n syscall\n .cfi_endproc\n"

/* A static program of musl: neither its first function nor its restorer has an FDE. */
#define ASSEMBLY                                                                                   \
	".globl _start, before, middle, last, restorer, signal, signal_end, touching, "            \
	"touching_end\n"                                                                           \
	".text\nbefore: .zero 40, 0x90\n"                                                          \
	"_start: xor %ebp, %ebp\n call middle\n hlt\n .zero 30, 0x90\n"                            \
	"middle: .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset 6, -16\n"       \
	" ret\n .cfi_endproc\n nop\n"                                                              \
	"restorer: mov $15, %rax\n syscall\n mov $15, %rax\n syscall\n"                            \
	" .zero 20, 0x90\n"                                                                        \
	"last: .cfi_startproc\n ret\n .cfi_endproc\n nop\n"                                        \
	"signal:" SIGNAL_FRAME "signal_end: .zero 50, 0x90\n"                                      \
	"close: .cfi_startproc\n ret\n .cfi_endproc\n"                                             \
	"touching:" SIGNAL_FRAME "touching_end: .zero 50, 0x90\n"

static uint64_t address_of(const char *path, const char *name)
{
	_cleanup_free_ char *text =
		output_of(NM " '%s' | awk '$3 == \"%s\" { print $1 }'", path, name);
	uint64_t address = 0;

	assert_int_equal(sscanf(text, "%" SCNx64, &address), 1);
	return address;
}

/* From `from` on up to before `to` it is all of this kind, and not so just outside. */
static void assert_kind(const Built *built, uint64_t from, uint64_t to, enum unwind_cfa kind)
{
	uint64_t base = built->identity.base_svma;

	for (uint64_t svma = from; svma < to; svma++)
		assert_int_equal(rule_at(&built->table, svma - base)->cfa, kind);
	assert_int_not_equal(rule_at(&built->table, from - 1 - base)->cfa, kind);
	assert_int_not_equal(rule_at(&built->table, to - base)->cfa, kind);
}

static void test_gaps(void **state)
{
	_cleanup_free_ char *path = NULL;
	uint64_t restorer, signal;
	char *folder;
	Built built;

	(void)state;
	if (!has_program("gcc") || !has_program("nm"))
		skip_because("no gcc or no nm");
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	write_file(folder, "a.s", ASSEMBLY);
	run("cd '%s' && gcc -nostdlib -static a.s -o prog 2>&1", folder);
	built = build_table(path, NULL);
	assert_int_equal(built.result, 0);
	restorer = address_of(path, "restorer");
	signal = address_of(path, "signal");
	assert_kind(&built, address_of(path, "_start"), address_of(path, "middle"), CFA_END);
	/* The walk looks for the byte before. */
	assert_kind(&built, restorer - 1, restorer + 18, CFA_SIGNAL);
	assert_kind(&built, signal - 1, address_of(path, "signal_end"), CFA_SIGNAL);
	/* But not if that is a function's. */
	assert_kind(&built, address_of(path, "touching"), address_of(path, "touching_end"),
		    CFA_SIGNAL);
	assert_kind(&built, restorer + 18, address_of(path, "last"), CFA_NONE);
	assert_int_equal(built.coverage.rows[CFA_SIGNAL], 3);
	assert_int_equal(built.coverage.rows[CFA_END], 1);
	free_built(&built);
	remove_folder(folder);
}

/* No ELF file, and one without call frame information. */
static void test_nothing(void **state)
{
	static ElfMap closed;
	_cleanup_free_ char *path = NULL;
	UnwindTable table = {};
	char *folder;
	Built built;

	(void)state;
	assert_int_equal(unwind_table_build(&closed, NULL, 0, &table), -ENOEXEC);
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	write_file(folder, "a.s", ".globl _start\n_start: ret\n");
	run("cd '%s' && gcc -nostdlib -static -Wl,--no-ld-generated-unwind-info a.s -o prog 2>&1",
	    folder);
	built = build_table(path, NULL);
	assert_int_equal(built.result, -ENODATA);
	free_built(&built);
	remove_folder(folder);
}

/* What came from somewhere is looked at. */
static void test_valid(void **state)
{
	struct unwind_row rows[] = {{0, 0}, {16, 1}, {32, 0}};
	struct unwind_rule rules[] = {{.cfa = CFA_NONE}, {.cfa = CFA_REG, .cfa_reg = 7}};
	UnwindTable table = {.rows = {rows, 3, 3}, .rules = {rules, 2, 2}};

	(void)state;
	assert_true(unwind_table_valid(&table));
#define INVALID(place, value)                                                                      \
	({                                                                                         \
		typeof(place) kept_ = place;                                                       \
                                                                                                   \
		place = value;                                                                     \
		assert_false(unwind_table_valid(&table));                                          \
		place = kept_;                                                                     \
		assert_true(unwind_table_valid(&table));                                           \
	})
	INVALID(rows[0].pc, 1);
	INVALID(rows[2].pc, 16);
	INVALID(rows[2].pc, 8);
	INVALID(rows[2].rule, 1);
	INVALID(rows[2].rule, 2);
	INVALID(rows[2].rule, UINT32_MAX);
	INVALID(rules[0].cfa, CFA_SIGNAL + 1);
	INVALID(rules[0].extra, NONE_UNKNOWN_CODE + 1);
	INVALID(rules[0].extra, -1);
	INVALID(rules[1].cfa_reg, DWARF_REGS);
	INVALID(rules[1].ra, 1);
	INVALID(rules[1].ra, RA_REG + DWARF_REGS);
	INVALID(rules[1].bp, BP_LOST + 1);
	INVALID(rules[1].bp, BP_IN_REG + DWARF_REGS);
	INVALID(rules[1].bx, BX_LOST + 1);
	INVALID(rules[1].stack, STACK_SAME_GUESS + 1);
	INVALID(table.rows.count, 0);
	INVALID(table.rules.count, 1);
}

/* ---- the truth altered --------------------------------------------------------------------- */

/* One change of a rule or a row must be seen. */
static void alter(Built *built, int how, size_t victim)
{
	struct unwind_row *row = &built->table.rows.items[victim];
	struct unwind_rule rule = built->table.rules.items[row->rule];

	switch (how) {
	case 0:
		rule.cfa_offset += 8;
		break;
	case 1:
		rule.cfa_reg = rule.cfa_reg == DWARF_RSP ? DWARF_RBP : DWARF_RSP;
		break;
	case 2:
		rule.bp = rule.bp == BP_SAME ? BP_AT_CFA : BP_SAME;
		break;
	case 3:
		rule.ra = RA_REG + 3;
		break;
	case 4:
		rule = (struct unwind_rule){.cfa = CFA_END};
		break;
	case 5:
		rule = (struct unwind_rule){.cfa = CFA_NONE, .extra = NONE_GAP};
		break;
	case 6:
		rule.bx = rule.bx == BX_SAME ? BX_AT_CFA : BX_SAME;
		break;
	case 7:
		row->pc++;
		return;
	}
	row->rule = built->table.rules.count;
	*vec_push(&built->table.rules) = rule;
}

/*
 * A row that libdw has, too, and that does not become another one by a byte less. That byte goes to
 * the row before it, by which the CFA must be another: it may merely know less, or be of a PLT,
 * whose rule is the same at some places. (The first row of all is a gap.)
 */
static bool can_be_altered(const Oracle *oracle, const Built *built, size_t victim)
{
	const struct unwind_row *row = &built->table.rows.items[victim];
	const struct unwind_rule *rule = &built->table.rules.items[row->rule], *before;
	Machine machine = random_machine(0);

	if (rule->cfa != CFA_REG || row[1].pc - row->pc < 2)
		return false;
	before = &built->table.rules.items[row[-1].rule];
	return before->cfa == CFA_REG &&
	       (before->cfa_reg != rule->cfa_reg || before->cfa_offset != rule->cfa_offset) &&
	       ask_libdw(oracle, built->identity.base_svma + row->pc, &machine).covered;
}

static void test_altered(void **state)
{
	_cleanup_free_ char *path = NULL;
	char *folder;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_program();
	path = xasprintf("%s/prog", folder);
	run("cd '%s' && gcc -w -O2 a.c -o prog", folder);
	for (int how = 0; how < 8; how++) {
		Built built = build_table(path, NULL);
		Oracle oracle = open_oracle(path, NULL);
		size_t victim, tries = 0;

		assert_true(built.coverage.rows[CFA_REG] > 10);
		do {
			assert_true(tries++ < 10000);
			victim = random_below(built.table.rows.count - 1);
		} while (!can_be_altered(&oracle, &built, victim));
		assert_int_equal(compare(&oracle, &built, 20000).counts[WRONG], 0);
		alter(&built, how, victim);
		assert_true(compare(&oracle, &built, 20000).counts[WRONG] > 0);
		close_oracle(&oracle);
		free_built(&built);
	}
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_system_objects), cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_libc_rules),     cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_debug_frame),    cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_gaps),	       cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_valid),	       cmocka_unit_test(test_altered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
