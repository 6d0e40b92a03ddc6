/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reason.h"
#include "records.h"
#include "util.h"
#include <asm/unistd_64.h>
#include <fcntl.h>
#include <setjmp.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define S    0x1
#define D    0x2
#define KILL 0x102 /* TASK_KILLABLE */
#define IDLE 0x402 /* TASK_IDLE */

#define PRIVATE	 128
#define REALTIME 256

struct example {
	uint16_t state;
	int16_t syscall;
	enum reason reason;
	enum reason_rule rule;
	uint64_t args[3];
	uint8_t fd_kind, fd_count;
	bool iowait, only_thread, kernel_thread, joins;
};

#define WAIT(s, n, r, by, ...)                                                                     \
	{                                                                                          \
		.state = s, .syscall = n, .reason = r, .rule = by, __VA_ARGS__                     \
	}

static void check(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct example *example = &examples[i];
		ReasonInput input = {
			.state = example->state,
			.iowait = example->iowait,
			.syscall = example->syscall,
			.args = {example->args[0], example->args[1], example->args[2]},
			.fd_kind = example->fd_kind,
			.fd_count = example->fd_count,
			.joins = example->joins,
			.only_thread = example->only_thread,
			.kernel_thread = example->kernel_thread,
		};
		enum reason_rule rule = RULE_COUNT;
		enum reason reason = reason_classify(&input, &rule);

		if (reason != example->reason || rule != example->rule)
			fail_msg("example %zu: is %s by %s, expected %s by %s", i,
				 reason_info[reason].leaf, reason_rule_text[rule],
				 reason_info[example->reason].leaf,
				 reason_rule_text[example->rule]);
	}
}

static void test_futexes(void **state)
{
	(void)state;
	static const struct example examples[] = {
		/* The arguments of glibc 2.36, from strace. */
		WAIT(S, __NR_futex, REASON_MUTEX, RULE_ARGUMENTS, .args = {1, 0 | PRIVATE, 2}),
		WAIT(S, __NR_futex, REASON_CONDVAR_OR_SEMAPHORE, RULE_ARGUMENTS,
		     .args = {1, 9 | PRIVATE | REALTIME, 0}),
		WAIT(S, __NR_futex, REASON_RWLOCK, RULE_ARGUMENTS,
		     .args = {1, 9 | PRIVATE | REALTIME, 3}),
		WAIT(S, __NR_futex, REASON_JOIN, RULE_ARGUMENTS, .args = {1, 9 | REALTIME, 31337},
		     .joins = true),
		WAIT(S, __NR_futex, REASON_MUTEX, RULE_ARGUMENTS, .args = {1, 6 | PRIVATE, 0}),
		WAIT(S, __NR_futex, REASON_MUTEX, RULE_ARGUMENTS, .args = {1, 13 | PRIVATE, 0}),
		WAIT(S, __NR_futex, REASON_CONDVAR, RULE_ARGUMENTS, .args = {1, 11 | PRIVATE, 7}),
		/* Timed, and Rust's std. */
		WAIT(S, __NR_futex, REASON_MUTEX, RULE_ARGUMENTS, .args = {1, 9 | PRIVATE, 2}),
		/* Shared between processes. */
		WAIT(S, __NR_futex, REASON_MUTEX, RULE_ARGUMENTS, .args = {1, 0, 2}),
		WAIT(S, __NR_futex, REASON_JOIN, RULE_ARGUMENTS, .args = {1, 0, 31337},
		     .joins = true),
		WAIT(S, __NR_futex, REASON_FUTEX, RULE_ARGUMENTS, .args = {1, 0, 7}),
		/* An unknown protocol. */
		WAIT(S, __NR_futex, REASON_FUTEX, RULE_ARGUMENTS, .args = {1, 0 | PRIVATE, 31337}),
		WAIT(S, __NR_futex, REASON_FUTEX, RULE_ARGUMENTS, .args = {1, 9 | PRIVATE, 31337}),
		WAIT(S, __NR_futex, REASON_FUTEX, RULE_ARGUMENTS, .args = {1, 9, 0xffffffff}),
		WAIT(S, __NR_futex, REASON_FUTEX, RULE_ARGUMENTS, .args = {1, 5 | PRIVATE, 2}),
		WAIT(S, __NR_futex_waitv, REASON_FUTEX, RULE_SYSCALL),
		WAIT(S, SYSCALL_FUTEX_WAIT, REASON_FUTEX, RULE_SYSCALL),
		/* fd_count: it waits for what it writes to. */
		WAIT(S, __NR_splice, REASON_PIPE_READ, RULE_DESCRIPTOR, .fd_kind = FD_PIPE),
		WAIT(S, __NR_splice, REASON_PIPE_WRITE, RULE_DESCRIPTOR, .fd_kind = FD_PIPE,
		     .fd_count = 1),
		WAIT(S, __NR_tee, REASON_PIPE_WRITE, RULE_DESCRIPTOR, .fd_kind = FD_PIPE,
		     .fd_count = 1),
		WAIT(S, __NR_close, REASON_NETWORK_SEND, RULE_DESCRIPTOR, .fd_kind = FD_INET),
		WAIT(S, __NR_close, REASON_OTHER, RULE_DESCRIPTOR),
		/* Only the low 32 bits of the word count. */
		WAIT(S, __NR_futex, REASON_MUTEX, RULE_ARGUMENTS,
		     .args = {1, 0 | PRIVATE, 2 | 1ULL << 40}),
	};

	check(examples, ARRAY_LEN(examples));
}

