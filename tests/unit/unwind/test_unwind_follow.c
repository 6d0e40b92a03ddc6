/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules that come from instructions, against the call frame information that the compiler wrote for
 * the same code, and against objdump.
 */
#include "test_tools.h"
#include "unwind_follow.h"
#include "unwind_functions.h"
#include "unwind_instruction.h"
#include "unwind_oracle.h"
#include <fcntl.h>
#include <inttypes.h>

/* The compiler's rules of one library, and the code that they are for. */
typedef struct Library {
	Built built;
	ElfMap file;
	UnwindSections sections;
} Library;

typedef struct Score {
	uint64_t bytes; /* for which the compiler has a rule by rsp or rbp */
	uint64_t same, differs, unknown, other_register;
	uint64_t guessed, guessed_wrong;
	/* By another register, or by a word of the stack. */
	uint64_t aligned, aligned_same, aligned_differs;
} Score;

static Library open_library(const char *path)
{
	Library library = {.built = build_table(path, NULL)};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(elf_map_open(fd, &library.file), 0);
	close(fd);
	assert_int_equal(unwind_sections_find(&library.file, NULL, library.built.identity.base_svma,
					      &library.sections),
			 0);
	return library;
}

static void close_library(Library *library)
{
	unwind_sections_free(&library->sections);
	elf_map_close(&library->file);
	free_built(&library->built);
}

/* Offsets of a saved register can be compared only if both rules have it on the stack. */
static bool kept_differs(uint8_t ours, int16_t our_offset, uint8_t theirs, int16_t their_offset,
			 uint8_t at_cfa)
{
	return ours == at_cfa && theirs == at_cfa && our_offset != their_offset;
}

/* As GCC has them in functions that align the stack. */
static void compare_aligned(const struct unwind_rule *ours, const struct unwind_rule *theirs,
			    uint64_t bytes, Score *score)
{
	score->aligned += bytes;
	if (ours->cfa == CFA_NONE)
		score->unknown += bytes;
	else if (ours->cfa != theirs->cfa || ours->cfa_reg != theirs->cfa_reg)
		score->other_register += bytes;
	else if (ours->cfa_offset != theirs->cfa_offset || ours->extra != theirs->extra ||
		 (ours->bp == theirs->bp && ours->bp_offset != theirs->bp_offset))
		score->aligned_differs += bytes;
	else
		score->aligned_same += bytes;
}

static void compare_rules(const struct unwind_rule *ours, const struct unwind_rule *theirs,
			  uint64_t bytes, Score *score)
{
	bool differs;

	if (theirs->cfa == CFA_DEREF || (theirs->cfa == CFA_REG && theirs->cfa_reg != DWARF_RSP &&
					 theirs->cfa_reg != DWARF_RBP))
		compare_aligned(ours, theirs, bytes, score);
	if (theirs->cfa != CFA_REG ||
	    (theirs->cfa_reg != DWARF_RSP && theirs->cfa_reg != DWARF_RBP))
		return;
	score->bytes += bytes;
	if (ours->cfa != CFA_REG) {
		score->unknown += bytes;
		return;
	}
	differs =
		kept_differs(ours->bp, ours->bp_offset, theirs->bp, theirs->bp_offset, BP_AT_CFA) ||
		kept_differs(ours->bx, ours->bx_offset, theirs->bx, theirs->bx_offset, BX_AT_CFA);
	if (ours->cfa_reg != theirs->cfa_reg)
		score->other_register += bytes;
	else
		differs |= ours->cfa_offset != theirs->cfa_offset;
	if (ours->stack != STACK_SAME) {
		score->guessed += bytes;
		score->guessed_wrong += differs ? bytes : 0;
	} else if (differs) {
		score->differs += bytes;
	} else {
		score->same += bytes;
	}
}

