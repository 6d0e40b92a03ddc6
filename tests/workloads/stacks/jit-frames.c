/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit-frames MODE SEED MS ROUNDS - makes functions at run time that call each other and keep no
 * frame pointer, describes them, and calls the outermost one; the innermost one calls back what
 * spins for MS milliseconds and sleeps for one. The seed decides how many there are, which
 * registers they save, and how their stack pointer moves.
 *
 * frame    .eh_frame in memory that cannot be written to, passed to __register_frame()
 * heap     the same on the heap, and code in memory that can be written to
 * gdb      an ELF object with names and .eh_frame, shown by gdb's JIT interface alone
 * both     frame, and an object with names
 * mapped   both, and a perf map has other names
 * replace  frame, with other functions at the same addresses in each round: they are mapped again
 * rewrite  heap, with other functions written over those before in each round
 * new      frame, with new memory in each round; that of the round before is unmapped
 * reuse    both, with other functions at the same addresses in each round, one after another
 * append   heap, with functions added behind those before in each round, one after another
 * silent   code that is not described
 * lie      frame, and other memory has another description of the same code
 * list     both, but the list of objects leads back to its beginning, and others have any size
 * large    frame, far from its code, with more memory in between than is read
 * endless  frame, and memory is full of what looks like the beginning of a description
 */
#include "announce.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	    4096UL
#define CODE_SIZE   (16 * PAGE)
#define FRAME_SIZE  (8 * PAGE)
#define FUNCTIONS   12
#define CHAIN_SIZE  900
#define HEAP_FILLED (8UL << 20)
#define LOOKS_US    400000 /* the recorder looks at code that may change some times */
#define LOOK_US	    100000
#define APPEND_SIZE (512 * PAGE)
#define LARGE	    (40UL << 20)

extern void __register_frame(void *frame);
extern void __deregister_frame(void *frame);

/* gdb manual, "JIT Compilation Interface". */
struct jit_code_entry {
	struct jit_code_entry *next, *prev;
	const char *symfile;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version, action;
	struct jit_code_entry *relevant, *first;
};

struct jit_descriptor __jit_debug_descriptor = {.version = 1};

