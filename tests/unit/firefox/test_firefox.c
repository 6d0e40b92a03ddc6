/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Markers, meta, counters and tables of profiles of timelines made by hand. */
#include "make_record.h"
#include "profile_reader.h"
#include "random_timeline.h"
#include "test_tools.h"
#include <errno.h>

/* ---- markers ------------------------------------------------------------------------ */

static size_t count_markers(const Profile *profile, const char *name)
{
	size_t count = 0;

	for (size_t t = 0; t < thread_count(profile); t++) {
		const Node *names = node_get(node_get(thread_at(profile, t), "markers"), "name");

		for (size_t i = 0; i < names->count; i++)
			count += strcmp(string_at(profile, names, i), name) == 0;
	}
	return count;
}

static void test_wait_marker(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t process = fixture_process(t, 1, "a", 0, 100 * MS);
	uint32_t thread = fixture_thread(t, process, 1, "a", 0, 100 * MS);
	Interval *wait;

	(void)state;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	wait = fixture_interval(t, thread, 10 * MS, STATE_BLOCKED, REASON_MUTEX);
	wait->rule = RULE_ARGUMENTS;
	wait->syscall = 202;
	wait->waker = 1;
	fixture_interval(t, thread, 60 * MS, STATE_RUNNABLE, REASON_WOKEN);
	fixture_interval(t, thread, 61 * MS + 250000, STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, process, 2, "waker", STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_int_equal(count_markers(&profile, "Mutex wait"), 1);
	const Node *markers = node_get(find_thread(&profile, "1"), "markers");
	const Node *data = node_at(node_get(markers, "data"), 0);
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 0)), 10 * MS);
	assert_int_equal(node_ns(node_at(node_get(markers, "endTime"), 0)), 60 * MS);
	assert_int_equal(node_int(node_at(node_get(markers, "category"), 0)), CATEGORY_LOCK);
	assert_int_equal(node_int(node_get(data, "waker")), 2);
	assert_int_equal(node_ns(node_get(data, "runq")), MS + 250000);
	assert_string_equal(
		node_string(node_at(profile.strings, node_int(node_get(data, "wokenBy")))),
		"waker");
	assert_string_equal(
		node_string(node_at(profile.strings, node_int(node_get(data, "evidence")))),
		"system call and arguments: futex");
	assert_uint_in_range(node_int(node_get(node_get(data, "cause"), "stack")), 0,
			     table_length(&profile, "stackTable") - 1);
	profile_done(&profile, t);
}

static void test_marker_budget(void **state)
{
	Timeline *t = fixture_new(1000 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 1000 * MS), 1, "a", 0, 1000 * MS);
	FirefoxOptions options = {.marker_budget = 50};
	size_t shown;

	(void)state;
	for (uint64_t ns = 0, k = 1; ns < 1000 * MS; ns += k++ * 20000)
		fixture_interval(t, thread, ns, k % 2 ? STATE_RUNNING : STATE_BLOCKED,
				 REASON_MUTEX);
	fixture_finish(t);
	Profile all = make_profile(t, NULL), few = make_profile(t, &options);
	/* Room enough: all but the very short. */
	assert_uint_in_range(count_markers(&all, "Mutex wait"),
			     t->threads.items[0].intervals.count / 2 - 1,
			     t->threads.items[0].intervals.count / 2 + 1);
	shown = count_markers(&few, "Mutex wait");
	assert_uint_in_range(shown, 1, 50);
	assert_int_equal(node_int(profile_extra(&few, "waits and unknown intervals with a marker")),
			 shown);
	assert_int_equal(
		node_int(profile_extra(&few, "waits and unknown intervals without a marker")) +
			shown,
		t->threads.items[0].intervals.count / 2);
	profile_free(&all);
	profile_done(&few, t);
}

