/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwinder.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

/* Ended images are kept for late records, and for copies of stacks that wait for a table. */
#define ENDED_KEPT_NS NSEC_PER_SEC
/* So long script frames of sleeping threads are read in a round. */
#define SLEEPERS_NS (4 * NSEC_PER_MSEC)

struct Unwinder {
	UnwindMaps maps;
	TableRegistry *tables;
	JitCodes *codes; /* not owned */
	StackCopies *copies;
	Interpreters *interpreters; /* or NULL */
	Sleepers *sleepers;	    /* or NULL */
	Images images;
	VEC(struct unwind_mapping) run; /* the mappings that are being published */
	VEC(uint32_t) unknown; /* ns_tgid of processes whose side-band records are incomplete */
	RecordSink sink;
	void *user;
	int error;	   /* an error of the sink that could not be returned */
	uint64_t released; /* counts released mappings and processes: others may have room now */
	uint32_t version;
	bool prepared; /* what was mapped before the window is known */
	uint64_t published, publish_failed, corrected;
	Histogram delays;
};

static bool is_file_used(void *user, uint32_t file)
{
	const Unwinder *unwinder = user;

	return images_use_file(&unwinder->images, file);
}

int unwinder_new(const UnwindMaps *maps, MappedFiles *files, const ProcessTable *processes,
		 const Invoker *invoker, RecordSink sink, void *user, Unwinder **ret_unwinder)
{
	Unwinder *unwinder = xcalloc(1, sizeof(*unwinder));
	int error;

	unwinder->maps = *maps;
	unwinder->images.processes = processes;
	unwinder->sink = sink;
	unwinder->user = user;
	unwinder->codes = mapped_files_jit_codes(files);
	unwinder->copies = stack_copies_new(&unwinder->maps, unwinder->codes, sink, user);
	error = table_registry_new(&unwinder->maps, files, invoker, is_file_used, unwinder,
				   &unwinder->tables);
	if (error) {
		unwinder_free(unwinder);
		return error;
	}
	*ret_unwinder = unwinder;
	return 0;
}

void unwinder_free(Unwinder *unwinder)
{
	if (!unwinder)
		return;
	stack_copies_free(unwinder->copies);
	table_registry_free(unwinder->tables);
	images_free(&unwinder->images);
	vec_free(&unwinder->run);
	vec_free(&unwinder->unknown);
	free(unwinder);
}

void unwinder_on_record(Unwinder *unwinder, const struct record *record)
{
	if (record->kind == REC_STACK_COPY) {
		stack_copies_add(unwinder->copies, (const struct rec_stack_copy *)record);
		if (unwinder->sleepers)
			sleepers_add(unwinder->sleepers, (const struct rec_stack_copy *)record);
		return;
	}
	images_on_record(&unwinder->images, record, now_ns());
	if (record->kind == REC_MAPPING)
		unwinder_expect(unwinder, ((const struct rec_mapping *)record)->file);
}

void unwinder_follow(Unwinder *unwinder, Interpreters *interpreters, Sleepers *sleepers)
{
	unwinder->interpreters = interpreters;
	unwinder->sleepers = sleepers;
}

void unwinder_expect(Unwinder *unwinder, uint32_t file)
{
	table_registry_request(unwinder->tables, file);
	if (unwinder->interpreters)
		interpreters_look(unwinder->interpreters, file);
}

/* ---- publishing ------------------------------------------------------------------------------ */

static void release_run(Unwinder *unwinder, RunHandle run)
{
	if (!run.mark)
		return;
	table_memory_remove_run(unwinder->maps.memory, run);
	unwinder->released++;
}

static void make_run(Unwinder *unwinder, const Image *image)
{
	unwinder->run.count = 0;
	for (size_t i = 0; i < image->mappings.count; i++) {
		const ImageMapping *mapping = &image->mappings.items[i];

		*vec_push(&unwinder->run) =
			stack_copies_mapping(unwinder->copies, unwinder->tables, image, mapping,
					     /* ns= */ UINT64_MAX);
	}
}

/* Tells the stack memos that an entry of the map of processes has changed. */
static void tell_change(Unwinder *unwinder)
{
	__atomic_add_fetch(unwinder->maps.mappings_epoch, 1, __ATOMIC_RELEASE);
}

/* An image that ended meanwhile would stay in the map for ever: BPF has removed it already. */
static void remove_process(Unwinder *unwinder, const Image *image)
{
	struct unwind_process process;

	if (image->published && image->tgid &&
	    !bpf_map_lookup_elem(unwinder->maps.processes_fd, &image->tgid, &process) &&
	    process.start_boottime == image->start_boottime && process.exec_id == image->exec_id &&
	    !bpf_map_delete_elem(unwinder->maps.processes_fd, &image->tgid))
		tell_change(unwinder);
}

