/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_files.h"
#include "debuginfod.h"
#include "symbol_cache.h"
#include "symbol_jobs.h"
#include "vdso.h"
#include <elfutils/version.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each takes two descriptors and the memory of its names until all of them are done. */
#define FILES_AT_A_TIME 64

/* One file and the addresses in it. */
typedef struct FileNames {
	const MappedFile *file;
	MappedFile opened; /* the same with the state at its opening, which the cache uses */
	const SymbolTarget *targets;
	size_t count;
	VEC(uint64_t) missing; /* addresses that the cache does not have */
	CachedObject cached;
	DebugFiles debug;
	int fd, debug_fd;
	bool asked_debuginfod;
	int error;	/* why there is no job although one is needed; 0 = no error */
	SymbolJob *job; /* NULL: none is needed */
} FileNames;

typedef struct Batch {
	const SymbolsSink *sink;
	SymbolsSummary *summary;
	SymbolCache *cache; /* or NULL */
	bool servers_fail;  /* debuginfod's servers do not answer: do not ask them again */
	uint64_t servers_deadline_ns; /* so that time is left for the files of this machine */
	VEC(FileNames) files;
	VEC(SymbolJob) jobs;
} Batch;

/* ---- what the cache knows ------------------------------------------------------------ */

static bool is_cacheable(const Batch *batch, const FileNames *names)
{
	return batch->cache && names->file->build_id_len && names->opened.inode;
}

static bool may_ask_debuginfod(const Batch *batch)
{
	return !batch->sink->no_debuginfod && !batch->servers_fail && debuginfod_enabled();
}

static void ask_cache(Batch *batch, FileNames *names)
{
	if (is_cacheable(batch, names))
		symbol_cache_load(batch->cache, &names->debug, &names->cached);
	/* The servers were not asked then, and may have what was missing. */
	if (may_ask_debuginfod(batch) && !names->cached.asked_debuginfod)
		cached_object_free(&names->cached);
	for (size_t i = 0; i < names->count; i++)
		if (!cached_object_find(&names->cached, names->targets[i].svma))
			*vec_push(&names->missing) = names->targets[i].svma;
	if (names->missing.count == 0)
		batch->summary->files_cached++;
}

/* ---- opening -------------------------------------------------------------------------- */

/* Without a build id, only an unchanged file is known to be the same. */
static bool is_untouched(const MappedFile *file, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (uint64_t)st.st_size == file->size &&
	       st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec == file->mtime_ns;
}

static int open_object(const Batch *batch, const MappedFile *file)
{
	int fd;

	if (file->flags & FILE_VDSO)
		return vdso_open();
	if (file->flags & FILE_UNREADABLE)
		return -ENOENT;
	fd = batch->sink->open(batch->sink->open_user, file);
	if (fd >= 0 && !file->build_id_len && !is_untouched(file, fd)) {
		closep(&fd);
		return -ESTALE;
	}
	return fd;
}

/* Returns what messages call a file. */
static const char *logged_path(const Batch *batch, const MappedFile *file)
{
	return batch->sink->hides_names ? "a file" : file->path;
}

static int open_debug(Batch *batch, FileNames *names)
{
	const MappedFile *file = names->file;
	int fd = file->flags & FILE_VDSO ? -ENOENT : debug_files_by_build_id(&names->debug);

	if (fd >= 0 || !file->build_id_len || file->flags & FILE_VDSO || !may_ask_debuginfod(batch))
		return fd;
	names->asked_debuginfod = true;
	fd = debuginfod_find(file->build_id, file->build_id_len, logged_path(batch, file),
			     batch->sink->invoker, batch->servers_deadline_ns);
	/* Each question to a server that does not answer takes until the deadline. */
	if (fd < 0 && fd != -ENOENT) {
		batch->servers_fail = true;
		names->asked_debuginfod = false;
		log_warn("debuginfod failed: %s; no further requests", strerror(-fd));
	}
	return fd;
}

/* Identifies the inode of a file on a disk. */
static void identify_opened(FileNames *names)
{
	struct stat st;

	names->opened = *names->file;
	if (names->fd < 0 || names->file->flags & FILE_VDSO || fstat(names->fd, &st))
		return;
	names->opened.size = st.st_size;
	names->opened.mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	names->opened.ctime_ns = st.st_ctim.tv_sec * NSEC_PER_SEC + st.st_ctim.tv_nsec;
	names->opened.device = st.st_dev;
	names->opened.inode = st.st_ino;
}

static void prepare(Batch *batch, FileNames *names)
{
	names->fd = open_object(batch, names->file);
	identify_opened(names);
	names->debug.file = &names->opened;
	ask_cache(batch, names);
	if (names->missing.count == 0) {
		closep(&names->fd);
		return;
	}
	if (names->fd < 0) {
		names->error = names->fd;
		return;
	}
	names->debug_fd = open_debug(batch, names);
}

/* ---- asking ----------------------------------------------------------------------------- */

static int find_companion(void *user, SymbolJob *job, const Companion *companion)
{
	FileNames *names = job->user;

	(void)user;
	return debug_files_companion(&names->debug, companion);
}

