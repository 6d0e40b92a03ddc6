/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_job.h"
#include "debug_link.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Larger files count as this: a sparse file can be of any size at no cost. */
#define COUNTED_MAX (4ULL << 30)
/* Allowed in addition to a row for each byte: for the gaps. Debug files may be compressed. */
#define ROWS_BASE	    4096
#define ROWS_PER_DEBUG_BYTE 16

/* By the build id, and then by .gnu_debuglink at each of the paths where that can lead. */
#define DEBUG_SOURCES (1 + COMPANION_CANDIDATES)

static uint64_t size_of(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? MIN((uint64_t)st.st_size, COUNTED_MAX) : 0;
}

static void set_sizes(TableJob *job)
{
	uint64_t debug_size = size_of(job->debug_fd);

	job->size = size_of(job->fd) + debug_size;
	job->rows_max = ROWS_BASE + job->size + ROWS_PER_DEBUG_BYTE * debug_size;
}

void table_job_init(const TableRequest *request, bool cache, TableJob *ret_job)
{
	TableJob job = {.id = request->id, .base_svma = request->base_svma, .debug_fd = -1};

	job.fd = request->fd < 0 ? -1 : fcntl(request->fd, F_DUPFD_CLOEXEC, 0);
	if (job.fd < 0)
		job.error = request->fd < 0 ? -EBADF : -errno;
	set_sizes(&job);
	job.cacheable = cache && !job.error &&
			table_key_make(job.fd, -1, job.base_svma, request->build_id,
				       request->build_id_len, &job.key);
	*ret_job = job;
}

void table_job_close(TableJob *job)
{
	closep(&job->fd);
	closep(&job->debug_fd);
	unwind_table_free(&job->alone);
	free(job->debuglink);
	job->debuglink = NULL;
}

static int find_at(const TableJob *job, unsigned source, TableFindDebug find, void *user)
{
	if (source == 0)
		return find(user, job->id, NULL, 0);
	return job->debuglink ? find(user, job->id, job->debuglink, source - 1) : -ENOENT;
}

bool table_job_next_debug_file(TableJob *job, TableFindDebug find, void *user)
{
	int fd = -ENOENT;

	closep(&job->debug_fd);
	while (fd < 0 && job->sources_tried < DEBUG_SOURCES)
		fd = find_at(job, job->sources_tried++, find, user);
	if (fd < 0)
		return false;
	job->debug_fd = fd;
	job->retried = false;
	set_sizes(job);
	job->cacheable =
		job->cacheable && table_key_make(job->fd, fd, job->base_svma, job->key.build_id,
						 job->key.build_id_len, &job->key);
	return true;
}

/* ---- queues ----------------------------------------------------------------------------- */

bool table_queue_empty(const TableQueue *queue)
{
	return queue->next == queue->jobs.count;
}

void table_queue_put(TableQueue *queue, const TableJob *job)
{
	*vec_push(&queue->jobs) = *job;
}

TableJob table_queue_get(TableQueue *queue)
{
	TableJob job = queue->jobs.items[queue->next++];

	if (table_queue_empty(queue))
		queue->jobs.count = queue->next = 0;
	return job;
}

TableJob table_queue_get_largest(TableQueue *queue, TableIsUsed is_used, void *user)
{
	TableJob *jobs = queue->jobs.items;
	size_t largest = queue->next;
	bool largest_used = false;
	TableJob job;

	for (size_t i = queue->next; i < queue->jobs.count; i++) {
		bool used = !is_used || is_used(user, jobs[i].id);

		if (used > largest_used ||
		    (used == largest_used && jobs[i].size > jobs[largest].size)) {
			largest = i;
			largest_used = used;
		}
	}
	job = jobs[largest];
	jobs[largest] = jobs[queue->next];
	jobs[queue->next] = job;
	return table_queue_get(queue);
}

void table_queue_free(TableQueue *queue)
{
	while (!table_queue_empty(queue)) {
		TableJob job = table_queue_get(queue);

		table_job_close(&job);
	}
	vec_free(&queue->jobs);
}
