/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segments: what is let go is read in slices; on a full disk the oldest are given up, and what is
 * left is whole. The clock is the test's.
 */
#include "capture.h"
#include "flight_recorder.h"
#include "make_record.h"
#include "test_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#define KEEP_NS	  NSEC_PER_SEC
#define THREAD	  100
#define LOOK_NS	  (10 * NSEC_PER_USEC) /* passes with each look at the clock */
#define DISK_SIZE (2u << 20)
#define LET_GO_NS (3 * NSEC_PER_SEC) /* after so long a segment goes */

static uint64_t present_ns;

static uint64_t present_clock(void)
{
	return present_ns += LOOK_NS;
}

typedef struct Fixture {
	char *folder, *path;
	CaptureWriter *writer;
	FlightRecorder *flight;
	uint64_t start_ns; /* where the kept part begins; 0: not reported */
	bool small;	   /* the folder is a disk of its own */
	size_t seq;	   /* of the next switch */
} Fixture;

static Fixture *prepare(void)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	present_ns = 10 * NSEC_PER_SEC;
	fixture->folder = xstrdup("/tmp/wallprof-flight-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	return fixture;
}

static void begin(Fixture *fixture)
{
	FlightRecorderOptions options = {
		.keep_ns = KEEP_NS, .level = 1, .threads = 1, .clock = present_clock};
	int fd;

	fixture->path = xasprintf("%s/capture", fixture->folder);
	fd = open(fixture->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(capture_writer_new(fd, 1, 1, &fixture->writer), 0);
	options.capture_path = fixture->path;
	options.capture = fixture->writer;
	assert_int_equal(flight_recorder_new(&options, &fixture->flight), 0);
}

static int setup(void **state)
{
	Fixture *fixture = prepare();

	begin(fixture);
	*state = fixture;
	return 0;
}

static bool mount_small(const char *folder)
{
	_cleanup_free_ char *size = xasprintf("size=%u", DISK_SIZE);

	/* For this process alone: it goes with it. */
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("small", folder, "tmpfs", 0, size);
}

/* On a disk of DISK_SIZE; without one there is no flight. */
static int setup_small(void **state)
{
	Fixture *fixture = prepare();

	if (!geteuid() && mount_small(fixture->folder)) {
		fixture->small = true;
		begin(fixture);
	}
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	Fixture *fixture = *state;

	flight_recorder_free(fixture->flight);
	if (fixture->small)
		umount2(fixture->folder, MNT_DETACH);
	else if (fixture->path)
		unlink(fixture->path);
	rmdir(fixture->folder);
	free(fixture->folder);
	free(fixture->path);
	free(fixture);
	return 0;
}

/* The thread is switched out; what differs cannot be compressed. Returns flight_recorder_write()'s.
 */
static int write_switch(Fixture *fixture, uint16_t seq)
{
	struct rec_switch record = {
		.h = {.len = sizeof(record), .kind = REC_SWITCH, .flags = SWITCH_PREV},
		.prev_tid = THREAD,
		.prev_seq = seq,
		.parts = SWITCH_HAS_OUT | SWITCH_HAS_OBJECT,
		.args = {random() ^ random() << 31, random() ^ random() << 31},
	};

	record.h.ns = present_ns;
	return flight_recorder_write(fixture->flight, &record.h);
}

static void write_switches(Fixture *fixture, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(write_switch(fixture, i), 0);
}

static int start(void *user, uint64_t ns)
{
	Fixture *fixture = user;
	struct rec_window record = {
		.h = {.len = sizeof(record), .kind = REC_WINDOW, .flags = WINDOW_START, .ns = ns}};

	fixture->start_ns = ns;
	return capture_write(fixture->writer, &record.h);
}

/* What the capture has of the thread in the end. */
typedef struct Kept {
	size_t switches;
	uint16_t first_seq, last_seq;
} Kept;

static Kept read_kept(Fixture *fixture)
{
	const struct record *record;
	CaptureReader *reader;
	const char *message;
	Kept kept = {};

	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	while (capture_read(reader, &record) > 0) {
		const struct rec_switch *switched = (const struct rec_switch *)record;

		if (record->kind != REC_SWITCH)
			continue;
		if (kept.switches++ == 0)
			kept.first_seq = switched->prev_seq;
		kept.last_seq = switched->prev_seq;
	}
	assert_null(capture_reader_damage(reader));
	capture_reader_free(reader);
	return kept;
}

static Kept finish(Fixture *fixture)
{
	assert_int_equal(flight_recorder_finish(fixture->flight, 0, present_ns, start, fixture), 0);
	assert_int_equal(capture_writer_close(fixture->writer), 0);
	return read_kept(fixture);
}

/* A segment with many records, which is to go. */
static void make_old_segment(Fixture *fixture, size_t count)
{
	write_switches(fixture, count);
	present_ns += NSEC_PER_SEC;
	assert_int_equal(flight_recorder_step(fixture->flight), 0);
	assert_false(flight_recorder_is_busy(fixture->flight));
	present_ns += LET_GO_NS;
}

/* However much there is to read, a round takes little of it. */
static void test_slices(void **state)
{
	Fixture *fixture = *state;
	size_t rounds = 0;
	Kept kept;

	make_old_segment(fixture, 200000);
	assert_true(flight_recorder_is_busy(fixture->flight));
	for (; flight_recorder_is_busy(fixture->flight); rounds++) {
		uint64_t begin_ns = present_ns;

		assert_int_equal(flight_recorder_step(fixture->flight), 0);
		assert_uint_in_range(present_ns - begin_ns, 0, 4 * NSEC_PER_MSEC);
		assert_uint_in_range(rounds, 0, 100);
	}
	/* 256 records a look, and no more than 3 ms of looks a round. */
	assert_uint_in_range(rounds, 3, 4);
	kept = finish(fixture);
	assert_int_equal(kept.switches, 2); /* the last two are carried */
	assert_int_equal(kept.last_seq, (uint16_t)199999);
}

/* One that ends meanwhile has carried on all of it. */
static void test_end_between(void **state)
{
	Fixture *fixture = *state;
	Kept kept;

	make_old_segment(fixture, 200000);
	assert_int_equal(flight_recorder_step(fixture->flight), 0);
	assert_true(flight_recorder_is_busy(fixture->flight));
	kept = finish(fixture);
	assert_int_equal(kept.switches, 2);
	assert_int_equal(kept.last_seq, (uint16_t)199999);
}

/* ---- a full disk -------------------------------------------------------------- */

/* Each takes a quarter of the disk. */
static void write_segments(Fixture *fixture, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < 30000; k++, fixture->seq++)
			assert_int_equal(write_switch(fixture, fixture->seq), 0);
		present_ns += NSEC_PER_SEC / 4;
		assert_int_equal(flight_recorder_step(fixture->flight), 0);
	}
}

