/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks as kernels 6.1, 6.12, 6.18 and 7.3 have them, innermost function first. */
#include "kernel_rules.h"
#include "wait_fields.h"
#include "wait_reasons.h"
#include "wait_reasons_fixture.h"

static void test_innermost_lock(void **state)
{
	expect(*state,
	       "__schedule schedule schedule_preempt_disabled __mutex_lock.constprop.0 "
	       "anon_pipe_write vfs_write ksys_write do_syscall_64",
	       REASON_UNINTERRUPTIBLE, REASON_KERNEL_MUTEX,
	       "kernel stack: __mutex_lock.constprop.0 ← anon_pipe_write");
	expect(*state,
	       "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write "
	       "ext4_buffered_write_iter vfs_write ksys_write",
	       REASON_UNINTERRUPTIBLE, REASON_KERNEL_RWSEM,
	       "kernel stack: rwsem_down_write_slowpath ← down_write");
	expect(*state,
	       "__schedule schedule __lock_sock lock_sock_nested tcp_sendmsg sock_write_iter",
	       REASON_UNINTERRUPTIBLE, REASON_SOCKET_LOCK,
	       "kernel stack: __lock_sock ← tcp_sendmsg");
}

/* Functions of a file system that sleep in a primitive which does not name the reason. */
static void test_file_systems(void **state)
{
	expect(*state,
	       "__schedule schedule wait_log_commit.isra.0 btrfs_sync_log btrfs_sync_file do_fsync",
	       REASON_DISK_SYNC, REASON_DISK_SYNC,
	       "kernel stack and system call: wait_log_commit.isra.0 ← btrfs_sync_file");
	expect(*state,
	       "__schedule schedule wait_extent_bit.isra.0 __lock_extent btrfs_readahead "
	       "read_pages",
	       REASON_DISK_READ, REASON_DISK_READ,
	       "kernel stack and system call: wait_extent_bit.isra.0 ← __lock_extent");
	expect(*state,
	       "__schedule schedule xlog_wait_on_iclog xfs_log_force_inode xfs_dir_fsync do_fsync",
	       REASON_UNINTERRUPTIBLE, REASON_JOURNAL,
	       "kernel stack: xlog_wait_on_iclog ← xfs_log_force_inode");
	expect(*state,
	       "__schedule schedule schedule_timeout __wait_for_common wait_for_completion "
	       "f2fs_issue_checkpoint f2fs_sync_fs __x64_sys_syncfs",
	       REASON_UNINTERRUPTIBLE, REASON_JOURNAL,
	       "kernel stack: f2fs_issue_checkpoint ← f2fs_sync_fs");
	expect(*state, "__schedule schedule __ceph_get_caps ceph_read_iter vfs_read ksys_read",
	       REASON_UNINTERRUPTIBLE, REASON_NETWORK_FS,
	       "kernel stack: __ceph_get_caps ← vfs_read");
}

static void test_grace_period(void **state)
{
	expect(*state,
	       "__schedule schedule schedule_timeout __wait_for_common wait_for_completion_state "
	       "__wait_rcu_gp synchronize_rcu_normal map_update_elem __sys_bpf __x64_sys_bpf",
	       REASON_UNINTERRUPTIBLE, REASON_RCU,
	       "kernel stack: synchronize_rcu_normal ← map_update_elem");
	expect(*state,
	       "__schedule schedule schedule_timeout wait_for_completion __wait_rcu_gp "
	       "synchronize_rcu maybe_wait_bpf_programs map_update_elem __sys_bpf",
	       REASON_UNINTERRUPTIBLE, REASON_RCU,
	       "kernel stack: synchronize_rcu ← maybe_wait_bpf_programs");
}

/* Operation and arguments say which kind of futex, read or poll it is. */
static void test_call_says_more(void **state)
{
	expect(*state, "__schedule schedule futex_wait_queue futex_wait do_futex __x64_sys_futex",
	       REASON_CONDVAR, REASON_CONDVAR,
	       "kernel stack and system call: futex_wait_queue ← do_futex");
	expect(*state, "__schedule schedule futex_do_wait __futex_wait futex_wait do_futex",
	       REASON_OTHER, REASON_FUTEX, "kernel stack: futex_do_wait ← do_futex");
	expect(*state, "__schedule schedule schedule_hrtimeout_range do_sys_poll __x64_sys_poll",
	       REASON_PIPE_POLL, REASON_PIPE_POLL,
	       "kernel stack and system call: do_sys_poll ← __x64_sys_poll");
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common filemap_get_pages "
	       "filemap_read vfs_read",
	       REASON_DISK_READ, REASON_DISK_READ,
	       "kernel stack and system call: folio_wait_bit_common ← filemap_read");
	expect(*state, "__schedule schedule jbd2_log_wait_commit ext4_sync_file do_fsync",
	       REASON_DISK_SYNC, REASON_DISK_SYNC,
	       "kernel stack and system call: jbd2_log_wait_commit ← ext4_sync_file");
	expect(*state,
	       "__schedule schedule jbd2_log_wait_commit ext4_evict_inode evict do_unlinkat",
	       REASON_UNINTERRUPTIBLE, REASON_JOURNAL,
	       "kernel stack: jbd2_log_wait_commit ← ext4_evict_inode");
}

