/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * util.h - what all folders need: messages, memory, growing arrays, a map, interned strings.
 */
#ifndef WALLPROF_UTIL_H
#define WALLPROF_UTIL_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))

/* ---- messages: to stderr, one line each, "wallprof: …" ------------------ */

enum log_level { LOG_QUIET = -1, LOG_NORMAL = 0, LOG_VERBOSE = 1 };
extern enum log_level log_level;

/*
 * Prefixes all messages from here on with a subject such as "WALLPROF_OPTIONS"; NULL: no subject.
 */
void log_about(const char *subject);

/* Calls this before a message is printed, so that a line without an end can be removed. */
void log_before_message(void (*clear)(void));

/* It is always printed. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* They are printed unless -q is given. */
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* It is printed with -v only. */
void log_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Replaces characters that could control a terminal by '?', in place: control characters, U+0080 to
 * U+009F included. It is used for every name from a recorded program that is printed.
 */
void mask_controls(char *text);

/*
 * Returns the kernel's text for a negative errno. If a limit of this process explains it, a remedy
 * follows: "File too large; raise the limit on file sizes (ulimit -f, now 1024 KiB)". It belongs at
 * the end of a message. It is valid until the next call, and for the main thread only.
 */
const char *error_text(int error);

/* Returns the word as it must be typed into a shell: quoted if necessary. The caller frees it. */
char *shell_word(const char *word);

/* Returns whether the text is longer than the suffix and ends with it. */
bool text_ends_with(const char *text, const char *suffix);

/* ---- remedies: texts that say how to resolve an error, as commands for a shell ---- */

/*
 * Returns the command that exports the capture to another file: "wallprof export -o
 * /other/prof.json CAPTURE". The caller frees it.
 */
char *remedy_export(const char *capture_path);

/* Does the same for --json-summary. */
char *remedy_summary(const char *capture_path);

/* "; choose another place with -o", or "" if error_text() of the error has a remedy already. */
const char *remedy_other_place(int error);

/* ---- memory: running out ends the program with a message ---------------- */

/* The exit status then; 125 until it is set. */
void util_set_memory_failure_status(int status);
/* Ends the program with that status. */
void util_exit_failed(void) __attribute__((noreturn));

__attribute__((returns_nonnull)) void *xmalloc(size_t size);
__attribute__((returns_nonnull)) void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
__attribute__((returns_nonnull)) char *xstrdup(const char *s);
__attribute__((returns_nonnull)) char *xstrndup(const char *s, size_t length);
__attribute__((returns_nonnull, format(printf, 1, 2))) char *xasprintf(const char *fmt, ...);

/*
 * Call before much new memory is written: the kernel then provides all its pages at once, because a
 * page fault at each first write costs more than the write. It only saves time, and only for many
 * pages.
 */
void touch_memory(void *p, size_t size);

/*
 * The same with large pages, if there is room for one. Not for a part of what realloc() will move:
 * the kernel moves no range whose parts have different properties, so that it would be copied.
 */
void touch_memory_large(void *p, size_t size);

/*
 * Cleanup attributes, for variables that are freed or closed wherever their block is left:
 *
 *	_cleanup_free_ char *s = …;	_cleanup_close_ int fd = …;
 *	_cleanup_fclose_ FILE *file = …;	_cleanup_closedir_ DIR *folder = …;
 *	_cleanup_(foo_free) Foo foo = {};
 *	_cleanup_(foo_freep) Foo *foo = NULL;	(after DEFINE_CLEANUP(Foo *, foo_free))
 */
#define _cleanup_(function) __attribute__((cleanup(function)))
#define DEFINE_CLEANUP(type, function)                                                             \
	static inline void function##p(type *p)                                                    \
	{                                                                                          \
		if (*p)                                                                            \
			function(*p);                                                              \
	}
