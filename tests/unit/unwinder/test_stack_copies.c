/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of stacks: which are walked when, and what is reported of them. Mappings are real, tables
 * are stood in for: a file's number says what is known of it.
 */
#include "make_record.h"
#include "stack_copies.h"
#include "test_tools.h"

#define NS_TGID 10
#define TGID	1010
#define BORN	77
#define EXECS	3
#define TAKEN	(100 * NSEC_PER_SEC) /* when the copies were */
#define SP	0x7ffe00000000ULL
#define CODE	0x400000ULL
#define WORDS	16

/* Each function's frame is two words, except the outermost one. */
enum {
	FILE_FRAMES = 1,
	FILE_OUTERMOST = 2,
	FILE_NOT_READY = 3,
	FILE_BELOW = 4,
	FILE_MADE = 5,
	FILE_WIDE = 6
};

#define WIDE 8192 /* bytes of the frame of functions in FILE_WIDE, without the return address */

struct unwind_mapping table_registry_mapping(TableRegistry *tables, uint32_t file, uint64_t start,
					     uint64_t last, uint64_t bias)
{
	(void)tables;
	if (file == FILE_MADE)
		return (struct unwind_mapping){.start = start, .last = last, .row = NO_TABLE_JIT};
	return (struct unwind_mapping){
		.start = start,
		.last = last,
		.load = bias,
		.row = file == FILE_NOT_READY ? NO_TABLE_YET : file,
		.table = file != FILE_NOT_READY,
	};
}

bool table_memory_find_rule(const TableMemory *memory, const struct unwind_mapping *mapping,
			    uint32_t pc, struct unwind_rule *ret_rule)
{
	(void)memory;
	(void)pc;
	*ret_rule = (struct unwind_rule){.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset = 16};
	if (mapping->row == FILE_OUTERMOST)
		ret_rule->cfa = CFA_END;
	if (mapping->row == FILE_WIDE)
		ret_rule->cfa_offset = WIDE + 8;
	if (mapping->row == FILE_BELOW) /* a word that lies below the stack's end */
		*ret_rule = (struct unwind_rule){
			.cfa = CFA_DEREF, .cfa_reg = DWARF_RSP, .cfa_offset = -64};
	return true;
}

typedef struct Fixture {
	UnwindMaps maps;
	JitCodes *codes;
	StackCopies *copies;
	Images images;
	struct rec_stack *last_stack; /* the last */
	uint32_t stack_records;
	int error; /* of the sink */
} Fixture;

static int keep_stack(void *user, const struct record *record)
{
	Fixture *fixture = user;

	if (fixture->error)
		return fixture->error;
	fixture->stack_records++;
	free(fixture->last_stack);
	fixture->last_stack = xmalloc(record->len);
	memcpy(fixture->last_stack, record, record->len);
	return 0;
}

static void map(Fixture *fixture, uint64_t ns, uint32_t file, uint64_t start)
{
	struct record *record =
		make_mapping(ns, MAPPING_EXEC, NS_TGID, file, start, start + 0x1000, start);

	images_on_record(&fixture->images, record, ns);
	images_apply_pending(&fixture->images);
	free(record);
}

static void begin(Fixture *fixture, bool with_image)
{
	struct rec_task *task = (struct rec_task *)make_task(TGID, TGID, NS_TGID);

	*fixture = (Fixture){.codes = jit_processes_new()};
	fixture->copies = stack_copies_new(&fixture->maps, fixture->codes, keep_stack, fixture);
	task->start_boottime = BORN;
	task->exec_id = EXECS;
	if (with_image)
		images_on_record(&fixture->images, &task->h, 1);
	free(task);
}

static void end(Fixture *fixture)
{
	stack_copies_free(fixture->copies);
	images_free(&fixture->images);
	jit_processes_free(fixture->codes);
	free(fixture->last_stack);
}

