/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "remote_memory.h"
#include "proc_status.h"
#include "sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE	     ((uint64_t)REMOTE_PAGE_SIZE)
#define SHARED_SIZE  (REMOTE_PAGES_MAX * PAGE)
#define PAGE_PRESENT (1ULL << 63) /* Documentation/admin-guide/mm/pagemap.rst */
/* The child allocates nothing. */
#define MEMORY (16ULL << 20)
/* Most killed children are gone by then; the others are looked for later. */
#define END_NS (20 * NSEC_PER_MSEC)
/* How often it is asked whether a late child is running. */
#define LATE_MS 10

/*
 * A request for a single word takes as long as one for some pages, and what is near is often needed
 * next.
 */
#define GROUP_PAGES 8u
#define GROUP_SIZE  (GROUP_PAGES * PAGE)
#define GROUPS_MAX  512u

_Static_assert(REMOTE_PAGES_MAX == 64, "a mask has a bit for each page");

/* The descriptor of /proc/PID/mem comes with a new one, and that of pagemap with one byte more. */
struct request {
	uint64_t address; /* of a page */
	uint32_t number, count;
	uint32_t is_new;  /* a process that this child does not have */
	uint32_t present; /* only pages that are in memory */
};

struct answer {
	uint64_t read;
	uint32_t number, known;
};

/* A process that has kept a child waiting. */
typedef struct Stalled {
	pid_t tgid;
	uint64_t start_ticks;
} Stalled;

struct RemoteMemory {
	Sandbox child;	      /* pid 0: none runs */
	VEC(Sandbox) ending;  /* children that were killed and have not ended yet */
	uint8_t *shared;      /* what the child has read */
	uint32_t number;      /* of the last request */
	uint64_t process_id;  /* the process that the child has; 0 = none */
	uint64_t process_ids; /* given so far */
	VEC(Stalled) stalled;
	RemoteMemoryCounts counts;
};

/* Pages that were read together. */
typedef struct Group {
	uint64_t read; /* as in RemotePages */
	uint8_t data[GROUP_SIZE];
} Group;

struct RemoteProcess {
	RemoteMemory *memory;
	uint64_t id;
	pid_t tid;
	int mem_fd, pagemap_fd;
	bool refused;
	Map groups_of; /* address / GROUP_SIZE -> groups */
	VEC(Group *) groups;
	uint64_t groups_ns; /* when the first of them was read */
};

/* ---- in the child -------------------------------------------------------------------------- */

/* Returns the number of whole pages that were read. */
static uint32_t read_pages(int mem_fd, uint64_t address, uint8_t *to, uint32_t count)
{
	ssize_t got = pread(mem_fd, to, count * PAGE, address);

	return got > 0 ? got / PAGE : 0;
}

static uint64_t mask_of(uint32_t first, uint32_t count)
{
	return count == 0 ? 0 : (UINT64_MAX >> (64 - count)) << first;
}

/* Reads the runs of pages that are in memory. */
static void read_present(int mem_fd, int pagemap_fd, const struct request *request, uint8_t *to,
			 struct answer *answer)
{
	uint64_t entries[REMOTE_PAGES_MAX];
	ssize_t got = pread(pagemap_fd, entries, request->count * sizeof(*entries),
			    request->address / PAGE * sizeof(*entries));

	answer->known = got > 0 ? got / sizeof(*entries) : 0;
	for (uint32_t i = 0; i < answer->known; i++) {
		uint32_t run = 0, count;

		while (i + run < answer->known && entries[i + run] & PAGE_PRESENT)
			run++;
		count = read_pages(mem_fd, request->address + i * PAGE, to + i * PAGE, run);
		answer->read |= mask_of(i, count);
		i += count; /* the next one is absent, or has gone since the look */
	}
}

