/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_look.h"
#include "jit_questions.h"
#include "proc_maps.h"
#include "proc_status.h"
#include <errno.h>
#include <inttypes.h>

#define RANGES_MAX 16384u /* of executable memory without a file, of a process */
/* Looks at a process take at most this part of the time, of the recorder and of the child. */
#define PAUSE_PART 10
/* So long after new code was found in memory that may be written to, more is expected there. */
#define ACTIVE_NS NSEC_PER_SEC
/* A child that does not answer is ended. It has no limit of CPU time but this one. */
#define ANSWER_NS (4 * NSEC_PER_SEC)
/* What was found stays in memory until the end of the recording, each file in whole pages. */
#define KEPT_FILES_MAX 16384u
#define KEPT_MAX       (256ULL << 20)
#define PAGE	       4096ULL
/* Records may be so late that readers of captures still sort them (capture_sort.c). */
#define LATE_NS (900 * NSEC_PER_MSEC)

/* ---- a look: what is mapped ---------------------------------------------------------- */

typedef struct RegionReader {
	MappedFiles *files;
	JitCodes *codes;
	JitProcess *process;
	int error; /* of the sink */
} RegionReader;

static int add_file(RegionReader *reader, const ProcMapping *mapping)
{
	JitLook *look = &reader->codes->look;
	MappingSeen seen = {
		.ns = now_ns(),
		.ns_tgid = reader->process->ns_tgid,
		.start = mapping->start,
		.end = mapping->end,
		.pgoff = mapping->pgoff,
		.path = mapping->path,
		.inode = mapping->inode,
	};
	const JitMapped *last =
		look->mapped.count ? &look->mapped.items[look->mapped.count - 1] : NULL;
	JitMapped mapped;
	FileView view;
	int error = mapped_files_get(reader->files, &seen, &mapped.file);

	if (error)
		return error;
	view = mapped_files_view(reader->files, mapped.file);
	if (view.fd < 0 || view.flags & FILE_MEMORY ||
	    elf_mapping_bias(view.identity, mapping->start, mapping->end - mapping->start,
			     mapping->pgoff, &mapped.bias))
		return 0;
	/* Its mappings follow each other. */
	if (!last || last->file != mapped.file || last->bias != mapped.bias)
		*vec_push(&look->mapped) = mapped;
	return 0;
}

static void add_code(JitLook *look, const ProcMapping *mapping)
{
	JitRanges *code = &look->code;
	JitRange *last = code->count ? &code->items[code->count - 1] : NULL;

	if (last && last->end == mapping->start)
		last->end = mapping->end;
	else if (code->count < RANGES_MAX)
		*vec_push(code) = (JitRange){mapping->start, mapping->end};
	else
		look->ranges_omitted = true;
}

/* Stacks hold no registered section, and what the kernel has put there is its own. */
static bool is_made_memory(const ProcMapping *mapping)
{
	return (proc_maps_is_anonymous(mapping->path) &&
		(*mapping->path != '[' || !strcmp(mapping->path, "[heap]") ||
		 !strncmp(mapping->path, "[anon", 5))) ||
	       !strncmp(mapping->path, "/memfd:", 7);
}

static int add_region(void *user, const ProcMapping *mapping)
{
	RegionReader *reader = user;
	JitLook *look = &reader->codes->look;
	JitRegion region = {.start = mapping->start,
			    .end = mapping->end,
			    .write = mapping->write,
			    .exec = mapping->exec,
			    .shared = mapping->shared};

	if (!is_made_memory(mapping)) {
		reader->error = mapping->exec && mapping->inode ? add_file(reader, mapping) : 0;
		return reader->error;
	}
	if (mapping->exec)
		add_code(look, mapping);
	if (mapping->exec || (mapping->read && !mapping->shared))
		*vec_push(&look->regions) = region;
	return 0;
}

