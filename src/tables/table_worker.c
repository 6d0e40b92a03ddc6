/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_worker.h"
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Room for 32 million rows: ten times what the largest known programs have. */
#define REGION_MAX (256u << 20)
#define REGION_MIN (16u << 20) /* if the system promises no more memory than it has */
/* So much is kept between two objects, because it would only be cleared to be used again. */
#define REGION_KEPT (8u << 20)
/* The same for the child's own memory. */
#define MEMORY_KEPT (32 << 20)

/*
 * A debug file that only a checksum identifies is read completely, while other objects wait: that
 * takes a second for each 2 GiB, and a sparse file can be of any size.
 */
#define CHECKED_SIZE_MAX (2LL << 30)

/* The object's descriptor comes with it; that of its debug file, if any, with one byte more. */
struct question {
	uint64_t base_svma;
	uint32_t number, has_debug;
};

TableWorkerCalls table_worker_calls = {
	.sandbox_start = sandbox_start,
	.debug_link_read = debug_link_read,
	.debug_link_check = debug_link_check,
	.unwind_table_build = unwind_table_build,
};

/* ---- in the child ---------------------------------------------------------------------- */

static void send_debuglink(const ElfMap *file, TableAnswer *answer)
{
	_cleanup_free_ Companion *link = xcalloc(1, sizeof(*link));

	if (table_worker_calls.debug_link_read(file->elf, link) &&
	    strlen(link->name) < sizeof(answer->debuglink))
		strcpy(answer->debuglink, link->name);
}

static int build(int fd, int debug_fd, uint64_t base_svma, TableAnswer *answer,
		 UnwindTable *ret_table)
{
	_cleanup_(elf_map_close) ElfMap file = {}, debug = {};
	int r = fd < 0 ? -EBADF : elf_map_open(fd, &file);

	if (r < 0)
		return r;
	send_debuglink(&file, answer);
	if (debug_fd >= 0) {
		r = elf_map_open(debug_fd, &debug);
		if (r < 0)
			return r;
		r = table_worker_calls.debug_link_check(file.elf, debug.elf, debug_fd,
							CHECKED_SIZE_MAX);
		if (r < 0)
			return r;
	}
	return table_worker_calls.unwind_table_build(&file, &debug, base_svma, ret_table);
}

static void put(const TableRegion *region, const UnwindTable *table, TableAnswer *answer)
{
	size_t rows = table->rows.count * sizeof(struct unwind_row);
	size_t rules = table->rules.count * sizeof(struct unwind_rule);

	if (rows > region->size || rules > region->size - rows) {
		answer->result = -EFBIG;
		return;
	}
	touch_memory_large(region->base, rows + rules);
	if (rows)
		memcpy(region->base, table->rows.items, rows);
	if (rules)
		memcpy(region->base + rows, table->rules.items, rules);
	answer->rows = table->rows.count;
	answer->rules = table->rules.count;
	answer->counts = table->counts;
}

static int answer_one(int socket, const TableRegion *region)
{
	_cleanup_close_ int fd = -1, debug_fd = -1;
	struct question question;
	UnwindTable table = {};
	TableAnswer answer;
	uint8_t byte;

	if (sandbox_receive(socket, &question, sizeof(question), &fd) ||
	    (question.has_debug && sandbox_receive(socket, &byte, 1, &debug_fd)))
		return -EPIPE;
	memset(&answer, 0, sizeof(answer));
	answer.number = question.number;
	answer.result = build(fd, debug_fd, question.base_svma, &answer, &table);
	if (answer.result == 0)
		put(region, &table, &answer);
	unwind_table_free(&table);
	return sandbox_send(socket, &answer, sizeof(answer), -1);
}

/* Memory is reused for the next object: new memory would take as long as the work. */
static void keep_memory(void)
{
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT);
}

static void child_main(int socket, const int *fds, const void *argument)
{
	(void)fds;
	keep_memory();
	while (answer_one(socket, argument) == 0)
		;
}

/* ---- in the recorder: its life ----------------------------------------------------------- */

static int map_region(TableRegion *region)
{
	for (size_t size = REGION_MAX; size >= REGION_MIN; size /= 2) {
		void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base == MAP_FAILED)
			continue;
		*region = (TableRegion){.base = base, .size = size};
		return 0;
	}
	return -ENOMEM;
}

