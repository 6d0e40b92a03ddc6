/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chrome.h"
#include "chrome_parts.h"
#include "cpu_rows.h"
#include "critical_path.h"
#include "fault_fields.h"
#include "labels.h"
#include "load_counters.h"
#include "record_info.h"
#include "recording_cost.h"
#include "tick_weights.h"
#include "tracks.h"
#include "wait_fields.h"

#define SAMPLE_NAME   "cpu-clock"
#define CRITICAL_PATH "Critical path"

/* As in chrome_events.h: ids that no process has. */
#define PATH_PID (CHROME_FIRST_FREE_ID - 3)
#define CPUS_PID (CHROME_FIRST_FREE_ID - 4)
#define CPUS_TID (3u << 30) /* plus the CPU's number */

/* ---- ids: the viewers need them to be unique over the whole trace ------------------------ */

static uint32_t unique(Map *taken, uint32_t number, uint32_t *next)
{
	if (number == 0 || map_get(taken, number) != MAP_NONE)
		number = (*next)++;
	map_set(taken, number, 1);
	return number;
}

static void make_ids(Chrome *chrome)
{
	const Timeline *timeline = chrome->timeline;
	uint32_t next_pid = CHROME_FIRST_FREE_ID, next_tid = CHROME_FIRST_FREE_ID + (1u << 29);
	Map pids = {}, tids = {};

	chrome->pids = xcalloc(timeline->processes.count, sizeof(*chrome->pids));
	chrome->tids = xcalloc(timeline->threads.count, sizeof(*chrome->tids));
	for (size_t i = 0; i < timeline->processes.count; i++)
		chrome->pids[i] = unique(&pids, timeline->processes.items[i].ns_tgid, &next_pid);
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		/* A main thread has its process's id; the viewers recognize it by that. */
		chrome->tids[i] = unique(
			&tids, thread->is_main ? chrome->pids[thread->process] : thread->ns_tid,
			&next_tid);
	}
	map_free(&pids);
	map_free(&tids);
}

/* ---- names -------------------------------------------------------------------------------- */

static void write_name(Chrome *chrome, const char *what, uint32_t pid, uint32_t tid,
		       const char *name)
{
	chrome_begin(chrome, "M", what, pid, tid);
	json_key_object(&chrome->json, "args");
	json_key_string(&chrome->json, "name", name);
	json_end_object(&chrome->json);
	json_end_object(&chrome->json);
}

static void write_position(Chrome *chrome, const char *what, uint32_t pid, uint32_t tid,
			   uint64_t place)
{
	chrome_begin(chrome, "M", what, pid, tid);
	json_key_object(&chrome->json, "args");
	json_key_u64(&chrome->json, "sort_index", place);
	json_end_object(&chrome->json);
	json_end_object(&chrome->json);
}

static const char *or_unknown(const char *name)
{
	return name && *name ? name : "unknown";
}

static bool has_requests_of_others(const Requests *requests, size_t device)
{
	const BlockDevice *found = &requests->devices.items[device];

	for (size_t i = 0; i < found->requests.count; i++)
		if (requests->list.items[found->requests.items[i]].thread == THREAD_NONE)
			return true;
	return false;
}

/* Names devices whose requests no thread of the trace has submitted. */
static void write_device_names(Chrome *chrome, uint64_t *place)
{
	const Requests *requests = &chrome->timeline->requests;
	bool named = false;

	for (size_t i = 0; i < requests->devices.count; i++) {
		_cleanup_free_ char *name =
			request_device_text(requests, requests->devices.items[i].number);
		uint32_t tid = CHROME_DEVICES_TID + i;

		if (!has_requests_of_others(requests, i))
			continue;
		if (!named) {
			write_name(chrome, "process_name", CHROME_DEVICES_PID, tid,
				   "Block devices");
			write_position(chrome, "process_sort_index", CHROME_DEVICES_PID, tid,
				       *place);
			named = true;
		}
		write_name(chrome, "thread_name", CHROME_DEVICES_PID, tid, name);
		write_position(chrome, "thread_sort_index", CHROME_DEVICES_PID, tid, (*place)++);
	}
}

