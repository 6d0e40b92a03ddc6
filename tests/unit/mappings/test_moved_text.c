/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Large texts in anonymous memory: comparing them takes many calls of a limited time, in which each
 * process has its turn.
 */
#include "moved_text.h"
#include "test_tools.h"
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	  4096UL
#define SIZE	  (32UL << 20)
#define MAX_NS	  NSEC_PER_MSEC
#define CALLS_MAX 20000
#define TEXTS_MAX 2
#define REGIONS	  8000 /* reading them takes longer than MAX_NS */

/* ---- processes ------------------------------------------------------------------------------ */

/* Writes a program of a page of headers and a text of random bytes. */
static void make_program(const char *path)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[2];
	} head = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2},
		.segments = {{.p_type = PT_LOAD,
			      .p_flags = PF_R,
			      .p_filesz = PAGE,
			      .p_memsz = PAGE,
			      .p_align = PAGE},
			     {.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_offset = PAGE,
			      .p_vaddr = PAGE,
			      .p_filesz = SIZE,
			      .p_memsz = SIZE,
			      .p_align = PAGE}},
	};
	uint64_t *bytes = xcalloc(1, PAGE + SIZE), number = 1 + random_below(1u << 30);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	memcpy(bytes, &head, sizeof(head));
	for (size_t i = PAGE / 8; i < (PAGE + SIZE) / 8; i++)
		bytes[i] = number = number * 6364136223846793005ULL + 1442695040888963407ULL;
	assert_int_equal(fwrite(bytes, 1, PAGE + SIZE, file), PAGE + SIZE);
	fclose(file);
	free(bytes);
}

