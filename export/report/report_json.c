/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer.h"
#include "json_writer.h"
#include "labels.h"
#include "record_info.h"
#include "recording_cost.h"
#include "report.h"
#include "report_order.h"
#include "report_sections.h"
#include "report_select.h"
#include "stack_stats.h"
#include "tick_rates.h"
#include <errno.h>
#include <time.h>

#define ANSWER_PARTS 1000

static void write_kernel(Json *json, const KernelAccount *kernel)
{
	if (!kernel->known) {
		json_key_null(json, "kernel");
		return;
	}
	json_key_object(json, "kernel");
	json_key_u64(json, "sum_exec_runtime", kernel->sum_exec_runtime);
	if (kernel->run_delay == UINT64_MAX)
		json_key_null(json, "run_delay");
	else
		json_key_u64(json, "run_delay", kernel->run_delay);
	json_key_u64(json, "nvcsw", kernel->nvcsw);
	json_key_u64(json, "nivcsw", kernel->nivcsw);
	json_key_u64(json, "min_flt", kernel->min_flt);
	json_key_u64(json, "maj_flt", kernel->maj_flt);
	json_key_u64(json, "read_bytes", kernel->read_bytes);
	json_key_u64(json, "write_bytes", kernel->write_bytes);
	if (kernel->clock_known)
		json_key_s64(json, "clock_ahead", kernel->clock_ahead);
	else
		json_key_null(json, "clock_ahead");
	json_end_object(json);
}

static void write_thread(Json *json, const Timeline *timeline, const Thread *thread)
{
	const Process *process = &timeline->processes.items[thread->process];

	json_begin_object(json);
	json_key_u64(json, "tid", thread->ns_tid);
	json_key_u64(json, "pid", process->ns_tgid);
	json_key_string(json, "name", thread->name ? thread->name : "");
	json_key_string(json, "process", process->name ? process->name : "");
	report_ledger_of_thread(json, thread);
	if (timeline->cost_known)
		json_key_u64(json, "recording_ns",
			     thread->recording.switches_ns + thread->recording.others_ns);
	else
		json_key_null(json, "recording_ns");
	json_key_u64(json, "switch_outs", thread->switch_outs);
	write_kernel(json, &thread->kernel);
	report_faults_of_thread(json, thread);
	report_requests_of_thread(json, timeline, thread);
	json_end_object(json);
}

static void key_or_null(Json *json, const char *key, bool known, uint64_t number)
{
	if (known)
		json_key_u64(json, key, number);
	else
		json_key_null(json, key);
}

/* The exit status, as wait(2) has it; both members are null if the process outlived the window. */
static void write_exit(Json *json, const Process *process)
{
	uint32_t signal = process->exit_code & 0x7f;

	key_or_null(json, "exit_status", process->exited_in_window && signal == 0,
		    process->exit_code >> 8 & 0xff);
	key_or_null(json, "exit_signal", process->exited_in_window && signal != 0, signal);
}

/*
 * "args": the argument list, or null. "args_cut": it goes on. "args_inherited": it is that of the
 * process that forked this one.
 */
static void write_args(Json *json, const Process *process)
{
	const char *at = process->args.text, *end;

	if (!at) {
		json_key_null(json, "args");
		return;
	}
	json_key_array(json, "args");
	for (end = at + process->args.size; at < end; at += strnlen(at, end - at) + 1) {
		_cleanup_free_ char *arg = xasprintf("%.*s", (int)(end - at), at);

		json_put_string(json, arg);
	}
	json_end_array(json);
	json_key_bool(json, "args_cut", process->args.is_cut);
	json_key_bool(json, "args_inherited", process->args_inherited);
}