static void test_disk(void **state)
{
	(void)state;
	static const struct example examples[] = {
		WAIT(D, __NR_read, REASON_DISK_READ, RULE_SYSCALL, .fd_kind = FD_FILE,
		     .iowait = true),
		WAIT(KILL, __NR_pread64, REASON_DISK_READ, RULE_SYSCALL, .fd_kind = FD_FILE,
		     .iowait = true),
		WAIT(D, __NR_write, REASON_DISK_WRITE, RULE_SYSCALL, .fd_kind = FD_FILE,
		     .iowait = true),
		WAIT(D, __NR_openat, REASON_DISK_OTHER, RULE_SYSCALL, .iowait = true),
		WAIT(D, __NR_execve, REASON_DISK_OTHER, RULE_SYSCALL, .iowait = true),
		/* The journal's commit: not marked as a wait for I/O. */
		WAIT(D, __NR_fsync, REASON_DISK_SYNC, RULE_SYSCALL, .fd_kind = FD_FILE),
		WAIT(D, __NR_fdatasync, REASON_DISK_SYNC, RULE_SYSCALL, .iowait = true),
		WAIT(D, __NR_msync, REASON_DISK_SYNC, RULE_SYSCALL),
		WAIT(D, __NR_sync, REASON_DISK_SYNC, RULE_SYSCALL),
		WAIT(D, __NR_syncfs, REASON_DISK_SYNC, RULE_SYSCALL),
		/* No call: a page fault. */
		WAIT(D, -1, REASON_FAULT, RULE_STATE, .iowait = true),
		WAIT(D, -1, REASON_UNINTERRUPTIBLE, RULE_STATE), /* a lock of the mappings */
		WAIT(S, -1, REASON_FAULT, RULE_STATE, .iowait = true),
		/* What a pipe or socket call waits for on disk is its own buffer. */
		WAIT(D, __NR_write, REASON_FAULT, RULE_DESCRIPTOR, .fd_kind = FD_PIPE,
		     .iowait = true),
		/* A file is read into a socket, without a buffer of the process. */
		WAIT(D, __NR_sendfile, REASON_DISK_READ, RULE_SYSCALL, .fd_kind = FD_INET,
		     .iowait = true),
		WAIT(D, __NR_splice, REASON_DISK_OTHER, RULE_SYSCALL, .fd_kind = FD_PIPE,
		     .iowait = true),
		WAIT(D, __NR_sendto, REASON_FAULT, RULE_DESCRIPTOR, .fd_kind = FD_INET,
		     .iowait = true),
		/* Nothing says why. */
		WAIT(D, __NR_read, REASON_UNINTERRUPTIBLE, RULE_STATE, .fd_kind = FD_FILE),
		WAIT(D, __NR_mmap, REASON_UNINTERRUPTIBLE, RULE_STATE),
		WAIT(D, __NR_futex, REASON_UNINTERRUPTIBLE, RULE_STATE, .args = {1, PRIVATE, 2}),
		WAIT(S, __NR_read, REASON_OTHER, RULE_DESCRIPTOR, .fd_kind = FD_FILE),
		WAIT(S, __NR_io_getevents, REASON_AIO, RULE_SYSCALL),
		/* Kernel threads have neither calls nor faults. */
		WAIT(D, -1, REASON_UNINTERRUPTIBLE, RULE_STATE, .kernel_thread = true),
		WAIT(D, -1, REASON_DISK_OTHER, RULE_STATE, .iowait = true, .kernel_thread = true),
		WAIT(IDLE, -1, REASON_OTHER, RULE_STATE, .kernel_thread = true),
		/* 32-bit calls: the number is not recorded. */
		WAIT(D, SYSCALL_UNKNOWN, REASON_UNINTERRUPTIBLE, RULE_STATE),
		WAIT(D, SYSCALL_UNKNOWN, REASON_DISK_OTHER, RULE_SYSCALL, .iowait = true),
		WAIT(S, SYSCALL_UNKNOWN, REASON_OTHER, RULE_STATE),
	};

	check(examples, ARRAY_LEN(examples));
}

