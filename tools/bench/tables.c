/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-tables RUNS [FILE…]: how long it takes until the unwind tables of these objects (the 300
 * largest libraries of the system, if none is named) are ready, all wanted at once: RUNS times with
 * an empty cache and, in turns, from the cache that this has filled.
 *
 * Prints the medians in milliseconds, what came of the objects, and CPU time and the largest
 * resident size of the recorder's side and of the children. Each run is a process of its own.
 */
#include "table_service.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARIES     "/usr/lib/x86_64-linux-gnu"
#define LIBRARIES_MAX 300
#define DEADLINE_NS   (120 * NSEC_PER_SEC)
#define MODES	      2

typedef struct Object {
	char *path;
	uint64_t size;
	ino_t inode;
	int fd;
	ElfIdentity identity;
} Object;

typedef VEC(Object) Objects;

typedef struct Result {
	uint64_t ns, last_ns, rows, bytes; /* ns: from the begin to the last answer */
	uint64_t cpu_us, child_cpu_us;
	TableServiceCounts counts;
	long resident_mb, child_mb;
	size_t left;
} Result;

/* ---- the objects ------------------------------------------------------------------------ */

/* Takes path over; leaves out what is no ELF file, and what is there by another name. */
static void add_object(Objects *objects, char *path)
{
	Object object = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
	struct stat st;

	if (object.fd >= 0 && !fstat(object.fd, &st) && S_ISREG(st.st_mode) &&
	    !elf_identify(object.fd, &object.identity)) {
		object.size = st.st_size;
		object.inode = st.st_ino;
		closep(&object.fd); /* until it is known to be among the largest */
		*vec_push(objects) = object;
		return;
	}
	closep(&object.fd);
	free(path);
}

