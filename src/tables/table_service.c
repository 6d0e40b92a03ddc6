/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_service.c - schedules which object's table is built when.
 *
 * An object goes from `asked` to its answer if the cache has its table. Otherwise it goes to
 * `missing`, from there to a worker, and then to its answer; or, if its call frame information is
 * incomplete, back to `asked`, once with each debug file that is found. A table from the cache that
 * was made without a debug file is tried with one in the same way, because one may exist by now.
 * Built tables are kept until there is nothing else to do, and then written to the cache.
 */
#include "table_service.h"
#include "proc_status.h"
#include "table_job.h"
#include "table_worker.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* The CPU time for an object: this, and as much again for every so many bytes of its files. */
#define TIMEOUT_NS	  (2 * NSEC_PER_SEC)
#define BYTES_PER_TIMEOUT (100u << 20)
/*
 * Each object that takes longer halves the time of the next ones, because their number has no
 * bound.
 */
#define TIMEOUT_PARTS_MAX 8
/*
 * A worker that sleeps (for its file, say) uses no CPU time, so it is also ended after so many
 * times its CPU time. A worker that waits for a CPU is not ended: on a busy machine, or in
 * SCHED_IDLE, that wait has no bound.
 */
#define WALL_PER_CPU 10
/* The time between two checks of a worker that is starved just below its CPU time. */
#define RECHECK_NS (10 * NSEC_PER_MSEC)
/*
 * Debug files are searched for if at least one part in so many of the code has no call frame
 * information. Most libraries (with some functions in assembly) lack less.
 */
#define LACKING_PARTS 4
/* The limit for work that is not urgent; the rings are drained every 25 ms. */
#define PROCESS_NS (5 * NSEC_PER_MSEC)
/* Bytes of tables that wait to be written. */
#define KEPT_MAX (64u << 20)
#define TIMER	 TABLE_WORKERS_MAX /* its index in epoll; workers have theirs */

typedef struct Slot {
	TableWorker worker;
	size_t given; /* objects that this worker was given so far */
	bool busy;
	TableJob job;
	uint64_t cpu_from_ns, allowed_ns; /* the worker's CPU time */
	uint64_t check_ns, deadline_ns;	  /* CLOCK_MONOTONIC */
} Slot;

typedef struct Kept {
	TableKey key;
	UnwindTable table;
	char *debuglink; /* or NULL */
} Kept;

struct TableService {
	TableCache *cache; /* or NULL */
	TableFindDebug find_debug;
	void *find_user;
	TableIsUsed is_used;
	void *used_user;
	int epoll_fd, timer_fd;
	uint64_t armed_ns; /* what the timer is set to; 0 = off */
	uint64_t timeout_ns, timeout_min_ns;
	Map pending; /* id -> 1 until it is answered, then 0 */
	TableQueue requested, missing;
	UnwindTable loaded; /* a table from the cache; its memory is reused while there are more */
	Slot slots[TABLE_WORKERS_MAX];
	unsigned slot_count;
	VEC(Kept) kept;
	size_t kept_next, kept_bytes;
	TableServiceCounts counts;
};

typedef struct Consumer {
	TableReady ready;
	void *user;
	uint64_t until_ns;
} Consumer;

/* ---- what was built, for the cache --------------------------------------------------------- */

static bool has_kept(const TableService *service)
{
	return service->kept_next < service->kept.count;
}

static void store_one(TableService *service)
{
	Kept *kept = &service->kept.items[service->kept_next++];

	table_cache_store(service->cache, &kept->key, &kept->table, kept->debuglink);
	service->kept_bytes -= unwind_table_bytes(&kept->table);
	unwind_table_free(&kept->table);
	free(kept->debuglink);
	/* A machine that is always busy never stores all of them. */
	if (service->kept_next < service->kept.count / 2)
		return;
	service->kept.count -= service->kept_next;
	memmove(service->kept.items, service->kept.items + service->kept_next,
		service->kept.count * sizeof(*service->kept.items));
	service->kept_next = 0;
}

/* ---- answers -------------------------------------------------------------------------------- */

static uint64_t answered(const TableService *service)
{
	const TableServiceCounts *counts = &service->counts;

	return counts->cached + counts->built + counts->failed;
}