static void test_page_faults(void **state)
{
	/* read()'s own buffer was paged out: not the file that is read. */
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common filemap_fault __do_fault "
	       "handle_mm_fault exc_page_fault asm_exc_page_fault copy_page_to_iter filemap_read",
	       REASON_DISK_READ, REASON_FAULT,
	       "kernel stack: folio_wait_bit_common ← filemap_fault");
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common do_swap_page "
	       "handle_mm_fault exc_page_fault",
	       REASON_FAULT, REASON_SWAP, "kernel stack: do_swap_page ← handle_mm_fault");
	/* Memory is freed on the way: what is waited for there is not the program's page. */
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common shrink_folio_list "
	       "try_to_free_pages alloc_pages handle_mm_fault exc_page_fault",
	       REASON_FAULT, REASON_RECLAIM, "kernel stack: try_to_free_pages ← alloc_pages");
	/* What the thread did outside of the fault is not what it waits for. */
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common filemap_fault __do_fault "
	       "handle_mm_fault exc_page_fault asm_exc_page_fault _copy_from_iter "
	       "tcp_sendmsg_locked tcp_sendmsg",
	       REASON_NETWORK_SEND, REASON_FAULT,
	       "kernel stack: folio_wait_bit_common ← filemap_fault");
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common shrink_folio_list "
	       "try_to_free_pages alloc_skb_with_frags unix_stream_sendmsg",
	       REASON_UNIX_SEND, REASON_RECLAIM,
	       "kernel stack: try_to_free_pages ← alloc_skb_with_frags");
	/* A lock is one, for all threads and places that take it. */
	expect(*state, "__schedule schedule __mutex_lock try_to_free_pages exc_page_fault",
	       REASON_UNINTERRUPTIBLE, REASON_KERNEL_MUTEX,
	       "kernel stack: __mutex_lock ← try_to_free_pages");
}

/* How a thread sleeps says less than what it had called for. */
static void test_primitives(void **state)
{
	expect(*state, "__schedule schedule schedule_timeout wait_for_completion driver_read",
	       REASON_TERMINAL, REASON_TERMINAL,
	       "kernel stack and system call: wait_for_completion ← driver_read");
	expect(*state, "__schedule schedule schedule_timeout wait_for_completion driver_read",
	       REASON_UNINTERRUPTIBLE, REASON_COMPLETION,
	       "kernel stack: wait_for_completion ← driver_read");
	expect(*state, "__schedule schedule wait_for_completion exit_aio do_exit do_group_exit",
	       REASON_UNINTERRUPTIBLE, REASON_EXIT, "kernel stack: do_exit ← do_group_exit");
}

/* Where the file system says what its I/O is. */
static void test_purpose(void **state)
{
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common filemap_get_pages "
	       "filemap_read fuse_file_read_iter vfs_read",
	       REASON_DISK_READ, REASON_FUSE, "kernel stack: fuse_file_read_iter ← vfs_read");
	expect(*state,
	       "__schedule schedule io_schedule folio_wait_bit_common folio_wait_writeback "
	       "__filemap_fdatawait_range nfs_wb_all nfs_file_fsync do_fsync",
	       REASON_DISK_SYNC, REASON_NETWORK_FS, "kernel stack: nfs_wb_all ← do_fsync");
	expect(*state,
	       "__schedule schedule io_schedule submit_bio_wait blkdev_issue_discard "
	       "ext4_process_freed_data do_unlinkat",
	       REASON_DISK_OTHER, REASON_DISCARD,
	       "kernel stack: blkdev_issue_discard ← ext4_process_freed_data");
	expect(*state,
	       "__schedule schedule schedule_timeout wait_for_completion xfs_buf_iowait "
	       "_xfs_buf_read xfs_buf_read_map",
	       REASON_UNINTERRUPTIBLE, REASON_DISK_OTHER,
	       "kernel stack: xfs_buf_iowait ← _xfs_buf_read");
	expect(*state,
	       "__schedule schedule schedule_timeout ___down_common __down down xfs_buf_lock "
	       "xfs_buf_find_lock xfs_buf_get_map",
	       REASON_UNINTERRUPTIBLE, REASON_DISK_OTHER,
	       "kernel stack: xfs_buf_lock ← xfs_buf_find_lock");
	expect(*state, "__schedule schedule schedule_timeout __down down console_lock",
	       REASON_UNINTERRUPTIBLE, REASON_KERNEL_SEMAPHORE, "kernel stack: __down ← down");
}

