/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TOUCHED_MIN   (64u << 10)
#define TOUCHED_LARGE (4u << 20) /* contains an aligned large page */

enum log_level log_level = LOG_NORMAL;

void mask_controls(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
			p[0] = p[1] = '?';
	}
}

/* Returns whether the character has no special meaning in a shell, at any position. */
static bool is_plain(unsigned char c)
{
	return c >= 0x80 || isalnum(c) || strchr("%+,-./:=@_", c);
}

bool text_ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), suffix_length = strlen(suffix);

	return length > suffix_length && !strcmp(text + length - suffix_length, suffix);
}

char *shell_word(const char *word)
{
	const char *c = word;
	char *text, *to;

	while (*c && is_plain(*c))
		c++;
	if (*word && !*c)
		return xstrdup(word);
	to = text = xmalloc(4 * strlen(word) + 3);
	*to++ = '\'';
	for (c = word; *c; c++) {
		/* A single quote cannot be written between single quotes. */
		if (*c == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *c;
	}
	strcpy(to, "'");
	return text;
}

static const char *log_subject;

void log_about(const char *subject)
{
	log_subject = subject;
}

static void (*clear_line)(void);

void log_before_message(void (*clear)(void))
{
	clear_line = clear;
}

static void log_line(const char *prefix, const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0)
		return;
	mask_controls(text);
	if (clear_line)
		clear_line();
	fflush(stdout);
	flockfile(stderr);
	fputs("wallprof: ", stderr);
	fputs(prefix, stderr);
	if (log_subject)
		fprintf(stderr, "%s: ", log_subject);
	fputs(text, stderr);
	fputc('\n', stderr);
	funlockfile(stderr);
	free(text);
}

void log_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line("error: ", fmt, args);
	va_end(args);
}

void log_warn(const char *fmt, ...)
{
	va_list args;

	if (log_level < LOG_NORMAL)
		return;
	va_start(args, fmt);
	log_line("warning: ", fmt, args);
	va_end(args);
}

void log_info(const char *fmt, ...)
{
	va_list args;

	if (log_level < LOG_NORMAL)
		return;
	va_start(args, fmt);
	log_line("", fmt, args);
	va_end(args);
}

void log_verbose(const char *fmt, ...)
{
	va_list args;

	if (log_level < LOG_VERBOSE)
		return;
	va_start(args, fmt);
	log_line("", fmt, args);
	va_end(args);
}

/* ---- errors that a limit of the process explains -------------------------- */

typedef struct Limit {
	int error, resource;
	const char *what, *option; /* option: of ulimit */
	uint64_t unit;
	const char *unit_name;
} Limit;

static const Limit limits[] = {
	{-ENOMEM, RLIMIT_AS, "address space", "-v", 1024, " KiB"},
	{-ENOMEM, RLIMIT_DATA, "data", "-d", 1024, " KiB"},
	{-EFBIG, RLIMIT_FSIZE, "file sizes", "-f", 1024, " KiB"},
	{-EMFILE, RLIMIT_NOFILE, "open files", "-n", 1, ""},
};

const char *error_text(int error)
{
	static char text[256];

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		const Limit *limit = &limits[i];
		struct rlimit now;

		if (limit->error != error || getrlimit(limit->resource, &now) ||
		    now.rlim_cur == RLIM_INFINITY)
			continue;
		snprintf(text, sizeof(text),
			 "%s; raise the limit on %s (ulimit %s, now %" PRIu64 "%s)",
			 strerror(-error), limit->what, limit->option,
			 (uint64_t)now.rlim_cur / limit->unit, limit->unit_name);
		return text;
	}
	return strerror(-error);
}

static int memory_failure_status = 125;

void util_set_memory_failure_status(int status)
{
	memory_failure_status = status;
}

void util_exit_failed(void)
{
	exit(memory_failure_status);
}

static void *check_memory(void *p, size_t size)
{
	if (p)
		return p;
	log_error("getting %zu bytes of memory failed: %s", size, error_text(-ENOMEM));
	util_exit_failed();
}

void *xmalloc(size_t size)
{
	return check_memory(malloc(size), size);
}

void *xcalloc(size_t count, size_t size)
{
	return check_memory(calloc(count, size), count * size);
}

void *xrealloc(void *p, size_t size)
{
	p = realloc(p, size);
	return p || size == 0 ? p : check_memory(p, size);
}

static const VecMemory *vec_memory;

void util_set_vec_memory(const VecMemory *memory)
{
	vec_memory = memory;
}

void *util_resize_items(void *items, size_t old_size, size_t new_size)
{
	return vec_memory ? vec_memory->resize(items, old_size, new_size)
			  : xrealloc(items, new_size);
}

void util_free_items(void *items, size_t size)
{
	if (vec_memory)
		vec_memory->free(items, size);
	else
		free(items);
}

static void advise(void *p, size_t size, int advice)
{
	const uintptr_t page = 4096;
	uintptr_t from = (uintptr_t)p & -page, to = ((uintptr_t)p + size + page - 1) & -page;

	madvise((void *)from, to - from, advice);
}

void touch_memory(void *p, size_t size)
{
	if (size >= TOUCHED_MIN)
		advise(p, size, MADV_POPULATE_WRITE);
}

void touch_memory_large(void *p, size_t size)
{
	if (size >= TOUCHED_LARGE)
		advise(p, size, MADV_HUGEPAGE);
	touch_memory(p, size);
}

