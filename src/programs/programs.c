/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "programs.h"
#include "fentry_probe.h"
#include "programs_private.h"
#include "ring_buffers.h"
#include "util.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

int programs_print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_DEBUG || log_level < LOG_VERBOSE)
		return 0;
	return vfprintf(stderr, format, args);
}

static void explain_load_failure(int error)
{
	const char *reason, *remedy = "";

	/* libbpf ran out of memory when it read the kernel's types: they were read before. */
	if (error == -ESRCH)
		error = -ENOMEM;
	reason = error_text(error);
	if (error == -EPERM || error == -EACCES)
		remedy = "; run as root, or see wallprof doctor";
	else if (error == -ENOMEM)
		remedy = "; give a smaller --ring-size or --unwind-memory";
	else if (!strchr(reason, ';'))
		remedy = "; wallprof doctor -v shows the program and the reason";
	log_error("loading the BPF programs failed: %s%s", reason, remedy);
}

static int map_accounts(Programs *programs)
{
	RingLayout layout = ring_buffers_layout(programs->rings);
	size_t size = programs->cpu_count * sizeof(struct cpu_account);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(programs->groups[LOAD_GROUP_SWITCH]->maps.accounts), 0);

	if (memory == MAP_FAILED)
		return -errno;
	programs->accounts = memory;
	for (size_t i = 0; i < programs->cpu_count; i++)
		programs->accounts[i].ring_group = ring_layout_group(&layout, i);
	return 0;
}

/*
 * Returns whether the program is attached to a hook from the start. Ticks and iterators are started
 * later.
 */
static bool is_hook_program(const struct bpf_program *program)
{
	static const char *const sections[] = {"tp_btf/", "fentry/", "fexit/"};
	const char *section = bpf_program__section_name(program);

	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		if (!strncmp(section, sections[i], strlen(sections[i])))
			return bpf_program__fd(program) >= 0;
	return false;
}

static int attach_hook(Programs *programs, struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);
	const char *name = bpf_program__name(program);
	struct bpf_link *link = bpf_program__attach(program);
	int error = -errno;
	const ProgramInfo *info;

	if (link) {
		*vec_push(&programs->hook_links) = link;
		return 0;
	}
	info = program_info_of(name);
	if (info && info->need == PROGRAM_DISPENSABLE) {
		log_warn("not recorded: %s (attaching %s failed: %s)", info->purpose, section,
			 strerror(-error));
		return 0;
	}
	log_error("attaching %s failed: %s", section, error_text(error));
	return error;
}

static int attach_hooks(Programs *programs)
{
	uint64_t begin = now_ns();
	int error;

	for (size_t i = 0; i < LOAD_GROUPS; i++) {
		struct bpf_program *program;

		bpf_object__for_each_program(program, programs->groups[i]->obj)
		{
			error = is_hook_program(program) ? attach_hook(programs, program) : 0;
			if (error)
				return error;
		}
	}
	error = fault_hooks_attach(&programs->faults, programs->groups[LOAD_GROUP_TICK]->obj,
				   (CpuRange){0, programs->cpu_count}, &programs->hook_links);
	if (error)
		log_error("attaching to the events of page faults failed: %s", error_text(error));
	programs->times.attach_ns += now_ns() - begin;
	return error;
}

/*
 * The maps of the tables are created before the programs are loaded, which find their first chunk
 * in place.
 */
static int use_unwind_memory(Programs *programs, uint64_t size)
{
	struct wallprof *skeleton = programs->groups[LOAD_GROUP_SWITCH];
	int error = table_memory_new(size, &programs->unwind_memory);

	if (error)
		return error;
	error = bpf_map__reuse_fd(skeleton->maps.chunks,
				  table_memory_chunks_fd(programs->unwind_memory));
	return error ? error
		     : bpf_map__reuse_fd(skeleton->maps.rules,
					 table_memory_rules_fd(programs->unwind_memory));
}