/* Every unknown stretch says why: what was lost there, or that no loss was reported. */
static void test_unknown_markers(void **state)
{
	static const char *const expected[] = {"lost: switch, waking (ring full)",
					       "context switch not traced",
					       "lost: waking (hook already running on that CPU)"};
	Timeline *t = fixture_new(100 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 100 * MS), 1, "a", 0, 100 * MS);

	(void)state;
	for (uint64_t ms = 0; ms < 90; ms += 30) {
		fixture_interval(t, thread, ms * MS, STATE_RUNNING, REASON_NONE);
		fixture_interval(t, thread, (ms + 10) * MS, STATE_UNKNOWN, REASON_LOST);
	}
	fixture_interval(t, thread, 90 * MS, STATE_RUNNING, REASON_NONE);
	*vec_push(&t->losses) = (LossSpan){
		REC_SAMPLE, LOSS_RING_FULL, 0, 1, FIXTURE_START + 40 * MS, FIXTURE_START + 50 * MS};
	*vec_push(&t->losses) = (LossSpan){
		REC_WAKING, LOSS_RING_FULL, 0, 1, FIXTURE_START + 15 * MS, FIXTURE_START + 16 * MS};
	*vec_push(&t->losses) = (LossSpan){
		REC_SWITCH, LOSS_RING_FULL, 0, 1, FIXTURE_START + 5 * MS, FIXTURE_START + 12 * MS};
	*vec_push(&t->losses) = (LossSpan){
		REC_WAKING, LOSS_RECURSION, 0, 1, FIXTURE_START + 80 * MS, FIXTURE_START + 80 * MS};
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	const Node *markers = node_get(find_thread(&profile, "1"), "markers");
	assert_int_equal(count_markers(&profile, "Unknown"), 3);
	for (size_t i = 0; i < 3; i++) {
		const Node *data = node_at(node_get(markers, "data"), i);

		assert_string_equal(node_string(node_get(data, "type")), "Unknown");
		assert_string_equal(
			node_string(node_at(profile.strings, node_int(node_get(data, "why")))),
			expected[i]);
		assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), i)),
				 (30 * i + 10) * MS);
		assert_int_equal(node_int(node_at(node_get(markers, "category"), i)),
				 CATEGORY_UNKNOWN);
	}
	profile_done(&profile, t);
}

static void test_loss_and_exit_markers(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	const Node *markers;

	(void)state;
	fixture_running_process(t, 1, "gone", 0, 40 * MS);
	t->processes.items[0].exit_code = 11;
	t->processes.items[0].path = xstrdup("/bin/gone");
	*vec_push(&t->losses) =
		(LossSpan){REC_SWITCH, LOSS_RING_FULL,		1,
			   17,	       FIXTURE_START + 10 * MS, FIXTURE_START + 30 * MS};
	*vec_push(&t->losses) = (LossSpan){999, 999, 0, 1, FIXTURE_START - MS, FIXTURE_START - MS};
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	markers = node_get(find_thread(&profile, "System"), "markers");
	assert_int_equal(count_markers(&profile, "Events lost"), 2);
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 0)), 10 * MS);
	assert_int_equal(node_ns(node_at(node_get(markers, "endTime"), 0)), 30 * MS);
	assert_int_equal(node_int(node_get(node_at(node_get(markers, "data"), 0), "count")), 17);
	markers = node_get(find_thread(&profile, "1"), "markers");
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 0)), 40 * MS);
	assert_string_equal(
		node_string(node_at(
			profile.strings,
			node_int(node_get(node_at(node_get(markers, "data"), 0), "status")))),
		"killed by signal 11");
	profile_done(&profile, t);
}

/* The names that the viewer takes for a marker's colour. */
static bool is_marker_color(const char *color)
{
	static const char *const colors[] = {"blue",   "green",	 "grey", "ink",	 "magenta",
					     "orange", "purple", "red",	 "teal", "yellow"};

	for (size_t i = 0; i < ARRAY_LEN(colors); i++)
		if (!strcmp(color, colors[i]))
			return true;
	return false;
}

