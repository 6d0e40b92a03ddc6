/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of real processes, among them such that keep a reader waiting: with pages that
 * userfaultfd(2) or a FUSE server should bring and never brings. For each of them another reader,
 * process_vm_readv(2) in a child of the test's own, must hang: else the test would prove nothing.
 */
#include "remote_memory.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PAGE	  ((uint64_t)REMOTE_PAGE_SIZE)
#define PAGES	  200u
#define SIZE	  (PAGES * PAGE)
#define HANG_NS	  (300 * NSEC_PER_MSEC)
#define SECOND_NS NSEC_PER_SEC

/* ---- processes that are read ------------------------------------------------------------------
 */

enum kind { KIND_PLAIN, KIND_USERFAULT, KIND_FUSE };

/* What a process and the test share. */
typedef struct Shared {
	uint64_t address; /* of its pages; set last */
	uint64_t silent;  /* address of a page that nothing brings; 0 = none */
	uint64_t change;  /* the test wants other bytes; 0 when they are there */
	bool absent[PAGES];
	uint8_t bytes[SIZE];
	bool failed; /* this kernel or user must not make a silent page */
} Shared;

typedef struct Target {
	pid_t pid;
	Shared *shared;
} Target;

static void *map_anonymous(size_t size, int flags)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	assert_true(base != MAP_FAILED);
	return base;
}

/* Returns the address of a page that userfaultfd(2) should bring; 0 if that is not permitted. */
static uint64_t map_userfault(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	char *page = map_anonymous(PAGE, MAP_PRIVATE);
	struct uffdio_register area = {.range = {(uintptr_t)page, PAGE},
				       .mode = UFFDIO_REGISTER_MODE_MISSING};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &area))
		return 0;
	return (uintptr_t)page;
}

static void answer(int device, uint64_t unique, const void *body, size_t size)
{
	struct fuse_out_header head = {.len = sizeof(head) + size, .unique = unique};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)body, size}};

	if (writev(device, parts, 2) < 0)
		_exit(1);
}

static void refuse(int device, uint64_t unique)
{
	struct fuse_out_header head = {.len = sizeof(head), .error = -ENOSYS, .unique = unique};

	if (write(device, &head, sizeof(head)) < 0)
		_exit(1);
}

/* Serves a folder with one file, of which it never brings a byte. */
static void serve_silently(int device)
{
	static char buffer[1 << 17];
	const struct fuse_in_header *request = (const void *)buffer;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096, .time_gran = 1};
	struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 60, .attr_valid = 60};
	struct fuse_attr_out attributes = {.attr_valid = 60};
	struct fuse_open_out opened = {.fh = 0};

	entry.attr = (struct fuse_attr){.ino = 2, .size = PAGE, .mode = S_IFREG | 0444, .nlink = 1};
	while (read(device, buffer, sizeof(buffer)) > 0) {
		switch (request->opcode) {
		case FUSE_INIT:
			answer(device, request->unique, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			answer(device, request->unique, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			attributes.attr = entry.attr;
			if (request->nodeid == FUSE_ROOT_ID)
				attributes.attr.mode = S_IFDIR | 0555;
			answer(device, request->unique, &attributes, sizeof(attributes));
			break;
		case FUSE_OPEN:
			answer(device, request->unique, &opened, sizeof(opened));
			break;
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			refuse(device, request->unique);
			break;
		}
	}
}

/* Returns the address of a page of such a file; 0: the kernel has not got FUSE, or does not permit
 * it. */
static uint64_t map_fuse(const char *folder)
{
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd;
	_cleanup_free_ char *path = xasprintf("%s/file", folder);
	_cleanup_free_ char *options =
		xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	void *page;

	/* The mount goes when the last process has ended that sees it. */
	if (device < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("silent", folder, "fuse.silent", 0, options))
		return 0;
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_silently(device);
		_exit(0);
	}
	close(device);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	page = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	return page == MAP_FAILED ? 0 : (uintptr_t)page;
}