/* table is NULL if there is an error. */
static void answer(TableService *service, const Consumer *consumer, TableJob *job,
		   const UnwindTable *table, int error)
{
	if (error)
		service->counts.failed++;
	map_set(&service->pending, job->id, 0);
	consumer->ready(consumer->user, job->id, table, error,
			table && job->debug_fd >= 0 ? TABLE_DEBUG_USED : job->debug_error);
	table_job_close(job);
}

/* Takes ownership of table and debuglink. */
static void keep(TableService *service, const TableKey *key, UnwindTable *table, char *debuglink)
{
	*vec_push(&service->kept) = (Kept){.key = *key, .table = *table, .debuglink = debuglink};
	service->kept_bytes += unwind_table_bytes(table);
}

/* Takes ownership of table. */
static void answer_built(TableService *service, const Consumer *consumer, TableJob *job,
			 UnwindTable *table)
{
	bool holds = job->cacheable && table_key_holds(&job->key, job->fd, job->debug_fd);
	TableKey key = job->key;

	service->counts.built++;
	answer(service, consumer, job, table, 0);
	if (holds)
		keep(service, &key, table, NULL);
	else
		unwind_table_free(table);
}

static bool is_lacking(const UnwindTable *table, int error)
{
	const UnwindCounts *counts = &table->counts;
	/* Followed code has rules, but a debug file may have better ones. */
	uint64_t lacking = counts->code_gaps + counts->code_followed;

	return error ? error == -ENODATA : lacking > 0 && lacking >= counts->code / LACKING_PARTS;
}

static void answer_without_debug(TableService *service, const Consumer *consumer, TableJob *job)
{
	UnwindTable alone = job->alone;
	char *debuglink = job->debuglink;
	TableKey key = job->alone_key;
	bool holds = job->alone_cacheable && !job->alone_cached && !job->alone_error &&
		     table_key_holds(&key, job->fd, /* debug_fd= */ -1);

	job->alone = (UnwindTable){};
	job->debuglink = NULL;
	if (job->alone_cached)
		service->counts.cached++;
	else
		service->counts.built += !job->alone_error;
	answer(service, consumer, job, job->alone_error ? NULL : &alone, job->alone_error);
	if (holds) {
		keep(service, &key, &alone, debuglink);
		return;
	}
	unwind_table_free(&alone);
	free(debuglink);
}

/*
 * Handles the result of an object, without a debug file or with the present one. Takes ownership of
 * table.
 */
static void finish_attempt(TableService *service, const Consumer *consumer, TableJob *job,
			   UnwindTable *table, int error)
{
	bool alone = job->debug_fd < 0, lacking = service->find_debug && is_lacking(table, error);

	/* A debug file without additional call frame information is of no use. */
	if (!error && (alone ? !lacking : table->counts.fdes > job->alone.counts.fdes)) {
		answer_built(service, consumer, job, table);
		return;
	}
	if (alone) {
		job->alone = *table;
		job->alone_error = error;
		job->alone_key = job->key;
		job->alone_cacheable = job->cacheable;
	} else {
		if (error && error != -ENODATA)
			job->debug_error = error;
		unwind_table_free(table);
	}
	if ((!alone || lacking) &&
	    table_job_next_debug_file(job, service->find_debug, service->find_user))
		table_queue_put(&service->requested, job);
	else
		answer_without_debug(service, consumer, job);
}

/* ---- workers ----------------------------------------------------------------------------------
 */

static bool is_running(const Slot *slot)
{
	return slot->worker.sandbox.pid > 0;
}

/* Returns the worker's status as wait(2) has it. */
static int end_worker(TableService *service, Slot *slot)
{
	/*
	 * A child that is just being made may have a copy of the descriptor, so closing is not
	 * enough.
	 */
	if (is_running(slot))
		epoll_ctl(service->epoll_fd, EPOLL_CTL_DEL, slot->worker.sandbox.socket, NULL);
	return table_worker_end(&slot->worker);
}

static int start_worker(TableService *service, Slot *slot)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot - service->slots};
	int r = table_worker_start(&slot->worker);

	if (r < 0)
		return r;
	service->counts.children++;
	slot->given = 0;
	if (!epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, slot->worker.sandbox.socket, &event))
		return 0;
	r = -errno;
	table_worker_end(&slot->worker);
	return r;
}

