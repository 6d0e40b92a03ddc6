/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_read.bpf.h - reads kernel memory through addresses that are numbers.
 *
 * bpf_rdonly_cast() turns a number into a pointer to a kernel type. Reads through it are plain
 * loads, which survive bad addresses as the helper does, and give 0 then. A call of the helper
 * takes 20 ns and more where the kernel protects each return (SRSO), and describing a waited-for
 * object takes dozens of reads.
 *
 * Such pointers are untrusted, so the verifier does not search its list of trusted types for each
 * of them (wallprof.bpf.h, "describing tasks").
 *
 * For kernels without this function there is a second object, compiled with READ_BY_CALLS: libbpf
 * would search all modules for the function, which takes rights that wallprof may not have.
 */
#ifndef WALLPROF_KERNEL_READ_BPF_H
#define WALLPROF_KERNEL_READ_BPF_H

#include "wallprof.bpf.h"

#ifdef READ_BY_CALLS
#define READ(...) BPF_CORE_READ(__VA_ARGS__)
#else

extern void *bpf_rdonly_cast(const void *address, u32 type) __ksym;

/* clang-format off */
#define TYPE_ID_OF(pointer)                                                                        \
	_Generic((pointer),                                                                        \
		 struct file *: setting_type_ids.file,                                             \
		 struct files_struct *: setting_type_ids.files_struct,                             \
		 struct inode *: setting_type_ids.inode,                                           \
		 struct dentry *: setting_type_ids.dentry,                                         \
		 struct socket *: setting_type_ids.socket,                                         \
		 struct sock *: setting_type_ids.sock,                                             \
		 struct eventpoll *: setting_type_ids.eventpoll,                                   \
		 struct epitem *: setting_type_ids.epitem,                                         \
		 struct rb_node *: setting_type_ids.rb_node)
/* clang-format on */

#define READ_1(a, b)		   ((a)->b)
#define READ_2(a, b, c)		   ((a)->b->c)
#define READ_3(a, b, c, d)	   ((a)->b->c->d)
#define READ_N(_1, _2, _3, N, ...) N
#define READ_PLAIN(a, ...)	   READ_N(__VA_ARGS__, READ_3, READ_2, READ_1)(a, __VA_ARGS__)

/*
 * Like BPF_CORE_READ(), for three fields at most. If the result is a pointer, it may be read
 * through, compared with NULL or offset; if it is needed as a number, it has to come from
 * BPF_CORE_READ() or from memory.
 */
#define READ(pointer, ...)                                                                         \
	READ_PLAIN((typeof(pointer))bpf_rdonly_cast(pointer, TYPE_ID_OF(pointer)), __VA_ARGS__)

#endif
#endif
