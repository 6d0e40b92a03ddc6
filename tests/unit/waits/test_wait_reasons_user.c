/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reason of a wait by the program's functions. */
#include "wait_fields.h"
#include "wait_reasons.h"
#include "wait_reasons_fixture.h"
#include <asm/unistd_64.h>

/*
 * A futex wait that the operation and value report as one reason, with futex() called in these
 * functions.
 */
static void expect_futex(Fixture *fixture, const char *kernel, const char *user,
			 enum reason reported, enum reason wanted, const char *basis)
{
	Interval *wait = wait_in(fixture, kernel, reported, RULE_ARGUMENTS);
	_cleanup_free_ char *text = NULL;

	*vec_push(&fixture->timeline.processes) = (Process){.tgid = PROCESS, .ns_tgid = PROCESS};
	wait->user_stack = stack_of(fixture, user, /* user= */ true);
	wait->syscall = __NR_futex;
	wait->start_ns = 20; /* when the library is there */
	fixture->timeline.threads.items[0].end_ns = 30;
	wait_reasons_by_stack(&fixture->timeline, fixture->frames);
	text = wait_basis(&fixture->timeline, wait);
	if (wait->reason != wanted || strcmp(text, basis) != 0)
		fail_msg("%s: is %s by %s, should be %s by %s", user,
			 reason_info[wait->reason].leaf, text, reason_info[wanted].leaf, basis);
	vec_free(&fixture->timeline.processes);
	forget(fixture);
}

#define FUTEX_STACK "__schedule schedule futex_do_wait __futex_wait futex_wait do_futex"

