/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What files contain without DWARF: PLT stubs as objdump names them, functions of stripped files
 * as readelf and the unstripped file have them. */
#include "object_names_fixture.h"
#include "test_tools.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PROGRAM                                                                                    \
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n"        \
	"static __attribute__((noinline)) double inner(double x) { return sin(x) + atof(\"1\"); "  \
	"}\n"                                                                                      \
	"__attribute__((noinline)) int middle(int x) { char *p = strdup(\"x\"); free(p); "         \
	"if (x == 12345) abort(); return puts(\"m\") + (int)inner(x); }\n"                         \
	"int (*volatile pointer)(const char *) = puts;\n"                                          \
	"int main(int argc, char **argv) { printf(\"%d %s\\n\", middle(argc), getenv(argv[0])); "  \
	"return pointer(\"y\") + (int)strlen(argv[0]); }\n"

static char *build(const char *options)
{
	char *folder = make_folder();

	write_file(folder, "a.c", PROGRAM);
	run("cd '%s' && gcc -O2 %s a.c -o prog -lm 2>&1", folder, options);
	return folder;
}

/* One answer for each address. */
static const char *name_at(const Naming *naming, size_t i)
{
	return naming->answers[i] ? frame_of(naming->answers[i], 0).name : "";
}

/* ---- the procedure linkage table ------------------------------------------------------- */

typedef struct Stub {
	uint64_t start;
	char name[64]; /* "puts@plt" */
} Stub;

typedef VEC(Stub) Stubs;

/* "0000000000001030 <puts@plt>:" */
static Stubs ask_objdump(const char *path)
{
	_cleanup_free_ char *text = output_of("objdump -d -j .plt -j .plt.sec -j .plt.got '%s' "
					      "2>/dev/null | grep '@plt>:$'",
					      path);
	Stubs stubs = {};

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		Stub stub;

		assert_int_equal(sscanf(line, "%" SCNx64 " <%63[^>]", &stub.start, stub.name), 2);
		/* Only a relocation without a symbol. */
		if (*stub.name != '*')
			*vec_push(&stubs) = stub;
	}
	return stubs;
}

/* Is it so at its first byte and at one inside? Returns how many are not. */
static size_t count_wrong_stubs(const char *path, const Stubs *stubs)
{
	uint64_t addresses[2 * stubs->count];
	Naming naming = {.addresses = addresses};
	size_t wrong = 0;

	for (size_t i = 0; i < stubs->count; i++) {
		addresses[2 * i] = stubs->items[i].start;
		addresses[2 * i + 1] = stubs->items[i].start + 1 + random_below(7);
	}
	naming.count = sort_addresses(addresses, 2 * stubs->count);
	assert_int_equal(naming.count, 2 * stubs->count);
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	for (size_t i = 0; i < naming.count; i++)
		for (size_t k = 0; k < stubs->count; k++)
			if (addresses[i] - stubs->items[k].start < 8 &&
			    strcmp(name_at(&naming, i), stubs->items[k].name)) {
				print_message("%#" PRIx64 ": %s, wallprof: %s\n", addresses[i],
					      stubs->items[k].name, name_at(&naming, i));
				wrong++;
			}
	free_naming(&naming);
	return wrong;
}

static void test_plt(void **state)
{
	static const char *const options[] = {
		"-Wl,-z,lazy",
		"-Wl,-z,now",
		"-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy",
		"-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now",
		"-fcf-protection=none -no-pie -Wl,-z,lazy",
		"-no-pie -Wl,-z,now",
		"-fno-plt",
		"-s",
	};

	(void)state;
	if (!has_program("gcc") || !has_program("objdump"))
		skip_because("no gcc or no objdump");
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		char *folder = build(options[i]);
		_cleanup_free_ char *path = xasprintf("%s/prog", folder);
		Stubs stubs = ask_objdump(path);

		print_message("%s: %zu stubs\n", options[i], stubs.count);
		assert_true(stubs.count > (i == 6 ? 0 : 5));
		assert_int_equal(count_wrong_stubs(path, &stubs), 0);
		/* The truth altered. */
		stubs.items[0].name[0]++;
		assert_int_equal(count_wrong_stubs(path, &stubs), 2);
		vec_free(&stubs);
		remove_folder(folder);
	}
}

/* ---- stripped files ------------------------------------------------------------------------ */

typedef struct Extent {
	uint64_t start, end;
} Extent;

