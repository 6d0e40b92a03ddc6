/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "program_sections.h"
#include "bpf_options.h"
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

/*
 * libbpf reads the kernel's types for a tracing program that is not attached to another program. So
 * each program gets this as the other program, and it is taken back before the program is loaded.
 */
#define NO_PROGRAM_FD 1

typedef struct Section {
	const char *name; /* as for libbpf_register_prog_handler() */
	enum bpf_prog_type type;
	enum bpf_attach_type attach_type;
	bool sleepable;
} Section;

static const Section sections[] = {
	{"tp_btf/", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, .sleepable = false},
	{"fentry/", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, .sleepable = false},
	{"fexit/", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT, .sleepable = false},
	{"iter/", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, .sleepable = false},
	{"iter.s/", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, .sleepable = true},
	{"perf_event", BPF_PROG_TYPE_PERF_EVENT, 0, .sleepable = false},
};

static const KernelInfo *used_kernel; /* libbpf's handlers have no other argument */

/* Returns the type of what the program attaches to, or a negative errno. */
static int attach_id(const struct bpf_program *program, const Section *section)
{
	const char *hook = strchr(bpf_program__section_name(program), '/') + 1;

	switch (section->attach_type) {
	case BPF_TRACE_RAW_TP:
		return kernel_info_tracepoint_id(used_kernel, hook);
	case BPF_TRACE_ITER:
		return used_kernel->task_iterator_id ? (int)used_kernel->task_iterator_id : -ENOENT;
	default:
		return kernel_info_function_id(used_kernel, hook);
	}
}

/* Replaces calls of CALL_RDONLY_CAST (maps.h) by calls of the kernel's function. */
static int set_calls(struct bpf_program *program)
{
	size_t count = bpf_program__insn_cnt(program);
	_cleanup_free_ struct bpf_insn *instructions = xcalloc(count, sizeof(*instructions));

	memcpy(instructions, bpf_program__insns(program), count * sizeof(*instructions));
	for (size_t i = 0; i < count; i++) {
		struct bpf_insn *call = &instructions[i];

		if (call->code != (BPF_JMP | BPF_CALL) || call->src_reg != 0 ||
		    call->imm != CALL_RDONLY_CAST)
			continue;
		call->src_reg = BPF_PSEUDO_KFUNC_CALL;
		call->imm = used_kernel->rdonly_cast_id;
	}
	return bpf_program__set_insns(program, instructions, count);
}

/* libbpf calls it when the object is opened. */
static int set_up(struct bpf_program *program, long cookie)
{
	return sections[cookie].type == BPF_PROG_TYPE_TRACING
		       ? bpf_program__set_attach_target(program, NO_PROGRAM_FD, NULL)
		       : 0;
}

/* libbpf calls it before a program is loaded, possibly in several threads. */
static int prepare(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
	const Section *section = &sections[cookie];
	int id;

	if (section->type == BPF_PROG_TYPE_TRACING) {
		id = attach_id(program, section);
		if (id < 0)
			return id;
		options->attach_prog_fd = 0;
		options->attach_btf_id = id;
		options->prog_flags |= section->sleepable ? BPF_F_SLEEPABLE : 0;
	}
	return used_kernel->rdonly_cast_id ? set_calls(program) : 0;
}

/* bpf_program__attach() calls it. */
static int attach(const struct bpf_program *program, long cookie, struct bpf_link **ret_link)
{
	if (sections[cookie].type != BPF_PROG_TYPE_TRACING)
		return -EOPNOTSUPP;
	*ret_link = bpf_program__attach_trace(program);
	return *ret_link ? 0 : -errno;
}

int program_sections_use(const KernelInfo *kernel)
{
	static bool registered;

	used_kernel = kernel;
	for (size_t i = 0; i < ARRAY_LEN(sections) && !registered; i++) {
		BPF_OPTIONS(libbpf_prog_handler_opts, options);
		int r;

		options.cookie = i;
		options.prog_setup_fn = set_up;
		options.prog_prepare_load_fn = prepare;
		options.prog_attach_fn = attach;
		r = libbpf_register_prog_handler(sections[i].name, sections[i].type,
						 sections[i].attach_type, &options);
		if (r < 0)
			return r;
	}
	registered = true;
	return 0;
}
