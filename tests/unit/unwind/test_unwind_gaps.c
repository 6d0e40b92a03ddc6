/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that no FDE covers, in an object: what is between functions, signal handlers' return, the
 * program's first function; and start-up code against a processor that runs it step by step.
 */
#include "cfi_fixture.h"
#include "test_tools.h"
#include "unwind_oracle.h"
#include <inttypes.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define BREAK 0xcc

/* ---- in an object --------------------------------------------------------------------- */

#define FUNCTION(name, ...) name ": .cfi_startproc\n " __VA_ARGS__ "\n .cfi_endproc\n"

static Built build_assembly(const char *folder, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/prog", folder);

	write_file(folder, "a.s", text);
	run("cd '%s' && gcc -nostdlib -static a.s -o prog 2>&1", folder);
	return build_table(path, NULL);
}

static uint64_t symbol(const char *folder, const char *name)
{
	_cleanup_free_ char *text =
		output_of(NM " '%s/prog' | awk '$3 == \"%s\" { print $1 }'", folder, name);

	return strtoull(text, NULL, 16);
}

static void assert_none(const Built *built, uint64_t svma, enum unwind_none why)
{
	const struct unwind_rule *rule = rule_at(&built->table, svma - built->identity.base_svma);

	assert_int_equal(rule->cfa, CFA_NONE);
	assert_int_equal(rule->extra, why);
}

/* Large and not empty: foreign, but for signal handlers' return in it. */
static void test_foreign(void **state)
{
	static const struct {
		const char *content;
		enum unwind_none inside;
	} gaps[] = {
		{".rept 16384\n mov %rbx, (%rdx)\n nop\n .endr", NONE_UNKNOWN_CODE},
		{".rept 16383\n mov %rbx, (%rdx)\n nop\n .endr", NONE_GAP},
		{".fill 100000, 1, 0xcc", NONE_GAP},
		{".fill 100000, 1, 0", NONE_GAP},
		{".fill 10000, 10, 0x841f0f2e66", NONE_GAP},
	};
	char *folder;

	(void)state;
	if (!has_program("gcc") || !has_program("nm"))
		skip_because("no gcc or no nm");
	folder = make_folder();
	for (size_t i = 0; i < ARRAY_LEN(gaps); i++) {
		_cleanup_free_ char *text =
			xasprintf(".globl gap, after, restorer, end\n" FUNCTION(
					  "one", "ret") "gap: %s\n"
							"after: .cfi_startproc\n ret\n "
							".cfi_endproc\n .zero 70000, 0x41\n"
							"restorer: mov $15, %%rax\n syscall\n "
							".zero 100, 0x41\nend:\n",
				  gaps[i].content);
		Built built = build_assembly(folder, text);
		uint64_t gap = symbol(folder, "gap"), after = symbol(folder, "after");
		uint64_t restorer = symbol(folder, "restorer"), end = symbol(folder, "end");

		print_message("%s: %" PRIu64 " bytes\n", gaps[i].content, after - gap);
		assert_none(&built, gap, gaps[i].inside);
		assert_none(&built, after - 1, gaps[i].inside);
		assert_none(&built, after + 1, NONE_UNKNOWN_CODE);
		assert_none(&built, restorer - 2, NONE_UNKNOWN_CODE);
		assert_none(&built, restorer + 9, NONE_UNKNOWN_CODE);
		assert_none(&built, end - 1, NONE_UNKNOWN_CODE);
		assert_none(&built, end, NONE_GAP);
		assert_int_equal(built.coverage.rows[CFA_SIGNAL], 1);
		free_built(&built);
	}
	remove_folder(folder);
}

/* The first function of a program without tables does not make all of it the stack's end. */
static void test_entry(void **state)
{
	char *folder;
	Built built;
	uint64_t start;

	(void)state;
	if (!has_program("gcc") || !has_program("nm"))
		skip_because("no gcc or no nm");
	folder = make_folder();
	built = build_assembly(
		folder, ".globl _start\n.text\n" FUNCTION(
				"one", "ret") ".zero 300, 0x41\n_start: .zero 100000, 0x41\n");
	start = symbol(folder, "_start");
	assert_none(&built, start - 1, NONE_UNKNOWN_CODE);
	for (int i = 0; i < 64; i++)
		assert_int_equal(rule_at(&built.table, start + i - built.identity.base_svma)->cfa,
				 CFA_END);
	assert_none(&built, start + 64, NONE_UNKNOWN_CODE);
	free_built(&built);
	remove_folder(folder);
}

