/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Children that build tables crash, hang and lie: each object is answered once, with the very
 * table that it stands for or with the right error, and nothing is left behind.
 */
#include "table_builder.h"
#include "table_fixture.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* ---- what goes well ------------------------------------------------------------------------ */

/* The same service gets another group of objects. */
static void forget_answers(Fixture *fixture)
{
	memset(fixture->objects, 0, sizeof(fixture->objects));
	fixture->answered = 0;
}

/* A TableFindDebug. */
static int find_debug(void *user, uint32_t id, const char *debuglink, unsigned candidate)
{
	const Object *object = &((const Fixture *)user)->objects[id];
	const struct behaviour *behaviour = debuglink ? &object->by_link : &object->by_build_id;

	if (debuglink)
		assert_string_equal(debuglink, object->behaviour.debuglink);
	return behaviour->rows && candidate == 0 ? make_object(behaviour) : -ENOENT;
}

static void test_order(void **state)
{
	Fixture *fixture = *state;

	fixture->options.workers = 1;
	start_service(fixture);
	for (uint32_t id = 1; id <= 50; id++)
		want_object(fixture, 51 - id, 'g');
	/* Nothing is answered from within, nor is a child there before it is needed. */
	assert_int_equal(fixture->answered, 0);
	assert_int_equal(table_service_counts(fixture->service).children, 0);
	await_all(fixture);
	for (uint32_t id = 1; id <= 50; id++) {
		check_answer(fixture, id, 0);
		assert_int_equal(fixture->order[id - 1], 51 - id);
	}
	assert_int_equal(table_service_counts(fixture->service).children, 1);
	assert_int_equal(table_service_counts(fixture->service).built, 50);
	/* The oracle sees another table. */
	fixture->objects[1].behaviour.seed++;
	{
		UnwindTable table = make_table(fixture->objects[1].behaviour.seed - 1 + BASE_SVMA,
					       fixture->objects[1].behaviour.rows);

		assert_false(is_right(&fixture->objects[1], &table));
		unwind_table_free(&table);
	}
	stop_service(fixture);
}

static void test_duplicates(void **state)
{
	Fixture *fixture = *state;
	_cleanup_close_ int fd = -1;

	start_service(fixture);
	want_object(fixture, 7, 'g');
	fd = make_object(&fixture->objects[7].behaviour);
	want_fd(fixture, 7, fd);
	await_all(fixture);
	check_answer(fixture, 7, 0);
	assert_int_equal(table_service_counts(fixture->service).wanted, 1);
	check_answer(fixture, 7, 0);
	/* Once it is answered, it may be wanted again: its table may have been thrown away. */
	fixture->objects[7].answers = 0;
	want_fd(fixture, 7, fd);
	await_all(fixture);
	assert_true(fixture->objects[7].right);
	assert_int_equal(fixture->answered, 2);
	assert_int_equal(table_service_counts(fixture->service).wanted, 2);
	closep(&fd);
	stop_service(fixture);
}

/*
 * What becomes of an object with debug files: its own behaviour, those of the files found by the
 * build id and by the link (0 = none is there), whose table is right, and what is said of the debug
 * file.
 */