static void write_process(Json *json, const Timeline *timeline, const Process *process)
{
	const Process *parent = process->parent < timeline->processes.count
					? &timeline->processes.items[process->parent]
					: NULL;

	json_begin_object(json);
	json_key_u64(json, "pid", process->ns_tgid);
	key_or_null(json, "parent", parent, parent ? parent->ns_tgid : 0);
	json_key_string(json, "name", process->name ? process->name : "");
	if (process->path)
		json_key_string(json, "path", process->path);
	else
		json_key_null(json, "path");
	write_args(json, process);
	json_key_u64(json, "start_ns",
		     process->start_ns - MIN(process->start_ns, timeline->start_ns));
	json_key_u64(json, "end_ns", process->end_ns - MIN(process->end_ns, timeline->start_ns));
	write_exit(json, process);
	json_key_u64(json, "threads", process->threads.count);
	report_ledger_of_process(json, timeline, process);
	json_end_object(json);
}

/* null if it is unknown. */
static void write_cost(Json *json, const Timeline *timeline)
{
	if (!timeline->cost_known) {
		json_key_null(json, "recording");
		return;
	}
	json_key_object(json, "recording");
	json_key_u64(json, "ns", recording_cost_sum(timeline).recording_ns);
	json_key_u64(json, "outside_ns", timeline->cost_outside_ns);
	json_end_object(json);
}