static int try_assign(TableService *service, Slot *slot, const TableJob *job)
{
	int r = is_running(slot) ? 0 : start_worker(service, slot);

	if (r == 0)
		r = table_worker_send(&slot->worker, job->fd, job->debug_fd, job->base_svma);
	if (r < 0)
		end_worker(service, slot);
	return r;
}

static void set_bounds(const TableService *service, Slot *slot)
{
	uint64_t now = now_ns(), timeout = service->timeout_ns;

	slot->cpu_from_ns = table_worker_cpu_ns(&slot->worker);
	slot->allowed_ns = timeout + slot->job.size * (timeout / NSEC_PER_USEC) /
					     BYTES_PER_TIMEOUT * NSEC_PER_USEC;
	slot->check_ns = now + slot->allowed_ns;
	slot->deadline_ns = now + WALL_PER_CPU * slot->allowed_ns;
}

static void give(TableService *service, const Consumer *consumer, Slot *slot, TableJob *job)
{
	UnwindTable none = {};
	int r;

	if (job->retried)
		end_worker(service, slot);
	r = try_assign(service, slot, job);
	/* It was killed while it was idle. */
	if (r == -EPIPE || r == -ECONNRESET)
		r = try_assign(service, slot, job);
	if (r < 0) {
		finish_attempt(service, consumer, job, &none, r);
		return;
	}
	slot->job = *job;
	slot->given++;
	slot->busy = true;
	set_bounds(service, slot);
}

static Slot *idle_slot(TableService *service)
{
	Slot *stopped = NULL;

	for (unsigned i = 0; i < service->slot_count; i++) {
		Slot *slot = &service->slots[i];

		if (!slot->busy && is_running(slot))
			return slot;
		if (!slot->busy && !stopped)
			stopped = slot;
	}
	return stopped;
}

static void assign_all(TableService *service, const Consumer *consumer)
{
	Slot *slot;

	while (!table_queue_empty(&service->missing) && (slot = idle_slot(service))) {
		TableJob job = table_queue_get_largest(&service->missing, service->is_used,
						       service->used_user);

		give(service, consumer, slot, &job);
	}
}

/* ---- what comes from them ----------------------------------------------------------------- */

static int lost_error(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == SANDBOX_UNSAFE ? -EPERM : -EIO;
}

/*
 * The worker has ended. Another object may have harmed it before, so the object is tried once more
 * in a new worker.
 */
static void abandon(TableService *service, const Consumer *consumer, Slot *slot, int error)
{
	TableJob job = slot->job;
	UnwindTable none = {};

	slot->busy = false;
	if (slot->given > 1 && !job.retried) {
		job.retried = true;
		table_queue_put(&service->missing, &job);
		return;
	}
	finish_attempt(service, consumer, &job, &none, error);
}

static void hear(TableService *service, const Consumer *consumer, Slot *slot)
{
	UnwindTable table = {};
	TableJob job = slot->job;
	int result = 0, status;
	int r = table_worker_receive(&slot->worker, job.rows_max, &table, &result);

	if (slot->busy && r == 0)
		return;
	if (slot->busy && r == 1) {
		slot->busy = false;
		if (!job.debuglink && *slot->worker.answer.debuglink)
			job.debuglink = xstrdup(slot->worker.answer.debuglink);
		finish_attempt(service, consumer, &job, &table, result);
		return;
	}
	/* The worker has ended, or its answer is invalid. */
	unwind_table_free(&table);
	status = end_worker(service, slot);
	if (slot->busy)
		abandon(service, consumer, slot, r == -EIO ? lost_error(status) : -EBADMSG);
}

static void hear_all(TableService *service, const Consumer *consumer)
{
	struct epoll_event events[TABLE_WORKERS_MAX + 1];
	int count = epoll_wait(service->epoll_fd, events, ARRAY_LEN(events), 0);

	for (int i = 0; i < count; i++)
		if (events[i].data.u32 != TIMER && is_running(&service->slots[events[i].data.u32]))
			hear(service, consumer, &service->slots[events[i].data.u32]);
}