static void child_main(int socket, const int *fds, const void *argument)
{
	uint8_t *shared = *(uint8_t *const *)argument, byte;
	int mem_fd = -1, pagemap_fd = -1, none = -1;
	struct request request;
	int r;

	(void)fds;
	do {
		struct answer answer = {};
		bool is_new;

		r = sandbox_receive(socket, &request, sizeof(request), &none);
		if (r < 0)
			break;
		is_new = request.is_new;
		if (is_new) {
			closep(&mem_fd);
			closep(&pagemap_fd);
			mem_fd = none;
			none = -1;
			r = sandbox_receive(socket, &byte, 1, &pagemap_fd);
		}
		if (r < 0)
			break;
		answer.number = request.number;
		if (request.present) {
			read_present(mem_fd, pagemap_fd, &request, shared, &answer);
		} else {
			answer.known = request.count;
			answer.read = mask_of(
				0, read_pages(mem_fd, request.address, shared, request.count));
		}
		r = sandbox_send(socket, &answer, sizeof(answer), -1);
	} while (r == 0);
}

/* ---- the child's life ---------------------------------------------------------------------- */

RemoteMemory *remote_memory_new(void)
{
	RemoteMemory *memory = xcalloc(1, sizeof(*memory));

	memory->child.socket = -1;
	return memory;
}

/* Looks for children that have ended since they were killed. */
static void reap(RemoteMemory *memory)
{
	size_t kept = 0;

	for (size_t i = 0; i < memory->ending.count; i++)
		if (!sandbox_end_in_time(&memory->ending.items[i], 0))
			memory->ending.items[kept++] = memory->ending.items[i];
	memory->ending.count = kept;
}

static void end_child(RemoteMemory *memory)
{
	/* A child that has not ended yet goes on to write to these pages, which are its own then.
	 */
	if (memory->shared)
		munmap(memory->shared, SHARED_SIZE);
	memory->shared = NULL;
	memory->process_id = 0;
	if (!sandbox_end_in_time(&memory->child, END_NS))
		*vec_push(&memory->ending) = memory->child;
	memory->child = (Sandbox){.socket = -1};
}

void remote_memory_free(RemoteMemory *memory)
{
	if (!memory)
		return;
	end_child(memory);
	reap(memory);
	vec_free(&memory->ending);
	vec_free(&memory->stalled);
	free(memory);
}

RemoteMemoryCounts remote_memory_counts(const RemoteMemory *memory)
{
	return memory->counts;
}

pid_t remote_memory_child(const RemoteMemory *memory)
{
	return memory->child.pid;
}

static int fail(RemoteMemory *memory, int error)
{
	memory->counts.error = error;
	end_child(memory);
	return error;
}

/* Reads no more in this recording, if the limit is reached. */
static void replace_child(RemoteMemory *memory, uint64_t count, uint64_t limit)
{
	end_child(memory);
	if (count < limit)
		return;
	memory->counts.gave_up = true;
	memory->counts.error = -ETIME;
}

static int start(RemoteMemory *memory)
{
	SandboxLimits limits = {.memory = MEMORY};
	uint64_t begin_ns = now_ns();
	int r;

	if (memory->counts.error || memory->child.pid)
		return memory->counts.error;
	reap(memory);
	memory->shared =
		mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory->shared == MAP_FAILED) {
		memory->shared = NULL;
		return fail(memory, -errno);
	}
	r = sandbox_start(child_main, NULL, 0, &memory->shared, &limits, &memory->child);
	/* No other child has access to it. */
	if (r == 0 && madvise(memory->shared, SHARED_SIZE, MADV_DONTFORK))
		r = -errno;
	memory->counts.start_ns += now_ns() - begin_ns;
	return r < 0 ? fail(memory, r) : 0;
}

/* ---- processes ----------------------------------------------------------------------------- */

static Stalled identity_of(pid_t tid)
{
	pid_t tgid = proc_status_number(tid, "Tgid:");

	return (Stalled){tgid, proc_start_ticks(tgid)};
}

static bool is_stalled(const RemoteMemory *memory, pid_t tid)
{
	Stalled process;

	if (memory->stalled.count == 0)
		return false;
	process = identity_of(tid);
	for (size_t i = 0; i < memory->stalled.count; i++)
		if (memory->stalled.items[i].tgid == process.tgid &&
		    memory->stalled.items[i].start_ticks == process.start_ticks)
			return true;
	return false;
}