/* A leaf at CODE, with return addresses to CODE + 0x1000 * (1, 2 …) in every second word. */
static struct rec_stack_copy *make_copy(uint64_t id, uint32_t words)
{
	struct rec_stack_copy *copy = make_record(REC_STACK_COPY, STACK_USER | STACK_GUESSED, TAKEN,
						  offsetof(struct rec_stack_copy, stack), NULL, 0);
	uint64_t stack[WORDS] = {};

	copy = xrealloc(copy, sizeof(*copy));
	for (uint32_t i = 1; i < WORDS; i += 2)
		stack[i] = CODE + 0x1000 * (i / 2 + 1) + 8;
	copy->h.len = offsetof(struct rec_stack_copy, stack) + 8 * words;
	copy->h.cpu = 1;
	copy->id = id;
	copy->tgid = TGID;
	copy->exec_id = EXECS;
	copy->start_boottime = BORN;
	copy->regs[DWARF_RSP] = SP;
	copy->regs[DWARF_RETURN] = CODE;
	copy->size = 8 * words;
	memcpy(copy->stack, stack, 8 * words);
	return copy;
}

static void take(Fixture *fixture, uint64_t id, uint32_t words)
{
	struct rec_stack_copy *copy = make_copy(id, words);

	stack_copies_add(fixture->copies, copy);
	free(copy);
}

static void walk(Fixture *fixture, uint64_t watermark_ns, bool at_end)
{
	assert_int_equal(stack_copies_walk(fixture->copies, &fixture->images, NULL, watermark_ns,
					   at_end ? COPIES_LAST : COPIES_ALL),
			 0);
}

static void check_told(const Fixture *fixture, int result, uint16_t count)
{
	const struct rec_stack *last_stack = fixture->last_stack;

	assert_int_equal(fixture->stack_records, 1);
	assert_int_equal(last_stack->result, result);
	assert_int_equal(last_stack->count, count);
	assert_int_equal(last_stack->h.len, sizeof(*last_stack) + 8 * count);
	assert_int_equal(last_stack->frames[0], CODE);
	for (uint16_t i = 1; i < count; i++)
		assert_int_equal(last_stack->frames[i], CODE + 0x1000 * i + 8);
}

static void test_whole(void **state)
{
	Fixture fixture;
	StackCopiesCounts counts;

	(void)state;
	begin(&fixture, true);
	map(&fixture, 1, FILE_FRAMES, CODE);
	map(&fixture, 1, FILE_FRAMES, CODE + 0x1000);
	map(&fixture, TAKEN, FILE_OUTERMOST, CODE + 0x2000); /* just in time */
	take(&fixture, 5, WORDS);
	walk(&fixture, TAKEN, false); /* not all that was mapped by then is known */
	assert_int_equal(fixture.stack_records, 0);
	walk(&fixture, TAKEN + 1, false);
	check_told(&fixture, STACK_COMPLETE, 3);
	assert_int_equal(fixture.last_stack->h.kind, REC_STACK);
	assert_int_equal(fixture.last_stack->h.flags, STACK_USER | STACK_FROM_COPY);
	assert_int_equal(fixture.last_stack->h.cpu, 1);
	assert_int_equal(fixture.last_stack->h.ns, TAKEN);
	assert_int_equal(fixture.last_stack->id, 5);
	assert_int_equal(fixture.last_stack->tgid, TGID);
	assert_int_equal(fixture.last_stack->tables_ns, TAKEN);
	walk(&fixture, TAKEN + 2, true); /* it is done with */
	assert_int_equal(fixture.stack_records, 1);
	counts = stack_copies_counts(fixture.copies);
	assert_int_equal(counts.taken, 1);
	assert_int_equal(counts.walked, 1);
	assert_int_equal(counts.partly + counts.dropped, 0);
	end(&fixture);
}