/* Returns whether the worker has used up its time. */
static bool is_out_of_time(Slot *slot, uint64_t now)
{
	uint64_t cpu, taken;

	if (!slot->busy || now < slot->check_ns)
		return false;
	cpu = table_worker_cpu_ns(&slot->worker);
	taken = cpu - slot->cpu_from_ns;
	if (cpu == UINT64_MAX || taken >= slot->allowed_ns ||
	    (now >= slot->deadline_ns && !proc_is_runnable(slot->worker.sandbox.pid)))
		return true;
	slot->check_ns = now + MAX(slot->allowed_ns - taken, RECHECK_NS);
	if (now < slot->deadline_ns)
		slot->check_ns = MIN(slot->deadline_ns, slot->check_ns);
	return false;
}

static void end_timed_out(TableService *service, const Consumer *consumer)
{
	uint64_t now = now_ns();

	for (unsigned i = 0; i < service->slot_count; i++) {
		Slot *slot = &service->slots[i];

		if (!is_out_of_time(slot, now))
			continue;
		service->timeout_ns = MAX(service->timeout_ns / 2, service->timeout_min_ns);
		end_worker(service, slot);
		abandon(service, consumer, slot, -ETIME);
	}
}

/* ---- taking --------------------------------------------------------------------------------- */

/* The table was made without a debug file, although one could complete it. */
static void try_cached(TableService *service, const Consumer *consumer, TableJob *job,
		       const char *debuglink)
{
	UnwindTable table = service->loaded;

	service->loaded = (UnwindTable){};
	if (*debuglink)
		job->debuglink = xstrdup(debuglink);
	job->alone_cached = true;
	finish_attempt(service, consumer, job, &table, 0);
}

static void look_up(TableService *service, const Consumer *consumer)
{
	TableJob job = table_queue_get(&service->requested);
	char debuglink[TABLE_LINK_MAX];

	if (job.error) {
		answer(service, consumer, &job, NULL, job.error);
	} else if (job.cacheable &&
		   table_cache_load(service->cache, &job.key, &service->loaded, debuglink)) {
		if (job.debug_fd < 0 && service->find_debug && is_lacking(&service->loaded, 0)) {
			try_cached(service, consumer, &job, debuglink);
			return;
		}
		service->counts.cached++;
		answer(service, consumer, &job, &service->loaded, 0);
	} else {
		table_queue_put(&service->missing, &job);
	}
	if (table_queue_empty(&service->requested))
		unwind_table_free(&service->loaded);
}

static bool is_quiet(const TableService *service)
{
	if (!table_queue_empty(&service->requested) || !table_queue_empty(&service->missing))
		return false;
	for (unsigned i = 0; i < service->slot_count; i++)
		if (service->slots[i].busy)
			return false;
	return true;
}

static uint64_t wake_time(TableService *service)
{
	uint64_t first = UINT64_MAX;

	if (!table_queue_empty(&service->requested) || (has_kept(service) && is_quiet(service)) ||
	    (!table_queue_empty(&service->missing) && idle_slot(service)))
		return 1; /* it is past: fire at once */
	for (unsigned i = 0; i < service->slot_count; i++)
		if (service->slots[i].busy)
			first = MIN(first, service->slots[i].check_ns);
	return first == UINT64_MAX ? 0 : first;
}

/* The timer is never read: it stays readable until it is set to another time. */
static void arm(TableService *service)
{
	uint64_t at = wake_time(service);
	struct itimerspec time = {
		.it_value = {.tv_sec = at / NSEC_PER_SEC, .tv_nsec = at % NSEC_PER_SEC}};

	if (at == service->armed_ns)
		return;
	service->armed_ns = at;
	timerfd_settime(service->timer_fd, TFD_TIMER_ABSTIME, &time, NULL);
}

/* Writes when there is nothing else to do; never before an answer that a caller may wait for. */
static void store_kept(TableService *service, uint64_t answers, uint64_t until_ns)
{
	bool idle = answers == 0 && is_quiet(service);

	while (has_kept(service) &&
	       (service->kept_bytes > KEPT_MAX || (idle && now_ns() < until_ns)))
		store_one(service);
}