static void write_cpu_names(Chrome *chrome, uint64_t *place)
{
	const Timeline *timeline = chrome->timeline;

	if (timeline->cpus.count == 0)
		return;
	write_name(chrome, "process_name", CPUS_PID, CPUS_TID, "CPUs");
	write_position(chrome, "process_sort_index", CPUS_PID, CPUS_TID, *place);
	for (size_t i = 0; i < timeline->cpus.count; i++) {
		_cleanup_free_ char *name = xasprintf("CPU %zu", i);

		if (timeline->cpus.items[i].runs.count == 0)
			continue;
		write_name(chrome, "thread_name", CPUS_PID, CPUS_TID + i, name);
		write_position(chrome, "thread_sort_index", CPUS_PID, CPUS_TID + i, (*place)++);
	}
}

static void write_process(Chrome *chrome, const Process *process, uint32_t pid, uint32_t tid,
			  uint64_t place)
{
	_cleanup_free_ char *args = args_text(process->args);

	write_name(chrome, "process_name", pid, tid, process->label);
	write_position(chrome, "process_sort_index", pid, tid, place);
	if (!args)
		return;
	chrome_begin(chrome, "M", "process_labels", pid, tid);
	json_key_object(&chrome->json, "args");
	json_key_string(&chrome->json, "labels", args);
	json_end_object(&chrome->json);
	json_end_object(&chrome->json);
}

/* In the order of the Firefox profile: what matters most is at the top. */
static void write_names(Chrome *chrome)
{
	const Timeline *timeline = chrome->timeline;
	Tracks tracks;
	uint64_t place = 0;

	tracks_init(&tracks, timeline);
	for (size_t i = 0; i < tracks.list.count; i++) {
		const Track *track = &tracks.list.items[i];

		for (size_t j = 0; j < track->threads.count && !track->is_path; j++) {
			uint32_t number = track->threads.items[j];
			const Thread *thread = &timeline->threads.items[number];
			uint32_t pid = chrome->pids[thread->process], tid = chrome->tids[number];

			if (thread->is_main)
				write_process(chrome, &timeline->processes.items[thread->process],
					      pid, tid, place);
			write_name(chrome, "thread_name", pid, tid, or_unknown(thread->name));
			write_position(chrome, "thread_sort_index", pid, tid, place++);
		}
	}
	if (timeline->path.track.intervals.count > 0) {
		write_name(chrome, "process_name", PATH_PID, PATH_PID, CRITICAL_PATH);
		write_name(chrome, "thread_name", PATH_PID, PATH_PID, timeline->path.track.name);
		write_position(chrome, "process_sort_index", PATH_PID, PATH_PID, place++);
	}
	write_cpu_names(chrome, &place);
	write_device_names(chrome, &place);
	write_name(chrome, "process_name", CHROME_SYSTEM_PID, CHROME_SYSTEM_PID, "System");
	write_position(chrome, "process_sort_index", CHROME_SYSTEM_PID, CHROME_SYSTEM_PID, place);
	tracks_free(&tracks);
}

/* ---- rows beside those of threads --------------------------------------------------------- */

static void write_stretch(Chrome *chrome, size_t first, size_t end)
{
	const Thread *track = &chrome->timeline->path.track;
	uint32_t owner = track->owners.items[first];
	uint64_t from_ns = track->intervals.items[first].start_ns;
	Json *json = &chrome->json;

	chrome_begin(chrome, "X", critical_path_stretch_name(chrome->timeline, first), PATH_PID,
		     PATH_PID);
	json_key_string(json, "cat", CRITICAL_PATH);
	chrome_key_time(chrome, from_ns);
	json_key_us(json, "dur", interval_end(track, end - 1) - from_ns);
	chrome_begin_data(chrome);
	json_key_u64(json, "tid", chrome->tids[owner]);
	chrome_end_data(chrome);
	json_end_object(json);
}

