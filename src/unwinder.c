/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwinder.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

/*
 * Ended images are kept for what comes late, and runs for programs that have found them and are
 * still walking.
 */
#define ENDED_KEPT_NS NSEC_PER_SEC

/* A run of mappings that was replaced, but maybe is still read. */
typedef struct OldRun {
	uint32_t cell, count;
	uint64_t ns;
} OldRun;

struct Unwinder {
	UnwindMaps maps;
	UnwindTables *tables;
	UnwindCopies *copies;
	Images images;
	VEC(OldRun) old_runs;
	VEC(struct unwind_mapping) run; /* that is being made */
	uint32_t gen;
	bool prepared; /* what was mapped before the window is known */
	uint64_t published, publish_failed, corrected;
	Delays delays;
};

int unwinder_new(const UnwindMaps *maps, Files *files, const Invoker *invoker, RecordSink sink,
		 void *user, Unwinder **ret_unwinder)
{
	Unwinder *unwinder = xcalloc(1, sizeof(*unwinder));
	int error;

	unwinder->maps = *maps;
	unwinder->copies = unwind_copies_new(&unwinder->maps, sink, user);
	error = unwind_tables_new(&unwinder->maps, files, invoker, &unwinder->tables);
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
	unwind_copies_free(unwinder->copies);
	unwind_tables_free(unwinder->tables);
	images_free(&unwinder->images);
	vec_free(&unwinder->old_runs);
	vec_free(&unwinder->run);
	free(unwinder);
}

void unwinder_take(Unwinder *unwinder, const struct record *record)
{
	if (record->kind == REC_STACK_COPY) {
		unwind_copies_take(unwinder->copies, (const struct rec_stack_copy *)record);
		return;
	}
	images_take(&unwinder->images, record, now_ns());
	if (record->kind == REC_MAPPING)
		unwind_tables_want(unwinder->tables, ((const struct rec_mapping *)record)->file);
}

void unwinder_expect(Unwinder *unwinder, uint32_t file)
{
	unwind_tables_want(unwinder->tables, file);
}

/* ---- publishing ------------------------------------------------------------------------------ */

static void retire_run(Unwinder *unwinder, Image *image)
{
	if (image->count)
		*vec_push(&unwinder->old_runs) =
			(OldRun){.cell = image->cell, .count = image->count, .ns = now_ns()};
	image->count = 0;
}

static void make_run(Unwinder *unwinder, const Image *image)
{
	unwinder->run.count = 0;
	for (size_t i = 0; i < image->mappings.count; i++) {
		const ImageMapping *mapping = &image->mappings.items[i];

		*vec_push(&unwinder->run) =
			unwind_tables_mapping(unwinder->tables, mapping->file, mapping->start,
					      mapping->last, mapping->bias);
	}
}

/* An image that ended meanwhile would stay in the map for ever: BPF has removed it already. */
static void remove_process(Unwinder *unwinder, const Image *image)
{
	struct unwind_process process;

	if (image->published && image->tgid &&
	    !bpf_map_lookup_elem(unwinder->maps.processes_fd, &image->tgid, &process) &&
	    process.start_boottime == image->start_boottime && process.exec_id == image->exec_id)
		bpf_map_delete_elem(unwinder->maps.processes_fd, &image->tgid);
}

/* Those that are walked with their tables from now on: how long after they were mapped. */
static void note_delays(Unwinder *unwinder, Image *image)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < image->mappings.count; i++) {
		ImageMapping *mapping = &image->mappings.items[i];

		if (!mapping->awaits || unwinder->run.items[i].rows == 0)
			continue;
		mapping->awaits = false;
		delays_add(&unwinder->delays, now - MIN(now, mapping->from_ns));
	}
}

static void publish(Unwinder *unwinder, Image *image, uint64_t known_ns)
{
	struct unwind_process process = {
		.gen = unwinder->gen += 2, /* BPF's own are odd */
		.gen_again = unwinder->gen,
		.exec_id = image->exec_id,
		.start_boottime = image->start_boottime,
		.tables_ns = MAX(known_ns, image->latest_ns),
	};
	int error = 0;

	make_run(unwinder, image);
	retire_run(unwinder, image);
	if (unwinder->run.count > 0)
		error = unwind_memory_add_run(unwinder->maps.memory, unwinder->run.items,
					      unwinder->run.count, &process.cell);
	if (!error) {
		process.count = image->count = unwinder->run.count;
		image->cell = process.cell;
	}
	/* Without room, too: the entry that is there names the run that is about to go. */
	if (bpf_map_update_elem(unwinder->maps.processes_fd, &image->tgid, &process, BPF_ANY)) {
		error = -errno;
		bpf_map_delete_elem(unwinder->maps.processes_fd, &image->tgid);
	}
	if (!error)
		note_delays(unwinder, image);
	unwinder->published++;
	unwinder->publish_failed += error != 0;
	image->published = true;
	image->changed = false;
}

