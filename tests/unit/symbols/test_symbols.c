/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "as_invoker.h"
#include "elf_file.h"
#include "elf_symbols_fixture.h"
#include "make_record.h"
#include "symbols.h"
#include "vdso.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#define EXE   "/proc/self/exe"
#define TGID  5000 /* the kernel's number of the recorded process */
#define OURS  77   /* its number in our namespace */
#define AVMA  0x7f0000000000
#define BYTES 0x40000000

enum { KNOWN_LINE = __LINE__ + 1 };
__attribute__((noinline)) int symbols_known_function(int x)
{
	__asm__ volatile("" ::: "memory");
	return x + 1;
}

typedef struct Fixture {
	char *path;
	char cache[32]; /* of names: its own */
	CaptureWriter *writer;
	ElfIdentity identity;
	uint64_t known; /* SVMA of symbols_known_function */
	VEC(struct rec_symbol *) symbols;
	SymbolsSummary summary;
} Fixture;

static char self[4096]; /* where EXE leads */

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));
	int exe = open(EXE, O_RDONLY), fd;
	ElfSymbols symbols;

	assert_int_equal(elf_identify(exe, &fixture->identity), 0);
	assert_int_equal(read_symbols(exe, &symbols), 0);
	close(exe);
	assert_true(readlink(EXE, self, sizeof(self) - 1) > 0);
	for (size_t i = 0; i < symbols.list.count; i++)
		if (!strcmp(symbols.names.items + symbols.list.items[i].name,
			    "symbols_known_function"))
			fixture->known = symbols.list.items[i].start;
	elf_symbols_free(&symbols);
	strcpy(fixture->cache, "/tmp/wallprof-test-XXXXXX");
	assert_non_null(mkdtemp(fixture->cache));
	setenv("XDG_CACHE_HOME", fixture->cache, 1);
	fixture->path = make_temporary(&fd);
	assert_int_equal(capture_writer_new(fd, 1, 1, &fixture->writer), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;
	_cleanup_free_ char *remove_cache = xasprintf("rm -r '%s'", fixture->cache);

	assert_int_equal(system(remove_cache), 0);
	unlink(fixture->path);
	free(fixture->path);
	elf_identity_free(&fixture->identity);
	for (size_t i = 0; i < fixture->symbols.count; i++)
		free(fixture->symbols.items[i]);
	vec_free(&fixture->symbols);
	free(fixture);
	return 0;
}

static void put(const Fixture *fixture, struct record *record)
{
	assert_int_equal(capture_write(fixture->writer, record), 0);
	free(record);
}

static void put_file(const Fixture *fixture, uint32_t id, int flags, const char *path,
		     const ElfIdentity *identity)
{
	struct record *record = make_file(id, flags, path, identity->base_svma);
	struct rec_file *file = (struct rec_file *)record;

	file->build_id_len = identity->build_id_len;
	memcpy(file->build_id, identity->build_id, sizeof(file->build_id));
	put(fixture, record);
}

static int keep(void *user, const struct record *record)
{
	Fixture *fixture = user;
	struct rec_symbol *copy = xmalloc(record->len);

	memcpy(copy, record, record->len);
	*vec_push(&fixture->symbols) = copy;
	return 0;
}

static int refuse(void *user, const struct record *record)
{
	(void)user;
	(void)record;
	return -ENOSPC;
}

static int resolve(Fixture *fixture, bool with_kernel,
		   int (*emit)(void *user, const struct record *symbol))
{
	Invoker invoker = {};
	AsInvoker as = {};
	SymbolsSink sink = {
		.open = symbols_open_by_path,
		.open_beside = symbols_open_beside_by_path,
		.open_user = &as,
		.invoker = &invoker,
		.emit = emit,
		.user = fixture,
	};
	CaptureReader *reader;
	const char *message;
	int r;

	assert_int_equal(capture_writer_close(fixture->writer), 0);
	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	r = symbols_resolve(reader, &sink, with_kernel, &fixture->summary);
	capture_reader_free(reader);
	return r;
}

/* Frame 0 at the function's first byte (exact), 1 just behind that (a return address). */
static void put_stack_in_known(const Fixture *fixture, int flags)
{
	uint64_t pcs[] = {AVMA + fixture->known, AVMA + fixture->known + 1, 0x1234};

	put(fixture, make_stack(1, STACK_USER | flags, TGID, pcs, 3));
}