/* The byte before a restorer, where that is another function's last one. */
static void test_touched_restorer(void **state)
{
	static const struct {
		const char *last;
		bool early;
	} functions[] = {
		{"jmp *%rax", true},
		{"jmp .+1000", true},
		{"ud2", true},
		{"nop", true},
		{"int3", true},
		{"ret", false},
		{"hlt", false},
		{"call .+1000", false},
		{"call *%rax", false},
		{"call *8(%rax)", false},
		{"call *(%rax)", false},
		{"call *8(%rax,%rcx)", false},
		{"call *1000(%rip)", false},
		{"call *1000(%rax,%rcx)", false},
	};
	char *folder;

	(void)state;
	if (!has_program("gcc") || !has_program("nm"))
		skip_because("no gcc or no nm");
	folder = make_folder();
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		_cleanup_free_ char *text = xasprintf(
			".globl restorer\n" FUNCTION(
				"one", "xor %%ecx, %%ecx\n %s") "restorer: mov $15, %%rax\n "
								"syscall\n .zero 50, 0x41\n",
			functions[i].last);
		Built built = build_assembly(folder, text);
		uint64_t restorer = symbol(folder, "restorer") - built.identity.base_svma;

		print_message("%s\n", functions[i].last);
		assert_int_equal(rule_at(&built.table, restorer)->cfa, CFA_SIGNAL);
		assert_int_equal(rule_at(&built.table, restorer - 1)->cfa,
				 functions[i].early ? CFA_SIGNAL : CFA_REG);
		assert_int_equal(rule_at(&built.table, restorer - 2)->cfa, CFA_REG);
		free_built(&built);
	}
	remove_folder(folder);
}

/* ---- step by step ---------------------------------------------------------------------- */

/* A call of one of the functions. */
typedef struct Call {
	uint64_t rsp, ra, bp, bx; /* when it was entered */
} Call;

typedef struct Stepper {
	pid_t pid;
	const Built *built;
	uint64_t starts[6]; /* of the functions; 0 = none */
	bool all;	    /* whatever is called is one of them */
	struct user_regs_struct before;
	Call calls[256];
	size_t depth, steps, checked, wrong, guessed, unknown;
} Stepper;

static uint64_t peek(const Stepper *stepper, uint64_t address)
{
	return ptrace(PTRACE_PEEKDATA, stepper->pid, address, NULL);
}

static uint64_t kept_of(const Stepper *stepper, bool saved, uint64_t address, uint64_t now)
{
	return saved ? peek(stepper, address) : now;
}

static void check_step(Stepper *stepper, const struct user_regs_struct *regs)
{
	const struct unwind_rule *rule =
		rule_at(&stepper->built->table, regs->rip - stepper->built->identity.base_svma);
	const Call *call = &stepper->calls[stepper->depth - 1];
	uint64_t cfa = (rule->cfa_reg == DWARF_RBP ? regs->rbp : regs->rsp) + rule->cfa_offset;
	uint64_t bp = kept_of(stepper, rule->bp == BP_AT_CFA, cfa + rule->bp_offset, regs->rbp);
	uint64_t bx = kept_of(stepper, rule->bx == BX_AT_CFA, cfa + rule->bx_offset, regs->rbx);

	stepper->checked++;
	if (rule->cfa == CFA_NONE) {
		stepper->unknown++;
		return;
	}
	stepper->guessed += rule->stack == STACK_SAME_GUESS;
	if (rule->cfa != CFA_REG || cfa != call->rsp + 8 ||
	    (rule->ra == RA_AT_CFA && peek(stepper, cfa - 8) != call->ra) ||
	    (rule->bx != BX_LOST && bx != call->bx) || (rule->bp != BP_LOST && bp != call->bp)) {
		if (stepper->wrong++ < 5)
			print_message("%#llx: rule %d, %d%+d, bp %d%+d, bx %d%+d\n", regs->rip,
				      rule->cfa, rule->cfa_reg, rule->cfa_offset, rule->bp,
				      rule->bp_offset, rule->bx, rule->bx_offset);
	}
}

/* A call has put the address behind itself on the stack. */
static bool was_called(const Stepper *stepper, const struct user_regs_struct *regs)
{
	const struct user_regs_struct *before = &stepper->before;
	uint64_t top;

	if (regs->rsp != before->rsp - 8 || regs->rip - before->rip <= 8)
		return false;
	top = peek(stepper, regs->rsp);
	return top > before->rip && top - before->rip <= 8;
}

static bool is_entered(const Stepper *stepper, const struct user_regs_struct *regs)
{
	if (stepper->all)
		return was_called(stepper, regs);
	for (size_t i = 0; i < ARRAY_LEN(stepper->starts); i++)
		if (stepper->starts[i] == regs->rip)
			return true;
	return false;
}