__attribute__((noinline)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

typedef struct Bytes {
	uint8_t *data;
	size_t count, size;
} Bytes;

typedef struct Function {
	uint32_t start, size; /* in the code */
	char name[32];
} Function;

static const char *mode;
static uint64_t seed, ms, round_number;
static char chain[CHAIN_SIZE];
static Function functions[FUNCTIONS];
static unsigned function_count;
static char map_path[64];

static unsigned draw(unsigned below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % below;
}

static int is_mode(const char *name)
{
	return !strcmp(mode, name);
}

static int is_on_heap(void)
{
	return is_mode("heap") || is_mode("rewrite") || is_mode("append");
}

static int is_named(void)
{
	return is_mode("gdb") || is_mode("both") || is_mode("list") || is_mode("reuse") ||
	       is_mode("mapped");
}

/* New code is called as soon as it is described, and is gone when it returns. */
static int is_hasty(void)
{
	return is_mode("new") || is_mode("reuse") || is_mode("append");
}

static void put(Bytes *bytes, const void *data, size_t size)
{
	announce_check(bytes->count + size <= bytes->size, "room");
	memcpy(bytes->data + bytes->count, data, size);
	bytes->count += size;
}

static void byte(Bytes *bytes, unsigned value)
{
	uint8_t narrow = (uint8_t)value;

	put(bytes, &narrow, 1);
}

static void word(Bytes *bytes, uint32_t value)
{
	put(bytes, &value, sizeof(value));
}

static void uleb(Bytes *bytes, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		byte(bytes, (unsigned)(value & 0x7f) | 0x80);
	byte(bytes, (unsigned)value);
}

/* ---- a function and its description --------------------------------------------------- */

/* DWARF's numbers of the registers that a function must keep, and those of the instructions. */
static const struct {
	unsigned dwarf, number;
} kept[] = {{3, 3}, {6, 5}, {12, 12}, {13, 13}, {14, 14}, {15, 15}};

typedef struct Maker {
	Bytes *code, *frame;
	uint32_t described; /* up to there in the code */
	unsigned cfa;	    /* bytes from the stack pointer to it */
} Maker;

/* DW_CFA_advance_loc2, DW_CFA_def_cfa_offset */
static void describe_cfa(Maker *maker)
{
	uint32_t distance = (uint32_t)maker->code->count - maker->described;

	byte(maker->frame, 0x03);
	byte(maker->frame, distance & 0xff);
	byte(maker->frame, distance >> 8);
	byte(maker->frame, 0x0e);
	uleb(maker->frame, maker->cfa);
	maker->described = (uint32_t)maker->code->count;
}

static void push(Maker *maker, unsigned number)
{
	if (number >= 8)
		byte(maker->code, 0x41);
	byte(maker->code, 0x50 + (number & 7));
	maker->cfa += 8;
	describe_cfa(maker);
}

static void pop(Maker *maker, unsigned number)
{
	if (number >= 8)
		byte(maker->code, 0x41);
	byte(maker->code, 0x58 + (number & 7));
	maker->cfa -= 8;
	describe_cfa(maker);
}

/* sub $size, %rsp; or add, if it is negative */
static void move_stack(Maker *maker, int size)
{
	put(maker->code, "\x48\x81", 2);
	byte(maker->code, size > 0 ? 0xec : 0xc4);
	word(maker->code, (uint32_t)abs(size));
	maker->cfa += (unsigned)size;
	describe_cfa(maker);
}

/* mov $value, %register: what it held is gone. */
static void overwrite(Maker *maker, unsigned number)
{
	byte(maker->code, number >= 8 ? 0x41 : 0x40);
	byte(maker->code, 0xb8 + (number & 7));
	word(maker->code, draw(1u << 30));
}

/* mov $target, %rax; call *%rax */
static void call(Maker *maker, uint64_t target)
{
	put(maker->code, "\x48\xb8", 2);
	put(maker->code, &target, sizeof(target));
	put(maker->code, "\xff\xd0", 2);
}

/* DW_CFA_offset */
static void make_body(Maker *maker, uint64_t target)
{
	unsigned saved = 1 + draw(6), args = 2 * draw(3), order = draw(6);
	int room = 16 * (int)draw(40) + (saved % 2 ? 0 : 8);

	for (unsigned i = 0; i < saved; i++) {
		unsigned which = (order + i) % 6;

		push(maker, kept[which].number);
		byte(maker->frame, 0x80 | kept[which].dwarf);
		uleb(maker->frame, maker->cfa / 8);
	}
	if (room)
		move_stack(maker, room);
	for (unsigned i = 0; i < saved; i++)
		overwrite(maker, kept[(order + i) % 6].number);
	for (unsigned i = 0; i < args; i++)
		push(maker, 0);
	call(maker, target);
	if (args)
		move_stack(maker, -8 * (int)args);
	if (room)
		move_stack(maker, -room);
	for (unsigned i = saved; i-- > 0;)
		pop(maker, kept[(order + i) % 6].number);
	byte(maker->code, 0xc3);
}

static void end_entry(Bytes *frame, size_t at)
{
	uint32_t length;

	while ((frame->count - at) % 8)
		byte(frame, 0);
	length = (uint32_t)(frame->count - at - 4);
	memcpy(frame->data + at, &length, sizeof(length));
}

/* DW_CFA_def_cfa of the stack pointer, 8 bytes; DW_CFA_offset of the return address */
static void put_cie(Bytes *frame)
{
	size_t at = frame->count;

	word(frame, 0);
	word(frame, 0);
	put(frame, "\x01zR\0\x01\x78\x10\x01\x1c\x0c\x07\x08\x90\x01", 14);
	end_entry(frame, at);
}

/* Its address is relative, with 8 bytes, because the heap may be far from the code. */
static void put_fde(Bytes *code, Bytes *frame, Function *function, uint64_t target)
{
	Maker maker = {.code = code, .frame = frame, .cfa = 8};
	size_t at = frame->count;
	uint64_t start, size = 0;

	while (code->count % 16)
		byte(code, 0xcc);
	function->start = maker.described = (uint32_t)code->count;
	word(frame, 0);
	word(frame, (uint32_t)(frame->count));
	start = (uint64_t)(code->data + code->count) - (uint64_t)(frame->data + frame->count);
	put(frame, &start, sizeof(start));
	put(frame, &size, sizeof(size));
	uleb(frame, 0);
	make_body(&maker, target);
	size = function->size = (uint32_t)code->count - function->start;
	memcpy(frame->data + at + 16, &size, sizeof(size));
	end_entry(frame, at);
}

static void called_back(void);

/* The innermost one first, because each calls the one before. */
static void make(Bytes *code, Bytes *frame)
{
	uint64_t target = (uint64_t)called_back;

	function_count = 2 + draw(FUNCTIONS - 2);
	put_cie(frame);
	for (unsigned i = 0; i < function_count; i++) {
		Function *function = &functions[i];

		snprintf(function->name, sizeof(function->name), "made_%lu_%u",
			 (unsigned long)round_number, function_count - 1 - i);
		put_fde(code, frame, function, target);
		target = (uint64_t)(code->data + function->start);
	}
	word(frame, 0);
}

/* ---- an object that is shown to debuggers ---------------------------------------------- */

#define SECTIONS 6

static void show_object(const Bytes *code, const Bytes *frame)
{
	static const char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
	struct jit_code_entry *entry = calloc(1, sizeof(*entry));
	Bytes object = {.data = malloc(2 * PAGE), .size = 2 * PAGE};
	Bytes strings = {.data = malloc(PAGE), .size = PAGE};
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_REL,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_ehsize = sizeof(header),
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = SECTIONS,
			     .e_shstrndx = 5};
	Elf64_Shdr sections[SECTIONS] = {
		[1] = {.sh_name = 1,
		       .sh_type = SHT_NOBITS,
		       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		       .sh_addr = (uint64_t)code->data,
		       .sh_size = code->count},
		[2] = {.sh_name = 7,
		       .sh_type = SHT_PROGBITS,
		       .sh_flags = SHF_ALLOC,
		       .sh_addr = (uint64_t)frame->data,
		       .sh_size = frame->count - 4},
		[3] = {.sh_name = 17,
		       .sh_type = SHT_SYMTAB,
		       .sh_link = 4,
		       .sh_info = 1,
		       .sh_entsize = sizeof(Elf64_Sym)},
		[4] = {.sh_name = 25, .sh_type = SHT_STRTAB},
		[5] = {.sh_name = 33, .sh_type = SHT_STRTAB, .sh_size = sizeof(names)},
	};

	put(&object, &header, sizeof(header));
	sections[3].sh_offset = object.count;
	byte(&strings, 0);
	put(&object, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
	for (unsigned i = 0; i < function_count; i++) {
		Elf64_Sym symbol = {.st_name = (uint32_t)strings.count,
				    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				    .st_shndx = 1,
				    .st_value = functions[i].start,
				    .st_size = functions[i].size};

		put(&object, &symbol, sizeof(symbol));
		put(&strings, functions[i].name, strlen(functions[i].name) + 1);
	}
	sections[3].sh_size = object.count - sections[3].sh_offset;
	sections[4].sh_offset = object.count;
	sections[4].sh_size = strings.count;
	put(&object, strings.data, strings.count);
	sections[5].sh_offset = object.count;
	put(&object, names, sizeof(names));
	header.e_shoff = object.count;
	put(&object, sections, sizeof(sections));
	memcpy(object.data, &header, sizeof(header));
	*entry = (struct jit_code_entry){.next = __jit_debug_descriptor.first,
					 .symfile = (const char *)object.data,
					 .symfile_size = object.count};
	if (entry->next)
		entry->next->prev = entry;
	__jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
	__jit_debug_descriptor.action = 1;
	__jit_debug_register_code();
}

/* Takes back the object that was shown last. */
static void hide_object(void)
{
	struct jit_code_entry *entry = __jit_debug_descriptor.first;

	if (entry->next)
		entry->next->prev = NULL;
	__jit_debug_descriptor.first = entry->next;
	__jit_debug_descriptor.relevant = entry;
	__jit_debug_descriptor.action = 2;
	__jit_debug_register_code();
	free((void *)entry->symfile);
	free(entry);
}

/* ---- what is not as it should be -------------------------------------------------------- */

static void *map(void *at, size_t size, int protection)
{
	void *memory = mmap(at, size, protection,
			    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	announce_check(memory != MAP_FAILED, "mmap");
	return memory;
}

/* The same functions, with another distance to the CFA. */
static void lie(const Bytes *frame)
{
	uint8_t *copy = map(NULL, FRAME_SIZE, PROT_READ | PROT_WRITE);
	size_t at = 0;
	uint32_t length;

	memcpy(copy, frame->data, frame->count);
	for (memcpy(&length, copy, 4); length; memcpy(&length, copy + at, 4)) {
		if (at > 0) {
			uint64_t start;

			memcpy(&start, copy + at + 8, 8);
			start += (uint64_t)frame->data - (uint64_t)copy;
			memcpy(copy + at + 8, &start, 8);
			copy[at + 29] += 8; /* the first DW_CFA_def_cfa_offset */
		}
		at += length + 4;
	}
	announce_check(!mprotect(copy, FRAME_SIZE, PROT_READ), "mprotect");
}

static void spoil_list(void)
{
	struct jit_code_entry *first = __jit_debug_descriptor.first,
			      *second = calloc(2, sizeof(*second));

	second[0] = (struct jit_code_entry){second + 1, first, "", UINT64_MAX / 2};
	second[1] = (struct jit_code_entry){first, second, (const char *)16, 1 << 20};
	first->next = second;
	first->prev = NULL;
}

static void fill_memory(void)
{
	static const uint8_t beginning[] = {0x14, 0,   0,   0, 0, 0,	0,    0,
					    1,	  'z', 'R', 0, 1, 0x78, 0x10, 1};
	uint8_t *memory = malloc(HEAP_FILLED);

	for (size_t at = 0; at + sizeof(beginning) <= HEAP_FILLED; at += sizeof(beginning))
		memcpy(memory + at, beginning, sizeof(beginning));
}

/* ---- all ------------------------------------------------------------------------------- */

static void describe(const Bytes *code, const Bytes *frame)
{
	if (!is_mode("gdb") && !is_mode("silent"))
		__register_frame(frame->data);
	if (is_named())
		show_object(code, frame);
	if (is_mode("lie"))
		lie(frame);
	if (is_mode("list"))
		spoil_list();
	if (is_mode("endless"))
		fill_memory();
}

/* Linux, tools/perf/Documentation/jit-interface.txt */
static void write_map(const Bytes *code)
{
	FILE *file;

	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	file = fopen(map_path, "w");
	announce_check(file != NULL, map_path);
	for (unsigned i = 0; i < function_count; i++)
		fprintf(file, "%lx %x mapped_%u\n", (unsigned long)code->data + functions[i].start,
			functions[i].size, i);
	fclose(file);
}

static void set_chain(void)
{
	size_t length = (size_t)snprintf(chain, sizeof(chain), "main run");

	for (unsigned i = function_count; i-- > 0;)
		length += (size_t)snprintf(chain + length, sizeof(chain) - length, " %s",
					   is_named() ? functions[i].name : ".");
	snprintf(chain + length, sizeof(chain) - length, " called_back");
}

static void called_back(void)
{
	announce_spin(ms, chain);
	announce_sleep(1, chain);
}

FRAME static void run(void (*entry)(void))
{
	entry();
	__asm__ volatile("" ::: "memory");
}

static void withdraw(Bytes *code, Bytes *frame)
{
	/* What was called since the recorder has last looked may be the new code as well. */
	if (is_mode("rewrite"))
		usleep(LOOKS_US);
	if (is_mode("append"))
		return;
	if (!is_mode("gdb") && !is_mode("silent"))
		__deregister_frame(frame->data);
	if (is_mode("reuse"))
		hide_object();
	if (is_mode("new")) {
		munmap(code->data, CODE_SIZE + FRAME_SIZE);
		code->data = NULL;
	}
}

/* In each round of new, the memory of the round before is not used. */
static void get_memory(Bytes *code, Bytes *frame)
{
	int writable = PROT_READ | PROT_WRITE;

	if (is_on_heap()) {
		code->size = is_mode("append") ? APPEND_SIZE : CODE_SIZE;
		if (!code->data)
			code->data = map(NULL, code->size, writable | PROT_EXEC);
		if (!frame->data || is_mode("append"))
			frame->data = malloc(FRAME_SIZE);
	} else if (is_mode("large")) {
		uint8_t *between;

		code->data = map(NULL, CODE_SIZE + LARGE + FRAME_SIZE, writable);
		code->size = CODE_SIZE;
		between = code->data + CODE_SIZE;
		memset(between, 1, LARGE);
		announce_check(!mprotect(between, LARGE, PROT_READ), "mprotect");
		frame->data = between + LARGE;
	} else {
		code->size = CODE_SIZE;
		if (!code->data || is_mode("replace") || is_mode("reuse"))
			code->data = map(code->data, CODE_SIZE + FRAME_SIZE, writable);
		frame->data = code->data + CODE_SIZE;
	}
	frame->size = FRAME_SIZE;
	frame->count = 0;
	if (!is_mode("append"))
		code->count = 0;
}

static unsigned pause_us(void)
{
	if (is_hasty())
		return 0;
	return is_mode("rewrite") || is_mode("replace") ? LOOKS_US : LOOK_US;
}

/* Makes the code of a round, over that of the round before. */
static void make_round(Bytes *code, Bytes *frame)
{
	if (frame->count)
		withdraw(code, frame);
	get_memory(code, frame);
	make(code, frame);
	if (is_mode("silent"))
		memset(frame->data, 0, frame->size);
	describe(code, frame);
	if (!is_on_heap()) {
		announce_check(!mprotect(frame->data, FRAME_SIZE, PROT_READ), "mprotect");
		announce_check(!mprotect(code->data, CODE_SIZE, PROT_READ | PROT_EXEC), "mprotect");
	}
	if (is_mode("mapped"))
		write_map(code);
	set_chain();
	/* The recorder looks at it while this process lives. */
	usleep(pause_us());
}

int main(int argc, char **argv)
{
	Bytes code = {0}, frame = {0};

	announce_check(argc == 5, "usage: jit-frames MODE SEED MS ROUNDS:");
	announce_open();
	mode = argv[1];
	seed = strtoull(argv[2], NULL, 10);
	ms = strtoull(argv[3], NULL, 10);
	for (uint64_t rounds = strtoull(argv[4], NULL, 10); round_number < rounds; round_number++) {
		if (round_number == 0 || is_mode("replace") || is_mode("rewrite") || is_hasty())
			make_round(&code, &frame);
		run((void (*)(void))(code.data + functions[function_count - 1].start));
	}
	usleep(LOOK_US);
	if (*map_path) /* the recorder has opened it */
		unlink(map_path);
	return 0;
}