static const struct {
	char own, by_build_id, by_link;
	char wanted;
	int error, debug;
} debug_files[] = {
	/* Not looked for if the object has what is needed, or cannot be read. */
	{'g', 'g', 'g', 0, 0, 0},
	{'c', 'g', 'g', 0, -EIO, 0},
	/* There are none, one, the other, both. */
	{'d', 0, 0, 0, -ENODATA, 0},
	{'l', 0, 0, 0, 0, 0},
	{'d', 'g', 0, 'b', 0, TABLE_DEBUG_USED},
	{'l', 'g', 0, 'b', 0, TABLE_DEBUG_USED},
	{'d', 0, 'g', 'l', 0, TABLE_DEBUG_USED},
	{'l', 0, 'g', 'l', 0, TABLE_DEBUG_USED},
	{'d', 'g', 'g', 'b', 0, TABLE_DEBUG_USED},
	/* What has nothing to add, or is another object's, or ends its reader, is passed by. */
	{'d', 'd', 'g', 'l', 0, TABLE_DEBUG_USED},
	{'l', 'd', 'd', 0, 0, 0},
	{'d', 'i', 0, 0, -ENODATA, -ESTALE},
	{'l', 'i', 0, 0, 0, -ESTALE},
	{'d', 'i', 'g', 'l', 0, TABLE_DEBUG_USED},
	{'l', 'i', 'i', 0, 0, -ESTALE},
	{'l', 'c', 0, 0, 0, -EIO},
	{'l', 'c', 'g', 'l', 0, TABLE_DEBUG_USED},
	{'d', 's', 'g', 'l', 0, TABLE_DEBUG_USED},
	{'l', 0, 's', 0, 0, -ETIME},
	{'l', 'u', 0, 0, 0, -EBADMSG},
};

static struct behaviour random_behaviour(char what)
{
	return (struct behaviour){
		.what = what,
		.rows = what ? 3 + random_below(900) : 0,
		/* More than any object alone: a debug file adds to what there is. */
		.seed = (1 << 20) + random_below(1 << 20)};
}

static void want_with_debug_files(Fixture *fixture, uint32_t id, size_t i)
{
	Object *object = &fixture->objects[id];
	_cleanup_close_ int fd = -1;

	object->behaviour = random_behaviour(debug_files[i].own);
	object->behaviour.seed -= 1 << 20;
	object->by_build_id = random_behaviour(debug_files[i].by_build_id);
	object->by_link = random_behaviour(debug_files[i].by_link);
	object->wanted = debug_files[i].wanted;
	sprintf(object->behaviour.debuglink, "debug-%u", id);
	fd = make_object(&object->behaviour);
	want_fd(fixture, id, fd);
}

static void test_debug_files(void **state)
{
	Fixture *fixture = *state;

	fixture->options.find_debug = find_debug;
	fixture->options.find_user = fixture;
	start_service(fixture);
	for (uint32_t id = 1; id <= ARRAY_LEN(debug_files); id++)
		want_with_debug_files(fixture, id, id - 1);
	await_all(fixture);
	for (uint32_t id = 1; id <= ARRAY_LEN(debug_files); id++) {
		check_answer(fixture, id, debug_files[id - 1].error);
		assert_int_equal(fixture->objects[id].debug, debug_files[id - 1].debug);
	}
	assert_true(strlen(table_error_text(-ESTALE)) > 10);
	stop_service(fixture);
}

/* Freed while debug files are tried. */
static void test_freed_with_debug_files(void **state)
{
	Fixture *fixture = *state;

	fixture->options.find_debug = find_debug;
	fixture->options.find_user = fixture;
	for (int round = 0; round < 10; round++) {
		start_service(fixture);
		for (uint32_t id = 1; id <= 40; id++)
			want_with_debug_files(fixture, id, random_below(ARRAY_LEN(debug_files)));
		for (size_t i = random_below(8); i > 0; i--) {
			is_readable(fixture, 20);
			table_service_process(fixture->service, on_ready, fixture);
		}
		stop_service(fixture);
		forget_answers(fixture);
	}
}

/* More is wanted from within an answer, by a service that has nothing else to do. */
static void test_want_from_answer(void **state)
{
	Fixture *fixture = *state;

	start_service(fixture);
	for (uint32_t id = 1; id < 40; id += 2) {
		fixture->next = id + 1;
		want_object(fixture, id, random_below(4) ? 'g' : 'd');
		await_all(fixture);
		check_answer(fixture, id + 1, 0);
	}
	stop_service(fixture);
}

