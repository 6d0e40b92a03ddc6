/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_groups.c - loads the BPF programs in two groups at the same time.
 *
 * Loading is mostly libbpf's reading of the kernel's types and the verifier's work, each in one
 * thread. So the object is opened twice, each time with other programs enabled, and both are loaded
 * in parallel on the same maps, which are created before.
 *
 * The programs that read the frames of interpreters (bpf/scripts) are an object of their own, which
 * is loaded when an interpreter is first mapped.
 */
#include "bpf_options.h"
#include "fentry_probe.h"
#include "maps.h"
#include "program_sections.h"
#include "programs_private.h"
#include "script_maps.h"
#include "scripts.skel.h"
#include "wallprof.skel.h"
#include "wallprof_calls.skel.h"
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------------------ */

/* A hash table of this size is allocated quickly. */
#define PROCESSES_MAX (1u << 18)

/*
 * The kernel's LRU list gives each CPU LRU_BATCH entries of a map at a time, and evicts entries in
 * use for that when no others are left (kernel/bpf/bpf_lru_list.h).
 */
#define LRU_BATCH 128

static void size_lru_map(struct bpf_map *map, size_t cpu_count)
{
	bpf_map__set_max_entries(map, MAX(bpf_map__max_entries(map), 2 * LRU_BATCH * cpu_count));
}

static unsigned int read_number(const char *path, unsigned int fallback)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	unsigned int number;

	return file && fscanf(file, "%u", &number) == 1 ? number : fallback;
}

static void size_maps(struct wallprof *skeleton, const ProgramsOptions *options, size_t cpu_count)
{
	bpf_map__set_max_entries(skeleton->maps.accounts, cpu_count);
	bpf_map__set_max_entries(skeleton->maps.scratch, cpu_count * SCRATCH_SLOTS);
	bpf_map__set_max_entries(
		skeleton->maps.processes,
		MIN(read_number("/proc/sys/kernel/pid_max", PROCESSES_MAX), PROCESSES_MAX));
	size_lru_map(skeleton->maps.open_bios, cpu_count);
	size_lru_map(skeleton->maps.ring_works, cpu_count);
	size_lru_map(skeleton->maps.ring_watches, cpu_count);
	if (options->user_stacks == USER_STACKS_TABLES)
		bpf_map__set_max_entries(skeleton->maps.copies, cpu_count);
	else
		bpf_map__set_max_entries(skeleton->maps.stack_memos, 1);
	if (options->kernel_stacks == KERNEL_STACKS_NONE)
		bpf_map__set_max_entries(skeleton->maps.kernel_memos, 1);
	if (options->budget) {
		bpf_map__set_max_entries(skeleton->maps.budget_places, BUDGET_SLOTS);
		bpf_map__set_max_entries(skeleton->maps.budget_sleeps, SLEEP_SLOTS);
	}
}

static void set_settings(struct wallprof *skeleton, const ProgramsOptions *options,
			 const KernelInfo *kernel)
{
	skeleton->rodata->setting_kernel_stacks = options->kernel_stacks;
	skeleton->rodata->setting_waker_threshold_ns = options->waker_threshold_ns;
	skeleton->rodata->setting_user_stacks = options->user_stacks;
	skeleton->rodata->setting_max_stack =
		MIN(read_number("/proc/sys/kernel/perf_event_max_stack", 127), MAX_FRAMES);
	skeleton->rodata->setting_context_known = kernel->offsets_known;
	skeleton->rodata->setting_preempt_count_offset = kernel->offsets.preempt_count;
	skeleton->rodata->setting_hardirq_mask = kernel->offsets.hardirq_mask;
	skeleton->rodata->setting_stack_offset = kernel->offsets.irq_stack;
	skeleton->rodata->setting_stack_in_use_offset = kernel->offsets.irq_stack_in_use;
	skeleton->rodata->setting_stack_known = kernel->offsets.irq_stack_known;
	skeleton->rodata->setting_names_known = kernel->names_known;
	skeleton->rodata->setting_cost = options->cost && options->phases;
	skeleton->rodata->setting_taken_time = kernel->subtracts_time;
	skeleton->rodata->setting_budget = options->budget;
	skeleton->rodata->setting_type_ids = kernel->type_ids;
	skeleton->rodata->setting_whole_system = options->scope.whole_system;
	skeleton->rodata->setting_kernel_threads = options->scope.kernel_threads;
	skeleton->rodata->setting_threads = options->scope.threads;
	skeleton->rodata->setting_cgroup = options->scope.cgroup.id;
	skeleton->rodata->setting_cgroup_hierarchy = options->scope.cgroup.hierarchy;
}

_Static_assert(sizeof(struct wallprof__rodata) == sizeof(struct wallprof_calls__rodata) &&
		       sizeof(struct wallprof__bss) == sizeof(struct wallprof_calls__bss),
	       "both objects have the same variables");