static int use_rings(Programs *programs)
{
	return ring_buffers_attach(programs->rings,
				   programs->groups[LOAD_GROUP_SWITCH]->maps.group_rings);
}

static int load(Programs *programs, const ProgramsOptions *options)
{
	int error = use_unwind_memory(programs, options->unwind_memory);

	if (error)
		return error;
	error = use_rings(programs);
	if (error)
		return error;
	error = load_groups_load(programs->groups, !options->one_cpu);
	if (error)
		return error;
	error = table_memory_ready(programs->unwind_memory);
	if (error)
		return error;
	error = ring_buffers_ready(programs->rings);
	if (error)
		return error;
	table_memory_set_epoch(programs->unwind_memory,
			       (uint64_t *)&programs->groups[LOAD_GROUP_SWITCH]->bss->unwind_epoch);
	return 0;
}

/* Starts to create the rings, and opens the programs meanwhile. */
static int open_programs(Programs *programs, const ProgramsOptions *options)
{
	bool copies = options->user_stacks == USER_STACKS_TABLES;
	int error;

	if (programs->faults.source == FAULT_SOURCE_FENTRY && !options->best_fault_source &&
	    !fentry_probe_is_enabled()) {
		log_error("--fault-source fentry: this kernel does not run fentry programs; "
			  "sysctl kernel.ftrace_enabled=1");
		return -EOPNOTSUPP;
	}
	programs->rings = ring_buffers_new(&options->rings, copies, !options->one_cpu);
	error = kernel_info_read(&programs->kernel);
	if (!error && options->best_fault_source)
		programs->faults.source = fault_hooks_best(programs->kernel.types);
	if (!error)
		error = load_groups_open(options, &programs->faults, programs->cpu_count,
					 &programs->kernel, programs->groups);
	if (error)
		log_error("opening the BPF programs failed: %s", error_text(error));
	return error;
}

static int start(Programs *programs, const ProgramsOptions *options)
{
	uint64_t begin = now_ns();
	int error;

	programs->cpu_count = libbpf_num_possible_cpus();
	programs->faults = options->faults;
	programs->one_cpu = options->one_cpu;
	programs->snapshot_piece =
		MIN(MAX(options->rings.size / (2 * sizeof(struct rec_stack_copy)), 1),
		    (uint64_t)SNAPSHOT_PIECE_MAX);
	error = open_programs(programs, options);
	if (error)
		return error;
	if (options->cost)
		programs->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (options->cost && programs->stats_fd < 0)
		log_warn("measuring the cost of recording failed: %s; --cost needs CAP_SYS_ADMIN",
			 strerror(errno));
	error = load(programs, options);
	load_groups_keep_kernel(&programs->kernel, &programs->faults);
	if (error) {
		explain_load_failure(error);
		return error;
	}
	programs->times.load_ns = now_ns() - begin;
	error = map_accounts(programs);
	if (!error)
		error = programs_map_budget(programs);
	if (error) {
		log_error("mapping the BPF programs' accounts failed: %s", error_text(error));
		return error;
	}
	programs->groups[LOAD_GROUP_SWITCH]->bss->tables_pending =
		true; /* until programs_tables_ready() */
	/* This must precede the first record, which would show wallprof itself. */
	error = programs_init_own_ids(programs);
	if (error) {
		log_error("running a BPF iterator over wallprof's own threads failed: %s",
			  error_text(error));
		return error;
	}
	return attach_hooks(programs);
}

int programs_start(const ProgramsOptions *options, Programs **ret_programs)
{
	Programs *programs = xcalloc(1, sizeof(*programs));
	int error;

	programs->stats_fd = programs->kernel.needed_fd = -1;
	libbpf_set_print(programs_print_libbpf);
	error = start(programs, options);
	if (error) {
		programs_free(programs);
		return error;
	}
	*ret_programs = programs;
	return 0;
}

FaultOptions programs_faults(const Programs *programs)
{
	return programs->faults;
}