static void unmap_region(TableRegion *region)
{
	if (region->base)
		munmap(region->base, region->size);
	*region = (TableRegion){};
}

int table_worker_start(TableWorker *worker)
{
	SandboxLimits limits = {.memory = SANDBOX_MEMORY};
	TableRegion region;
	Sandbox sandbox;
	int r = map_region(&region);

	if (r < 0)
		return r;
	r = table_worker_calls.sandbox_start(child_main, NULL, 0, &region, &limits, &sandbox);
	/* One child must not write to the memory of another one. */
	if (r == 0 && madvise(region.base, region.size, MADV_DONTFORK)) {
		r = -errno;
		sandbox_end(&sandbox);
	}
	if (r < 0) {
		unmap_region(&region);
		return r;
	}
	*worker = (TableWorker){.sandbox = sandbox, .region = region, .number = worker->number};
	return 0;
}

int table_worker_end(TableWorker *worker)
{
	int status = sandbox_end(&worker->sandbox);

	unmap_region(&worker->region);
	worker->received = 0;
	return status;
}

uint64_t table_worker_cpu_ns(const TableWorker *worker)
{
	struct timespec taken;
	clockid_t clock;

	if (clock_getcpuclockid(worker->sandbox.pid, &clock) || clock_gettime(clock, &taken))
		return UINT64_MAX;
	return taken.tv_sec * NSEC_PER_SEC + taken.tv_nsec;
}

/* ---- in the recorder: one object ----------------------------------------------------------- */

int table_worker_send(TableWorker *worker, int fd, int debug_fd, uint64_t base_svma)
{
	struct question question = {
		.base_svma = base_svma, .number = ++worker->number, .has_debug = debug_fd >= 0};
	int socket = worker->sandbox.socket;
	int r = sandbox_send(socket, &question, sizeof(question), fd);

	worker->received = 0;
	return r < 0 || debug_fd < 0 ? r : sandbox_send(socket, "", 1, debug_fd);
}

/* Copies what the answer states. Returns whether that is possible. */
static bool copy_table(const TableWorker *worker, uint64_t rows_max, UnwindTable *table)
{
	const TableAnswer *answer = &worker->answer;
	const TableRegion *region = &worker->region;
	size_t rows;

	if (answer->rows == 0 || answer->rules == 0 || answer->rules > rows_max ||
	    answer->rows > MIN(rows_max, region->size / sizeof(struct unwind_row)))
		return false;
	rows = answer->rows * sizeof(struct unwind_row);
	if (answer->rules > (region->size - rows) / sizeof(struct unwind_rule))
		return false;
	vec_reserve(&table->rows, answer->rows);
	touch_memory_large(table->rows.items, rows);
	vec_append(&table->rows, (const struct unwind_row *)region->base, answer->rows);
	vec_append(&table->rules, (const struct unwind_rule *)(region->base + rows), answer->rules);
	table->counts = answer->counts;
	return unwind_table_valid(table);
}

static bool receive_table(TableWorker *worker, uint64_t rows_max, UnwindTable *ret_table)
{
	const TableRegion *region = &worker->region;
	UnwindTable table = {};

	if (!copy_table(worker, rows_max, &table)) {
		unwind_table_free(&table);
		return false;
	}
	if (unwind_table_bytes(&table) > REGION_KEPT)
		madvise(region->base + REGION_KEPT, region->size - REGION_KEPT, MADV_REMOVE);
	*ret_table = table;
	return true;
}

int table_worker_receive(TableWorker *worker, uint64_t rows_max, UnwindTable *ret_table,
			 int *ret_result)
{
	TableAnswer *answer = &worker->answer;
	ssize_t got = recv(worker->sandbox.socket, (char *)answer + worker->received,
			   sizeof(*answer) - worker->received, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -EIO;
	worker->received += got;
	if (worker->received < sizeof(*answer))
		return 0;
	worker->received = 0;
	answer->debuglink[sizeof(answer->debuglink) - 1] = '\0';
	*ret_table = (UnwindTable){};
	*ret_result = answer->result;
	if (answer->number != worker->number || answer->result > 0 ||
	    (answer->result == 0 && !receive_table(worker, rows_max, ret_table)))
		return -EBADMSG;
	return 1;
}