/* From 24 bytes to megabytes. */
static void test_sizes(void **state)
{
	Fixture *fixture = *state;

	/* Millions of rows take a sanitizer longer than the timeout of the other tests. */
	fixture->options.timeout_ns = 0;
	start_service(fixture);
	for (uint32_t id = 1; id <= 30; id++) {
		Object *object = &fixture->objects[id];
		_cleanup_close_ int fd = -1;

		object->behaviour = (struct behaviour){.what = 'g',
						       .rows = 3 + random_below(1 << (id % 22)),
						       .seed = random_below(1 << 30)};
		fd = make_object(&object->behaviour);
		want_fd(fixture, id, fd);
	}
	await_all(fixture);
	for (uint32_t id = 1; id <= 30; id++)
		check_answer(fixture, id, 0);
	stop_service(fixture);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static const struct {
	char behaviour;
	int wanted;
} behaviours[] = {
	{'c', -EIO},	 {'a', -EIO},	  {'e', -EIO},	   {'s', -ETIME},   {'f', -ETIME},
	{'h', -ETIME},	 {'u', -EBADMSG}, {'r', -EBADMSG}, {'k', -EBADMSG}, {'b', -EBADMSG},
	{'z', -EBADMSG}, {'Z', -EBADMSG}, {'m', -EBADMSG}, {'M', -EBADMSG}, {'o', -EBADMSG},
	{'R', -EBADMSG}, {'n', -EBADMSG}, {'p', -EBADMSG}, {'d', -ENODATA}, {'t', -ENODATA},
};

static void test_each_behaviour(void **state)
{
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(behaviours); i++) {
		uint64_t began = now_ns();

		fixture->options.workers = 1;
		start_service(fixture);
		want_object(fixture, 1, behaviours[i].behaviour);
		want_object(fixture, 2, 'g'); /* the next request is served */
		await_all(fixture);
		check_answer(fixture, 1, behaviours[i].wanted);
		check_answer(fixture, 2, 0);
		assert_true(strlen(table_error_text(behaviours[i].wanted)) > 10);
		assert_true(now_ns() - began < 30 * NSEC_PER_SEC);
		stop_service(fixture);
		forget_answers(fixture);
	}
}

static bool is_forger(char behaviour)
{
	return strchr("hmMoRnpt", behaviour); /* these know their number only in a new child */
}

/*
 * Returns how long this thread has waited for a CPU (the second field of /proc/PID/schedstat), in
 * ns; 0 if the kernel does not count it. On a busy machine this is no fault of the service.
 */
static uint64_t run_queue_latency_ns(void)
{
	unsigned long long ran = 0, delayed = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &ran, &delayed) != 2)
		delayed = 0;
	fclose(file);
	return delayed;
}

/* Good ones and bad ones in any order, all at once. */
static void test_three_hundred(void **state)
{
	Fixture *fixture = *state;
	size_t slowest = 0, hung = 0;
	int wanted[301];

	fixture->options.workers = 2;
	fixture->options.timeout_ns = 3 * TIMEOUT_NS;
	start_service(fixture);
	for (uint32_t id = 1; id <= 300; id++) {
		size_t i = random_below(10) ? SIZE_MAX : random_below(ARRAY_LEN(behaviours));

		if (i == SIZE_MAX || is_forger(behaviours[i].behaviour) ||
		    (strchr("sf", behaviours[i].behaviour) && ++hung > 3)) {
			want_object(fixture, id, 'g');
			wanted[id] = 0;
		} else {
			want_object(fixture, id, behaviours[i].behaviour);
			wanted[id] = behaviours[i].wanted;
		}
	}
	for (uint64_t end = now_ns() + LONG_NS; fixture->answered < 300 && now_ns() < end;) {
		struct pollfd polled = {.fd = table_service_fd(fixture->service), .events = POLLIN};
		uint64_t began, delayed, took;

		assert_int_equal(poll(&polled, 1, 30000), 1);
		delayed = run_queue_latency_ns();
		began = now_ns();
		table_service_process(fixture->service, on_ready, fixture);
		took = now_ns() - began;
		delayed = run_queue_latency_ns() - delayed;
		slowest = MAX(slowest, took - MIN(took, delayed));
	}
	for (uint32_t id = 1; id <= 300; id++)
		check_answer(fixture, id, wanted[id]);
	print_message("the slowest took %.1f ms\n", slowest / 1e6);
	/* table_service_process() must not wait for a child. */
	assert_true(slowest < 3 * TIMEOUT_NS);
	stop_service(fixture);
}