static void compare_range(const Library *library, const UnwindRange *range, const UnwindCode *code,
			  Score *score, int altered)
{
	UnwindCodeRows rows;

	unwind_follow_code(code, &rows);
	for (size_t i = 0; i < rows.count; i++)
		rows.items[i].rule.cfa_offset += altered;
	for (size_t i = 0; i < rows.count; i++) {
		uint32_t end = i + 1 < rows.count ? rows.items[i + 1].at : code->size;

		for (uint32_t at = rows.items[i].at; at < end;) {
			const UnwindTable *table = &library->built.table;
			const struct unwind_row *row = unwind_table_find(table, range->from + at);
			uint64_t next = row + 1 < table->rows.items + table->rows.count
						? row[1].pc - range->from
						: code->size;

			next = MIN(next, (uint64_t)end);
			compare_rules(&rows.items[i].rule, &table->rules.items[row->rule],
				      next - at, score);
			at = next;
		}
	}
	vec_free(&rows);
}

static Score score_of(const char *path, int altered)
{
	Library library = open_library(path);
	UnwindFunctions functions;
	Score score = {};

	unwind_functions_find(&library.file, NULL, library.built.identity.base_svma,
			      &library.sections, &functions);

	for (size_t i = 0; i < library.sections.code.count; i++) {
		const UnwindRange *range = &library.sections.code.items[i];
		UnwindOffsets starts = {};
		UnwindCode code = {.bytes = range->bytes,
				   .size = range->to - range->from,
				   .address = range->from,
				   .function_begins = true,
				   .entry = UINT32_MAX,
				   .unknown = {.cfa = CFA_NONE}};

		for (size_t k = 0; k < functions.count; k++)
			if (functions.items[k] >= range->from && functions.items[k] < range->to)
				*vec_push(&starts) = functions.items[k] - range->from;
		code.starts = starts.items;
		code.start_count = starts.count;
		compare_range(&library, range, &code, &score, altered);
		vec_free(&starts);
	}
	vec_free(&functions);
	close_library(&library);
	return score;
}

static double percent(uint64_t part, uint64_t of)
{
	return of ? 100.0 * part / of : 0;
}

/* Libraries of C and C++ that every release has. */
static void test_as_call_frame_information(void **state)
{
	static const char *const names[] = {"libc.so.6", "libm.so.6", "libstdc++.so.6"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *path = xasprintf("/usr/lib/x86_64-linux-gnu/%s", names[i]);
		Score score, altered;

		if (access(path, R_OK) < 0)
			continue;
		score = score_of(path, 0);
		altered = score_of(path, 8);
		print_message(
			"%s: %" PRIu64 " bytes, %.2f %% as the compiler says, %.3f %% otherwise, "
			"%.2f %% guessed (%.3f %% otherwise), %.2f %% unknown\n",
			names[i], score.bytes, percent(score.same, score.bytes),
			percent(score.differs, score.bytes), percent(score.guessed, score.bytes),
			percent(score.guessed_wrong, score.bytes),
			percent(score.unknown, score.bytes));
		assert_true(score.bytes > 100000);
		assert_true(percent(score.same, score.bytes) > 70);
		assert_true(percent(score.differs, score.bytes) < 0.5);
		assert_true(percent(score.guessed_wrong, score.bytes) < 10);
		assert_true(percent(score.unknown, score.bytes) < 15);
		assert_true(percent(altered.differs, altered.bytes) > 60);
	}
}

#define PROGRAM                                                                                    \
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"                           \
	"#define OUT __attribute__((noinline))\n"                                                  \
	"volatile int sink;\n"                                                                     \
	"OUT __attribute__((noreturn)) void dies(int x) { sink = x; exit(x); }\n"                  \
	"OUT __attribute__((cold)) void rare(int x) { sink += x; }\n"                              \
	"OUT int small(int x) { return x * sink; }\n"                                              \
	"OUT int pushes(int a, int b, int c) { int s = small(a); if (s == 7) { rare(b); "          \
	"rare(c);\n"                                                                               \
	" dies(s + b); } s += small(b); if (__builtin_expect(s == 9, 0)) { rare(s); s += "         \
	"small(c);"                                                                                \
	" }\n return s + small(c); }\n"                                                            \
	"OUT int cases(int x, char *p) { char room[100]; strcpy(room, p); switch (x) {\n"          \
	" case 1: return small(room[1]); case 2: return small(room[2]) + 3; case 3: rare(x); "     \
	"break;"                                                                                   \
	"\n case 4: return room[x] + small(4); case 5: dies(5); case 6: return small(room[6]) * "  \
	"7;"                                                                                       \
	" }\n return room[0]; }\n"                                                                 \
	"OUT int last(int x) { char room[40]; memset(room, x, 40); sink = room[x]; dies(x); }\n"   \
	"OUT int after(int x) { int s = 0; for (int i = 0; i < x; i++) s += small(i); return s; "  \
	"}\n"                                                                                      \
	"int main(int argc, char **argv) { int s = pushes(argc, argc + 1, argc + 2);\n"            \
	" s += cases(argc, argv[0]) + after(argc); if (s == 12345) last(s); return s & 1; }\n"