/*
 * Does what wallprof__open_opts() does, for the object whose programs read memory only by helper
 * calls: see bpf/wait/fd.bpf.c.
 */
static struct wallprof *open_by_calls(const struct bpf_object_open_opts *options)
{
	struct wallprof *skeleton = xcalloc(1, sizeof(*skeleton));
	int error = wallprof__create_skeleton(skeleton);

	if (!error) {
		skeleton->skeleton->data = wallprof_calls__elf_bytes(&skeleton->skeleton->data_sz);
		error = bpf_object__open_skeleton(skeleton->skeleton, options);
	}
	if (!error)
		return skeleton;
	wallprof__destroy(skeleton);
	errno = -error;
	return NULL;
}

struct wallprof *load_groups_open_whole(const ProgramsOptions *options, size_t cpu_count,
					KernelInfo *kernel)
{
	BPF_OPTIONS(bpf_object_open_opts, open_options);
	struct wallprof *skeleton;
	int error = program_sections_use(kernel);

	if (error) {
		errno = -error;
		return NULL;
	}
	open_options.btf_custom_path = kernel->needed_path;
	skeleton = kernel->rdonly_cast_id ? wallprof__open_opts(&open_options)
					  : open_by_calls(&open_options);
	if (!skeleton)
		return NULL;
	error = kernel_info_write_needed(kernel, bpf_object__btf(skeleton->obj));
	if (error) {
		wallprof__destroy(skeleton);
		errno = -error;
		return NULL;
	}
	size_maps(skeleton, options, cpu_count);
	set_settings(skeleton, options, kernel);
	return skeleton;
}

/*
 * A kernel may be built without io_uring, the Internet protocols, limits of cgroups, or
 * trampolines.
 */
static bool has_hook(const ProgramInfo *info, const KernelInfo *kernel)
{
	if (info->need != PROGRAM_DISPENSABLE)
		return true;
	if (!strncmp(info->section, "fentry/", strlen("fentry/")))
		return fentry_probe_is_supported(kernel->types, info->section + strlen("fentry/"));
	return kernel_info_tracepoint_id(kernel, info->section + strlen("tp_btf/")) >= 0;
}

static bool is_loaded(const struct bpf_program *program, const ProgramsOptions *options,
		      const FaultOptions *faults, const KernelInfo *kernel, enum load_group group)
{
	const ProgramInfo *info = program_info_of(bpf_program__name(program));

	return info->group == group && has_hook(info, kernel) &&
	       (!info->for_args || options->args) &&
	       (!info->for_running || options->running || options->budget) &&
	       (!info->for_cgroups || options->scope.cgroup.id) &&
	       (!info->for_names || !options->all_files) &&
	       (!info->for_faults || fault_hooks_use(faults, info));
}

/*
 * A program that the table lacks, or has with another hook, would never be loaded, and nothing
 * would say so. The object has "perf_event" for programs that are attached to an event of that
 * type.
 */
static int check_table(const struct bpf_object *object)
{
	const struct bpf_program *program = NULL;

	while ((program = bpf_object__next_program(object, (struct bpf_program *)program))) {
		const char *name = bpf_program__name(program);
		const char *section = bpf_program__section_name(program);
		const ProgramInfo *info = program_info_of(name);

		if (info && !strncmp(info->section, section, strlen(section)))
			continue;
		log_error("the table of BPF programs has no row for %s at %s", name, section);
		return -EINVAL;
	}
	return 0;
}

int load_groups_open(const ProgramsOptions *options, const FaultOptions *faults, size_t cpu_count,
		     KernelInfo *kernel, struct wallprof *ret_groups[static LOAD_GROUPS])
{
	struct bpf_program *program;

	for (size_t i = 0; i < LOAD_GROUPS; i++)
		ret_groups[i] = NULL;
	for (size_t i = 0; i < LOAD_GROUPS; i++) {
		ret_groups[i] = load_groups_open_whole(options, cpu_count, kernel);
		if (!ret_groups[i])
			return -errno;
		if (check_table(ret_groups[i]->obj))
			return -EINVAL;
		bpf_object__for_each_program(program, ret_groups[i]->obj) bpf_program__set_autoload(
			program, is_loaded(program, options, faults, kernel, i));
		ret_groups[i]->rodata->setting_fault_source = faults->source;
		ret_groups[i]->rodata->setting_fault_threshold_ns = faults->threshold_ns;
		if (faults->source == FAULT_SOURCE_OFF)
			bpf_map__set_max_entries(ret_groups[i]->maps.open_faults, 1);
	}
	return 0;
}

/* ---- maps --------------------------------------------------------------------------------- */