typedef VEC(Extent) Extents;

/* "… FDE cie=00000000 pc=0000000000001020..0000000000001090" */
static Extents ask_readelf(const char *path)
{
	_cleanup_free_ char *text = output_of(
		"readelf --debug-dump=frames '%s' 2>/dev/null | sed -n 's/.* FDE .*pc=//p'", path);
	Extents extents = {};

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		Extent extent;

		assert_int_equal(sscanf(line, "%" SCNx64 "..%" SCNx64, &extent.start, &extent.end),
				 2);
		*vec_push(&extents) = extent;
	}
	return extents;
}

/* Start, last and a byte inside of each have its extent, and its name by its place. */
static size_t count_wrong_extents(const char *path, const Extents *extents, size_t *ret_nameless)
{
	uint64_t *addresses = xcalloc(3 * extents->count, sizeof(*addresses));
	Naming naming = {.addresses = addresses};
	size_t wrong = 0;

	*ret_nameless = 0;
	for (size_t i = 0; i < extents->count; i++) {
		Extent extent = extents->items[i];

		addresses[3 * i] = extent.start;
		addresses[3 * i + 1] = extent.end - 1;
		addresses[3 * i + 2] = extent.start + random_below(extent.end - extent.start);
	}
	naming.count = sort_addresses(addresses, 3 * extents->count);
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	for (size_t i = 0; i < extents->count; i++) {
		Extent extent = extents->items[i];
		_cleanup_free_ char *name = xasprintf("fun_%" PRIx64, extent.start);

		for (size_t k = 0; k < naming.count; k++) {
			const struct rec_symbol *symbol = naming.answers[k];

			if (addresses[k] < extent.start || addresses[k] >= extent.end)
				continue;
			if (symbol && !(symbol->h.flags & SYMBOL_NAMELESS))
				continue; /* .dynsym or the PLT has it */
			(*ret_nameless)++;
			wrong += !symbol || symbol->function != extent.start ||
				 symbol->function_size != extent.end - extent.start ||
				 strcmp(name_at(&naming, k), name) != 0;
		}
	}
	free_naming(&naming);
	free(addresses);
	return wrong;
}

static void test_stripped(void **state)
{
	char *folder;
	_cleanup_free_ char *path = NULL, *library = NULL, *without_list = NULL;
	const char *paths[4];
	uint64_t start, size;
	size_t nameless;

	(void)state;
	if (!has_program("gcc") || !has_program("readelf"))
		skip_because("no gcc or no readelf");
	folder = build("-s");
	path = xasprintf("%s/prog", folder);
	library = xasprintf("%s/so", folder);
	without_list = xasprintf("%s/unlisted", folder);
	run("cd '%s' && gcc -O2 -shared -fPIC a.c -o so && strip so && "
	    "gcc -O2 -s -Wl,--no-eh-frame-hdr a.c -o unlisted -lm",
	    folder);
	paths[0] = path;
	paths[1] = library;
	paths[2] = "/bin/bash";
	paths[3] = without_list;
	assert_false(find_section(without_list, ".eh_frame_hdr", &start, &size));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		Extents extents = ask_readelf(paths[i]);

		print_message("%zu entries\n", extents.count);
		assert_true(extents.count >= 3);
		extents.count = MIN(extents.count, (size_t)400);
		assert_int_equal(count_wrong_extents(paths[i], &extents, &nameless), 0);
		assert_true(nameless > 0);
		/* The truth altered: one byte less. */
		for (size_t k = 0; k < extents.count; k++)
			extents.items[k].end--;
		assert_true(count_wrong_extents(paths[i], &extents, &nameless) > nameless / 2);
		vec_free(&extents);
	}
	remove_folder(folder);
}

/* Local functions of a stripped program begin where the symbols were before. */
static void test_starts_are_those_of_nm(void **state)
{
	uint64_t addresses[2], size;
	Naming naming = {.addresses = addresses};
	_cleanup_free_ char *path = NULL, *text = NULL;
	char *folder;
	size_t count = 0;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = build("");
	path = xasprintf("%s/prog", folder);
	text = output_of(NM " -S '%s' | grep -E ' (inner|middle)$'", path);
	run("strip '%s'", path);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_int_equal(sscanf(line, "%" SCNx64 " %" SCNx64, &addresses[count++], &size),
				 2);
	naming.count = sort_addresses(addresses, count);
	assert_int_equal(naming.count, 2);
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	for (size_t i = 0; i < naming.count; i++) {
		_cleanup_free_ char *name = xasprintf("fun_%" PRIx64, addresses[i]);

		assert_string_equal(name_at(&naming, i), name);
		assert_true(naming.answers[i]->h.flags & SYMBOL_NAMELESS);
	}
	free_naming(&naming);
	remove_folder(folder);
}