/* A program with symbols; those of cold parts must not count as functions. */
static void test_own_program(void **state)
{
	static const char *const options[] = {
		"-O1",
		"-O2",
		"-Os",
		"-O3 -fno-omit-frame-pointer",
		"-O2 -fno-toplevel-reorder",
		"-O2 -falign-functions=1",
		"-O2 -fcf-protection=full",
		"-O2 -s",
	};
	char *folder;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_folder();
	write_file(folder, "a.c", PROGRAM);
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		_cleanup_free_ char *path = xasprintf("%s/prog", folder);
		Score score;

		run("cd '%s' && gcc -w %s -g a.c -o prog", folder, options[i]);
		score = score_of(path, 0);
		print_message(
			"%s: %" PRIu64 " bytes, %.1f %% as the compiler says, %.1f %% guessed, "
			"%.1f %% unknown\n",
			options[i], score.bytes, percent(score.same, score.bytes),
			percent(score.guessed, score.bytes), percent(score.unknown, score.bytes));
		assert_int_equal(score.differs, 0);
		assert_true(percent(score.same, score.bytes) > 60);
		assert_true(score_of(path, 8).differs > score.same / 2);
	}
	remove_folder(folder);
}

#define ALIGNED_PROGRAM                                                                            \
	"#include <stdarg.h>\n#include <string.h>\n"                                               \
	"#define OUT __attribute__((noinline))\n"                                                  \
	"volatile int sink;\n"                                                                     \
	"OUT void take(void *room) { sink += *(char *)room; }\n"                                   \
	"OUT int many(int a, int b, int c, int d, int e, int f, int g, int h) {\n"                 \
	" _Alignas(64) char room[128]; memset(room, a + h, 128); take(room);\n"                    \
	" return room[b] + g * h + sink; }\n"                                                      \
	"OUT int moves(int size, int b, int c, int d, int e, int f, int g) {\n"                    \
	" _Alignas(32) char room[64]; char *more = __builtin_alloca(size);\n"                      \
	" memset(more, g, size); memset(room, g, 64); take(room); take(more);\n"                   \
	" if (more[b] == 7) return room[1]; return more[0] + room[c] + sink; }\n"                  \
	"OUT int list(int n, ...) { va_list a; _Alignas(64) int s[16]; memset(s, n, 64);\n"        \
	" va_start(a, n); while (n-- > 0) s[n & 15] += va_arg(a, int); va_end(a);\n"               \
	" take(s); return s[3]; }\n"                                                               \
	"int main(int argc, char **argv) { (void)argv;\n"                                          \
	" int s = many(argc, 1, 2, 3, 4, 5, 6, 7) + moves(argc + 9, 1, 2, 3, 4, 5, 6);\n"          \
	" return (s + list(argc, 1, 2, 3, 4, 5, 6, 7, 8)) & 1; }\n"

/* Functions that align the stack, and find their arguments by the caller's stack pointer. */
static void test_aligned_program(void **state)
{
	static const char *const options[] = {"-O1", "-O2 -mavx2", "-Os", "-O2 -mstackrealign -s"};
	char *folder;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_folder();
	write_file(folder, "a.c", ALIGNED_PROGRAM);
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		_cleanup_free_ char *path = xasprintf("%s/prog", folder);
		Score score;

		run("cd '%s' && gcc -w %s a.c -o prog", folder, options[i]);
		score = score_of(path, 0);
		print_message("%s: %" PRIu64 " bytes, %.1f %% as the compiler says, %" PRIu64
			      " otherwise\n",
			      options[i], score.aligned, percent(score.aligned_same, score.aligned),
			      score.aligned_differs);
		assert_int_equal(score.aligned_differs, 0);
		assert_true(score.aligned > 100);
		assert_true(percent(score.aligned_same, score.aligned) > 80);
		assert_int_equal(score_of(path, 8).aligned_differs, score.aligned_same);
	}
	remove_folder(folder);
}

