/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor.h"
#include "debuginfod.h"
#include "fentry_probe.h"
#include "kallsyms.h"
#include "preflight.h"
#include "privileges.h"
#include "program_table.h"
#include "programs.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SAMPLE_RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"
#define FILES_WANTED	 1024 /* a recording holds each mapped file open */

typedef struct Doctor {
	Check checks[CHECK_COUNT];
	VEC(Probe) probes;
	uint64_t capabilities;
	ProgramsTimes times;
	RingLayout rings;
	bool started; /* all programs, as a recording starts them */
	bool can_record;
} Doctor;

static bool has_capability(const Doctor *doctor, int capability)
{
	return doctor->capabilities >> capability & 1;
}

/* What is useful, but not required to record. */
static const struct {
	const char *name;
	int capability, or_else; /* or_else also suffices */
	const char *purpose, *without;
} rights[] = {
	{"CAP_SYS_PTRACE", CAP_SYS_PTRACE, CAP_SYS_ADMIN, "mappings of other users' processes",
	 "their functions may have no names"},
	{"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE,
	 "files that this user cannot read", "their functions have no names"},
	{"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN,
	 "files that were deleted or replaced since they were mapped",
	 "their functions have no names, and stacks end there"},
};

static bool has_right(const Doctor *doctor, size_t i)
{
	return has_capability(doctor, rights[i].capability) ||
	       has_capability(doctor, rights[i].or_else);
}

/* ---- finding out ----------------------------------------------------------------- */

static void add_probe(void *user, const Probe *probe)
{
	Doctor *doctor = user;

	*vec_push(&doctor->probes) = *probe;
}

/* Starts all programs as a recording of a command does. */
static bool start_all(const RecordOptions *options, const RingLayout *rings, ProgramsTimes *times)
{
	ProgramsOptions wanted = {.rings = *rings,
				  .unwind_memory = options->unwind_memory,
				  .kernel_stacks = options->kernel_stacks,
				  .user_stacks = options->user_stacks,
				  .waker_threshold_ns = options->waker_threshold_ns,
				  .faults = {.source = options->fault_source,
					     .threshold_ns = options->fault_threshold_ns},
				  .best_fault_source = options->best_fault_source,
				  .args = !options->no_args};
	Programs *programs;
	bool good;

	if (programs_start(&wanted, &programs))
		return false;
	good = !programs_start_ticks(programs, options->frequency);
	*times = programs_times(programs);
	programs_free(programs);
	return good;
}

/* If one of these is missing, each hook fails with an error that hides the cause. */
static bool programs_may_load(const Check checks[CHECK_COUNT])
{
	for (int i = 0; i < CHECK_CAP_BPF; i++)
		if (!checks[i].ok)
			return false;
	return !privileges_in_user_namespace();
}

static bool all_required(const Doctor *doctor)
{
	for (int i = 0; i < CHECK_COUNT; i++)
		if (!doctor->checks[i].ok)
			return false;
	for (size_t i = 0; i < doctor->probes.count; i++)
		if (doctor->probes.items[i].error && !doctor->probes.items[i].optional)
			return false;
	return true;
}

static void examine(Doctor *doctor, const RecordOptions *options)
{
	preflight_run(doctor->checks);
	doctor->capabilities = preflight_capabilities();
	if (programs_may_load(doctor->checks))
		programs_probe(add_probe, doctor);
	doctor->can_record = all_required(doctor);
	if (!doctor->can_record)
		return;
	doctor->rings = ring_layout(options->ring_size, options->ring_cpus,
				    sysconf(_SC_NPROCESSORS_ONLN), ring_memory_max());
	doctor->started = start_all(options, &doctor->rings, &doctor->times); /* it logs why not */
	doctor->can_record = doctor->started;
}

/* ---- five lines for a person ----------------------------------------------------- */

/* text: what is there or, after "no" and "partly", what is missing and its remedy. */
static void print_line(const char *subject, const char *verdict, const char *text)
{
	printf("%-10s %-7s %s\n", subject, verdict, text);
}