static void test_futexes_by_user_stack(void **state)
{
	expect_futex(
		*state, FUTEX_STACK, "syscall std::__detail::__platform_wait<int>(int) main",
		REASON_MUTEX, REASON_FUTEX,
		"kernel stack and user stack: std::__detail::__platform_wait<int>(int), futex");
	expect_futex(*state, FUTEX_STACK, "syscall main", REASON_MUTEX, REASON_FUTEX,
		     "kernel stack and user stack: syscall, futex");
	/* Rust's locks use the same call. */
	expect_futex(*state, FUTEX_STACK,
		     "syscall std::sys::sync::mutex::futex::Mutex::lock_contended", REASON_MUTEX,
		     REASON_MUTEX,
		     "kernel stack and user stack: "
		     "std::sys::sync::mutex::futex::Mutex::lock_contended, futex");
	expect_futex(*state, FUTEX_STACK, "__new_sem_wait_slow64.constprop.0 PyThread_acquire_lock",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_SEMAPHORE,
		     "kernel stack and user stack: __new_sem_wait_slow64.constprop.0, futex");
	/* The wait for the mutex that a condition variable takes again. */
	expect_futex(*state, NULL, "futex_wait __GI___lll_lock_wait pthread_cond_wait main",
		     REASON_MUTEX, REASON_MUTEX, "user stack: __GI___lll_lock_wait, futex");
	expect_futex(*state, NULL, "pthread_cond_wait@@GLIBC_2.3.2 main",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_CONDVAR,
		     "user stack: pthread_cond_wait@@GLIBC_2.3.2, futex");
	expect_futex(*state, FUTEX_STACK, "futex_wait pthread_barrier_wait main", REASON_MUTEX,
		     REASON_BARRIER, "kernel stack and user stack: pthread_barrier_wait, futex");
	expect_futex(*state, FUTEX_STACK, "__pthread_clockjoin_ex main", REASON_FUTEX, REASON_JOIN,
		     "kernel stack and user stack: __pthread_clockjoin_ex, futex");
	expect_futex(*state, FUTEX_STACK,
		     "syscall <std::sys::sync::rwlock::futex::RwLock>::read_contended",
		     REASON_FUTEX, REASON_RWLOCK,
		     "kernel stack and user stack: "
		     "<std::sys::sync::rwlock::futex::RwLock>::read_contended, futex");
	expect_futex(
		*state, FUTEX_STACK, "syscall <std::sys::sync::once::futex::Once>::call main",
		REASON_MUTEX, REASON_ONCE,
		"kernel stack and user stack: <std::sys::sync::once::futex::Once>::call, futex");
	expect_futex(*state, FUTEX_STACK, "syscall __cxa_guard_acquire main", REASON_MUTEX,
		     REASON_ONCE, "kernel stack and user stack: __cxa_guard_acquire, futex");
	expect_futex(*state, FUTEX_STACK, "__pthread_once_slow main", REASON_FUTEX, REASON_ONCE,
		     "kernel stack and user stack: __pthread_once_slow, futex");
	expect_futex(*state, FUTEX_STACK, "syscall own_lock set_up __pthread_once_slow main",
		     REASON_FUTEX, REASON_FUTEX, "kernel stack and user stack: syscall, futex");
	expect_futex(*state, FUTEX_STACK, "syscall std::counting_semaphore<1l>::acquire() main",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_SEMAPHORE,
		     "kernel stack and user stack: std::counting_semaphore<1l>::acquire(), futex");
	expect_futex(*state, FUTEX_STACK,
		     "syscall "
		     "std::__atomic_futex_unsigned_base::_M_futex_wait_until "
		     "std::__future_base::_State_baseV2::wait",
		     REASON_MUTEX, REASON_FUTURE,
		     "kernel stack and user stack: "
		     "std::__atomic_futex_unsigned_base::_M_futex_wait_until, futex");
	expect_futex(*state, FUTEX_STACK,
		     "__condvar_quiesce_and_switch_g1 pthread_cond_signal main", REASON_FUTEX,
		     REASON_CONDVAR_SIGNAL,
		     "kernel stack and user stack: __condvar_quiesce_and_switch_g1, futex");
	expect_futex(*state, NULL, "__timedwait_cp __pthread_cond_timedwait main", REASON_MUTEX,
		     REASON_CONDVAR, "user stack: __pthread_cond_timedwait, futex");
	/* Names that no rule matches. */
	expect_futex(*state, FUTEX_STACK, "my_sem_wait pthread_mutex_lockers main",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_CONDVAR_OR_SEMAPHORE,
		     "kernel stack and system call: futex_do_wait ← do_futex, futex");
	/* The thread does not wait for a futex, although its function may call futex() as well. */
	expect_futex(*state, "__schedule schedule rwsem_down_read_slowpath down_read do_futex",
		     "pthread_mutex_lock main", REASON_UNINTERRUPTIBLE, REASON_KERNEL_RWSEM,
		     "kernel stack: rwsem_down_read_slowpath ← down_read, futex");
}

/* CPython waits for its lock through a condition variable, and for that variable's mutex. */
static void test_gil(void **state)
{
	expect_futex(*state, FUTEX_STACK, "futex_wait pthread_cond_timedwait take_gil main",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_GIL,
		     "kernel stack and user stack: take_gil, futex");
	expect_futex(*state, FUTEX_STACK,
		     "__pthread_cond_wait_common ___pthread_cond_timedwait64 PyCOND_TIMEDWAIT "
		     "take_gil.part.0 main",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_GIL,
		     "kernel stack and user stack: take_gil.part.0, futex");
	expect_futex(*state, FUTEX_STACK, "pthread_cond_wait drop_gil main",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_GIL_HANDOVER,
		     "kernel stack and user stack: drop_gil, futex");
	expect_futex(*state, NULL, "pthread_cond_timedwait take_gil main", REASON_MUTEX,
		     REASON_MUTEX, "system call and arguments: futex");
	/* An extension's own condition variable. */
	expect_futex(*state, FUTEX_STACK, "pthread_cond_wait queue_get run_job work take_gil main",
		     REASON_CONDVAR_OR_SEMAPHORE, REASON_CONDVAR,
		     "kernel stack and user stack: pthread_cond_wait, futex");
}