/* ---- code that nothing describes ----------------------------------------------------------- */

#define ASSEMBLY                                                                                   \
	".text\n.globl one, two\n.hidden one, two\n"                                               \
	"one: .fill 200, 1, 0x90\nret\ntwo: .fill 100, 1, 0x90\nret\n"                             \
	".section .note.GNU-stack, \"\", @progbits\n"

/* What a piece that holds the address must be, by what readelf says of functions. */
static Extent gap_around(uint64_t address, Extent section, const Extents *functions)
{
	for (size_t i = 0; i < functions->count; i++) {
		Extent function = functions->items[i];

		if (function.end <= address)
			section.start = MAX(section.start, function.end);
		else if (function.start > address)
			section.end = MIN(section.end, function.start);
		else
			return (Extent){};
	}
	return section;
}

/* Each byte of the section; those outside of functions are counted. */
static size_t count_wrong_gaps(const char *path, Extent section, const Extents *functions,
			       size_t *ret_outside, size_t *ret_planted)
{
	size_t count = section.end - section.start, wrong = 0;
	uint64_t *addresses = xcalloc(count, sizeof(*addresses));
	Naming naming = {.addresses = addresses, .count = count};

	*ret_outside = *ret_planted = 0;
	for (size_t i = 0; i < count; i++)
		addresses[i] = section.start + i;
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		const struct rec_symbol *symbol = naming.answers[i];
		Extent gap = gap_around(addresses[i], section, functions);
		_cleanup_free_ char *name =
			xasprintf("[no symbols 0x%" PRIx64 "-0x%" PRIx64 "]", gap.start, gap.end);

		if (gap.end == 0) {
			wrong += !symbol || *name_at(&naming, i) == '[';
			continue;
		}
		(*ret_outside)++;
		/* Before a function that the unwind table has; assembly before it is code. */
		if (symbol && symbol->h.flags & SYMBOL_PLANTED) {
			wrong += addresses[i] + 1 != gap.end || gap.end - gap.start >= 16 ||
				 symbol->function != gap.end;
			++*ret_planted;
			continue;
		}
		wrong += !symbol || symbol->function != gap.start ||
			 symbol->function_size != gap.end - gap.start ||
			 !(symbol->h.flags & SYMBOL_NAMELESS) ||
			 strcmp(name_at(&naming, i), name) != 0;
	}
	free_naming(&naming);
	free(addresses);
	return wrong;
}

static char *build_with_assembly(void)
{
	char *folder = make_folder();

	write_file(folder, "a.c", "int before(int x) { return x * 3; }\n");
	write_file(folder, "b.S", ASSEMBLY);
	write_file(folder, "c.c", "int data = 1; int after(int x) { return x + 7; }\n");
	run("cd '%s' && gcc -O2 -shared -fPIC -fvisibility=hidden a.c b.S c.c -o whole && "
	    "strip -s -o lib whole",
	    folder);
	return folder;
}

static uint64_t address_by_nm(const char *folder, const char *name)
{
	_cleanup_free_ char *text = output_of(NM " '%s/whole' | grep ' %s$'", folder, name);

	return strtoull(text, NULL, 16);
}

static void test_gaps(void **state)
{
	_cleanup_free_ char *path = NULL;
	Extents functions, altered = {};
	uint64_t start, size, addresses[3];
	Naming naming = {.addresses = addresses, .count = ARRAY_LEN(addresses)};
	size_t outside, planted;
	char *folder;

	(void)state;
	if (!has_program("gcc") || !has_program("readelf"))
		skip_because("no gcc or no readelf");
	folder = build_with_assembly();
	path = xasprintf("%s/lib", folder);
	functions = ask_readelf(path);
	assert_true(find_section(path, ".text", &start, &size));
	assert_int_equal(count_wrong_gaps(path, (Extent){start, start + size}, &functions, &outside,
					  &planted),
			 0);
	print_message("%zu of %" PRIu64 " bytes in no function\n", outside, size);
	assert_true(outside >= 302 && outside < size);
	/* The truth altered: one function less. */
	vec_append(&altered, functions.items, functions.count - 1);
	assert_true(count_wrong_gaps(path, (Extent){start, start + size}, &altered, &outside,
				     &planted) > 0);
	/* Both functions of the assembly have one name; data have none. */
	addresses[0] = address_by_nm(folder, "one");
	addresses[1] = address_by_nm(folder, "two") + 5;
	addresses[2] = address_by_nm(folder, "data");
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	assert_string_equal(name_at(&naming, 0), name_at(&naming, 1));
	assert_null(naming.answers[2]);
	free_naming(&naming);
	vec_free(&functions);
	vec_free(&altered);
	remove_folder(folder);
}