static void pause_process(JitProcess *process, uint64_t took_ns, uint64_t pause_ns)
{
	process->rest_ns = now_ns() + PAUSE_PART * took_ns;
	process->next_ns = MAX(process->rest_ns, now_ns() + pause_ns);
}

/* The process has nothing to tell, at least until it maps more. */
static void give_up(JitCodes *codes, JitProcess *process)
{
	process->notes.count = 0;
	process->wanted = process->writable = process->active = false;
	jit_processes_tell(codes, process);
	jit_processes_leave(codes);
}

/* What was found before stays in use. */
static void fail_look(JitCodes *codes, JitProcess *process)
{
	codes->counts.failed++;
	pause_process(process, 0, JIT_LAST_PAUSE_NS);
	jit_processes_leave(codes);
}

/* It has ended, must not be looked at, or the recorder is short of memory or descriptors. */
static void on_unreadable(JitCodes *codes, JitProcess *process, int error)
{
	if (error == -ENOMEM || error == -EMFILE || error == -ENFILE)
		fail_look(codes, process);
	else
		jit_processes_forget(codes, process);
}

/* Returns 0 or the sink's error. */
int jit_look_begin(MappedFiles *files, JitProcess *process)
{
	JitCodes *codes = mapped_files_jit_codes(files);
	JitLook *look = &codes->look;
	RegionReader reader = {files, codes, process, 0};
	int tid = proc_living_thread(process->ns_tgid);
	int error;

	*look = (JitLook){.process = process,
			  .reader = {.fd = -1},
			  .notes = process->notes.count,
			  .begin_ns = now_ns()};
	codes->counts.looks++;
	error = proc_maps_each(tid, add_region, &reader);
	if (error || look->regions.count == 0) {
		on_unreadable(codes, process, error);
		return reader.error;
	}
	look->stage = LOOK_FILES;
	if (look->code.count == 0)
		give_up(codes, process);
	return 0;
}
/* ---- a look: its memory -------------------------------------------------------------- */

static void begin_memory(MappedFiles *files)
{
	JitCodes *codes = mapped_files_jit_codes(files);
	JitLook *look = &codes->look;
	int tid = proc_living_thread(look->process->ns_tgid), error;

	look->read_ns = now_ns();
	error = jit_memory_open(mapped_files_memory(files), tid, &look->reader);
	if (error) {
		on_unreadable(codes, look->process, error);
		return;
	}
	for (size_t i = 0; i < look->mapped.count; i++) {
		const JitMapped *mapped = &look->mapped.items[i];
		uint64_t descriptor = jit_questions_file(codes, mapped->file)->descriptor;

		if (descriptor)
			jit_memory_read_objects(&look->reader, descriptor + mapped->bias);
	}
	for (size_t i = 0; i < look->regions.count; i++) {
		const JitRegion *region = &look->regions.items[i];

		if (region->exec || !region->write || look->process->wide)
			jit_memory_add(&look->reader, region);
	}
	jit_memory_sort(&look->reader, &look->code);
	look->stage = LOOK_MEMORY;
}

static int ask(JitCodes *codes)
{
	JitLook *look = &codes->look;
	int error = jit_questions_ask_memory(codes);

	if (error)
		return error;
	look->asked_ns = now_ns();
	look->child_ns = jit_child_cpu_ns(&codes->child);
	look->stage = LOOK_ANSWER;
	return 0;
}
/* ---- a look: what was found ---------------------------------------------------------- */

static int emit(MappedFiles *files, const JitProcess *process, const JitCode *code, uint32_t file,
		uint64_t ns, bool initial)
{
	struct rec_mapping record = {
		.h = {.len = sizeof(record),
		      .kind = REC_MAPPING,
		      .flags = MAPPING_EXEC | (initial ? MAPPING_INITIAL : 0),
		      .ns = MAX(ns, now_ns() - LATE_NS)},
		.ns_tgid = process->ns_tgid,
		.file = file,
		.start = code->start,
		.end = code->end,
		.pgoff = code->start,
	};

	return mapped_files_emit(files, &record.h);
}

