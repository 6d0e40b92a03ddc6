/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sleepers.h"
#include <errno.h>
#include <string.h>

#define barrier_var(variable) ((void)(variable))
#define SCRIPT_FUNCTION	      static int

#include "script_reader.h"

/*
 * All lists are the program's, and may be circles: no thread is read for longer at once. Most take
 * less than a millisecond; on an emulated machine system calls are thirty times as slow, and on a
 * busy one the child that reads waits for a CPU some times.
 */
#define SLEEPER_NS (60 * NSEC_PER_MSEC)
/* The states of up to PYTHON_THREADS_MAX threads are read at once. */
#define LIST_NS (100 * NSEC_PER_MSEC)
/* The recorder may have been preempted while it read. */
#define SLEEPER_TRIES 3

typedef struct Sleeper {
	InterpretedImage image;
	uint64_t fs_base; /* of the thread: its pthread_self() */
	uint64_t stack;	  /* rec_stack::id of its user stack */
	uint64_t ns;	  /* when the snapshot was taken */
	uint32_t tries;	  /* how often reading it took too long */
} Sleeper;

/* What the reader's code has beside its scratch memory. */
typedef struct Reading {
	RemoteProcess *process; /* NULL: none, or it cannot be read */
	uint32_t ns_tgid;	/* its number; 0 = none */
	int open_error;		/* of that process */
	/*
	 * The threads of an image, which all rounds use that its sleepers take: thread_id -> index
	 * in states.
	 */
	InterpretedImage listed;
	uint64_t listed_ns; /* when that began */
	Map states_of;
	VEC(uint64_t) states; /* 0 = several: one for each interpreter */
	uint64_t codes_sent[PYTHON_SENT_SLOTS];
	uint64_t end_ns; /* nothing of the thread is read after that time */
	bool late;	 /* that time has come */
	RecordSink sink;
	void *user;
	int error; /* of the sink */
	struct script_scratch scratch;
} Reading;

struct Sleepers {
	const Interpreters *interpreters;
	RemoteMemory *memory;
	VEC(Sleeper) list;
	bool unsorted;
	uint64_t unread, refused;
	Reading reading;
};

/* ---- what the reader's code uses ------------------------------------------------------------- */

static Reading *reading_of(struct script_scratch *scratch)
{
	return (Reading *)((char *)scratch - offsetof(Reading, scratch));
}

static int read_memory(struct script_scratch *scratch, void *to, size_t size, uint64_t address)
{
	Reading *reading = reading_of(scratch);

	if (size == 0)
		return 0;
	reading->late |= now_ns() > reading->end_ns;
	if (reading->late)
		return -1;
	return remote_memory_read(reading->process, address, to, size) ? 0 : -1;
}

#define SCRIPT_READ(scratch, to, size, address) read_memory(scratch, to, size, address)
#define SCRIPT_LOOP(count, function, context)                                                      \
	({                                                                                         \
		for (u32 step_ = 0; step_ < (count) && !function(step_, context); step_++)         \
			;                                                                          \
	})
#define SCRIPT_SENT(scratch, slot) (&reading_of(scratch)->codes_sent[slot])

#include "python_reader.h"

/* Text that is shorter than its room, and the end of the record, would have what was there before.
 */
static void clear_rest(struct rec_script_code *code)
{
	size_t room = (sizeof(*code) + code->table_bytes + 7) & ~(size_t)7;
	uint8_t *end = (uint8_t *)code + sizeof(*code) + code->table_bytes;

	memset(code->name + code->name_bytes, 0, sizeof(code->name) - code->name_bytes);
	memset(code->path + code->path_bytes, 0, sizeof(code->path) - code->path_bytes);
	memset(end, 0, (uint8_t *)code + room - end);
	code->h.len = room;
}

static int script_emit(struct script_scratch *scratch, u32 kind)
{
	Reading *reading = reading_of(scratch);
	struct record *record =
		kind == REC_SCRIPT_CODE ? &script_code(scratch)->h : &scratch->stack.h;

	if (reading->late) /* a part of it was not read */
		return -1;
	*record = (struct record){.kind = kind, .flags = SCRIPT_SLEEPER, .ns = scratch->ns};
	record->len = sizeof(scratch->stack) + scratch->stack.count * sizeof(struct script_frame);
	if (kind == REC_SCRIPT_CODE)
		clear_rest(script_code(scratch));
	if (!reading->error)
		reading->error = reading->sink(reading->user, record);
	return reading->error;
}

/* ---- the threads --------------------------------------------------------------------------- */

