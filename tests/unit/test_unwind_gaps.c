/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that no FDE covers: by its bytes, and against a processor that runs it step by step.
 */
#include "test_tools.h"
#include "unwind_code.h"
#include "unwind_instruction.h"
#include "unwind_oracle.h"
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define SUB	   0x48, 0x83, 0xec, 8
#define ADD	   0x48, 0x83, 0xc4, 8
#define ENDBR	   0xf3, 0x0f, 0x1e, 0xfa
#define RET	   0xc3
#define CALL	   0xe8, 1, 2, 3, 4
#define BREAK	   0xcc

/* ---- by its bytes --------------------------------------------------------------------- */

typedef struct Depth {
	uint32_t at;
	int offset; /* CFA - rsp */
	bool bp_saved;
} Depth;

typedef struct Known {
	const uint8_t *bytes;
	size_t size;
	Depth depths[8];
	uint32_t end;
} Known;

static const Known known[] = {
	/* crti.o and crtn.o, as glibc has them, as GCC for CET, and as musl */
	{BYTES(SUB, 0x48, 0x8b, 5, 1, 2, 3, 4, 0x48, 0x85, 0xc0, 0x74, 2, 0xff, 0xd0, ADD, RET),
	 {{0, 8, false}, {4, 16, false}, {22, 8, false}},
	 23},
	{BYTES(ENDBR, SUB, CALL, ADD, RET), {{0, 8, false}, {8, 16, false}, {17, 8, false}}, 18},
	{BYTES(SUB, ADD, RET), {{0, 8, false}, {4, 16, false}, {8, 8, false}}, 9},
	{BYTES(0x50, CALL, 0x58, RET), {{0, 8, false}, {1, 16, false}, {7, 8, false}}, 8},
	/* __do_global_dtors_aux */
	{BYTES(0x80, 0x3d, 1, 2, 3, 4, 0, 0x75, 11, 0x55, 0x48, 0x89, 0xe5, CALL, 0x5d, RET, RET),
	 {{0, 8, false}, {10, 16, true}, {19, 8, false}},
	 21},
	/* Two functions, nops before and between them; the second jumps to the first. */
	{BYTES(0x90, 0x66, 0x90, RET, 0x0f, 0x1f, 0x40, 0, ENDBR, 0xeb, 0xf5), {{3, 8, false}}, 14},
	/* An instruction that is not known ends it in front of the function in which it is. */
	{BYTES(SUB, ADD, RET, BREAK, 0x50, 0x41, 0x57, 0x58, RET),
	 {{0, 8, false}, {4, 16, false}, {8, 8, false}},
	 10},
};

static const struct {
	const uint8_t *bytes;
	size_t size;
} unknown[] = {
	{BYTES(SUB, RET)},		      /* not balanced */
	{BYTES(ADD, RET)},		      /* takes the return address */
	{BYTES(SUB, ADD)},		      /* goes on behind the end */
	{BYTES(0x50, 0x5d, RET)},	      /* rbp is what rax was */
	{BYTES(0x55, 0x58, RET)},	      /* rax is what rbp was */
	{BYTES(0x50, 0x55, 0x5d, 0x58, RET)}, /* rbp where no rule here has it */
	{BYTES(0x48, 0x89, 0xe5, RET)},	      /* rbp is lost */
	{BYTES(0x74, 4, SUB, ADD, RET)},      /* meets with two depths */
	{BYTES(0x74, 5, SUB, ADD, RET)},      /* into an instruction */
	{BYTES(0x74, 100, RET)},	      /* a branch to nowhere */
	{BYTES(SUB, 0xff, 0xe0)},	      /* leaves with a word too many */
	{BYTES(SUB, 0xe9, 1, 2, 3, 4)},	      /* so does this */
	{BYTES(SUB, 0xeb, 0xfa)},	      /* a loop that grows */
	{BYTES(0xeb, 0xff, RET)},	      /* backwards into an instruction */
	{BYTES(0x48, 0x83, 0xec, 16, 0x48, 0x83, 0xc4, 16, RET)}, /* not so much */
	{BYTES(0x48, 0x01, 0xc4, RET)},				  /* add %rax,%rsp */
	{BYTES(0x48, 0x89, 0xc3, RET)},				  /* mov %rax,%rbx */
	{BYTES(0x48, 0x8b, 0x1d, 1, 2, 3, 4, RET)},		  /* mov number(%rip),%rbx */
	{BYTES(0xbb, 1, 2, 3, 4, RET)},				  /* mov $number,%ebx */
	{BYTES(0x5b, RET)},					  /* pop %rbx */
	{BYTES(0xc9, RET)},					  /* leave */
	{BYTES(0x00, 0x00)},
	{BYTES(0x90, 0x90)},
	{BYTES(0xe8, 1, 2)},
};

