/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sources.h"
#include "as_invoker.h"
#include "safe_open.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct Weighed {
	uint32_t path; /* Sources::paths */
	uint64_t weight;
	SourceUser program; /* mtime_ns: the oldest one */
} Weighed;

struct Sources {
	SourcesOptions options;
	Strings paths;
	VEC(Weighed) list; /* index = number of the path, until it is sorted */
	SourcesSummary summary;
};

int sources_open_late(void *unused, uint32_t file, const char *path, struct stat *ret_stat)
{
	OpenRights nobody;
	OwnRights own;
	int fd, error;

	if (geteuid() != 0)
		return sources_open_by_path(unused, file, path, ret_stat);
	safe_open_rights_of_nobody(&nobody);
	error = safe_open_enter(&nobody, &own);
	if (error)
		return error;
	fd = sources_open_by_path(unused, file, path, ret_stat);
	error = safe_open_leave(&own);
	if (error)
		closep(&fd);
	return error ? error : fd;
}

Sources *sources_new(const SourcesOptions *options)
{
	Sources *sources = xcalloc(1, sizeof(*sources));

	sources->options = *options;
	if (!sources->options.open)
		sources->options.open = sources_open_late;
	return sources;
}

void sources_free(Sources *sources)
{
	if (!sources)
		return;
	strings_free(&sources->paths);
	vec_free(&sources->list);
	free(sources);
}

/* ---- weighing -------------------------------------------------------------- */

void sources_weigh(Sources *sources, const char *path, uint64_t weight, SourceUser program)
{
	uint32_t index;
	Weighed *weighed;

	if (!*path)
		return;
	index = strings_intern(&sources->paths, path);
	if (index == sources->list.count)
		*vec_push(&sources->list) = (Weighed){.path = index, .program = program};
	weighed = &sources->list.items[index];
	weighed->weight += weight;
	if (program.mtime_ns &&
	    (!weighed->program.mtime_ns || program.mtime_ns < weighed->program.mtime_ns))
		weighed->program.mtime_ns = program.mtime_ns;
}

void sources_weigh_symbol(Sources *sources, const struct rec_symbol *symbol, uint64_t weight,
			  uint64_t mtime_ns)
{
	const char *p = symbol->text;

	for (uint32_t i = 0; i < symbol->count; i++) {
		const char *name = p + sizeof(u32);
		const char *path = name + strlen(name) + 1;

		sources_weigh(sources, path, weight, (SourceUser){symbol->file, mtime_ns});
		p = path + strlen(path) + 1;
	}
}

/* Sorts by weight, the largest first, and then by name, so that the choice is reproducible. */
static int compare_weights(const void *a, const void *b, void *sources)
{
	const Weighed *x = a, *y = b;
	const Strings *paths = &((const Sources *)sources)->paths;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(strings_get(paths, x->path), strings_get(paths, y->path));
}

/* ---- opening ---------------------------------------------------------------- */

/*
 * Returns an absolute path without ".", ".." and empty parts, by its text alone; the caller frees
 * it.
 */
static char *without_dots(const char *path)
{
	char *clean = xmalloc(strlen(path) + 2), *end = clean;

	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 2 && !memcmp(path, "..", 2)) {
			while (end > clean && *--end != '/')
				;
		} else if (length > 0 && !(length == 1 && *path == '.')) {
			*end++ = '/';
			end = mempcpy(end, path, length);
		}
		path += length;
		path += *path == '/';
	}
	if (end == clean)
		*end++ = '/';
	*end = '\0';
	return clean;
}

int sources_open_by_path(void *unused, uint32_t file, const char *path, struct stat *ret_stat)
{
	_cleanup_free_ char *clean = NULL;
	int fd;

	(void)unused;
	(void)file;
	if (*path != '/')
		return -ENOENT;
	/*
	 * Links such as /proc/PID/fd, cwd or root are refused: they lead past folders that are
	 * closed to the user, and to files that wallprof itself holds open.
	 */
	fd = safe_open(path, RESOLVE_NO_MAGICLINKS, ret_stat);
	if (fd >= 0)
		return fd;
	clean = without_dots(path);
	return strcmp(clean, path) ? safe_open(clean, RESOLVE_NO_MAGICLINKS, ret_stat) : fd;
}

