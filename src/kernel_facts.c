/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel_facts.h"
#include "kernel_types.h"
#include "util.h"
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int kernel_facts_read(KernelFacts *ret_facts)
{
	KernelFacts *facts = ret_facts;

	*facts = (KernelFacts){.needed_fd = memfd_create("kernel-types", MFD_CLOEXEC)};
	if (facts->needed_fd < 0)
		return -errno;
	snprintf(facts->needed_path, sizeof(facts->needed_path), "/proc/self/fd/%d",
		 facts->needed_fd);
	facts->types = btf__load_vmlinux_btf();
	if (!facts->types)
		return -errno;
	facts->offsets_known = percpu_offsets(facts->types, &facts->offsets);
	if (!facts->offsets_known)
		log_verbose("this kernel does not tell interrupts from tasks as wakers");
	return 0;
}

int kernel_facts_need(KernelFacts *facts, const struct btf *program)
{
	int error;

	if (facts->needed_written)
		return 0;
	error = kernel_types_write(facts->types, program, facts->needed_fd);
	facts->needed_written = !error;
	return error;
}

void kernel_facts_close(KernelFacts *facts)
{
	btf__free(facts->types);
	facts->types = NULL;
	if (facts->needed_fd >= 0)
		close(facts->needed_fd);
	facts->needed_fd = -1;
}
