/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses and file offsets are the same, but for the address of the reserved range. The range is
 * divided into classes of regions: an array has one region, and moves to one of the next class, 16
 * times as large, when it outgrows it. Only the part of a region that the array uses takes space in
 * the file. Blocks of larger regions are larger: many small arrays that grow side by side need a
 * block each in memory.
 *
 * The kernel counts a reserved range as address space. So under a limit (RLIMIT_AS) the range and
 * its classes are divided by a power of two; a class that is then smaller than a region has none.
 */
#include "spill.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SMALLEST (64u << 10) /* smaller arrays are counted, but stay in the heap */
/* So much may be dirty, however large the arrays are that are still in the heap. */
#define DIRTY_MIN (16u << 20)
#define ZEROES	  (256u << 10)
/* The pages of larger arrays in the heap are provided when the array grows, many at a time. */
#define TOUCHED_MIN (1u << 20)
/*
 * So many arrays are in the file at most. Each takes up to three mappings, and each dirty block up
 * to two, and a process may have 65,530 (vm.max_map_count).
 */
#define REGIONS_MAX 6000

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

enum block_state {
	BLOCK_FRESH = 0, /* not written yet: neither in memory nor in the file */
	BLOCK_DIRTY,	 /* in anonymous memory */
	BLOCK_CLEAN,	 /* in the file, mapped read-only */
};

typedef struct Class {
	uint64_t region, block; /* sizes in bytes, powers of two */
	uint64_t begin, end;	/* of the class in the range */
} Class;

static const Class full_classes[] = {
	{.region = MIB, .block = 16 << 10, .begin = 0, .end = 64 * GIB},
	{.region = 16 * MIB, .block = 64 << 10, .begin = 64 * GIB, .end = 320 * GIB},
	{.region = 256 * MIB, .block = MIB, .begin = 320 * GIB, .end = 576 * GIB},
	{.region = 4 * GIB, .block = MIB, .begin = 576 * GIB, .end = 1088 * GIB},
	{.region = 64 * GIB, .block = MIB, .begin = 1088 * GIB, .end = 1600 * GIB},
};
#define CLASSES	   ARRAY_LEN(full_classes)
#define FULL_RANGE (1600 * GIB)
/* A smaller range has no room for the large arrays: it is 6.25 GiB. */
#define SHIFT_MAX 8

/* Those of this range, full_classes >> spill.shift. */
static Class classes[CLASSES];

/* Kept by malloc(): these lists must not lie in the file themselves. */
typedef struct Offsets {
	uint64_t *items;
	size_t count, capacity;
} Offsets;

static struct {
	bool active, paused;
	int fd;
	char *folder, *remedy;
	uint8_t *range;
	uint64_t range_size;	  /* FULL_RANGE >> shift */
	uint8_t *states[CLASSES]; /* enum block_state of each block */
	uint64_t bump[CLASSES];	  /* where no region of the class has been yet */
	Offsets unused[CLASSES];  /* regions that were freed */
	size_t regions;		  /* that have an array */
	/* Dirty blocks, oldest first; a block that is not dirty any more is skipped. */
	Offsets dirty;
	size_t dirty_first;
	uint64_t dirty_bytes, heap_bytes, memory_max;
	uint64_t dirty_max; /* for more there was no memory */
	uint64_t file_bytes, file_peak;
	struct sigaction action_before;
} spill = {.fd = -1};

static void offsets_push(Offsets *offsets, uint64_t offset)
{
	if (offsets->count == offsets->capacity) {
		offsets->capacity = MAX(offsets->capacity * 2, (size_t)64);
		offsets->items =
			xrealloc(offsets->items, offsets->capacity * sizeof(*offsets->items));
	}
	offsets->items[offsets->count++] = offset;
}

static bool is_in_file(const void *items)
{
	return spill.range && (const uint8_t *)items >= spill.range &&
	       (const uint8_t *)items < spill.range + spill.range_size;
}

static size_t class_at(uint64_t offset)
{
	size_t class = 0;

	while (offset >= classes[class].end)
		class ++;
	return class;
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) & -unit;
}

static uint8_t *state_at(size_t class, uint64_t offset)
{
	return &spill.states[class][(offset - classes[class].begin) / classes[class].block];
}

