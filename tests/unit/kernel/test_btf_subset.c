/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The types of a kernel that programs name are kept whole, and no others. */
#include "btf_subset.h"
#include "util.h"
#include <bpf/btf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

/* A program that names these structs. */
static struct btf *program_with(const char *const *names, size_t count)
{
	struct btf *program = btf__new_empty();

	for (size_t i = 0; i < count; i++)
		assert_true(btf__add_struct(program, names[i], 0) > 0);
	return program;
}

/* What came of it; NULL if nothing did. */
static struct btf *written(const struct btf *kernel, const struct btf *program, int *ret_error)
{
	int fd = memfd_create("types", MFD_CLOEXEC);
	struct btf *types = NULL;
	char path[32];

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*ret_error = btf_subset_write(kernel, program, fd);
	if (!*ret_error) {
		types = btf__parse(path, NULL);
		assert_non_null(types);
	}
	close(fd);
	return types;
}

static const char *name_of(const struct btf *btf, const struct btf_type *type)
{
	return btf__name_by_offset(btf, type->name_off);
}

/* What libbpf compares for members, without qualifiers and names of types. */
static const struct btf_type *plain(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (btf_is_mod(type) || btf_is_typedef(type) || btf_kind(type) == BTF_KIND_TYPE_TAG)
		type = btf__type_by_id(btf, type->type);
	return type;
}

static void assert_same(const struct btf *a, uint32_t id_a, const struct btf *b, uint32_t id_b)
{
	const struct btf_type *x = plain(a, id_a), *y = plain(b, id_b);

	if (btf_is_any_enum(x)) {
		assert_true(btf_is_any_enum(y));
		assert_int_equal(x->size, y->size);
		return;
	}
	assert_int_equal(btf_kind(x), btf_kind(y));
	if (btf_is_array(x)) {
		assert_int_equal(btf_array(x)->nelems, btf_array(y)->nelems);
		assert_same(a, btf_array(x)->type, b, btf_array(y)->type);
	} else if (btf_is_int(x)) {
		assert_int_equal(x->size, y->size);
		assert_int_equal(btf_int_encoding(x), btf_int_encoding(y));
	} else if (btf_is_composite(x)) {
		assert_int_equal(x->size, y->size);
		assert_int_equal(btf_vlen(x), btf_vlen(y));
		for (int i = 0; i < btf_vlen(x); i++) {
			const struct btf_member *m = btf_members(x) + i, *n = btf_members(y) + i;

			assert_string_equal(btf__name_by_offset(a, m->name_off),
					    btf__name_by_offset(b, n->name_off));
			assert_int_equal(btf_member_bit_offset(x, i), btf_member_bit_offset(y, i));
			assert_int_equal(btf_member_bitfield_size(x, i),
					 btf_member_bitfield_size(y, i));
			assert_same(a, m->type, b, n->type);
		}
	}
}

/* How many composite types of that name; the last one's id. */
static uint32_t find_all(const struct btf *btf, const char *name, uint32_t *ret_id)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		if (!btf_is_composite(type) || strcmp(name_of(btf, type), name))
			continue;
		count++;
		*ret_id = id;
	}
	return count;
}

static void test_made_up(void **state)
{
	static const char *const names[] = {"wanted", "other___old", "___", "absent"};
	struct btf *kernel = btf__new_empty(), *program = program_with(names, 4), *types;
	int number, inner, pointer, array, constant, alias, error;
	uint32_t wanted = 0, copy = 0;

	(void)state;
	number = btf__add_int(kernel, "int", 4, BTF_INT_SIGNED);
	btf__add_struct(kernel, "unwanted", 8);
	btf__add_field(kernel, "a", number, 0, 0);
	pointer = btf__add_ptr(kernel, btf__type_cnt(kernel) - 1);
	btf__add_union(kernel, "", 4);
	btf__add_field(kernel, "bits", number, 0, 3);
	btf__add_field(kernel, "whole", number, 0, 0);
	inner = btf__type_cnt(kernel) - 1;
	array = btf__add_array(kernel, number, pointer, 5);
	constant = btf__add_const(kernel, array);
	alias = btf__add_typedef(kernel, "five", constant);
	btf__add_struct(kernel, "wanted", 64);
	btf__add_field(kernel, "", inner, 32, 0);
	btf__add_field(kernel, "five", alias, 64, 0);
	btf__add_field(kernel, "unwanted", pointer, 384, 0);
	wanted = btf__type_cnt(kernel) - 1;
	for (int i = 0; i < 2; i++) {
		btf__add_struct(kernel, "other", 4 + i);
		btf__add_field(kernel, "wanted", wanted, 0, 0);
	}
	types = written(kernel, program, &error);
	assert_int_equal(error, 0);
	assert_int_equal(find_all(types, "wanted", &copy), 1);
	assert_same(kernel, wanted, types, copy);
	assert_int_equal(find_all(types, "other", &copy), 2);
	assert_int_equal(btf__type_by_id(types, copy)->size, 5);
	assert_int_equal(find_all(types, "unwanted", &copy), 0);
	btf__free(types);
	btf__free(program);
	btf__free(kernel);
}

/* A struct that holds itself; and a type that is not there. */
static void test_impossible(void **state)
{
	static const char *const names[] = {"loop"};

	(void)state;
	for (int missing = 0; missing < 2; missing++) {
		struct btf *kernel = btf__new_empty(), *program = program_with(names, 1);
		int error;

		btf__add_struct(kernel, "loop", 8);
		btf__add_field(kernel, "again", missing ? 1000 : 1, 0, 0);
		assert_null(written(kernel, program, &error));
		assert_int_equal(error, -EINVAL);
		btf__free(program);
		btf__free(kernel);
	}
}

/* Those of this kernel, as libbpf has them. */
static void test_of_this_kernel(void **state)
{
	static const char *const names[] = {"task_struct", "mm_struct",	    "vm_area_struct",
					    "file",	   "sock",	    "eventpoll",
					    "rb_node",	   "signal_struct", "pt_regs"};
	struct btf *kernel = btf__load_vmlinux_btf(), *types;
	struct btf *program = program_with(names, ARRAY_LEN(names));
	int error;

	(void)state;
	if (!kernel) {
		btf__free(program);
		skip();
	}
	types = written(kernel, program, &error);
	assert_int_equal(error, 0);
	assert_uint_in_range(btf__type_cnt(types), ARRAY_LEN(names), btf__type_cnt(kernel) / 10);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uint32_t original = 0, copy = 0;

		assert_int_equal(find_all(kernel, names[i], &original),
				 find_all(types, names[i], &copy));
		assert_same(kernel, original, types, copy);
	}
	btf__free(types);
	btf__free(program);
	btf__free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_impossible),
		cmocka_unit_test(test_of_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