/* Maps the program's headers, and behind them a copy of its text. Returns where the text is. */
static uint64_t map_copy(const char *path, bool changed)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *base = mmap(NULL, PAGE + SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = base + PAGE;

	if (fd < 0 || base == MAP_FAILED ||
	    mmap(base, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != base ||
	    mprotect(text, SIZE, PROT_READ | PROT_WRITE) ||
	    pread(fd, text, SIZE, PAGE) != (ssize_t)SIZE)
		_exit(1);
	text[SIZE - 1] ^= changed;
	if (mprotect(text, SIZE, PROT_READ | PROT_EXEC))
		_exit(1);
	return (uint64_t)(uintptr_t)text;
}

static void map_regions(void)
{
	char *base = mmap(NULL, 2 * REGIONS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < REGIONS; i++)
		if (mprotect(base + 2 * i * PAGE, PAGE, PROT_READ))
			_exit(1);
}

typedef struct Target {
	pid_t pid;
	size_t count;
	uint64_t texts[TEXTS_MAX];
} Target;

typedef struct Kind {
	bool changed, has_regions;
	size_t texts;
} Kind;

/* Starts a process that has copies of the texts of the programs from number `first` on. */
static Target start_target(const char *folder, size_t first, Kind kind)
{
	uint64_t *shared =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	Target target = {.pid = fork(), .count = kind.texts};

	assert_true(target.pid >= 0);
	if (target.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < kind.texts; i++) {
			_cleanup_free_ char *path = xasprintf("%s/%zu", folder, first + i);

			shared[i] = map_copy(path, kind.changed);
		}
		if (kind.has_regions)
			map_regions();
		__atomic_store_n(&shared[TEXTS_MAX], 1, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	while (!__atomic_load_n(&shared[TEXTS_MAX], __ATOMIC_ACQUIRE)) {
		assert_int_equal(waitpid(target.pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	memcpy(target.texts, shared, sizeof(target.texts));
	munmap(shared, PAGE);
	return target;
}

static void end_target(const Target *target)
{
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
}

/* ---- checking ------------------------------------------------------------------------------- */

typedef struct Found {
	size_t count;
	uint32_t first; /* the process whose text was found first */
} Found;

static int count_mappings(void *user, const struct record *record)
{
	const struct rec_mapping *mapping = (const void *)record;
	Found *found = user;

	if (record->kind != REC_MAPPING)
		return 0;
	assert_int_equal(mapping->end - mapping->start, SIZE);
	if (found->count++ == 0)
		found->first = mapping->ns_tgid;
	return 0;
}

static void note(MappedFiles *files, const Target *target)
{
	for (size_t i = 0; i < target->count; i++)
		moved_suspects_note(mapped_files_moved(files), target->pid,
				    &(MovedSuspect){.start = target->texts[i],
						    .end = target->texts[i] + SIZE,
						    .ns = now_ns()});
}

static MovedProcess *process_of(MappedFiles *files, const Target *target)
{
	MovedSuspects *moved = mapped_files_moved(files);

	for (size_t i = 0; i < moved->processes.count; i++)
		if (moved->processes.items[i]->ns_tgid == (uint32_t)target->pid)
			return moved->processes.items[i];
	fail_msg("no process");
	return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

typedef struct Calls {
	VEC(uint64_t) ns; /* what each call that did something took, in CPU time */
	uint64_t all_ns;
} Calls;

static void check_once(Calls *calls, MappedFiles *files)
{
	uint64_t begin = cpu_ns(), took;

	assert_int_equal(moved_text_check(files, MAX_NS), 0);
	took = cpu_ns() - begin;
	calls->all_ns += took;
	if (took > MAX_NS / 20)
		*vec_push(&calls->ns) = took;
	else
		usleep(500);
}

static uint64_t median_ns(Calls *calls)
{
	assert_true(calls->ns.count > 0);
	qsort(calls->ns.items, calls->ns.count, sizeof(uint64_t), compare_numbers);
	return calls->ns.items[calls->ns.count / 2];
}

static char *make_programs(void)
{
	char *folder = make_folder();

	for (size_t i = 0; i < TEXTS_MAX; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%zu", folder, i);

		make_program(path);
	}
	return folder;
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Two texts of a process, one after the other, in many short calls. */
static void test_two_texts(void **state)
{
	char *folder = make_programs();
	Target target = start_target(folder, 0, (Kind){.texts = 2});
	Found found = {};
	MappedFiles *files = mapped_files_new(count_mappings, &found);
	Calls calls = {};

	(void)state;
	note(files, &target);
	for (unsigned i = 0; i < CALLS_MAX && found.count < 2; i++)
		check_once(&calls, files);
	assert_int_equal(found.count, 2);
	print_message("%zu calls of %.1f ms\n", calls.ns.count, median_ns(&calls) / 1e6);
	assert_true(calls.ns.count >= 4);
	assert_true(median_ns(&calls) < 4 * MAX_NS);
	vec_free(&calls.ns);
	mapped_files_free(files);
	end_target(&target);
	remove_folder(folder);
}

/* When one of two processes is done, the other has had as many turns. */
static void test_turns(void **state)
{
	char *folder = make_programs();
	Target targets[] = {start_target(folder, 0, (Kind){.texts = 1}),
			    start_target(folder, 1, (Kind){.texts = 1})};
	Found found = {};
	MappedFiles *files = mapped_files_new(count_mappings, &found);
	Calls calls = {};
	uint64_t same;

	(void)state;
	note(files, &targets[0]);
	note(files, &targets[1]);
	for (unsigned i = 0; i < CALLS_MAX && found.count < 1; i++)
		check_once(&calls, files);
	assert_int_equal(found.count, 1);
	same = process_of(files, &targets[found.first == (uint32_t)targets[0].pid])->progress.same;
	print_message("%lu of %lu bytes of the other\n", same, SIZE);
	assert_true(same > SIZE / 4);
	for (unsigned i = 0; i < CALLS_MAX && found.count < 2; i++)
		check_once(&calls, files);
	assert_int_equal(found.count, 2);
	vec_free(&calls.ns);
	mapped_files_free(files);
	end_target(&targets[0]);
	end_target(&targets[1]);
	remove_folder(folder);
}

/* The last byte differs: it is no copy, and is compared again only after a long pause. */
static void test_different(void **state)
{
	char *folder = make_programs();
	Target target = start_target(folder, 0, (Kind){.texts = 1, .changed = true});
	Found found = {};
	MappedFiles *files = mapped_files_new(count_mappings, &found);
	Calls calls = {};
	const MovedProcess *process;

	(void)state;
	note(files, &target);
	process = process_of(files, &target);
	for (unsigned i = 0; i < CALLS_MAX && !process->suspects.items[0].looks; i++)
		check_once(&calls, files);
	assert_int_equal(process->suspects.items[0].looks, 1);
	assert_int_equal(found.count, 0);
	assert_true(calls.ns.count >= 2);
	print_message("%.1f ms, next after %.1f ms\n", calls.all_ns / 1e6,
		      (process->next_ns - now_ns()) / 1e6);
	assert_true(process->next_ns > now_ns() + 20 * calls.all_ns);
	vec_free(&calls.ns);
	mapped_files_free(files);
	end_target(&target);
	remove_folder(folder);
}

/* Even if a call's time is over before the first byte was compared, it gets ahead. */
static void test_many_regions(void **state)
{
	char *folder = make_programs();
	Target target = start_target(folder, 0, (Kind){.texts = 2, .has_regions = true});
	Found found = {};
	MappedFiles *files = mapped_files_new(count_mappings, &found);
	uint64_t begin = now_ns();
	Calls calls = {};

	(void)state;
	note(files, &target);
	while (found.count < 2 && now_ns() < begin + 60 * NSEC_PER_SEC)
		check_once(&calls, files);
	print_message("%zu calls, %.1f ms of %.1f ms\n", calls.ns.count, calls.all_ns / 1e6,
		      (now_ns() - begin) / 1e6);
	assert_int_equal(found.count, 2);
	/* Reading the regions again and again does not fill the recorder's time. */
	if (calls.ns.count > 1)
		assert_true(calls.all_ns < (now_ns() - begin) / 4);
	vec_free(&calls.ns);
	mapped_files_free(files);
	end_target(&target);
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_texts),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_different),
		cmocka_unit_test(test_many_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
