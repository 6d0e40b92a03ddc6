/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fentry_probe.h"
#include "bpf_options.h"
#include "util.h"
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <unistd.h>

bool fentry_probe_is_enabled(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/ftrace_enabled", "re");

	return !file || fgetc(file) != '0';
}

bool fentry_probe_is_supported(const struct btf *kernel, const char *function)
{
	static const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int id = btf__find_by_name_kind(kernel, function, BTF_KIND_FUNC), fd;
	BPF_OPTIONS(bpf_prog_load_opts, options);

	if (id < 0 || !fentry_probe_is_enabled())
		return false;
	options.expected_attach_type = BPF_TRACE_FENTRY;
	options.attach_btf_id = id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "try_fentry", "GPL", instructions,
			   ARRAY_LEN(instructions), &options);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}
