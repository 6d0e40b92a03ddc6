/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storm - more of everything than a program has any use for:
 *
 *   storm processes N   N children, up to 50 at a time, each of which ends at once, and every third
 *                       has a child of its own first
 *   storm threads N     N threads that are there at the same time, each of which sleeps once
 *   storm execs N       becomes itself N times
 *   storm files N       N children, each of which maps another file, for a moment; the files are
 * made in the current folder, and stay
 *
 * Prints how many there were in all.
 */
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_A_TIME  50
#define STACK_SIZE (64 << 10)
#define PAGE_SIZE  4096

static int fail(const char *what)
{
	perror(what);
	return 2;
}

static int child(long number)
{
	if (number % 3 == 0 && fork() == 0)
		_exit(0);
	while (wait(NULL) > 0)
		;
	return number % 7;
}

/* How long a child has a file mapped: the recorder looks at it meanwhile. */
#define MAPPED_US 100000

/* The smallest file that is a library: it has one page, which may be executed. */
static int mapping_child(long number)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
	} file = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1},
		.segment = {.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_filesz = PAGE_SIZE,
			    .p_memsz = PAGE_SIZE,
			    .p_align = PAGE_SIZE},
	};
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "storm-%ld.so", number);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, &file, sizeof(file)) != sizeof(file) || ftruncate(fd, PAGE_SIZE) ||
	    mmap(NULL, PAGE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return fail(name);
	usleep(MAPPED_US);
	return 0;
}

/* Starts that many children, 50 at a time. Returns 0 if all of them could be started. */
static int start_children(long count, int (*run)(long number))
{
	long alive = 0;

	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return fail("fork");
		if (pid == 0)
			_exit(run(i));
		if (++alive == AT_A_TIME) {
			wait(NULL);
			alive--;
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

static int processes(long count)
{
	int status = start_children(count, child);

	if (status == 0)
		printf("%ld\n", 1 + count + (count + 2) / 3);
	return status;
}

static int files(long count)
{
	int status = start_children(count, mapping_child);

	if (status == 0)
		printf("%ld\n", 1 + count);
	return status;
}

static sem_t begun, go;

static void *sleeper(void *unused)
{
	(void)unused;
	sem_post(&begun);
	sem_wait(&go);
	return NULL;
}

static int threads(long count)
{
	pthread_t *list = calloc(count, sizeof(*list));
	pthread_attr_t attr;

	sem_init(&begun, 0, 0);
	sem_init(&go, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (long i = 0; i < count; i++)
		if (pthread_create(&list[i], &attr, sleeper, NULL))
			return fail("pthread_create");
	for (long i = 0; i < count; i++)
		sem_wait(&begun);
	for (long i = 0; i < count; i++)
		sem_post(&go);
	for (long i = 0; i < count; i++)
		pthread_join(list[i], NULL);
	printf("%ld\n", 1 + count);
	return 0;
}

/* How many are left, and how many there were to be. */
static int execs(char **argv, long left)
{
	char number[32];

	if (left == 0) {
		puts(argv[3]);
		return 0;
	}
	snprintf(number, sizeof(number), "%ld", left - 1);
	execl("/proc/self/exe", argv[0], argv[1], number, argv[3] ? argv[3] : argv[2], NULL);
	return fail("exec");
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 0;

	if (argc > 2 && !strcmp(argv[1], "processes"))
		return processes(count);
	if (argc > 2 && !strcmp(argv[1], "files"))
		return files(count);
	if (argc > 2 && !strcmp(argv[1], "threads"))
		return threads(count);
	if (argc > 2 && !strcmp(argv[1], "execs"))
		return execs(argv, count);
	fprintf(stderr, "usage: storm processes|threads|execs|files N\n");
	return 2;
}