/*
 * Returns the youngest note about the code from before that time, or NULL. Notes are in the order
 * of their times.
 */
static const JitNote *note_of(const JitProcess *process, const JitCode *code, uint64_t before_ns)
{
	for (size_t i = process->notes.count; i-- > 0;) {
		const JitNote *note = &process->notes.items[i];

		if (note->start < code->end && code->start < note->end && note->ns < before_ns)
			return note;
	}
	return NULL;
}

/* Returns the same, if it was mapped since the last look. */
static const JitNote *new_note_of(const JitProcess *process, const JitCode *code,
				  uint64_t before_ns)
{
	const JitNote *note = note_of(process, code, before_ns);

	return note && !note->looked ? note : NULL;
}

/* Returns whether something has been mapped there since the code's memory was read. */
static bool is_past(const JitLook *look, const JitCode *code)
{
	const JitNote *note = note_of(look->process, code, UINT64_MAX);

	return note && note->ns > look->asked_ns;
}

/* Returns whether it was mapped while it was read: what was read may be of older code, or of both.
 */
static bool is_torn(const JitLook *look, const JitCode *code)
{
	const JitNote *note = note_of(look->process, code, look->asked_ns + 1);

	return note && note->ns >= look->read_ns;
}

static bool is_writable(const JitLook *look, const JitCode *code)
{
	size_t i = partition_point(middle, look->regions.count,
				   look->regions.items[middle].end <= code->start);

	for (; i < look->regions.count && look->regions.items[i].start < code->end; i++) {
		const JitRegion *region = &look->regions.items[i];

		if (region->exec && (region->write || region->shared))
			return true;
	}
	return false;
}

static bool has_writable_code(const JitLook *look)
{
	for (size_t i = 0; i < look->regions.count; i++)
		if (look->regions.items[i].exec &&
		    (look->regions.items[i].write || look->regions.items[i].shared))
			return true;
	return false;
}

static const JitCode *known_at(const JitProcess *process, uint64_t start)
{
	size_t at = partition_point(middle, process->known.count,
				    process->known.items[middle].start < start);

	return at < process->known.count && process->known.items[at].start == start
		       ? &process->known.items[at]
		       : NULL;
}

/*
 * Code that cannot be written to is as it was when it was mapped. Other code may be younger. If the
 * last look has read its memory, it was made since: there was nothing then that could be called, or
 * its process replaces code, and what was there in between is not known.
 */
static int emit_new(MappedFiles *files, JitLook *look, JitCode *code, uint32_t file)
{
	const JitProcess *process = look->process;
	const JitNote *note = note_of(process, code, look->read_ns);
	bool seen = note && note->looked && process->wide == process->seen_wide;
	uint64_t ns = look->asked_ns;

	code->file = file;
	if (note && !is_writable(look, code))
		return emit(files, process, code, file, note->ns, note->initial);
	if (!process->replaces && note && !seen && !note->initial)
		ns = note->ns;
	else if (!process->replaces &&
		 jit_ranges_contain(&process->open, code->start, code->end - code->start))
		ns = process->seen_ns + 1;
	return emit(files, process, code, file, ns, /* initial= */ false);
}

/* It was mapped again, which has replaced what was said of it. */
static int emit_again(MappedFiles *files, JitLook *look, JitCode *code)
{
	const JitCode *known = known_at(look->process, code->start);
	const JitNote *note;

	if (!known || known->end != code->end || known->hash != code->hash)
		return -EBADMSG;
	code->file = known->file;
	note = new_note_of(look->process, code, look->read_ns);
	return note ? emit(files, look->process, code, code->file, note->ns, note->initial) : 0;
}

/*
 * What is not described any more counts as code without a table since it was last seen. What was
 * mapped there has said so already. So does what is described in another way, where the process may
 * have written other code.
 */