static void print_recording(const Doctor *doctor)
{
	_cleanup_free_ char *missing = preflight_missing(doctor->checks);
	_cleanup_free_ char *text = NULL;
	struct utsname uts;

	if (missing) {
		print_line("recording", "no", missing);
		return;
	}
	for (size_t i = 0; i < doctor->probes.count; i++) {
		const Probe *probe = &doctor->probes.items[i];

		if (!probe->error || probe->optional)
			continue;
		text = xasprintf("the kernel refuses %s (%s): %s; wallprof doctor -v says why",
				 probe->hook, probe->purpose, error_text(probe->error));
		print_line("recording", "no", text);
		return;
	}
	if (!doctor->started) {
		print_line("recording", "no", "starting the BPF programs failed; see the error");
		return;
	}
	uname(&uts);
	text = xasprintf("Linux %s, %s, %s", uts.release, uts.machine,
			 geteuid() ? "by capabilities" : "as root");
	print_line("recording", "yes", text);
}

static void print_stacks(const Doctor *doctor)
{
	size_t deleted = ARRAY_LEN(rights) - 1;

	if (!doctor->can_record)
		print_line("stacks", "no", "see recording");
	else if (!has_right(doctor, deleted))
		print_line("stacks", "partly",
			   "they end in files that were deleted or replaced since they were "
			   "mapped; run as root, or with CAP_CHECKPOINT_RESTORE");
	else
		print_line("stacks", "yes", "of programs (by unwind tables) and of the kernel");
}

/* Returns whether all programs load that one of the two sources of page faults needs. */
static bool has_faults(const Doctor *doctor, bool by_fentry)
{
	for (size_t i = 0; i < doctor->probes.count; i++) {
		const ProgramInfo *info = program_info_of(doctor->probes.items[i].program);

		if (info->for_faults && doctor->probes.items[i].error &&
		    (by_fentry ? info->fentry : info->events) != FAULT_USE_NEVER)
			return false;
	}
	return true;
}

static const Probe *missing_event(const Doctor *doctor)
{
	for (size_t i = 0; i < doctor->probes.count; i++) {
		const Probe *probe = &doctor->probes.items[i];

		if (probe->optional && probe->error && !program_info_of(probe->program)->for_faults)
			return probe;
	}
	return NULL;
}

static const char *hook_remedy(const char *hook)
{
	if (!fentry_probe_is_enabled())
		return "sysctl kernel.ftrace_enabled=1";
	if (!strncmp(hook, "fentry/", 7))
		return "run a kernel with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS";
	return "wallprof doctor -v lists all hooks";
}

static void print_events(const Doctor *doctor)
{
	const Probe *missing = missing_event(doctor);
	_cleanup_free_ char *text = NULL;

	if (!doctor->can_record) {
		print_line("events", "no", "see recording");
	} else if (!has_faults(doctor, true) && !has_faults(doctor, false)) {
		text = xasprintf("no page faults; %s", hook_remedy("fentry/"));
		print_line("events", "partly", text);
	} else if (missing) {
		text = xasprintf("not %s; %s", missing->purpose, hook_remedy(missing->hook));
		print_line("events", "partly", text);
	} else {
		print_line("events", "yes", "page faults, block I/O, kernel lock owners");
	}
}

static void print_names(const Doctor *doctor)
{
	int error = kallsyms_check("/proc/kallsyms");
	_cleanup_free_ char *text = NULL;

	if (error) {
		text = xasprintf("kernel functions have no names: %s", kallsyms_error_text(error));
		print_line("names", "partly", text);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		if (has_right(doctor, i))
			continue;
		text = xasprintf("not in %s; run as root, or with %s", rights[i].purpose,
				 rights[i].name);
		print_line("names", "partly", text);
		return;
	}
	if (debuginfod_enabled() && !debuginfod_is_installed())
		print_line("names", "partly",
			   "DEBUGINFOD_URLS is set, but libdebuginfod is not installed; apt "
			   "install libdebuginfod1t64, or libdebuginfod1 before Debian 13");
	else if (debuginfod_enabled())
		print_line("names", "yes", "from this machine's files and from DEBUGINFOD_URLS");
	else
		print_line("names", "yes",
			   "from this machine's files; from servers with export "
			   "DEBUGINFOD_URLS=https://debuginfod.elfutils.org/");
}

static uint64_t read_number(const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	uint64_t number;

	return file && fscanf(file, "%" SCNu64, &number) == 1 ? number : UINT64_MAX;
}