static void look_twice(const UnwindTable *table)
{
	UnwindTable copy = {};

	assert_true(unwind_table_valid(table));
	vec_append(&copy.rows, table->rows.items, table->rows.count);
	vec_append(&copy.rules, table->rules.items, table->rules.count);
	copy.counts = table->counts;
	usleep(2000);
	assert_true(same_tables(table, &copy));
	unwind_table_free(&copy);
}

/* What has been checked is what is used, and not what the child makes of it then. */
static void test_changing_memory(void **state)
{
	Fixture *fixture = *state;
	size_t tables = 0, refused = 0;
	int rounds = is_long_run() ? 40 : 20;

	fixture->options.workers = 1;
	fixture->look = look_twice;
	for (int round = 0; round < rounds; round++) {
		start_service(fixture);
		want_object(fixture, 1, 'x');
		want_object(fixture, 2, 'g');
		await_all(fixture);
		if (fixture->objects[1].error)
			check_answer(fixture, 1, -EBADMSG);
		tables += !fixture->objects[1].error;
		refused += fixture->objects[1].error != 0;
		check_answer(fixture, 2, 0);
		stop_service(fixture);
		forget_answers(fixture);
	}
	print_message("%zu tables of memory that changes, %zu refused\n", tables, refused);
	assert_true(tables > 0);
}

/* One child can't write what another one is believed to have written. */
static void test_regions_apart(void **state)
{
	Fixture *fixture = *state;

	fixture->options.workers = 2;
	start_service(fixture);
	want_object(fixture, 1, 'f'); /* keeps the first child busy */
	want_object(fixture, 2, 'y');
	await_all(fixture);
	assert_int_equal(table_service_counts(fixture->service).children, 2);
	check_answer(fixture, 1, -ETIME);
	check_answer(fixture, 2, -EIO);
	stop_service(fixture);
}

/* Until the only child has the object in its memory, which on a busy machine may take long. */
static void await_mapped(void)
{
	uint64_t end = now_ns() + LONG_NS;

	for (;;) {
		_cleanup_free_ char *mapped =
			try_output("grep memfd:object /proc/$(pgrep -P %d -x test_table_serv)/maps "
				   "2>/dev/null",
				   getpid());

		if (mapped && *mapped)
			return;
		assert_true(now_ns() < end);
	}
}

/* A mapped file that is truncated kills the process that reads it: the child. */
static void test_shrinking_file(void **state)
{
	Fixture *fixture = *state;
	struct behaviour behaviour = {.what = 'w', .rows = 9};
	int fd = make_object(&behaviour);

	fixture->options.workers = 1;
	fixture->options.timeout_ns = 0;
	start_service(fixture);
	want_fd(fixture, 1, fd);
	want_object(fixture, 2, 'g');
	table_service_process(fixture->service, on_ready, fixture);
	table_service_process(fixture->service, on_ready, fixture);
	await_mapped();
	assert_int_equal(fixture->answered, 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	await_all(fixture);
	check_answer(fixture, 1, -EIO);
	check_answer(fixture, 2, 0);
	close(fd);
	stop_service(fixture);
}

/* A child that is killed, idle or busy, is replaced. */
static void test_killed(void **state)
{
	Fixture *fixture = *state;

	fixture->options.workers = 1;
	fixture->options.timeout_ns = 0;
	start_service(fixture);
	for (uint32_t id = 1; id <= 6; id++) {
		_cleanup_free_ char *child = NULL;

		want_object(fixture, id, 'g');
		await_all(fixture);
		check_answer(fixture, id, 0);
		assert_int_equal(table_service_counts(fixture->service).children, id);
		child = output_of("pgrep -P %d -x test_table_serv", getpid());
		assert_int_equal(kill(atoi(child), SIGKILL), 0);
		if (id % 2)
			usleep(50000);
	}
	stop_service(fixture);
}

static uint64_t children_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
}

