/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_messages.h"
#include "capture_format.h"
#include "symbol_child.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/*
 * A correct child requests two companions, a .dwp file, and at most one .dwo file for each address,
 * each of them from all the paths where it can be. It names each address by the symbol tables, by
 * Go's own table and by DWARF. These limits allow that.
 */
#define FINDS_MAX   4
#define NAMES_MAX   3
#define ERRNO_MAX   4095
#define RECORDS_MAX (512u << 20)

static size_t address_index(const SymbolJob *job, uint64_t address)
{
	size_t at = partition_point(middle, job->request.count,
				    job->request.addresses[middle] < address);

	return at < job->request.count && job->request.addresses[at] == address ? at
										: SYMBOL_NO_ANSWER;
}

static bool on_symbol(SymbolJob *job, const uint8_t *data, size_t size)
{
	const struct rec_symbol *symbol = (const struct rec_symbol *)data;
	size_t i;

	if (size < sizeof(struct record) || symbol->h.len != size ||
	    job->records.count + size > RECORDS_MAX || symbol->h.kind != REC_SYMBOL ||
	    capture_check(&symbol->h) != CAPTURE_RECORD_GOOD || symbol->file || symbol->lib ||
	    symbol->count == 0)
		return false;
	i = address_index(job, symbol->address);
	if (i == SYMBOL_NO_ANSWER || ++job->names > NAMES_MAX * job->request.count)
		return false;
	job->offsets.items[i] = job->records.count;
	vec_append(&job->records, data, size);
	return true;
}

static bool on_find(SymbolJob *job, const SymbolJobsOptions *options, const uint8_t *data,
		    size_t size)
{
	const Companion *companion = (const Companion *)data;
	int fd, r;

	if (size != sizeof(*companion) ||
	    ++job->finds > COMPANION_CANDIDATES * (FINDS_MAX + job->request.count) ||
	    companion->build_id_len > sizeof(companion->build_id) ||
	    companion->candidate >= COMPANION_CANDIDATES ||
	    !memchr(companion->name, '\0', sizeof(companion->name)) ||
	    companion->tail > strlen(companion->name))
		return false;
	fd = options->find ? options->find(options->find_user, job, companion) : -ENOENT;
	if (fd >= 0 && !options->seconds) {
		uint64_t seconds = symbol_job_seconds(fd);

		sandbox_extend(&job->sandbox, seconds);
		job->deadline_ns += seconds * NSEC_PER_SEC;
	}
	r = sandbox_send(job->sandbox.socket, "", 1, fd >= 0 ? fd : -1);
	if (fd >= 0)
		close(fd);
	return r == 0;
}

static bool on_missing(SymbolJob *job, const uint8_t *data, size_t size)
{
	const ObjectMissing *missing = (const ObjectMissing *)data;

	if (size != sizeof(*missing) || missing->kind >= DWARF_MISSING_KINDS ||
	    missing->count == 0 || !memchr(missing->name, '\0', sizeof(missing->name)))
		return false;
	for (size_t i = 0; i < job->missing.count; i++)
		if (job->missing.items[i].kind == missing->kind)
			return false;
	*vec_push(&job->missing) = *missing;
	return true;
}

static bool on_end(SymbolJob *job, const uint8_t *data, size_t size)
{
	int64_t result;

	if (size != sizeof(result))
		return false;
	memcpy(&result, data, sizeof(result));
	if (result > 0 || result < -ERRNO_MAX)
		return false;
	job->result = result;
	job->ended = true;
	return true;
}

static bool on_message(SymbolJob *job, const SymbolJobsOptions *options, uint32_t type,
		       const uint8_t *data, size_t size)
{
	switch (type) {
	case SYMBOL_MESSAGE_SYMBOL:
		return on_symbol(job, data, size);
	case SYMBOL_MESSAGE_FIND:
		return on_find(job, options, data, size);
	case SYMBOL_MESSAGE_END:
		return on_end(job, data, size);
	case SYMBOL_MESSAGE_MISSING:
		return on_missing(job, data, size);
	default:
		return false;
	}
}

bool symbol_messages_consume(SymbolJob *job, const SymbolJobsOptions *options)
{
	size_t done = 0;
	bool good = true;

	while (good && !job->ended) {
		struct symbol_message_head head;
		size_t rest = job->received.count - done;

		if (rest < sizeof(head))
			break;
		memcpy(&head, job->received.items + done, sizeof(head));
		good = head.len <= SYMBOL_MESSAGE_MAX && head.len % 8 == 0;
		if (!good || rest - sizeof(head) < head.len)
			break;
		/* All lengths are multiples of 8, so it stays aligned. */
		good = on_message(job, options, head.type,
				  job->received.items + done + sizeof(head), head.len);
		done += sizeof(head) + head.len;
	}
	if (done) {
		job->received.count -= done;
		memmove(job->received.items, job->received.items + done, job->received.count);
	}
	return good;
}