void table_service_process(TableService *service, TableReady ready, void *user)
{
	Consumer consumer = {.ready = ready, .user = user, .until_ns = now_ns() + PROCESS_NS};
	uint64_t before = answered(service);

	hear_all(service, &consumer);
	end_timed_out(service, &consumer);
	assign_all(service, &consumer);
	while (!table_queue_empty(&service->requested) && now_ns() < consumer.until_ns) {
		look_up(service, &consumer);
		assign_all(service, &consumer);
	}
	store_kept(service, /* answers= */ answered(service) - before, consumer.until_ns);
	arm(service);
}

size_t table_service_wait(TableService *service, uint64_t deadline_ns, TableReady ready, void *user)
{
	struct pollfd polled = {.fd = service->epoll_fd, .events = POLLIN};

	for (;;) {
		uint64_t now;
		size_t left;

		table_service_process(service, ready, user);
		left = service->counts.wanted - answered(service);
		now = now_ns();
		if (left == 0 || now >= deadline_ns)
			return left;
		poll(&polled, 1, MIN((deadline_ns - now) / NSEC_PER_MSEC + 1, 1000));
	}
}

/* ---- wanting ----------------------------------------------------------------------------------
 */

void table_service_request(TableService *service, const TableRequest *request)
{
	TableJob job;

	if (map_get(&service->pending, request->id) == 1)
		return;
	map_set(&service->pending, request->id, 1);
	service->counts.wanted++;
	table_job_init(request, /* cache= */ service->cache, &job);
	table_queue_put(&service->requested, &job);
	arm(service);
}

/* ---- its life ---------------------------------------------------------------------------------
 */

static unsigned count_workers(unsigned wanted)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return MIN(wanted ? wanted : (unsigned)MAX(cpus, 1), (unsigned)TABLE_WORKERS_MAX);
}

static int open_fds(TableService *service)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = TIMER};

	service->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (service->epoll_fd < 0)
		return -errno;
	service->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (service->timer_fd < 0 ||
	    epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, service->timer_fd, &event))
		return -errno;
	return 0;
}

int table_service_new(const TableServiceOptions *options, TableService **ret_service)
{
	TableService *service = xcalloc(1, sizeof(*service));
	int r;

	service->timer_fd = -1;
	service->slot_count = count_workers(options->workers);
	service->timeout_ns = options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
	service->timeout_min_ns = service->timeout_ns / TIMEOUT_PARTS_MAX;
	r = open_fds(service);
	if (r < 0) {
		table_service_free(service);
		return r;
	}
	service->find_debug = options->find_debug;
	service->find_user = options->find_user;
	service->is_used = options->is_used;
	service->used_user = options->used_user;
	service->cache = options->invoker ? table_cache_open(options->invoker) : NULL;
	*ret_service = service;
	return 0;
}

void table_service_free(TableService *service)
{
	if (!service)
		return;
	for (unsigned i = 0; i < service->slot_count; i++) {
		if (service->slots[i].busy)
			table_job_close(&service->slots[i].job);
		end_worker(service, &service->slots[i]);
	}
	unwind_table_free(&service->loaded);
	table_queue_free(&service->requested);
	table_queue_free(&service->missing);
	while (has_kept(service))
		store_one(service);
	vec_free(&service->kept);
	table_cache_close(service->cache);
	map_free(&service->pending);
	closep(&service->timer_fd);
	closep(&service->epoll_fd);
	free(service);
}

int table_service_fd(const TableService *service)
{
	return service->epoll_fd;
}

TableServiceCounts table_service_counts(const TableService *service)
{
	return service->counts;
}

const char *table_error_text(int error)
{
	switch (error) {
	case -ENODATA:
		return "no call frame information, and no code that could be followed";
	case -ENOEXEC:
		return "not an ELF file of this machine";
	case -EIO:
		return "its reader crashed";
	case -EBADMSG:
		return "its reader sent invalid data (taken over by the file?)";
	case -ETIME:
		return "reading it took too long";
	case -EFBIG:
		return "its table is too large";
	case -EOVERFLOW:
		return "larger than 2 GiB, too large to read for its checksum";
	case -ESTALE:
		return "from another build (by build id or checksum)";
	case -EPERM:
		return "its reader could not be sandboxed (seccomp, setrlimit)";
	default:
		return strerror(-error);
	}
}