struct fault_counts programs_fault_counts(const Programs *programs)
{
	return programs->groups[LOAD_GROUP_SWITCH]->bss->fault_counts;
}

/* Counts requests that were given to the driver and whose completion was not observed. */
static uint64_t count_in_flight(const struct bpf_map *requests)
{
	struct rec_request request;
	uint64_t key, *before = NULL, count = 0;

	while (!bpf_map__get_next_key(requests, before, &key, sizeof(key))) {
		if (!bpf_map__lookup_elem(requests, &key, sizeof(key), &request, sizeof(request),
					  0) &&
		    request.issues)
			count++;
		before = &key;
	}
	return count;
}

struct request_counts programs_request_counts(const Programs *programs)
{
	const struct wallprof *group = programs->groups[LOAD_GROUP_SWITCH];
	struct request_counts counts = group->bss->request_counts;

	counts.in_flight = count_in_flight(group->maps.open_requests);
	return counts;
}

const char *programs_waking_context(const Programs *programs)
{
	const struct wallprof__rodata *settings = programs->groups[LOAD_GROUP_SWITCH]->rodata;

	if (!settings->setting_context_known)
		return "unknown";
	return settings->setting_stack_known && settings->setting_names_known ? "full" : "vectors";
}

/* Appends the address ranges of one program's functions; returns the grown text. */
static char *add_code(char *text, const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info), count;
	_cleanup_free_ uint64_t *starts = NULL;
	_cleanup_free_ uint32_t *sizes = NULL;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
		return text;
	count = MIN(info.nr_jited_ksyms, info.nr_jited_func_lens);
	starts = xcalloc(count + 1, sizeof(*starts));
	sizes = xcalloc(count + 1, sizeof(*sizes));
	info = (struct bpf_prog_info){
		.nr_jited_ksyms = count,
		.jited_ksyms = (uintptr_t)starts,
		.nr_jited_func_lens = count,
		.jited_func_lens = (uintptr_t)sizes,
	};
	length = sizeof(info);
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
		return text;
	for (uint32_t i = 0; i < count; i++) {
		char *longer;

		if (!starts[i] || !sizes[i])
			continue;
		longer = xasprintf("%s%s%" PRIx64 "+%x", text, *text ? " " : "", starts[i],
				   sizes[i]);
		free(text);
		text = longer;
	}
	return text;
}

char *programs_own_code(const Programs *programs)
{
	const struct bpf_program *program;
	char *text = xstrdup("");

	for (size_t i = 0; i < LOAD_GROUPS; i++)
		for (program = NULL;
		     (program = bpf_object__next_program(programs->groups[i]->obj,
							 (struct bpf_program *)program));)
			text = add_code(text, program);
	return text;
}

static bool is_loaded(const Programs *programs, const ProgramInfo *info)
{
	const struct bpf_object *object = programs->groups[info->group]->obj;

	return bpf_program__fd(bpf_object__find_program_by_name(object, info->name)) >= 0;
}

/* Several programs may share a hook. */
static bool is_listed(const Programs *programs, size_t index)
{
	const char *section = program_info(index)->section;

	for (size_t i = 0; i < index; i++)
		if (!strcmp(program_info(i)->section, section) &&
		    is_loaded(programs, program_info(i)))
			return true;
	return false;
}

char *programs_hooks(const Programs *programs)
{
	char *text = xstrdup("");
	const ProgramInfo *info;

	for (size_t i = 0; (info = program_info(i)); i++) {
		int type_length = strcspn(info->section, "/");
		char *longer;

		if (!is_loaded(programs, info) || is_listed(programs, i))
			continue;
		longer = xasprintf("%s%s%s (%.*s)", text, *text ? ", " : "",
				   info->section + type_length + 1, type_length, info->section);
		free(text);
		text = longer;
	}
	return text;
}

/* Programs of the other group have no descriptor in this object, and 0 misses. */
static uint64_t misses_of(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
		return 0;
	return info.recursion_misses;
}