/*
 * Returns 0 with a descriptor or a negative errno in *ret_fd, or the errno of changing the rights.
 */
static int open_as_invoker(const Sources *sources, const AsInvoker *as, const Weighed *weighed,
			   struct stat *ret_stat, int *ret_fd)
{
	int error = as_invoker_enter(as);

	if (error)
		return error;
	*ret_fd = sources->options.open(sources->options.open_user, weighed->program.file,
					strings_get(&sources->paths, weighed->path), ret_stat);
	error = as_invoker_leave(as);
	if (error)
		closep(ret_fd);
	return error;
}

/* ---- reading ---------------------------------------------------------------- */

/* Reads up to size bytes: less if the file has become shorter. */
static ssize_t read_text(int fd, char *text, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = TEMP_FAILURE_RETRY(pread(fd, text + got, size - got, got));

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += n;
	}
	return got;
}

/*
 * Returns the record of a file, which the caller frees; NULL if the file has no text that can be
 * read.
 */
static struct rec_source *read_source(int fd, const char *path, size_t size)
{
	size_t path_size = strlen(path) + 1;
	size_t before = offsetof(struct rec_source, data) + path_size;
	_cleanup_free_ struct rec_source *source = xcalloc(1, before + size + 7);
	ssize_t got = read_text(fd, source->data + path_size, size);

	if (got <= 0 || memchr(source->data + path_size, '\0', got))
		return NULL;
	source->h = (struct record){.len = (before + got + 7) & ~(size_t)7, .kind = REC_SOURCE};
	source->text_size = got;
	memcpy(source->data, path, path_size);
	return take_pointer(source);
}

static bool is_newer(const struct stat *st, const Weighed *weighed)
{
	uint64_t mtime_ns = st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;

	return weighed->program.mtime_ns && mtime_ns > weighed->program.mtime_ns;
}

static int write_text(Sources *sources, const Weighed *weighed, int fd, const struct stat *st,
		      RecordSink sink, void *user)
{
	SourcesSummary *summary = &sources->summary;
	_cleanup_free_ struct rec_source *source = NULL;

	/* No more than this is read: the files in /proc have size 0, and some of them never end. */
	if (st->st_size > (off_t)MIN(SOURCES_FILE_MAX, SOURCES_BUDGET - summary->bytes)) {
		summary->omitted++;
		return 0;
	}
	source = read_source(fd, strings_get(&sources->paths, weighed->path), st->st_size);
	if (!source) {
		summary->unreadable++;
		return 0;
	}
	summary->read++;
	summary->bytes += source->text_size;
	summary->newer += is_newer(st, weighed);
	return sink(user, &source->h);
}

static int write_source(Sources *sources, const AsInvoker *as, const Weighed *weighed,
			RecordSink sink, void *user)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int error = open_as_invoker(sources, as, weighed, &st, &fd);

	if (error)
		return error;
	if (fd < 0) {
		log_verbose("reading source file %s failed: %s",
			    strings_get(&sources->paths, weighed->path), strerror(-fd));
		sources->summary.unreadable++;
		return 0;
	}
	return write_text(sources, weighed, fd, &st, sink, user);
}

static void log_summary(const SourcesSummary *summary)
{
	log_verbose("%u source files recorded (%" PRIu64 " bytes); %u cannot be read",
		    summary->read, summary->bytes, summary->unreadable);
	if (summary->omitted)
		log_info("%u source files omitted (limits: %u MB per file, %u MB in total)",
			 summary->omitted, SOURCES_FILE_MAX >> 20, SOURCES_BUDGET >> 20);
	if (summary->newer)
		log_info("%u source files are newer than the program; line numbers may be wrong",
			 summary->newer);
}

int sources_write(Sources *sources, RecordSink sink, void *user, SourcesSummary *ret_summary)
{
	_cleanup_(as_invoker_free) AsInvoker as;
	int error = as_invoker_prepare(sources->options.invoker, &as);

	if (sources->list.count)
		qsort_r(sources->list.items, sources->list.count, sizeof(Weighed), compare_weights,
			sources);
	for (size_t i = 0; i < sources->list.count && !error; i++)
		error = write_source(sources, &as, &sources->list.items[i], sink, user);
	if (!error)
		log_summary(&sources->summary);
	if (ret_summary)
		*ret_summary = sources->summary;
	return error;
}