/* Of exactly this size: what is read behind it is seen. */
static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = xcalloc(1, size ? size : 1);

	memcpy(copy, bytes, size);
	return copy;
}

static void assert_depth(const UnwindCodeRow *row, const Depth *depth)
{
	struct unwind_rule expected = {.cfa = CFA_REG,
				       .cfa_reg = DWARF_RSP,
				       .cfa_offset = depth->offset,
				       .bp = depth->bp_saved ? BP_AT_CFA : BP_SAME,
				       .bp_offset = depth->bp_saved ? -16 : 0};

	assert_int_equal(row->at, depth->at);
	assert_memory_equal(&row->rule, &expected, sizeof(expected));
}

static void test_known(void **state)
{
	UnwindCodeRows rows;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const uint8_t *first = known[i].bytes;
		_cleanup_free_ uint8_t *copy = copy_of(first, known[i].size);
		size_t count = 0;

		print_message("known %zu\n", i);
		/* Padding in front of it: it must be aligned. */
		unwind_code_follow(copy, known[i].size, 0x1010 - (*first == 0x90 ? 3 : 0),
				   /* function_begins= */ false, &rows);
		while (count < ARRAY_LEN(known[i].depths) && known[i].depths[count].offset)
			count++;
		assert_int_equal(rows.count, count);
		for (size_t k = 0; k < count; k++)
			assert_depth(&rows.items[k], &known[i].depths[k]);
		assert_int_equal(rows.end, known[i].end);
		unwind_code_follow(copy, known[i].size, 0x1011, /* function_begins= */ false,
				   &rows);
		assert_int_equal(rows.count, 0);
		/* Cut anywhere, it is known up to some function's end, or not. */
		for (size_t size = 0; size < known[i].size; size++) {
			_cleanup_free_ uint8_t *cut = copy_of(first, size);

			unwind_code_follow(cut, size, 0x1010, /* function_begins= */ true, &rows);
			assert_true(rows.end <= size);
		}
	}
}

static void test_unknown(void **state)
{
	UnwindCodeRows rows;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		_cleanup_free_ uint8_t *copy = copy_of(unknown[i].bytes, unknown[i].size);

		unwind_code_follow(copy, unknown[i].size, 0x1000, /* function_begins= */ true,
				   &rows);
		if (rows.count)
			fail_msg("unknown %zu: %zu rows", i, rows.count);
	}
}

/* Any bytes: rows in order, within them. */
static void test_random(void **state)
{
	UnwindCodeRows rows;
	size_t found = 0;

	(void)state;
	for (int round = 0; round < 200000; round++) {
		size_t size = random_below(40);
		_cleanup_free_ uint8_t *bytes = xcalloc(1, size + 1);

		for (size_t at = 0; at < size;) {
			const Known *from = &known[random_below(ARRAY_LEN(known))];
			size_t wanted = 1 + random_below(from->size);
			size_t part = MIN(size - at, wanted);

			memcpy(bytes + at, from->bytes + random_below(from->size - part + 1), part);
			at += part;
		}
		unwind_code_follow(bytes, size, 0x1000, /* function_begins= */ true, &rows);
		assert_true(rows.end <= size);
		for (size_t i = 0; i < rows.count; i++)
			assert_true(rows.items[i].at < rows.end &&
				    (i == 0 || rows.items[i - 1].at < rows.items[i].at));
		found += rows.count > 0;
	}
	assert_true(found > 100);
}