static void test_descriptors(void **state)
{
	(void)state;
	static const struct {
		uint8_t fd_kind;
		enum reason read, write, receive, poll;
	} kinds[] = {
		{FD_PIPE, REASON_PIPE_READ, REASON_PIPE_WRITE, REASON_PIPE_READ, REASON_PIPE_POLL},
		{FD_INET, REASON_NETWORK_RECEIVE, REASON_NETWORK_SEND, REASON_NETWORK_RECEIVE,
		 REASON_NETWORK_POLL},
		{FD_UNIX, REASON_UNIX_RECEIVE, REASON_UNIX_SEND, REASON_UNIX_RECEIVE,
		 REASON_UNIX_POLL},
		{FD_TTY, REASON_TERMINAL, REASON_TERMINAL, REASON_TERMINAL, REASON_TERMINAL},
		{FD_CHAR, REASON_DEVICE, REASON_DEVICE, REASON_DEVICE, REASON_DEVICE},
		{FD_ANON, REASON_EVENT, REASON_EVENT, REASON_EVENT, REASON_EVENT},
		{FD_FILE, REASON_OTHER, REASON_OTHER, REASON_NETWORK_RECEIVE, REASON_POLL},
		{FD_NONE, REASON_OTHER, REASON_OTHER, REASON_NETWORK_RECEIVE, REASON_POLL},
		{FD_SOCKET, REASON_NETWORK_RECEIVE, REASON_NETWORK_SEND, REASON_NETWORK_RECEIVE,
		 REASON_POLL},
		{FD_LISTEN, REASON_OTHER, REASON_OTHER, REASON_NETWORK_RECEIVE, REASON_ACCEPT},
		{255, REASON_OTHER, REASON_OTHER, REASON_NETWORK_RECEIVE, REASON_POLL},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		uint8_t kind = kinds[i].fd_kind;
		struct example examples[] = {
			WAIT(S, __NR_read, kinds[i].read, RULE_DESCRIPTOR, .fd_kind = kind),
			WAIT(S, __NR_readv, kinds[i].read, RULE_DESCRIPTOR, .fd_kind = kind),
			WAIT(S, __NR_write, kinds[i].write, RULE_DESCRIPTOR, .fd_kind = kind),
			WAIT(S, __NR_recvmsg, kinds[i].receive, RULE_DESCRIPTOR, .fd_kind = kind),
			WAIT(S, __NR_poll, kinds[i].poll, RULE_DESCRIPTOR, .args = {1, 1},
			     .fd_kind = kind, .fd_count = 1),
			WAIT(S, __NR_ppoll, kinds[i].poll, RULE_DESCRIPTOR, .args = {1, 4},
			     .fd_kind = kind, .fd_count = 1),
		};

		check(examples, ARRAY_LEN(examples));
	}
}

