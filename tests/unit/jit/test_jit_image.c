/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_image.h"
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define CODE   0x10000ULL
#define FRAME  0x40000ULL
#define OBJECT 0x80000ULL

typedef VEC(uint8_t) Buffer;

static void put(Buffer *buffer, uint64_t number, size_t size)
{
	vec_append(buffer, (const uint8_t *)&number, size);
}

/* "zR", absolute pointers; the CFA is rsp + 8. */
static void put_cie(Buffer *buffer)
{
	static const uint8_t cie[] = {1,    'z',  'R', 0,    1, 0x78, 0x10, 1, 0,
				      0x0c, 0x07, 8,   0x90, 1, 0,    0,    0};

	put(buffer, 4 + sizeof(cie), 4);
	put(buffer, 0, 4);
	vec_append(buffer, cie, sizeof(cie));
}

/* DW_CFA_advance_loc 4, DW_CFA_def_cfa_offset; the section begins with its CIE. */
static void put_fde(Buffer *buffer, uint64_t pc, uint64_t size, uint8_t cfa)
{
	const uint8_t program[] = {0x44, 0x0e, cfa};

	put(buffer, 4 + 17 + sizeof(program), 4);
	put(buffer, buffer->count, 4);
	put(buffer, pc, 8);
	put(buffer, size, 8);
	put(buffer, 0, 1);
	vec_append(buffer, program, sizeof(program));
}

static void end(Buffer *buffer)
{
	put(buffer, 0, 4);
}

/* Looks at memory at FRAME, with code of 4 KiB at CODE. */
static JitImage look(const Buffer *memory, const JitImage *before, const Buffer *object)
{
	JitDump dump = {};
	JitImage image;

	*vec_push(&dump.code) = (JitRange){CODE, CODE + 0x1000};
	*vec_push(&dump.memory) = (JitMemory){FRAME, memory->items, memory->count};
	if (object)
		*vec_push(&dump.objects) = (JitMemory){OBJECT, object->items, object->count};
	if (before)
		vec_append(&dump.known, before->code.items, before->code.count);
	jit_image_make(&dump, &image);
	vec_free(&dump.code);
	vec_free(&dump.memory);
	vec_free(&dump.objects);
	vec_free(&dump.known);
	return image;
}

static void test_found(void **state)
{
	_cleanup_(jit_image_free) JitImage first = {}, again = {};
	Buffer memory = {};

	(void)state;
	put_cie(&memory);
	put_fde(&memory, CODE, 0x20, 16);
	put_fde(&memory, CODE + 0x20, 0x20, 32);
	put_fde(&memory, CODE + 0x100, 0x20, 48);
	end(&memory);
	first = look(&memory, NULL, NULL);
	assert_int_equal(first.code.count, 2);
	assert_true(first.code.items[0].start == CODE && first.code.items[0].end == CODE + 0x40);
	assert_true(first.code.items[1].start == CODE + 0x100);
	assert_true(first.code.items[0].file == 0 && first.files[0].elf.count > 0);
	again = look(&memory, &first, NULL);
	assert_int_equal(again.code.count, 2);
	assert_true(again.code.items[0].file == JIT_KNOWN && again.code.items[1].file == JIT_KNOWN);
	assert_true(again.files[0].elf.count == 0);
	vec_free(&memory);
}

/* Code that follows a piece at once does not change it. */
static void test_grows(void **state)
{
	_cleanup_(jit_image_free) JitImage first = {}, again = {};
	Buffer memory = {};

	(void)state;
	put_cie(&memory);
	put_fde(&memory, CODE, 0x20, 16);
	end(&memory);
	first = look(&memory, NULL, NULL);
	memory.count -= 4;
	put_fde(&memory, CODE + 0x20, 0x20, 32);
	end(&memory);
	again = look(&memory, &first, NULL);
	assert_int_equal(again.code.count, 2);
	assert_true(again.code.items[0].file == JIT_KNOWN && again.code.items[1].file == 0);
	vec_free(&memory);
}

static void test_refused(void **state)
{
	_cleanup_(jit_image_free) JitImage open_end = {}, disputed = {}, outside = {};
	Buffer memory = {};

	(void)state;
	put_cie(&memory);
	put_fde(&memory, CODE, 0x20, 16);
	open_end = look(&memory, NULL, NULL);
	assert_int_equal(open_end.code.count, 0);
	put_fde(&memory, CODE + 0x10, 0x20, 16);
	end(&memory);
	disputed = look(&memory, NULL, NULL);
	assert_int_equal(disputed.code.count, 0);
	assert_int_equal(disputed.counts.disputed, 2);
	memory.count = 0;
	put_cie(&memory);
	put_fde(&memory, CODE, UINT64_MAX - 1, 16);
	put_fde(&memory, CODE + 0xff0, 0x20, 16);
	put_fde(&memory, CODE - 0x10, 0x20, 16);
	put_fde(&memory, CODE, 0, 16);
	end(&memory);
	outside = look(&memory, NULL, NULL);
	assert_int_equal(outside.code.count, 0);
	assert_int_equal(outside.counts.outside, 4);
	vec_free(&memory);
}

/* A relocatable object with .text at CODE and one symbol of 16 bytes, 0x30 behind its beginning. */
static Buffer make_object(void)
{
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_REL,
			     .e_machine = EM_X86_64,
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = 4,
			     .e_shoff = sizeof(header)};
	Elf64_Sym symbol = {.st_name = 1,
			    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			    .st_shndx = 1,
			    .st_value = 0x30,
			    .st_size = 16};
	uint64_t behind = sizeof(header) + 4 * sizeof(Elf64_Shdr);
	Elf64_Shdr sections[4] = {
		[1] = {.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC, .sh_addr = CODE},
		[2] = {.sh_type = SHT_SYMTAB,
		       .sh_link = 3,
		       .sh_entsize = sizeof(symbol),
		       .sh_offset = behind,
		       .sh_size = sizeof(symbol)},
		[3] = {.sh_type = SHT_STRTAB, .sh_offset = behind + sizeof(symbol), .sh_size = 6},
	};
	Buffer object = {};

	vec_append(&object, (const uint8_t *)&header, sizeof(header));
	vec_append(&object, (const uint8_t *)sections, sizeof(sections));
	vec_append(&object, (const uint8_t *)&symbol, sizeof(symbol));
	vec_append(&object, (const uint8_t *)"\0name", 6);
	return object;
}

static void test_named(void **state)
{
	_cleanup_(jit_image_free) JitImage image = {}, cut = {};
	Buffer object = make_object(), memory = {};

	(void)state;
	put(&memory, 0, 4);
	image = look(&memory, NULL, &object);
	assert_int_equal(image.symbols, 1);
	assert_int_equal(image.code.count, 1);
	assert_true(image.code.items[0].start == CODE + 0x30 &&
		    image.code.items[0].end == CODE + 0x40);
	object.count--; /* its strings leave it */
	cut = look(&memory, NULL, &object);
	assert_int_equal(cut.symbols, 0);
	vec_free(&object);
	vec_free(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