/* Any number of files that take forever hold the others up for a bounded time. */
static void test_timeout_ends(void **state)
{
	Fixture *fixture = *state;
	uint64_t before = children_cpu_ns();

	fixture->options.workers = 1;
	fixture->options.timeout_ns = 400 * NSEC_PER_MSEC;
	start_service(fixture);
	for (uint32_t id = 1; id <= 20; id++)
		want_object(fixture, id, 's');
	want_object(fixture, 21, 'g');
	await_all(fixture);
	for (uint32_t id = 1; id <= 20; id++)
		check_answer(fixture, id, -ETIME);
	check_answer(fixture, 21, 0);
	stop_service(fixture);
	/* Each half as long as the one before, down to an eighth: 1.6 s, and not 8 s. */
	assert_true(children_cpu_ns() - before < 4 * NSEC_PER_SEC);
}

/* The only child of this process. */
static pid_t worker_pid(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	if (!file || fscanf(file, "%d", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return pid;
}

/* A child that takes one CPU from whatever is in SCHED_IDLE; 0 if it may not. */
static pid_t burn_on(const cpu_set_t *cpu)
{
	int ready[2], error = EPIPE;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		error = sched_setaffinity(0, sizeof(*cpu), cpu) ||
			sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){});
		if (write(ready[1], &error, sizeof(error)) < 0 || error)
			_exit(1);
		for (;;)
			;
	}
	assert_true(pid > 0);
	close(ready[1]);
	if (read(ready[0], &error, sizeof(error)) < 0)
		error = errno;
	close(ready[0]);
	if (!error)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

/*
 * The worker gets nearly no CPU time from now on. The test itself may be in SCHED_IDLE, so the
 * other process must leave it. Returns that process, 0 if it may not.
 */
static pid_t starve(pid_t worker)
{
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(worker, sizeof(one), &one), 0);
	assert_int_equal(sched_setscheduler(worker, SCHED_IDLE, &(struct sched_param){}), 0);
	return burn_on(&one);
}

/*
 * A worker that waits for a CPU is not ended for it, however long that takes. A job that is short
 * enough is done before the kernel lets it wait, so the jobs grow until one has waited.
 */
static void test_starved(void **state)
{
	enum { STARVED_MS = 50, ROWS_MAX = 2000000 };
	const uint64_t wall_ns = 10 * STARVED_MS * NSEC_PER_MSEC;
	Fixture *fixture = *state;
	uint64_t took = 0;
	pid_t worker, burner;
	uint32_t id = 1;

	fixture->options.workers = 1;
	fixture->options.timeout_ns = STARVED_MS * NSEC_PER_MSEC;
	start_service(fixture);
	want_object(fixture, id, 'g');
	await_all(fixture);
	worker = worker_pid();
	if (!worker)
		skip_because("/proc has no list of children");
	burner = starve(worker);
	if (!burner)
		skip_because("no process may leave SCHED_IDLE");
	for (uint32_t rows = 10000; took <= wall_ns && rows < ROWS_MAX; rows *= 2) {
		Object *object = &fixture->objects[++id];
		_cleanup_close_ int fd = -1;
		uint64_t began = now_ns();

		object->behaviour = (struct behaviour){.what = 'g', .rows = rows, .seed = rows};
		fd = make_object(&object->behaviour);
		want_fd(fixture, id, fd);
		await_all(fixture);
		took = now_ns() - began;
		print_message("%u rows took %.0f ms\n", rows, took / 1e6);
		check_answer(fixture, id, 0);
	}
	kill(burner, SIGKILL);
	waitpid(burner, NULL, 0);
	assert_true(took > wall_ns);
	assert_int_equal(table_service_counts(fixture->service).children, 1);
	stop_service(fixture);
}

