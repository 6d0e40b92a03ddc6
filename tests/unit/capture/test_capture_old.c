/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of version 2 of the capture file, as wallprof 0.1.0 wrote them, and their present form.
 */
#include "capture.h"
#include "make_record.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define VERSION_AT 16 /* in the file */

typedef struct OldSwitch {
	struct record h;
	uint32_t prev_tid, next_tid;
	uint16_t prev_seq, next_seq, prev_state;
	int16_t syscall;
	uint64_t kstack, ustack, args[3];
	uint8_t fd_kind, fd_count;
	uint16_t reserved;
	uint32_t owner;
	uint64_t inode;
	uint32_t file_device, generation;
	uint64_t more; /* a record may be longer */
} OldSwitch;

typedef struct OldWaking {
	struct record h;
	uint32_t tid, waker_tid;
	uint64_t kstack, ustack;
	uint64_t more;
} OldWaking;

typedef struct OldExit {
	struct record h;
	uint32_t tid, tgid, exit_code, reserved;
	uint64_t start_boottime, process_start_boottime;
} OldExit;

typedef struct OldStats {
	struct record h;
	uint32_t tid, reserved;
	uint64_t sums[8], read_bytes, write_bytes;
} OldStats;

typedef struct OldSnapshot {
	struct record h;
	uint32_t tid;
	uint16_t seq, state;
	uint64_t ns_after, kstack, ustack, args[3];
	int16_t syscall;
	uint8_t fd_kind, fd_count;
	uint16_t task_cpu, reserved;
	uint64_t inode;
	uint32_t file_device, generation, owner, reserved2;
} OldSnapshot;

typedef union Old {
	struct record h;
	OldSwitch switched;
	OldWaking waking;
	OldExit exit;
	OldStats stats;
	OldSnapshot snapshot;
	uint8_t bytes[120];
} Old;

_Static_assert(sizeof(OldSwitch) == 104 && sizeof(OldWaking) == 48 && sizeof(OldExit) == 48 &&
		       sizeof(OldStats) == 104 && sizeof(OldSnapshot) == 104,
	       "as version 2 had them");

/* Lengths that records of version 2 had. */
static const struct {
	uint8_t kind;
	uint16_t lengths[5];
} kinds[] = {
	{REC_SWITCH, {32, 80, 96, 104}}, {REC_WAKING, {24, 40, 48}},	{REC_EXIT, {32, 48}},
	{REC_STATS, {88, 104}},		 {REC_SNAPSHOT, {80, 96, 104}},
};

static Old random_record(void)
{
	size_t kind = random() % ARRAY_LEN(kinds), count = 0;
	Old old;

	while (count < ARRAY_LEN(kinds[kind].lengths) && kinds[kind].lengths[count])
		count++;
	for (size_t i = 0; i < sizeof(old.bytes); i++)
		old.bytes[i] = random();
	old.h.ns &= INT64_MAX;
	old.h.kind = kinds[kind].kind;
	old.h.len = kinds[kind].lengths[random() % count];
	/* A switch-out of a target has its part. */
	if (old.h.kind == REC_SWITCH && old.h.len < 80)
		old.h.flags &= ~SWITCH_PREV;
	return old;
}

static void assert_header(const struct record *now, const struct record *old)
{
	assert_int_equal(now->kind, old->kind);
	assert_int_equal(now->flags, old->flags);
	assert_int_equal(now->cpu, old->cpu);
	assert_int_equal(now->ns, old->ns);
	assert_int_equal(now->len % 8, 0);
}

static void assert_switch(const struct rec_switch *now, const OldSwitch *old)
{
	uint16_t parts = (old->h.len >= 80 ? SWITCH_HAS_OUT : 0) |
			 (old->h.len >= 96 ? SWITCH_HAS_OBJECT : 0);

	assert_int_equal(now->prev_tid, old->prev_tid);
	assert_int_equal(now->next_tid, old->next_tid);
	assert_int_equal(now->prev_seq, old->prev_seq);
	assert_int_equal(now->next_seq, old->next_seq);
	assert_int_equal(now->prev_state, old->prev_state);
	assert_int_equal(now->syscall, old->syscall);
	assert_int_equal(now->parts, parts);
	assert_int_equal(now->own_in | now->own_run | now->complete_for, 0);
	assert_int_equal(now->interrupts_ns | now->stolen_ns, 0);
	if (parts & SWITCH_HAS_OUT) {
		assert_int_equal(now->kstack, old->kstack);
		assert_int_equal(now->ustack, old->ustack);
		assert_memory_equal(now->args, old->args, sizeof(now->args));
		assert_int_equal(now->fd_kind, old->fd_kind);
		assert_int_equal(now->fd_count, old->fd_count);
		assert_int_equal(now->owner, old->owner);
	} else {
		assert_int_equal(now->fd_kind, 0);
	}
	if (parts & SWITCH_HAS_OBJECT) {
		assert_int_equal(now->inode, old->inode);
		assert_int_equal(now->file_device, old->file_device);
		assert_int_equal(now->generation, old->generation);
	}
}