static uint64_t hard_limit(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) ? UINT64_MAX : limit.rlim_max;
}

static void print_limits(const RecordOptions *options)
{
	uint64_t rate = read_number(SAMPLE_RATE_PATH), files = hard_limit(RLIMIT_NOFILE);
	uint64_t size = hard_limit(RLIMIT_FSIZE);
	_cleanup_free_ char *text = NULL;

	if (rate < options->frequency)
		text = xasprintf("the kernel takes %" PRIu64 " CPU samples a second, not %" PRIu64
				 "; sysctl kernel.perf_event_max_sample_rate=%" PRIu64,
				 rate, (uint64_t)options->frequency, (uint64_t)options->frequency);
	else if (files < FILES_WANTED)
		text = xasprintf("%" PRIu64 " open files, too few for programs with many "
				 "libraries; ulimit -n %d",
				 files, FILES_WANTED);
	else if (size != RLIM_INFINITY)
		text = xasprintf("files have at most %" PRIu64
				 " bytes, and so does a capture; ulimit -f unlimited",
				 size);
	print_line("limits", text ? "partly" : "yes",
		   text ?: "CPU samples, open files, sizes of files");
}

/* ---- with -v: everything --------------------------------------------------------- */

static void print_hook(const Probe *probe)
{
	if (probe->error)
		printf("no   %-32s %s: %s\n", probe->hook, probe->purpose,
		       error_text(probe->error));
	else
		printf("yes  %-32s %s (%s: %" PRIu32 " instructions verified, loaded in %.1f ms)\n",
		       probe->hook, probe->purpose, probe->program, probe->verified_insns,
		       probe->load_ns / 1e6);
}

static void print_extras(const Doctor *doctor)
{
	int error = kallsyms_check("/proc/kallsyms");

	printf("%-4s %-32s names of kernel functions%s%s\n", error ? "no" : "yes", "/proc/kallsyms",
	       error ? ": " : "", error ? kallsyms_error_text(error) : "");
	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		bool has = has_right(doctor, i);

		printf("%-4s %-32s %s%s%s\n", has ? "yes" : "no", rights[i].name, rights[i].purpose,
		       has ? "" : ": ", has ? "" : rights[i].without);
	}
	if (!fentry_probe_is_enabled())
		printf("no   %-32s fentry and fexit programs: the kernel does not run them while "
		       "this is 0\n",
		       "kernel.ftrace_enabled");
}

static void print_rings(const RingLayout *rings)
{
	_cleanup_free_ char *size = ring_size_text(rings->size);
	_cleanup_free_ char *sum = ring_size_text(ring_layout_bytes(rings));

	printf("ring buffers: %u of %s each, %s together (at most %" PRIu64
	       "M, a quarter of the memory)\n",
	       rings->groups * RINGS, size, sum, ring_memory_max() >> 20);
}

static void print_all(const Doctor *doctor)
{
	putchar('\n');
	for (int i = 0; i < CHECK_COUNT; i++) {
		const Check *check = &doctor->checks[i];

		printf("%-4s %s%s%s\n", check->ok ? "yes" : "no", check->what,
		       check->ok ? "" : ": ", check->ok ? "" : check->remedy);
	}
	for (size_t i = 0; i < doctor->probes.count; i++)
		print_hook(&doctor->probes.items[i]);
	if (doctor->started)
		printf("all programs: loaded in %.1f ms (%" PRIu64
		       " instructions verified), attached in %.1f ms\n",
		       doctor->times.load_ns / 1e6, doctor->times.verified_insns,
		       doctor->times.attach_ns / 1e6);
	if (doctor->started)
		print_rings(&doctor->rings);
	print_extras(doctor);
}

int doctor_print(const RecordOptions *options)
{
	Doctor doctor = {};
	bool can_record;

	examine(&doctor, options);
	print_recording(&doctor);
	print_stacks(&doctor);
	print_events(&doctor);
	print_names(&doctor);
	print_limits(options);
	if (log_level >= LOG_VERBOSE)
		print_all(&doctor);
	can_record = doctor.can_record;
	vec_free(&doctor.probes);
	return can_record ? 0 : -ENOSYS;
}
