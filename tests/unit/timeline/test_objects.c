/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What waits are for, and what that is called. */
#include "make_record.h"
#include "scenario.h"
#include "wait_fields.h"
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#define S		1 /* TASK_INTERRUPTIBLE */
#define READ		0
#define POLL		7
#define SELECT		23
#define NANOSLEEP	35
#define SENDFILE	40
#define RECVFROM	45
#define FUTEX		202
#define FUTEX_WAITV	449
#define FUTEX_WAIT2	455
#define RESTART		219
#define CLOCK_NANOSLEEP 230
#define PSELECT6	270
#define PPOLL		271
#define EPOLL_WAIT	232
#define DEVICE		9 /* of pipes, sockets, and so on */

/* Numbers in wallprof's PID namespace are 1000 more. */
static void begin(Scenario *s)
{
	scenario_begin(s, 20, false);
	described(at(s, -1), 20, 20, "reader");
	described(at(s, -1), 30, 30, "writer");
	in(at(s, 0), 20, 0);
	in(at(s, 0), 30, 1);
}

static void give(Scenario *s, struct record *record)
{
	record->ns = scenario_ns(s->ms);
	timeline_builder_add(s->builder, record);
	free(record);
}

static void finish(Scenario *s)
{
	scenario_finish(s);
	objects_name_users(s->timeline);
}

/* 20 waits from 3 to 5, as s->next_out says, and 30 wakes it. */
static void wait_once(Scenario *s, int syscall)
{
	out_call(at(s, 3), 20, S, syscall);
	wake(at(s, 5), 20, 30);
	in(at(s, 6), 20, 0);
	finish(s);
}

/* The object of the first wait; NULL: none. */
static const Object *waited_for(const Scenario *s, uint32_t tid)
{
	const Thread *thread = scenario_thread(s, tid, 0);

	for (size_t i = 0; i < thread->intervals.count; i++) {
		uint32_t object = wait_object(s->timeline, thread, i);

		if (thread->intervals.items[i].state == STATE_BLOCKED)
			return object == OBJECT_NONE ? NULL
						     : &s->timeline->objects.list.items[object];
		assert_int_equal(object, OBJECT_NONE);
	}
	return NULL;
}

static void expect_name(Scenario *s, int syscall, enum object_kind kind, const char *name)
{
	const Object *object;

	wait_once(s, syscall);
	object = waited_for(s, 20);
	assert_non_null(object);
	assert_int_equal(object->kind, kind);
	assert_string_equal(object->name, name);
	scenario_free(s);
}

static void set_object(Scenario *s, enum fd_kind kind, uint64_t inode)
{
	s->next_out.fd_kind = kind;
	s->next_out.inode = inode;
	s->next_out.file_device = DEVICE;
}

static void name_inode_of(Scenario *s, uint32_t device, uint64_t inode, uint8_t flags,
			  const char *name)
{
	struct rec_inode *record = make_record(
		REC_INODE, flags, 1, offsetof(struct rec_inode, text), name, strlen(name) + 1);

	record->device = device;
	record->inode = inode;
	record->size = strlen(name) + 1;
	give(s, &record->h);
}

static void name_inode(Scenario *s, uint64_t inode, uint8_t flags, const char *name)
{
	name_inode_of(s, DEVICE, inode, flags, name);
}

/* ---- kinds --------------------------------------------------------------------------------- */

