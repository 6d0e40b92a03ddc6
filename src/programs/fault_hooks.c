/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fault_hooks.h"
#include "fentry_probe.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#define FUNCTION "handle_mm_fault"

/* Each program of fault.bpf.c, and when it is used, by source. */
enum use { USE_NEVER, USE_ALWAYS, USE_WITH_THRESHOLD, USE_WITHOUT_THRESHOLD };

static const struct {
	const char *program;
	enum use fentry, events;
} uses[] = {
	{"on_fault_begin", USE_ALWAYS, USE_NEVER},
	{"on_fault_end", USE_WITHOUT_THRESHOLD, USE_NEVER},
	{"on_fault_end_stack", USE_WITH_THRESHOLD, USE_NEVER},
	{"on_file_fault", USE_ALWAYS, USE_NEVER},
	{"on_fault_user", USE_WITH_THRESHOLD, USE_ALWAYS},
	{"on_fault_kernel", USE_WITH_THRESHOLD, USE_ALWAYS},
	{"on_fault_accounted", USE_NEVER, USE_WITHOUT_THRESHOLD},
	{"on_fault_accounted_stack", USE_NEVER, USE_WITH_THRESHOLD},
};

static bool has_threshold(const FaultOptions *options)
{
	return options->threshold_ns != FAULT_THRESHOLD_NONE;
}

enum fault_source fault_hooks_best(const struct btf *kernel)
{
	return trampolines_reach(kernel, FUNCTION) ? FAULT_SOURCE_FENTRY : FAULT_SOURCE_EVENTS;
}

static bool is_used(enum use use, bool with_threshold)
{
	switch (use) {
	case USE_ALWAYS:
		return true;
	case USE_WITH_THRESHOLD:
		return with_threshold;
	case USE_WITHOUT_THRESHOLD:
		return !with_threshold;
	default:
		return false;
	}
}

bool fault_hooks_leave_out(const FaultOptions *options, const char *program)
{
	for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
		if (strcmp(uses[i].program, program))
			continue;
		if (options->source == FAULT_SOURCE_OFF)
			return true;
		return !is_used(options->source == FAULT_SOURCE_FENTRY ? uses[i].fentry
								       : uses[i].events,
				has_threshold(options));
	}
	return false;
}

int fault_hooks_attach(const FaultOptions *options, struct bpf_object *object, size_t cpu_count,
		       BpfLinks *links)
{
	bool all = has_threshold(options);
	struct bpf_program *program = bpf_object__find_program_by_name(
		object, all ? "on_fault_accounted_stack" : "on_fault_accounted");
	SoftwareEvent major = {
		.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ, .period = 1, .cookie = FAULT_COOKIE_MAJOR};
	SoftwareEvent minor = {
		.config = PERF_COUNT_SW_PAGE_FAULTS_MIN, .period = 1, .cookie = FAULT_COOKIE_MINOR};
	int error;

	if (options->source != FAULT_SOURCE_EVENTS)
		return 0;
	error = software_event_attach(program, &major, cpu_count, links);
	return error || !all ? error : software_event_attach(program, &minor, cpu_count, links);
}

const char *fault_hooks_text(const FaultOptions *options)
{
	switch (options->source) {
	case FAULT_SOURCE_FENTRY:
		return has_threshold(options) ? FUNCTION
			       " (fentry, fexit), filemap_fault (fexit), "
			       "page_fault_user, page_fault_kernel (tp_btf)"
					      : FUNCTION " (fentry, fexit), filemap_fault (fexit)";
	case FAULT_SOURCE_EVENTS:
		return has_threshold(options)
			       ? "page_fault_user, page_fault_kernel (tp_btf), page-faults-maj, "
				 "page-faults-min (perf_event)"
			       : "page_fault_user, page_fault_kernel (tp_btf), page-faults-maj "
				 "(perf_event)";
	default:
		return NULL;
	}
}