/* ---- by its bytes --------------------------------------------------------------------- */

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define SUB	   0x48, 0x83, 0xec, 8
#define ADD	   0x48, 0x83, 0xc4, 8
#define ENDBR	   0xf3, 0x0f, 0x1e, 0xfa
#define RET	   0xc3
#define CALL	   0xe8, 1, 2, 3, 4
#define BREAK	   0xcc
#define SYSCALL	   0x0f, 0x05
#define PUSH_BP	   0x55
#define POP_BP	   0x5d
#define SET_BP	   0x48, 0x89, 0xe5
#define JUMP_RAX   0xff, 0xe0
#define ALIGN(to)  0x48, 0x83, 0xe4, (to)

#define SP(at_, offset)                                                                            \
	{                                                                                          \
		.at = (at_), .rule = {                                                             \
			.cfa = CFA_REG,                                                            \
			.cfa_reg = DWARF_RSP,                                                      \
			.cfa_offset = (offset)                                                     \
		}                                                                                  \
	}
#define RULE(at_, ...)                                                                             \
	{                                                                                          \
		.at = (at_), .rule = { __VA_ARGS__ }                                               \
	}
#define FRAME                                                                                      \
	.cfa = CFA_REG, .cfa_reg = DWARF_RBP, .cfa_offset = 16, .bp = BP_AT_CFA, .bp_offset = -16
#define BY_SP		    .cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset
#define BY_REG(reg, offset) .cfa = CFA_REG, .cfa_reg = (reg), .cfa_offset = (offset)
#define BY_WORD(reg, offset, more)                                                                 \
	.cfa = CFA_DEREF, .cfa_reg = (reg), .cfa_offset = (offset), .extra = (more)
#define UNKNOWN .cfa = CFA_NONE, .extra = NONE_UNKNOWN_CODE
#define END	.cfa = CFA_END