/* Notes how long after they were mapped these mappings can be walked with their tables. */
static void note_delays(Unwinder *unwinder, Image *image)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < image->mappings.count; i++) {
		ImageMapping *mapping = &image->mappings.items[i];

		if (!mapping->unpublished || unwinder->run.items[i].table == 0)
			continue;
		mapping->unpublished = false;
		histogram_add(&unwinder->delays, now - MIN(now, mapping->from_ns));
	}
}

/* Drops tables of files that no process maps, if there is no room. */
static int allocate_run(Unwinder *unwinder, RunHandle *ret_run)
{
	int error;

	*ret_run = (RunHandle){};
	if (unwinder->run.count == 0)
		return 0;
	do
		error = table_memory_add_run(unwinder->maps.memory, unwinder->run.items,
					     unwinder->run.count, ret_run);
	while (error == -ENOSPC && table_registry_drop_one(unwinder->tables));
	return error;
}

static InterpretedImage interpreted_image(const Image *image)
{
	return (InterpretedImage){.tgid = image->tgid,
				  .ns_tgid = image->ns_tgid,
				  .exec_id = image->exec_id,
				  .start_boottime = image->start_boottime};
}

/* Publishes the interpreter of the process, if it maps one. */
static void publish_interpreter(Unwinder *unwinder, const Image *image)
{
	InterpretedImage interpreted = interpreted_image(image);

	for (size_t i = 0; i < image->mappings.count && unwinder->interpreters; i++)
		interpreters_add(unwinder->interpreters, &interpreted,
				 image->mappings.items[i].file, image->mappings.items[i].bias);
}

static void publish(Unwinder *unwinder, Image *image, uint64_t watermark_ns)
{
	struct unwind_process process = {
		.version = unwinder->version += 2, /* BPF's own numbers are odd */
		.version_end = unwinder->version,
		.exec_id = image->exec_id,
		.start_boottime = image->start_boottime,
		.tables_ns = image->uncertain_since_ns
				     ? MIN(watermark_ns, image->uncertain_since_ns)
				     : watermark_ns,
		.may_describe = jit_processes_may_describe(unwinder->codes, image->ns_tgid),
	};
	RunHandle before = image->run;
	int error;

	make_run(unwinder, image);
	error = allocate_run(unwinder, &image->run);
	if (!error) {
		process.list_cookie = image->run.mark;
		process.cell = image->run.cell;
		process.count = unwinder->run.count;
	}
	/*
	 * This is done even if there was no room: the present entry names mappings that are about
	 * to go.
	 */
	if (bpf_map_update_elem(unwinder->maps.processes_fd, &image->tgid, &process, BPF_ANY)) {
		error = -errno;
		bpf_map_delete_elem(unwinder->maps.processes_fd, &image->tgid);
		release_run(unwinder, image->run);
		image->run = (RunHandle){};
	}
	tell_change(unwinder);
	release_run(unwinder, before);
	publish_interpreter(unwinder, image);
	if (!error)
		note_delays(unwinder, image);
	unwinder->published++;
	unwinder->publish_failed += error && !image->failed;
	image->failed = error;
	image->tried = unwinder->released;
	image->published = true;
	image->changed = false;
}

static bool maps_changed_file(const Unwinder *unwinder, const Image *image)
{
	for (size_t i = 0; i < image->mappings.count; i++)
		if (table_registry_is_changed(unwinder->tables, image->mappings.items[i].file))
			return true;
	return false;
}

/* When the table of a file becomes ready, each process that maps the file is published again. */
static void mark_changed(Unwinder *unwinder)
{
	if (!table_registry_any_changed(unwinder->tables))
		return;
	for (size_t i = 0; i < unwinder->images.list.count; i++) {
		Image *image = unwinder->images.list.items[i];

		image->changed |= maps_changed_file(unwinder, image);
	}
}

/* Where new code of a process may be described now, or may be so no more, copies are taken or not.
 */
static bool take_news(Unwinder *unwinder)
{
	uint32_t ns_tgid;
	bool any = false;

	while (jit_processes_next_news(unwinder->codes, &ns_tgid)) {
		images_mark_changed(&unwinder->images, ns_tgid);
		any = true;
	}
	return any;
}

