/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lock_line.h"
#include "interpreter_locks.h"
#include "script_language.h"
#include "text.h"

#define LEAST_SHARE 0.1 /* of the window */

/* Returns the lock with the longest waits; UINT32_MAX: none has enough. */
static uint32_t largest_lock(const Timeline *timeline, const InterpreterLocks *locks)
{
	double most_ns = LEAST_SHARE * (timeline->end_ns - timeline->start_ns);
	uint32_t largest = UINT32_MAX;

	for (uint32_t i = 0; i < locks->locks.count; i++)
		if (locks->locks.items[i].ns > most_ns) {
			most_ns = locks->locks.items[i].ns;
			largest = i;
		}
	return largest;
}

/* Returns the function for which threads waited longest, whichever thread was in it. */
static uint32_t largest_function(const InterpreterLocks *locks, uint32_t lock, uint64_t *ret_ns)
{
	size_t count = locks->functions.list.count;
	_cleanup_free_ uint64_t *ns = xcalloc(count + 1, sizeof(*ns));
	uint32_t largest = UINT32_MAX;

	*ret_ns = 0;
	for (size_t i = 0; i < locks->holdings.count; i++)
		if (locks->holdings.items[i].lock == lock &&
		    locks->holdings.items[i].function < count)
			ns[locks->holdings.items[i].function] += locks->holdings.items[i].waited_ns;
	for (uint32_t i = 0; i < count; i++)
		if (ns[i] > *ret_ns) {
			*ret_ns = ns[i];
			largest = i;
		}
	return largest;
}

static char *line_of(const InterpreterLocks *locks, uint32_t number)
{
	const InterpreterLock *lock = &locks->locks.items[number];
	const ScriptLanguage *language = script_language(lock->language);
	uint64_t function_ns;
	uint32_t function = largest_function(locks, number, &function_ns);
	_cleanup_free_ char *of = NULL, *printable = NULL;
	size_t threads = 0;

	for (size_t i = 0; i < locks->waiters.count; i++)
		threads += locks->waiters.items[i].lock == number;
	if (function != UINT32_MAX) {
		printable = text_printable(strings_get(&locks->functions, function));
		of = xasprintf(", %.0f %% of it for %s", 100.0 * function_ns / lock->ns, printable);
	}
	return xasprintf("%s %s: %zu thread%s waited %s%s",
			 language ? language->name : "interpreter",
			 language ? language->lock_name : "lock", threads, threads == 1 ? "" : "s",
			 DURATION(lock->ns), of ? of : "");
}

char *lock_line_text(const Timeline *timeline, Frames *frames)
{
	InterpreterLocks locks = interpreter_locks_sum(timeline, frames);
	uint32_t number = largest_lock(timeline, &locks);
	char *line = number == UINT32_MAX ? NULL : line_of(&locks, number);

	interpreter_locks_free(&locks);
	return line;
}