static bool is_in_gap(const Oracle *oracle, uint64_t pc)
{
	Machine machine = random_machine(pc);

	return !ask_libdw(oracle, pc, &machine).covered;
}

static void look(Stepper *stepper, const Oracle *oracle, const ElfSegment *text)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, stepper->pid, NULL, &regs), 0);
	stepper->steps++;
	while (stepper->depth && regs.rsp > stepper->calls[stepper->depth - 1].rsp)
		stepper->depth--;
	if (regs.rip < text->vaddr || regs.rip - text->vaddr >= text->file_size)
		return;
	if (is_entered(stepper, &regs)) {
		assert_true(stepper->depth < ARRAY_LEN(stepper->calls));
		stepper->calls[stepper->depth++] =
			(Call){regs.rsp, peek(stepper, regs.rsp), regs.rbp, regs.rbx};
	}
	stepper->before = regs;
	if (stepper->depth && is_in_gap(oracle, regs.rip))
		check_step(stepper, &regs);
}

/* What the dynamic loader does before is not looked at, and 100,000 steps. */
static void run_to(const Stepper *stepper, uint64_t entry)
{
	uint64_t code = peek(stepper, entry);
	struct user_regs_struct regs;
	int status;

	assert_int_equal(ptrace(PTRACE_POKEDATA, stepper->pid, entry, (code & ~0xffUL) | BREAK), 0);
	assert_int_equal(ptrace(PTRACE_CONT, stepper->pid, NULL, NULL), 0);
	assert_int_equal(waitpid(stepper->pid, &status, 0), stepper->pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	assert_int_equal(ptrace(PTRACE_POKEDATA, stepper->pid, entry, code), 0);
	assert_int_equal(ptrace(PTRACE_GETREGS, stepper->pid, NULL, &regs), 0);
	assert_int_equal(regs.rip, entry + 1);
	regs.rip = entry;
	assert_int_equal(ptrace(PTRACE_SETREGS, stepper->pid, NULL, &regs), 0);
}

/* Where control is that has entered one of the functions and is in a gap, is in one of them. */
static void step_through(Stepper *stepper, const char *path, const Oracle *oracle, uint64_t entry)
{
	const ElfSegment *text = NULL;
	int status;

	for (size_t i = 0; i < stepper->built->identity.loads.count; i++)
		if (stepper->built->identity.loads.items[i].exec)
			text = &stepper->built->identity.loads.items[i];
	assert_non_null(text);

	stepper->pid = fork();
	if (stepper->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		setenv("LD_BIND_NOW", "1", 1);
		execl(path, path, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(stepper->pid, &status, 0), stepper->pid);
	assert_true(WIFSTOPPED(status)); /* by exec */
	run_to(stepper, entry);
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, NULL), 0);
	while (waitpid(stepper->pid, &status, 0) == stepper->pid && WIFSTOPPED(status)) {
		look(stepper, oracle, text);
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, NULL), 0);
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Start-up code of a program that is run: each instruction of it. */
static void test_stepped(void **state)
{
	static const char *const names[] = {"_init",
					    "_fini",
					    "frame_dummy",
					    "__do_global_dtors_aux",
					    "register_tm_clones",
					    "deregister_tm_clones"};
	_cleanup_free_ char *path = NULL;
	char *folder;

	(void)state;
	if (!has_program("gcc") || !has_program("nm"))
		skip_because("no gcc or no nm");
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	write_file(folder, "a.c", "int main(void) { return 7; }\n");
	run("cd '%s' && gcc -O2 -no-pie a.c -o prog", folder);
	for (int altered = 0; altered < 2; altered++) {
		Built built = build_table(path, NULL);
		Oracle oracle = open_oracle(path, NULL);
		Stepper stepper = {.built = &built};

		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			stepper.starts[i] = symbol(folder, names[i]);
		assert_true(stepper.starts[0] && stepper.starts[3]);
		if (altered)
			for (size_t i = 0; i < built.table.rules.count; i++)
				built.table.rules.items[i].cfa_offset += 8;
		step_through(&stepper, path, &oracle, symbol(folder, "_start"));
		print_message("%zu steps, %zu in code without an FDE, %zu wrong\n", stepper.steps,
			      stepper.checked, stepper.wrong);
		assert_true(stepper.checked >= 25);
		assert_int_equal(stepper.wrong, altered ? stepper.checked : 0);
		close_oracle(&oracle);
		free_built(&built);
	}
	remove_folder(folder);
}