/* A worker is idle only if it does nothing but sleep. */
static void test_workers(void **state)
{
	expect(*state, "__schedule schedule schedule_timeout io_wq_worker ret_from_fork",
	       REASON_OTHER, REASON_IDLE_WORKER, "kernel stack: io_wq_worker ← ret_from_fork");
	expect(*state,
	       "__schedule schedule schedule_timeout wait_for_completion xfs_buf_iowait "
	       "io_issue_sqe io_worker_handle_work io_wq_worker",
	       REASON_UNINTERRUPTIBLE, REASON_DISK_OTHER,
	       "kernel stack: xfs_buf_iowait ← io_issue_sqe");
	expect(*state, "__schedule schedule driver_wait io_issue_sqe io_wq_worker ret_from_fork",
	       REASON_DISK_OTHER, REASON_DISK_OTHER, "task state");
	/* The thread that makes the kernel threads. */
	expect(*state, "__schedule schedule kthreadd ret_from_fork ret_from_fork_asm", REASON_OTHER,
	       REASON_IDLE_WORKER, "kernel stack: kthreadd ← ret_from_fork");
	expect(*state,
	       "__schedule schedule virtballoon_free_page_report page_reporting_process "
	       "process_one_work worker_thread kthread",
	       REASON_UNINTERRUPTIBLE, REASON_DEVICE,
	       "kernel stack: virtballoon_free_page_report ← process_one_work");
}

static void test_nothing_known(void **state)
{
	Fixture *fixture = *state;
	Interval *none = wait_in(fixture, NULL, REASON_OTHER, RULE_STATE);
	Interval *other = wait_in(fixture, "__schedule schedule nobody_knows",
				  REASON_UNINTERRUPTIBLE, RULE_STATE);
	_cleanup_free_ char *text = NULL;

	wait_reasons_by_stack(&fixture->timeline, fixture->frames);
	assert_int_equal(none->reason, REASON_OTHER);
	assert_int_equal(other->reason, REASON_UNINTERRUPTIBLE);
	assert_true(reason_unexplained(none->reason) && reason_unexplained(other->reason));
	text = wait_basis(&fixture->timeline, other);
	assert_string_equal(text, "task state");
	forget(fixture);
}

/* What was seen to happen stays the evidence. */
static void test_seen_to_happen(void **state)
{
	static const char names[] = "__schedule schedule io_schedule folio_wait_bit_common "
				    "filemap_fault handle_mm_fault exc_page_fault";
	Fixture *fixture = *state;
	Interval *wait = wait_in(fixture, names, REASON_FAULT, RULE_FAULT);

	wait_reasons_by_stack(&fixture->timeline, fixture->frames);
	assert_int_equal(wait->reason, REASON_FAULT);
	assert_int_equal(wait->rule, RULE_FAULT);
	forget(fixture);
}

/* A request that completed on the same CPU just before a lock was let go ended nothing. */
static void test_request_of_a_lock(void **state)
{
	Fixture *fixture = *state;
	Thread *thread;

	wait_in(fixture, "__schedule schedule rwsem_down_read_slowpath ext4_map_blocks",
		REASON_UNINTERRUPTIBLE, RULE_STATE);
	thread = &fixture->timeline.threads.items[0];
	*vec_push(&thread->request_waits) = (RequestWait){0, 0};
	wait_reasons_by_stack(&fixture->timeline, fixture->frames);
	assert_int_equal(thread->request_waits.count, 0);
	forget(fixture);
}

/* A request does not end a pause that a timer ends. */
static void test_request_of_a_timer(void **state)
{
	static const char *const wakers[] = {"try_to_wake_up hrtimer_wakeup hrtimer_interrupt",
					     "try_to_wake_up wake_page_function bio_endio"};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(wakers); i++) {
		Thread *thread;

		wait_in(fixture, NULL, REASON_DISK_READ, RULE_STATE);
		thread = &fixture->timeline.threads.items[0];
		*vec_push(&thread->request_waits) = (RequestWait){0, 0};
		*vec_push(&fixture->timeline.requests.list) = (Request){.opf = 1};
		*vec_push(&thread->waker_stacks) = (WakerStack){
			.user_stack = STACK_NONE,
			.kernel_stack = kernel_stack(fixture, wakers[i]),
		};
		wait_reasons_by_stack(&fixture->timeline, fixture->frames);
		assert_int_equal(thread->request_waits.count, i);
		vec_free(&fixture->timeline.requests.list);
		forget(fixture);
	}
}