static const struct {
	const char *what;
	const uint8_t *bytes;
	size_t size;
	UnwindCodeRow rows[8]; /* up to the first without a rule */
} known[] = {
	{"crti.o and crtn.o, as glibc has them",
	 BYTES(SUB, 0x48, 0x8b, 5, 1, 2, 3, 4, 0x48, 0x85, 0xc0, 0x74, 2, 0xff, 0xd0, ADD, RET),
	 {SP(0, 8), SP(4, 16), SP(22, 8)}},
	{"as GCC for CET", BYTES(ENDBR, SUB, CALL, ADD, RET), {SP(0, 8), SP(8, 16), SP(17, 8)}},
	{"as musl", BYTES(0x50, CALL, 0x58, RET), {SP(0, 8), SP(1, 16), SP(7, 8)}},
	{"__do_global_dtors_aux",
	 BYTES(0x80, 0x3d, 1, 2, 3, 4, 0, 0x75, 11, PUSH_BP, SET_BP, CALL, POP_BP, RET, RET),
	 {SP(0, 8), SP(10, 16), RULE(13, FRAME), SP(19, 8)}},
	{"two functions, nops before and between them; nothing proves the second",
	 BYTES(0x90, 0x66, 0x90, RET, 0x0f, 0x1f, 0x40, 0, ENDBR, 0xeb, 0xf2),
	 {SP(3, 8), RULE(8, BY_SP = 8, .stack = STACK_SAME_GUESS)}},
	{"not balanced", BYTES(SUB, RET), {RULE(0, UNKNOWN)}},
	{"takes the return address", BYTES(ADD, RET), {RULE(0, UNKNOWN)}},
	{"returns from where another function begins",
	 BYTES(SUB, CALL, 0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x90, RET),
	 {SP(0, 8), SP(4, 16), SP(16, 8)}},
	{"rbp becomes what rax was",
	 BYTES(0x50, POP_BP, RET),
	 {SP(0, 8), SP(1, 16), RULE(2, BY_SP = 8, .bp = BP_LOST)}},
	{"rbp is not put back", BYTES(PUSH_BP, 0x31, 0xed, 0x58, RET), {RULE(0, UNKNOWN)}},
	{"rbx below rbp",
	 BYTES(PUSH_BP, 0x53, 0x31, 0xdb, 0x5b, POP_BP, RET),
	 {SP(0, 8), SP(1, 16), SP(2, 24), RULE(4, BY_SP = 24, .bx = BX_AT_CFA, .bx_offset = -24),
	  SP(5, 16), SP(6, 8)}},
	{"rbx and rbp by mov",
	 BYTES(0x48, 0x83, 0xec, 24, 0x48, 0x89, 0x5c, 0x24, 8, 0x31, 0xdb, 0x48, 0x8b, 0x5c, 0x24,
	       8, 0x48, 0x83, 0xc4, 24, RET),
	 {SP(0, 8), SP(4, 32), RULE(11, BY_SP = 32, .bx = BX_AT_CFA, .bx_offset = -24), SP(16, 32),
	  SP(20, 8)}},
	{"meets with two depths", BYTES(0x74, 4, SUB, ADD, RET), {SP(0, 8), RULE(6, UNKNOWN)}},
	{"an aligned stack",
	 BYTES(PUSH_BP, SET_BP, 0x48, 0x83, 0xe4, 0xe0, CALL, 0xc9, RET),
	 {SP(0, 8), SP(1, 16), RULE(4, FRAME), SP(14, 8)}},
	{"keeps the stack pointer at the place to which it aligns the stack",
	 BYTES(PUSH_BP, 0x48, 0x89, 0xe0, 0x48, 0x83, 0xec, 4, ALIGN(0xf0), 0x48, 0x89, 4, 0x24,
	       SET_BP, 0x48, 0x8d, 0x64, 0x24, 0xe0, 0x48, 0x89, 0xec, 0x5c, POP_BP, RET),
	 {SP(0, 8), SP(1, 16), SP(8, 20), RULE(12, BY_REG(0, 16)), RULE(16, BY_WORD(7, 0, 16)),
	  RULE(19, BY_WORD(6, 0, 16), .bp = BP_AT_CFA, .bp_offset = -16),
	  RULE(28, BY_SP = 16, .bp = BP_AT_CFA, .bp_offset = -16), SP(29, 8)}},
	{"as GCC aligns the stack of a function with arguments there",
	 BYTES(0x4c, 0x8d, 0x54, 0x24, 8, ALIGN(0xe0), 0x41, 0xff, 0x72, 0xf8, PUSH_BP, SET_BP,
	       0x41, 0x52, 0x48, 0x83, 0xec, 0x48, CALL, 0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d,
	       0x62, 0xf8, RET),
	 {SP(0, 8), RULE(9, BY_REG(10, 0)), RULE(17, BY_REG(10, 0), .bp = BP_AT_BP),
	  RULE(19, BY_WORD(6, -8, 0), .bp = BP_AT_BP), RULE(33, BY_REG(10, 0)), SP(37, 8)}},
	{"keeps the stack pointer above its room",
	 BYTES(0x48, 0x89, 0xe1, ALIGN(0xc0), 0x48, 0x83, 0xec, 0x60, 0x48, 0x89, 0x4c, 0x24, 0x50,
	       0x31, 0xc9, 0x48, 0x8b, 0x64, 0x24, 0x50, RET),
	 {SP(0, 8), RULE(7, BY_REG(2, 8)), RULE(16, BY_WORD(7, 0x50, 8)), SP(23, 8)}},
	{"keeps the stack pointer in a register that a callee may change",
	 BYTES(0x48, 0x89, 0xe0, ALIGN(0xf0), CALL, 0x48, 0x89, 0xc4, RET),
	 {SP(0, 8), RULE(7, BY_REG(0, 8)), RULE(12, UNKNOWN)}},
	{"overwrites the kept stack pointer",
	 BYTES(0x48, 0x89, 0xe0, ALIGN(0xf0), 0x48, 0x89, 4, 0x24, 0x31, 0xc0, 0x48, 0x89, 4, 0x24,
	       0x5c, RET),
	 {SP(0, 8), RULE(7, BY_REG(0, 8)), RULE(11, BY_WORD(7, 0, 8)), RULE(17, UNKNOWN)}},
	{"a loop that is entered in its midst",
	 BYTES(SUB, 0xeb, 2, 0x90, 0x90, 0x75, 0xfc, ADD, RET),
	 {SP(0, 8), SP(4, 16), SP(14, 8)}},
	{"a switch",
	 BYTES(SUB, JUMP_RAX, ADD, RET),
	 {SP(0, 8), SP(4, 16), RULE(6, BY_SP = 16, .stack = STACK_SAME_GUESS),
	  RULE(10, BY_SP = 8, .stack = STACK_SAME_GUESS)}},
	{"the return address in a register",
	 BYTES(0x5a, SYSCALL, 0x52, RET),
	 {SP(0, 8), RULE(1, BY_SP = 0, .ra = RA_REG + 1), SP(4, 8)}},
	{"the return address is lost", BYTES(0x59, SYSCALL, 0x51, RET), {RULE(0, UNKNOWN)}},
	{"a thread begins",
	 BYTES(SYSCALL, 0x85, 0xc0, 0x75, 4, 0x31, 0xed, 0xff, 0xd0, RET),
	 {SP(0, 8), RULE(8, END), SP(10, 8)}},
	{"no instruction of 64 bits", BYTES(SUB, 0x06, ADD, RET), {RULE(0, UNKNOWN)}},
	{"cut", BYTES(SUB, 0xe8, 1, 2), {RULE(0, UNKNOWN)}},
	{"padding alone", BYTES(0x90, 0x90), {}},
};