static void write_path(Chrome *chrome)
{
	const Thread *track = &chrome->timeline->path.track;

	for (size_t i = 0, end; i < track->intervals.count; i = end) {
		end = critical_path_stretch(track, i);
		if (interval_end(track, end - 1) - track->intervals.items[i].start_ns >=
		    chrome->fold_ns)
			write_stretch(chrome, i, end);
	}
}

static void write_run(Chrome *chrome, uint32_t cpu, const CpuRun *run, uint64_t end_ns)
{
	_cleanup_free_ char *name = cpu_run_label(chrome->timeline, run->task);
	Json *json = &chrome->json;

	chrome_begin(chrome, "X", name, CPUS_PID, CPUS_TID + cpu);
	json_key_string(json, "cat", "CPU");
	chrome_key_time(chrome, run->start_ns);
	json_key_us(json, "dur", end_ns - run->start_ns);
	if (run->task != CPU_UNKNOWN) {
		chrome_begin_data(chrome);
		json_key_u64(json, "tid", chrome_task_tid(chrome, run->task));
		chrome_end_data(chrome);
	}
	json_end_object(json);
}

static void write_cpus(Chrome *chrome)
{
	const Timeline *timeline = chrome->timeline;

	for (size_t c = 0; c < timeline->cpus.count; c++) {
		const Cpu *cpu = &timeline->cpus.items[c];

		for (size_t i = 0; i < cpu->runs.count; i++) {
			const CpuRun *run = &cpu->runs.items[i];
			uint64_t end_ns = cpu_run_end(timeline, cpu, i);

			if (run->task == CPU_IDLE || end_ns <= run->start_ns)
				continue;
			if (end_ns - run->start_ns < chrome->cpu_run_ns)
				chrome->cpu_runs_hidden++;
			else
				write_run(chrome, c, run, end_ns);
		}
	}
}

static void write_end_of_process(Chrome *chrome, const Process *process)
{
	_cleanup_free_ char *text = process_end_text(process);
	Json *json = &chrome->json;

	if (!process->exited_in_window || process->threads.count == 0)
		return;
	chrome_begin_of(chrome, "i", "Exit",
			&chrome->timeline->threads.items[process->threads.items[0]]);
	json_key_string(json, "cat", "Process");
	json_key_string(json, "s", "p");
	chrome_key_time(chrome, process->end_ns);
	chrome_begin_data(chrome);
	json_key_string(json, "status", text);
	if (process->path)
		json_key_string(json, "path", process->path);
	chrome_end_data(chrome);
	json_end_object(json);
}

/* ---- counters ----------------------------------------------------------------------------- */

static void write_counter(Chrome *chrome, const char *name, const char *series,
			  const LoadCounters *counters, const uint64_t *sums, uint64_t factor)
{
	Json *json = &chrome->json;

	for (size_t i = 0; i < counters->count; i++) {
		chrome_begin(chrome, "C", name, CHROME_SYSTEM_PID, CHROME_SYSTEM_PID);
		json_key_us(json, "ts", i * counters->width_ns);
		json_key_object(json, "args");
		json_key_us(json, series, factor * load_counters_average(counters, sums, i));
		json_end_object(json);
		json_end_object(json);
	}
}

static void write_rate(Chrome *chrome, const char *name, const LoadCounters *counters,
		       const uint64_t *bytes)
{
	Json *json = &chrome->json;

	for (size_t i = 0; i < counters->count; i++) {
		uint64_t width_ns = load_counters_end(counters, i) - i * counters->width_ns;

		chrome_begin(chrome, "C", name, CHROME_SYSTEM_PID, CHROME_SYSTEM_PID);
		json_key_us(json, "ts", i * counters->width_ns);
		json_key_object(json, "args");
		json_key_u64(json, "bytes per second",
			     width_ns ? (double)bytes[i] * NSEC_PER_SEC / width_ns : 0);
		json_end_object(json);
		json_end_object(json);
	}
}

