/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "futex_kinds.h"
#include "util.h"
#include <string.h>

typedef struct UserRule {
	const char *function;
	uint8_t reason; /* enum reason */
} UserRule;

/*
 * Functions of glibc, without what bare_name() removes. The later ones occur in stacks where only
 * exported functions have names.
 */
static const UserRule library_rules[] = {
	{"lll_lock_wait", REASON_MUTEX},
	{"lll_lock_wait_private", REASON_MUTEX},
	{"pthread_mutex_lock", REASON_MUTEX},
	{"pthread_mutex_lock_full", REASON_MUTEX},
	{"pthread_mutex_cond_lock", REASON_MUTEX},
	{"pthread_mutex_cond_lock_full", REASON_MUTEX},
	{"pthread_mutex_timedlock", REASON_MUTEX},
	{"pthread_mutex_clocklock", REASON_MUTEX},
	{"pthread_mutex_clocklock_common", REASON_MUTEX},
	{"mtx_lock", REASON_MUTEX},
	{"mtx_timedlock", REASON_MUTEX},
	{"pthread_rwlock_rdlock", REASON_RWLOCK},
	{"pthread_rwlock_rdlock_full", REASON_RWLOCK},
	{"pthread_rwlock_timedrdlock", REASON_RWLOCK},
	{"pthread_rwlock_clockrdlock", REASON_RWLOCK},
	{"pthread_rwlock_wrlock", REASON_RWLOCK},
	{"pthread_rwlock_wrlock_full", REASON_RWLOCK},
	{"pthread_rwlock_timedwrlock", REASON_RWLOCK},
	{"pthread_rwlock_clockwrlock", REASON_RWLOCK},
	{"pthread_cond_wait", REASON_CONDVAR},
	{"pthread_cond_wait_common", REASON_CONDVAR},
	{"pthread_cond_timedwait", REASON_CONDVAR},
	{"pthread_cond_clockwait", REASON_CONDVAR},
	{"cnd_wait", REASON_CONDVAR},
	{"cnd_timedwait", REASON_CONDVAR},
	{"new_sem_wait", REASON_SEMAPHORE},
	{"new_sem_wait_slow", REASON_SEMAPHORE},
	{"sem_wait", REASON_SEMAPHORE},
	{"sem_timedwait", REASON_SEMAPHORE},
	{"sem_clockwait", REASON_SEMAPHORE},
	{"pthread_join", REASON_JOIN},
	{"pthread_timedjoin_np", REASON_JOIN},
	{"pthread_clockjoin_np", REASON_JOIN},
	{"pthread_clockjoin_ex", REASON_JOIN},
	{"pthread_timedjoin_ex", REASON_JOIN},
	{"thrd_join", REASON_JOIN},
	{"pthread_barrier_wait", REASON_BARRIER},
	{"pthread_once", REASON_ONCE},
	{"pthread_once_slow", REASON_ONCE},
	{"call_once", REASON_ONCE},
	{"pthread_cond_signal", REASON_CONDVAR_SIGNAL},
	{"pthread_cond_broadcast", REASON_CONDVAR_SIGNAL},
	{"condvar_quiesce_and_switch_g1", REASON_CONDVAR_SIGNAL},
	{"cnd_signal", REASON_CONDVAR_SIGNAL},
	{"cnd_broadcast", REASON_CONDVAR_SIGNAL},
	{"aio_suspend", REASON_POSIX_AIO},
	{"lio_listio", REASON_POSIX_AIO},
};

/*
 * Parts of names, without < and > and what C++ has between them: these have types around them, and
 * Rust's move between modules. The first match decides.
 */