static void test_idle(void **state)
{
	(void)state;
	static const struct example examples[] = {
		WAIT(S, __NR_poll, REASON_POLL, RULE_DESCRIPTOR, .args = {1, 2}, .fd_kind = FD_INET,
		     .fd_count = 2),
		WAIT(S, __NR_poll, REASON_POLL, RULE_DESCRIPTOR, .args = {1, 9999},
		     .fd_kind = FD_PIPE, .fd_count = 255),
		WAIT(S, __NR_select, REASON_POLL, RULE_DESCRIPTOR, .args = {5}, .fd_count = 2),
		WAIT(S, __NR_select, REASON_NETWORK_POLL, RULE_DESCRIPTOR, .args = {5},
		     .fd_kind = FD_INET, .fd_count = 1),
		WAIT(S, __NR_pselect6, REASON_POLL, RULE_DESCRIPTOR, .args = {1024},
		     .fd_count = 255),
		WAIT(S, __NR_epoll_wait, REASON_NETWORK_POLL, RULE_DESCRIPTOR, .args = {4},
		     .fd_kind = FD_INET, .fd_count = 1),
		WAIT(S, __NR_epoll_wait, REASON_ACCEPT, RULE_DESCRIPTOR, .args = {4},
		     .fd_kind = FD_LISTEN, .fd_count = 1),
		WAIT(S, __NR_epoll_wait, REASON_EPOLL, RULE_DESCRIPTOR, .args = {4},
		     .fd_kind = FD_INET, .fd_count = 2),
		WAIT(S, __NR_epoll_wait, REASON_EPOLL, RULE_DESCRIPTOR, .args = {4},
		     .fd_kind = FD_ANON, .fd_count = 2),
		WAIT(S, __NR_epoll_pwait2, REASON_EPOLL, RULE_DESCRIPTOR, .args = {4},
		     .fd_count = 2),
		WAIT(S, __NR_io_uring_enter, REASON_IO_URING, RULE_SYSCALL, .args = {4}),
		WAIT(S, __NR_accept4, REASON_ACCEPT, RULE_SYSCALL, .args = {4},
		     .fd_kind = FD_LISTEN),
		WAIT(S, __NR_rt_sigtimedwait, REASON_SIGNAL, RULE_SYSCALL),
		WAIT(S, __NR_pause, REASON_SIGNAL, RULE_SYSCALL),
		WAIT(S, __NR_pause, REASON_SIGNAL, RULE_SYSCALL, .only_thread = true),
		/* A poll without descriptors is a sleep. */
		WAIT(S, __NR_poll, REASON_SLEEP, RULE_ARGUMENTS, .args = {0, 0}),
		WAIT(S, __NR_select, REASON_SLEEP, RULE_ARGUMENTS, .args = {0}),
		WAIT(S, __NR_select, REASON_SLEEP, RULE_ARGUMENTS, .args = {8}),
		WAIT(S, __NR_poll, REASON_SLEEP, RULE_DESCRIPTOR, .args = {1, 1, 50}),
		WAIT(S, __NR_epoll_wait, REASON_SLEEP, RULE_DESCRIPTOR, .args = {4}),
		WAIT(S, __NR_select, REASON_POLL, RULE_DESCRIPTOR, .args = {1}, .fd_kind = FD_FILE,
		     .fd_count = 1),
		/* Requests are in flight. */
		WAIT(S, __NR_io_uring_enter, REASON_IO_URING, RULE_SYSCALL, .iowait = true),
	};

	check(examples, ARRAY_LEN(examples));
}