static int open_file(pid_t tid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int remote_memory_open(RemoteMemory *memory, pid_t tid, RemoteProcess **ret_process)
{
	_cleanup_close_ int mem_fd = -1, pagemap_fd = -1;

	*ret_process = NULL;
	if (memory->counts.error || is_stalled(memory, tid)) {
		memory->counts.refused++;
		return -ETIME;
	}
	mem_fd = open_file(tid, "mem");
	if (mem_fd < 0)
		return mem_fd;
	pagemap_fd = open_file(tid, "pagemap");
	if (pagemap_fd < 0)
		return pagemap_fd;
	*ret_process = xcalloc(1, sizeof(**ret_process));
	**ret_process = (RemoteProcess){
		.memory = memory,
		.id = ++memory->process_ids,
		.tid = tid,
		.mem_fd = mem_fd,
		.pagemap_fd = pagemap_fd,
	};
	mem_fd = pagemap_fd = -1;
	return 0;
}

static void drop_groups(RemoteProcess *process)
{
	for (size_t i = 0; i < process->groups.count; i++)
		free(process->groups.items[i]);
	vec_free(&process->groups);
	map_free(&process->groups_of);
}

void remote_memory_close(RemoteProcess *process)
{
	if (!process)
		return;
	drop_groups(process);
	closep(&process->mem_fd);
	closep(&process->pagemap_fd);
	free(process);
}

bool remote_memory_is_refused(const RemoteProcess *process)
{
	return process->refused || process->memory->counts.error;
}

/* ---- requests ------------------------------------------------------------------------------ */

static int send_request(RemoteMemory *memory, const RemoteProcess *process, struct request *request)
{
	int socket = memory->child.socket, r;

	request->number = ++memory->number;
	request->is_new = memory->process_id != process->id;
	memory->counts.requests++;
	r = sandbox_send(socket, request, sizeof(*request), request->is_new ? process->mem_fd : -1);
	if (r == 0 && request->is_new)
		r = sandbox_send(socket, "", 1, process->pagemap_fd);
	memory->process_id = process->id;
	return r;
}

/* Waits until there is something to read. Returns 0, or -ETIME. */
static int wait_for_child(const RemoteMemory *memory, uint64_t begin_ns)
{
	struct pollfd event = {.fd = memory->child.socket, .events = POLLIN};
	uint64_t end_ns = begin_ns + REMOTE_WAIT_NS;

	for (;;) {
		uint64_t now = now_ns();
		bool late = now >= end_ns;
		int ms = late ? LATE_MS : (end_ns - now) / NSEC_PER_MSEC + 1;

		if (late &&
		    (now >= begin_ns + REMOTE_WAIT_CPU_NS || !proc_is_runnable(memory->child.pid)))
			return -ETIME;
		if (poll(&event, 1, ms) > 0)
			return 0;
	}
}

/* Returns 0, -ETIME, or another negative errno: the child has ended. */
static int receive_answer(const RemoteMemory *memory, const struct request *request,
			  struct answer *ret_answer)
{
	uint64_t begin_ns = now_ns();
	size_t received = 0;

	while (received < sizeof(*ret_answer)) {
		int r = wait_for_child(memory, begin_ns);
		ssize_t got;

		if (r < 0)
			return r;
		got = recv(memory->child.socket, (char *)ret_answer + received,
			   sizeof(*ret_answer) - received, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return -EPIPE;
		received += got;
	}
	return ret_answer->number == request->number && ret_answer->known <= request->count &&
			       (ret_answer->read & ~mask_of(0, ret_answer->known)) == 0
		       ? 0
		       : -EBADMSG;
}

static void on_stall(RemoteMemory *memory, RemoteProcess *process)
{
	log_verbose("reading memory of process %d did not end within %" PRIu64 " ms", process->tid,
		    (uint64_t)(REMOTE_WAIT_NS / NSEC_PER_MSEC));
	*vec_push(&memory->stalled) = identity_of(process->tid);
	memory->counts.stalled++;
	process->refused = true;
	drop_groups(process);
	replace_child(memory, memory->counts.stalled, REMOTE_STALLS_MAX);
}

/* A child that has ended is replaced, and the new one is asked once. */
static bool ask(RemoteProcess *process, struct request *request, struct answer *ret_answer)
{
	RemoteMemory *memory = process->memory;
	int r = -EPIPE;

	for (int tries = 0; tries < 2 && r < 0 && !remote_memory_is_refused(process); tries++) {
		if (start(memory) < 0)
			break;
		r = send_request(memory, process, request);
		if (r == 0)
			r = receive_answer(memory, request, ret_answer);
		if (r == 0)
			return true;
		if (r == -ETIME || r == -EAGAIN) {
			on_stall(memory, process);
			break;
		}
		replace_child(memory, ++memory->counts.restarted, REMOTE_RESTARTS_MAX);
	}
	memory->counts.refused++;
	return false;
}

static bool request_pages(RemoteProcess *process, uint64_t address, uint32_t count, bool present,
			  RemotePages *ret_pages)
{
	struct request request = {.address = address & ~(PAGE - 1),
				  .count = MIN(count, REMOTE_PAGES_MAX),
				  .present = present};
	struct answer answer;

	if (!ask(process, &request, &answer))
		return false;
	*ret_pages = (RemotePages){process->memory->shared, answer.read, answer.known};
	return true;
}

bool remote_memory_pages(RemoteProcess *process, uint64_t address, uint32_t count,
			 RemotePages *ret_pages)
{
	return request_pages(process, address, count, /* present= */ true, ret_pages);
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Returns whether all bytes were read, up to the end of the last page that was asked for. */
static bool copy_bytes(RemoteProcess *process, uint64_t address, uint8_t *to, size_t size,
		       bool present)
{
	while (size > 0) {
		uint64_t offset = address % PAGE;
		size_t part = MIN(size, SHARED_SIZE - offset);
		uint32_t count = (offset + part + PAGE - 1) / PAGE;
		RemotePages pages;

		if (!request_pages(process, address, count, present, &pages) ||
		    pages.read != mask_of(0, count))
			return false;
		memcpy(to, pages.data + offset, part);
		address += part;
		to += part;
		size -= part;
	}
	return true;
}

bool remote_memory_bring(RemoteProcess *process, uint64_t address, void *to, size_t size)
{
	return address + size >= address && copy_bytes(process, address, to, size, false);
}

static const Group *get_group(RemoteProcess *process, uint64_t number)
{
	uint32_t index = map_get(&process->groups_of, number);
	RemotePages pages;
	Group *group;

	if (index != MAP_NONE)
		return process->groups.items[index];
	if (process->groups.count == GROUPS_MAX)
		drop_groups(process);
	if (process->groups.count == 0)
		process->groups_ns = now_ns();
	if (!remote_memory_pages(process, number * GROUP_SIZE, GROUP_PAGES, &pages))
		return NULL;
	group = xmalloc(sizeof(*group));
	group->read = pages.read;
	memcpy(group->data, pages.data, GROUP_SIZE);
	map_set(&process->groups_of, number, process->groups.count);
	*vec_push(&process->groups) = group;
	return group;
}

bool remote_memory_read(RemoteProcess *process, uint64_t address, void *to, size_t size)
{
	uint8_t *bytes = to;

	if (size == 0 || address + size < address)
		return false;
	if (size > GROUP_SIZE)
		return copy_bytes(process, address, bytes, size, /* present= */ true);
	while (size > 0) {
		const Group *group = get_group(process, address / GROUP_SIZE);
		uint64_t offset = address % GROUP_SIZE;
		size_t part = MIN(size, GROUP_SIZE - offset);
		uint32_t first = offset / PAGE, last = (offset + part - 1) / PAGE;
		uint64_t wanted = mask_of(first, last - first + 1);

		if (!group || (group->read & wanted) != wanted)
			return false;
		memcpy(bytes, group->data + offset, part);
		address += part;
		bytes += part;
		size -= part;
	}
	return true;
}

void remote_memory_refresh(RemoteProcess *process, uint64_t ns)
{
	if (process->groups.count && process->groups_ns <= ns)
		drop_groups(process);
}
