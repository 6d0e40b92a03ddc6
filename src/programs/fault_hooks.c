/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fault_hooks.h"
#include "fentry_probe.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>

#define FUNCTION "handle_mm_fault"

static bool has_threshold(const FaultOptions *options)
{
	return options->threshold_ns != FAULT_THRESHOLD_NONE;
}

enum fault_source fault_hooks_best(const struct btf *kernel)
{
	return fentry_probe_is_supported(kernel, FUNCTION) ? FAULT_SOURCE_FENTRY
							   : FAULT_SOURCE_EVENTS;
}

bool fault_hooks_use(const FaultOptions *options, const ProgramInfo *info)
{
	if (options->source == FAULT_SOURCE_OFF)
		return false;
	switch (options->source == FAULT_SOURCE_FENTRY ? info->fentry : info->events) {
	case FAULT_USE_ALWAYS:
		return true;
	case FAULT_USE_WITH_THRESHOLD:
		return has_threshold(options);
	case FAULT_USE_WITHOUT_THRESHOLD:
		return !has_threshold(options);
	default:
		return false;
	}
}

int fault_hooks_attach(const FaultOptions *options, struct bpf_object *object, CpuRange cpus,
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
	error = software_event_attach(program, &major, cpus, links);
	return error || !all ? error : software_event_attach(program, &minor, cpus, links);
}