/* Each category's colour is one that the viewer has, and is explained. */
static void test_colors(void **state)
{
	static const char *const marked[] = {"Wait",	   "PageFault", "BlockIO", "Unknown",
					     "EventsLost", "Process",	"OnPath",  "OnCPU"};
	Timeline *t = fixture_new(100 * MS);
	Profile profile = make_profile(t, NULL);
	const Node *schemas = node_get(profile.meta, "markerSchema");

	(void)state;
	for (size_t i = 0; i < CATEGORY_COUNT; i++) {
		const CategoryInfo *category = &category_info[i];
		const char *text = node_string(profile_extra(&profile, category->name));

		assert_true(is_marker_color(category->marker_color));
		assert_non_null(strstr(text, category->marker_color));
		assert_non_null(strstr(text, category->meaning));
	}
	assert_string_equal(node_string(profile_extra(&profile, "Runnable")),
			    "light red, markers orange: waiting for a CPU");
	assert_string_equal(node_string(profile_extra(&profile, "Lock")),
			    "purple: waiting for a lock");
	for (size_t i = 0; i < ARRAY_LEN(marked); i++) {
		bool found = false;

		for (size_t k = 0; k < schemas->count; k++)
			found |= !strcmp(node_string(node_get(node_at(schemas, k), "name")),
					 marked[i]) &&
				 !strcmp(node_string(node_get(node_at(schemas, k), "colorField")),
					 "color");
		assert_true(found);
	}
	profile_done(&profile, t);
}

/* A marker for each time that a thread had the CPU, unless there are too many of them. */
static void test_runs_on_cpus(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t process = fixture_process(t, 1, "a", 0, 100 * MS);
	FirefoxOptions options = {.marker_budget = 12};
	Cpu *cpu;

	(void)state;
	fixture_simple_thread(t, process, 1, "a", STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, process, 2, "worker", STATE_RUNNING, REASON_NONE);
	cpu = vec_push(&t->cpus);
	*cpu = (Cpu){};
	*vec_push(&cpu->runs) = (CpuRun){FIXTURE_START, 0};
	*vec_push(&cpu->runs) = (CpuRun){FIXTURE_START + 40 * MS, CPU_IDLE};
	*vec_push(&cpu->runs) = (CpuRun){FIXTURE_START + 60 * MS, 1};
	*vec_push(&cpu->runs) = (CpuRun){FIXTURE_START + 61 * MS, CPU_UNKNOWN};
	*vec_push(&cpu->runs) = (CpuRun){FIXTURE_START + 70 * MS, 1};
	fixture_finish(t);
	Profile profile = make_profile(t, NULL), few = make_profile(t, &options);
	const Node *markers = node_get(find_thread(&profile, "CPU 0"), "markers");
	const Node *second = node_at(node_get(markers, "data"), 1);
	assert_int_equal(count_markers(&profile, "CPU 0"), 3);
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 1)), 60 * MS);
	assert_int_equal(node_ns(node_at(node_get(markers, "endTime"), 1)), 61 * MS);
	assert_int_equal(node_int(node_get(second, "thread")), 2);
	assert_string_equal(
		node_string(node_at(profile.strings, node_int(node_get(second, "name")))),
		"worker");
	assert_true(is_marker_color(node_string(node_get(second, "color"))));
	/* The shortest has none. */
	assert_int_equal(count_markers(&few, "CPU 0"), 2);
	assert_int_equal(node_int(profile_extra(&few, "runs on CPUs without a marker")), 1);
	profile_free(&few);
	profile_done(&profile, t);
}

/* ---- the rest ------------------------------------------------------------------------- */

static void test_empty(void **state)
{
	Timeline *t = fixture_new(0);
	Profile profile = make_profile(t, NULL);

	(void)state;
	assert_int_equal(thread_count(&profile), 1);
	assert_int_equal(node_int(node_get(profile.meta, "preprocessedProfileVersion")), 65);
	profile_done(&profile, t);
}