#define MUSL_PROGRAM                                                                               \
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n"        \
	"#include <time.h>\n#include <locale.h>\n"                                                 \
	"static int by_size(const void *a, const void *b) { return *(int *)a - *(int *)b; }\n"     \
	"int main(int argc, char **argv) {\n"                                                      \
	" int numbers[40]; char text[200]; char *parts[20]; struct tm tm; time_t t = 86400;\n"     \
	" for (int i = 0; i < 40; i++) numbers[i] = i * 7919 % 101;\n"                             \
	" qsort(numbers, 40, sizeof(int), by_size);\n"                                             \
	" for (int i = 0; i < 20; i++) parts[i] = malloc(16 << i % 12);\n"                         \
	" for (int i = 0; i < 20; i++) free(parts[i]);\n"                                          \
	" gmtime_r(&t, &tm); strftime(text, sizeof(text), \"%c\", &tm);\n"                         \
	" snprintf(text, sizeof(text), \"%s %.12g %x\", argv[0], pow(argc + 1.5, 2.5), argc);\n"   \
	" setlocale(LC_ALL, \"\"); FILE *f = fopen(argv[0], \"r\"); fread(text, 1, 100, f);\n"     \
	" return 7 + (strtod(text, NULL) > 1 && strstr(text, \"x\")); }\n"

/* A whole C library without call frame information. */
static void test_stepped_musl(void **state)
{
	_cleanup_free_ char *path = NULL;
	char *folder;

	(void)state;
	if (!has_program("musl-gcc") || !has_program("nm"))
		skip_because("no musl-gcc or no nm");
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	write_file(folder, "a.c", MUSL_PROGRAM);
	run("cd '%s' && musl-gcc -w -O2 -no-pie -static a.c -o prog", folder);
	for (int altered = 0; altered < 2; altered++) {
		Built built = build_table(path, NULL);
		Oracle oracle = open_oracle(path, NULL);
		Stepper stepper = {.built = &built, .all = true};

		if (altered)
			for (size_t i = 0; i < built.table.rules.count; i++)
				built.table.rules.items[i].cfa_offset += 8;
		step_through(&stepper, path, &oracle, symbol(folder, "_start"));
		print_message("%zu steps, %zu in code without an FDE, %zu guessed, %zu unknown, "
			      "%zu wrong\n",
			      stepper.steps, stepper.checked, stepper.guessed, stepper.unknown,
			      stepper.wrong);
		assert_true(stepper.checked >= 10000);
		assert_true(stepper.unknown * 100 < stepper.checked);
		assert_true(altered ? stepper.wrong > stepper.checked / 2 : stepper.wrong == 0);
		close_oracle(&oracle);
		free_built(&built);
	}
	remove_folder(folder);
}

/* ---- the last address ------------------------------------------------------------------ */

#define LAST_PC 0xfffff000ULL

/* A CIE (CFA = rsp + 8), and an FDE of the function that begins at LAST_PC. */
static Bytes make_last(uint64_t function_size)
{
	static const uint8_t cie[] = {20, 0,	0, 0, 0,    0, 0, 0, 1, 0, 1, 0x78,
				      16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0};
	Bytes bytes = {};

	put_bytes(&bytes, cie, sizeof(cie));
	put_number(&bytes, 24, 4);
	put_number(&bytes, sizeof(cie) + 4, 4);
	put_number(&bytes, LAST_PC, 8);
	put_number(&bytes, function_size, 8);
	put_number(&bytes, 0, 4);
	return bytes;
}

/* Nothing follows a function that ends with the 4 GiB for which a table has addresses. */
static void test_last_address(void **state)
{
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);

	(void)state;
	for (uint64_t left = 0; left < 2; left++) {
		Bytes bytes = make_last((1ULL << 32) - LAST_PC - left);
		size_t size;
		_cleanup_free_ struct frames_file *file =
			make_frames_file(bytes.items, bytes.count, /* eh_frame= */ true, &size);
		FILE *out = fopen(path, "w");
		Built built;

		file->segment.p_filesz = file->segment.p_memsz = 1ULL << 32;
		assert_non_null(out);
		assert_int_equal(fwrite(file, 1, size, out), size);
		assert_int_equal(fclose(out), 0);
		built = build_table(path, NULL);
		assert_int_equal(built.result, 0);
		assert_none(&built, LAST_PC - 1, NONE_GAP);
		assert_int_equal(rule_at(&built.table, LAST_PC)->cfa, CFA_REG);
		assert_int_equal(rule_at(&built.table, UINT32_MAX - left)->cfa, CFA_REG);
		assert_int_equal(built.table.rows.count, 2 + left);
		free_built(&built);
		vec_free(&bytes);
	}
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign),		 cmocka_unit_test(test_entry),
		cmocka_unit_test(test_touched_restorer), cmocka_unit_test(test_stepped),
		cmocka_unit_test(test_stepped_musl),	 cmocka_unit_test(test_last_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