/* A wait for the disk, of which the call does not say whether it reads, ends with a request that
 * does. */
static void test_request_that_reads(void **state)
{
	static const struct {
		uint32_t operation; /* REQ_OP_… */
		enum reason recorded, reason;
	} cases[] = {{0, REASON_DISK_OTHER, REASON_DISK_READ},
		     {1, REASON_DISK_OTHER, REASON_DISK_OTHER},
		     {0, REASON_DISK_SYNC, REASON_DISK_SYNC}};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const Interval *wait = wait_in(fixture,
					       "__schedule schedule io_schedule bit_wait_io "
					       "__wait_on_buffer ext4_read_inode ext4_lookup",
					       cases[i].recorded, RULE_SYSCALL);
		Thread *thread = &fixture->timeline.threads.items[0];

		*vec_push(&thread->request_waits) = (RequestWait){0, 0};
		*vec_push(&fixture->timeline.requests.list) = (Request){.opf = cases[i].operation};
		wait_reasons_by_stack(&fixture->timeline, fixture->frames);
		assert_int_equal(wait->reason, cases[i].reason);
		vec_free(&fixture->timeline.requests.list);
		forget(fixture);
	}
}

/* A cgroup's limit holds the request back, for most of the wait or for less. */
static void test_request_held_back(void **state)
{
	static const struct {
		enum reason recorded;
		uint64_t submit_ns, held_ns; /* the wait is from 0 to 10 */
		enum reason reason;
	} cases[] = {{REASON_DISK_READ, 1, 6, REASON_HELD_DISK_READ},
		     {REASON_DISK_READ, 1, 3, REASON_DISK_READ},
		     {REASON_DISK_SYNC, 1, 8, REASON_HELD_DISK_SYNC},
		     {REASON_FAULT, 1, 8, REASON_HELD_FAULT},
		     {REASON_DISK_WRITE, 1, 0, REASON_DISK_WRITE}};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const Interval *wait = wait_in(fixture, NULL, cases[i].recorded, RULE_SYSCALL);
		Thread *thread = &fixture->timeline.threads.items[0];

		*vec_push(&thread->request_waits) = (RequestWait){0, 0};
		*vec_push(&fixture->timeline.requests.list) = (Request){
			.submit_ns = cases[i].submit_ns,
			.end_ns = 10,
			.held_ns = cases[i].held_ns,
			.opf = 1,
		};
		wait_reasons_by_stack(&fixture->timeline, fixture->frames);
		assert_int_equal(wait->reason, cases[i].reason);
		vec_free(&fixture->timeline.requests.list);
		forget(fixture);
	}
}

/* The innermost function with a rule names the source of an interrupt. */
static void test_interrupts(void **state)
{
	static const struct {
		const char *names;
		enum interrupt_source source;
	} stacks[] = {
		{"try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt "
		 "sysvec_apic_timer_interrupt",
		 INTERRUPT_TIMER},
		{"try_to_wake_up autoremove_wake_function sock_def_readable tcp_data_queue "
		 "net_rx_action handle_softirqs common_interrupt",
		 INTERRUPT_NETWORK},
		{"try_to_wake_up wake_page_function folio_wake_bit bio_endio blk_mq_end_request "
		 "virtblk_done vring_interrupt common_interrupt",
		 INTERRUPT_BLOCK},
		{"try_to_wake_up nobody_knows common_interrupt", INTERRUPT_DEVICE},
		{"try_to_wake_up nobody_knows", INTERRUPT_UNKNOWN},
	};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
		Thread *thread;
		char name[COMM_LEN + 1];

		wait_in(fixture, NULL, REASON_SLEEP, RULE_SYSCALL)->flags = INTERVAL_WAKER_IRQ;
		thread = &fixture->timeline.threads.items[0];
		*vec_push(&thread->waker_stacks) = (WakerStack){
			.user_stack = STACK_NONE,
			.kernel_stack = kernel_stack(fixture, stacks[i].names),
		};
		wait_reasons_by_stack(&fixture->timeline, fixture->frames);
		assert_int_equal(thread->waker_stacks.items[0].source, stacks[i].source);
		assert_string_equal(wait_waker(&fixture->timeline, thread, 0, name),
				    interrupt_label(stacks[i].source));
		forget(fixture);
	}
}

