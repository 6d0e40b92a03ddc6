/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sideband_world.h"
#include <errno.h>

/* One mapping is reported, and another one, mapped over it, is lost. */
static void test_mapped_over(void **state)
{
	uint32_t hidden;

	(void)state;
	map(0, 0, 2);
	fill(0);
	hidden = map(0, 0, 2);
	assert_int_equal(world.lost, 1);
	round_of(false);
	assert_int_equal(world.losses.count, 1);
	assert_true(image_of(0)->uncertain_since_ns);
	check_when_complete();
	assert_int_equal(found_at(0, 2), hidden);
}

/* The exec is reported, and what the new program maps is not. */
static void test_exec(void **state)
{
	uint32_t hidden;
	uint64_t began;

	(void)state;
	do_exec(0, 0);
	fill(0);
	hidden = map(0, 0, 1);
	round_of(false);
	check_when_complete();
	assert_int_equal(found_at(0, 1), hidden);
	assert_int_equal(found_at(0, 2), 0);
	/* It is taken, but nothing is read yet: in doubt is what came after it. */
	do_exec(0, 0);
	began = world.now;
	world.now += DELAY;
	fill(0);
	map(0, 0, 1);
	round_of(false);
	assert_int_equal(image_of(0)->uncertain_since_ns, began);
	check_when_complete();
}

static void test_fork(void **state)
{
	uint32_t before = world.processes[0].mapped[3], hidden;

	(void)state;
	fill(1);
	hidden = map(1, 0, 2); /* by the parent, before */
	do_fork(0, 0, 1);
	map(1, 1, 4); /* by the child, after */
	map(1, 0, 3); /* by the parent, after */
	assert_int_equal(world.lost, 3);
	round_of(false);
	check_when_complete();
	assert_int_equal(found_at(1, 2), hidden);
	assert_int_equal(found_at(1, 3), before);
}

/* The fork is lost, and BPF reports the birth a round later than the others. */
static void test_birth(void **state)
{
	uint32_t hidden;

	(void)state;
	fill(0);
	do_fork(0, 0, 1);
	map(1, 1, 3);
	hidden = map(0, 1, 3);
	round_of(false);
	assert_true(sideband_add_process(world.sideband, FIRST + 1, world.now));
	check_when_complete();
	assert_int_equal(found_at(1, 3), hidden);
	assert_int_equal(found_at(1, 2), world.processes[0].mapped[2]);
}

/* The loss is reported before the first record of a process that existed then. */
static void test_new_in_loss(void **state)
{
	uint32_t hidden;

	(void)state;
	fill(0);
	do_fork(0, 0, 1);
	sideband_add_process(world.sideband, FIRST + 1, world.now);
	map(1, 1, 3);
	hidden = map(0, 1, 3);
	world.now += DELAY + 50 * NSEC_PER_USEC;
	round_of(false);
	assert_true(image_of(1)->uncertain_since_ns);
	assert_int_not_equal(found_at(1, 3), hidden);
	check_when_complete();
	assert_int_equal(found_at(1, 3), hidden);
}

/* The parent is read when it has gone on since the fork, which is reported after that. */
static void test_fork_before_reading(void **state)
{
	uint32_t before = world.processes[0].mapped[3];

	(void)state;
	fill(1);
	map(1, 0, 2);
	round_of(false);
	world.now += DELAY + 50 * NSEC_PER_USEC;
	do_fork(0, 0, 1);
	map(0, 0, 3);
	round_of(false);
	assert_true(world.reads > 0);
	check_when_complete();
	assert_int_equal(found_at(1, 3), before);
}

/* What is said to be lost was lost then, and not later. */
static void test_interval(void **state)
{
	uint64_t before = sideband_watermark_ns(world.sideband), after;

	(void)state;
	fill_ring(&world.rings[SIDEBAND_MAPPINGS]);
	world.now += NSEC_PER_MSEC;
	map(0, 0, 2);
	world.lose_meanwhile = true;
	sideband_fetch(world.sideband);
	after = world.now;
	assert_int_equal(sideband_process(world.sideband, false), 0);
	assert_int_equal(world.losses.count, 1);
	assert_int_equal(world.losses.items[0].count, 2);
	assert_int_equal(world.losses.items[0].from_ns, before);
	assert_true(world.losses.items[0].to_ns <= after);
	assert_true(world.losses.items[0].to_ns >= world.lost_ns);
}