static void add_misses(struct wallprof *group, LossMeter *losses, uint64_t since_ns)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, group->obj)
	{
		const ProgramInfo *info = program_info_of(bpf_program__name(program));

		if (info && info->lost_kind != REC_NONE)
			loss_add(losses, info->lost_kind, LOSS_RECURSION, misses_of(program),
				 since_ns);
	}
}

uint64_t programs_missed(const Programs *programs, const char *name)
{
	uint64_t misses = 0;

	for (size_t i = 0; i < LOAD_GROUPS; i++)
		misses +=
			misses_of(bpf_object__find_program_by_name(programs->groups[i]->obj, name));
	return misses;
}

void programs_add_misses(Programs *programs, LossMeter *losses, uint64_t since_ns)
{
	for (size_t i = 0; i < LOAD_GROUPS; i++)
		add_misses(programs->groups[i], losses, since_ns);
}

int programs_start_ticks(Programs *programs, unsigned int frequency)
{
	SoftwareEvent event = programs_tick(frequency);
	uint64_t begin = now_ns();
	size_t cpus;
	int error = sample_timer_start(programs->groups[LOAD_GROUP_TICK]->progs.on_tick, &event,
				       programs->accounts, programs->cpu_count, &programs->ticks,
				       &cpus);

	if (error)
		log_error("starting the %u Hz timer failed after %zu CPUs: %s%s", frequency, cpus,
			  error_text(error),
			  error == -EINVAL ? "; raise kernel.perf_event_max_sample_rate" : "");
	programs->times.attach_ns += now_ns() - begin;
	return error;
}

int programs_set_tick_rate(Programs *programs, unsigned int frequency)
{
	return sample_timer_set_period(programs->ticks, programs_tick(frequency).period);
}

bool programs_ticks_run(const Programs *programs)
{
	return programs->ticks && sample_timer_is_running(programs->ticks);
}

TickCounts programs_tick_counts(const Programs *programs)
{
	TickCounts counts = {};

	for (size_t cpu = 0; cpu < programs->cpu_count; cpu++) {
		const struct cpu_account *account = &programs->accounts[cpu];

		counts.ticks += account->ticks;
		counts.samples += account->sent[REC_SAMPLE];
		counts.samples_ns += account->ticks_ns;
	}
	return counts;
}

int programs_reopen_cpu(Programs *programs, size_t cpu, uint64_t since_ns)
{
	struct bpf_object *object = programs->groups[LOAD_GROUP_TICK]->obj;
	int error = programs->ticks ? sample_timer_reopen(programs->ticks, cpu, since_ns) : 0;

	/* The links of the events that the kernel has removed stay until the end. */
	return error ? error
		     : fault_hooks_attach(&programs->faults, object, (CpuRange){cpu, 1},
					  &programs->hook_links);
}

void programs_review_ticks(Programs *programs)
{
	if (programs->ticks)
		sample_timer_review(programs->ticks);
}

void programs_enable_ticks(Programs *programs, uint64_t since_ns)
{
	if (programs->ticks)
		sample_timer_enable_all(programs->ticks, since_ns);
}

SampleTimerCounts programs_ticks_counts(const Programs *programs, uint64_t since_ns)
{
	return programs->ticks ? sample_timer_counts(programs->ticks, since_ns)
			       : (SampleTimerCounts){};
}

static uint64_t verified_insns(const struct wallprof *group)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program(program, group->obj)
	{
		struct bpf_prog_info info = {};
		uint32_t length = sizeof(info);

		if (!bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
			sum += info.verified_insns;
	}
	return sum;
}

ProgramsTimes programs_times(const Programs *programs)
{
	ProgramsTimes times = programs->times;

	for (size_t i = 0; i < LOAD_GROUPS; i++)
		times.verified_insns += verified_insns(programs->groups[i]);
	return times;
}

int programs_drain(Programs *programs, int (*on_record)(void *user, const struct record *record),
		   void *user)
{
	return ring_reader_drain(ring_buffers_reader(programs->rings), on_record, user);
}