/* Returns whether the map has variables that are 0 at first, as a new map's memory is: 4 MB. */
static bool is_bss(const struct bpf_map *map)
{
	const char *suffix = strrchr(bpf_map__name(map), '.');

	return suffix && !strcmp(suffix, ".bss");
}

/*
 * Sets the initial values of a map of variables, and freezes constants, as libbpf does for maps
 * that it creates.
 */
static int fill_variables(struct bpf_map *map, int fd)
{
	const void *value = bpf_map__initial_value(map, &(size_t){0});
	uint32_t key = 0;

	if (!value || is_bss(map))
		return 0;
	if (bpf_map_update_elem(fd, &key, value, BPF_ANY))
		return -errno;
	if (bpf_map__map_flags(map) & BPF_F_RDONLY_PROG && bpf_map_freeze(fd))
		return -errno;
	return 0;
}

/* types is a descriptor of the object's BTF, which lets bpftool print the map. */
static int make_map(struct bpf_map *map, int types)
{
	BPF_OPTIONS(bpf_map_create_opts, options);
	_cleanup_close_ int fd = -1;
	int error;

	if (bpf_map__fd(map) >= 0)
		return 0;
	options.map_flags = bpf_map__map_flags(map);
	options.btf_fd = types;
	options.btf_key_type_id = bpf_map__btf_key_type_id(map);
	options.btf_value_type_id = bpf_map__btf_value_type_id(map);
	fd = bpf_map_create(bpf_map__type(map), bpf_map__name(map), bpf_map__key_size(map),
			    bpf_map__value_size(map), bpf_map__max_entries(map), &options);
	if (fd < 0)
		return -errno;
	error = fill_variables(map, fd);
	return error ? error : bpf_map__reuse_fd(map, fd);
}

/* Creates the maps of both groups, which have the same maps in the same order. */
static int make_maps(struct wallprof *const groups[static LOAD_GROUPS])
{
	uint32_t size;
	const void *types = btf__raw_data(bpf_object__btf(groups[LOAD_GROUP_SWITCH]->obj), &size);
	_cleanup_close_ int types_fd = types ? bpf_btf_load(types, size, NULL) : -1;
	struct bpf_map *map, *other = NULL;

	if (types_fd < 0)
		return -errno;
	bpf_object__for_each_map(map, groups[LOAD_GROUP_SWITCH]->obj)
	{
		int error = make_map(map, types_fd);

		if (error) {
			log_verbose("making the map %s failed: %s", bpf_map__name(map),
				    strerror(-error));
			return error;
		}
		other = bpf_object__next_map(groups[LOAD_GROUP_TICK]->obj, other);
		if (!other)
			return -EINVAL;
		error = bpf_map__reuse_fd(other, bpf_map__fd(map));
		if (error)
			return error;
	}
	return 0;
}

/* ---- loading ------------------------------------------------------------------------------ */

/*
 * Only some versions of libbpf map the variables of a reused map into the skeleton: those from
 * 1.3.4, 1.4.7 and 1.5 on do not.
 */
static int map_variables(struct wallprof *skeleton)
{
	size_t page = sysconf(_SC_PAGESIZE), size = bpf_map__value_size(skeleton->maps.bss);
	void *memory = mmap(skeleton->bss, (size + page - 1) / page * page, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED, bpf_map__fd(skeleton->maps.bss), 0);

	return memory == MAP_FAILED ? -errno : 0;
}

static void *load_second(void *argument)
{
	struct wallprof *skeleton = argument;

	return (void *)(intptr_t)wallprof__load(skeleton);
}

int load_groups_load(struct wallprof *const groups[static LOAD_GROUPS], bool at_once)
{
	void *result = NULL;
	pthread_t thread;
	int error = make_maps(groups);
	bool threaded;

	if (error)
		return error;
	threaded = at_once && !pthread_create(&thread, NULL, load_second, groups[LOAD_GROUP_TICK]);
	error = wallprof__load(groups[LOAD_GROUP_SWITCH]);
	if (threaded)
		pthread_join(thread, &result);
	else
		result = load_second(groups[LOAD_GROUP_TICK]);
	if (!error)
		error = (int)(intptr_t)result;
	return error ? error : map_variables(groups[LOAD_GROUP_SWITCH]);
}

void load_groups_close(struct wallprof *groups[static LOAD_GROUPS])
{
	for (size_t i = 0; i < LOAD_GROUPS; i++) {
		wallprof__destroy(groups[i]);
		groups[i] = NULL;
	}
}

/* ---- programs for interpreters ------------------------------------------------------- */

static bool needs_fault_program(const FaultOptions *faults, enum fault_source source)
{
	return faults->source == source && faults->threshold_ns != FAULT_THRESHOLD_NONE;
}

/*
 * Reading the kernel's types takes most of the time that loading these programs would take. Their
 * structs are among those of the other programs.
 */