static void __attribute__((noreturn)) fail(const char *what, int error)
{
	const char *text = error_text(error);

	/* A limit of the process has a remedy of its own. */
	log_error("%s temporary files in %s failed: %s%s", what, spill.folder, text,
		  strchr(text, ';') ? "" : spill.remedy);
	util_exit_failed();
}

/* ---- blocks ------------------------------------------------------------------------------- */

static void map_file(uint64_t offset, uint64_t size)
{
	if (mmap(spill.range + offset, size, PROT_READ, MAP_SHARED | MAP_FIXED, spill.fd, offset) ==
	    MAP_FAILED)
		fail("mapping", -errno);
}

static bool map_memory(uint64_t offset, uint64_t size)
{
	return mmap(spill.range + offset, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void map_nothing(uint64_t offset, uint64_t size)
{
	if (mmap(spill.range + offset, size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		fail("freeing", -errno);
}

static void write_block(size_t class, uint64_t offset)
{
	uint64_t done = 0, size = classes[class].block;

	while (done < size) {
		ssize_t n =
			pwrite(spill.fd, spill.range + offset + done, size - done, offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("writing", n < 0 ? -errno : -EIO);
		done += n;
	}
	map_file(offset, size);
	*state_at(class, offset) = BLOCK_CLEAN;
	spill.dirty_bytes -= size;
}

static void write_oldest(void)
{
	uint64_t offset = spill.dirty.items[spill.dirty_first++];
	size_t class = class_at(offset);

	if (*state_at(class, offset) == BLOCK_DIRTY)
		write_block(class, offset);
	/* The list is a queue: its items move to the front when half of it is behind them. */
	if (spill.dirty_first * 2 > spill.dirty.capacity) {
		spill.dirty.count -= spill.dirty_first;
		memmove(spill.dirty.items, spill.dirty.items + spill.dirty_first,
			spill.dirty.count * sizeof(*spill.dirty.items));
		spill.dirty_first = 0;
	}
}

static void make_room(uint64_t size)
{
	uint64_t heap = MIN(spill.heap_bytes, spill.memory_max);
	uint64_t most = MIN(MAX(spill.memory_max - heap, (uint64_t)DIRTY_MIN), spill.dirty_max);

	while (spill.dirty_first < spill.dirty.count && spill.dirty_bytes + size > most)
		write_oldest();
}

/*
 * What else the process needs of a limit is not known before. If a block finds no memory, others
 * are written, a quarter of them at a time, and there are never as many again.
 */
static void map_memory_surely(uint64_t offset, uint64_t size)
{
	while (!map_memory(offset, size)) {
		uint64_t most = spill.dirty_bytes / 4 * 3;

		if (errno != ENOMEM || spill.dirty_first == spill.dirty.count)
			fail("reading", -errno);
		while (spill.dirty_first < spill.dirty.count && spill.dirty_bytes > most)
			write_oldest();
		spill.dirty_max = MIN(spill.dirty_max, spill.dirty_bytes);
	}
}

static void read_block(uint64_t offset, uint64_t size)
{
	uint64_t done = 0;

	while (done < size) {
		ssize_t n =
			pread(spill.fd, spill.range + offset + done, size - done, offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("reading", n < 0 ? -errno : -EIO);
		done += n;
	}
}

/* Makes the block at offset writable. */
static void make_dirty(size_t class, uint64_t offset)
{
	uint64_t size = classes[class].block;
	uint8_t *state = state_at(class, offset);

	make_room(size);
	map_memory_surely(offset, size);
	/* One call instead of a fault for each page. */
	madvise(spill.range + offset, size, MADV_POPULATE_WRITE);
	if (*state == BLOCK_CLEAN)
		read_block(offset, size);
	*state = BLOCK_DIRTY;
	spill.dirty_bytes += size;
	offsets_push(&spill.dirty, offset);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	int error = errno;
	uint64_t offset = (uint8_t *)info->si_addr - spill.range;
	size_t class;

	(void)number;
	(void)context;
	if (is_in_file(info->si_addr)) {
		class = class_at(offset);
		offset &= -classes[class].block;
		if (*state_at(class, offset) != BLOCK_DIRTY) {
			make_dirty(class, offset);
			errno = error;
			return;
		}
	}
	/* Another fault: it is repeated, and then what was before handles it. */
	sigaction(SIGSEGV, &spill.action_before, NULL);
}

/* ---- space in the file ---------------------------------------------------------------------- */

/* This is for file systems without fallocate(2). */
static int write_zeroes(uint64_t offset, uint64_t size)
{
	_cleanup_free_ char *zeroes = xcalloc(1, ZEROES);

	while (size > 0) {
		ssize_t n = pwrite(spill.fd, zeroes, MIN(size, (uint64_t)ZEROES), offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		offset += n;
		size -= n;
	}
	return 0;
}

static int allocate(uint64_t offset, uint64_t size)
{
	int error;

	do
		error = fallocate(spill.fd, 0, offset, size) ? -errno : 0;
	while (error == -EINTR);
	if (error == -EOPNOTSUPP)
		error = write_zeroes(offset, size);
	if (error)
		return error;
	spill.file_bytes += size;
	spill.file_peak = MAX(spill.file_peak, spill.file_bytes);
	return 0;
}

/* Blocks that lie in a part of a region that is not used any more are not written. */
static void forget(size_t class, uint64_t offset, uint64_t size)
{
	uint64_t block = classes[class].block;

	for (uint64_t at = offset; at < offset + size; at += block) {
		uint8_t *state = state_at(class, at);

		if (*state == BLOCK_DIRTY)
			spill.dirty_bytes -= block;
		*state = BLOCK_FRESH;
	}
	map_nothing(offset, size);
	/* If the file system cannot do it, a later array may use the space. */
	if (!fallocate(spill.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size))
		spill.file_bytes -= size;
}

static bool find_region(size_t size, size_t *ret_class, uint64_t *ret_offset)
{
	size_t class = 0;

	while (class < CLASSES && size > classes[class].region)
		class ++;
	if (class == CLASSES)
		return false;
	*ret_class = class;
	if (spill.unused[class].count > 0) {
		*ret_offset = spill.unused[class].items[--spill.unused[class].count];
		return true;
	}
	if (spill.bump[class] + classes[class].region > classes[class].end)
		return false;
	*ret_offset = spill.bump[class];
	spill.bump[class] += classes[class].region;
	return true;
}

/*
 * Returns NULL if it must be in the heap: there is no region of that size, no such offset, or there
 * are too many arrays.
 */
static void *new_array(size_t size)
{
	uint64_t offset;
	size_t class;
	int error;

	if (spill.regions >= REGIONS_MAX || !find_region(size, &class, &offset))
		return NULL;
	error = allocate(offset, round_up(size, classes[class].block));
	if (error == -EFBIG) {
		offsets_push(&spill.unused[class], offset);
		return NULL;
	}
	if (error)
		fail("writing", error);
	spill.regions++;
	return spill.range + offset;
}

static void free_array(void *items, size_t size)
{
	uint64_t offset = (uint8_t *)items - spill.range;
	size_t class = class_at(offset);

	forget(class, offset, round_up(size, classes[class].block));
	offsets_push(&spill.unused[class], offset);
	spill.regions--;
}

/* Changes the size within the region. Returns false if the array does not fit there. */
static bool resize_in_place(void *items, size_t old_size, size_t new_size)
{
	uint64_t offset = (uint8_t *)items - spill.range;
	const Class *class = &classes[class_at(offset)];
	uint64_t old_end = round_up(old_size, class->block);
	uint64_t new_end = round_up(new_size, class->block);
	int error = 0;

	if (new_size > class->region)
		return false;
	if (new_end > old_end)
		error = allocate(offset + old_end, new_end - old_end);
	else if (new_end < old_end)
		forget(class - classes, offset + new_end, old_end - new_end);
	if (error == -EFBIG)
		return false;
	if (error)
		fail("writing", error);
	return true;
}

/* ---- arrays -------------------------------------------------------------------------------- */

static void count_heap(size_t old_size, size_t new_size)
{
	spill.heap_bytes -= MIN(spill.heap_bytes, (uint64_t)old_size);
	spill.heap_bytes += new_size;
}

static void release_array(void *items, size_t size)
{
	/* The array was moved to another owner, which still counts. */
	if (!items)
		return;
	if (is_in_file(items)) {
		free_array(items, size);
		return;
	}
	count_heap(size, 0);
	free(items);
}

static void *move(void *items, size_t old_size, void *to, size_t new_size)
{
	memcpy(to, items, MIN(old_size, new_size));
	release_array(items, old_size);
	return to;
}

static void *resize_array(void *items, size_t old_size, size_t new_size)
{
	bool in_file = is_in_file(items);
	void *to;

	if (in_file && !spill.paused && resize_in_place(items, old_size, new_size))
		return items;
	if (!spill.paused && new_size >= SMALLEST && new_size > old_size &&
	    (in_file || spill.heap_bytes + spill.dirty_bytes + new_size > spill.memory_max)) {
		to = new_array(new_size);
		if (to && items)
			return move(items, old_size, to, new_size);
		if (to)
			return to;
	}
	if (in_file) {
		count_heap(0, new_size);
		return move(items, old_size, xmalloc(new_size), new_size);
	}
	count_heap(old_size, new_size);
	items = xrealloc(items, new_size);
	if (new_size >= TOUCHED_MIN && new_size > old_size)
		touch_memory((uint8_t *)items + old_size, new_size - old_size);
	return items;
}

static const VecMemory array_memory = {.resize = resize_array, .free = release_array};

/* ---- the file ------------------------------------------------------------------------------- */

/* The file is the parent's. What the child writes stays in its memory. */
static void on_fork(void)
{
	spill.paused = true;
	spill.memory_max = UINT64_MAX;
}

static uint8_t *reserve(uint64_t size)
{
	void *range =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return range == MAP_FAILED ? NULL : range;
}

static uint64_t states_size(const Class *class)
{
	return (class->end - class->begin) / class->block;
}

/* Half of the address space that is allowed is left for everything else. */
static uint8_t *reserve_range(void)
{
	uint64_t allowed = UINT64_MAX;
	struct rlimit limit;
	uint8_t *range = NULL;

	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		allowed = limit.rlim_cur / 2;
	for (int shift = 0; shift <= SHIFT_MAX && !range; shift++) {
		spill.range_size = FULL_RANGE >> shift;
		if (spill.range_size <= allowed)
			range = reserve(spill.range_size);
		for (size_t i = 0; i < CLASSES; i++) {
			classes[i] = full_classes[i];
			classes[i].begin >>= shift;
			classes[i].end >>= shift;
		}
	}
	if (!range)
		errno = ENOMEM;
	return range;
}

static bool reserve_all(void)
{
	spill.range = reserve_range();
	if (!spill.range)
		return false;
	for (size_t i = 0; i < CLASSES; i++) {
		/* Never touched where there is no region, so that it takes no memory. */
		spill.states[i] = reserve(states_size(&classes[i]));
		if (!spill.states[i] ||
		    mprotect(spill.states[i], states_size(&classes[i]), PROT_READ | PROT_WRITE))
			return false;
		spill.bump[i] = classes[i].begin;
	}
	return true;
}

static void release_all(void)
{
	if (spill.range)
		munmap(spill.range, spill.range_size);
	for (size_t i = 0; i < CLASSES; i++) {
		if (spill.states[i])
			munmap(spill.states[i], states_size(&classes[i]));
		free(spill.unused[i].items);
	}
	free(spill.dirty.items);
	free(spill.folder);
	free(spill.remedy);
	closep(&spill.fd);
}

int spill_begin(int fd, const char *folder, const char *remedy, size_t memory_max)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
	static bool has_fork_handler;

	memset(&spill, 0, sizeof(spill));
	spill.fd = fd;
	spill.folder = xstrdup(folder);
	spill.remedy = xstrdup(remedy);
	spill.memory_max = memory_max;
	spill.dirty_max = UINT64_MAX;
	/* A handler cannot be taken back. */
	if (!has_fork_handler && pthread_atfork(NULL, NULL, on_fork)) {
		release_all();
		return -ENOMEM;
	}
	has_fork_handler = true;
	if (!reserve_all() || sigaction(SIGSEGV, &action, &spill.action_before)) {
		int error = -errno;

		release_all();
		memset(&spill, 0, sizeof(spill));
		spill.fd = -1;
		return error;
	}
	util_set_vec_memory(&array_memory);
	spill.active = true;
	return 0;
}

void spill_end(void)
{
	if (!spill.active)
		return;
	util_set_vec_memory(NULL);
	sigaction(SIGSEGV, &spill.action_before, NULL);
	release_all();
	memset(&spill, 0, sizeof(spill));
	spill.fd = -1;
}

void spill_pause(void)
{
	spill.paused = true;
}

void spill_resume(void)
{
	spill.paused = false;
}

uint64_t spill_peak(void)
{
	return spill.file_peak;
}
