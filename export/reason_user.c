/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reason_user.h"
#include "util.h"
#include <string.h>

typedef struct UserRule {
	const char *function;
	uint8_t reason; /* enum reason */
} UserRule;

/* glibc's, without what bare_name() takes off; of what its stack has if only exports have names. */
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
};

/* Parts of names: these have types around them, and Rust's move between modules. */
static const UserRule part_rules[] = {
	{"std::__detail::__platform_wait", REASON_FUTEX},
	{"std::__atomic_wait", REASON_FUTEX},
	{"std::__atomic_futex_unsigned", REASON_FUTEX},
	{"std::__1::__libcpp_atomic", REASON_FUTEX},
	{"::Mutex::lock_contended", REASON_MUTEX},
	{"::RawMutex::lock_slow", REASON_MUTEX},
	{"::RwLock::read_contended", REASON_RWLOCK},
	{"::RwLock::write_contended", REASON_RWLOCK},
	{"::RawRwLock::lock_shared_slow", REASON_RWLOCK},
	{"::RawRwLock::lock_exclusive_slow", REASON_RWLOCK},
	{"::Condvar::wait", REASON_CONDVAR},
	{"std::thread::park", REASON_FUTEX},
};

/* "___pthread_mutex_lock", "__GI___lll_lock_wait", "__new_sem_wait_slow64.constprop.0", … */
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

enum reason user_reason_of(const char *function, bool *ret_weak)
{
	size_t length;
	const char *bare = bare_name(function, &length);

	*ret_weak = false;
	for (size_t i = 0; i < ARRAY_LEN(library_rules); i++)
		if (strlen(library_rules[i].function) == length &&
		    !strncmp(library_rules[i].function, bare, length))
			return library_rules[i].reason;
	if (strchr(function, ':'))
		for (size_t i = 0; i < ARRAY_LEN(part_rules); i++)
			if (strstr(function, part_rules[i].function))
				return part_rules[i].reason;
	/* Whose call it is is not known, but it is none of the C library's own. */
	*ret_weak = !strcmp(function, "syscall");
	return *ret_weak ? REASON_FUTEX : REASON_NONE;
}

bool reason_of_futex(enum reason reason)
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
		return true;
	default:
		return false;
	}
}