static void test_names_of_any_bytes(void **state)
{
	Timeline *t = fixture_new(10 * MS);

	(void)state;
	fixture_meta(t, "command", "/usr/bin/\xff\"x\" \x1b[31m");
	fixture_meta(t, "frequency", "499");
	fixture_meta(t, "cpus", "many");
	fixture_running_process(t, 1, "\xe2\x82 \\\n", 0, 10 * MS);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_string_equal(node_string(node_get(profile.meta, "product")),
			    "\xef\xbf\xbd\"x\" \x1b[31m (wallprof)");
	assert_null(node_find(profile.meta, "logicalCPUs"));
	assert_string_equal(node_get(profile.meta, "interval")->text, "2.004008");
	profile_done(&profile, t);
}

/* All of the recorder's META records are in meta.extra, also those with unknown keys. */
static void test_settings(void **state)
{
	Timeline *t = fixture_new(10 * MS);

	(void)state;
	fixture_meta(t, "hooks", "sched_switch (tp_btf),sched_waking (raw_tp)");
	fixture_meta(t, "cost", "1.5 us per switch");
	fixture_meta(t, "ring_size", "16777216");
	fixture_meta(t, "of another version", "x");
	Profile profile = make_profile(t, NULL);
	assert_string_equal(node_string(profile_extra(&profile, "hooks used")),
			    "sched_switch (tp_btf),sched_waking (raw_tp)");
	assert_string_equal(node_string(profile_extra(&profile, "cost of recording")),
			    "1.5 us per switch");
	assert_string_equal(node_string(profile_extra(&profile, "ring_size")), "16777216");
	assert_string_equal(node_string(profile_extra(&profile, "of another version")), "x");
	profile_done(&profile, t);
}

static void test_cpu_graph(void **state)
{
	FirefoxOptions options = {.cpu_graph = true};

	(void)state;
	for (unsigned int seed = 1; seed <= 5; seed++) {
		Timeline *t = random_timeline(seed, 300 * MS, 1);
		Profile profile = make_profile(t, &options);

		for (size_t i = 0; i < t->threads.count; i++) {
			const Thread *thread = &t->threads.items[i];
			const Node *samples = node_get(thread_of(&profile, thread), "samples");
			const Node *deltas = profile_column(samples, "threadCPUDelta");
			uint64_t sum = 0;

			for (size_t k = 0; k < deltas->count; k++)
				sum += node_int(node_at(deltas, k));
			assert_true(distance(sum, thread->ledger[STATE_RUNNING]) <= 500);
		}
		profile_done(&profile, t);
	}
	Timeline *t = random_timeline(1, 10 * MS, 1);
	Profile profile = make_profile(t, NULL);
	assert_null(node_find(node_get(thread_at(&profile, 0), "samples"), "threadCPUDelta"));
	profile_done(&profile, t);
}

static uint64_t counter_total(const Profile *profile, size_t i)
{
	const Node *samples = node_get(node_at(node_get(profile->root, "counters"), i), "samples");
	const Node *counts = profile_column(samples, "count");
	uint64_t sum = 0;

	assert_int_equal(profile_column(samples, "time")->count, counts->count);
	assert_int_equal(node_ns(node_at(counts, 0)), 0);
	for (size_t k = 1; k < counts->count; k++)
		sum += node_ns(node_at(counts, k));
	return sum;
}

static void test_cpu_counter(void **state)
{
	Timeline *t = random_timeline(3, 1234 * MS + 567, 1);
	Profile profile = make_profile(t, NULL);
	uint64_t running = 0;

	(void)state;
	for (size_t i = 0; i < t->threads.count; i++)
		running += t->threads.items[i].ledger[STATE_RUNNING];
	assert_int_equal(counter_total(&profile, 1), running);
	profile_done(&profile, t);
}

static const char *lib_field(const Profile *profile, size_t i, const char *key)
{
	return node_string(node_get(node_at(node_get(profile->root, "libs"), i), key));
}