/* The rates of the window; those before it do not count. */
static void write_tick_rates(Json *json, const Timeline *timeline, const TickRates *rates)
{
	json_key_array(json, "rates");
	for (size_t i = 0; i < rates->count; i++) {
		uint64_t from_ns = MAX(rates->list[i].from_ns, timeline->start_ns);
		uint64_t until_ns = i + 1 < rates->count ? rates->list[i + 1].from_ns : UINT64_MAX;

		if (until_ns <= timeline->start_ns || from_ns >= timeline->end_ns)
			continue;
		json_begin_object(json);
		json_key_u64(json, "from_ns", from_ns - timeline->start_ns);
		json_key_u64(json, "hz", rates->list[i].hz);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_ticks(Json *json, const Timeline *timeline)
{
	TickRates rates = tick_rates_of(timeline);
	bool known = rates.interrupt_ns > 0;

	json_key_object(json, "ticks");
	write_tick_rates(json, timeline, &rates);
	key_or_null(json, "share_ppm", rates.share > 0, rates.share * 1e6 + 0.5);
	key_or_null(json, "interrupt_ns", known, rates.interrupt_ns);
	key_or_null(json, "interrupts_ns", known, tick_rates_interrupts_ns(&rates, timeline));
	key_or_null(json, "all", rates.ticks > 0, rates.ticks);
	key_or_null(json, "all_interrupts_ns", known && rates.ticks > 0,
		    rates.ticks * rates.interrupt_ns);
	json_end_object(json);
}

static void write_totals(Json *json, const Timeline *timeline)
{
	json_key_object(json, "totals");
	for (uint32_t kind = 0; kind < REC_BPF_MAX; kind++) {
		const char *label = record_info(kind)->word;

		if (!label)
			continue;
		json_key_object(json, label);
		json_key_u64(json, "sent", timeline->totals[kind].sent);
		json_key_u64(json, "received", timeline->totals[kind].received);
		json_key_u64(json, "lost", timeline->totals[kind].lost);
		json_key_u64(json, "lost_in_window", timeline_lost(timeline, kind));
		json_end_object(json);
	}
	json_end_object(json);
}

/* All times are relative to the window: those of losses before it are negative. */
static void write_losses(Json *json, const Timeline *timeline)
{
	json_key_array(json, "losses");
	for (size_t i = 0; i < timeline->losses.count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];
		const char *label = record_info(loss->kind)->word;

		json_begin_object(json);
		json_key_string(json, "kind", label ? label : "other");
		json_key_string(json, "cause", loss_cause_label(loss->cause));
		json_key_u64(json, "cpu", loss->cpu);
		json_key_u64(json, "count", loss->count);
		json_key_s64(json, "from_ns", (int64_t)(loss->from_ns - timeline->start_ns));
		json_key_s64(json, "to_ns", (int64_t)(loss->to_ns - timeline->start_ns));
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_results(Json *json, const uint64_t counts[STACK_ENDS], bool zeros)
{
	json_key_object(json, "results");
	for (size_t end = 0; end < STACK_ENDS; end++)
		if (counts[end] || zeros)
			json_key_u64(json, stack_end_key(end), counts[end]);
	json_end_object(json);
}

static void write_stacks(Json *json, const Timeline *timeline, Frames *frames)
{
	StackStats sums;

	stack_stats_init(&sums, timeline, frames);
	json_key_object(json, "stacks");
	json_key_u64(json, "walked", sums.walked);
	json_key_u64(json, "whole", sums.complete);
	json_key_u64(json, "guessed", sums.guessed);
	json_key_u64(json, "stale", sums.counts[STACK_END_STALE]);
	json_key_u64(json, "from_copy", sums.from_copy);
	json_key_u64(json, "deep", sums.deep);
	json_key_u64(json, "joined", sums.joined);
	json_key_u64(json, "deepest", sums.deepest);
	json_key_u64(json, "running_walked_ns", sums.running_walked_ns);
	json_key_u64(json, "running_whole_ns", sums.running_complete_ns);
	write_results(json, sums.counts, /* zeros= */ true);
	json_key_object(json, "code");
	for (size_t kind = 0; kind < CODE_KINDS; kind++) {
		json_key_object(json, stack_code_key(kind));
		json_key_u64(json, "cut", sums.code[kind].cut);
		json_key_u64(json, "guessed", sums.code[kind].guessed);
		json_end_object(json);
	}
	json_end_object(json);
	json_key_array(json, "objects");
	for (size_t i = 0; i < sums.objects.count; i++) {
		const StackObject *object = &sums.objects.items[i];

		json_begin_object(json);
		if (object->lib == LIBRARY_NONE) {
			json_key_null(json, "name");
			json_key_null(json, "path");
		} else {
			const Library *library = &frames->libraries.items[object->lib];

			json_key_string(json, "name", library->name);
			json_key_string(json, "path", library->path);
		}
		write_results(json, object->counts, /* zeros= */ false);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	stack_stats_free(&sums);
}

static void write_notes(Json *json, const Timeline *timeline)
{
	json_key_array(json, "notes");
	for (size_t i = 0; i < timeline->notes.count; i++)
		json_put_string(json, timeline->notes.items[i]);
	json_end_array(json);
}

/* A string, because a double has too few digits. */
static void write_start(Json *json, const Timeline *timeline)
{
	time_t seconds = timeline->realtime_start_ns / NSEC_PER_SEC;
	unsigned int rest = timeline->realtime_start_ns % NSEC_PER_SEC;
	char text[64];
	struct tm utc;

	if (!timeline->realtime_start_ns || !gmtime_r(&seconds, &utc)) {
		json_key_null(json, "start_time");
		return;
	}
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ", utc.tm_year + 1900,
		 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, rest);
	json_key_string(json, "start_time", text);
}

static void write_recording(Json *json, const Timeline *timeline)
{
	static const char *const keys[][2] = {
		{"wallprof", "version"}, {"kernel", "kernel"}, {"command", "command"}};

	json_key_u64(json, "format", REPORT_FORMAT);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const char *value = timeline_meta(timeline, keys[i][1]);

		if (value)
			json_key_string(json, keys[i][0], value);
		else
			json_key_null(json, keys[i][0]);
	}
	write_start(json, timeline);
	json_key_bool(json, "complete", timeline->complete);
	json_key_u64(json, "window_ns", timeline->end_ns - timeline->start_ns);
}

/* What the run waited for, as the first lines of the page say it. */
static void write_answer(Json *json, const Timeline *timeline, Frames *frames)
{
	Answer answer = answer_make(timeline, frames, ANSWER_PARTS);

	json_key_object(json, "answer");
	json_key_bool(json, "is_path", answer.is_path);
	json_key_bool(json, "is_idle", answer.is_idle);
	json_key_u64(json, "busy_ns", answer.busy_ns);
	json_key_u64(json, "ns", answer.all_ns);
	json_key_array(json, "parts");
	for (size_t i = 0; i < answer.parts.count; i++) {
		json_begin_object(json);
		json_key_u64(json, "ns", answer.parts.items[i].ns);
		json_key_string(json, "who", answer.parts.items[i].who);
		json_key_string(json, "what", answer.parts.items[i].what);
		json_end_object(json);
	}
	json_end_array(json);
	if (answer.waited_for)
		json_key_string(json, "waited_for", answer.waited_for);
	else
		json_key_null(json, "waited_for");
	json_key_u64(json, "waited_ns", answer.waited_ns);
	if (answer.deadlock)
		json_key_string(json, "deadlock", answer.deadlock);
	else
		json_key_null(json, "deadlock");
	json_key_u64(json, "idle_threads", answer.idle_threads);
	json_key_u64(json, "idle_ns", answer.idle_ns);
	json_end_object(json);
	answer_free(&answer);
}

/* Writes all sections; order: of threads and processes, or NULL: that of their appearance. */
static void write_sections(Json *json, const Timeline *timeline, Frames *frames,
			   const char *function, const ReportOrder *order)
{
	Places places;

	json_key_array(json, "threads");
	for (size_t i = 0; i < timeline->threads.count; i++)
		write_thread(json, timeline,
			     &timeline->threads.items[order ? order->threads[i] : i]);
	json_end_array(json);
	json_key_array(json, "processes");
	for (size_t i = 0; i < timeline->processes.count; i++)
		write_process(json, timeline,
			      &timeline->processes.items[order ? order->processes[i] : i]);
	json_end_array(json);
	report_cpus(json, timeline);
	write_cost(json, timeline);
	write_ticks(json, timeline);
	report_left_out(json, timeline);
	write_totals(json, timeline);
	write_losses(json, timeline);
	report_faulted_files(json, timeline);
	report_requests(json, timeline);
	report_waited_objects(json, timeline);
	report_groups(json, timeline, frames, function, /* by_path= */ order);
	report_places_init(&places, timeline, frames);
	report_places_add_all(&places);
	report_functions(json, &places);
	report_places_sort(&places);
	report_places(json, &places);
	report_places_free(&places);
	report_wakers(json, timeline, frames);
	report_interpreters(json, timeline, frames);
	report_cpu_users(json, timeline);
	write_answer(json, timeline, frames);
	report_path(json, timeline, frames);
	write_stacks(json, timeline, frames);
	write_notes(json, timeline);
	json_key_u64(json, "contradictions", timeline->missed_switches);
}

void report_json(Output *output, const Timeline *timeline, Frames *frames, const char *function)
{
	Json json = {.out = output};

	json_begin_object(&json);
	write_recording(&json, timeline);
	write_sections(&json, timeline, frames, function, /* order= */ NULL);
	json_end_object(&json);
	output_write(output, "\n", 1);
}

/* Returns the report of which a part is wanted; the caller frees it. */
static char *whole_text(const Timeline *timeline, Frames *frames, const char *function,
			uint32_t thread)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	Json json = {.out = file ? output_for_stream(file) : NULL};
	ReportOrder order;

	if (!file)
		return NULL;
	report_order_init(&order, timeline);
	json_begin_object(&json);
	write_recording(&json, timeline);
	if (thread != THREAD_NONE)
		report_timeline(&json, timeline, frames, thread);
	else
		write_sections(&json, timeline, frames, function, &order);
	json_end_object(&json);
	output_close(json.out);
	fclose(file);
	report_order_free(&order);
	return text;
}

int report_json_part(Output *output, const Timeline *timeline, Frames *frames, const char *function,
		     const ReportSelection *selection, uint64_t *ret_smallest)
{
	_cleanup_free_ char *text = whole_text(timeline, frames, function, selection->timeline);

	return text ? report_select(output, text, selection, ret_smallest) : -ENOMEM;
}