static bool maps_fresh_file(const Unwinder *unwinder, const Image *image)
{
	for (size_t i = 0; i < image->mappings.count; i++)
		if (unwind_tables_is_fresh(unwinder->tables, image->mappings.items[i].file))
			return true;
	return false;
}

/* A file's table has become ready: whoever maps it is to be published anew. */
static void mark_changed(Unwinder *unwinder)
{
	if (!unwind_tables_any_fresh(unwinder->tables))
		return;
	for (size_t i = 0; i < unwinder->images.list.count; i++) {
		Image *image = unwinder->images.list.items[i];

		image->changed |= maps_fresh_file(unwinder, image);
	}
}

static bool is_file_used(void *user, uint32_t file)
{
	const Unwinder *unwinder = user;

	for (size_t i = 0; i < unwinder->images.list.count; i++) {
		const Image *image = unwinder->images.list.items[i];

		for (size_t j = 0; j < image->mappings.count; j++)
			if (image->mappings.items[j].file == file)
				return true;
	}
	return false;
}

static void release_old_runs(Unwinder *unwinder)
{
	uint64_t now = now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < unwinder->old_runs.count; i++) {
		OldRun run = unwinder->old_runs.items[i];

		if (run.ns + ENDED_KEPT_NS > now)
			unwinder->old_runs.items[kept++] = run;
		else
			unwind_memory_remove_run(unwinder->maps.memory, run.cell, run.count);
	}
	unwinder->old_runs.count = kept;
}

static void forget_image(void *user, Image *image)
{
	remove_process(user, image);
	retire_run(user, image);
}

static void publish_changed(Unwinder *unwinder, uint64_t known_ns)
{
	for (size_t i = 0; i < unwinder->images.list.count; i++) {
		Image *image = unwinder->images.list.items[i];

		if (image->changed && image->tgid && !image->ended_ns &&
		    image_has_begun(image, now_ns()))
			publish(unwinder, image, known_ns);
	}
}

int unwinder_round(Unwinder *unwinder, uint64_t known_ns)
{
	uint64_t published = unwinder->published;
	bool news;

	unwind_tables_take(unwinder->tables);
	mark_changed(unwinder);
	unwinder->corrected += images_correct(&unwinder->images, known_ns);
	news = unwind_tables_any_fresh(unwinder->tables);
	publish_changed(unwinder, known_ns);
	images_drop_ended(&unwinder->images, now_ns() - ENDED_KEPT_NS, forget_image, unwinder);
	release_old_runs(unwinder);
	unwind_tables_make_room(unwinder->tables, is_file_used, unwinder);
	if (!unwinder->prepared)
		return 0;
	news |= unwinder->published != published;
	return unwind_copies_walk(unwinder->copies, &unwinder->images, unwinder->tables, known_ns,
				  news ? COPIES_ALL : COPIES_NEW);
}

int unwinder_finish(Unwinder *unwinder)
{
	unwind_tables_wait(unwinder->tables, now_ns() + NSEC_PER_SEC);
	return unwind_copies_walk(unwinder->copies, &unwinder->images, unwinder->tables, now_ns(),
				  COPIES_LAST);
}

int unwinder_fd(const Unwinder *unwinder)
{
	return unwind_tables_fd(unwinder->tables);
}

void unwinder_prepared(Unwinder *unwinder)
{
	unwinder->prepared = true;
}

bool unwinder_wait(Unwinder *unwinder, uint64_t deadline_ns)
{
	bool all = unwind_tables_wait(unwinder->tables, deadline_ns);

	mark_changed(unwinder);
	return all;
}

UnwinderCounts unwinder_counts(const Unwinder *unwinder)
{
	return (UnwinderCounts){
		.tables = unwind_tables_counts(unwinder->tables),
		.memory = unwind_memory_counts(unwinder->maps.memory),
		.copies = unwind_copies_counts(unwinder->copies),
		.troubles = *unwinder->maps.troubles,
		.published = unwinder->published,
		.publish_failed = unwinder->publish_failed,
		.corrected = unwinder->corrected,
		.delays = &unwinder->delays,
	};
}
