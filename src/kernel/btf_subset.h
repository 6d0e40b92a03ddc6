/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf_subset.h - a subset of the kernel's types (BTF): those that the BPF programs use.
 *
 * libbpf finds the offsets of a struct's fields by searching all types of the kernel, about
 * 150,000, for its name: once for each struct, in each object. That was a quarter of the loading
 * time. libbpf accepts a file with other types instead (bpf_object_open_opts::btf_custom_path), and
 * in this one there is little to search.
 */
#ifndef WALLPROF_BTF_SUBSET_H
#define WALLPROF_BTF_SUBSET_H

struct btf;

/*
 * Writes the BTF of all structs, unions and enums in `kernel` that have the name of one in
 * `program` (without what follows three underscores there: CO-RE's flavours) to an empty file. They
 * have all their members, but not the types that pointers point to. Returns 0 or a negative errno.
 */
int btf_subset_write(const struct btf *kernel, const struct btf *program, int fd);

#endif