/* Whatever a command's only thread waits for, the command waits for it. */
static void test_only_thread_never_idle(void **state)
{
	(void)state;
	static const struct example examples[] = {
		{S,
		 __NR_poll,
		 REASON_NETWORK_POLL,
		 RULE_DESCRIPTOR,
		 {1, 2},
		 FD_INET,
		 2,
		 .only_thread = true},
		{S,
		 __NR_poll,
		 REASON_PIPE_POLL,
		 RULE_DESCRIPTOR,
		 {1, 2},
		 FD_PIPE,
		 2,
		 .only_thread = true},
		/* Descriptors of different kinds, and more than were inspected. */
		{S,
		 __NR_poll,
		 REASON_POLL,
		 RULE_DESCRIPTOR,
		 {1, 2},
		 FD_NONE,
		 2,
		 .only_thread = true},
		{S,
		 __NR_poll,
		 REASON_POLL,
		 RULE_DESCRIPTOR,
		 {1, 5},
		 FD_PIPE,
		 5,
		 .only_thread = true},
		{S,
		 __NR_epoll_wait,
		 REASON_EPOLL,
		 RULE_DESCRIPTOR,
		 {1, 2},
		 FD_PIPE,
		 2,
		 .only_thread = true},
	};

	check(examples, ARRAY_LEN(examples));
	for (int number = 0; number < 500; number++) {
		for (int kind = FD_NONE; kind <= FD_TTY; kind++) {
			for (int count = 0; count < 4; count++) {
				ReasonInput input = {
					.state = S,
					.syscall = number,
					.args = {count, count},
					.fd_kind = kind,
					.fd_count = count,
					.only_thread = true,
				};
				enum reason_rule rule;
				enum reason reason = reason_classify(&input, &rule);

				assert_int_not_equal(reason_info[reason].category, CATEGORY_IDLE);
			}
		}
	}
}

static void test_others(void **state)
{
	(void)state;
	static const struct example examples[] = {
		WAIT(S, __NR_nanosleep, REASON_SLEEP, RULE_SYSCALL),
		WAIT(S, __NR_clock_nanosleep, REASON_SLEEP, RULE_SYSCALL),
		WAIT(S, __NR_wait4, REASON_CHILD, RULE_SYSCALL),
		WAIT(S, __NR_waitid, REASON_CHILD, RULE_SYSCALL),
		/* Freezable, unlike the wait for the lock of the mappings that fork copies. */
		WAIT(0x2102, __NR_vfork, REASON_VFORK, RULE_SYSCALL),
		WAIT(0x2102, __NR_clone3, REASON_VFORK, RULE_SYSCALL),
		WAIT(KILL, __NR_clone, REASON_UNINTERRUPTIBLE, RULE_STATE),
		WAIT(S, __NR_flock, REASON_FILE_LOCK, RULE_SYSCALL, .args = {3},
		     .fd_kind = FD_FILE),
		WAIT(S, __NR_fcntl, REASON_FILE_LOCK, RULE_ARGUMENTS, .args = {3, F_SETLKW},
		     .fd_kind = FD_FILE),
		WAIT(S, __NR_fcntl, REASON_FILE_LOCK, RULE_ARGUMENTS, .args = {3, F_OFD_SETLKW},
		     .fd_kind = FD_FILE),
		WAIT(S, __NR_fcntl, REASON_OTHER, RULE_ARGUMENTS, .args = {3, F_GETFL},
		     .fd_kind = FD_FILE),
		WAIT(S, __NR_connect, REASON_NETWORK_CONNECT, RULE_DESCRIPTOR, .args = {3},
		     .fd_kind = FD_INET),
		WAIT(S, __NR_connect, REASON_UNIX_CONNECT, RULE_DESCRIPTOR, .args = {3},
		     .fd_kind = FD_UNIX),
		WAIT(S, __NR_semtimedop, REASON_IPC, RULE_SYSCALL),
		WAIT(S, __NR_mq_timedreceive, REASON_IPC, RULE_SYSCALL),
		WAIT(0x4, __NR_nanosleep, REASON_STOPPED, RULE_STATE),
		WAIT(0x8, __NR_read, REASON_TRACED, RULE_STATE, .args = {0}, .fd_kind = FD_PIPE),
		WAIT(0x8000, -1, REASON_FROZEN, RULE_STATE),
		/* TASK_FREEZABLE changes nothing else. */
		WAIT(0x2001, __NR_nanosleep, REASON_SLEEP, RULE_SYSCALL),
		WAIT(S, -1, REASON_OTHER, RULE_STATE),
		WAIT(S, __NR_ioctl, REASON_OTHER, RULE_SYSCALL),
		WAIT(S, 32767, REASON_OTHER, RULE_SYSCALL),
		WAIT(S, -32768, REASON_OTHER, RULE_STATE),
	};

	check(examples, ARRAY_LEN(examples));
}

