/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "preflight.h"
#include "fentry_probe.h"
#include "kallsyms.h"
#include "privileges.h"
#include "proc_status.h"
#include "programs.h"
#include "sideband.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BTF_PATH       "/sys/kernel/btf/vmlinux"
#define CPUS_PATH      "/sys/devices/system/cpu/possible"
#define OLDEST_MAJOR   6
#define OLDEST_MINOR   1
#define OLDEST_RELEASE "6.1"

static bool has_capability(uint64_t capabilities, int capability)
{
	return capabilities >> capability & 1;
}

typedef struct Check {
	const char *what;
	bool ok;
	const char *remedy;
} Check;

enum {
	CHECK_KERNEL,
	CHECK_BTF,
	CHECK_CPUS,
	CHECK_PROC,
	CHECK_CAP_BPF,
	CHECK_CAP_PERFMON,
	CHECK_EVENTS, /* last, because it also fails without CAP_PERFMON */
	CHECK_COUNT
};

static bool kernel_is_new_enough(const struct utsname *uts)
{
	int major = 0, minor = 0;

	if (sscanf(uts->release, "%d.%d", &major, &minor) != 2)
		return false;
	return major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR);
}

#define EVENTS_REMEDY                                                                              \
	"run as root, or sysctl kernel.perf_event_paranoid=2 (with 3 or more, as on Debian, only " \
	"root may open them)"

/* Becoming root helps neither root without the capability nor root of a user namespace. */
static const char *capability_remedy(bool in_user_namespace)
{
	if (in_user_namespace)
		return "capabilities of a user namespace (a rootless container, unshare -U) do not "
		       "count; run wallprof on the host, or give it CAP_BPF and CAP_PERFMON there";
	if (geteuid() == 0)
		return "root lacks this capability here; start the container with --cap-add "
		       "BPF --cap-add PERFMON --cap-add SYS_PTRACE --cap-add DAC_READ_SEARCH "
		       "--cap-add CHECKPOINT_RESTORE --cap-add SYSLOG";
	return "run as root, or give the program its capabilities: setcap "
	       "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore,"
	       "cap_syslog+ep";
}

/* For BPF programs and perf events the kernel checks the initial user namespace only. */
static uint64_t recording_capabilities(void)
{
	return privileges_in_user_namespace() ? 0 : privileges_effective();
}

static void run_checks(Check checks[CHECK_COUNT])
{
	bool in_user_namespace = privileges_in_user_namespace();
	uint64_t capabilities = recording_capabilities();
	bool admin = has_capability(capabilities, CAP_SYS_ADMIN);
	struct utsname uts;

	uname(&uts);
	checks[CHECK_KERNEL] = (Check){
		.what = "Linux " OLDEST_RELEASE " or later",
		.ok = kernel_is_new_enough(&uts),
		.remedy = "this kernel is too old; wallprof needs " OLDEST_RELEASE " or later",
	};
	checks[CHECK_BTF] = (Check){
		.what = "kernel type information (" BTF_PATH ")",
		.ok = access(BTF_PATH, R_OK) == 0,
		.remedy = "run a kernel built with CONFIG_DEBUG_INFO_BTF (all of Debian's are); "
			  "where "
			  "/sys is missing, mount -t sysfs sysfs /sys",
	};
	checks[CHECK_CPUS] = (Check){
		.what = "the kernel's list of CPUs (" CPUS_PATH ")",
		.ok = access(CPUS_PATH, R_OK) == 0,
		.remedy = "mount -t sysfs sysfs /sys",
	};
	checks[CHECK_PROC] = (Check){
		.what = "/proc of this PID namespace",
		.ok = proc_is_ours(),
		.remedy = PROC_REMEDY,
	};
	checks[CHECK_CAP_BPF] = (Check){
		.what = in_user_namespace ? "CAP_BPF in the initial user namespace" : "CAP_BPF",
		.ok = admin || has_capability(capabilities, CAP_BPF),
		.remedy = capability_remedy(in_user_namespace),
	};
	checks[CHECK_CAP_PERFMON] = (Check){
		.what = in_user_namespace ? "CAP_PERFMON in the initial user namespace"
					  : "CAP_PERFMON",
		.ok = admin || has_capability(capabilities, CAP_PERFMON),
		.remedy = checks[CHECK_CAP_BPF].ok ? capability_remedy(in_user_namespace)
						   : "see CAP_BPF",
	};
	checks[CHECK_EVENTS] = (Check){
		.what = "perf events of all processes",
		.ok = !sideband_probe(),
		.remedy = checks[CHECK_CAP_PERFMON].ok ? EVENTS_REMEDY : "see CAP_PERFMON",
	};
}