/* Return the pointer or descriptor, and clear the variable: it is not freed or closed then. */
#define take_pointer(p)                                                                            \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})
#define take_fd(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})
static inline void freep(void *p)
{
	free(*(void **)p);
}
#define _cleanup_free_ _cleanup_(freep)
/* Closes *fd unless it is negative, and makes it -1. */
void closep(int *fd);
#define _cleanup_close_ _cleanup_(closep)
DEFINE_CLEANUP(FILE *, fclose)
#define _cleanup_fclose_ _cleanup_(fclosep)
DEFINE_CLEANUP(DIR *, closedir)
#define _cleanup_closedir_ _cleanup_(closedirp)

/*
 * Opens a placeholder for a descriptor that is never used: /dev/null, or where there is none (an
 * empty /dev) a descriptor that can be neither read nor written. The caller closes it. -1 with
 * errno set on an error.
 */
int open_null(void);

/* Writes all of data, also after short writes and interruptions. Returns 0 or a negative errno. */
int write_all(int fd, const void *data, size_t size);

/*
 * Where the memory of arrays comes from. resize: changes the size in bytes, NULL if it was 0, and
 * returns the new address; it must not return without memory.
 */
typedef struct VecMemory {
	void *(*resize)(void *items, size_t old_size, size_t new_size);
	void (*free)(void *items, size_t size);
} VecMemory;

/* NULL, as at first: it comes from realloc(). */
void util_set_vec_memory(const VecMemory *memory);
void *util_resize_items(void *items, size_t old_size, size_t new_size);
void util_free_items(void *items, size_t size);

/* A larger array, in bytes, grows by a quarter. */
#define VEC_GROWS_SLOWLY (128u << 10)
/*
 * It is a growing array of T:  VEC(struct foo) foos = {};  *vec_push(&foos) = (struct foo){…};
 * foos.items[i], foos.count; vec_free(&foos). free() must
 * not get its memory.
 */
#define VEC(T)                                                                                     \
	struct {                                                                                   \
		T *items;                                                                          \
		size_t count, capacity;                                                            \
	}
/*
 * Returns the next capacity of an array. A large one grows by a quarter, which needs less memory
 * and is still O(n).
 */
static inline size_t vec_more(size_t capacity, size_t item_size)
{
	if (capacity == 0)
		return 8;
	return capacity * item_size < VEC_GROWS_SLOWLY ? capacity * 2 : capacity + capacity / 4;
}
#define vec_resize_(v, wanted)                                                                     \
	({                                                                                         \
		size_t before_ = (v)->capacity;                                                    \
		(v)->capacity = (wanted);                                                          \
		(v)->items = util_resize_items((v)->items, before_ * sizeof(*(v)->items),          \
					       (v)->capacity * sizeof(*(v)->items));               \
	})
#define vec_push(v)                                                                                \
	({                                                                                         \
		if ((v)->count == (v)->capacity) {                                                 \
			vec_resize_(v, vec_more((v)->capacity, sizeof(*(v)->items)));              \
		}                                                                                  \
		&(v)->items[(v)->count++];                                                         \
	})
/*
 * Returns where the item with that index is, which may be the one behind the last. For an array
 * that has had no items it is NULL, to which C allows nothing to be added, not even 0.
 */
#define vec_at(v, index) ((v)->items ? &(v)->items[index] : NULL)
/* Makes room for `wanted` items in total. */
#define vec_reserve(v, wanted)                                                                     \
	({                                                                                         \
		if ((v)->capacity < (wanted)) {                                                    \
			vec_resize_(v, MAX((size_t)(wanted),                                       \
					   vec_more((v)->capacity, sizeof(*(v)->items))));         \
		}                                                                                  \
	})
/* Appends `n` items. */
#define vec_append(v, data, n)                                                                     \
	({                                                                                         \
		vec_reserve(v, (v)->count + (n));                                                  \
		if ((n) > 0) /* with nothing to copy, both may be NULL */                          \
			memcpy((v)->items + (v)->count, data, (n) * sizeof(*(v)->items));          \
		(v)->count += (n);                                                                 \
	})