/* The copy has exactly this size, so that the sanitizer reports a read behind it. */
static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = xcalloc(1, size ? size : 1);

	memcpy(copy, bytes, size);
	return copy;
}

static UnwindCode code_of(const uint8_t *bytes, size_t size, uint64_t address)
{
	return (UnwindCode){.bytes = bytes,
			    .size = size,
			    .address = address,
			    .entry = UINT32_MAX,
			    .unknown = {UNKNOWN}};
}

static void test_known(void **state)
{
	UnwindCodeRows rows;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		_cleanup_free_ uint8_t *copy = copy_of(known[i].bytes, known[i].size);
		/* Behind padding, a function must be aligned. */
		UnwindCode code = code_of(copy, known[i].size, 0x1010 - (*copy == 0x90 ? 3 : 0));
		size_t count = 0;

		print_message("%s\n", known[i].what);
		while (count < ARRAY_LEN(known[i].rows) &&
		       (known[i].rows[count].rule.cfa || known[i].rows[count].rule.extra))
			count++;
		unwind_follow_code(&code, &rows);
		for (size_t k = 0; k < rows.count; k++)
			print_message("  %u: cfa %d, %d%+d, bp %d%+d, bx %d%+d, ra %d, stack %d\n",
				      rows.items[k].at, rows.items[k].rule.cfa,
				      rows.items[k].rule.cfa_reg, rows.items[k].rule.cfa_offset,
				      rows.items[k].rule.bp, rows.items[k].rule.bp_offset,
				      rows.items[k].rule.bx, rows.items[k].rule.bx_offset,
				      rows.items[k].rule.ra, rows.items[k].rule.stack);
		assert_int_equal(rows.count, count);
		for (size_t k = 0; k < count; k++)
			assert_memory_equal(&rows.items[k], &known[i].rows[k], sizeof(*rows.items));
		vec_free(&rows);
	}
}

/* Code that is not aligned counts as a function only if one is known to begin there. */
static void test_begin(void **state)
{
	const uint8_t bytes[] = {SUB, ADD, RET};
	UnwindCode code = code_of(bytes, sizeof(bytes), 0x1011);
	const uint32_t start = 0;
	UnwindCodeRows rows;

	(void)state;
	unwind_follow_code(&code, &rows);
	assert_int_equal(rows.count, 0);
	code.function_begins = true;
	unwind_follow_code(&code, &rows);
	assert_int_equal(rows.count, 3);
	vec_free(&rows);
	code.function_begins = false;
	code.starts = &start;
	code.start_count = 1;
	code.entry = 0;
	unwind_follow_code(&code, &rows);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.items[0].rule.cfa, CFA_END);
	vec_free(&rows);
}