/* Without section headers, a segment of code is one piece. */
static void test_gap_without_sections(void **state)
{
	_cleanup_free_ char *path = NULL, *text = NULL, *name = NULL;
	uint64_t address, start, size;
	Naming naming = {.addresses = &address, .count = 1};
	Elf64_Ehdr header;
	char *folder;
	FILE *file;

	(void)state;
	if (!has_program("gcc") || !has_program("readelf"))
		skip_because("no gcc or no readelf");
	folder = build_with_assembly();
	path = xasprintf("%s/lib", folder);
	text = output_of("readelf -lW '%s' | awk '$1 == \"LOAD\" && / R E / { print $3, $5 }'",
			 path);
	assert_int_equal(sscanf(text, "%" SCNx64 " %" SCNx64, &start, &size), 2);
	file = fopen(path, "r+");
	assert_int_equal(fread(&header, sizeof(header), 1, file), 1);
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	rewind(file);
	assert_int_equal(fwrite(&header, sizeof(header), 1, file), 1);
	assert_int_equal(fclose(file), 0);
	name = xasprintf("[no symbols 0x%" PRIx64 "-0x%" PRIx64 "]", start, start + size);
	address = address_by_nm(folder, "two");
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	assert_string_equal(name_at(&naming, 0), name);
	free_naming(&naming);
	remove_folder(folder);
}

/* "name", "[no symbols …]" or the like, of a byte so far behind the symbol "sizeless". */
static char *name_behind_sizeless(const char *folder, const char *file, uint64_t distance)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, file);
	uint64_t address = address_by_nm(folder, "sizeless") + distance;
	Naming naming = {.addresses = &address, .count = 1};
	char *name;

	assert_int_equal(name_objects(&naming, path, NULL), 0);
	name = xstrdup(name_at(&naming, 0));
	free_naming(&naming);
	return name;
}

/* As with musl's memset, the code far behind it is another function, without a symbol. */
static void test_symbol_without_size(void **state)
{
	static const struct {
		const char *file;
		uint64_t distance;
		bool named;
	} cases[] = {{"lib", 0, true},	     {"lib", 200, true},      {"lib", 300, false},
		     {"lib", 900, false},    {"whole", 200, true},    {"whole", 900, true},
		     {"whole", 32767, true}, {"whole", 32768, false}, {"whole", 90000, false}};
	char *folder;

	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	folder = make_folder();
	write_file(folder, "a.S",
		   ".text\n.globl sizeless\n.type sizeless, @function\nsizeless:\n"
		   ".skip 100000, 0x90\nret\n.section .note.GNU-stack,\"\"\n");
	run("cd '%s' && gcc -shared -nostdlib a.S -o whole && strip -s -o lib whole", folder);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *name =
			name_behind_sizeless(folder, cases[i].file, cases[i].distance);

		print_message("%s, %" PRIu64 ": %s\n", cases[i].file, cases[i].distance, name);
		assert_int_equal(!strcmp(name, "sizeless"), cases[i].named);
		/* What is beyond has a name that says so. */
		assert_true(cases[i].named || !strncmp(name, "[no symbols 0x", 14));
	}
	remove_folder(folder);
}

/* ---- variables ----------------------------------------------------------------------------- */

#define VARIABLES                                                                                  \
	"int first = 1; static char table[40] = \"x\"; long zeros[5]; static int one;\n"           \
	"int main(int argc, char **argv) { table[argc] = 1; one += argc; zeros[argc] = one;"       \
	" return (int)zeros[1] + table[2] + first + argv[0][0]; }\n"