static int emit_gone(MappedFiles *files, JitLook *look, const JitImage *image)
{
	MappingSeen nothing = {.ns = now_ns(), .path = "//anon"};
	uint32_t anon;
	int error = mapped_files_get(files, &nothing, &anon);

	for (size_t i = 0; i < look->process->known.count && !error; i++) {
		const JitCode *known = &look->process->known.items[i];
		size_t next = partition_point(middle, image->code.count,
					      image->code.items[middle].end <= known->start);
		const JitCode *now = next < image->code.count ? &image->code.items[next] : NULL;

		if (now && now->start == known->start && now->end >= known->end &&
		    (now->file == JIT_KNOWN || !is_writable(look, known)))
			continue;
		if (new_note_of(look->process, known, UINT64_MAX) ||
		    !jit_ranges_contain(&look->code, known->start, known->end - known->start))
			continue;
		look->process->replaces |=
			now && now->start < known->end && is_writable(look, known);
		error = emit(files, look->process, known, anon, look->process->seen_ns + 1,
			     /* initial= */ false);
	}
	return error;
}

static void note_losses(JitCodes *codes, JitProcess *process, bool omitted)
{
	codes->counts.omitted += omitted;
	process->omitted |= omitted;
	process->disputed = MAX(process->disputed, codes->child.answer.counts.disputed);
}

/* *ret_id is 0 if there is no room for the file. Returns 0 or the sink's error. */
static int add_made_file(MappedFiles *files, JitCodes *codes, uint32_t index, uint32_t *ret_id)
{
	uint64_t size = (codes->child.answer.file_size[index] + PAGE - 1) & ~(PAGE - 1);
	int fd, error;

	*ret_id = 0;
	if (codes->kept_files == KEPT_FILES_MAX || size > KEPT_MAX - codes->kept_bytes)
		return 0;
	fd = jit_child_take_file(&codes->child, index);
	if (fd < 0)
		return 0;
	error = mapped_files_add_memory(files, codes->look.process->ns_tgid, fd, ret_id);
	codes->kept_files += *ret_id != 0;
	codes->kept_bytes += *ret_id ? size : 0;
	return error;
}

static int add_files(MappedFiles *files, JitCodes *codes, uint32_t *ids)
{
	int error = 0;

	for (uint32_t i = 0; i < JIT_FILES_MAX && !error; i++) {
		ids[i] = 0;
		if (!codes->child.answer.file_size[i])
			continue;
		error = add_made_file(files, codes, i, &ids[i]);
		if (!ids[i])
			note_losses(codes, codes->look.process, /* omitted= */ true);
	}
	return error;
}

/* Returns 0, -EBADMSG or the sink's error. */
static int use_image(MappedFiles *files, JitCodes *codes, JitImage *image)
{
	JitLook *look = &codes->look;
	JitProcess *process = look->process;
	uint32_t ids[JIT_FILES_MAX];
	size_t kept = 0, fresh = 0, open = 0, torn = 0;
	int error;

	error = add_files(files, codes, ids);
	if (!error)
		error = emit_gone(files, look, image);
	process->writable = process->writable && has_writable_code(look);
	for (size_t i = 0; i < image->code.count && !error; i++) {
		JitCode *code = &image->code.items[i];

		if (is_torn(look, code)) {
			torn++;
			continue;
		}
		if (code->file == JIT_KNOWN) {
			error = emit_again(files, look, code);
		} else if (ids[code->file]) {
			fresh++;
			open += is_writable(look, code);
			error = emit_new(files, look, code, ids[code->file]);
		} else {
			continue;
		}
		if (is_past(look, code))
			continue;
		process->writable |= is_writable(look, code);
		image->code.items[kept++] = *code;
	}
	if (error)
		return error;
	image->code.count = kept;
	process->known.count = 0;
	vec_append(&process->known, image->code.items, kept);
	if (open)
		process->fresh_ns = look->begin_ns;
	process->active = process->fresh_ns && look->begin_ns - process->fresh_ns < ACTIVE_NS;
	codes->counts.pieces += fresh;
	codes->counts.replaced += torn;
	process->fruitless = fresh + torn ? 0 : MIN(process->fruitless + 1, UINT8_MAX);
	if (fresh) {
		log_verbose("process %u describes code that it has made: %zu new pieces, "
			    "%" PRIu64 " symbols",
			    process->ns_tgid, fresh, codes->child.answer.symbols);
		process->pause_ns = JIT_FIRST_PAUSE_NS;
	}
	return 0;
}