/* A round in which events may have been removed. Returns how many CPUs have events again. */
static size_t reopen(size_t failed)
{
	ReopenedCpus reopened = {};
	size_t count;

	sideband_fetch(world.sideband);
	sideband_reopen(world.sideband, /* epoll_fd= */ -1, &reopened);
	assert_int_equal(sideband_process(world.sideband, false), 0);
	assert_int_equal(reopened.failed, failed);
	count = reopened.cpus.count;
	vec_free(&reopened.cpus);
	return count;
}

static void remove_events(uint32_t cpu)
{
	for (size_t kind = 0; kind < SIDEBAND_RINGS; kind++)
		world.rings[cpu * SIDEBAND_RINGS + kind].removed = true;
}

/* What was sent before its CPU went offline is used; what was not sent after that is read. */
static void test_reopen(void **state)
{
	uint32_t file;

	(void)state;
	assert_int_equal(reopen(0), 0);
	file = map(1, 0, 1);
	remove_events(1);
	map(1, 0, 2);
	world.open_error = ENODEV; /* it is still offline */
	assert_int_equal(reopen(0), 0);
	world.open_error = EMFILE;
	assert_int_equal(reopen(1), 0);
	world.open_error_from = SIDEBAND_TASKS; /* the first one is closed again */
	assert_int_equal(reopen(1), 0);
	world.rings[SIDEBAND_RINGS + SIDEBAND_MAPPINGS].removed = true;
	world.open_error = 0;
	assert_int_equal(reopen(0), 1);
	check_when_complete();
	assert_int_equal(found_at(0, 1), file);
	file = map(1, 0, 3); /* both rings are used again */
	do_fork(1, 0, 1);
	sideband_add_process(world.sideband, FIRST + 1, world.now);
	check_when_complete();
	assert_int_equal(found_at(0, 3), file);
	assert_int_equal(world.losses.count, 0);
	assert_int_equal(reopen(0), 0);
}

/* What was lost before its CPU went offline is counted, although its ring is closed. */
static void test_reopen_after_loss(void **state)
{
	uint32_t hidden;

	(void)state;
	fill_ring(&world.rings[SIDEBAND_RINGS + SIDEBAND_MAPPINGS]);
	hidden = map(1, 0, 1);
	assert_int_equal(world.lost, 1);
	remove_events(1);
	assert_int_equal(reopen(0), 1);
	assert_int_equal(world.losses.count, 1);
	assert_int_equal(world.losses.items[0].count, 1);
	assert_int_equal(world.losses.items[0].h.cpu, 1);
	check_when_complete();
	assert_int_equal(found_at(0, 1), hidden);
}

/* Those that have ended are not read; of the others the first comes first; the last round reads. */
static void test_order(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < PROCESSES; i++)
		do_fork(0, 0, i);
	check_when_complete();
	for (uint32_t i = 2; i < PROCESSES; i += 2)
		do_exit(i);
	world.proc_ns = 2 * NSEC_PER_MSEC; /* three a round */
	world.read_order.count = 0;
	fill(0);
	map(0, 0, 2);
	round_of(false);
	assert_uint_in_range(sideband_wait_ns(world.sideband), DELAY - 20 * NSEC_PER_USEC, DELAY);
	assert_int_equal(world.read_order.count, 0);
	assert_int_equal(sideband_unread(world.sideband), 1 + PROCESSES / 2);
	round_of(true);
	assert_int_equal(world.read_order.count, 3);
	assert_int_equal(sideband_unread(world.sideband), 1 + PROCESSES / 2 - 3);
	check_when_complete();
	assert_int_equal(world.read_order.count, 1 + PROCESSES / 2);
	for (size_t i = 1; i < world.read_order.count; i++)
		assert_true(world.read_order.items[i] > world.read_order.items[i - 1]);
	assert_int_equal(world.ended_reads, 0);
}

