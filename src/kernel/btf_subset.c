/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "btf_subset.h"
#include "util.h"
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Structs that are nested deeper than this are refused. */
#define DEPTH_MAX 64

typedef struct Copying {
	const struct btf *from;
	struct btf *to;
	Map copies; /* ids in `from` -> in `to` */
} Copying;

/* Returns the id of the copy, or a negative errno. */
static int copy_type(Copying *copying, uint32_t id, unsigned int depth);

static const char *name_of(const struct btf *btf, const struct btf_type *type)
{
	return btf__name_by_offset(btf, type->name_off);
}

static int copy_array(Copying *copying, const struct btf_type *type, unsigned int depth)
{
	const struct btf_array *array = btf_array(type);
	int index = copy_type(copying, array->index_type, depth + 1);
	int element = index < 0 ? index : copy_type(copying, array->type, depth + 1);

	return element < 0 ? element : btf__add_array(copying->to, index, element, array->nelems);
}

/* Members directly follow their struct, so their types must be copied before it. */
static int copy_members(Copying *copying, const struct btf_type *type, unsigned int depth)
{
	for (int i = 0; i < btf_vlen(type); i++) {
		int member = copy_type(copying, btf_members(type)[i].type, depth + 1);

		if (member < 0)
			return member;
	}
	return 0;
}

static int copy_composite(Copying *copying, const struct btf_type *type, unsigned int depth)
{
	const char *name = name_of(copying->from, type);
	int error = copy_members(copying, type, depth), id;

	if (error)
		return error;
	id = btf_is_struct(type) ? btf__add_struct(copying->to, name, type->size)
				 : btf__add_union(copying->to, name, type->size);
	for (int i = 0; i < btf_vlen(type) && id > 0 && !error; i++) {
		const struct btf_member *member = btf_members(type) + i;
		int of_member = copy_type(copying, member->type, depth + 1);

		error = btf__add_field(copying->to,
				       btf__name_by_offset(copying->from, member->name_off),
				       of_member, btf_member_bit_offset(type, i),
				       btf_member_bitfield_size(type, i));
	}
	return error ? error : id;
}

/* Qualifiers do not change where a field is. Of functions only the existence is kept. */
static int make_copy(Copying *copying, const struct btf_type *type, unsigned int depth)
{
	switch (btf_kind(type)) {
	case BTF_KIND_INT:
		return btf__add_int(copying->to, name_of(copying->from, type), type->size,
				    btf_int_encoding(type));
	case BTF_KIND_FLOAT:
		return btf__add_float(copying->to, name_of(copying->from, type), type->size);
	case BTF_KIND_PTR:
		return btf__add_ptr(copying->to, 0);
	case BTF_KIND_ARRAY:
		return copy_array(copying, type, depth);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_composite(copying, type, depth);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return btf__add_enum(copying->to, name_of(copying->from, type), type->size);
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return copy_type(copying, type->type, depth + 1);
	}
	return btf__add_fwd(copying->to, name_of(copying->from, type), BTF_FWD_STRUCT);
}

static int copy_type(Copying *copying, uint32_t id, unsigned int depth)
{
	const struct btf_type *type = btf__type_by_id(copying->from, id);
	uint32_t known = map_get(&copying->copies, id);
	int copy;

	if (id == 0) /* void */
		return 0;
	if (known != MAP_NONE)
		return known;
	if (!type || depth > DEPTH_MAX)
		return -EINVAL;
	copy = make_copy(copying, type, depth);
	if (copy >= 0)
		map_set(&copying->copies, id, copy);
	return copy;
}

static bool is_searched_for(const struct btf_type *type)
{
	return btf_is_composite(type) || btf_is_any_enum(type);
}

static void collect_names(const struct btf *program, Strings *names)
{
	for (uint32_t id = 1; id < btf__type_cnt(program); id++) {
		const struct btf_type *type = btf__type_by_id(program, id);
		_cleanup_free_ char *name = xstrdup(name_of(program, type));
		char *flavour = strstr(name, "___");

		if (flavour)
			*flavour = '\0';
		if (is_searched_for(type) && *name)
			strings_intern(names, name);
	}
}

static int copy_named(Copying *copying, const Strings *names)
{
	for (uint32_t id = 1; id < btf__type_cnt(copying->from); id++) {
		const struct btf_type *type = btf__type_by_id(copying->from, id);
		int copy;

		if (!is_searched_for(type) || !type->name_off ||
		    strings_find(names, name_of(copying->from, type)) == MAP_NONE)
			continue;
		copy = copy_type(copying, id, 0);
		if (copy < 0)
			return copy;
	}
	return 0;
}

static int write_types(const struct btf *btf, int fd)
{
	uint32_t size;
	const void *bytes = btf__raw_data(btf, &size);
	ssize_t written;

	if (!bytes)
		return -ENOMEM;
	written = write(fd, bytes, size);
	if (written < 0)
		return -errno;
	return written == (ssize_t)size ? 0 : -EIO;
}

static void free_copying(Copying *copying)
{
	map_free(&copying->copies);
	btf__free(copying->to);
}

int btf_subset_write(const struct btf *kernel, const struct btf *program, int fd)
{
	_cleanup_(free_copying) Copying copying = {.from = kernel, .to = btf__new_empty()};
	_cleanup_(strings_free) Strings names = {};
	int error;

	if (!copying.to)
		return -errno;
	collect_names(program, &names);
	error = copy_named(&copying, &names);
	return error ? error : write_types(copying.to, fd);
}