static bool is_mapped(const JitLook *look, const JitNote *note)
{
	size_t next = partition_point(middle, look->code.count,
				      look->code.items[middle].end <= note->start);

	return next < look->code.count && look->code.items[next].start < note->end;
}

/* Drops what was mapped before memory was read, but where a stack may yet show new code. */
static void drop_notes(const JitLook *look, JitProcess *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->notes.count; i++) {
		JitNote *note = &process->notes.items[i];
		bool has_waited = note->stack_ns && note->stack_ns < look->begin_ns &&
				  (process->wide || process->known.count);
		bool before = note->ns < look->read_ns;

		if (before && (note->file || has_waited || !is_mapped(look, note)))
			continue;
		note->looked |= before;
		process->notes.items[kept++] = *note;
	}
	process->notes.count = kept;
}

static void note_open(const JitLook *look, JitProcess *process)
{
	process->open.count = 0;
	for (size_t i = 0; i < look->regions.count; i++) {
		const JitRegion *region = &look->regions.items[i];

		if (region->exec && (region->write || region->shared))
			*vec_push(&process->open) = (JitRange){region->start, region->end};
	}
}

/* What was mapped before it began, and what waits for it, is looked at. */
static void end_look(JitCodes *codes, JitProcess *process)
{
	const JitLook *look = &codes->look;

	drop_notes(look, process);
	note_open(look, process);
	process->seen_ns = look->begin_ns;
	process->seen_wide = process->wide;
	jit_processes_on_known(process);
	jit_processes_tell(codes, process);
}

/* A process that goes on to have stacks in code of which nothing is known gets so many looks. */
#define NARROW_LOOKS 4

/*
 * Compilers that have many users write-protect what they make. Where nothing is found there, the
 * heap is read as well, which takes longer.
 */
static void widen(JitProcess *process, const JitLook *look)
{
	if (process->wide || process->fruitless == 0 ||
	    (process->known.count && (process->fruitless < NARROW_LOOKS || !process->wanted)))
		return;
	process->wide = true;
	process->next_ns = process->rest_ns;
	process->pause_ns = JIT_FIRST_PAUSE_NS;
	process->wanted |= look->notes > 0;
}

/* Returns the child's CPU time for the look; 0 if it has ended meanwhile. */
static uint64_t child_took_ns(const JitCodes *codes)
{
	uint64_t now = jit_child_cpu_ns(&codes->child);

	return now - MIN(now, codes->look.child_ns);
}

static int finish_look(MappedFiles *files, JitCodes *codes)
{
	JitLook *look = &codes->look;
	JitProcess *process = look->process;
	JitImage image = {};
	uint64_t took_ns = look->took_ns + child_took_ns(codes);
	int error = -EBADMSG;

	note_losses(codes, process,
		    look->ranges_omitted || look->reader.omitted ||
			    codes->child.answer.counts.no_room);
	if (jit_child_take_code(&codes->child, &look->code, &image))
		error = use_image(files, codes, &image);
	jit_image_free(&image);
	if (error == -EBADMSG) {
		jit_questions_end_child(codes);
		codes->counts.failed++;
		error = 0;
	}
	end_look(codes, process);
	pause_process(process, MIN(took_ns, ANSWER_NS),
		      process->writable ? MIN(process->pause_ns, JIT_CHECK_PAUSE_NS)
					: process->pause_ns);
	process->pause_ns = MIN(2 * process->pause_ns, JIT_LAST_PAUSE_NS);
	if (process->stack_ns >= look->begin_ns || jit_processes_has_new(process))
		process->next_ns = process->rest_ns;
	widen(process, look);
	jit_processes_leave(codes);
	return error;
}
/* ---- going on ------------------------------------------------------------------------ */