const RingReader *programs_ring_reader(const Programs *programs)
{
	return ring_buffers_reader(programs->rings);
}

RingLayout programs_ring_layout(const Programs *programs)
{
	return ring_buffers_layout(programs->rings);
}

int programs_add_to_epoll(const Programs *programs, int epoll_fd)
{
	for (uint32_t i = 0; i < ring_buffers_layout(programs->rings).groups; i++) {
		int fd = ring_buffers_fd(programs->rings, i, RING_SCHED);
		struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
			return -errno;
	}
	return 0;
}

bool programs_own_fd(const Programs *programs, int fd)
{
	for (uint32_t i = 0; i < ring_buffers_layout(programs->rings).groups; i++)
		if (fd == ring_buffers_fd(programs->rings, i, RING_SCHED))
			return true;
	return false;
}

struct cpu_account *programs_accounts(Programs *programs, size_t *ret_count)
{
	*ret_count = programs->cpu_count;
	return programs->accounts;
}

UnwindMaps programs_unwind_maps(Programs *programs)
{
	struct wallprof *skeleton = programs->groups[LOAD_GROUP_SWITCH];

	return (UnwindMaps){
		.memory = programs->unwind_memory,
		.processes_fd = bpf_map__fd(skeleton->maps.processes),
		.objects_fd = bpf_map__fd(skeleton->maps.objects),
		.vdso = &skeleton->bss->vdso_object,
		.vsyscall = &skeleton->bss->vsyscall_mapping,
		.mappings_epoch = (uint64_t *)&skeleton->bss->mappings_epoch,
		.troubles = &skeleton->bss->unwind_counts,
	};
}

uint64_t programs_command_end(const Programs *programs)
{
	const struct wallprof__bss *state = programs->groups[LOAD_GROUP_SWITCH]->bss;

	if (__atomic_load_n(&state->command_threads, __ATOMIC_ACQUIRE))
		return 0;
	return __atomic_load_n(&state->command_end_ns, __ATOMIC_ACQUIRE);
}

void programs_stop(Programs *programs)
{
	if (programs->ticks) {
		/* The last review accounts for targets that arrived since the previous one. */
		sample_timer_review(programs->ticks);
		sample_timer_stop(programs->ticks);
	}
	bpf_links_destroy(&programs->hook_links);
}

/* Keeps the large maps until programs_free(). */
static void hold_maps(Programs *programs)
{
	RingLayout layout = ring_buffers_layout(programs->rings);

	deferred_free_hold(&programs->held, programs->groups[LOAD_GROUP_SWITCH]->obj);
	for (uint32_t i = 0; i < layout.groups; i++)
		for (uint32_t kind = 0; kind < RINGS; kind++)
			deferred_free_hold_map(&programs->held,
					       ring_buffers_fd(programs->rings, i, kind),
					       layout.size);
}

void programs_unload(Programs *programs)
{
	programs_stop(programs);
	sample_timer_free(programs->ticks);
	programs->ticks = NULL;
	if (programs->accounts)
		munmap(programs->accounts, programs->cpu_count * sizeof(struct cpu_account));
	programs->accounts = NULL;
	programs_unmap_budget(programs);
	programs_unload_scripts(programs);
	if (programs->one_cpu && programs->groups[LOAD_GROUP_SWITCH])
		hold_maps(programs);
	if (programs->unwind_memory) /* the counter is in the programs' memory */
		table_memory_set_epoch(programs->unwind_memory, NULL);
	load_groups_close(programs->groups);
	ring_buffers_free(programs->rings);
	programs->rings = NULL;
}

void programs_free(Programs *programs)
{
	if (!programs)
		return;
	programs_unload(programs);
	kernel_info_close(&programs->kernel);
	deferred_free_wait(&programs->held);
	table_memory_free(programs->unwind_memory, /* in_turn= */ programs->one_cpu);
	deferred_free_release(&programs->held);
	if (programs->stats_fd >= 0)
		close(programs->stats_fd);
	free(programs);
}
