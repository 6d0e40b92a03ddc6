/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * faults TRUTH FILE KIND:COUNT… - for each KIND a child process takes so many page faults of it,
 * and says in TRUTH what the kernel counted meanwhile:
 *
 *   {"kind":"touch","pid":1,"count":2,"min_flt":3,"maj_flt":4,"begin_ns":5,"end_ns":6}
 *
 * touch: writes to memory for the first time; cow: to memory that it has from its parent;
 * file: reads a page of FILE that is in memory; cold: one that is not; write: writes to a page of
 * FILE, mapped to be shared, that it has read; kernel: has the kernel write to memory for the
 * first time; mlock: has the kernel get memory without an instruction; segv: memory that is not
 * there. storm: as touch, but the same memory again and again, 2,000 every 10 ms. Of `file` there
 * are fewer: the kernel maps what is in memory around a page with it. Times are CLOCK_MONOTONIC.
 * FILE has a page for each fault of the largest count.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	 4096UL
#define STORM	 2000UL
#define STORM_NS 10000000UL

static int file, zero;
static sigjmp_buf back;
static volatile char sink;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Memory of which each page is one: no huge pages. */
static char *memory(size_t count, int protection)
{
	char *pages = mmap(NULL, count * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(pages != MAP_FAILED, "mmap");
	check(madvise(pages, count * PAGE, MADV_NOHUGEPAGE) == 0 || errno == EINVAL, "madvise");
	return pages;
}

/* Pages of the file, of which each is read by itself. */
static char *mapped_file(size_t count, int protection, int flags)
{
	char *pages = mmap(NULL, count * PAGE, protection, flags, file, 0);

	check(pages != MAP_FAILED, "mmap");
	check(madvise(pages, count * PAGE, MADV_RANDOM) == 0, "madvise");
	return pages;
}

static void read_all(const char *pages, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sink = pages[i * PAGE];
}

static void write_all(char *pages, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pages[i * PAGE] = 1;
}

static void on_signal(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static void fail(char *page)
{
	if (sigsetjmp(back, 1) == 0)
		sink = *page;
}

static void fail_all(char *pages, size_t count)
{
	struct sigaction action = {.sa_handler = on_signal};

	check(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
	for (size_t i = 0; i < count; i++)
		fail(pages + i * PAGE);
}

static void wait_until(uint64_t ns)
{
	struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void storm(char *pages, size_t count)
{
	uint64_t start = now_ns();

	for (size_t done = 0; done < count; done += STORM) {
		write_all(pages, STORM < count - done ? STORM : count - done);
		check(madvise(pages, STORM * PAGE, MADV_DONTNEED) == 0, "madvise");
		wait_until(start + (done / STORM + 1) * STORM_NS);
	}
}

/* What must be there before the kernel is asked what it has counted. */
typedef struct Step {
	char *pages;
	size_t count;
} Step;

static void prepare(const char *kind, Step *step)
{
	char byte;

	if (!strcmp(kind, "file") || !strcmp(kind, "cold"))
		step->pages = mapped_file(step->count, PROT_READ, MAP_PRIVATE);
	else if (!strcmp(kind, "write"))
		step->pages = mapped_file(step->count, PROT_READ | PROT_WRITE, MAP_SHARED);
	else if (!strcmp(kind, "segv"))
		step->pages = memory(step->count, PROT_NONE);
	else if (!strcmp(kind, "storm"))
		step->pages = memory(STORM, PROT_READ | PROT_WRITE);
	else if (strcmp(kind, "cow"))
		step->pages = memory(step->count, PROT_READ | PROT_WRITE);
	if (!strcmp(kind, "cold")) {
		check(fdatasync(file) == 0, "fdatasync");
		check(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
	} else if (!strcmp(kind, "file") || !strcmp(kind, "write")) {
		for (size_t i = 0; i < step->count; i++)
			check(pread(file, &byte, 1, i * PAGE) == 1, "pread");
	}
	if (!strcmp(kind, "write"))
		read_all(step->pages, step->count);
}

static void take_faults(const char *kind, const Step *step)
{
	if (!strcmp(kind, "touch") || !strcmp(kind, "cow") || !strcmp(kind, "write"))
		write_all(step->pages, step->count);
	else if (!strcmp(kind, "file") || !strcmp(kind, "cold"))
		read_all(step->pages, step->count);
	else if (!strcmp(kind, "kernel"))
		for (size_t i = 0; i < step->count; i++)
			check(read(zero, step->pages + i * PAGE, 1) == 1, "read");
	else if (!strcmp(kind, "mlock"))
		check(mlock(step->pages, step->count * PAGE) == 0, "mlock");
	else if (!strcmp(kind, "segv"))
		fail_all(step->pages, step->count);
	else if (!strcmp(kind, "storm"))
		storm(step->pages, step->count);
	else
		check(0, kind);
}

static void child(const char *truth, const char *kind, Step step)
{
	struct rusage before, after;
	uint64_t begin_ns, end_ns;
	FILE *out = fopen(truth, "a");
	char buffer[BUFSIZ] = {};

	check(out != NULL, truth);
	setvbuf(out, buffer, _IOFBF, sizeof(buffer));
	prepare(kind, &step);
	begin_ns = now_ns();
	getrusage(RUSAGE_SELF, &before);
	take_faults(kind, &step);
	getrusage(RUSAGE_SELF, &after);
	end_ns = now_ns();
	fprintf(out,
		"{\"kind\":\"%s\",\"pid\":%d,\"count\":%zu,\"min_flt\":%ld,\"maj_flt\":%ld,"
		"\"begin_ns\":%llu,\"end_ns\":%llu}\n",
		kind, getpid(), step.count, after.ru_minflt - before.ru_minflt,
		after.ru_majflt - before.ru_majflt, (unsigned long long)begin_ns,
		(unsigned long long)end_ns);
	check(fclose(out) == 0, truth);
	_exit(0);
}

static void run(const char *truth, const char *text)
{
	char kind[16];
	Step step = {};
	int status;
	pid_t pid;

	check(sscanf(text, "%15[a-z]:%zu", kind, &step.count) == 2, text);
	if (!strcmp(kind, "cow")) {
		step.pages = memory(step.count, PROT_READ | PROT_WRITE);
		write_all(step.pages, step.count);
	}
	pid = fork();
	check(pid >= 0, "fork");
	if (pid == 0)
		child(truth, kind, step);
	check(waitpid(pid, &status, 0) == pid && status == 0, kind);
}

int main(int argc, char **argv)
{
	check(argc > 3, "usage: faults TRUTH FILE KIND:COUNT…");
	file = open(argv[2], O_RDWR | O_CLOEXEC);
	check(file >= 0, argv[2]);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	check(zero >= 0, "/dev/zero");
	for (int i = 3; i < argc; i++)
		run(argv[1], argv[i]);
	return 0;
}