static void test_user_names(void **state)
{
	Fixture *fixture = *state;
	const struct rec_symbol *symbol;
	const char *source;
	uint32_t line;

	put_stack_in_known(fixture, 0);
	/* Definitions may come after their use. */
	put(fixture, make_task(TGID, TGID, OURS));
	put(fixture, make_mapping(1, 0, OURS, 1, AVMA, AVMA + BYTES, AVMA));
	put_file(fixture, 1, 0, self, &fixture->identity);
	assert_int_equal(resolve(fixture, false, keep), 0);
	assert_int_equal(fixture->symbols.count, 1); /* both frames are looked up at one place */
	assert_int_equal(fixture->summary.addresses, 1);
	assert_int_equal(fixture->summary.named, 1);
	symbol = fixture->symbols.items[0];
	assert_int_equal(symbol->file, 1);
	assert_int_equal(symbol->address, fixture->known);
	assert_int_equal(symbol->function, fixture->known);
	assert_true(symbol->function_size > 1);
	assert_int_equal(symbol->count, 1);
	assert_int_equal(symbol->lib, 0);
	assert_string_equal(symbol->text + 4, "symbols_known_function");
	source = symbol->text + 4 + sizeof("symbols_known_function");
	assert_non_null(strstr(source, "test_symbols.c"));
	memcpy(&line, symbol->text, sizeof(line));
	assert_uint_in_range(line, KNOWN_LINE, KNOWN_LINE + 3);
	assert_int_equal(symbol->h.len % 8, 0);
}

static void test_leaf_in_system_call(void **state)
{
	Fixture *fixture = *state;

	put_stack_in_known(fixture, STACK_SYSCALL_PC);
	put(fixture, make_mapping(1, 0, TGID, 1, AVMA, AVMA + BYTES, AVMA));
	put_file(fixture, 1, 0, self, &fixture->identity);
	assert_int_equal(resolve(fixture, false, keep), 0);
	/* Now frame 0 means the byte before, and the process is known by no REC_TASK. */
	assert_int_equal(fixture->summary.addresses, 2);
	for (size_t i = 0; i < fixture->symbols.count; i++)
		assert_uint_in_range(fixture->symbols.items[i]->address, fixture->known - 1,
				     fixture->known);
}

static void put_walked(const Fixture *fixture, uint64_t id, int flags, const uint64_t *pcs,
		       uint16_t count, int result)
{
	struct record *record = make_stack(id, STACK_USER | flags, TGID, pcs, count);

	((struct rec_stack *)record)->tables_ns = 1;
	((struct rec_stack *)record)->result = result;
	put(fixture, record);
}

/* File 1 is mapped where the stacks are. */
static void resolve_mapped(Fixture *fixture)
{
	put(fixture, make_task(TGID, TGID, OURS));
	put(fixture, make_mapping(1, 0, OURS, 1, AVMA, AVMA + BYTES, AVMA));
	put_file(fixture, 1, 0, self, &fixture->identity);
	assert_int_equal(resolve(fixture, false, keep), 0);
}

/* The upper bits of frames say how they are looked up, and are no part of the address. */
static void test_marks_of_frames(void **state)
{
	Fixture *fixture = *state;
	uint64_t known = AVMA + fixture->known;
	uint64_t pcs[] = {known, (known + 1) | FRAME_EXACT, (known + 3) | FRAME_GUESSED,
			  (known + 3) | FRAME_EXACT | FRAME_GUESSED};
	uint64_t found = 0;

	put_walked(fixture, 1, STACK_GUESSED, pcs, 4, STACK_COMPLETE);
	/* Frame pointers have no marks: these lead nowhere. */
	pcs[1] += 8;
	pcs[2] += 8;
	put_walked(fixture, 2, 0, pcs + 1, 2, STACK_FRAME_POINTERS);
	resolve_mapped(fixture);
	assert_int_equal(fixture->summary.addresses, 4);
	for (size_t i = 0; i < fixture->symbols.count; i++)
		found |= 1 << (fixture->symbols.items[i]->address - fixture->known);
	assert_int_equal(found, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);
}

/* Which is replaced has no say, whether it comes before or after what replaces it. */
static void test_stacks_from_copies(void **state)
{
	Fixture *fixture = *state;
	uint64_t known = AVMA + fixture->known;
	uint64_t first[] = {known + 2, known + 4}, copy[] = {known, known + 1};

	put_walked(fixture, 1, 0, first, 2, STACK_NO_TABLE);
	put_walked(fixture, 1, STACK_FROM_COPY, copy, 2, STACK_COMPLETE);
	put_walked(fixture, 2, STACK_FROM_COPY, copy, 2, STACK_COMPLETE);
	put_walked(fixture, 2, 0, first, 2, STACK_NO_TABLE);
	resolve_mapped(fixture);
	assert_int_equal(fixture->summary.addresses, 1);
	assert_int_equal(fixture->symbols.count, 1);
	assert_int_equal(fixture->symbols.items[0]->address, fixture->known);
}

