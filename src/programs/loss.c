/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "loss.h"
#include "util.h"

struct LossMeter {
	struct cpu_account *accounts;
	size_t cpu_count;
	uint64_t (*seen)[ACCOUNT_CAUSES][ACCOUNT_KINDS]; /* per CPU, at the last poll */
	uint64_t (*pending_first)[ACCOUNT_KINDS];	 /* read, but not yet reported */
	struct missed {
		enum loss_cause cause;
		uint64_t count, since_ns; /* to be reported by the next poll */
		uint64_t total, unsent;	  /* total: all of them; unsent: those that BPF has not
					     counted as sent */
	} missed[ACCOUNT_KINDS];
	uint64_t last_poll_ns;
	uint64_t lost;
};

LossMeter *loss_meter_new(struct cpu_account *accounts, size_t cpu_count)
{
	LossMeter *meter = xcalloc(1, sizeof(*meter));

	meter->accounts = accounts;
	meter->cpu_count = cpu_count;
	meter->seen = xcalloc(cpu_count, sizeof(*meter->seen));
	meter->pending_first = xcalloc(cpu_count, sizeof(*meter->pending_first));
	meter->last_poll_ns = now_ns();
	return meter;
}

void loss_meter_free(LossMeter *meter)
{
	if (!meter)
		return;
	free(meter->seen);
	free(meter->pending_first);
	free(meter);
}

/*
 * A program counts a loss, then writes its time. So if the count has changed, the first time may
 * not be there yet; then the span begins at the last poll, which covers it. And a time may be there
 * whose count has not been read; it is kept for the next poll.
 */
static uint64_t first_loss_ns(LossMeter *meter, size_t cpu, size_t kind)
{
	uint64_t *pending = &meter->pending_first[cpu][kind];
	uint64_t first =
		__atomic_exchange_n(&meter->accounts[cpu].first_lost_ns[kind], 0, __ATOMIC_ACQ_REL);

	if (!*pending || (first && first < *pending))
		*pending = first ? first : *pending;
	return *pending;
}

static int poll_one(LossMeter *meter, size_t cpu, size_t cause, size_t kind, uint64_t poll_ns,
		    RecordSink sink, void *user)
{
	struct cpu_account *account = &meter->accounts[cpu];
	uint64_t lost = __atomic_load_n(&account->lost[cause][kind], __ATOMIC_ACQUIRE);
	uint64_t count = lost - meter->seen[cpu][cause][kind];
	uint64_t first, last;

	if (!count)
		return 0;
	meter->seen[cpu][cause][kind] = lost;
	meter->lost += count;
	first = first_loss_ns(meter, cpu, kind);
	meter->pending_first[cpu][kind] = 0;
	last = __atomic_load_n(&account->last_lost_ns[kind], __ATOMIC_ACQUIRE);
	if (!first)
		first = meter->last_poll_ns;
	struct rec_loss record = {
		.h = {.len = sizeof(record), .kind = REC_LOSS, .cpu = cpu, .ns = poll_ns},
		.lost_kind = kind,
		.cause = cause,
		.count = count,
		.from_ns = MIN(first, poll_ns),
		.to_ns = MAX(last, first),
	};
	return sink(user, &record.h);
}

void loss_add(LossMeter *meter, uint32_t kind, enum loss_cause cause, uint64_t count,
	      uint64_t since_ns)
{
	struct missed *missed = &meter->missed[kind];

	missed->cause = cause;
	missed->count += count;
	missed->total += count;
	missed->unsent += cause == LOSS_RECURSION ? count : 0;
	missed->since_ns = since_ns;
}

static int report_missed(LossMeter *meter, size_t kind, uint64_t poll_ns, RecordSink sink,
			 void *user)
{
	struct rec_loss record = {
		.h = {.len = sizeof(record), .kind = REC_LOSS, .ns = poll_ns},
		.lost_kind = kind,
		.cause = meter->missed[kind].cause,
		.count = meter->missed[kind].count,
		.from_ns = meter->missed[kind].since_ns,
		.to_ns = poll_ns,
	};

	if (!record.count)
		return 0;
	meter->lost += record.count;
	meter->missed[kind].count = 0;
	return sink(user, &record.h);
}

int loss_poll(LossMeter *meter, RecordSink sink, void *user)
{
	uint64_t poll_ns = now_ns();

	for (size_t cpu = 0; cpu < meter->cpu_count; cpu++) {
		for (size_t cause = 0; cause < ACCOUNT_CAUSES; cause++) {
			for (size_t kind = 0; kind < ACCOUNT_KINDS; kind++) {
				int error = poll_one(meter, cpu, cause, kind, poll_ns, sink, user);

				if (error)
					return error;
			}
		}
	}
	for (size_t kind = 0; kind < ACCOUNT_KINDS; kind++) {
		int error = report_missed(meter, kind, poll_ns, sink, user);

		if (error)
			return error;
	}
	meter->last_poll_ns = poll_ns;
	return 0;
}

int loss_totals(LossMeter *meter, RecordSink sink, void *user)
{
	uint64_t ns = now_ns();

	for (size_t kind = 0; kind < ACCOUNT_KINDS; kind++) {
		struct rec_total record = {
			.h = {.len = sizeof(record), .kind = REC_TOTAL, .ns = ns},
			.counted_kind = kind,
			.sent = meter->missed[kind].unsent,
			.lost = meter->missed[kind].total,
		};
		int error;

		for (size_t cpu = 0; cpu < meter->cpu_count; cpu++) {
			record.sent += meter->accounts[cpu].sent[kind];
			for (size_t cause = 0; cause < ACCOUNT_CAUSES; cause++)
				record.lost += meter->accounts[cpu].lost[cause][kind];
		}
		if (!record.sent)
			continue;
		error = sink(user, &record.h);
		if (error)
			return error;
	}
	return 0;
}

uint64_t loss_count(const LossMeter *meter)
{
	return meter->lost;
}
