/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "preflight.h"
#include "privileges.h"
#include "proc_status.h"
#include "sideband.h"
#include "util.h"
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BTF_PATH       "/sys/kernel/btf/vmlinux"
#define CPUS_PATH      "/sys/devices/system/cpu/possible"
#define LOCKDOWN_PATH  "/sys/kernel/security/lockdown"
#define PARANOID_PATH  "/proc/sys/kernel/perf_event_paranoid"
#define OLDEST_MAJOR   6
#define OLDEST_MINOR   1
#define OLDEST_RELEASE "6.1"

static bool has_capability(uint64_t capabilities, int capability)
{
	return capabilities >> capability & 1;
}

static bool kernel_is_new_enough(const struct utsname *uts)
{
	int major = 0, minor = 0;

	if (sscanf(uts->release, "%d.%d", &major, &minor) != 2)
		return false;
	return major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR);
}

/* With 3 or more, as Debian has it, only root may open perf events, whatever the capabilities. */
static bool events_are_for_root(void)
{
	_cleanup_fclose_ FILE *file = fopen(PARANOID_PATH, "re");
	int level = 0;

	return file && fscanf(file, "%d", &level) == 1 && level > 2;
}

/* Becoming root helps neither root without the capability nor root of a user namespace. */
static const char *capability_remedy(bool in_user_namespace)
{
	static char text[PATH_MAX + 256];
	_cleanup_free_ char *program = NULL;
	char path[PATH_MAX] = "";

	if (in_user_namespace)
		return "capabilities of a user namespace (a rootless container, unshare -U) do not "
		       "count; run wallprof on the host, or give it CAP_BPF and CAP_PERFMON there";
	if (geteuid() == 0)
		return "root lacks this capability here; start the container with --cap-add "
		       "BPF --cap-add PERFMON --cap-add SYS_PTRACE --cap-add DAC_READ_SEARCH "
		       "--cap-add CHECKPOINT_RESTORE --cap-add SYSLOG";
	program = readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 ? shell_word(path)
									 : xstrdup("wallprof");
	snprintf(text, sizeof(text),
		 "run as root, or give the program its capabilities: setcap "
		 "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore,"
		 "cap_syslog+ep %s%s",
		 program, events_are_for_root() ? " && sysctl kernel.perf_event_paranoid=2" : "");
	return text;
}

/* The error of perf_event_open(2), although the capabilities are there. */
static const char *events_remedy(int error)
{
	if (error == -ENOSYS)
		return "run a kernel built with CONFIG_PERF_EVENTS, and a container without a "
		       "filter of system calls for them";
	if (geteuid() == 0)
		return "a filter of system calls refuses them; start the container with "
		       "--security-opt seccomp=unconfined";
	return "run as root, or sysctl kernel.perf_event_paranoid=2 (with 3 or more, as on "
	       "Debian, only root may open them)";
}

/* With "confidentiality" there are no events, and no BPF programs that read kernel memory. */
static bool kernel_is_readable(void)
{
	_cleanup_fclose_ FILE *file = fopen(LOCKDOWN_PATH, "re");
	char levels[128] = "";

	return !file || !fgets(levels, sizeof(levels), file) ||
	       !strstr(levels, "[confidentiality]");
}

/* For BPF programs and perf events the kernel checks the initial user namespace only. */
uint64_t preflight_capabilities(void)
{
	return privileges_in_user_namespace() ? 0 : privileges_effective();
}

void preflight_run(Check checks[CHECK_COUNT])
{
	bool in_user_namespace = privileges_in_user_namespace();
	uint64_t capabilities = preflight_capabilities();
	bool admin = has_capability(capabilities, CAP_SYS_ADMIN);
	struct utsname uts;
	int events_error = sideband_probe();

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
	checks[CHECK_LOCKDOWN] = (Check){
		.what = "kernel memory that BPF programs may read (" LOCKDOWN_PATH ")",
		.ok = kernel_is_readable(),
		.remedy = "boot without lockdown=confidentiality; lockdown=integrity is enough "
			  "for Secure Boot",
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
		.ok = !events_error,
		.remedy = checks[CHECK_CAP_PERFMON].ok ? events_remedy(events_error)
						       : "see CAP_PERFMON",
	};
	for (int i = 0; i < CHECK_COUNT; i++)
		checks[i].error = i < CHECK_LOCKDOWN ? -ENOSYS : -EPERM;
}

static const Check *first_missing(const Check checks[CHECK_COUNT])
{
	for (int i = 0; i < CHECK_COUNT; i++)
		if (!checks[i].ok)
			return &checks[i];
	return NULL;
}

char *preflight_missing(const Check checks[CHECK_COUNT])
{
	const Check *missing = first_missing(checks);

	if (!missing)
		return NULL;
	if (missing == &checks[CHECK_CAP_BPF] && !checks[CHECK_CAP_PERFMON].ok)
		return xasprintf("missing: CAP_BPF and %s; %s", checks[CHECK_CAP_PERFMON].what,
				 missing->remedy);
	return xasprintf("missing: %s; %s", missing->what, missing->remedy);
}

int preflight_check(void)
{
	Check checks[CHECK_COUNT];
	_cleanup_free_ char *missing = NULL;

	preflight_run(checks);
	missing = preflight_missing(checks);
	if (!missing)
		return 0;
	log_error("recording failed: %s", missing);
	return first_missing(checks)->error;
}