/* Jobs point to files, so both lists must be complete first. */
static void run_jobs(Batch *batch)
{
	SymbolJobsOptions options = {.find = find_companion,
				     .deadline_ns = batch->sink->deadline_ns};

	for (size_t i = 0; i < batch->files.count; i++) {
		FileNames *names = &batch->files.items[i];

		if (names->missing.count == 0 || names->error)
			continue;
		*vec_push(&batch->jobs) = (SymbolJob){
			.user = names,
			.request =
				{
					.fd = names->fd,
					.debug_fd = MAX(names->debug_fd, -1),
					.build_id = names->file->build_id,
					.build_id_len = names->file->build_id_len,
					.base_svma = names->file->base_svma,
					.addresses = names->missing.items,
					.count = names->missing.count,
				},
		};
	}
	symbol_jobs_run(batch->jobs.items, batch->jobs.count, &options);
	for (size_t i = 0; i < batch->jobs.count; i++)
		((FileNames *)batch->jobs.items[i].user)->job = &batch->jobs.items[i];
}

/* ---- messages ----------------------------------------------------------------------------- */

static int emit_text(const SymbolsSink *sink, uint32_t file, char *text)
{
	size_t length = strlen(text) + 1;
	size_t size = (sizeof(struct rec_note) + length + 7) & ~7UL;
	_cleanup_free_ struct rec_note *note = xcalloc(1, size);

	note->h = (struct record){.kind = REC_NOTE, .len = size};
	note->file = file;
	memcpy(note->text, text, length);
	if (!sink->hides_names)
		log_warn("%s", text);
	return sink->emit(sink->user, &note->h);
}

int symbol_files_emit_note(const SymbolsSink *sink, uint32_t file, const char *path,
			   const char *problem)
{
	_cleanup_free_ char *text = xasprintf("some names of %s are missing: %s", path, problem);

	return emit_text(sink, file, text);
}

/* Returns a part of a sentence, allocated. */
static char *describe_missing(const FileNames *names, const ObjectMissing *missing)
{
	const char *plural = missing->count == 1 ? "" : "s";
	/* The reader of the file does not know its name. */
	const char *package = names->debug.package ? names->debug.package : "its .dwp file";

	switch (missing->kind) {
	case DWARF_NO_SPLIT_FILE:
		return xasprintf("%" PRIu64 " .dwo file%s not found, such as %s", missing->count,
				 plural, missing->name);
	case DWARF_OTHER_SPLIT_FILE:
		return xasprintf("%" PRIu64 " .dwo file%s of another build, such as %s",
				 missing->count, plural, missing->name);
	case DWARF_OTHER_PACKAGE:
		return xasprintf("%" PRIu64 " unit%s not in %s, which is of another build, nor in "
				 "a .dwo file, such as %s",
				 missing->count, plural, package, missing->name);
	case DWARF_DAMAGED_PACKAGE:
		return xasprintf("%s has no index that can be read, and %" PRIu64
				 " .dwo file%s not found, such as %s",
				 package, missing->count, plural, missing->name);
	case DWARF_DAMAGED_SECTION:
		return xasprintf("%" PRIu64 " compressed section%s damaged or too large",
				 missing->count, plural);
	default:
		return xasprintf("libdw 0.%d cannot read its DWARF: %s", _ELFUTILS_VERSION,
				 missing->name);
	}
}

/* What the child reports replaces what was cached when other addresses were looked up. */
static void describe_all_missing(FileNames *names)
{
	char *all = NULL;

	for (size_t i = 0; names->job && i < names->job->missing.count; i++) {
		_cleanup_free_ char *one = describe_missing(names, &names->job->missing.items[i]);
		char *longer = all ? xasprintf("%s; %s", all, one) : xstrdup(one);

		free(all);
		all = longer;
	}
	if (!all)
		return;
	mask_controls(all);
	free(names->cached.note);
	names->cached.note = all;
}

static int emit_missing(Batch *batch, FileNames *names)
{
	_cleanup_free_ char *text = NULL;

	describe_all_missing(names);
	if (!names->cached.note)
		return 0;
	text = xasprintf("some inlined calls and lines of %s are missing: %s", names->file->path,
			 names->cached.note);
	return emit_text(batch->sink, names->file->id, text);
}

static int emit_problem(Batch *batch, FileNames *names)
{
	const char *problem = names->job ? names->job->problem : NULL;
	int error = names->job && !problem ? names->job->result : names->error;

	if (error == -ESTALE)
		batch->summary->files_mismatched++;
	else if (error)
		batch->summary->files_unreadable++;
	if (error)
		log_verbose("reading names from %s failed: %s", logged_path(batch, names->file),
			    error == -ESTALE ? "not the file that was mapped" : strerror(-error));
	if (!problem)
		return 0;
	return symbol_files_emit_note(batch->sink, names->file->id, names->file->path, problem);
}