void load_groups_keep_kernel(KernelInfo *kernel, const FaultOptions *faults)
{
	static const char *const tracepoints[] = {"sched_switch", "sched_waking",
						  "block_bio_queue"};
	static const char *const functions[] = {"handle_mm_fault"};
	KeptHooks kept = {.tracepoints = tracepoints,
			  .functions = functions,
			  .tracepoint_count = ARRAY_LEN(tracepoints)};

	if (needs_fault_program(faults, FAULT_SOURCE_FENTRY))
		kept.function_count = ARRAY_LEN(functions);
	kernel_info_shrink(kernel, &kept);
}

/* Lets the programs use the rings and accounts of the others. */
static int share_maps(struct scripts *skeleton, const struct wallprof *others)
{
	int error = bpf_map__reuse_fd(skeleton->maps.accounts, bpf_map__fd(others->maps.accounts));

	return error ? error
		     : bpf_map__reuse_fd(skeleton->maps.group_rings,
					 bpf_map__fd(others->maps.group_rings));
}

/*
 * A kernel may be built without block devices. Only faults that did not sleep have stacks of their
 * own.
 */
static void choose_programs(struct scripts *skeleton, const FaultOptions *faults,
			    const KernelInfo *kernel)
{
	bpf_program__set_autoload(skeleton->progs.on_bio_queued_script,
				  kernel_info_tracepoint_id(kernel, "block_bio_queue") >= 0);
	bpf_program__set_autoload(skeleton->progs.on_fault_script,
				  needs_fault_program(faults, FAULT_SOURCE_FENTRY));
	bpf_program__set_autoload(skeleton->progs.on_fault_event_script,
				  needs_fault_program(faults, FAULT_SOURCE_EVENTS));
}

static int load_scripts(struct scripts **ret_skeleton, const struct wallprof *others,
			const FaultOptions *faults, KernelInfo *kernel)
{
	BPF_OPTIONS(bpf_object_open_opts, options);
	struct scripts *skeleton;
	int error = program_sections_use(kernel);

	if (error)
		return error;
	options.btf_custom_path = kernel->needed_path;
	skeleton = *ret_skeleton = scripts__open_opts(&options);
	if (!skeleton)
		return -errno;
	choose_programs(skeleton, faults, kernel);
	error = share_maps(skeleton, others);
	return error ? error : scripts__load(skeleton);
}

/* Has the program that uses the map go on with another one, if that is loaded. */
static int continue_with(const struct bpf_map *map, enum script_continuation key,
			 const struct bpf_program *program)
{
	uint32_t index = key;
	int fd = bpf_program__fd(program);

	if (fd < 0)
		return 0;
	return bpf_map_update_elem(bpf_map__fd(map), &index, &fd, BPF_ANY) ? -errno : 0;
}

/* Programs that are attached to a tracepoint run after those that are attached already. */
static int attach_program(Programs *programs, const struct bpf_program *program)
{
	struct bpf_link *link;

	if (bpf_program__fd(program) < 0)
		return 0;
	link = bpf_program__attach(program);
	if (!link)
		return -errno;
	*vec_push(&programs->hook_links) = link;
	return 0;
}

static int reach_scripts(Programs *programs, const struct scripts *skeleton)
{
	const struct bpf_program *const attached[] = {skeleton->progs.on_switch_script,
						      skeleton->progs.on_waking_script,
						      skeleton->progs.on_bio_queued_script};
	struct wallprof *others = programs->groups[LOAD_GROUP_SWITCH];
	int error = continue_with(others->maps.script_on_event, SCRIPT_AFTER_TICK,
				  skeleton->progs.on_tick_script);

	if (!error)
		error = continue_with(others->maps.script_on_event, SCRIPT_AFTER_FAULT,
				      skeleton->progs.on_fault_event_script);
	if (!error)
		error = continue_with(others->maps.script_on_function, 0,
				      skeleton->progs.on_fault_script);
	for (size_t i = 0; i < ARRAY_LEN(attached) && !error; i++)
		error = attach_program(programs, attached[i]);
	if (!error)
		others->bss->scripts_loaded = true;
	return error;
}

int programs_load_scripts(Programs *programs)
{
	struct wallprof *others = programs->groups[LOAD_GROUP_SWITCH];
	struct scripts *skeleton = NULL;
	int error;

	if (programs->scripts)
		return bpf_map__fd(programs->scripts->maps.script_processes);
	error = load_scripts(&skeleton, others, &programs->faults, &programs->kernel);
	if (!error)
		error = reach_scripts(programs, skeleton);
	if (error) {
		scripts__destroy(skeleton);
		return error;
	}
	programs->scripts = skeleton;
	return bpf_map__fd(skeleton->maps.script_processes);
}

void programs_unload_scripts(Programs *programs)
{
	scripts__destroy(programs->scripts);
	programs->scripts = NULL;
}