static const UserRule part_rules[] = {
	{"std::__tree_barrier", REASON_BARRIER},
	{"std::counting_semaphore::", REASON_SEMAPHORE},
	{"std::__atomic_semaphore", REASON_SEMAPHORE},
	{"std::__platform_semaphore", REASON_SEMAPHORE},
	{"std::__atomic_futex_unsigned", REASON_FUTURE},
	{"std::__detail::__platform_wait", REASON_FUTEX},
	{"std::__atomic_wait", REASON_FUTEX},
	{"std::__1::__libcpp_atomic", REASON_FUTEX},
	{"::Mutex::lock_contended", REASON_MUTEX},
	{"::RawMutex::lock_slow", REASON_MUTEX},
	{"::RwLock::read_contended", REASON_RWLOCK},
	{"::RwLock::write_contended", REASON_RWLOCK},
	{"::RawRwLock::lock_shared_slow", REASON_RWLOCK},
	{"::RawRwLock::lock_exclusive_slow", REASON_RWLOCK},
	{"::Condvar::wait", REASON_CONDVAR},
	{"::Once::call", REASON_ONCE},
	{"::Once::wait", REASON_ONCE},
	{"::Parker::park", REASON_PARK},
	{"std::thread::park", REASON_PARK},
	{"SafepointSynchronize::block", REASON_SAFEPOINT},
	{"LinuxWaitBarrier::wait", REASON_SAFEPOINT},
	{"ObjectMonitor::EnterI", REASON_JVM_MONITOR},
	{"ObjectMonitor::ReenterI", REASON_JVM_MONITOR},
};

/* CPython waits for its lock through a condition variable: Python/ceval_gil.c. */
static const UserRule caller_rules[] = {
	{"take_gil", REASON_GIL},
	{"drop_gil", REASON_GIL_HANDOVER},
	{"drop_gil_impl", REASON_GIL_HANDOVER},
};

/*
 * Go's run-time system: the functions that put a thread to sleep, and, in outer frames, what for.
 */
static const UserRule go_weak_rules[] = {
	{"runtime.stopm", REASON_GO_SCHEDULER},
};

static const UserRule go_rules[] = {
	{"runtime.lock", REASON_MUTEX},
	{"runtime.lock2", REASON_MUTEX},
	{"runtime.sysmon", REASON_GO_SCHEDULER},
	{"runtime.templateThread", REASON_GO_SCHEDULER},
	{"runtime.stoplockedm", REASON_PARK},
	{"runtime.gcstopm", REASON_GO_STOP},
	{"runtime.stopTheWorldWithSema", REASON_GO_STOP},
	{"runtime.forEachP", REASON_GO_STOP},
	{"runtime.forEachPInternal", REASON_GO_STOP},
	{"os/signal.signal_recv", REASON_SIGNAL},
};

/*
 * Strips names such as "___pthread_mutex_lock", "__GI___lll_lock_wait" or
 * "__new_sem_wait_slow64.constprop.0".
 */
static const char *bare_name(const char *function, size_t *ret_length)
{
	size_t length;

	function += strspn(function, "_");
	if (!strncmp(function, "GI_", 3))
		function += 3 + strspn(function + 3, "_");
	length = strcspn(function, ".@");
	if (length > 2 && !strncmp(function + length - 2, "64", 2))
		length -= 2;
	*ret_length = length;
	return function;
}

/*
 * "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
 * "std::counting_semaphore<1l>::acquire()": in a name that begins with < the type is there; in any
 * other name that is what the type was made for.
 */
static void without_brackets(const char *function, char *name, size_t size)
{
	bool has_type = *function == '<';
	size_t length = 0;
	int depth = 0;

	for (; *function && length + 1 < size; function++) {
		if (*function == '<')
			depth++;
		else if (*function == '>' && depth > 0)
			depth--;
		else if (depth == 0 || has_type)
			name[length++] = *function;
	}
	name[length] = '\0';
}

/* Longer names are compared up to this length. */
#define NAME_COMPARED 512

static enum reason reason_by_part(const char *function)
{
	char name[NAME_COMPARED];

	without_brackets(function, name, sizeof(name));
	for (size_t i = 0; i < ARRAY_LEN(part_rules); i++)
		if (strstr(name, part_rules[i].function))
			return part_rules[i].reason;
	return REASON_NONE;
}

/*
 * Returns the rule's reason for the first `length` bytes of a name; REASON_NONE: no rule matches.
 */
static enum reason reason_by_name(const UserRule *rules, size_t count, const char *name,
				  size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(rules[i].function) == length &&
		    !strncmp(rules[i].function, name, length))
			return rules[i].reason;
	return REASON_NONE;
}

#define BY_NAME(rules, name, length) reason_by_name(rules, ARRAY_LEN(rules), name, length)

/* Returns the length without the calling convention (".abi0") that some names end in. */
static size_t go_length(const char *function)
{
	const char *suffix = strstr(function, ".abi");

	return suffix ? (size_t)(suffix - function) : strlen(function);
}