static void write_counters(Chrome *chrome)
{
	LoadCounters counters = load_counters_make(chrome->timeline);

	/* Averages are thousandths, and json_key_us() divides by as many. */
	write_counter(chrome, "Runnable threads", "threads", &counters, counters.runnable_ns, 1);
	write_counter(chrome, "CPU", "percent", &counters, counters.running_ns, 100);
	if (chrome->timeline->requests.list.count > 0) {
		write_counter(chrome, "I/O in flight", "requests", &counters, counters.in_flight_ns,
			      1);
		write_rate(chrome, "Disk read", &counters, counters.read_bytes);
		write_rate(chrome, "Disk write", &counters, counters.written_bytes);
	}
	load_counters_free(&counters);
}

/* ---- samples ------------------------------------------------------------------------------ */

/*
 * Finds how many ticks one sample stands for, so that the samples of all threads keep to a budget.
 */
static uint64_t ticks_a_sample(const Timeline *timeline, uint64_t budget)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < timeline->threads.count; i++)
		ticks += timeline->threads.items[i].ticks.count;
	return ticks / budget + 1;
}

/* The samples of all threads while they are written. */
typedef struct Samples {
	Chrome *chrome;
	uint64_t weight_ns; /* of the ticks since the last sample of the thread */
	uint64_t ticks;	    /* their number */
} Samples;

static void write_sample(Samples *samples, const Thread *thread, const Tick *tick)
{
	Chrome *chrome = samples->chrome;
	const Timeline *timeline = chrome->timeline;
	StackRef ref = tick_stack(timeline, thread, tick);
	Json *json = &chrome->json;

	if (recording_cost_struck(timeline, tick))
		ref = (StackRef){.user_stack = STACK_NONE,
				 .kernel_stack = STACK_NONE,
				 .leaf = LEAF_RECORDING};
	json_begin_object(json);
	json_key_string(json, "name", SAMPLE_NAME);
	json_key_u64(json, "tid", chrome->tids[thread - timeline->threads.items]);
	chrome_key_time(chrome, tick->ns);
	json_key_u64(json, "weight", MAX(samples->weight_ns / NSEC_PER_USEC, 1));
	json_key_u64(json, "sf", stack_table_stack(chrome->tables, &ref));
	json_end_object(json);
}

/* A sample's weight is running time: ticks may have been more frequent at first than later. */
static void add_tick(void *user, const Thread *thread, size_t i, const Tick *tick,
		     uint64_t weight_ns)
{
	Samples *samples = user;

	(void)i;
	if (!tick)
		return;
	samples->weight_ns += weight_ns;
	samples->ticks++;
	if (samples->ticks < samples->chrome->ticks_a_sample &&
	    tick + 1 < thread->ticks.items + thread->ticks.count)
		return;
	write_sample(samples, thread, tick);
	samples->weight_ns = samples->ticks = 0;
}

static void write_samples(Chrome *chrome)
{
	Samples samples = {.chrome = chrome};

	json_key_array(&chrome->json, "samples");
	if (!(chrome->hidden >> STATE_RUNNING & 1))
		tick_weights_visit(chrome->timeline, add_tick, &samples);
	json_end_array(&chrome->json);
}

/*
 * Keys and parents are strings, because chrome://tracing takes a parent that is the number 0 as
 * none.
 */