static void forget_image(void *user, Image *image)
{
	InterpretedImage interpreted = interpreted_image(image);
	Unwinder *unwinder = user;

	if (unwinder->interpreters)
		interpreters_remove(unwinder->interpreters, &interpreted);
	remove_process(unwinder, image);
	release_run(unwinder, image->run);
	unwinder->released++;
}

static void publish_changed(Unwinder *unwinder, uint64_t watermark_ns)
{
	for (size_t i = 0; i < unwinder->images.list.count; i++) {
		Image *image = unwinder->images.list.items[i];

		image->changed |= image->failed && image->tried != unwinder->released;
		if (image->changed && image_is_ready(image, watermark_ns, now_ns()))
			publish(unwinder, image, watermark_ns);
	}
}

/* Records the missing exec in the capture; what was mapped since then is read again. */
static void note_lost_exec(void *user, const Image *image)
{
	Unwinder *unwinder = user;
	struct rec_space record = {
		.h = {.len = sizeof(record),
		      .kind = REC_SPACE,
		      .flags = SPACE_EXEC,
		      .ns = image->bpf_exec_ns},
		.ns_tgid = image->ns_tgid,
	};

	unwinder->corrected++;
	*vec_push(&unwinder->unknown) = image->ns_tgid;
	if (!unwinder->error)
		unwinder->error = unwinder->sink(unwinder->user, &record.h);
}

/* Adds what a reading of /proc found to the history, at the earliest time that it can have. */
static void emit_found(Unwinder *unwinder)
{
	Images *images = &unwinder->images;

	for (size_t i = 0; i < images->found.count && !unwinder->error; i++)
		unwinder->error = unwinder->sink(unwinder->user, &images->found.items[i].h);
	images->found.count = 0;
}

bool unwinder_next_unknown(Unwinder *unwinder, uint32_t *ret_ns_tgid)
{
	if (unwinder->unknown.count == 0)
		return false;
	*ret_ns_tgid = unwinder->unknown.items[--unwinder->unknown.count];
	return true;
}

int unwinder_round(Unwinder *unwinder, uint64_t watermark_ns)
{
	uint64_t published = unwinder->published;
	bool news, looked;
	int error;

	images_apply_pending(&unwinder->images);
	emit_found(unwinder);
	table_registry_process(unwinder->tables);
	table_registry_retry(unwinder->tables);
	mark_changed(unwinder);
	looked = take_news(unwinder);
	images_correct(&unwinder->images, watermark_ns, note_lost_exec, unwinder);
	news = table_registry_any_changed(unwinder->tables) || looked;
	publish_changed(unwinder, watermark_ns);
	if (unwinder->sleepers && !unwinder->error)
		unwinder->error = sleepers_read(unwinder->sleepers, now_ns() + SLEEPERS_NS);
	if (!unwinder->prepared || unwinder->error)
		return unwinder->error;
	news |= unwinder->published != published;
	error = stack_copies_walk(unwinder->copies, &unwinder->images, unwinder->tables,
				  watermark_ns, news ? COPIES_ALL : COPIES_NEW);
	images_drop_ended(&unwinder->images,
			  MIN(now_ns() - ENDED_KEPT_NS, stack_copies_oldest_ns(unwinder->copies)),
			  forget_image, unwinder);
	return error;
}

int unwinder_finish(Unwinder *unwinder)
{
	images_apply_pending(&unwinder->images); /* the last looks at code (jit_code.h) */
	table_registry_wait(unwinder->tables, now_ns() + NSEC_PER_SEC);
	return stack_copies_walk(unwinder->copies, &unwinder->images, unwinder->tables, now_ns(),
				 COPIES_LAST);
}

int unwinder_fd(const Unwinder *unwinder)
{
	return table_registry_fd(unwinder->tables);
}

void unwinder_prepared(Unwinder *unwinder)
{
	unwinder->prepared = true;
}

bool unwinder_wait(Unwinder *unwinder, uint64_t deadline_ns)
{
	bool all;

	images_apply_pending(&unwinder->images);
	all = table_registry_wait(unwinder->tables, deadline_ns);
	mark_changed(unwinder);
	return all;
}

UnwinderCounts unwinder_counts(const Unwinder *unwinder)
{
	return (UnwinderCounts){
		.tables = table_registry_counts(unwinder->tables),
		.memory = table_memory_counts(unwinder->maps.memory),
		.copies = stack_copies_counts(unwinder->copies),
		.troubles = *unwinder->maps.troubles,
		.published = unwinder->published,
		.publish_failed = unwinder->publish_failed,
		.corrected = unwinder->corrected,
		.delays = &unwinder->delays,
	};
}
