/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_memory.h"
#include "bpf_options.h"
#include "deferred_free.h"
#include "util.h"
#include "walk_user.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BYTES (CHUNK_CELLS * sizeof(union unwind_cell))

/* Tables leave one part in so many free: without its mappings a process has no stacks at all. */
#define RUNS_SHARE 16

/* Numbers of the rules that are always there. */
#define RULE_GAP     0u
#define RULE_NO_ROOM 1u

/* Free cells, in a list sorted by index; no two holes touch. */
typedef struct Hole {
	uint32_t first, count;
} Hole;

struct TableMemory {
	int chunks_fd, rules_fd;
	union unwind_cell *cells; /* room for chunk_limit of them, mapped up to chunk_count */
	uint32_t chunk_count, chunk_limit;
	VEC(Hole) holes;
	uint32_t cells_used;
	uint64_t runs;	   /* how many there have been */
	uint32_t tables;   /* how many there have been */
	uint64_t *epoch;   /* removals are counted there; may be NULL */
	UnwindRules rules; /* in the memory of the BPF map, which has room for RULES_MAX */
	UnwindRuleIndex rule_index;
	uint64_t rows_without_rule;
	VEC(uint32_t) renumbered; /* the rule numbers of the table that is being added */
	pthread_t first_chunk;
	bool first_chunk_pending;
	int first_chunk_error;
};

/* ---- chunks -------------------------------------------------------------------------- */

static int new_chunk(void)
{
	BPF_OPTIONS(bpf_map_create_opts, options);
	int fd;

	options.map_flags = BPF_F_MMAPABLE;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(uint32_t),
			    sizeof(union unwind_cell), CHUNK_CELLS, &options);
	return fd < 0 ? -errno : fd;
}