static void write_stack_frames(Chrome *chrome)
{
	Json *json = &chrome->json;
	char number[FORMAT_MAX];

	json_key_object(json, "stackFrames");
	for (uint32_t i = 0; i < chrome->tables->stacks.count; i++) {
		uint32_t prefix = stack_table_stack_prefix(chrome->tables, i);
		const char *library = stack_table_leaf_library(chrome->tables, i);

		*json_format_u64(number, i) = '\0';
		json_key_object(json, number);
		json_key_string(json, "name", stack_table_leaf_name(chrome->tables, i));
		json_key_string(
			json, "category",
			library ? library
				: category_info[stack_table_leaf_category(chrome->tables, i)].name);
		if (prefix != UINT32_MAX) {
			*json_format_u64(number, prefix) = '\0';
			json_key_string(json, "parent", number);
		}
		json_end_object(json);
	}
	json_end_object(json);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void write_events(Chrome *chrome)
{
	const Timeline *timeline = chrome->timeline;

	json_key_array(&chrome->json, "traceEvents");
	write_names(chrome);
	for (size_t i = 0; i < timeline->threads.count; i++) {
		chrome_write_thread(chrome, &timeline->threads.items[i]);
		chrome_write_faults(chrome, &timeline->threads.items[i]);
	}
	write_path(chrome);
	write_cpus(chrome);
	chrome_write_requests(chrome);
	for (size_t i = 0; i < timeline->processes.count; i++)
		write_end_of_process(chrome, &timeline->processes.items[i]);
	chrome_write_losses(chrome);
	write_counters(chrome);
	json_end_array(&chrome->json);
}

/* Writes settings and machine, and what is missing in the trace. */
static void write_other_data(Chrome *chrome)
{
	const Timeline *timeline = chrome->timeline;
	Json *json = &chrome->json;

	json_key_object(json, "otherData");
	for (size_t i = 0; i < timeline->meta_values.count; i++)
		json_key_string(json, strings_get(&timeline->meta_keys, i),
				timeline->meta_values.items[i]);
	for (size_t i = 0; i < REC_BPF_MAX; i++) {
		const char *kind = record_info(i)->word;
		_cleanup_free_ char *key = kind ? xasprintf("lost: %s", kind) : NULL;

		if (key && timeline->totals[i].lost)
			json_key_u64(json, key, timeline->totals[i].lost);
	}
	for (size_t i = 0; i < timeline->notes.count; i++) {
		_cleanup_free_ char *key = xasprintf("note %zu", i + 1);

		json_key_string(json, key, timeline->notes.items[i]);
	}
	if (chrome->fault_ns)
		json_key_ms(json, "page faults left out if shorter than, ms", chrome->fault_ns);
	if (chrome->request_ns)
		json_key_ms(json, "requests left out if shorter than, ms", chrome->request_ns);
	if (chrome->cpu_runs_hidden) {
		json_key_ms(json, "runs on CPUs left out if shorter than, ms", chrome->cpu_run_ns);
		json_key_u64(json, "runs on CPUs left out", chrome->cpu_runs_hidden);
	}
	if (chrome->ticks_a_sample > 1)
		json_key_u64(json, "ticks for which one sample stands", chrome->ticks_a_sample);
	if (chrome->folded) {
		json_key_u64(json, "folded intervals", chrome->folded);
		json_key_ms(json, "folded if shorter than, ms", chrome->fold_ns);
	}
	json_end_object(json);
}

int chrome_write(Output *out, const Timeline *timeline, Frames *frames,
		 const ChromeOptions *options)
{
	uint64_t budget =
		options && options->slice_budget ? options->slice_budget : CHROME_SLICE_BUDGET;
	CpuPlan cpus;
	Chrome chrome = {
		.json = {.out = out},
		.timeline = timeline,
		.frames = frames,
		.tables = stack_table_new(timeline, frames),
		.fold_ns = chrome_slices_fit(timeline, budget),
		.fault_ns = fault_fit(timeline, budget / 4),
		.request_ns = requests_fit(&timeline->requests, budget / 4),
		.hidden = options ? options->hidden : 0,
		.ticks_a_sample = ticks_a_sample(timeline, budget),
	};

	cpu_plan_fit(&cpus, timeline, 2 * (budget / 4)); /* two rows a run */
	chrome.cpu_run_ns = cpus.fold_ns;
	make_ids(&chrome);
	json_begin_object(&chrome.json);
	write_events(&chrome);
	write_samples(&chrome);
	write_stack_frames(&chrome);
	json_key_string(&chrome.json, "displayTimeUnit", "ms");
	write_other_data(&chrome);
	json_end_object(&chrome.json);
	free(chrome.pids);
	free(chrome.tids);
	stack_table_free(chrome.tables);
	output_flush(out);
	return out->error;
}