static void live(Shared *shared, enum kind kind, const char *folder)
{
	uint8_t *pages = map_anonymous(SIZE, MAP_PRIVATE);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	madvise(pages, SIZE, MADV_NOHUGEPAGE);
	for (uint32_t i = 0; i < PAGES; i++)
		if (!shared->absent[i])
			memcpy(pages + i * PAGE, shared->bytes + i * PAGE, PAGE);
	if (kind != KIND_PLAIN)
		shared->silent = kind == KIND_USERFAULT ? map_userfault() : map_fuse(folder);
	shared->failed = kind != KIND_PLAIN && !shared->silent;
	__atomic_store_n(&shared->address, (uintptr_t)pages, __ATOMIC_RELEASE);
	for (;; usleep(1000)) {
		if (!__atomic_load_n(&shared->change, __ATOMIC_ACQUIRE))
			continue;
		for (uint64_t i = 0; i < SIZE; i++)
			if (!shared->absent[i / PAGE])
				pages[i] = shared->bytes[i];
		__atomic_store_n(&shared->change, 0, __ATOMIC_RELEASE);
	}
}

static void choose_bytes(Shared *shared)
{
	for (uint64_t i = 0; i < SIZE; i++)
		shared->bytes[i] = random_below(256);
}

static Target start_target(enum kind kind)
{
	Target target = {.shared = map_anonymous(sizeof(Shared), MAP_SHARED)};
	char *folder = make_folder();

	choose_bytes(target.shared);
	for (uint32_t i = 0; i < PAGES; i++)
		target.shared->absent[i] = random_below(8) == 0;
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0)
		live(target.shared, kind, folder);
	while (!__atomic_load_n(&target.shared->address, __ATOMIC_ACQUIRE)) {
		assert_int_equal(waitpid(target.pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	remove_folder(folder);
	return target;
}

static void end_target(Target *target)
{
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
	munmap(target->shared, sizeof(Shared));
}

/* ---- what another reader does -----------------------------------------------------------------
 */

/*
 * Whether process_vm_readv(2) of the silent page does not return. A reader of a FUSE server's page
 * cannot be killed before the server has ended.
 */
static bool hangs(const Target *target)
{
	pid_t pid = fork();
	bool hung;

	if (pid == 0) {
		char byte;
		struct iovec to = {&byte, 1};
		struct iovec from = {(void *)(uintptr_t)target->shared->silent, 1};

		_exit(process_vm_readv(target->pid, &to, 1, &from, 1, 0) == 1);
	}
	usleep(HANG_NS / 1000);
	hung = waitpid(pid, NULL, WNOHANG) == 0;
	kill(pid, SIGKILL);
	return hung;
}

/* ---- checks -----------------------------------------------------------------------------------
 */

static RemoteProcess *open_target(RemoteMemory *memory, const Target *target)
{
	RemoteProcess *process;

	assert_int_equal(remote_memory_open(memory, target->pid, &process), 0);
	return process;
}

static bool is_there(const Shared *shared, uint64_t offset, uint64_t size)
{
	for (uint64_t page = offset / PAGE; page <= (offset + size - 1) / PAGE; page++)
		if (shared->absent[page])
			return false;
	return true;
}

/* Reads at random places. Returns whether all is as it should be. */
static bool reads_right(RemoteProcess *process, const Shared *shared, int rounds)
{
	static uint8_t bytes[SIZE];

	for (int i = 0; i < rounds; i++) {
		uint64_t offset = random_below(SIZE);
		uint64_t limit = random_below(4) ? 64 : SIZE;
		uint64_t size = 1 + random_below(MIN(limit, SIZE - offset));
		bool got = remote_memory_read(process, shared->address + offset, bytes, size);

		if (got != is_there(shared, offset, size) ||
		    (got && memcmp(bytes, shared->bytes + offset, size) != 0))
			return false;
	}
	return true;
}

static void change_page(Shared *shared, uint32_t page)
{
	for (uint64_t i = 0; i < PAGE; i++)
		shared->bytes[page * PAGE + i] ^= 1;
}

static void check_target(RemoteMemory *memory, const Target *target)
{
	RemoteProcess *process = open_target(memory, target);

	assert_true(reads_right(process, target->shared, 100));
	remote_memory_close(process);
}

static bool has_ended(pid_t pid)
{
	for (int i = 0; i < 1000; i++) {
		if (kill(pid, 0))
			return true;
		usleep(1000);
	}
	return false;
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void test_reads(void **state)
{
	RemoteMemory *memory = remote_memory_new();
	Target target = start_target(KIND_PLAIN);
	RemoteProcess *process = open_target(memory, &target);
	Shared *shared = target.shared;
	uint8_t bytes[3 * PAGE];
	uint32_t page;
	RemotePages pages;

	(void)state;
	assert_int_equal(remote_memory_child(memory), 0); /* nothing was read yet */
	assert_true(reads_right(process, shared, 2000));
	/* A wrong truth is noticed. */
	for (page = PAGES / 2; shared->absent[page]; page++)
		;
	change_page(shared, page);
	assert_false(reads_right(process, shared, 2000));
	change_page(shared, page);

	assert_true(remote_memory_pages(process, shared->address, REMOTE_PAGES_MAX, &pages));
	assert_int_equal(pages.known, REMOTE_PAGES_MAX);
	for (uint32_t i = 0; i < REMOTE_PAGES_MAX; i++) {
		assert_int_equal(pages.read >> i & 1, !shared->absent[i]);
		if (!shared->absent[i])
			assert_memory_equal(pages.data + i * PAGE, shared->bytes + i * PAGE, PAGE);
	}
	/* This makes the kernel bring absent pages, which are zeros. */
	for (uint32_t i = 0; i < PAGES - 3; i++) {
		assert_true(remote_memory_bring(process, shared->address + i * PAGE + 7, bytes,
						2 * PAGE));
		if (shared->absent[i])
			assert_int_equal(bytes[0], 0);
		else
			assert_int_equal(bytes[0], shared->bytes[i * PAGE + 7]);
	}
	assert_false(remote_memory_read(process, UINT64_MAX - 4, bytes, 8));
	assert_false(remote_memory_read(process, 0, bytes, 8));
	assert_false(remote_memory_bring(process, 0, bytes, 8));
	assert_int_equal(remote_memory_counts(memory).refused, 0);
	remote_memory_close(process);
	end_target(&target);
	remote_memory_free(memory);
}

static void test_refresh(void **state)
{
	RemoteMemory *memory = remote_memory_new();
	Target target = start_target(KIND_PLAIN);
	RemoteProcess *process;
	uint64_t before, requests;

	(void)state;
	memset(target.shared->absent, 0, sizeof(target.shared->absent));
	__atomic_store_n(&target.shared->change, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&target.shared->change, __ATOMIC_ACQUIRE))
		usleep(1000);
	process = open_target(memory, &target);
	before = now_ns();
	assert_true(reads_right(process, target.shared, 100));
	choose_bytes(target.shared);
	__atomic_store_n(&target.shared->change, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&target.shared->change, __ATOMIC_ACQUIRE))
		usleep(1000);
	requests = remote_memory_counts(memory).requests;
	remote_memory_refresh(process, before); /* all was read after that time */
	assert_false(reads_right(process, target.shared, 100));
	remote_memory_refresh(process, now_ns());
	assert_true(reads_right(process, target.shared, 100));
	assert_true(remote_memory_counts(memory).requests > requests);
	remote_memory_close(process);
	end_target(&target);
	remote_memory_free(memory);
}

/* The kernel refuses such a page to the child at once. */
static void test_userfault(void **state)
{
	RemoteMemory *memory = remote_memory_new();
	Target target = start_target(KIND_USERFAULT);
	RemoteProcess *process = open_target(memory, &target);
	uint64_t begin;
	uint8_t byte;

	(void)state;
	if (target.shared->failed)
		skip_because("userfaultfd is not permitted");
	assert_true(hangs(&target));
	begin = now_ns();
	assert_false(remote_memory_read(process, target.shared->silent, &byte, 1));
	assert_false(remote_memory_bring(process, target.shared->silent, &byte, 1));
	expect_between(now_ns() - begin, 0, REMOTE_WAIT_NS - 1);
	assert_true(reads_right(process, target.shared, 100));
	assert_int_equal(remote_memory_counts(memory).stalled, 0);
	remote_memory_close(process);
	end_target(&target);
	remote_memory_free(memory);
}

/* The child waits for a page, without an end: it is replaced, and the process not read any more. */
static void test_fuse(void **state)
{
	RemoteMemory *memory = remote_memory_new();
	Target target = start_target(KIND_FUSE), other = start_target(KIND_PLAIN);
	RemoteProcess *process = open_target(memory, &target), *again;
	uint64_t begin, took;
	uint8_t byte;
	pid_t child;

	(void)state;
	if (target.shared->failed)
		skip_because("FUSE cannot be used");
	assert_true(hangs(&target));
	assert_true(reads_right(process, target.shared, 100));
	child = remote_memory_child(memory);
	begin = now_ns();
	assert_false(remote_memory_bring(process, target.shared->silent, &byte, 1));
	took = now_ns() - begin;
	expect_between(took, REMOTE_WAIT_NS, SECOND_NS);
	assert_true(remote_memory_is_refused(process));

	begin = now_ns();
	assert_false(remote_memory_read(process, target.shared->address, &byte, 1));
	assert_int_equal(remote_memory_open(memory, target.pid, &again), -ETIME);
	assert_null(again);
	expect_between(now_ns() - begin, 0, REMOTE_WAIT_NS - 1);
	check_target(memory, &other);
	assert_true(remote_memory_child(memory) != child);
	assert_int_equal(remote_memory_counts(memory).stalled, 1);
	assert_int_equal(remote_memory_counts(memory).restarted, 0);
	remote_memory_close(process);
	end_target(&target); /* with its server, so that the page is waited for no more */
	usleep(100 * 1000);
	/* The next child that is started reaps it. */
	kill(remote_memory_child(memory), SIGKILL);
	check_target(memory, &other);
	assert_true(has_ended(child));
	end_target(&other);
	remote_memory_free(memory);
}

/* One process after the other keeps a child waiting. */
static void test_limit_of_stalls(void **state)
{
	RemoteMemory *memory = remote_memory_new();
	size_t descriptors = count_descriptors();
	RemoteMemoryCounts counts;

	(void)state;
	for (uint32_t i = 0; i < REMOTE_STALLS_MAX; i++) {
		Target target = start_target(KIND_PLAIN);
		RemoteProcess *process = open_target(memory, &target);
		uint64_t begin;
		uint8_t byte;

		assert_true(reads_right(process, target.shared, 10));
		kill(remote_memory_child(memory), SIGSTOP);
		remote_memory_refresh(process, UINT64_MAX);
		begin = now_ns();
		assert_false(remote_memory_read(process, target.shared->address, &byte, 1));
		expect_between(now_ns() - begin, REMOTE_WAIT_NS, SECOND_NS);
		assert_int_equal(remote_memory_child(memory), 0);
		remote_memory_close(process);
		end_target(&target);
	}
	counts = remote_memory_counts(memory);
	assert_int_equal(counts.stalled, REMOTE_STALLS_MAX);
	assert_true(counts.gave_up && counts.error);
	{
		Target target = start_target(KIND_PLAIN);
		RemoteProcess *process;

		assert_int_equal(remote_memory_open(memory, target.pid, &process), -ETIME);
		end_target(&target);
	}
	assert_int_equal(count_descriptors(), descriptors);
	remote_memory_free(memory);
}

static void test_killed(void **state)
{
	size_t descriptors = count_descriptors();
	RemoteMemory *memory = remote_memory_new();
	Target target = start_target(KIND_PLAIN);
	RemoteProcess *process = open_target(memory, &target);

	(void)state;
	for (uint32_t i = 1; i < REMOTE_RESTARTS_MAX; i++) {
		assert_true(reads_right(process, target.shared, 20));
		kill(remote_memory_child(memory), SIGKILL);
		remote_memory_refresh(process, UINT64_MAX);
		assert_true(reads_right(process, target.shared, 20));
		assert_int_equal(remote_memory_counts(memory).restarted, i);
	}
	assert_int_equal(remote_memory_counts(memory).refused, 0);
	kill(remote_memory_child(memory), SIGKILL);
	remote_memory_refresh(process, UINT64_MAX);
	assert_false(reads_right(process, target.shared, 20));
	assert_true(remote_memory_counts(memory).gave_up);
	assert_true(remote_memory_counts(memory).refused > 0);
	remote_memory_close(process);
	end_target(&target);
	remote_memory_free(memory);
	assert_int_equal(count_descriptors(), descriptors);
}

/* Without descriptors for the socket no child is started. */
static void test_no_child(void **state)
{
	RemoteMemory *memory = remote_memory_new();
	Target target = start_target(KIND_PLAIN);
	RemoteProcess *process = open_target(memory, &target), *again;
	struct rlimit limit, none;
	uint8_t byte;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(remote_memory_read(process, target.shared->address, &byte, 1));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(remote_memory_read(process, target.shared->address, &byte, 1));
	assert_int_equal(remote_memory_open(memory, target.pid, &again), -ETIME);
	assert_int_equal(remote_memory_counts(memory).error, -EMFILE);
	assert_int_equal(remote_memory_counts(memory).refused, 3);
	assert_false(remote_memory_counts(memory).gave_up);
	remote_memory_close(process);
	end_target(&target);
	remote_memory_free(memory);
}

/* What was opened leads to no other process when the number is used again. */
static void test_ended(void **state)
{
	RemoteMemory *memory = remote_memory_new();
	Target target = start_target(KIND_PLAIN);
	RemoteProcess *process = open_target(memory, &target), *gone;
	uint64_t address = target.shared->address;
	RemotePages pages;
	uint8_t byte;

	(void)state;
	end_target(&target);
	assert_false(remote_memory_bring(process, address, &byte, 1));
	assert_true(remote_memory_pages(process, address, 1, &pages));
	assert_int_equal(pages.known, 0);
	assert_int_equal(remote_memory_open(memory, target.pid, &gone), -ENOENT);
	remote_memory_close(process);
	remote_memory_free(memory);
}

static bool has_line(pid_t pid, const char *line)
{
	_cleanup_free_ char *status = output_of("cat /proc/%d/status", pid);

	return strstr(status, line);
}

/* It has no rights, and ends with the process that started it, however that ends. */
static void test_child(void **state)
{
	Target target = start_target(KIND_PLAIN);
	pid_t *child = map_anonymous(PAGE, MAP_SHARED), recorder;
	bool ended = false;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	recorder = fork();
	if (recorder == 0) {
		RemoteMemory *memory = remote_memory_new();
		RemoteProcess *process;
		uint8_t byte;

		if (remote_memory_open(memory, target.pid, &process))
			_exit(1);
		remote_memory_bring(process, target.shared->address, &byte, 1);
		__atomic_store_n(child, remote_memory_child(memory), __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	while (!__atomic_load_n(child, __ATOMIC_ACQUIRE)) {
		assert_int_equal(waitpid(recorder, NULL, WNOHANG), 0);
		usleep(1000);
	}
	assert_true(has_line(*child, "\nSeccomp:\t2"));
	assert_true(has_line(*child, "\nNoNewPrivs:\t1"));
	assert_true(has_line(*child, "\nCapEff:\t0000000000000000"));
	assert_true(has_line(*child, "\nCapPrm:\t0000000000000000"));
	assert_false(has_line(*child, "\nUid:\t0\t"));
	{
		_cleanup_free_ char *open_files = output_of("ls /proc/%d/fd | wc -l", *child);

		/* null three times, the socket, and the two files of the process */
		assert_int_equal(atoi(open_files), 6);
	}
	kill(recorder, SIGKILL);
	waitpid(recorder, NULL, 0);
	for (int i = 0; i < 1000 && !ended; i++, usleep(1000))
		ended = waitpid(*child, NULL, WNOHANG) == *child;
	assert_true(ended);
	munmap(child, PAGE);
	end_target(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),		cmocka_unit_test(test_refresh),
		cmocka_unit_test(test_userfault),	cmocka_unit_test(test_fuse),
		cmocka_unit_test(test_limit_of_stalls), cmocka_unit_test(test_killed),
		cmocka_unit_test(test_no_child),	cmocka_unit_test(test_ended),
		cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