static void add_record(Frames *frames, struct record *record)
{
	frames_add(frames, record);
	free(record);
}

static void add_file(Frames *frames, uint32_t id, const char *path, uint64_t start)
{
	static const uint8_t build_id[] = {0x51, 0x0d, 0x0a, 0x5c, 0x19, 0xea, 0xdf,
					   0x80, 0x43, 0xf2, 0x03, 0xb4, 0x52, 0x5b,
					   0xe9, 0xbe, 0x3d, 0xcb, 0x95, 0x54};
	struct rec_file *file = make_record(REC_FILE, 0, 0, offsetof(struct rec_file, path), path,
					    strlen(path) + 1);
	struct rec_mapping *mapping = make_record(REC_MAPPING, MAPPING_EXEC | MAPPING_INITIAL, 0,
						  sizeof(*mapping), NULL, 0);

	file->id = id;
	if (id == 1) {
		file->build_id_len = sizeof(build_id);
		memcpy(file->build_id, build_id, sizeof(build_id));
	}
	mapping->ns_tgid = 1;
	mapping->file = id;
	mapping->start = start;
	mapping->end = start + 0x10000;
	mapping->bias = start;
	add_record(frames, &file->h);
	add_record(frames, &mapping->h);
}

/* function() at 0x1000, line 10, with inlined() in it, line 20, both in the same source. */
static void add_symbol_in(Frames *frames, uint32_t file, uint64_t address, const char *source)
{
	static const char *const names[] = {"function", "inlined"};
	char text[256];
	char *p = text;
	struct rec_symbol *symbol;

	for (u32 i = 0; i < 2; i++) {
		u32 line = 10 + 10 * i;

		p = mempcpy(p, &line, sizeof(line));
		p = stpcpy(stpcpy(p, names[i]) + 1, source) + 1;
	}
	symbol = make_record(REC_SYMBOL, 0, 0, offsetof(struct rec_symbol, text), text, p - text);
	symbol->file = file;
	symbol->count = 2;
	symbol->address = address;
	symbol->function = 0x1000;
	symbol->function_size = 0x100;
	add_record(frames, &symbol->h);
}

static void add_symbol(Frames *frames, uint32_t file, uint64_t address)
{
	add_symbol_in(frames, file, address, "/src/source.c");
}

static void test_symbols_and_libraries(void **state)
{
	Timeline *t = fixture_new(10 * MS);
	Frames *frames = frames_new();
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);

	(void)state;
	add_file(frames, 1, "/lib/one.so", 0x7f0000000000);
	add_file(frames, 2, "/a/two.so", 0x7f0000100000);
	add_file(frames, 3, "/b/two.so", 0x7f0000200000);
	add_symbol(frames, 1, 0x1010);
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	fixture_tick(t, thread, 1 * MS, true)->user_stack = fixture_stack(t, 0x7f0000001010, true);
	fixture_tick(t, thread, 2 * MS, true)->user_stack = fixture_stack(t, 0x7f0000100004, true);
	fixture_tick(t, thread, 3 * MS, true)->user_stack = fixture_stack(t, 0x7f0000200004, true);
	fixture_finish(t);
	Profile profile = write_and_read(t, frames, NULL);

	assert_int_equal(node_get(profile.root, "libs")->count, 3);
	assert_string_equal(lib_field(&profile, 0, "breakpadId"),
			    "5C0A0D51EA1980DF43F203B4525BE9BE0");
	assert_string_equal(lib_field(&profile, 0, "codeId"),
			    "510d0a5c19eadf8043f203b4525be9be3dcb9554");
	assert_string_equal(lib_field(&profile, 1, "debugName"), "two.so");
	assert_string_equal(lib_field(&profile, 2, "debugName"), "two.so");
	assert_string_not_equal(lib_field(&profile, 1, "breakpadId"),
				lib_field(&profile, 2, "breakpadId"));
	/* Both frames of the address have its native symbol, that of the outer function. */
	assert_int_equal(table_length(&profile, "nativeSymbols"), 1);
	assert_string_equal(
		string_at(&profile, profile_table(&profile, "nativeSymbols", "name"), 0),
		"function");
	assert_int_equal(node_int(node_at(profile_table(&profile, "nativeSymbols", "address"), 0)),
			 0x1000);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			node_int(node_at(profile_table(&profile, "frameTable", "nativeSymbol"), i)),
			0);
		assert_int_equal(
			node_int(node_at(profile_table(&profile, "frameTable", "inlineDepth"), i)),
			i);
		assert_int_equal(
			node_int(node_at(profile_table(&profile, "frameTable", "address"), i)),
			0x1010);
		assert_int_equal(
			node_int(node_at(profile_table(&profile, "frameTable", "line"), i)),
			10 + 10 * i);
	}
	assert_int_equal(table_length(&profile, "sources"), 1);
	assert_string_equal(sample_at(&profile, thread_at(&profile, 0), 1).leaf, "inlined");
	frames_free(frames);
	profile_done(&profile, t);
}