static void assert_waking(const struct rec_waking *now, const OldWaking *old)
{
	assert_int_equal(now->tid, old->tid);
	assert_int_equal(now->waker_tid, old->waker_tid);
	assert_int_equal(now->parts, old->h.len >= 40 ? WAKING_HAS_STACKS : 0);
	if (now->parts) {
		assert_int_equal(now->kstack, old->kstack);
		assert_int_equal(now->ustack, old->ustack);
	}
}

static void assert_exit(const struct rec_exit *now, const OldExit *old)
{
	assert_int_equal(now->tid, old->tid);
	assert_int_equal(now->tgid, old->tgid);
	assert_int_equal(now->exit_code, old->exit_code);
	assert_int_equal(now->parts, old->h.len >= 48 ? EXIT_HAS_STARTS : 0);
	if (now->parts) {
		assert_int_equal(now->start_boottime, old->start_boottime);
		assert_int_equal(now->process_start_boottime, old->process_start_boottime);
	}
}

static void assert_stats(const struct rec_stats *now, const OldStats *old)
{
	assert_int_equal(now->tid, old->tid);
	assert_memory_equal(&now->sum_exec_runtime, old->sums, sizeof(old->sums));
	assert_int_equal(now->parts, old->h.len >= 104 ? STATS_HAS_BYTES : 0);
	if (now->parts) {
		assert_int_equal(now->read_bytes, old->read_bytes);
		assert_int_equal(now->write_bytes, old->write_bytes);
	}
}

static void assert_snapshot(const struct rec_snapshot *now, const OldSnapshot *old)
{
	uint16_t parts = (old->h.len >= 96 ? SNAPSHOT_HAS_OBJECT : 0) |
			 (old->h.len >= 104 ? SNAPSHOT_HAS_OWNER : 0);

	assert_int_equal(now->tid, old->tid);
	assert_int_equal(now->seq, old->seq);
	assert_int_equal(now->state, old->state);
	assert_int_equal(now->ns_after, old->ns_after);
	assert_int_equal(now->kstack, old->kstack);
	assert_int_equal(now->ustack, old->ustack);
	assert_memory_equal(now->args, old->args, sizeof(now->args));
	assert_int_equal(now->syscall, old->syscall);
	assert_int_equal(now->fd_kind, old->fd_kind);
	assert_int_equal(now->fd_count, old->fd_count);
	assert_int_equal(now->task_cpu, old->task_cpu);
	assert_int_equal(now->parts, parts);
	if (parts & SNAPSHOT_HAS_OBJECT) {
		assert_int_equal(now->inode, old->inode);
		assert_int_equal(now->file_device, old->file_device);
		assert_int_equal(now->generation, old->generation);
	}
	if (parts & SNAPSHOT_HAS_OWNER)
		assert_int_equal(now->owner, old->owner);
}

static void assert_same(const struct record *now, const Old *old)
{
	assert_header(now, &old->h);
	switch (now->kind) {
	case REC_SWITCH:
		return assert_switch((const struct rec_switch *)now, &old->switched);
	case REC_WAKING:
		return assert_waking((const struct rec_waking *)now, &old->waking);
	case REC_EXIT:
		return assert_exit((const struct rec_exit *)now, &old->exit);
	case REC_STATS:
		return assert_stats((const struct rec_stats *)now, &old->stats);
	case REC_SNAPSHOT:
		return assert_snapshot((const struct rec_snapshot *)now, &old->snapshot);
	}
}

/* A file of that version with these bytes as its records, unchanged. */
static char *write_capture(const Old *records, size_t count, uint32_t version)
{
	CaptureWriter *writer;
	int fd;
	char *path = make_temporary(&fd);

	assert_int_equal(capture_writer_new(fd, 1, 1, &writer), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(capture_write(writer, &records[i].h), 0);
		if (random() % 100 == 0)
			assert_int_equal(capture_flush(writer), 0);
	}
	assert_int_equal(capture_writer_close(writer), 0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &version, sizeof(version), VERSION_AT), sizeof(version));
	close(fd);
	return path;
}

#define RECORDS 5000

