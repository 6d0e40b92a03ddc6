/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit - makes functions at run time, in memory without a file, and burns `--first`, `--second`
 * and `--third` milliseconds of CPU time in jit_first, jit_second and jit_third.
 *
 * --map 1: names them in /tmp/perf-PID.map; --dump 1: in jit-PID.dump in the current folder, with
 * lines 10, 20 and 30 of made-up.jit. --reuse 1: the second is put where the first was.
 * --late MS: the map is begun so long after the memory was there.
 * --fork 1: a child burns the second's time. The truth is how much CPU time each took.
 */
#include "truth.h"
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOM 256 /* from one function to the next */

/* void f(unsigned long n) { while (--n); }, with a frame. */
static const uint8_t code[] = {
	0x55,		  /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0x48, 0xff, 0xcf, /* dec %rdi */
	0x75, 0xfb,	  /* jnz to dec */
	0x5d,		  /* pop %rbp */
	0xc3,		  /* ret */
};

typedef struct Function {
	const char *name;
	uint32_t line;
	uint64_t ms;
	uint64_t cpu_ns; /* the truth */
	pid_t pid;
} Function;

static uint64_t with_map, with_dump, reuse, with_fork, late_ms;
static Function *functions; /* shared with the child */
static uint8_t *memory;
static FILE *map, *dump;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static void begin_map(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	truth_check(map, path);
}

static void put(const void *data, size_t size)
{
	truth_check(fwrite(data, size, 1, dump) == 1, "the dump");
}

static void put_u32(uint32_t value)
{
	put(&value, sizeof(value));
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof(value));
}

static void put_record(uint32_t id, size_t body)
{
	put_u32(id);
	put_u32(16 + body);
	put_u64(truth_now());
}

/* The format of tools/perf/Documentation/jitdump-specification.txt of Linux. */
static void begin_dump(void)
{
	char path[64];

	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	dump = fopen(path, "w+");
	truth_check(dump, path);
	put("DTiJ", 4);
	put_u32(1);
	put_u32(40);
	put_u32(EM_X86_64);
	put_u32(0);
	put_u32(getpid());
	put_u64(truth_now());
	put_u64(0);
	truth_check(fflush(dump) == 0, path);
	truth_check(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) !=
			    MAP_FAILED,
		    "mmap of the dump");
}

static void dump_function(const Function *function, uint64_t start, uint64_t index)
{
	static const char source[] = "made-up.jit";

	put_record(2, 16 + 16 + sizeof(source));
	put_u64(start);
	put_u64(1);
	put_u64(start);
	put_u32(function->line);
	put_u32(0);
	put(source, sizeof(source));

	put_record(0, 40 + strlen(function->name) + 1 + sizeof(code));
	put_u32(getpid());
	put_u32(getpid());
	put_u64(start);
	put_u64(start);
	put_u64(sizeof(code));
	put_u64(index);
	put(function->name, strlen(function->name) + 1);
	put(code, sizeof(code));
	truth_check(fflush(dump) == 0, "the dump");
}

static void (*load(const Function *function, unsigned place))(unsigned long n)
{
	uint8_t *start = memory + place * ROOM;

	memcpy(start, code, sizeof(code));
	if (map) {
		fprintf(map, "%lx %zx %s\n", (unsigned long)start, sizeof(code), function->name);
		truth_check(fflush(map) == 0, "the map");
	}
	if (dump)
		dump_function(function, (uintptr_t)start, function - functions);
	return (void (*)(unsigned long n))start;
}

static void burn(Function *function, void (*made)(unsigned long n))
{
	uint64_t begin = cpu_ns();

	function->pid = getpid();
	while ((function->cpu_ns = cpu_ns() - begin) < function->ms * NSEC_PER_MSEC)
		made(1000000);
}

static void burn_in_child(Function *function, void (*made)(unsigned long n))
{
	pid_t child = fork();

	truth_check(child >= 0, "fork");
	if (child == 0) {
		burn(function, made);
		_exit(0);
	}
	truth_check(waitpid(child, NULL, 0) == child, "waitpid");
}

static void write_truth(void)
{
	FILE *file = truth_file() ? fopen(truth_file(), "w") : stdout;

	truth_check(file, "the truth");
	fputs("{", file);
	for (int i = 0; i < 3; i++)
		fprintf(file, "%s\"%s\": {\"cpu_ns\": %lu, \"pid\": %d, \"line\": %u}",
			i ? ", " : "", functions[i].name, functions[i].cpu_ns, functions[i].pid,
			functions[i].line);
	fputs("}\n", file);
	truth_check(fclose(file) == 0, "the truth");
}

int main(int argc, char **argv)
{
	Function wanted[] = {
		{.name = "jit_first", .line = 10, .ms = 100},
		{.name = "jit_second", .line = 20, .ms = 100},
		{.name = "jit_third", .line = 30, .ms = 100},
	};
	void (*made)(unsigned long n);

	truth_options(argc, argv,
		      (TruthOption[]){{"first", &wanted[0].ms},
				      {"second", &wanted[1].ms},
				      {"third", &wanted[2].ms},
				      {"map", &with_map},
				      {"dump", &with_dump},
				      {"reuse", &reuse},
				      {"fork", &with_fork},
				      {"late", &late_ms},
				      {}});
	functions = mmap(NULL, sizeof(wanted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	truth_check(functions != MAP_FAILED, "mmap");
	memcpy(functions, wanted, sizeof(wanted));
	if (with_dump)
		begin_dump();
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	truth_check(memory != MAP_FAILED, "mmap");
	truth_sleep(late_ms * NSEC_PER_MSEC);
	if (with_map)
		begin_map();

	burn(&functions[0], load(&functions[0], 0));
	made = load(&functions[1], reuse ? 0 : 1);
	if (with_fork)
		burn_in_child(&functions[1], made);
	else
		burn(&functions[1], made);
	burn(&functions[2], load(&functions[2], 2));
	write_truth();
	return 0;
}