/* The same, of another id: both are looked up. */
static void test_stacks_that_are_not_replaced(void **state)
{
	Fixture *fixture = *state;
	uint64_t known = AVMA + fixture->known;
	uint64_t first[] = {known + 2, known + 4}, copy[] = {known, known + 1};

	put_walked(fixture, 1, 0, first, 2, STACK_NO_TABLE);
	put_walked(fixture, 2, STACK_FROM_COPY, copy, 2, STACK_COMPLETE);
	resolve_mapped(fixture);
	assert_int_equal(fixture->summary.addresses, 3);
}

static void test_other_build_is_not_used(void **state)
{
	Fixture *fixture = *state;
	ElfIdentity other = fixture->identity;

	other.build_id[0] ^= 1;
	put_stack_in_known(fixture, 0);
	put(fixture, make_task(TGID, TGID, OURS));
	for (uint32_t id = 1; id <= 6; id++)
		put(fixture, make_mapping(id, 0, OURS, id, AVMA, AVMA + BYTES, AVMA));
	put_file(fixture, 1, 0, self, &other);
	other.build_id_len = 0;
	put_file(fixture, 2, 0, self, &other);
	put_file(fixture, 3, 0, "/nonexistent", &fixture->identity);
	put_file(fixture, 4, FILE_UNREADABLE, self, &fixture->identity);
	put_file(fixture, 5, FILE_ANON, "//anon", &(ElfIdentity){});
	other = fixture->identity;
	other.base_svma += 0x1000;
	put_file(fixture, 6, 0, self, &other);
	assert_int_equal(resolve(fixture, false, keep), 0);
	assert_int_equal(fixture->symbols.count, 0);
	assert_int_equal(fixture->summary.files_mismatched, 3);
	assert_int_equal(fixture->summary.files_unreadable, 2);
	assert_int_equal(fixture->summary.addresses, 5);
}

static void test_vdso(void **state)
{
	Fixture *fixture = *state;
	ElfIdentity identity;
	ElfSymbols symbols;
	size_t size;
	const void *image = vdso_image(&size);
	uint64_t pc;

	if (!image)
		skip();
	assert_int_equal(vdso_identify(&identity), 0);
	assert_int_equal(read_symbols_of_image(image, size, &symbols), 0);
	pc = symbols.list.items[0].start + AVMA;
	put(fixture, make_stack(1, STACK_USER, TGID, &pc, 1));
	put(fixture, make_mapping(1, 0, TGID, 1, AVMA, AVMA + BYTES, AVMA));
	put_file(fixture, 1, FILE_VDSO, "[vdso]", &identity);
	assert_int_equal(resolve(fixture, false, keep), 0);
	assert_int_equal(fixture->symbols.count, 1);
	assert_string_equal(fixture->symbols.items[0]->text + 4,
			    symbols.names.items + symbols.list.items[0].name);
	elf_symbols_free(&symbols);
	elf_identity_free(&identity);
}

static void test_sink_that_fails(void **state)
{
	Fixture *fixture = *state;

	put_stack_in_known(fixture, 0);
	put(fixture, make_mapping(1, 0, TGID, 1, AVMA, AVMA + BYTES, AVMA));
	put_file(fixture, 1, 0, self, &fixture->identity);
	assert_int_equal(resolve(fixture, false, refuse), -ENOSPC);
}

/* An address that /proc/kallsyms names, if it shows any to us. */
static bool find_kernel_function(char name[static 128], uint64_t *ret_address)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512], type;
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%" SCNx64 " %c %127s", ret_address, &type, name) == 3 &&
			*ret_address && !strcmp(name, "schedule");
	if (file)
		fclose(file);
	return found;
}

static void test_kernel_names(void **state)
{
	Fixture *fixture = *state;
	uint64_t address;
	char name[128];

	if (!find_kernel_function(name, &address)) {
		assert_int_equal(capture_writer_close(fixture->writer), 0);
		skip();
	}
	put(fixture, make_stack(1, 0, 0, &address, 1));
	assert_int_equal(resolve(fixture, true, keep), 0);
	/* The leaf both as it is and as a return address, which lies in what is before. */
	assert_int_equal(fixture->summary.addresses, 2);
	for (size_t i = 0; i < fixture->symbols.count; i++) {
		const struct rec_symbol *symbol = fixture->symbols.items[i];

		assert_int_equal(symbol->file, 0);
		if (symbol->address == address)
			assert_string_equal(symbol->text + 4, name);
		else
			assert_int_equal(symbol->address, address - 1);
	}
	assert_true(fixture->symbols.count >= 1);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_user_names),
		WITH_FIXTURE(test_leaf_in_system_call),
		WITH_FIXTURE(test_marks_of_frames),
		WITH_FIXTURE(test_stacks_from_copies),
		WITH_FIXTURE(test_stacks_that_are_not_replaced),
		WITH_FIXTURE(test_other_build_is_not_used),
		WITH_FIXTURE(test_vdso),
		WITH_FIXTURE(test_sink_that_fails),
		WITH_FIXTURE(test_kernel_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
