/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many records were lost where: each loss is reported once, and totals add up. */
#include "loss.h"
#include "test_tools.h"

#define CPUS 2

typedef struct Reported {
	uint64_t lost[ACCOUNT_KINDS]; /* by REC_LOSS */
	struct rec_loss last;
	struct rec_total totals[ACCOUNT_KINDS];
} Reported;

static int take(void *user, const struct record *record)
{
	Reported *reported = user;

	if (record->kind == REC_LOSS) {
		reported->last = *(const struct rec_loss *)record;
		reported->lost[reported->last.lost_kind] += reported->last.count;
	} else {
		const struct rec_total *total = (const struct rec_total *)record;

		assert_int_equal(record->kind, REC_TOTAL);
		reported->totals[total->counted_kind] = *total;
	}
	return 0;
}

static void check_total(const Reported *reported, uint32_t kind, uint64_t sent, uint64_t lost)
{
	assert_int_equal(reported->totals[kind].sent, sent);
	assert_int_equal(reported->totals[kind].lost, lost);
	assert_int_equal(reported->lost[kind], lost);
}

/* BPF counts what it lost as sent; what it never tried is neither. */
static void test_totals(void **state)
{
	struct cpu_account accounts[CPUS] = {};
	LossMeter *meter = loss_meter_new(accounts, CPUS);
	Reported reported = {};

	(void)state;
	accounts[0].sent[REC_SWITCH] = 100;
	accounts[1].sent[REC_SWITCH] = 10;
	accounts[1].lost[LOSS_RING_FULL][REC_SWITCH] = 3;
	accounts[1].lost[LOSS_SCRATCH_BUSY][REC_SWITCH] = 4;
	accounts[0].sent[REC_EXEC] = 1;
	accounts[0].sent[REC_STACK_COPY] = 5;
	assert_int_equal(loss_poll(meter, take, &reported), 0);
	loss_add(meter, REC_EXEC, LOSS_RECURSION, 2, 70);
	assert_int_equal(loss_poll(meter, take, &reported), 0);
	assert_int_equal(reported.last.cause, LOSS_RECURSION);
	assert_int_equal(reported.last.from_ns, 70);
	loss_add(meter, REC_STACK_COPY, LOSS_UNWALKED, 1, 80);
	assert_int_equal(loss_poll(meter, take, &reported), 0);
	assert_int_equal(reported.last.cause, LOSS_UNWALKED);
	assert_int_equal(reported.last.from_ns, 80);
	assert_int_equal(loss_poll(meter, take, &reported), 0); /* nothing is reported twice */
	assert_int_equal(loss_totals(meter, take, &reported), 0);
	check_total(&reported, REC_SWITCH, 110, 7);
	check_total(&reported, REC_EXEC, 3, 2);
	check_total(&reported, REC_STACK_COPY, 5, 1);
	assert_int_equal(loss_count(meter), 10);
	loss_meter_free(meter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