static void test_not_openable(void **state)
{
	Fixture *fixture = *state;
	struct rlimit limit, low;
	int text = memfd_create("text", MFD_CLOEXEC);

	start_service(fixture);
	want_fd(fixture, 1, -1);
	want_fd(fixture, 2, 12345);
	assert_int_equal(write(text, "text", 4), 4);
	want_fd(fixture, 3, text);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){.rlim_cur = text + 1, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	want_fd(fixture, 4, text);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	await_all(fixture);
	check_answer(fixture, 1, -EBADF);
	check_answer(fixture, 2, -EBADF);
	check_answer(fixture, 3, -ENOEXEC);
	check_answer(fixture, 4, -EMFILE);
	close(text);
	stop_service(fixture);
}

/* ---- when something is to be done ------------------------------------------------------------ */

static void test_descriptor(void **state)
{
	Fixture *fixture = *state;

	fixture->options.workers = 1;
	start_service(fixture);
	assert_false(is_readable(fixture, 0));
	want_object(fixture, 1, 'g');
	while (fixture->answered == 0) {
		assert_true(is_readable(fixture, 30000));
		table_service_process(fixture->service, on_ready, fixture);
	}
	assert_false(is_readable(fixture, 20));
	/* A deadline: not before it, and not much later. */
	want_object(fixture, 2, 'f');
	assert_true(is_readable(fixture, 0));
	table_service_process(fixture->service, on_ready, fixture);
	assert_false(is_readable(fixture, TIMEOUT_NS / NSEC_PER_MSEC / 2));
	while (fixture->answered == 1) {
		assert_true(is_readable(fixture, 30000));
		table_service_process(fixture->service, on_ready, fixture);
	}
	check_answer(fixture, 2, -ETIME);
	assert_false(is_readable(fixture, 20));
	/* The wait that ends before the answer says how many there are. */
	want_object(fixture, 3, 'f');
	want_object(fixture, 4, 'g');
	assert_int_equal(table_service_wait(fixture->service, now_ns(), on_ready, fixture), 2);
	stop_service(fixture);
}

/* Whatever is going on. */
static void test_freed_with_jobs(void **state)
{
	static const char what[] = "gsfchw";
	Fixture *fixture = *state;

	for (int round = 0; round < 10; round++) {
		start_service(fixture);
		for (uint32_t id = 1; id <= 30; id++)
			want_object(fixture, id, what[random_below(sizeof(what) - 1)]);
		for (size_t i = random_below(4); i > 0; i--)
			table_service_process(fixture->service, on_ready, fixture);
		stop_service(fixture);
		forget_answers(fixture);
	}
	table_service_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_order),
		WITH_FIXTURE(test_duplicates),
		WITH_FIXTURE(test_debug_files),
		WITH_FIXTURE(test_freed_with_debug_files),
		WITH_FIXTURE(test_want_from_answer),
		WITH_FIXTURE(test_sizes),
		WITH_FIXTURE(test_each_behaviour),
		WITH_FIXTURE(test_three_hundred),
		WITH_FIXTURE(test_changing_memory),
		WITH_FIXTURE(test_regions_apart),
		WITH_FIXTURE(test_shrinking_file),
		WITH_FIXTURE(test_killed),
		WITH_FIXTURE(test_timeout_ends),
		WITH_FIXTURE(test_starved),
		WITH_FIXTURE(test_not_openable),
		WITH_FIXTURE(test_descriptor),
		WITH_FIXTURE(test_freed_with_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
