/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fentry_probe.h"
#include "programs.h"
#include "programs_private.h"
#include "util.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>

enum hooks { HOOKS_ALL, HOOKS_NONE, HOOKS_ONE };

static int print_nothing(enum libbpf_print_level level __attribute__((unused)),
			 const char *format __attribute__((unused)),
			 va_list args __attribute__((unused)))
{
	return 0;
}

static struct bpf_prog_info info_of(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
		info = (struct bpf_prog_info){};
	return info;
}

static int probe_attaching(struct bpf_program *program)
{
	SoftwareEvent event = programs_tick(100);
	BpfLinks links = {};
	struct bpf_link *link;
	int error;

	if (bpf_program__type(program) == BPF_PROG_TYPE_PERF_EVENT) {
		error = software_event_attach(program, &event, (CpuRange){0, 1}, &links);
		bpf_links_destroy(&links);
		return error;
	}
	link = bpf_program__attach(program);
	if (!link)
		return -errno;
	bpf_link__destroy(link);
	return 0;
}

static bool is_trampoline(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);

	return !strncmp(section, "fentry/", 7) || !strncmp(section, "fexit/", 6);
}

/* Has the object use the maps of another one, which is loaded. */
static int share_maps(const struct wallprof *skeleton, const struct wallprof *with_maps)
{
	struct bpf_map *map, *other = NULL;
	int error = 0;

	bpf_object__for_each_map(map, skeleton->obj)
	{
		other = bpf_object__next_map(with_maps->obj, other);
		error = other ? bpf_map__reuse_fd(map, bpf_map__fd(other)) : -EINVAL;
		if (error)
			break;
	}
	return error;
}

/*
 * Loads some programs: all, none, or one. with_maps: an object whose maps they use, or NULL: then
 * they have maps of their own, which take the kernel longer than most programs do. Returns NULL and
 * sets errno on failure.
 */
static struct wallprof *load_hooks(enum hooks hooks, const char *name, KernelInfo *kernel,
				   const struct wallprof *with_maps)
{
	ProgramsOptions options = {.kernel_stacks = KERNEL_STACKS_BLOCKED,
				   .user_stacks = USER_STACKS_TABLES};
	struct wallprof *skeleton =
		load_groups_open_whole(&options, libbpf_num_possible_cpus(), kernel);
	struct bpf_program *program;
	int error;

	if (!skeleton)
		return NULL;
	bpf_object__for_each_program(program, skeleton->obj)
	{
		bpf_program__set_autoload(program, hooks == HOOKS_ALL);
	}
	if (hooks == HOOKS_ONE)
		bpf_program__set_autoload(bpf_object__find_program_by_name(skeleton->obj, name),
					  true);
	error = with_maps ? share_maps(skeleton, with_maps) : 0;
	if (!error)
		error = wallprof__load(skeleton);
	if (!error)
		return skeleton;
	wallprof__destroy(skeleton);
	errno = -error;
	return NULL;
}

/*
 * Returns how long the kernel took to load the program. Programs are loaded one after the other,
 * and the kernel reports when each load began, in CLOCK_BOOTTIME; so a load ends when the next one
 * begins, or at end_ns.
 */
static uint64_t load_time(const struct wallprof *skeleton, const struct bpf_program *program,
			  uint64_t end_ns)
{
	uint64_t begin_ns = info_of(program).load_time, next_ns = end_ns;
	struct bpf_program *other;

	bpf_object__for_each_program(other, skeleton->obj)
	{
		uint64_t ns = bpf_program__fd(other) < 0 ? 0 : info_of(other).load_time;

		if (ns > begin_ns && ns < next_ns)
			next_ns = ns;
	}
	return next_ns - MIN(begin_ns, next_ns);
}

static void probe_loaded(Probe *probe, const struct wallprof *skeleton, uint64_t end_ns)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(skeleton->obj, probe->program);

	probe->load_ns = load_time(skeleton, program, end_ns);
	probe->verified_insns = info_of(program).verified_insns;
	probe->error = probe_attaching(program);
	if (!probe->error && is_trampoline(program) && !fentry_probe_is_enabled())
		probe->error = -EOPNOTSUPP;
}

static uint64_t boottime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static void probe_one(Probe *probe, KernelInfo *kernel, const struct wallprof *with_maps)
{
	struct wallprof *skeleton = load_hooks(HOOKS_ONE, probe->program, kernel, with_maps);

	if (!skeleton) {
		probe->error = -errno;
		return;
	}
	probe_loaded(probe, skeleton, boottime_ns());
	wallprof__destroy(skeleton);
}

/*
 * Loads the programs all at once if the kernel accepts them all, otherwise one by one, with the
 * same maps.
 */
void programs_probe(void (*visit)(void *user, const Probe *probe), void *user)
{
	struct wallprof *all = NULL, *maps = NULL;
	KernelInfo kernel;
	const ProgramInfo *info;
	uint64_t end_ns;
	int error;

	libbpf_set_print(print_nothing);
	error = kernel_info_read(&kernel);
	if (!error)
		all = load_hooks(HOOKS_ALL, NULL, &kernel, NULL);
	end_ns = boottime_ns();
	if (!error && !all)
		maps = load_hooks(HOOKS_NONE, NULL, &kernel, NULL);
	if (log_level >= LOG_VERBOSE)
		libbpf_set_print(programs_print_libbpf);
	for (size_t i = 0; (info = program_info(i)); i++) {
		Probe probe = {.program = info->name,
			       .hook = info->section,
			       .purpose = info->purpose,
			       .optional = info->need != PROGRAM_REQUIRED,
			       .error = error};

		if (all)
			probe_loaded(&probe, all, end_ns);
		else if (!error)
			probe_one(&probe, &kernel, maps);
		visit(user, &probe);
	}
	if (all)
		wallprof__destroy(all);
	if (maps)
		wallprof__destroy(maps);
	kernel_info_close(&kernel);
}