/* A fault by tracepoints that looks as if the wait lay in it, and a stack that knows better. */
static void test_fault_that_is_over(void **state)
{
	static const char in_call[] = "__schedule schedule fcntl_setlk do_fcntl",
			  in_fault[] = "__schedule schedule io_schedule folio_wait_bit_common "
				       "filemap_fault handle_mm_fault exc_page_fault",
			  not_known[] = "__schedule schedule nobody_knows";
	static const struct {
		const char *names;
		enum fault_hook hook;
		bool kept;
		enum reason reason;
	} cases[] = {
		{in_call, FAULT_HOOK_SLEEP, false, REASON_FILE_LOCK},
		{not_known, FAULT_HOOK_SLEEP, false, REASON_UNINTERRUPTIBLE},
		{in_fault, FAULT_HOOK_SLEEP, true, REASON_FAULT},
		{NULL, FAULT_HOOK_SLEEP, true, REASON_FAULT},
		{in_call, FAULT_HOOK_FUNCTION, true, REASON_FILE_LOCK},
	};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Thread *thread;

		wait_in(fixture, cases[i].names, REASON_FAULT, RULE_FAULT);
		thread = &fixture->timeline.threads.items[0];
		*vec_push(&thread->faults) =
			(Fault){.end_ns = 10, .file = OBJECT_NONE, .hook = cases[i].hook};
		wait_reasons_by_stack(&fixture->timeline, fixture->frames);
		assert_int_equal(thread->faults.count, cases[i].kept);
		assert_int_equal(thread->intervals.items[0].reason, cases[i].reason);
		forget(fixture);
	}
}

/* To poll a timerfd is to wait for a time, as to read one is. */
static void test_timers(void **state)
{
	static const struct {
		const char *object;
		enum reason reason;
	} cases[] = {{"[timerfd]", REASON_TIMER},
		     {"epoll of [timerfd]", REASON_TIMER},
		     {"[eventfd]", REASON_EVENT},
		     {"epoll of [timerfd] and 2 more", REASON_EVENT}};
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Interval *wait = wait_in(fixture, NULL, REASON_EVENT, RULE_DESCRIPTOR);
		Thread *thread = fixture->timeline.threads.items;

		*vec_push(&fixture->timeline.objects.list) =
			(Object){.name = (char *)cases[i].object};
		*vec_push(&thread->object_waits) = (ObjectWait){.object = 0};
		wait_reasons_by_stack(&fixture->timeline, fixture->frames);
		assert_int_equal(wait->reason, cases[i].reason);
		vec_free(&fixture->timeline.objects.list);
		vec_free(&thread->object_waits);
		forget(fixture);
	}
	expect(fixture, "__schedule schedule timerfd_read_iter vfs_read", REASON_EVENT,
	       REASON_TIMER, "kernel stack: timerfd_read_iter ← vfs_read");
}

static void test_rules_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < kernel_rule_count; i++) {
		const KernelRule *rule = &kernel_rules[i];

		assert_null(strchr(rule->function, '.'));
		assert_uint_in_range(rule->reason, REASON_NONE + 1, REASON_COUNT - 1);
		assert_non_null(reason_info[rule->reason].leaf);
		assert_false(reason_unexplained(rule->reason));
		assert_uint_in_range(rule->level, 0, LEVEL_COUNT - 1);
		assert_ptr_equal(kernel_rule_of(rule->function), rule); /* once only */
	}
	assert_null(kernel_rule_of("futex_wai"));
	assert_null(kernel_rule_of(""));
	assert_ptr_equal(kernel_rule_of("do_poll.constprop.0"), kernel_rule_of("do_poll"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_innermost_lock),
		WITH_FIXTURE(test_file_systems),
		WITH_FIXTURE(test_grace_period),
		WITH_FIXTURE(test_call_says_more),
		WITH_FIXTURE(test_page_faults),
		WITH_FIXTURE(test_primitives),
		WITH_FIXTURE(test_nothing_known),
		WITH_FIXTURE(test_seen_to_happen),
		WITH_FIXTURE(test_workers),
		WITH_FIXTURE(test_purpose),
		WITH_FIXTURE(test_request_of_a_timer),
		WITH_FIXTURE(test_request_of_a_lock),
		WITH_FIXTURE(test_request_that_reads),
		WITH_FIXTURE(test_request_held_back),
		WITH_FIXTURE(test_timers),
		WITH_FIXTURE(test_interrupts),
		WITH_FIXTURE(test_fault_that_is_over),
		cmocka_unit_test(test_rules_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