/* Maps chunk number chunk_count behind the others, for the recorder; its cells are free then. */
static int map_chunk(TableMemory *memory, int fd)
{
	union unwind_cell *address = memory->cells + (size_t)memory->chunk_count * CHUNK_CELLS;
	Hole *last = memory->holes.count ? &memory->holes.items[memory->holes.count - 1] : NULL;
	uint32_t first = memory->chunk_count * CHUNK_CELLS;

	if (mmap(address, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return -errno;
	if (last && last->first + last->count == first)
		last->count += CHUNK_CELLS;
	else
		*vec_push(&memory->holes) = (Hole){.first = first, .count = CHUNK_CELLS};
	memory->chunk_count++;
	return 0;
}

/* Makes the chunk visible to the BPF programs: this is the slow part. */
static int show_chunk(const TableMemory *memory, uint32_t number, int fd)
{
	return bpf_map_update_elem(memory->chunks_fd, &number, &fd, BPF_ANY) ? -errno : 0;
}

static int add_chunk(TableMemory *memory)
{
	_cleanup_close_ int fd = -1;
	int error;

	fd = new_chunk();
	if (fd < 0)
		return fd;
	error = show_chunk(memory, memory->chunk_count, fd);
	return error ? error : map_chunk(memory, fd);
}

typedef struct FirstChunk {
	TableMemory *memory;
	int fd;
} FirstChunk;

static void *show_first_chunk(void *argument)
{
	FirstChunk *first = argument;

	first->memory->first_chunk_error = show_chunk(first->memory, 0, first->fd);
	close(first->fd);
	free(first);
	return NULL;
}

/* Runs while the programs are loaded, which takes as long. */
static int start_first_chunk(TableMemory *memory, int fd)
{
	FirstChunk *first = xcalloc(1, sizeof(*first));
	int error;

	*first = (FirstChunk){.memory = memory, .fd = fd};
	error = pthread_create(&memory->first_chunk, NULL, show_first_chunk, first);
	if (error) {
		close(fd);
		free(first);
		return -error;
	}
	memory->first_chunk_pending = true;
	return 0;
}

int table_memory_ready(TableMemory *memory)
{
	if (memory->first_chunk_pending)
		pthread_join(memory->first_chunk, NULL);
	memory->first_chunk_pending = false;
	return memory->first_chunk_error;
}

/* ---- rules ---------------------------------------------------------------------------- */

/* Returns the number of a rule, which is added if there is room. */
static uint32_t intern_rule(TableMemory *memory, const struct unwind_rule *rule)
{
	uint32_t number =
		unwind_rule_number(&memory->rule_index, unwind_rule_words(rule), RULES_MAX);

	return number == UINT32_MAX ? RULE_NO_ROOM : number;
}

static int open_rules(TableMemory *memory)
{
	BPF_OPTIONS(bpf_map_create_opts, options);
	struct unwind_rule gap = {.cfa = CFA_NONE, .extra = NONE_GAP};
	struct unwind_rule no_room = {.cfa = CFA_NONE, .extra = NONE_TOO_MANY_RULES};
	void *rules;

	options.map_flags = BPF_F_MMAPABLE;
	memory->rules_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rules", sizeof(uint32_t),
					  sizeof(struct unwind_rule), RULES_MAX, &options);
	if (memory->rules_fd < 0)
		return -errno;
	rules = mmap(NULL, RULES_MAX * sizeof(struct unwind_rule), PROT_READ | PROT_WRITE,
		     MAP_SHARED, memory->rules_fd, 0);
	if (rules == MAP_FAILED)
		return -errno;
	memory->rules.items = rules;
	memory->rules.capacity = RULES_MAX;
	memory->rule_index.rules = &memory->rules;
	intern_rule(memory, &gap);
	intern_rule(memory, &no_room);
	return 0;
}

/* ---- all of it -------------------------------------------------------------------------- */

static int open_chunks(TableMemory *memory)
{
	BPF_OPTIONS(bpf_map_create_opts, options);
	_cleanup_close_ int fd = new_chunk();
	void *room;
	int error;

	if (fd < 0)
		return fd;
	options.inner_map_fd = fd;
	memory->chunks_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "chunks", sizeof(uint32_t),
					   sizeof(uint32_t), CHUNKS_MAX, &options);
	if (memory->chunks_fd < 0)
		return -errno;
	/* This reserves only addresses; chunks are mapped into them later. */
	room = mmap(NULL, (size_t)memory->chunk_limit * CHUNK_BYTES, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return -errno;
	memory->cells = room;
	error = map_chunk(memory, fd);
	return error ? error : start_first_chunk(memory, take_fd(fd));
}

int table_memory_new(uint64_t size, TableMemory **ret_memory)
{
	TableMemory *memory = xcalloc(1, sizeof(*memory));
	int error;

	memory->chunks_fd = memory->rules_fd = -1;
	memory->chunk_limit = MAX(MIN(size / CHUNK_BYTES, CHUNKS_MAX), 1);
	error = open_chunks(memory);
	if (!error)
		error = open_rules(memory);
	if (error) {
		table_memory_free(memory, /* in_turn= */ false);
		return error;
	}
	*ret_memory = memory;
	return 0;
}

void table_memory_set_epoch(TableMemory *memory, uint64_t *epoch)
{
	memory->epoch = epoch;
}

void table_memory_free(TableMemory *memory, bool in_turn)
{
	if (!memory)
		return;
	table_memory_ready(memory);
	if (memory->cells)
		munmap(memory->cells, (size_t)memory->chunk_limit * CHUNK_BYTES);
	for (uint32_t i = 0; in_turn && i < memory->chunk_count; i++) {
		if (bpf_map_delete_elem(memory->chunks_fd, &i))
			log_verbose("freeing chunk %u alone failed: %s", i, strerror(errno));
		else
			deferred_free_pause(CHUNK_BYTES);
	}
	if (memory->rules.items)
		munmap(memory->rules.items, RULES_MAX * sizeof(struct unwind_rule));
	closep(&memory->chunks_fd);
	closep(&memory->rules_fd);
	vec_free(&memory->holes);
	vec_free(&memory->renumbered);
	unwind_rule_index_free(&memory->rule_index);
	free(memory);
}

int table_memory_chunks_fd(const TableMemory *memory)
{
	return memory->chunks_fd;
}

int table_memory_rules_fd(const TableMemory *memory)
{
	return memory->rules_fd;
}

/* ---- cells ------------------------------------------------------------------------------ */

static bool allocate_hole(TableMemory *memory, uint32_t count, uint32_t *ret_first)
{
	for (size_t i = 0; i < memory->holes.count; i++) {
		Hole *hole = &memory->holes.items[i];

		if (hole->count < count)
			continue;
		*ret_first = hole->first;
		hole->first += count;
		hole->count -= count;
		if (hole->count == 0) {
			memmove(hole, hole + 1, (memory->holes.count - i - 1) * sizeof(*hole));
			memory->holes.count--;
		}
		memory->cells_used += count;
		return true;
	}
	return false;
}

/* Returns whether all chunks that are allowed would give enough cells in one piece. */
static bool has_room(const TableMemory *memory, uint32_t count)
{
	uint32_t end = memory->chunk_count * CHUNK_CELLS;
	uint32_t at_end = (memory->chunk_limit - memory->chunk_count) * CHUNK_CELLS;
	const Hole *last =
		memory->holes.count ? &memory->holes.items[memory->holes.count - 1] : NULL;

	if (last && last->first + last->count == end)
		at_end += last->count;
	return at_end >= count;
}

static int allocate(TableMemory *memory, uint32_t count, uint32_t *ret_first)
{
	while (!allocate_hole(memory, count, ret_first)) {
		/* A chunk that is not enough is not added: each takes up to 20 ms and 8 MB. */
		int error = has_room(memory, count) ? add_chunk(memory) : -ENOSPC;

		if (error)
			return error;
	}
	return 0;
}

/* Joins a hole and the next one if they touch. */
static void join_holes(TableMemory *memory, size_t i)
{
	Hole *hole = &memory->holes.items[i];

	if (i + 1 >= memory->holes.count || hole->first + hole->count != hole[1].first)
		return;
	hole->count += hole[1].count;
	memmove(hole + 1, hole + 2, (memory->holes.count - i - 2) * sizeof(*hole));
	memory->holes.count--;
}

static void release(TableMemory *memory, uint32_t first, uint32_t count)
{
	size_t i = 0;
	Hole *hole;

	while (i < memory->holes.count && memory->holes.items[i].first < first)
		i++;
	vec_push(&memory->holes);
	hole = &memory->holes.items[i];
	memmove(hole + 1, hole, (memory->holes.count - i - 1) * sizeof(*hole));
	*hole = (Hole){.first = first, .count = count};
	memory->cells_used -= count;
	join_holes(memory, i);
	if (i > 0)
		join_holes(memory, i - 1);
}

/* ---- tables and runs ---------------------------------------------------------------------- */

/* Publishes what lies behind the head to the programs. */
static void set_mark(TableMemory *memory, uint32_t cell, uint64_t mark, uint32_t count)
{
	struct unwind_head *head = &memory->cells[cell].head;

	head->count = count;
	__atomic_store_n(&head->cookie, mark, __ATOMIC_RELEASE);
}

/* The old content must be seen as gone before any of it is overwritten. */
static void release_marked(TableMemory *memory, uint32_t cell, uint64_t mark, uint64_t cells)
{
	struct unwind_head *head = &memory->cells[cell].head;

	if (head->cookie != mark) /* it is gone already */
		return;
	__atomic_store_n(&head->cookie, 0, __ATOMIC_RELAXED);
	if (memory->epoch)
		__atomic_store_n(memory->epoch, *memory->epoch + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	release(memory, cell, cells);
}

uint64_t table_memory_cells(size_t rows)
{
	return 1 + (rows + CELL_ROWS - 1) / CELL_ROWS;
}

uint64_t table_memory_spare(const TableMemory *memory)
{
	uint64_t limit = (uint64_t)memory->chunk_limit * CHUNK_CELLS, used = memory->cells_used;

	limit -= limit / RUNS_SHARE;
	return limit - MIN(limit, used);
}

int table_memory_add_table(TableMemory *memory, const UnwindTable *table, TableHandle *ret_handle)
{
	struct unwind_row *rows;
	uint32_t cell;
	int error;

	if (table_memory_cells(table->rows.count) > table_memory_spare(memory))
		return -ENOSPC;
	error = allocate(memory, table_memory_cells(table->rows.count), &cell);
	if (error)
		return error;
	memory->renumbered.count = 0;
	for (size_t i = 0; i < table->rules.count; i++)
		*vec_push(&memory->renumbered) = intern_rule(memory, &table->rules.items[i]);
	rows = memory->cells[cell + 1].rows;
	for (size_t i = 0; i < table->rows.count; i++) {
		uint32_t rule = memory->renumbered.items[table->rows.items[i].rule];

		rows[i] = (struct unwind_row){.pc = table->rows.items[i].pc, .rule = rule};
		memory->rows_without_rule += rule == RULE_NO_ROOM;
	}
	*ret_handle = (TableHandle){.row = (cell + 1) * CELL_ROWS, .table = ++memory->tables};
	set_mark(memory, cell, TABLE_COOKIE | ret_handle->table, table->rows.count);
	return 0;
}

void table_memory_remove_table(TableMemory *memory, TableHandle handle)
{
	uint32_t cell = handle.row / CELL_ROWS - 1;

	if (!handle.table) /* it has no table */
		return;
	release_marked(memory, cell, TABLE_COOKIE | handle.table,
		       table_memory_cells(memory->cells[cell].head.count));
}

int table_memory_add_run(TableMemory *memory, const struct unwind_mapping *mappings, uint32_t count,
			 RunHandle *ret_handle)
{
	uint32_t cell;
	int error = count < UINT32_MAX ? allocate(memory, count + 1, &cell) : -ENOSPC;

	if (error)
		return error;
	for (uint32_t i = 0; i < count; i++)
		memory->cells[cell + 1 + i].mapping = mappings[i];
	*ret_handle = (RunHandle){.cell = cell, .mark = LIST_COOKIE | memory->runs++};
	set_mark(memory, cell, ret_handle->mark, count);
	return 0;
}

void table_memory_remove_run(TableMemory *memory, RunHandle handle)
{
	if (!handle.mark)
		return;
	release_marked(memory, handle.cell, handle.mark,
		       1 + (uint64_t)memory->cells[handle.cell].head.count);
}

bool table_memory_find_rule(const TableMemory *memory, const struct unwind_mapping *mapping,
			    uint32_t pc, struct unwind_rule *ret_rule)
{
	const struct unwind_row *rows = memory->cells[0].rows;
	uint64_t limit = (uint64_t)memory->chunk_count * CHUNK_CELLS * CELL_ROWS;
	const struct unwind_head *head;

	if (mapping->table == 0 || mapping->row < CELL_ROWS || mapping->row >= limit)
		return false;
	head = &memory->cells[mapping->row / CELL_ROWS - 1].head;
	if (head->cookie != (TABLE_COOKIE | mapping->table))
		return false;
	*ret_rule =
		memory->rules.items[walk_user_search(rows + mapping->row, head->count, pc)->rule];
	return true;
}

TableMemoryCounts table_memory_counts(const TableMemory *memory)
{
	return (TableMemoryCounts){
		.cells_used = memory->cells_used,
		.cells = (uint64_t)memory->chunk_count * CHUNK_CELLS,
		.chunks = memory->chunk_count - 1,
		.rules = memory->rules.count,
		.rows_without_rule = memory->rows_without_rule,
	};
}