static int compare_objects(const void *a, const void *b)
{
	const Object *x = a, *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static void drop_last(Objects *objects)
{
	Object *object = &objects->items[--objects->count];

	free(object->path);
	elf_identity_free(&object->identity);
}

static void keep_largest(Objects *objects, size_t count)
{
	size_t kept = 0;

	if (objects->count)
		qsort(objects->items, objects->count, sizeof(Object), compare_objects);
	for (size_t i = 0; i < objects->count; i++) {
		Object object = objects->items[i];

		if (kept && object.inode == objects->items[kept - 1].inode)
			continue;
		objects->items[i] = objects->items[kept];
		objects->items[kept++] = object;
	}
	while (objects->count > MIN(kept, count))
		drop_last(objects);
}

static void add_libraries(Objects *objects)
{
	DIR *folder = opendir(LIBRARIES);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (strstr(entry->d_name, ".so"))
			add_object(objects, xasprintf(LIBRARIES "/%s", entry->d_name));
	if (folder)
		closedir(folder);
	keep_largest(objects, LIBRARIES_MAX);
}

/* ---- one run ------------------------------------------------------------------------------ */

static void take_table(void *user, uint32_t id, const UnwindTable *table, int error, int debug)
{
	Result *result = user;

	(void)id;
	(void)error;
	(void)debug;
	result->last_ns = now_ns();
	if (!table)
		return;
	result->rows += table->rows.count;
	result->bytes += table->rows.count * sizeof(struct unwind_row) +
			 table->rules.count * sizeof(struct unwind_rule);
}

static void take_usage(int who, long *ret_resident_mb, uint64_t *ret_cpu_us)
{
	struct rusage usage;

	getrusage(who, &usage);
	*ret_resident_mb = usage.ru_maxrss / 1024;
	*ret_cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		      usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static Result measure(const Objects *objects)
{
	Invoker invoker = {};
	TableServiceOptions options = {.invoker = &invoker};
	TableService *service;
	Result result = {};
	uint64_t begin;

	if (table_service_new(&options, &service))
		_exit(1);
	begin = now_ns();
	for (size_t i = 0; i < objects->count; i++) {
		const Object *object = &objects->items[i];

		table_service_request(service,
				      &(TableRequest){
					      .id = i + 1,
					      .fd = object->fd,
					      .base_svma = object->identity.base_svma,
					      .build_id = object->identity.build_id,
					      .build_id_len = object->identity.build_id_len,
				      });
	}
	result.left = table_service_wait(service, begin + DEADLINE_NS, take_table, &result);
	result.ns = result.last_ns - begin;
	result.counts = table_service_counts(service);
	take_usage(RUSAGE_SELF, &result.resident_mb, &result.cpu_us);
	table_service_free(service);
	take_usage(RUSAGE_CHILDREN, &result.child_mb, &result.child_cpu_us);
	return result;
}

/* Runs in a process of its own, so that its memory is only that of the build. */
static bool run_apart(const Objects *objects, Result *ret_result)
{
	int pipe_fds[2], status;
	pid_t pid;
	ssize_t got;

	fflush(stdout);
	if (pipe(pipe_fds) || (pid = fork()) < 0)
		return false;
	if (pid == 0) {
		Result result = measure(objects);

		_exit(write_all(pipe_fds[1], &result, sizeof(result)) < 0);
	}
	close(pipe_fds[1]);
	got = read(pipe_fds[0], ret_result, sizeof(*ret_result));
	close(pipe_fds[0]);
	return waitpid(pid, &status, 0) == pid && status == 0 && got == sizeof(*ret_result);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static int compare_ns(const void *a, const void *b)
{
	const Result *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void print_results(const char *label, Result *results, size_t count)
{
	const Result *median = &results[count / 2];

	qsort(results, count, sizeof(*results), compare_ns);
	printf("%s: median %.1f ms (%.1f to %.1f); %lu from the cache, %lu built, %lu without, %zu "
	       "not ready; "
	       "%lu rows, %.1f MB; resident: %ld MB, largest child %ld MB; CPU: %.1f ms, children "
	       "%.1f ms\n",
	       label, median->ns / 1e6, results[0].ns / 1e6, results[count - 1].ns / 1e6,
	       median->counts.cached, median->counts.built, median->counts.failed, median->left,
	       median->rows, median->bytes / 1e6, median->resident_mb, median->child_mb,
	       median->cpu_us / 1e3, median->child_cpu_us / 1e3);
}

/*
 * Each pair of runs has a cache of its own, and all go at the end: a file system that has just
 * deleted some files takes longer to make others (ext4 leaves their numbers alone for some minutes;
 * TMPDIR says where).
 */
static bool run_all(const Objects *objects, size_t runs, const char *folder)
{
	static const char *const labels[MODES] = {"cold", "cached"};
	_cleanup_free_ char *empty = xasprintf("rm -rf '%s'", folder);
	_cleanup_free_ Result *results = xcalloc(MODES * runs, sizeof(*results));

	for (size_t i = 0; i < runs; i++) {
		_cleanup_free_ char *cache = xasprintf("%s/%zu", folder, i);

		setenv("XDG_CACHE_HOME", cache, 1);
		for (size_t mode = 0; mode < MODES; mode++)
			if (!run_apart(objects, &results[mode * runs + i]))
				return false;
	}
	for (size_t mode = 0; mode < MODES; mode++)
		print_results(labels[mode], results + mode * runs, runs);
	return system(empty) == 0;
}

/* Each object takes a descriptor here, and another while it waits. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	const char *temporary = getenv("TMPDIR");
	_cleanup_free_ char *folder =
		xasprintf("%s/bench-tables-XXXXXX", temporary ? temporary : "/tmp");
	Objects objects = {};
	uint64_t runs;
	bool good;

	if (argc < 2 || parse_u64(argv[1], &runs) || runs == 0 || !mkdtemp(folder)) {
		fprintf(stderr, "usage: bench-tables RUNS [FILE…]\n");
		return 2;
	}
	raise_limit();
	for (int i = 2; i < argc; i++)
		add_object(&objects, xstrdup(argv[i]));
	if (argc == 2)
		add_libraries(&objects);
	for (size_t i = 0; i < objects.count; i++)
		objects.items[i].fd = open(objects.items[i].path, O_RDONLY | O_CLOEXEC);
	printf("%zu objects\n", objects.count);
	good = run_all(&objects, runs, folder);
	for (size_t i = 0; i < objects.count; i++)
		closep(&objects.items[i].fd);
	while (objects.count)
		drop_last(&objects);
	vec_free(&objects);
	return good ? 0 : 1;
}