#define vec_free(v)                                                                                \
	({                                                                                         \
		util_free_items((v)->items, (v)->capacity * sizeof(*(v)->items));                  \
		(v)->items = NULL;                                                                 \
		(v)->count = (v)->capacity = 0;                                                    \
	})
/* Frees the room behind the last item. */
#define vec_shrink(v)                                                                              \
	({                                                                                         \
		if ((v)->count > 0 && (v)->count < (v)->capacity)                                  \
			vec_resize_(v, (v)->count);                                                \
	})
/*
 * Returns the number of leading items, of `n` sorted ones, for which the condition holds; it is
 * evaluated for about log2(n) of them, with their index in i. The condition must not contain
 * another partition_point.
 *
 *	size_t at = partition_point(i, foos.count, foos.items[i].start < wanted);
 */
#define partition_point(i, n, condition)                                                           \
	({                                                                                         \
		size_t first_ = 0, behind_ = (n);                                                  \
		while (first_ < behind_) {                                                         \
			size_t i = first_ + (behind_ - first_) / 2;                                \
			if (condition)                                                             \
				first_ = i + 1;                                                    \
			else                                                                       \
				behind_ = i;                                                       \
		}                                                                                  \
		first_;                                                                            \
	})

/* ---- Map: u64 -> u32, open addressing ----------------------------------- */

typedef struct Map {
	uint64_t *keys;
	uint32_t *values; /* MAP_NONE = the slot is free */
	size_t mask;	  /* capacity - 1, or 0 when empty */
	size_t count;
} Map;
#define MAP_NONE UINT32_MAX

/* Mixes the parts of a key into 64 bits. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ULL ^ b;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

/* Returns the slot of key, or the free slot for it. The map has slots. */
static inline size_t map_slot(const Map *map, uint64_t key)
{
	size_t slot = hash_mix(key, 0) & map->mask;

	while (map->values[slot] != MAP_NONE && map->keys[slot] != key)
		slot = (slot + 1) & map->mask;
	return slot;
}

/* Returns the value of key, or MAP_NONE. */
static inline uint32_t map_get(const Map *map, uint64_t key)
{
	return map->mask ? map->values[map_slot(map, key)] : MAP_NONE;
}

/* Sets key to value (not MAP_NONE). */
void map_set(Map *map, uint64_t key, uint32_t value);
void map_free(Map *map);

/* ---- Strings: interned, numbered from 0, kept until strings_free --------- */

typedef struct Strings {
	VEC(char *) list;
	Map index; /* hash -> first index; strings with one hash are chained in next */
	VEC(uint32_t) next;
} Strings;

uint32_t strings_intern(Strings *strings, const char *s);
/* Returns the string's index, or MAP_NONE. */
uint32_t strings_find(const Strings *strings, const char *s);
static inline const char *strings_get(const Strings *strings, uint32_t number)
{
	return strings->list.items[number];
}
void strings_free(Strings *strings);

/* ---- time and numbers ---------------------------------------------------- */

uint64_t clock_ns(clockid_t clock); /* 0 if there is no such clock */
uint64_t now_ns(void);		    /* CLOCK_MONOTONIC */
/*
 * Returns CLOCK_REALTIME minus CLOCK_MONOTONIC. The clocks are read several times, because a thread
 * that is preempted between the two readings gets a wrong difference.
 */
int64_t realtime_offset_ns(void);

/*
 * Parses a whole number without a sign or a suffix, base 10. All of the text must be the number.
 * Returns 0 or -EINVAL / -ERANGE.
 */
int parse_u64(const char *text, uint64_t *ret_value);
/* Parses a time such as "10", "10s", "500ms" or "2.5s". Returns 0 or -EINVAL. */
int parse_duration(const char *text, uint64_t *ret_ns);
/* Parses a size such as "64K", "16M" or "1G", or bytes. Returns 0 or -EINVAL. */
int parse_size(const char *text, uint64_t *ret_bytes);

#endif
