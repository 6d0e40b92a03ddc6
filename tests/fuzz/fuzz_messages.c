/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a child says that was taken over by the file it reads. */
#include "capture_format.h"
#include "fuzz.h"
#include "seeds.h"
#include "symbol_messages.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static int find(void *user, SymbolJob *job, const Companion *companion)
{
	int *null = user;

	fuzz_require(job->finds > 0 && strlen(companion->name) < sizeof(companion->name));
	return companion->kind == COMPANION_DWZ ? -ENOENT : fcntl(*null, F_DUPFD_CLOEXEC, 0);
}

/* The answers to what it asked for are not read: four bytes fit. */
static void begin_job(SymbolJob *job, const uint64_t *addresses, int *ret_other)
{
	int ends[2];

	fuzz_require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends));
	*job = (SymbolJob){
		.request = {.fd = -1, .debug_fd = -1, .count = SEED_ADDRESSES},
		.sandbox = {.socket = ends[0]},
	};
	job->request.addresses = addresses;
	for (size_t i = 0; i < SEED_ADDRESSES; i++)
		*vec_push(&job->offsets) = SYMBOL_NO_ANSWER;
	*ret_other = ends[1];
}

/* All at once, or as it may come over a socket. Returns whether it was all good. */
static bool feed(SymbolJob *job, const SymbolJobsOptions *options, const uint8_t *data, size_t size,
		 size_t step)
{
	bool good = true;

	for (size_t i = 0; i < size && good && !job->ended; i += step) {
		vec_append(&job->received, data + i, MIN(step, size - i));
		good = symbol_messages_consume(job, options);
	}
	return good;
}

static void expect_good(const SymbolJob *job)
{
	for (size_t i = 0; i < SEED_ADDRESSES; i++) {
		const struct rec_symbol *symbol = symbol_job_answer(job, i);

		if (!symbol)
			continue;
		fuzz_require(job->offsets.items[i] + symbol->h.len <= job->records.count);
		fuzz_require(capture_check(&symbol->h) == CAPTURE_RECORD_GOOD);
		fuzz_require(symbol->address == SEED_ADDRESS(i) && symbol->file == 0);
		fuzz_require(symbol->count > 0);
	}
}

static void end_job(SymbolJob *job, int other)
{
	close(job->sandbox.socket);
	close(other);
	symbol_job_free(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {1, 8, 13, 64, 1000};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), other, other_pieces;
	SymbolJobsOptions options = {.find = find, .find_user = &null};
	uint64_t addresses[SEED_ADDRESSES];
	SymbolJob job, pieces;
	size_t step = steps[size % ARRAY_LEN(steps)];
	bool good;

	for (size_t i = 0; i < SEED_ADDRESSES; i++)
		addresses[i] = SEED_ADDRESS(i);
	begin_job(&job, addresses, &other);
	begin_job(&pieces, addresses, &other_pieces);
	good = feed(&job, &options, data, size, MAX(size, (size_t)1));
	fuzz_require(feed(&pieces, &options, data, size, step) == good);
	fuzz_require(pieces.ended == job.ended && pieces.result == job.result);
	fuzz_require(pieces.records.count == job.records.count && pieces.finds == job.finds);
	expect_good(&job);
	expect_good(&pieces);
	end_job(&job, other);
	end_job(&pieces, other_pieces);
	close(null);
	return 0;
}