Sleepers *sleepers_new(const Interpreters *interpreters, RemoteMemory *memory, RecordSink sink,
		       void *user)
{
	Sleepers *sleepers = xcalloc(1, sizeof(*sleepers));

	sleepers->interpreters = interpreters;
	sleepers->reading.sink = sink;
	sleepers->reading.user = user;
	sleepers->memory = memory;
	return sleepers;
}

void sleepers_free(Sleepers *sleepers)
{
	if (!sleepers)
		return;
	map_free(&sleepers->reading.states_of);
	vec_free(&sleepers->reading.states);
	vec_free(&sleepers->list);
	free(sleepers);
}

void sleepers_add(Sleepers *sleepers, const struct rec_stack_copy *copy)
{
	if (!copy->fs_base)
		return;
	*vec_push(&sleepers->list) = (Sleeper){
		.image = {.tgid = copy->tgid,
			  .exec_id = copy->exec_id,
			  .start_boottime = copy->start_boottime},
		.fs_base = copy->fs_base,
		.stack = copy->id,
		.ns = copy->h.ns,
	};
	sleepers->unsorted = true;
}

static void close_process(Reading *reading)
{
	remote_memory_close(reading->process);
	reading->process = NULL;
	reading->ns_tgid = 0;
}

/* Returns 0 or a negative errno: -ETIME if memory of the process is not read any more. */
static int open_process(Sleepers *sleepers, uint32_t ns_tgid)
{
	Reading *reading = &sleepers->reading;

	if (ns_tgid == 0)
		return -ESRCH;
	if (reading->ns_tgid != ns_tgid) {
		close_process(reading);
		reading->open_error =
			remote_memory_open(sleepers->memory, ns_tgid, &reading->process);
		reading->ns_tgid = ns_tgid;
	}
	return reading->open_error;
}

/* Notes a thread's state. Goes on as try_thread() does, which has read it. */
static long list_thread(u32 i, struct python_walk *walk)
{
	struct script_scratch *scratch = walk->scratch;
	Reading *reading = reading_of(scratch);
	uint64_t state = scratch->thread, id;
	uint32_t known;
	long ended = try_thread(i, walk);

	if (ended || !state)
		return ended;
	id = script_word(scratch, walk->layout->thread_id);
	known = map_get(&reading->states_of, id);
	if (known != MAP_NONE) {
		reading->states.items[known] = 0;
		return 0;
	}
	map_set(&reading->states_of, id, reading->states.count);
	*vec_push(&reading->states) = state;
	return 0;
}

static bool is_same_image(const InterpretedImage *a, const InterpretedImage *b)
{
	return a->tgid == b->tgid && a->exec_id == b->exec_id &&
	       a->start_boottime == b->start_boottime;
}

/* To search the list for each of n threads would take n * n / 2 steps. */
static void list_threads(Reading *reading, const Sleeper *sleeper,
			 const struct script_process *process)
{
	struct script_scratch *scratch = &reading->scratch;
	struct python_walk walk = {.scratch = scratch, .layout = &process->python};

	/* A thread may have begun since. */
	if (is_same_image(&reading->listed, &sleeper->image) && reading->listed_ns > sleeper->ns)
		return;
	reading->listed = sleeper->image;
	reading->listed_ns = now_ns();
	remote_memory_refresh(reading->process, reading->listed_ns);
	map_free(&reading->states_of);
	reading->states.count = 0;
	scratch->thread = 0;
	scratch->fs_base = UINT64_MAX; /* that of no thread: all are listed */
	reading->end_ns = now_ns() + LIST_NS;
	if (!read_word(scratch, &walk.interpreter, process->runtime + walk.layout->interpreters))
		SCRIPT_LOOP(PYTHON_THREADS_MAX, list_thread, &walk);
	reading->late = false; /* what is missing is not found */
	reading->end_ns = now_ns() + SLEEPER_NS;
}

/* Finds the state of the thread. Returns whether it has frames. */
static bool find_thread(Reading *reading, const Sleeper *sleeper,
			const struct script_process *process)
{
	struct script_scratch *scratch = &reading->scratch;
	struct python_walk walk = {.scratch = scratch, .layout = &process->python};
	uint32_t known;

	list_threads(reading, sleeper, process);
	scratch->fs_base = sleeper->fs_base;
	known = map_get(&reading->states_of, sleeper->fs_base);
	if (known == MAP_NONE)
		return false;
	scratch->thread = reading->states.items[known];
	if (read_thread(scratch, walk.layout))
		return has_frame(scratch, walk.layout);
	scratch->thread = scratch->frame = 0;
	return !read_word(scratch, &walk.interpreter,
			  process->runtime + walk.layout->interpreters) &&
	       search_thread(scratch, &walk);
}

