/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "truth.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct Wait {
	const char *kind;
	uint64_t begin_ns, end_ns;
} Wait;

struct TruthThread {
	TruthThread *next;
	char name[16];
	int tid;
	uint64_t begin_ns, end_ns, cpu_begin_ns, cpu_ns;
	uint64_t schedstat_run_ns, schedstat_delay_ns;
	uint64_t nvcsw, nivcsw; /* read by the main thread once this one is parked */
	char object[TRUTH_OBJECT_SIZE];
	Wait *waits;
	size_t wait_count, wait_capacity;
};

static TruthThread *threads;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_parked = PTHREAD_COND_INITIALIZER;
static unsigned int unparked;
static const char *truth_path;

void truth_check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

static bool take_option(const char *name, const char *text, const TruthOption *options)
{
	for (; options->name; options++) {
		char *end;

		if (strcmp(name, options->name) != 0)
			continue;
		errno = 0;
		*options->value = strtoull(text, &end, 10);
		return errno == 0 && end != text && *end == '\0';
	}
	return false;
}

void truth_options(int argc, char **argv, const TruthOption *options)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (value && strcmp(argv[i], "--truth") == 0) {
			truth_path = value;
		} else if (!value || strncmp(argv[i], "--", 2) != 0 ||
			   !take_option(argv[i] + 2, value, options)) {
			fprintf(stderr, "%s: bad option %s\n", program_invocation_short_name,
				argv[i]);
			exit(2);
		}
	}
}

const char *truth_file(void)
{
	return truth_path;
}

void truth_set_file(const char *path)
{
	truth_path = path;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t truth_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t truth_cpu(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

TruthThread *truth_begin(const char *fmt, ...)
{
	TruthThread *thread = calloc(1, sizeof(*thread));
	va_list args;

	truth_check(thread, "calloc");
	thread->cpu_begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	thread->begin_ns = truth_now();
	thread->tid = gettid();
	va_start(args, fmt);
	vsnprintf(thread->name, sizeof(thread->name), fmt, args);
	va_end(args);
	pthread_setname_np(pthread_self(), thread->name);
	pthread_mutex_lock(&threads_lock);
	thread->next = threads;
	threads = thread;
	pthread_mutex_unlock(&threads_lock);
	return thread;
}

void truth_confine(uint64_t cpus)
{
	cpu_set_t allowed, wanted;

	CPU_ZERO(&wanted);
	truth_check(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE && (uint64_t)CPU_COUNT(&wanted) < cpus; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			CPU_SET(cpu, &wanted);
	truth_check(sched_setaffinity(0, sizeof(wanted), &wanted) == 0, "sched_setaffinity");
}

void truth_spawn(void *(*function)(void *), uint64_t number)
{
	pthread_t thread;

	pthread_mutex_lock(&threads_lock);
	unparked++;
	pthread_mutex_unlock(&threads_lock);
	errno = pthread_create(&thread, NULL, function, (void *)(uintptr_t)number);
	truth_check(errno == 0, "pthread_create");
}

void truth_wait(TruthThread *thread, const char *kind, uint64_t begin_ns)
{
	uint64_t end_ns = truth_now(); /* before malloc's lock, for which it may wait */

	if (thread->wait_count == thread->wait_capacity) {
		thread->wait_capacity = thread->wait_capacity ? thread->wait_capacity * 2 : 16;
		thread->waits =
			realloc(thread->waits, thread->wait_capacity * sizeof(*thread->waits));
		truth_check(thread->waits, "realloc");
	}
	thread->waits[thread->wait_count++] = (Wait){kind, begin_ns, end_ns};
}

void truth_object(TruthThread *thread, const char *object)
{
	snprintf(thread->object, sizeof(thread->object), "%s", object);
}

static void read_schedstat(TruthThread *thread)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", thread->tid);
	file = fopen(path, "re");
	truth_check(file, path);
	if (fscanf(file, "%lu %lu", &thread->schedstat_run_ns, &thread->schedstat_delay_ns) != 2)
		truth_check(false, path);
	fclose(file);
}

/*
 * Returns false while the thread is not asleep, or since when it did not switch is
 * not known: it is called sleeping shortly before it gives up its CPU.
 */
static bool read_switches(TruthThread *thread)
{
	uint64_t before = thread->nvcsw + thread->nivcsw;
	char path[64], line[256];
	bool asleep = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread->tid);
	file = fopen(path, "re");
	truth_check(file, path);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "State:", 6) == 0)
			asleep = strchr(line, 'S') && strstr(line, "(sleeping)");
		sscanf(line, "voluntary_ctxt_switches: %lu", &thread->nvcsw);
		sscanf(line, "nonvoluntary_ctxt_switches: %lu", &thread->nivcsw);
	}
	fclose(file);
	return asleep && thread->nvcsw + thread->nivcsw == before;
}