static void test_kinds(void **state)
{
	static const struct {
		int syscall;
		enum fd_kind fd_kind;
		enum object_kind kind;
		const char *name;
	} cases[] = {
		{READ, FD_FILE, OBJECT_FILE, "inode 7 of device 0:9"},
		{READ, FD_CHAR, OBJECT_FILE, "inode 7 of device 0:9"},
		{READ, FD_PIPE, OBJECT_PIPE, "pipe:[7] (reader 1020, writer 1030)"},
		{RECVFROM, FD_INET, OBJECT_SOCKET, "socket:[7] (reader 1020)"},
		{READ, FD_ANON, OBJECT_ANONYMOUS, "[anonymous]"},
		{EPOLL_WAIT, FD_PIPE, OBJECT_EPOLL, "[eventpoll]"},
		{SENDFILE, FD_FILE, OBJECT_FILE, "inode 7 of device 0:9"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Scenario s;

		begin(&s);
		set_object(&s, cases[i].fd_kind, 7);
		expect_name(&s, cases[i].syscall, cases[i].kind, cases[i].name);
	}
}

static void test_told_names(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	name_inode(at(&s, 1), 7, INODE_FULL_PATH, "fifo");
	set_object(&s, FD_PIPE, 7);
	expect_name(&s, READ, OBJECT_PIPE, "/fifo (reader 1020, writer 1030)");
	begin(&s);
	set_object(&s, FD_ANON, 7);
	out_call(at(&s, 1), 30, S, READ); /* reported after the first wait for it began */
	name_inode(at(&s, 2), 7, INODE_NO_PATH, "[eventfd]");
	wake(at(&s, 2), 30, 20);
	in(at(&s, 2), 30, 1);
	set_object(&s, FD_ANON, 7);
	expect_name(&s, READ, OBJECT_ANONYMOUS, "[eventfd]");
}

/* One has no other end; a thread that ends a wait by an interrupt is not at the other end. */
static void test_nothing_told(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	wait_once(&s, READ);
	assert_null(waited_for(&s, 20));
	scenario_free(&s);
	/* What is sent is not what the network is waited for. */
	begin(&s);
	set_object(&s, FD_INET, 7);
	wait_once(&s, SENDFILE);
	assert_null(waited_for(&s, 20));
	scenario_free(&s);
	begin(&s);
	set_object(&s, FD_PIPE, 7);
	out_call(at(&s, 3), 20, S, READ);
	wake_by_irq(at(&s, 5), 20);
	in(at(&s, 6), 20, 0);
	finish(&s);
	assert_string_equal(waited_for(&s, 20)->name, "pipe:[7] (reader 1020)");
	scenario_free(&s);
}

/* ---- lengths of time ----------------------------------------------------------------------- */

static void expect_timer(int syscall, uint64_t arg0, uint64_t arg1, uint64_t arg2,
			 uint64_t timeout_ns, const char *name)
{
	Scenario s;

	begin(&s);
	s.next_out.args[0] = arg0;
	s.next_out.args[1] = arg1;
	s.next_out.args[2] = arg2;
	s.next_out.timeout_ns = timeout_ns;
	if (name) {
		expect_name(&s, syscall, OBJECT_TIMER, name);
		return;
	}
	wait_once(&s, syscall);
	assert_null(waited_for(&s, 20));
	scenario_free(&s);
}

static void test_timers(void **state)
{
	uint64_t now = scenario_ns(3);

	(void)state;
	expect_timer(NANOSLEEP, 1, 0, 0, 1500 * NSEC_PER_MSEC, "1.5 s");
	expect_timer(NANOSLEEP, 1, 0, 0, 12345678, "about 12 ms");
	expect_timer(NANOSLEEP, 1, 0, 0, UINT64_MAX, "about 1.8e+10 s");
	expect_timer(SELECT, 0, 0, 0, 250 * NSEC_PER_USEC, "250 us");
	expect_timer(PSELECT6, 0, 0, 0, 250 * NSEC_PER_USEC, "250 us");
	expect_timer(PPOLL, 0, 0, 9, 20 * NSEC_PER_MSEC, "20 ms");
	expect_timer(CLOCK_NANOSLEEP, 1, 0, 9, 7, "7 ns");
	expect_timer(POLL, 0, 0, 20, 0, "20 ms");
	expect_timer(POLL, 0, 0, (uint32_t)-1, 0, NULL);
	expect_timer(POLL, 0, 0, 1ULL << 40 | 20, 0, "20 ms"); /* an int in a register */
	/* Until a moment of CLOCK_MONOTONIC, and of clocks that are not known here. */
	expect_timer(CLOCK_NANOSLEEP, 1, 1, 9, now + 9987654, "about 10 ms");
	expect_timer(CLOCK_NANOSLEEP, 1, 1, 9, now - 1, NULL);
	expect_timer(CLOCK_NANOSLEEP, 7, 1, 9, now + 9987654, NULL);
}

/* ---- words of memory ----------------------------------------------------------------------- */

static void test_futex(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	s.next_out.args[0] = 0x1234;
	s.next_out.args[1] = 128; /* FUTEX_PRIVATE_FLAG */
	expect_name(&s, FUTEX, OBJECT_FUTEX, "0x1234");
	begin(&s);
	s.next_out.args[0] = 0x1234;
	expect_name(&s, FUTEX_WAIT2, OBJECT_FUTEX, "0x1234");
	/* Its argument is a list of words. */
	begin(&s);
	s.next_out.args[0] = 0x1234;
	s.next_out.word = 0x5678;
	expect_name(&s, FUTEX_WAITV, OBJECT_FUTEX, "0x5678");
}

/* ---- sockets ------------------------------------------------------------------------------- */

static struct rec_socket *make_socket(uint8_t flags, uint64_t inode, uint16_t family,
				      const char *path, size_t size)
{
	struct rec_socket *socket =
		make_record(REC_SOCKET, flags, 1, offsetof(struct rec_socket, text), path, size);

	socket->device = DEVICE;
	socket->inode = inode;
	socket->family = family;
	socket->type = SOCK_STREAM;
	socket->protocol = 6;
	socket->size = size;
	return socket;
}

static struct rec_socket *make_tcp(uint8_t flags, uint64_t inode, uint8_t last, uint16_t port,
				   uint8_t other_last, uint16_t other_port)
{
	struct rec_socket *socket = make_socket(flags, inode, AF_INET, NULL, 0);

	memcpy(socket->local, (uint8_t[]){10, 0, 0, last}, 4);
	memcpy(socket->remote, (uint8_t[]){10, 0, 0, other_last}, 4);
	socket->local_port = port;
	socket->remote_port = other_port;
	return socket;
}

static void expect_text(struct rec_socket *socket, const char *text)
{
	char *got = object_socket_text(socket);

	assert_string_equal(got, text);
	free(got);
	free(socket);
}

static void test_socket_text(void **state)
{
	struct rec_socket *socket;

	(void)state;
	expect_text(make_tcp(0, 7, 1, 4711, 2, 80), "tcp 10.0.0.1:4711 → 10.0.0.2:80");
	expect_text(make_tcp(SOCKET_LISTENS, 7, 1, 80, 0, 0), "tcp listening on 10.0.0.1:80");
	socket = make_tcp(0, 7, 1, 53, 0, 0);
	socket->protocol = 17;
	expect_text(socket, "udp 10.0.0.1:53");
	expect_text(make_tcp(0, 7, 0, 0, 0, 0), "tcp socket:[7], not connected");
	socket = make_socket(SOCKET_LISTENS, 7, AF_INET6, NULL, 0);
	socket->local[15] = 1;
	socket->local_port = 80;
	expect_text(socket, "tcp listening on [::1]:80");
	expect_text(make_socket(0, 7, AF_UNIX, NULL, 0), "unix:[7]");
	/* The kernel may or may not count the NUL at the end of a path. */
	expect_text(make_socket(SOCKET_LISTENS, 7, AF_UNIX, "/run/x\0", 7),
		    "unix listening on /run/x");
	expect_text(make_socket(SOCKET_PEER_PATH, 7, AF_UNIX, "/run/x", 6), "unix to /run/x");
	expect_text(make_socket(SOCKET_ABSTRACT, 7, AF_UNIX, "\0a\0b", 4), "unix @a@b");
	expect_text(make_socket(0, 7, AF_NETLINK, NULL, 0), "netlink socket:[7]");
	expect_text(make_socket(0, 7, 99, NULL, 0), "socket:[7] of family 99");
}

/* Each end is known by the thread that waits there. */
static void wait_at_both_ends(Scenario *s)
{
	set_object(s, FD_INET, 7);
	out_call(at(s, 3), 20, S, RECVFROM);
	wake_by_irq(at(s, 4), 20);
	in(at(s, 4), 20, 0);
	set_object(s, FD_INET, 8);
	out_call(at(s, 5), 30, S, RECVFROM);
	wake_by_irq(at(s, 6), 30);
	in(at(s, 6), 30, 1);
	finish(s);
}

static void test_both_ends(void **state)
{
	static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	struct rec_socket *socket;
	Scenario s;

	(void)state;
	begin(&s);
	give(at(&s, 1), &make_tcp(0, 7, 1, 4711, 1, 80)->h);
	give(at(&s, 1), &make_tcp(0, 8, 1, 80, 1, 4711)->h);
	wait_at_both_ends(&s);
	assert_string_equal(waited_for(&s, 20)->name,
			    "tcp 10.0.0.1:4711 → 10.0.0.1:80 (reader 1020, writer 1030)");
	assert_string_equal(waited_for(&s, 30)->name,
			    "tcp 10.0.0.1:80 → 10.0.0.1:4711 (writer 1030, reader 1020)");
	scenario_free(&s);
	/* One end is a socket of IPv6 that takes both. */
	begin(&s);
	give(at(&s, 1), &make_tcp(0, 7, 1, 4711, 1, 80)->h);
	socket = make_socket(0, 8, AF_INET6, NULL, 0);
	memcpy(socket->local, mapped, sizeof(mapped));
	memcpy(socket->remote, mapped, sizeof(mapped));
	socket->local_port = 80;
	socket->remote_port = 4711;
	give(at(&s, 1), &socket->h);
	wait_at_both_ends(&s);
	assert_string_equal(waited_for(&s, 30)->name,
			    "tcp 10.0.0.1:80 → 10.0.0.1:4711 (writer 1030, reader 1020)");
	scenario_free(&s);
	/* Another connection. */
	begin(&s);
	give(at(&s, 1), &make_tcp(0, 7, 1, 4711, 1, 80)->h);
	give(at(&s, 1), &make_tcp(0, 8, 1, 80, 1, 4712)->h);
	wait_at_both_ends(&s);
	assert_string_equal(waited_for(&s, 20)->name,
			    "tcp 10.0.0.1:4711 → 10.0.0.1:80 (reader 1020)");
	scenario_free(&s);
}

static void test_unix_ends(void **state)
{
	struct rec_socket *socket;
	Scenario s;

	(void)state;
	begin(&s);
	socket = make_socket(0, 7, AF_UNIX, NULL, 0);
	socket->peer_inode = 8;
	give(at(&s, 1), &socket->h);
	give(at(&s, 1), &make_socket(0, 8, AF_UNIX, "/run/x", 6)->h);
	wait_at_both_ends(&s);
	assert_string_equal(waited_for(&s, 20)->name, "unix:[7] (reader 1020, writer 1030)");
	scenario_free(&s);
	/* No thread was seen there, except the one that connected. */
	begin(&s);
	socket = make_socket(0, 7, AF_UNIX, NULL, 0);
	socket->peer_tgid = 30;
	give(at(&s, 1), &socket->h);
	set_object(&s, FD_UNIX, 7);
	out_call(at(&s, 3), 20, S, RECVFROM);
	wake_by_irq(at(&s, 5), 20);
	in(at(&s, 6), 20, 0);
	finish(&s);
	assert_string_equal(waited_for(&s, 20)->name, "unix:[7] (reader 1020, writer 1030)");
	scenario_free(&s);
}

/* One that is closed says no more where it led to. */
static void test_closed_socket(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	give(at(&s, 1), &make_tcp(0, 7, 1, 4711, 2, 80)->h);
	give(at(&s, 7), &make_tcp(0, 7, 0, 0, 0, 0)->h);
	set_object(&s, FD_INET, 7);
	expect_name(&s, RECVFROM, OBJECT_SOCKET, "tcp 10.0.0.1:4711 → 10.0.0.2:80 (reader 1020)");
	begin(&s);
	give(at(&s, 1), &make_tcp(0, 7, 0, 0, 0, 0)->h);
	give(at(&s, 2), &make_tcp(0, 7, 1, 4711, 2, 80)->h);
	set_object(&s, FD_INET, 7);
	expect_name(&s, RECVFROM, OBJECT_SOCKET, "tcp 10.0.0.1:4711 → 10.0.0.2:80 (reader 1020)");
}

/* ---- epoll --------------------------------------------------------------------------------- */

static struct rec_watch *make_watch(uint32_t count, uint32_t more)
{
	struct watched watched[WATCHED_MAX] = {};
	struct rec_watch *watch;

	/* In no order, as in the kernel's tree. */
	for (uint32_t i = 0; i < count; i++)
		watched[i] = (struct watched){.inode = 100 + (i ^ 1),
					      .device = DEVICE,
					      .fd = 3 + (i ^ 1),
					      .kind = FD_PIPE};
	watch = make_record(REC_WATCH, 0, 1, offsetof(struct rec_watch, watched), watched,
			    count * sizeof(*watched));
	watch->device = DEVICE;
	watch->inode = 7;
	watch->count = count;
	watch->more = more;
	return watch;
}

static void expect_watch(uint32_t count, uint32_t more, const char *name)
{
	Scenario s;

	begin(&s);
	give(at(&s, 2), &make_watch(count, more)->h);
	set_object(&s, FD_PIPE, 7);
	expect_name(&s, EPOLL_WAIT, OBJECT_EPOLL, name);
}

static void test_epoll(void **state)
{
	(void)state;
	expect_watch(0, 0, "epoll of nothing");
	expect_watch(0, 1, "epoll of something");
	expect_watch(2, 0, "epoll of pipe:[100], pipe:[101]");
	expect_watch(4, 0, "epoll of pipe:[100], pipe:[101], pipe:[102], pipe:[103]");
	expect_watch(4, 1, "epoll of pipe:[100], pipe:[101], pipe:[102], pipe:[103] and more");
	expect_watch(6, 0, "epoll of pipe:[100], pipe:[101], pipe:[102], pipe:[103] and 2 more");
	expect_watch(16, 1,
		     "epoll of pipe:[100], pipe:[101], pipe:[102], pipe:[103] and at least "
		     "12 more");
}

/* A watch of two descriptors; the second one is watched through the first. */
static struct rec_watch *make_nested(uint64_t inner, uint64_t pipe)
{
	struct rec_watch *watch = make_watch(2, 0);

	watch->watched[0] =
		(struct watched){.inode = inner, .device = DEVICE, .fd = 3, .kind = FD_ANON};
	watch->watched[1] = (struct watched){
		.inode = pipe, .device = DEVICE, .fd = 4, .kind = FD_PIPE, .via = 1};
	return watch;
}

/* Its name, the same for all waits, has all that it watched at any time. */
static void test_epoll_that_changes(void **state)
{
	Scenario s;
	struct rec_watch *last = make_watch(1, 0);

	(void)state;
	last->watched[0] =
		(struct watched){.inode = 9, .device = DEVICE, .fd = 90, .kind = FD_LISTEN};
	begin(&s);
	give(at(&s, 1), &make_watch(2, 0)->h);
	give(at(&s, 2), &make_watch(4, 0)->h);
	give(at(&s, 3), &make_watch(0, 0)->h);
	give(at(&s, 4), &last->h);
	set_object(&s, FD_PIPE, 7);
	expect_name(&s, EPOLL_WAIT, OBJECT_EPOLL,
		    "epoll of socket:[9], pipe:[100], pipe:[101], pipe:[102] and 1 more");
}

static void test_nested_epoll(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	give(at(&s, 1), &make_nested(50, 100)->h);
	set_object(&s, FD_PIPE, 7);
	expect_name(&s, EPOLL_WAIT, OBJECT_EPOLL, "epoll of epoll (pipe:[100])");
	/* The same inner epoll descriptor with another pipe, and another inner one. */
	begin(&s);
	give(at(&s, 1), &make_nested(50, 100)->h);
	give(at(&s, 2), &make_nested(50, 101)->h);
	give(at(&s, 3), &make_nested(51, 102)->h);
	set_object(&s, FD_PIPE, 7);
	expect_name(&s, EPOLL_WAIT, OBJECT_EPOLL,
		    "epoll of epoll (pipe:[100], pipe:[101]), epoll (pipe:[102])");
}

/* Each watches the other one four times: their names do not grow. */
static void test_epoll_of_epoll(void **state)
{
	Scenario s;

	(void)state;
	begin(&s);
	for (uint64_t inode = 6; inode < 40; inode++) {
		struct rec_watch *watch = make_watch(4, 0);

		watch->inode = inode;
		for (size_t i = 0; i < 4; i++) {
			watch->watched[i].inode = inode ^ 1;
			watch->watched[i].kind = FD_ANON;
		}
		give(at(&s, 1), &watch->h);
	}
	set_object(&s, FD_ANON, 7);
	expect_name(&s, EPOLL_WAIT, OBJECT_EPOLL,
		    "epoll of [eventpoll], [eventpoll], [eventpoll], [eventpoll]");
}

/* ---- before the window --------------------------------------------------------------------- */

/* What is noted of a wait stays with it when its start is cut off. */
static void test_begun_before(void **state)
{
	Scenario s;

	(void)state;
	scenario_begin_early(&s, 20, true);
	described(at(&s, -9), 20, 20, "reader");
	in(at(&s, -8), 20, 0);
	set_object(&s, FD_PIPE, 7);
	out_call(at(&s, -5), 20, S, READ);
	scenario_window_start(&s);
	wake_by_irq(at(&s, 5), 20);
	in(at(&s, 6), 20, 0);
	finish(&s);
	assert_string_equal(waited_for(&s, 20)->name, "pipe:[7] (reader 1020)");
	scenario_free(&s);
}

/* ---- what is called the same --------------------------------------------------------------- */

/* A file that is recreated for each transaction is one; one of another file system is not. */
static void test_alike(void **state)
{
	const Object *objects;
	Scenario s;

	(void)state;
	begin(&s);
	name_inode(&s, 7, INODE_FULL_PATH, "journal");
	name_inode(&s, 8, INODE_FULL_PATH, "journal");
	name_inode(&s, 9, INODE_FULL_PATH, "table");
	name_inode_of(&s, DEVICE + 1, 7, INODE_FULL_PATH, "journal");
	set_object(&s, FD_FILE, 8);
	wait_once(&s, READ);
	objects = s.timeline->objects.list.items;
	assert_int_equal(objects[1].number, 8);
	assert_ptr_equal(waited_for(&s, 20), &objects[1]);
	objects_find_alike(&s.timeline->objects);
	objects = s.timeline->objects.list.items;
	assert_ptr_equal(waited_for(&s, 20), &objects[0]);
	assert_int_equal(objects_alike(&s.timeline->objects, 2), 2);
	assert_int_equal(objects_alike(&s.timeline->objects, 3), 3);
	assert_int_equal(objects_alike(&s.timeline->objects, OBJECT_NONE), OBJECT_NONE);
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_told_names),
		cmocka_unit_test(test_nothing_told),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_futex),
		cmocka_unit_test(test_socket_text),
		cmocka_unit_test(test_both_ends),
		cmocka_unit_test(test_unix_ends),
		cmocka_unit_test(test_closed_socket),
		cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_epoll_that_changes),
		cmocka_unit_test(test_nested_epoll),
		cmocka_unit_test(test_epoll_of_epoll),
		cmocka_unit_test(test_begun_before),
		cmocka_unit_test(test_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