int preflight_check(void)
{
	Check checks[CHECK_COUNT];
	int error = 0;

	run_checks(checks);
	for (int i = 0; i < CHECK_COUNT; i++) {
		if (checks[i].ok || (i == CHECK_EVENTS && error))
			continue;
		log_error("recording failed: missing: %s; %s", checks[i].what, checks[i].remedy);
		error = i >= CHECK_CAP_BPF ? -EPERM : -ENOSYS;
	}
	return error;
}

static void print_hook(void *user, const Probe *probe)
{
	int *failed = user;

	if (probe->error) {
		printf("no   %-32s %s: %s\n", probe->hook, probe->purpose,
		       error_text(probe->error));
		*failed += !probe->optional;
		return;
	}
	printf("yes  %-32s %s", probe->hook, probe->purpose);
	if (log_level >= LOG_VERBOSE)
		printf(" (%s: %" PRIu32 " instructions verified, loaded in %.1f ms)",
		       probe->program, probe->verified_insns, probe->load_ns / 1e6);
	putchar('\n');
}

/*
 * Starts all programs as a recording does, in one object with its maps. Returns whether that works.
 */
static bool start_all(const RecordOptions *options)
{
	ProgramsOptions wanted = {.ring_size = options->ring_size,
				  .unwind_memory = options->unwind_memory,
				  .kernel_stacks = options->kernel_stacks,
				  .user_stacks = options->user_stacks,
				  .waker_threshold_ns = options->waker_threshold_ns,
				  .faults = {.source = options->fault_source,
					     .threshold_ns = options->fault_threshold_ns},
				  .best_fault_source = options->best_fault_source};
	ProgramsTimes times;
	Programs *programs;
	bool good;
	int error;

	error = programs_start(&wanted, &programs);
	if (error)
		return false;
	good = !programs_start_ticks(programs, options->frequency);
	times = programs_times(programs);
	programs_free(programs);
	if (good && log_level >= LOG_VERBOSE)
		printf("all programs: loaded in %.1f ms, attached in %.1f ms\n",
		       times.load_ns / 1e6, times.attach_ns / 1e6);
	return good;
}

static void print_kallsyms(void)
{
	int error = kallsyms_check("/proc/kallsyms");

	printf("%-4s %-32s names of kernel functions%s%s\n", error ? "no" : "yes", "/proc/kallsyms",
	       error ? ": " : "", error ? kallsyms_error_text(error) : "");
}

/* Prints what is useful, but not required to record. */
static void print_extras(uint64_t capabilities)
{
	static const struct {
		const char *name;
		int capability, or_else; /* or_else also suffices */
		const char *purpose, *without;
	} rights[] = {
		{"CAP_SYS_PTRACE", CAP_SYS_PTRACE, CAP_SYS_ADMIN,
		 "mappings of other users' processes", "their functions may have no names"},
		{"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE,
		 "files that this user cannot read", "their functions have no names"},
		{"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN,
		 "files that were deleted or replaced since they were mapped",
		 "their functions have no names, and stacks end there"},
	};

	print_kallsyms();
	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		bool has = has_capability(capabilities, rights[i].capability) ||
			   has_capability(capabilities, rights[i].or_else);

		printf("%-4s %-32s %s%s%s\n", has ? "yes" : "no", rights[i].name, rights[i].purpose,
		       has ? "" : ": ", has ? "" : rights[i].without);
	}
	if (!fentry_probe_is_enabled())
		printf("no   %-32s fentry and fexit programs: the kernel does not run them while "
		       "this is 0\n",
		       "kernel.ftrace_enabled");
}

static bool programs_may_load(const Check checks[CHECK_COUNT])
{
	for (int i = 0; i < CHECK_CAP_BPF; i++)
		if (!checks[i].ok)
			return false;
	return !privileges_in_user_namespace();
}

int preflight_doctor(const RecordOptions *options)
{
	Check checks[CHECK_COUNT];
	struct utsname uts;
	int failed = 0;

	uname(&uts);
	printf("kernel %s, %s\n", uts.release, uts.machine);
	run_checks(checks);
	for (int i = 0; i < CHECK_COUNT; i++) {
		if (checks[i].ok)
			printf("yes  %s\n", checks[i].what);
		else
			printf("no   %s: %s\n", checks[i].what, checks[i].remedy);
		failed += !checks[i].ok;
	}
	/* If one of these is missing, each hook fails with an error that hides the cause. */
	if (programs_may_load(checks))
		programs_probe(print_hook, &failed);
	if (!failed && !start_all(options)) /* it has logged the reason */
		failed++;
	print_extras(recording_capabilities());
	printf(failed ? "wallprof cannot record here: see the lines with \"no\"\n"
		      : "wallprof can record here\n");
	return failed ? -ENOSYS : 0;
}