/* First, last, and the byte behind each; its name is that of readelf, or another's. */
static size_t count_wrong_variables(const char *path, const Extents *extents, char names[][32])
{
	uint64_t addresses[3 * extents->count];
	Naming naming = {.addresses = addresses};
	size_t wrong = 0;

	for (size_t i = 0; i < extents->count; i++) {
		addresses[3 * i] = extents->items[i].start;
		addresses[3 * i + 1] = extents->items[i].end - 1;
		addresses[3 * i + 2] = extents->items[i].end;
	}
	naming.count = sort_addresses(addresses, 3 * extents->count);
	assert_int_equal(name_objects(&naming, path, NULL), 0);
	for (size_t i = 0; i < extents->count; i++)
		for (size_t k = 0; k < naming.count; k++) {
			const struct rec_symbol *symbol = naming.answers[k];
			bool inside = addresses[k] >= extents->items[i].start &&
				      addresses[k] < extents->items[i].end;
			bool named = symbol && !strcmp(name_at(&naming, k), names[i]);

			wrong += named != inside ||
				 (named && (!(symbol->h.flags & SYMBOL_DATA) ||
					    symbol->function != extents->items[i].start));
		}
	free_naming(&naming);
	return wrong;
}

static void test_variables(void **state)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	char names[8][32];
	Extents extents = {};
	char *folder;

	(void)state;
	if (!has_program("gcc") || !has_program("readelf"))
		skip_because("no gcc or no readelf");
	folder = make_folder();
	path = xasprintf("%s/prog", folder);
	write_file(folder, "a.c", VARIABLES);
	run("cd '%s' && gcc -O1 a.c -o prog", folder);
	text = output_of("readelf -sW '%s' | awk '/OBJECT/ && / (first|table|zeros|one)$/"
			 " && !n[$8]++ {print $2, $3, $8}'",
			 path);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		uint64_t start, size;

		assert_int_equal(sscanf(line, "%" SCNx64 " %" SCNu64 " %31s", &start, &size,
					names[extents.count]),
				 3);
		*vec_push(&extents) = (Extent){start, start + size};
	}
	assert_int_equal(extents.count, 4);
	assert_int_equal(count_wrong_variables(path, &extents, names), 0);
	/* The truth altered: one byte less. */
	extents.items[0].end--;
	assert_true(count_wrong_variables(path, &extents, names) > 0);
	vec_free(&extents);
	remove_folder(folder);
}

/*
 * Any bytes of a small library changed: named or refused, within bounds (the sanitizers watch).
 * Without DWARF: libdw 0.188 itself reads beyond a spoilt .debug_line, which is why it is caged.
 */
static void check_spoilt(const char *options)
{
	_cleanup_free_ char *path = NULL, *spoilt = NULL;
	static uint8_t bytes[1 << 20];
	ElfIdentity identity;
	char *folder;
	size_t size;
	FILE *file;

	folder = build(options);
	path = xasprintf("%s/prog", folder);
	spoilt = xasprintf("%s/spoilt", folder);
	file = fopen(path, "r");
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_true(size < sizeof(bytes));
	for (int round = 0; round < 400; round++) {
		uint64_t addresses[] = {0x1000, 0x1010, 0x1030, 0x1080, 0x1100, 0x1150, 0x1200};
		Naming naming = {.addresses = addresses, .count = ARRAY_LEN(addresses)};
		uint8_t *copy = memcpy(xmalloc(size), bytes, size);
		int fd;

		for (int i = 0; i < 8; i++) {
			size_t place = random_below(i < 4 ? size : size - 4096);

			copy[i < 4 ? place : place + 4096] =
				random_below(2) ? 0xff : random_below(256);
		}
		file = fopen(spoilt, "w");
		fwrite(copy, 1, size, file);
		fclose(file);
		free(copy);
		fd = open(spoilt, O_RDONLY);
		if (elf_identify(fd, &identity) == 0) {
			elf_identity_free(&identity);
			name_objects(&naming, spoilt, NULL);
			free_naming(&naming);
		}
		close(fd);
	}
	remove_folder(folder);
}

static void test_spoilt_files(void **state)
{
	(void)state;
	if (!has_program("gcc"))
		skip_because("no gcc");
	check_spoilt("-shared -fPIC");
	check_spoilt("-shared -fPIC -Wl,--no-eh-frame-hdr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_starts_are_those_of_nm),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_symbol_without_size),
		cmocka_unit_test(test_gap_without_sections),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_spoilt_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