static void test_tables_are_complete(void **state)
{
	(void)state;

	for (int i = 0; i < REASON_COUNT; i++) {
		assert_non_null(reason_info[i].leaf);
		assert_int_equal(reason_info[i].leaf[0], '[');
		assert_int_equal(reason_info[i].leaf[strlen(reason_info[i].leaf) - 1], ']');
		assert_non_null(reason_info[i].marker);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(reason_info[i].leaf, reason_info[j].leaf);
	}
	for (int i = 0; i < CATEGORY_COUNT; i++) {
		assert_non_null(category_info[i].name);
		assert_non_null(category_info[i].color);
	}
	/* The viewer knows them by exactly these. */
	assert_string_equal(category_info[CATEGORY_IDLE].name, "Idle");
	assert_string_equal(category_info[CATEGORY_IDLE].color, "transparent");
	assert_string_equal(category_info[CATEGORY_OTHER].color, "grey");
	for (int i = 0; i < RULE_COUNT; i++)
		assert_non_null(reason_rule_text[i]);
}

/* The states are those of include/linux/sched.h, as ps shows them (fs/proc/array.c). */
static void test_epoll_by_all(void **state)
{
	const uint32_t pipe = 1U << FD_PIPE, inet = 1U << FD_INET, listen = 1U << FD_LISTEN;

	(void)state;
	for (int alone = 0; alone < 2; alone++) {
		assert_int_equal(reason_of_epoll(0, 0, alone), REASON_SLEEP);
		assert_int_equal(reason_of_epoll(1, pipe, alone), REASON_PIPE_POLL);
		assert_int_equal(reason_of_epoll(1, listen, alone), REASON_ACCEPT);
		assert_int_equal(reason_of_epoll(2, pipe | listen, alone), REASON_EPOLL);
	}
	assert_int_equal(reason_of_epoll(2, pipe, false), REASON_EPOLL);
	assert_int_equal(reason_of_epoll(2, pipe, true), REASON_PIPE_POLL);
	assert_int_equal(reason_of_epoll(3, pipe | inet, true), REASON_NETWORK_POLL);
	assert_int_equal(reason_of_epoll(3, pipe | inet, false), REASON_EPOLL);
}

static void test_sleep_states(void **state)
{
	static const struct {
		uint32_t state;
		bool iowait;
		enum sleep_state wanted;
	} states[] = {
		{0x1, false, SLEEP_INTERRUPTIBLE},   {0x2001, false, SLEEP_INTERRUPTIBLE},
		{0x2, false, SLEEP_UNINTERRUPTIBLE}, {0x102, false, SLEEP_UNINTERRUPTIBLE},
		{0x2, true, SLEEP_FOR_DISK},	     {0x402, false, SLEEP_IDLE},
		{0x104, false, SLEEP_STOPPED},	     {0x8, false, SLEEP_TRACED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		ReasonInput input = {.state = states[i].state, .iowait = states[i].iowait};

		assert_int_equal(reason_sleep_state(&input), states[i].wanted);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_epoll_by_all),
	cmocka_unit_test(test_sleep_states),
	cmocka_unit_test(test_futexes),
	cmocka_unit_test(test_disk),
	cmocka_unit_test(test_descriptors),
	cmocka_unit_test(test_idle),
	cmocka_unit_test(test_others),
	cmocka_unit_test(test_only_thread_never_idle),
	cmocka_unit_test(test_tables_are_complete),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