static int emit_symbol(Batch *batch, const FileNames *names, const struct rec_symbol *symbol,
		       uint64_t weight)
{
	const SymbolsSink *sink = batch->sink;
	struct rec_symbol *copy;
	int r;

	if (!symbol || symbol->count == 0)
		return 0;
	copy = memcpy(xmalloc(symbol->h.len), symbol, symbol->h.len);
	copy->file = names->file->id;
	batch->summary->named++;
	if (sink->sources)
		sources_weigh_symbol(sink->sources, copy, weight, names->file->mtime_ns);
	r = sink->emit(sink->user, &copy->h);
	free(copy);
	return r;
}

static int emit_names(Batch *batch, FileNames *names)
{
	size_t missing = 0;
	int r = 0;

	for (size_t i = 0; i < names->count && r == 0; i++) {
		uint64_t svma = names->targets[i].svma;
		const struct rec_symbol *symbol;

		if (missing == names->missing.count || names->missing.items[missing] != svma) {
			symbol = cached_object_find(&names->cached, svma);
		} else {
			symbol = names->job ? symbol_job_answer(names->job, missing) : NULL;
			missing++;
		}
		r = emit_symbol(batch, names, symbol, names->targets[i].weight);
	}
	return r;
}

/* ---- what the cache learns ------------------------------------------------------------------ */

/* That an address has no name is cached as well. */
static void cache_answer(FileNames *names, size_t i)
{
	const struct rec_symbol *symbol = symbol_job_answer(names->job, i);
	struct rec_symbol unnamed = {
		.h = {.kind = REC_SYMBOL, .len = offsetof(struct rec_symbol, text)},
		.address = names->missing.items[i],
	};

	cached_object_add(&names->cached, symbol ? symbol : &unnamed);
}

static void cache_answers(Batch *batch, FileNames *names)
{
	int r;

	if (!names->job || names->job->problem || names->job->result || !is_cacheable(batch, names))
		return;
	for (size_t i = 0; i < names->missing.count; i++)
		cache_answer(names, i);
	for (size_t i = 0; i < names->cached.tried.count; i++)
		free(names->cached.tried.items[i].path);
	names->cached.tried.count = 0;
	for (size_t i = 0; i < names->debug.tried.count; i++)
		*vec_push(&names->cached.tried) = names->debug.tried.items[i];
	names->debug.tried.count = 0; /* its paths have been moved */
	names->cached.asked_debuginfod |= names->asked_debuginfod;
	r = symbol_cache_store(batch->cache, &names->opened, &names->cached);
	if (r < 0)
		log_verbose("caching the names of %s failed: %s", logged_path(batch, names->file),
			    strerror(-r));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void add_file(Batch *batch, const MappedFile *file, const SymbolTarget *targets,
		     size_t count)
{
	*vec_push(&batch->files) = (FileNames){
		.file = file,
		.targets = targets,
		.count = count,
		.debug = {.open = batch->sink->open_beside,
			  .open_named = batch->sink->open_named,
			  .open_user = batch->sink->open_user},
		.fd = -1,
		.debug_fd = -1,
	};
}

static void forget_files(Batch *batch)
{
	for (size_t i = 0; i < batch->files.count; i++) {
		FileNames *names = &batch->files.items[i];

		closep(&names->fd);
		closep(&names->debug_fd);
		vec_free(&names->missing);
		cached_object_free(&names->cached);
		debug_files_free(&names->debug);
	}
	for (size_t i = 0; i < batch->jobs.count; i++)
		symbol_job_free(&batch->jobs.items[i]);
	vec_free(&batch->files);
	vec_free(&batch->jobs);
}

static int resolve_files(Batch *batch)
{
	int r = 0;

	for (size_t i = 0; i < batch->files.count; i++)
		prepare(batch, &batch->files.items[i]);
	run_jobs(batch);
	for (size_t i = 0; i < batch->files.count && r == 0; i++) {
		r = emit_problem(batch, &batch->files.items[i]);
		if (r == 0)
			r = emit_missing(batch, &batch->files.items[i]);
		if (r == 0)
			r = emit_names(batch, &batch->files.items[i]);
		cache_answers(batch, &batch->files.items[i]);
	}
	forget_files(batch);
	return r;
}

int symbol_files_resolve(const AddressSpaces *spaces, const SymbolTarget *targets, size_t count,
			 const SymbolsSink *sink, SymbolsSummary *summary)
{
	Batch batch = {.sink = sink, .summary = summary, .cache = symbol_cache_open(sink->invoker)};
	uint64_t now = now_ns();
	int r = 0;

	if (sink->deadline_ns)
		batch.servers_deadline_ns =
			now + (sink->deadline_ns - MIN(now, sink->deadline_ns)) / 2;
	for (size_t i = 0, next; i < count && r == 0; i = next) {
		for (next = i + 1; next < count; next++)
			if (targets[next].file != targets[i].file)
				break;
		add_file(&batch, address_spaces_file(spaces, targets[i].file), targets + i,
			 next - i);
		if (batch.files.count == FILES_AT_A_TIME || next == count)
			r = resolve_files(&batch);
	}
	symbol_cache_close(batch.cache);
	return r;
}