void truth_park(TruthThread *thread)
{
	read_schedstat(thread);
	thread->end_ns = truth_now();
	thread->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	pthread_mutex_lock(&threads_lock);
	if (--unparked == 0)
		pthread_cond_signal(&all_parked);
	pthread_mutex_unlock(&threads_lock);
	for (;;)
		pause();
}

void truth_sleep(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

void truth_burn(uint64_t cpu_ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
	volatile uint64_t work = 0;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 20000; i++)
			work += (uint64_t)i;
	(void)work;
}

static void print_thread(FILE *out, const TruthThread *t)
{
	fprintf(out,
		"\n{\"tid\":%d,\"name\":\"%s\",\"begin_ns\":%lu,\"end_ns\":%lu,"
		"\"cpu_begin_ns\":%lu,\"cpu_ns\":%lu,"
		"\"schedstat_run_ns\":%lu,\"schedstat_delay_ns\":%lu,\"nvcsw\":%lu,\"nivcsw\":%lu,"
		"\"waits\":[",
		t->tid, t->name, t->begin_ns, t->end_ns, t->cpu_begin_ns, t->cpu_ns,
		t->schedstat_run_ns, t->schedstat_delay_ns, t->nvcsw, t->nivcsw);
	for (size_t i = 0; i < t->wait_count; i++)
		fprintf(out, "%s[\"%s\",%lu,%lu]", i ? "," : "", t->waits[i].kind,
			t->waits[i].begin_ns, t->waits[i].end_ns);
	fprintf(out, "],\"object\":\"%s\"}", t->object);
}

/*
 * What the profile's own clock, which counts from the epoch, is to CLOCK_MONOTONIC: the most of
 * several readings, because a thread that loses its CPU between the two finds too little.
 */
uint64_t truth_realtime_offset(void)
{
	uint64_t most = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t realtime = clock_ns(CLOCK_REALTIME);
		uint64_t offset = realtime - truth_now();

		most = offset > most ? offset : most;
	}
	return most;
}

static void print_all(FILE *out)
{
	uint64_t offset = truth_realtime_offset();

	fprintf(out, "{\"pid\":%d,\"realtime_offset_ns\":%lu,\"threads\":[", getpid(), offset);
	for (const TruthThread *t = threads; t; t = t->next) {
		print_thread(out, t);
		if (t->next)
			fputc(',', out);
	}
	fputs("\n]}\n", out);
}

static void await_parked(TruthThread *main_thread)
{
	uint64_t begin = truth_now();
	bool waited = false;

	pthread_mutex_lock(&threads_lock);
	while (unparked) {
		pthread_cond_wait(&all_parked, &threads_lock);
		waited = true;
	}
	pthread_mutex_unlock(&threads_lock);
	if (waited)
		truth_wait(main_thread, "condvar", begin);
}

/* Waits for the other threads, then reads their final counts. */
static void await_final_counts(TruthThread *main_thread)
{
	bool all_asleep;

	await_parked(main_thread);
	do {
		all_asleep = true;
		for (TruthThread *t = threads; t; t = t->next)
			if (t != main_thread && !read_switches(t))
				all_asleep = false;
		if (!all_asleep) {
			uint64_t begin = truth_now();

			truth_sleep(NSEC_PER_MSEC);
			truth_wait(main_thread, "sleep", begin);
		}
	} while (!all_asleep);
}

void truth_finish(TruthThread *main_thread)
{
	struct rusage usage;
	FILE *out = stdout;

	await_final_counts(main_thread);
	if (truth_path) {
		out = fopen(truth_path, "we");
		truth_check(out, truth_path);
	}
	read_schedstat(main_thread);
	main_thread->end_ns = truth_now();
	main_thread->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	getrusage(RUSAGE_THREAD, &usage);
	main_thread->nvcsw = (uint64_t)usage.ru_nvcsw;
	main_thread->nivcsw = (uint64_t)usage.ru_nivcsw;
	print_all(out);
	truth_check(fclose(out) == 0, "truth");
	_exit(0);
}