static void test_old_records(void **state)
{
	Old *records = xcalloc(RECORDS, sizeof(*records));
	const struct record *record;
	CaptureReader *reader;
	const char *message;
	char *path;

	(void)state;
	for (size_t i = 0; i < RECORDS; i++)
		records[i] = random_record();
	path = write_capture(records, RECORDS, 2);
	for (int round = 0; round < 2; round++) {
		if (round == 0)
			assert_int_equal(capture_reader_open(path, &reader, &message), 0);
		else
			assert_int_equal(capture_reader_rewind(reader), 0);
		for (size_t i = 0; i < RECORDS; i++) {
			assert_int_equal(capture_read(reader, &record), 1);
			assert_same(record, &records[i]);
		}
		assert_int_equal(capture_read(reader, &record), 0);
		assert_null(capture_reader_damage(reader));
		assert_int_equal(capture_reader_counts(reader)->malformed, 0);
	}
	capture_reader_free(reader);
	unlink(path);
	free(path);
	free(records);
}

/* Other versions are refused; a record that is too short for version 2 stays malformed. */
static void test_malformed(void **state)
{
	static const uint32_t refused[] = {0, 1, CAPTURE_VERSION + 1, UINT32_MAX};
	static const struct {
		uint8_t kind, flags;
		uint16_t length;
	} malformed[] = {
		{REC_SWITCH, SWITCH_NEXT, 24},
		{REC_SWITCH, SWITCH_PREV, 32},
		{REC_SWITCH, SWITCH_PREV, 72},
		{REC_WAKING, 0, 16},
		{REC_EXIT, 0, 24},
		{REC_STATS, 0, 80},
		{REC_SNAPSHOT, 0, 72},
	};
	Old records[ARRAY_LEN(malformed)] = {};
	const struct record *record;
	CaptureReader *reader;
	const char *message;
	char *path;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(malformed); i++)
		records[i].h = (struct record){.len = malformed[i].length,
					       .kind = malformed[i].kind,
					       .flags = malformed[i].flags};
	path = write_capture(records, ARRAY_LEN(records), 2);
	assert_int_equal(capture_reader_open(path, &reader, &message), 0);
	assert_int_equal(capture_read(reader, &record), 0);
	assert_int_equal(capture_reader_counts(reader)->malformed, ARRAY_LEN(records));
	capture_reader_free(reader);
	unlink(path);
	free(path);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		path = write_capture(records, 1, refused[i]);
		assert_int_equal(capture_reader_open(path, &reader, &message), -EBADMSG);
		assert_non_null(message);
		unlink(path);
		free(path);
	}
}

/* A record of the present version that claims a part without being long enough for it. */
static void test_claimed_parts(void **state)
{
	static const struct {
		uint8_t kind;
		uint16_t mask_at, length;
		uint16_t mask;
		bool good;
	} claims[] = {
		{REC_SWITCH, 32, 56, 0, true},
		{REC_SWITCH, 32, 96, SWITCH_HAS_OUT, false},
		{REC_SWITCH, 32, 104, SWITCH_HAS_OUT, true},
		{REC_SWITCH, 32, 112, SWITCH_HAS_OBJECT, false},
		{REC_SWITCH, 32, 120, SWITCH_HAS_OUT | SWITCH_HAS_OBJECT, true},
		{REC_SWITCH, 32, 56, 1 << 15, true}, /* a part of a later version */
		{REC_WAKING, 24, 40, WAKING_HAS_STACKS, false},
		{REC_WAKING, 24, 48, WAKING_HAS_STACKS, true},
		{REC_EXIT, 28, 40, EXIT_HAS_STARTS, false},
		{REC_STATS, 20, 96, STATS_HAS_BYTES, false},
		{REC_STATS, 20, 104, STATS_HAS_BYTES, true},
		{REC_STATS, 20, 104, STATS_HAS_BYTES | STATS_HAS_CLOCK, false},
		{REC_STATS, 20, 112, STATS_HAS_BYTES | STATS_HAS_CLOCK, true},
		{REC_SNAPSHOT, 78, 88, SNAPSHOT_HAS_OBJECT, false},
		{REC_SNAPSHOT, 78, 96, SNAPSHOT_HAS_OBJECT, true},
		{REC_SNAPSHOT, 78, 96, SNAPSHOT_HAS_OWNER, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
		Old claim = {.h = {.len = claims[i].length, .kind = claims[i].kind}};
		const struct record *record;
		CaptureReader *reader;
		const char *message;
		char *path;

		memcpy(claim.bytes + claims[i].mask_at, &claims[i].mask, sizeof(claims[i].mask));
		path = write_capture(&claim, 1, CAPTURE_VERSION);
		assert_int_equal(capture_reader_open(path, &reader, &message), 0);
		assert_int_equal(capture_read(reader, &record), claims[i].good);
		assert_int_equal(capture_reader_counts(reader)->malformed, !claims[i].good);
		capture_reader_free(reader);
		unlink(path);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_records),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_claimed_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