/* The child may have been busy all the time that was waited for it. */
static void drop_child(JitCodes *codes)
{
	JitLook *look = &codes->look;
	JitProcess *process = look->process;
	uint64_t took_ns = MIN(now_ns() - look->asked_ns, ANSWER_NS);

	jit_questions_end_child(codes);
	codes->counts.failed++;
	if (look->stage == LOOK_ANSWER) {
		process->pause_ns = JIT_LAST_PAUSE_NS;
		end_look(codes, process);
	}
	pause_process(process, took_ns, process->pause_ns);
	process->pause_ns = MIN(2 * process->pause_ns, JIT_LAST_PAUSE_NS);
	jit_processes_leave(codes);
}

/* Returns 1 if there was an answer to what is waited for, 0 if not yet, or the sink's error. */
static int read_answers(JitCodes *codes)
{
	JitLook *look = &codes->look;
	bool any = false;
	int r;

	while ((r = jit_child_receive(&codes->child)) > 0) {
		any = true;
		jit_questions_on_answer(codes);
		if (look->stage == LOOK_FILES)
			look->asked_ns = now_ns();
		else if (!codes->child.answer.is_file && look->stage == LOOK_ANSWER &&
			 codes->child.answer.number == look->number) {
			look->stage = LOOK_ORDER;
			return 1;
		}
	}
	if (r < 0 || now_ns() > look->asked_ns + ANSWER_NS) {
		drop_child(codes);
		return 1;
	}
	return any;
}

/* What is mapped may have changed while the files' answers were waited for. */
static int begin_again(MappedFiles *files, JitCodes *codes)
{
	JitProcess *process = codes->look.process;

	jit_processes_end_look(codes);
	return jit_look_begin(files, process);
}

/* Goes on with the look. Returns 1 if there is more to do at once, 0 if not, or an error. */
int jit_look_go_on(MappedFiles *files, uint64_t deadline_ns, uint64_t watermark_ns)
{
	JitCodes *codes = mapped_files_jit_codes(files);
	JitLook *look = &codes->look;
	int missing;

	switch (look->stage) {
	case LOOK_FILES:
		if (!look->asked_ns)
			look->asked_ns = now_ns();
		missing = jit_questions_ask_files(files);
		look->waited |= missing > 0;
		if (missing < 0) {
			jit_questions_end_child(codes);
			fail_look(codes, look->process);
			return 1;
		}
		if (missing)
			return read_answers(codes);
		if (look->waited)
			return begin_again(files, codes) ?: 1;
		look->process->checked = true;
		look->process->can_tell = jit_questions_can_tell(codes);
		if (look->process->can_tell)
			begin_memory(files);
		else
			give_up(codes, look->process);
		return 1;
	case LOOK_MEMORY:
		if (!jit_memory_go_on(&look->reader, deadline_ns))
			return 0;
		if (remote_memory_is_refused(look->reader.process)) {
			on_unreadable(codes, look->process, -ETIME);
			return 1;
		}
		if (ask(codes)) {
			jit_questions_end_child(codes);
			fail_look(codes, look->process);
		}
		return 1;
	case LOOK_ANSWER:
		return read_answers(codes);
	case LOOK_ORDER:
		return watermark_ns > look->asked_ns ? finish_look(files, codes) ?: 1 : 0;
	case LOOK_NONE:
		break;
	}
	return 0;
}