/* What was lost before it is read again may have been mapped over what the copy was walked by. */
static void test_in_doubt(void **state)
{
	struct rec_loss *loss = make_record(REC_LOSS, 0, TAKEN, sizeof(*loss), NULL, 0);
	Fixture fixture;

	(void)state;
	loss->lost_kind = REC_MAPPING;
	for (int after = 0; after < 2; after++) {
		begin(&fixture, true);
		map(&fixture, 1, FILE_OUTERMOST, CODE);
		loss->from_ns = after ? TAKEN + 5 : TAKEN - 5;
		loss->to_ns = loss->from_ns + 10;
		images_on_record(&fixture.images, &loss->h, loss->to_ns);
		take(&fixture, 1, WORDS);
		walk(&fixture, TAKEN + 20, false);
		check_told(&fixture, STACK_COMPLETE, 1);
		assert_int_equal(fixture.last_stack->tables_ns, after ? TAKEN : TAKEN - 5);
		end(&fixture);
	}
	free(loss);
}

static void test_ends(void **state)
{
	static const struct {
		uint32_t file, words;
		uint64_t mapped_ns;
		int result;
		uint16_t count;
	} cases[] = {
		{FILE_OUTERMOST, WORDS, TAKEN + 1, STACK_NO_MAPPING, 2}, /* since then only */
		{FILE_FRAMES, 2, 1, STACK_COPY_SHORT, 2},
		{FILE_FRAMES, 3, 1, STACK_COPY_SHORT, 2},
		{FILE_FRAMES, 0, 1, STACK_COPY_SHORT, 1},
		{FILE_BELOW, WORDS, 1, STACK_FAULT, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Fixture fixture;

		begin(&fixture, true);
		map(&fixture, 1, FILE_FRAMES, CODE);
		map(&fixture, cases[i].mapped_ns, cases[i].file, CODE + 0x1000);
		take(&fixture, 1, cases[i].words);
		walk(&fixture, TAKEN + 1, false);
		check_told(&fixture, cases[i].result, cases[i].count);
		assert_int_equal(stack_copies_counts(fixture.copies).partly, 1);
		end(&fixture);
	}
}

/* Pages that were not in memory are not in the copy. A stack that needs a word of them ends. */
static void test_absent_pages(void **state)
{
	static const struct {
		uint64_t sp, absent;
		uint32_t at, size; /* of the return address in the copy, and of the copy */
		int result;
	} cases[] = {
		{SP, 0, WIDE, WIDE + 8, STACK_COMPLETE},
		{SP, 0, WIDE, WIDE + 7, STACK_COPY_SHORT},
		{SP, 1 << 1, WIDE - 4096, WIDE, STACK_COMPLETE},
		{SP, 1 << 1 | 1 << 3, WIDE - 4096, WIDE, STACK_COMPLETE},
		{SP, 1 << 2, WIDE - 4096, WIDE, STACK_COPY_SHORT},
		/* Of the first page the copy has 8 bytes. */
		{SP - 8, 1 << 1, WIDE - 4096, WIDE, STACK_COMPLETE},
		{SP - 8, 1 << 2, WIDE, WIDE + 8, STACK_COPY_SHORT},
		{SP, UINT64_MAX, WIDE, WIDE + 8, STACK_COPY_SHORT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rec_stack_copy *copy = make_copy(1, WORDS);
		uint64_t caller = CODE + 0x1008;
		Fixture fixture;

		begin(&fixture, true);
		map(&fixture, 1, FILE_WIDE, CODE);
		map(&fixture, 1, FILE_OUTERMOST, CODE + 0x1000);
		copy->size = cases[i].size;
		copy->h.len = sizeof(*copy);
		copy->absent = cases[i].absent;
		copy->regs[DWARF_RSP] = cases[i].sp;
		memset(copy->stack, 0, copy->size + 8);
		memcpy(copy->stack + cases[i].at, &caller, sizeof(caller));
		stack_copies_add(fixture.copies, copy);
		walk(&fixture, TAKEN + 1, false);
		check_told(&fixture, cases[i].result, cases[i].result == STACK_COMPLETE ? 2 : 1);
		end(&fixture);
		free(copy);
	}
}

static void test_timeout(void **state)
{
	(void)state;
	for (int at_end = 0; at_end < 2; at_end++) {
		Fixture fixture;

		begin(&fixture, true);
		map(&fixture, 1, FILE_FRAMES, CODE);
		map(&fixture, 1, FILE_NOT_READY, CODE + 0x1000);
		take(&fixture, 1, WORDS);
		assert_int_equal(stack_copies_oldest_ns(fixture.copies), TAKEN);
		walk(&fixture, TAKEN + STACK_COPIES_TIMEOUT_NS - 1, false);
		assert_int_equal(fixture.stack_records, 0);
		assert_int_equal(stack_copies_oldest_ns(fixture.copies), TAKEN);
		walk(&fixture, TAKEN + (at_end ? 1 : STACK_COPIES_TIMEOUT_NS), at_end);
		check_told(&fixture, STACK_NO_TABLE, 2);
		assert_int_equal(stack_copies_oldest_ns(fixture.copies), UINT64_MAX);
		end(&fixture);
		/* The same for an unknown process: what BPF walked stands. */
		begin(&fixture, false);
		take(&fixture, 1, WORDS);
		walk(&fixture, TAKEN + STACK_COPIES_TIMEOUT_NS - 1, false);
		assert_int_equal(stack_copies_counts(fixture.copies).dropped, 0);
		walk(&fixture, TAKEN + (at_end ? 1 : STACK_COPIES_TIMEOUT_NS), at_end);
		assert_int_equal(stack_copies_counts(fixture.copies).dropped, 1);
		assert_int_equal(stack_copies_counts(fixture.copies).dropped_since_ns, TAKEN);
		assert_int_equal(fixture.stack_records, 0);
		end(&fixture);
	}
}

/* Code made at run time, which its process may describe, as long as it is not looked at. */
static void test_made(void **state)
{
	const JitNote note = {.start = CODE + 0x1000, .end = CODE + 0x2000, .ns = 1};

	(void)state;
	for (int described = 0; described < 2; described++) {
		Fixture fixture;
		JitProcess *process;

		begin(&fixture, true);
		map(&fixture, 1, FILE_FRAMES, CODE);
		map(&fixture, 1, FILE_MADE, CODE + 0x1000);
		map(&fixture, 1, FILE_OUTERMOST, CODE + 0x2000);
		jit_processes_note(fixture.codes, NS_TGID, &note);
		process = fixture.codes->processes.items[0];
		take(&fixture, 1, WORDS);
		jit_processes_want_at(fixture.codes, NS_TGID, CODE + 0x1008, TAKEN);
		walk(&fixture, TAKEN + 1, false);
		process->seen_ns = TAKEN - 1; /* a look that began before the stack was taken */
		walk(&fixture, TAKEN + 2, false);
		assert_int_equal(fixture.stack_records, 0);
		assert_true(jit_processes_is_waiting(process));
		process->seen_ns = TAKEN + 1;
		assert_false(jit_processes_is_waiting(process));
		if (described)
			map(&fixture, 1, FILE_FRAMES, CODE + 0x1000);
		walk(&fixture, TAKEN + 3, false);
		check_told(&fixture, described ? STACK_COMPLETE : STACK_NO_CFI, described ? 3 : 2);
		end(&fixture);
	}
}

/* Which stacks wait, by where their process has made code and by what is known of it. */
static void test_pending(void **state)
{
	JitCodes *codes = jit_processes_new();
	const JitNote old = {.start = 0x1000, .end = 0x2000, .ns = 1, .looked = true},
		      file = {.start = 0x3000, .end = 0x4000, .ns = 2, .file = true};
	JitProcess *process;
	uint32_t ns_tgid;

	(void)state;
	assert_false(jit_processes_is_pending(codes, 1, 0x1000, 0x1fff, UINT64_MAX));
	assert_true(jit_processes_may_describe(codes, 1));
	jit_processes_note(codes, 1, &old);
	jit_processes_on_file(codes, 1, &file);
	process = codes->processes.items[0];
	assert_false(jit_processes_has_new(process));
	assert_true(jit_processes_is_pending(codes, 1, 0x1fff, 0x2fff, UINT64_MAX));
	assert_false(jit_processes_is_pending(codes, 1, 0x2000, 0x3fff, UINT64_MAX));
	assert_false(jit_processes_is_pending(codes, 2, 0x1000, 0x1fff, UINT64_MAX));
	*vec_push(&process->open) = (JitRange){0x8000, 0x9000};
	assert_false(jit_processes_is_pending(codes, 1, 0x8000, 0x8fff, UINT64_MAX));
	process->active = true;
	assert_true(jit_processes_is_pending(codes, 1, 0x8000, 0x8fff, UINT64_MAX));
	assert_false(jit_processes_is_pending(codes, 1, 0x9000, 0x9fff, UINT64_MAX));
	process->checked = true; /* none of its files can tell */
	assert_false(jit_processes_is_pending(codes, 1, 0x8000, 0x8fff, UINT64_MAX));
	assert_false(jit_processes_may_describe(codes, 1));
	assert_false(jit_processes_next_news(codes, &ns_tgid));
	jit_processes_on_file(codes, 1, &file); /* it has mapped another one */
	assert_true(jit_processes_may_describe(codes, 1));
	assert_true(jit_processes_next_news(codes, &ns_tgid));
	assert_int_equal(ns_tgid, 1);
	jit_processes_free(codes);
}

static void test_bad_records(void **state)
{
	struct rec_stack_copy *copy = make_copy(1, 1);
	Fixture fixture;

	(void)state;
	begin(&fixture, true);
	map(&fixture, 1, FILE_FRAMES, CODE);
	copy->h.len = offsetof(struct rec_stack_copy, stack) - 8;
	stack_copies_add(fixture.copies, copy);
	copy->h.len = sizeof(*copy) + 8;
	stack_copies_add(fixture.copies, copy);
	assert_int_equal(stack_copies_counts(fixture.copies).dropped, 2);
	/* It says that it is longer than it is. */
	copy->h.len = offsetof(struct rec_stack_copy, stack) + 8;
	copy->size = COPY_SIZE;
	stack_copies_add(fixture.copies, copy);
	free(copy);
	walk(&fixture, TAKEN + 1, false);
	check_told(&fixture, STACK_COPY_SHORT, 1);
	end(&fixture);
}

static void test_too_many(void **state)
{
	const uint32_t room = STACK_COPIES_MAX / sizeof(struct rec_stack_copy);
	Fixture fixture;

	(void)state;
	begin(&fixture, true);
	map(&fixture, 1, FILE_OUTERMOST, CODE);
	for (uint32_t i = 0; i < room + 4; i++) {
		struct rec_stack_copy *copy = make_copy(i, 0);

		copy->h.len = sizeof(*copy);
		stack_copies_add(fixture.copies, copy);
		free(copy);
	}
	assert_int_equal(stack_copies_counts(fixture.copies).dropped, 4);
	walk(&fixture, TAKEN + 1, false);
	assert_int_equal(fixture.stack_records, room);
	assert_int_equal(fixture.last_stack->id, room - 1); /* in order */
	/* Those that are done with have left their room. */
	take(&fixture, 1, 0);
	assert_int_equal(stack_copies_counts(fixture.copies).dropped, 4);
	end(&fixture);
}

/* If it cannot be reported, only that one is lost. */
static void test_sink_fails(void **state)
{
	Fixture fixture;

	(void)state;
	begin(&fixture, true);
	map(&fixture, 1, FILE_OUTERMOST, CODE);
	for (uint32_t i = 0; i < 3; i++)
		take(&fixture, i, 0);
	fixture.error = -28;
	assert_int_equal(
		stack_copies_walk(fixture.copies, &fixture.images, NULL, TAKEN + 1, COPIES_ALL),
		-28);
	fixture.error = 0;
	walk(&fixture, TAKEN + 1, false);
	assert_int_equal(fixture.stack_records, 2);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	 cmocka_unit_test(test_in_doubt),
		cmocka_unit_test(test_ends),	 cmocka_unit_test(test_absent_pages),
		cmocka_unit_test(test_timeout),	 cmocka_unit_test(test_bad_records),
		cmocka_unit_test(test_too_many), cmocka_unit_test(test_sink_fails),
		cmocka_unit_test(test_made),	 cmocka_unit_test(test_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