/* For any bytes, rows are in ascending order and within the code. */
static void test_random(void **state)
{
	size_t found = 0;

	(void)state;
	for (int round = 0; round < 100000; round++) {
		size_t size = 1 + random_below(60);
		_cleanup_free_ uint8_t *bytes = xcalloc(1, size);
		UnwindCode code = code_of(bytes, size, 0x1000);
		UnwindCodeRows rows;

		for (size_t at = 0; at < size;) {
			size_t from = random_below(ARRAY_LEN(known));
			size_t wanted = 1 + random_below(known[from].size);
			size_t part = MIN(size - at, wanted);

			memcpy(bytes + at,
			       known[from].bytes + random_below(known[from].size - part + 1), part);
			at += part;
		}
		unwind_follow_code(&code, &rows);
		for (size_t i = 0; i < rows.count; i++)
			assert_true(rows.items[i].at < size &&
				    (i == 0 || rows.items[i - 1].at < rows.items[i].at));
		found += rows.count > 1;
		vec_free(&rows);
	}
	assert_true(found > 1000);
}

/* Code without a known function that is larger than a window. */
static void test_long(void **state)
{
	size_t size = 200000;
	_cleanup_free_ uint8_t *bytes = xcalloc(1, size);
	UnwindCode code = code_of(bytes, size, 0x1000);
	const struct unwind_rule *last;
	UnwindCodeRows rows;

	(void)state;
	memset(bytes, 0x50, size);
	unwind_follow_code(&code, &rows);
	assert_true(rows.count >= 3);
	vec_free(&rows);
	memset(bytes, 0x90, size);
	bytes[0] = bytes[size - 1] = RET;
	unwind_follow_code(&code, &rows);
	last = &rows.items[rows.count - 1].rule;
	assert_int_equal(rows.items[0].at, 0);
	assert_int_equal(rows.count, 3);
	assert_true(rows.items[1].at == 64 << 10 && rows.items[1].rule.cfa == CFA_NONE);
	assert_int_equal(rows.items[2].at, size - 1);
	assert_true(last->cfa == CFA_REG && last->cfa_offset == 8 &&
		    last->stack == STACK_SAME_GUESS);
	vec_free(&rows);
}

/* ---- lengths -------------------------------------------------------------------------- */

typedef struct Lengths {
	size_t instructions, wrong;
} Lengths;

/* Compares the lengths of all instructions of a file with those that objdump prints. */
static Lengths compare_lengths(const char *path, int altered)
{
	_cleanup_free_ char *command =
		xasprintf("objdump -d -w --no-show-raw-insn -j .text '%s' | awk '/^ +[0-9a-f]+:/ "
			  "{ sub(\":\", \"\", $1); print $1, ($2 == \"(bad)\") }'",
			  path);
	Library library = open_library(path);
	uint64_t base = library.built.identity.base_svma, address, before = 0;
	FILE *stream = popen(command, "r");
	Lengths lengths = {};
	int bad, bad_before = 1;

	assert_non_null(stream);
	while (fscanf(stream, "%" SCNx64 " %d", &address, &bad) == 2) {
		const UnwindRange *range =
			unwind_ranges_find(&library.sections.code, before - base);

		if (!bad_before && !bad && range && address - before <= INSTRUCTION_MAX) {
			Instruction instruction =
				unwind_instruction(range->bytes + (before - base - range->from),
						   range->to - (before - base));

			lengths.instructions++;
			lengths.wrong += instruction.length + altered != (int)(address - before);
		}
		before = address;
		bad_before = bad;
	}
	pclose(stream);
	close_library(&library);
	return lengths;
}

static void test_lengths(void **state)
{
	static const char *const paths[] = {"/usr/lib/x86_64-linux-gnu/libc.so.6",
					    "/usr/lib/x86_64-linux-gnu/libm.so.6",
					    "/usr/lib/x86_64-linux-gnu/libgmp.so.10"};

	(void)state;
	if (!has_program("objdump"))
		skip_because("no objdump");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		Lengths lengths;

		if (access(paths[i], R_OK) < 0)
			continue;
		lengths = compare_lengths(paths[i], 0);
		print_message("%s: %zu instructions, %zu of another length\n", paths[i],
			      lengths.instructions, lengths.wrong);
		/* objdump prints fwait and the next instruction as one. */
		assert_true(lengths.instructions > 10000 &&
			    lengths.wrong <= lengths.instructions / 1000);
	}
	assert_true(compare_lengths(paths[0], 1).wrong > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_as_call_frame_information),
		cmocka_unit_test(test_own_program),
		cmocka_unit_test(test_aligned_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
