/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf_subset.h - of the kernel's types (BTF) those that the BPF programs look into.
 *
 * libbpf finds where the fields of a struct are by searching all types of the kernel, 150,000 or
 * so, for those of its name: for each struct, and in each object anew. That was a quarter of what
 * loading took. It can be given a file of its own choice instead
 * (bpf_object_open_opts::btf_custom_path), and in this one there is little to search.
 */
#ifndef WALLPROF_BTF_SUBSET_H
#define WALLPROF_BTF_SUBSET_H

struct btf;

/*
 * Writes a BTF of all structs, unions and enums in `kernel` that have the name of one in `program`
 * (less what follows three underscores there: CO-RE's flavours), with all their members but without
 * what pointers point to, to an empty file. Returns 0 or a negative errno.
 */
int btf_subset_write(const struct btf *kernel, const struct btf *program, int fd);

#endif