static enum reason go_reason_of(const char *function, enum certainty *ret_certainty)
{
	size_t length = go_length(function);
	enum reason reason = BY_NAME(go_rules, function, length);

	*ret_certainty = reason == REASON_NONE ? CERTAINTY_WEAK : CERTAINTY_STRONG;
	return reason == REASON_NONE ? BY_NAME(go_weak_rules, function, length) : reason;
}

static bool is_go(const char *function, const char *name)
{
	size_t length = go_length(function);

	return strlen(name) == length && !strncmp(function, name, length);
}

enum go_place user_go_place(const char *function)
{
	if (is_go(function, "runtime.sysmon"))
		return GO_MONITOR;
	/* findrunnable up to 1.18 */
	return is_go(function, "runtime.findRunnable") || is_go(function, "runtime.findrunnable")
		       ? GO_WITHOUT_WORK
		       : GO_NOT_WAITING;
}

enum reason user_reason_of(const char *function, enum certainty *ret_certainty)
{
	size_t length;
	const char *bare = bare_name(function, &length);
	enum reason reason = BY_NAME(library_rules, bare, length);

	*ret_certainty = CERTAINTY_LIBRARY;
	if (reason != REASON_NONE)
		return reason;
	*ret_certainty = CERTAINTY_CALLER;
	reason = BY_NAME(caller_rules, function, strcspn(function, "."));
	if (reason != REASON_NONE)
		return reason;
	reason = go_reason_of(function, ret_certainty);
	if (reason != REASON_NONE)
		return reason;
	*ret_certainty = CERTAINTY_STRONG;
	if (!strcmp(function, "__cxa_guard_acquire"))
		return REASON_ONCE;
	if (strchr(function, ':')) {
		enum reason reason = reason_by_part(function);

		if (reason == REASON_JVM_MONITOR)
			*ret_certainty = CERTAINTY_CALLER;
		if (reason != REASON_NONE)
			return reason;
	}
	/* The caller is unknown, but it is not one of the C library's own functions. */
	*ret_certainty = CERTAINTY_WEAK;
	return !strcmp(function, "syscall") ? REASON_FUTEX : REASON_NONE;
}

/* They are in src/thread of musl: all of its locks sleep in these. */
bool futex_kind_is_musl(const char *function)
{
	return !strcmp(function, "__timedwait_cp") || !strcmp(function, "__timedwait") ||
	       !strcmp(function, "__syscall_cp_c");
}

bool futex_kind_has_timeout(const char *function)
{
	size_t length;
	const char *bare = bare_name(function, &length);

	return length == strlen("pthread_cond_timedwait") &&
	       (!strncmp(bare, "pthread_cond_timedwait", length) ||
		!strncmp(bare, "pthread_cond_clockwait", length));
}

bool futex_kind_is_owned_mutex(const char *function)
{
	static const char *const names[] = {
		"lll_lock_wait",
		"pthread_mutex_lock",
		"pthread_mutex_lock_full",
		"pthread_mutex_cond_lock",
		"pthread_mutex_cond_lock_full",
		"mtx_lock",
	};
	size_t length;
	const char *bare = bare_name(function, &length);

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (length == strlen(names[i]) && !memcmp(bare, names[i], length))
			return true;
	return false;
}

bool futex_kind_reason(enum reason reason)
{
	switch (reason) {
	case REASON_MUTEX:
	case REASON_RWLOCK:
	case REASON_CONDVAR:
	case REASON_SEMAPHORE:
	case REASON_CONDVAR_OR_SEMAPHORE:
	case REASON_BARRIER:
	case REASON_JOIN:
	case REASON_FUTEX:
	case REASON_ONCE:
	case REASON_PARK:
	case REASON_FUTURE:
	case REASON_QUEUE:
	case REASON_LOCK:
	case REASON_CONDVAR_SIGNAL:
	case REASON_SAFEPOINT:
	case REASON_JVM_MONITOR:
	case REASON_POSIX_AIO:
	case REASON_GIL:
	case REASON_GIL_HANDOVER:
	case REASON_GO_SCHEDULER:
	case REASON_GO_STOP:
		return true;
	default:
		return false;
	}
}