/* More than is looked at: a function that goes on behind that is not known. */
static void test_long(void **state)
{
	UnwindCodeRows rows;
	uint8_t bytes[2 * UNWIND_CODE_MAX];

	(void)state;
	for (size_t first = UNWIND_CODE_MAX - 3; first < UNWIND_CODE_MAX + 3; first++) {
		memset(bytes, 0x90, sizeof(bytes));
		bytes[0] = RET;
		bytes[first] = 0x50;
		unwind_code_follow(bytes, sizeof(bytes), 0x1000, /* function_begins= */ true,
				   &rows);
		assert_int_equal(rows.count, 1);
		assert_int_equal(rows.end, MIN(first, (size_t)UNWIND_CODE_MAX));
		memset(bytes, 0x50, first);
		bytes[first] = RET;
		unwind_code_follow(bytes, sizeof(bytes), 0x1000, /* function_begins= */ true,
				   &rows);
		assert_int_equal(rows.count, 0);
	}
	/* Fills all of it. */
	memset(bytes, 0x90, sizeof(bytes));
	bytes[0] = 0x50;
	unwind_code_follow(bytes, sizeof(bytes), 0x1000, /* function_begins= */ false, &rows);
	assert_int_equal(rows.count, 0);
}

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
		output_of("nm '%s/prog' | awk '$3 == \"%s\" { print $1 }'", folder, name);

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
		{".rept 16384\n mov %rbx, (%rdx)\n nop\n .endr", NONE_FOREIGN},
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
		assert_none(&built, after + 1, NONE_FOREIGN);
		assert_none(&built, restorer - 2, NONE_FOREIGN);
		assert_none(&built, restorer + 9, NONE_FOREIGN);
		assert_none(&built, end - 1, NONE_FOREIGN);
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
	assert_none(&built, start - 1, NONE_GAP);
	assert_int_equal(rule_at(&built.table, start - built.identity.base_svma)->cfa, CFA_END);
	assert_int_equal(rule_at(&built.table, start + 255 - built.identity.base_svma)->cfa,
			 CFA_END);
	assert_none(&built, start + 256, NONE_FOREIGN);
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
	Call calls[16];
	size_t depth, steps, checked, wrong;
} Stepper;

static uint64_t peek(const Stepper *stepper, uint64_t address)
{
	return ptrace(PTRACE_PEEKDATA, stepper->pid, address, NULL);
}

static uint64_t bp_of(const Stepper *stepper, const struct unwind_rule *rule, uint64_t cfa,
		      uint64_t bp)
{
	return rule->bp == BP_AT_CFA ? peek(stepper, cfa + rule->bp_offset) : bp;
}

static void check_step(Stepper *stepper, const struct user_regs_struct *regs)
{
	const struct unwind_rule *rule =
		rule_at(&stepper->built->table, regs->rip - stepper->built->identity.base_svma);
	const Call *call = &stepper->calls[stepper->depth - 1];
	uint64_t cfa = regs->rsp + rule->cfa_offset;

	stepper->checked++;
	if (rule->cfa != CFA_REG || rule->cfa_reg != DWARF_RSP || cfa != call->rsp + 8 ||
	    peek(stepper, cfa - 8) != call->ra || rule->bx != BX_SAME || regs->rbx != call->bx ||
	    bp_of(stepper, rule, cfa, regs->rbp) != call->bp)
		stepper->wrong++;
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
	for (size_t i = 0; i < ARRAY_LEN(stepper->starts); i++)
		if (stepper->starts[i] == regs.rip) {
			assert_true(stepper->depth < ARRAY_LEN(stepper->calls));
			stepper->calls[stepper->depth++] =
				(Call){regs.rsp, peek(stepper, regs.rsp), regs.rbp, regs.rbx};
		}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_touched_restorer),
		cmocka_unit_test(test_stepped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