/* Others take all room that there is. */
static void fill_disk(const Fixture *fixture)
{
	static const char page[4096];
	_cleanup_free_ char *path = xasprintf("%s/fill", fixture->folder);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	while (write_all(fd, page, sizeof(page)) == 0)
		;
}

static void check_newest(const Fixture *fixture, const Kept *kept)
{
	assert_int_equal(kept->last_seq, (uint16_t)(fixture->seq - 1));
	assert_uint_in_range(kept->switches, 30000, fixture->seq);
	/* There is no hole, but between what is carried and the first one. */
	assert_int_equal((uint16_t)(kept->last_seq - kept->first_seq + 1),
			 (uint16_t)kept->switches);
}

/* It grows beyond the disk by itself: the newest are kept, and where that begins is reported. */
static void test_too_small(void **state)
{
	Fixture *fixture = *state;
	Kept kept;

	if (!fixture->small)
		skip();
	write_segments(fixture, 20);
	assert_true(flight_recorder_segments_dropped(fixture->flight) > 0);
	kept = finish(fixture);
	check_newest(fixture, &kept);
	assert_uint_in_range(fixture->start_ns, present_ns - KEEP_NS + 1, present_ns);
}

/* Others have filled it at the end: what goes over to the capture needs no room of its own. */
static void test_full_at_end(void **state)
{
	Fixture *fixture = *state;
	Kept kept;

	if (!fixture->small)
		skip();
	write_segments(fixture, 3);
	fill_disk(fixture);
	kept = finish(fixture);
	check_newest(fixture, &kept);
	assert_int_equal(flight_recorder_segments_dropped(fixture->flight), 1);
}

/* Others fill it again and again, until nothing is left to give up. */
static void test_no_room(void **state)
{
	Fixture *fixture = *state;
	int error = 0;

	if (!fixture->small)
		skip();
	write_segments(fixture, 3);
	for (size_t i = 0; i < 1000000 && !error; i++) {
		if (i % 10000 == 0)
			fill_disk(fixture);
		error = write_switch(fixture, i);
	}
	assert_int_equal(error, -ENOSPC);
	assert_int_equal(flight_recorder_finish(fixture->flight, 0, present_ns, start, fixture),
			 -ENOSPC);
	capture_writer_close(fixture->writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_between, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_small, setup_small, teardown),
		cmocka_unit_test_setup_teardown(test_full_at_end, setup_small, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup_small, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