/* A thread without frames, and one of which they cannot be read, stays as it is. */
static void read_python(Reading *reading, const Sleeper *sleeper,
			const struct script_process *process)
{
	struct script_scratch *scratch = &reading->scratch;

	if (!find_thread(reading, sleeper, process))
		return;
	read_frames(scratch, process);
	if (scratch->stack.count == 0 || reading->late)
		return;
	/* If the thread has slept until now, these were its frames. */
	scratch->ns = now_ns();
	python_describe(scratch, process);
	scratch->stack.id = sleeper->stack;
	script_emit(scratch, REC_SCRIPT_STACK);
}

static void read_sleeper(Reading *reading, const Sleeper *sleeper,
			 const struct script_process *process)
{
	struct script_scratch *scratch = &reading->scratch;

	reading->late = false;
	reading->end_ns = now_ns() + SLEEPER_NS;
	/* Pages that were read before it slept may have changed. */
	remote_memory_refresh(reading->process, sleeper->ns);
	/* As in BPF: the ids of code are made from it. */
	scratch->seed = (uint64_t)sleeper->image.tgid << 32 ^ sleeper->image.exec_id;
	scratch->stack.tgid = sleeper->image.tgid;
	scratch->stack.language = process->language;
	if (process->language == SCRIPT_PYTHON)
		read_python(reading, sleeper, process);
}

/* Threads of one process come one after the other. */
static int compare_sleepers(const void *a, const void *b)
{
	const Sleeper *x = a, *y = b;

	if (x->image.tgid != y->image.tgid)
		return x->image.tgid > y->image.tgid ? 1 : -1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* Returns whether the sleeper is to be kept for the next round. */
static bool consider(Sleepers *sleepers, Sleeper *sleeper, uint64_t deadline_ns)
{
	const struct script_process *process =
		interpreters_process(sleepers->interpreters, &sleeper->image);
	uint64_t now = now_ns();
	bool may_wait = now < sleeper->ns + SLEEPERS_KEPT_NS;

	if (!process)
		return may_wait;
	if (now < deadline_ns) {
		int r = open_process(sleepers, interpreters_ns_tgid(sleepers->interpreters,
								    sleeper->image.tgid));

		if (r == 0) {
			read_sleeper(&sleepers->reading, sleeper, process);
			if (remote_memory_is_refused(sleepers->reading.process))
				r = -ETIME;
		}
		sleepers->refused += r == -ETIME;
		if (r < 0 || !sleepers->reading.late)
			return false;
		may_wait &= ++sleeper->tries < SLEEPER_TRIES;
	}
	sleepers->unread += !may_wait;
	return may_wait;
}

/* They are in the order of their times, unless a round has sorted them. */
static void drop_old(Sleepers *sleepers)
{
	uint64_t now = now_ns();
	size_t old = 0;

	while (old < sleepers->list.count && sleepers->list.items[old].ns + SLEEPERS_KEPT_NS <= now)
		old++;
	if (old == 0)
		return;
	sleepers->list.count -= old;
	memmove(sleepers->list.items, sleepers->list.items + old,
		sleepers->list.count * sizeof(Sleeper));
}

int sleepers_read(Sleepers *sleepers, uint64_t deadline_ns)
{
	Reading *reading = &sleepers->reading;
	size_t kept = 0;

	/* Most systems have thousands of threads that sleep. */
	if (!interpreters_any(sleepers->interpreters)) {
		drop_old(sleepers);
		return 0;
	}
	if (sleepers->unsorted && sleepers->list.count > 1)
		qsort(sleepers->list.items, sleepers->list.count, sizeof(Sleeper),
		      compare_sleepers);
	sleepers->unsorted = false;
	for (size_t i = 0; i < sleepers->list.count; i++)
		if (consider(sleepers, &sleepers->list.items[i], deadline_ns))
			sleepers->list.items[kept++] = sleepers->list.items[i];
	sleepers->list.count = kept;
	close_process(reading); /* it may end, and another have its number */
	return reading->error;
}

uint64_t sleepers_unread(const Sleepers *sleepers)
{
	uint64_t unread = sleepers->unread;

	for (size_t i = 0; i < sleepers->list.count; i++)
		unread += interpreters_process(sleepers->interpreters,
					       &sleepers->list.items[i].image) != NULL;
	return unread;
}

uint64_t sleepers_refused(const Sleepers *sleepers)
{
	return sleepers->refused;
}