char *xstrdup(const char *s)
{
	return check_memory(strdup(s), strlen(s) + 1);
}

char *xstrndup(const char *s, size_t length)
{
	return check_memory(strndup(s, length), length + 1);
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, fmt);
	length = vasprintf(&text, fmt, args);
	va_end(args);
	if (length < 0)
		check_memory(NULL, strlen(fmt));
	return text;
}

void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int open_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	return fd >= 0 ? fd : open("/", O_PATH | O_CLOEXEC);
}

int write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size > 0) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		p += n;
		size -= n;
	}
	return 0;
}

static void map_grow(Map *map)
{
	Map old = *map;
	size_t capacity = old.mask ? (old.mask + 1) * 2 : 64;

	map->mask = capacity - 1;
	map->keys = xmalloc(capacity * sizeof(*map->keys));
	map->values = xmalloc(capacity * sizeof(*map->values));
	memset(map->values, 0xff, capacity * sizeof(*map->values));
	for (size_t i = 0; old.mask && i <= old.mask; i++) {
		if (old.values[i] == MAP_NONE)
			continue;
		size_t slot = map_slot(map, old.keys[i]);

		map->keys[slot] = old.keys[i];
		map->values[slot] = old.values[i];
	}
	free(old.keys);
	free(old.values);
}

void map_set(Map *map, uint64_t key, uint32_t value)
{
	if (!map->mask || map->count * 3 > map->mask * 2)
		map_grow(map);
	size_t slot = map_slot(map, key);

	if (map->values[slot] == MAP_NONE)
		map->count++;
	map->keys[slot] = key;
	map->values[slot] = value;
}

void map_free(Map *map)
{
	free(map->keys);
	free(map->values);
	*map = (Map){};
}

static uint64_t hash_string(const char *s)
{
	uint64_t hash = 14695981039346656037ULL; /* FNV-1a */

	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 1099511628211ULL;
	return hash;
}

/* Searches the chain of strings with one hash. */
static uint32_t find_string(const Strings *strings, uint32_t first, const char *s)
{
	uint32_t i = first;

	while (i != MAP_NONE && strcmp(strings->list.items[i], s) != 0)
		i = strings->next.items[i];
	return i;
}

uint32_t strings_find(const Strings *strings, const char *s)
{
	return find_string(strings, map_get(&strings->index, hash_string(s)), s);
}

uint32_t strings_intern(Strings *strings, const char *s)
{
	uint64_t hash = hash_string(s);
	uint32_t first = map_get(&strings->index, hash);
	uint32_t number = find_string(strings, first, s);

	if (number != MAP_NONE)
		return number;
	number = strings->list.count;
	*vec_push(&strings->list) = xstrdup(s);
	*vec_push(&strings->next) = first;
	map_set(&strings->index, hash, number);
	return number;
}

void strings_free(Strings *strings)
{
	for (size_t i = 0; i < strings->list.count; i++)
		free(strings->list.items[i]);
	vec_free(&strings->list);
	vec_free(&strings->next);
	map_free(&strings->index);
}

uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {};

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int64_t realtime_offset_ns(void)
{
	uint64_t shortest = UINT64_MAX;
	int64_t offset = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t before = now_ns(), real = clock_ns(CLOCK_REALTIME);
		uint64_t took = now_ns() - before;

		if (took >= shortest)
			continue;
		shortest = took;
		offset = real - (before + took / 2);
	}
	return offset;
}

int parse_u64(const char *text, uint64_t *ret_value)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return -errno;
	if (*end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

struct unit {
	const char *suffix;
	double factor;
};

static int parse_with_unit(const char *text, const struct unit *units, size_t count,
			   uint64_t *ret_value)
{
	char *end;
	double value;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (const char *p = text; *p;
	     p++) /* excludes hexadecimal numbers, infinity and exponents */
		if (*p == 'x' || *p == 'X' || *p == 'e' || *p == 'E')
			return -EINVAL;
	value = strtod(text, &end);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(end, units[i].suffix))
			continue;
		value *= units[i].factor;
		if (value >= 9e18)
			return -ERANGE;
		*ret_value = value + 0.5;
		return 0;
	}
	return -EINVAL;
}

int parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{"", 1e9}, {"s", 1e9},	{"ms", 1e6},   {"us", 1e3},
		{"ns", 1}, {"m", 60e9}, {"h", 3600e9},
	};

	return parse_with_unit(text, units, ARRAY_LEN(units), ret_ns);
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{"", 1},
		{"K", 1024},
		{"M", 1024 * 1024},
		{"G", 1024 * 1024 * 1024},
	};

	return parse_with_unit(text, units, ARRAY_LEN(units), ret_bytes);
}

/* ---- remedies ----------------------------------------------------------------------- */

char *remedy_export(const char *capture_path)
{
	_cleanup_free_ char *capture = shell_word(capture_path);

	return xasprintf("wallprof export -o /other/prof.json %s", capture);
}

char *remedy_summary(const char *capture_path)
{
	_cleanup_free_ char *capture = shell_word(capture_path);

	return xasprintf("wallprof report --json %s >/other/summary.json", capture);
}

const char *remedy_other_place(int error)
{
	return strchr(error_text(error), ';') ? "" : "; choose another place with -o";
}
