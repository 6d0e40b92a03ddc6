/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sleepers.h"
#include "jit_memory.h"

#define barrier_var(variable) ((void)(variable))
#define SCRIPT_FUNCTION	      static int

#include "script_reader.h"

typedef struct Sleeper {
	InterpretedImage image;
	uint64_t fs_base; /* of the thread: its pthread_self() */
	uint64_t stack;	  /* rec_stack::id of its user stack */
	uint64_t ns;	  /* when the snapshot was taken */
} Sleeper;

/* What the reader's code has beside its scratch memory. */
typedef struct Reading {
	struct script_scratch scratch; /* the first member: reading_of() */
	JitMemoryReader memory;
	uint32_t ns_tgid; /* whose memory that is; 0 = nobody's */
	/*
	 * The threads of the process that was read last, which is so in all rounds that many
	 * sleepers of one process take: thread_id -> index in states.
	 */
	uint32_t listed_tgid;
	Map states_of;
	VEC(uint64_t) states; /* 0 = several: one for each interpreter */
	uint64_t codes_sent[PYTHON_SENT_SLOTS];
	RecordSink sink;
	void *user;
	int error; /* of the sink */
} Reading;

struct Sleepers {
	const Interpreters *interpreters;
	VEC(Sleeper) list;
	Reading reading;
};

/* ---- what the reader's code uses ------------------------------------------------------------- */

static Reading *reading_of(struct script_scratch *scratch)
{
	return (Reading *)scratch;
}

static int read_memory(struct script_scratch *scratch, void *to, size_t size, uint64_t address)
{
	if (size == 0)
		return 0;
	return jit_memory_read(&reading_of(scratch)->memory, address, to, size) ? 0 : -1;
}

#define SCRIPT_READ(scratch, to, size, address) read_memory(scratch, to, size, address)
#define SCRIPT_LOOP(count, function, context)                                                      \
	({                                                                                         \
		for (u32 step_ = 0; step_ < (count) && !function(step_, context); step_++)         \
			;                                                                          \
	})
#define SCRIPT_SENT(scratch, slot) (&reading_of(scratch)->codes_sent[slot])

#include "python_reader.h"

static int script_emit(struct script_scratch *scratch, u32 kind)
{
	Reading *reading = reading_of(scratch);
	struct rec_script_code *code = script_code(scratch);
	struct record *record = kind == REC_SCRIPT_CODE ? &code->h : &scratch->stack.h;

	*record = (struct record){.kind = kind, .flags = SCRIPT_SLEEPER, .ns = scratch->ns};
	record->len = kind == REC_SCRIPT_CODE
			      ? (sizeof(*code) + code->table_bytes + 7) & ~7u
			      : sizeof(scratch->stack) +
					scratch->stack.count * sizeof(struct script_frame);
	if (!reading->error)
		reading->error = reading->sink(reading->user, record);
	return reading->error;
}

/* ---- the threads --------------------------------------------------------------------------- */

Sleepers *sleepers_new(const Interpreters *interpreters, RecordSink sink, void *user)
{
	Sleepers *sleepers = xcalloc(1, sizeof(*sleepers));

	sleepers->interpreters = interpreters;
	sleepers->reading.sink = sink;
	sleepers->reading.user = user;
	sleepers->reading.memory = (JitMemoryReader){.pagemap_fd = -1, .fd = -1};
	return sleepers;
}

void sleepers_free(Sleepers *sleepers)
{
	if (!sleepers)
		return;
	jit_memory_close(&sleepers->reading.memory);
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
}

static bool open_memory(Reading *reading, uint32_t ns_tgid)
{
	if (reading->ns_tgid == ns_tgid)
		return true;
	jit_memory_close(&reading->memory);
	reading->ns_tgid = jit_memory_open(ns_tgid, &reading->memory) ? 0 : ns_tgid;
	return reading->ns_tgid;
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

/* To search the list for each of n threads would take n * n / 2 steps. */
static void list_threads(Reading *reading, const Sleeper *sleeper,
			 const struct script_process *process)
{
	struct script_scratch *scratch = &reading->scratch;
	struct python_walk walk = {.scratch = scratch, .layout = &process->python};

	if (reading->listed_tgid == sleeper->image.tgid)
		return;
	reading->listed_tgid = sleeper->image.tgid;
	map_free(&reading->states_of);
	reading->states.count = 0;
	scratch->thread = 0;
	scratch->fs_base = 0; /* nobody's: all are listed */
	if (!read_word(scratch, &walk.interpreter, process->runtime + walk.layout->interpreters))
		SCRIPT_LOOP(PYTHON_THREADS_MAX, list_thread, &walk);
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
	if (scratch->stack.count == 0)
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

	/* As in BPF: the ids of code are made from it. */
	scratch->seed = (uint64_t)sleeper->image.tgid << 32 ^ sleeper->image.exec_id;
	scratch->stack.tgid = sleeper->image.tgid;
	scratch->stack.language = process->language;
	if (process->language == SCRIPT_PYTHON)
		read_python(reading, sleeper, process);
}

int sleepers_read(Sleepers *sleepers, uint64_t deadline_ns)
{
	Reading *reading = &sleepers->reading;
	uint64_t now = now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < sleepers->list.count; i++) {
		const Sleeper *sleeper = &sleepers->list.items[i];
		InterpretedImage image = sleeper->image;
		const struct script_process *process =
			interpreters_process(sleepers->interpreters, &image);

		if ((!process && now < sleeper->ns + SLEEPERS_KEPT_NS) ||
		    (process && now_ns() > deadline_ns))
			sleepers->list.items[kept++] = *sleeper;
		else if (process &&
			 open_memory(reading,
				     interpreters_ns_tgid(sleepers->interpreters, image.tgid)))
			read_sleeper(reading, sleeper, process);
	}
	sleepers->list.count = kept;
	/* A process may end, and another have its number. */
	jit_memory_close(&reading->memory);
	reading->ns_tgid = 0;
	return reading->error;
}