static void test_go(void **state)
{
	expect_futex(*state, FUTEX_STACK,
		     "runtime.futex.abi0 runtime.futexsleep runtime.notesleep runtime.mPark "
		     "runtime.stopm runtime.findRunnable runtime.schedule runtime.mcall",
		     REASON_FUTEX, REASON_GO_SCHEDULER,
		     "kernel stack and user stack: runtime.stopm, futex");
	expect_futex(*state, FUTEX_STACK,
		     "runtime.futex.abi0 runtime.futexsleep runtime.notesleep runtime.mPark "
		     "runtime.stopm runtime.gcstopm runtime.schedule runtime.mcall",
		     REASON_FUTEX, REASON_GO_STOP,
		     "kernel stack and user stack: runtime.gcstopm, futex");
	expect_futex(*state, FUTEX_STACK,
		     "runtime.futex.abi0 runtime.futexsleep runtime.notesleep runtime.mPark "
		     "runtime.stoplockedm runtime.schedule runtime.mcall",
		     REASON_FUTEX, REASON_PARK,
		     "kernel stack and user stack: runtime.stoplockedm, futex");
	expect_futex(*state, FUTEX_STACK,
		     "runtime.futex.abi0 runtime.futexsleep runtime.lock2 runtime.stopm "
		     "runtime.findRunnable runtime.schedule runtime.mcall",
		     REASON_MUTEX, REASON_MUTEX,
		     "kernel stack and user stack: runtime.lock2, futex");
	expect_futex(*state, FUTEX_STACK,
		     "runtime.futex.abi0 runtime.futexsleep runtime.notetsleep_internal "
		     "runtime.notetsleepg os/signal.signal_recv os/signal.loop",
		     REASON_FUTEX, REASON_SIGNAL,
		     "kernel stack and user stack: os/signal.signal_recv, futex");
	expect_futex(*state, FUTEX_STACK, "runtime.futex.abi0 main.stopm main.main", REASON_FUTEX,
		     REASON_FUTEX, "kernel stack: futex_do_wait ← do_futex, futex");
}

/* Go's scheduler and its monitor sleep in other calls as well. */
static void expect_go(Fixture *fixture, int syscall, const char *user, enum reason reported,
		      enum reason wanted, bool without_work)
{
	Interval *wait = wait_in(fixture, NULL, reported, RULE_SYSCALL);

	*vec_push(&fixture->timeline.processes) = (Process){.tgid = PROCESS, .ns_tgid = PROCESS};
	wait->user_stack = stack_of(fixture, user, /* user= */ true);
	wait->syscall = syscall;
	wait->start_ns = 20;
	fixture->timeline.threads.items[0].end_ns = 30;
	wait_reasons_by_stack(&fixture->timeline, fixture->frames);
	assert_int_equal(wait->reason, wanted);
	assert_int_equal(fixture->timeline.stacks.items[wait->user_stack].without_work,
			 without_work);
	vec_free(&fixture->timeline.processes);
	forget(fixture);
}

static void test_go_in_other_calls(void **state)
{
	expect_go(*state, __NR_epoll_pwait,
		  "runtime.epollwait.abi0 runtime.netpoll runtime.findRunnable runtime.schedule",
		  REASON_EPOLL, REASON_EPOLL, true);
	expect_go(*state, __NR_nanosleep, "runtime.usleep.abi0 runtime.sysmon runtime.mstart1",
		  REASON_SLEEP, REASON_GO_SCHEDULER, true);
	expect_go(*state, __NR_nanosleep,
		  "runtime.usleep.abi0 runtime.runqgrab runtime.findRunnable", REASON_SLEEP,
		  REASON_SLEEP, false);
	expect_go(*state, __NR_epoll_pwait, "golang.org/x/sys/unix.EpollWait main.main",
		  REASON_EPOLL, REASON_EPOLL, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_futexes_by_user_stack),
		WITH_FIXTURE(test_gil),
		WITH_FIXTURE(test_go),
		WITH_FIXTURE(test_go_in_other_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