static const char *content_at(const Profile *profile, size_t i)
{
	const Node *content = node_at(profile_table(profile, "sources", "content"), i);

	return content->type == 'n' ? NULL : node_string(content);
}

/* The text stands beside its path and beside no other; without one there is a null. */
static void test_source_texts(void **state)
{
	static const char text[] = "int x;\r\n\t/* \"caf\xe9\" */\n";
	Timeline *t = fixture_new(10 * MS);
	Frames *frames = frames_new();
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);

	(void)state;
	add_record(frames, make_source("/src/never.c", "not in any stack", 16));
	add_record(frames, make_source("/src/\xff.c", text, sizeof(text) - 1));
	add_record(frames, make_source("/src/\xff.c", "a second one", 12));
	add_file(frames, 1, "/lib/one.so", 0x7f0000000000);
	add_symbol_in(frames, 1, 0x1010, "/src/source.c");
	add_symbol_in(frames, 1, 0x1020, "/src/\xff.c");
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	fixture_tick(t, thread, 1 * MS, true)->user_stack = fixture_stack(t, 0x7f0000001010, true);
	fixture_tick(t, thread, 2 * MS, true)->user_stack = fixture_stack(t, 0x7f0000001020, true);
	fixture_finish(t);
	Profile profile = write_and_read(t, frames, NULL);

	assert_int_equal(table_length(&profile, "sources"), 2);
	assert_string_equal(string_at(&profile, profile_table(&profile, "sources", "filename"), 0),
			    "/src/source.c");
	assert_null(content_at(&profile, 0));
	assert_string_equal(string_at(&profile, profile_table(&profile, "sources", "filename"), 1),
			    "/src/\xef\xbf\xbd.c");
	assert_string_equal(content_at(&profile, 1), "int x;\r\n\t/* \"caf\xef\xbf\xbd\" */\n");
	frames_free(frames);
	profile_done(&profile, t);
}

static void test_output_error_is_returned(void **state)
{
	Timeline *t = random_timeline(1, 300 * MS, 10);
	Frames *frames = frames_new();
	Output *output;

	(void)state;
	assert_int_equal(output_open("/dev/full", 0, NULL, &output), 0);
	assert_int_equal(firefox_write(output, t, frames, NULL), -ENOSPC);
	output_discard(output);
	frames_free(frames);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_marker),
		cmocka_unit_test(test_marker_budget),
		cmocka_unit_test(test_unknown_markers),
		cmocka_unit_test(test_loss_and_exit_markers),
		cmocka_unit_test(test_colors),
		cmocka_unit_test(test_runs_on_cpus),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_names_of_any_bytes),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_cpu_graph),
		cmocka_unit_test(test_cpu_counter),
		cmocka_unit_test(test_symbols_and_libraries),
		cmocka_unit_test(test_source_texts),
		cmocka_unit_test(test_output_error_is_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