/* A pid is reused: the end of the process before may be reported late. */
static void test_number_used_again(void **state)
{
	uint64_t ended;

	(void)state;
	do_fork(0, 0, 1);
	check_when_complete();
	do_exit(1);
	ended = world.now;
	do_fork(0, 0, 1);
	check_when_complete();
	process_table_end(&world.table, FIRST + 1, ended);
	fill(0);
	map(0, 1, 2);
	round_of(false);
	check_when_complete();
	assert_int_equal(world.reads, 2);
}

/* The losses of a CPU's two rings are both counted. */
static void test_both_rings(void **state)
{
	(void)state;
	fill_ring(&world.rings[SIDEBAND_RINGS + SIDEBAND_TASKS]);
	do_fork(1, 0, 1);
	round_of(false);
	assert_int_equal(world.losses.count, 1);
	assert_int_equal(world.losses.items[0].h.cpu, 1);
	sideband_add_process(world.sideband, FIRST + 1, world.now);
	check_when_complete();
	assert_int_equal(found_at(1, 2), world.processes[0].mapped[2]);
	fill(1);
	map(1, 0, 2);
	do_fork(1, 0, 2);
	round_of(false);
	assert_int_equal(world.losses.count, 3);
	assert_int_equal(world.losses.items[1].count, 1);
	assert_int_equal(world.losses.items[2].count, 1);
	check_when_complete();
}

/* Only events of processes that are recorded are to be taken soon. */
static void test_wait(void **state)
{
	(void)state;
	world.processes[5].is_alive = true; /* a non-target */
	map(0, 5, 0);
	do_fork(0, 5, 6);
	do_exec(0, 5);
	round_of(false);
	assert_int_equal(sideband_wait_ns(world.sideband), 0);
	world.now += DELAY;
	round_of(false);
	assert_false(sideband_was_of_targets(world.sideband));
	map(0, 0, 1);
	map(0, 5, 0);
	round_of(false);
	assert_true(sideband_was_of_targets(world.sideband));
	assert_uint_in_range(sideband_wait_ns(world.sideband), DELAY - 20 * NSEC_PER_USEC, DELAY);
	check_when_complete();
	do_fork(0, 0, 1); /* the child is not known yet */
	round_of(false);
	assert_uint_in_range(sideband_wait_ns(world.sideband), DELAY - 20 * NSEC_PER_USEC, DELAY);
	check_when_complete();
}

static void do_anything(void)
{
	uint32_t number = random_below(PROCESSES), cpu = random_below(CPUS);
	uint32_t other = random_below(PROCESSES);

	world.now += random_below(80) * NSEC_PER_USEC;
	if (random_below(60) == 0)
		fill(cpu);
	if (!world.processes[number].is_alive)
		return;
	switch (random_below(8)) {
	case 0:
		do_exec(cpu, number);
		map(cpu, number, 0); /* no program is without any */
		break;
	case 1:
		if (!world.processes[other].is_alive && !image_of(other)) {
			do_fork(cpu, number, other);
			sideband_add_process(world.sideband, other + FIRST, world.now);
		}
		break;
	default:
		map(cpu, number, random_below(SLOTS));
	}
}

static void test_anything(void **state)
{
	uint64_t lost = 0, reads = 0;

	for (int i = 0; i < 300; i++) {
		for (int j = 0; j < 400; j++) {
			do_anything();
			if (random_below(6) == 0)
				round_of(false);
		}
		check_when_complete();
		lost += world.lost;
		reads += world.reads;
		tear_down(state);
		set_up(state);
	}
	print_message("%lu events lost, /proc read %lu times\n", lost, reads);
	assert_true(lost > 1000 && reads > 1000);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_mapped_over),
		IN_WORLD(test_exec),
		IN_WORLD(test_fork),
		IN_WORLD(test_birth),
		IN_WORLD(test_new_in_loss),
		IN_WORLD(test_fork_before_reading),
		IN_WORLD(test_interval),
		IN_WORLD(test_reopen),
		IN_WORLD(test_reopen_after_loss),
		IN_WORLD(test_order),
		IN_WORLD(test_number_used_again),
		IN_WORLD(test_both_rings),
		IN_WORLD(test_wait),
		IN_WORLD(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
