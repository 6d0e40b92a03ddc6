/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * make_seeds DIR: writes into DIR/capture, DIR/cache, DIR/table and DIR/messages what the
 * targets begin with. ELF files and texts are made by tests/run/fuzz_seeds.py.
 */
#include "cached_object.h"
#include "capture.h"
#include "capture_values.h"
#include "fuzz.h"
#include "make_record.h"
#include "seeds.h"
#include "symbol_child.h"
#include "symbol_record.h"
#include "table_builder.h"
#include "table_file.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#define MS(n)		(20 * NSEC_PER_SEC + (n) * (uint64_t)NSEC_PER_MSEC)
#define MAIN		100
#define WORKER		101
#define SLEEPER		102
#define NON_TARGET	7
#define SLEEP		1
#define DISK		2
#define USER_ID		0x1111
#define KERN_ID		0x2222
#define SLEEPER_ID	0x3333
#define SCRIPT_STACK_ID 0x4444
#define SCRIPT_CODE_ID	0x5555
#define TEXT		0x7f0000001000
#define KERNEL		0xffffffff81000000
#define FUTEX		202
#define READ		0
#define DISK_NUMBER	(8u << 20)
#define FILE_NUMBER	12
#define ALL_ONES	UINT64_MAX

static const char *folder;

static int open_seed(const char *kind, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, kind);
	int fd;

	fuzz_require(!mkdir(path, 0777) || errno == EEXIST);
	free(path);
	path = xasprintf("%s/%s/%s", folder, kind, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	fuzz_require(fd >= 0);
	return fd;
}

static void write_seed(const char *kind, const char *name, const void *data, size_t size)
{
	int fd = open_seed(kind, name);

	fuzz_require(write_all(fd, data, size) == 0 && close(fd) == 0);
}

/* ---- captures -------------------------------------------------------------------- */

/* Takes over the record. */
static void put(CaptureWriter *writer, void *record)
{
	fuzz_require(capture_write(writer, record) == 0);
	free(record);
}

static void put_text(CaptureWriter *writer, int kind, size_t fixed, const char *text)
{
	put(writer, make_record(kind, 0, MS(0), fixed, text, strlen(text) + 1));
}

static void put_task(CaptureWriter *writer, uint64_t ns, int flags, uint32_t tid, const char *name)
{
	struct rec_task *task = make_record(REC_TASK, flags, ns, sizeof(*task), NULL, 0);

	task->tid = task->ns_tid = tid;
	task->tgid = task->ns_tgid = tid == NON_TARGET ? NON_TARGET : MAIN;
	task->parent_tgid = 1;
	task->creator_tid = MAIN;
	strcpy(task->comm, name);
	put(writer, task);
}

typedef struct Switch {
	uint32_t prev, next;
	uint16_t prev_seq, next_seq, state;
	int flags;
	int16_t syscall;
	uint64_t argument;
	uint8_t fd_kind;
	uint64_t inode;
} Switch;

static void put_switch(CaptureWriter *writer, uint64_t ns, Switch what)
{
	int flags = what.flags | (what.prev ? SWITCH_PREV : 0) | (what.next ? SWITCH_NEXT : 0);
	struct rec_switch *record =
		make_record(REC_SWITCH, flags, ns,
			    what.prev ? sizeof(*record) : (size_t)SWITCH_SHORT_LEN, NULL, 0);

	record->prev_tid = what.prev;
	record->next_tid = what.next;
	record->prev_seq = what.prev_seq;
	record->next_seq = what.next_seq;
	record->prev_state = what.state;
	record->syscall = what.syscall;
	if (what.prev) {
		record->kstack = KERN_ID;
		record->ustack = USER_ID;
		record->args[0] = TEXT;
		record->args[1] = what.argument;
		record->args[2] = 2;
		record->fd_kind = what.fd_kind;
		record->inode = what.inode;
		record->file_device = DISK_NUMBER;
	}
	put(writer, record);
}

static void put_stats(CaptureWriter *writer, uint64_t ns, uint32_t tid, uint64_t used)
{
	struct rec_stats *stats = make_record(REC_STATS, 0, ns, sizeof(*stats), NULL, 0);

	stats->tid = tid;
	stats->sum_exec_runtime = used;
	stats->run_delay = tid == MAIN ? ALL_ONES : used;
	stats->clock_ahead = -(int64_t)(used / 8);
	put(writer, stats);
}

static void put_snapshot(CaptureWriter *writer, uint64_t ns, int flags, uint32_t tid)
{
	struct rec_snapshot *snapshot =
		make_record(REC_SNAPSHOT, flags, ns, sizeof(*snapshot), NULL, 0);

	snapshot->tid = tid;
	snapshot->state = flags & SNAPSHOT_ON_CPU ? 0 : SLEEP;
	snapshot->ns_after = ns + 10;
	snapshot->syscall = READ;
	snapshot->fd_kind = FD_PIPE;
	snapshot->ustack = tid == SLEEPER ? SLEEPER_ID : 0;
	put(writer, snapshot);
}

static void put_window(CaptureWriter *writer, uint64_t ns, int flags)
{
	struct rec_window *window = make_record(REC_WINDOW, flags, ns, sizeof(*window), NULL, 0);

	window->realtime_ns = 1700000000 * NSEC_PER_SEC + ns;
	put(writer, window);
}

static void put_sample(CaptureWriter *writer, uint64_t ns, uint32_t tid, int flags)
{
	struct rec_sample *sample = make_record(REC_SAMPLE, flags, ns, sizeof(*sample), NULL, 0);

	sample->tid = tid;
	sample->ustack = USER_ID;
	sample->kstack = flags & SAMPLE_USER ? 0 : KERN_ID;
	put(writer, sample);
}

static void put_stacks(CaptureWriter *writer)
{
	static const uint64_t user[] = {TEXT + 0x10, TEXT + 0x21, TEXT + 0x41};
	static const uint64_t kernel[] = {KERNEL, KERNEL + 0x11};

	put(writer, make_stack(USER_ID, STACK_USER, MAIN, user, ARRAY_LEN(user)));
	put(writer, make_stack(KERN_ID, 0, 0, kernel, ARRAY_LEN(kernel)));
}

/* A stack by unwind tables, before a file was mapped over the outermost frame; then from a copy. */
static void put_walked_stacks(CaptureWriter *writer)
{
	static const uint64_t frames[] = {TEXT + 0x10, FRAME_EXACT | (TEXT + 0x20),
					  FRAME_GUESSED | (TEXT + 0x41), TEXT + 0x1041};

	for (int from_copy = 0; from_copy < 2; from_copy++) {
		int flags = STACK_USER | STACK_GUESSED | (from_copy ? STACK_FROM_COPY : 0);
		struct rec_stack *stack =
			(struct rec_stack *)make_stack(USER_ID, flags, MAIN, frames, 3 + from_copy);

		stack->tables_ns = MS(1);
		stack->result = from_copy ? STACK_COMPLETE : STACK_NO_TABLE;
		put(writer, stack);
	}
}

/* A stack of which frames were left out. */
static void put_deep_stack(CaptureWriter *writer)
{
	static const uint64_t frames[] = {TEXT + 0x10, TEXT + 0x41, TEXT + 0x1041, 0};
	const struct stack_gap gap = {.left_out = 1001, .leaf = 1};
	struct rec_stack *stack = (struct rec_stack *)make_stack(
		USER_ID, STACK_USER | STACK_DEEP | STACK_JOINED, MAIN, frames, 4);

	stack->tables_ns = MS(1);
	stack->count = 3;
	memcpy(stack->frames + 3, &gap, sizeof(gap));
	put(writer, stack);
}

static void put_symbol(CaptureWriter *writer, uint32_t file, uint64_t address, const char *module)
{
	struct rec_symbol *symbol;
	SymbolRecord record = {};

	symbol_record_begin(&record, address);
	symbol_record_add(&record, file ? "outer" : "futex_wait", file ? "/src/a.c" : "", 12);
	if (file)
		symbol_record_add(&record, "inlined", "/src/a.h", 3);
	symbol = symbol_record_finish(&record, module);
	symbol->file = file;
	symbol->function = address & ~0xfULL;
	symbol->function_size = 0x20;
	fuzz_require(capture_write(writer, &symbol->h) == 0);
	symbol_record_free(&record);
}

static void put_space(CaptureWriter *writer)
{
	struct rec_exec *exec = make_record(REC_EXEC, 0, MS(1), sizeof(*exec), NULL, 0);

	struct rec_args *args = make_record(REC_ARGS, 0, MS(1), offsetof(struct rec_args, text),
					    "python3\0-c\0x", 13);

	exec->tid = exec->old_tid = exec->tgid = MAIN;
	strcpy(exec->comm, "program");
	strcpy(exec->path, "/bin/program");
	args->tgid = MAIN;
	args->size = 13;
	args->total = 20;
	put(writer, args);
	put(writer, make_file(1, 0, "/bin/program", 0x1000));
	put(writer, make_file(2, FILE_ANON, "[heap]", 0));
	put(writer, exec);
	put(writer, make_space(MS(1), SPACE_EXEC, MAIN, 0));
	put(writer, make_mapping(MS(1), MAPPING_EXEC, MAIN, 1, TEXT, TEXT + 0x2000, TEXT - 0x1000));
	put(writer, make_mapping(MS(2), MAPPING_EXEC, MAIN, 2, TEXT + 0x1000, TEXT + 0x3000, 0));
	put(writer, make_space(MS(3), SPACE_FORK, MAIN + 50, MAIN));
}

static void put_losses(CaptureWriter *writer)
{
	struct rec_loss *loss = make_record(REC_LOSS, 0, MS(60), sizeof(*loss), NULL, 0);
	struct rec_total *total = make_record(REC_TOTAL, 0, MS(90), sizeof(*total), NULL, 0);

	loss->lost_kind = REC_SWITCH;
	loss->count = 3;
	loss->from_ns = MS(50);
	loss->to_ns = MS(55);
	total->counted_kind = REC_SWITCH;
	total->sent = 20;
	total->lost = 3;
	put(writer, loss);
	put(writer, total);
	put_text(writer, REC_NOTE, offsetof(struct rec_note, text), "a file was not read");
}

static struct rec_script_stack *make_script_stack(uint64_t ns, int flags, uint64_t id)
{
	static const struct script_frame frames[] = {{SCRIPT_CODE_ID, 4, 0},
						     {SCRIPT_CODE_ID, 0, SCRIPT_FRAME_ENTRY}};
	struct rec_script_stack *stack =
		make_record(REC_SCRIPT_STACK, flags, ns, sizeof(*stack), frames, sizeof(frames));

	stack->id = id;
	stack->count = ARRAY_LEN(frames);
	return stack;
}

/* Functions of an interpreter at the first switch-out, and those of a thread that sleeps. */
static void put_scripts(CaptureWriter *writer, bool has_sleeper)
{
	static const uint8_t lines[] = {0x80, 0x00, 0x80, 0x10};
	static const uint64_t sleeping[] = {TEXT + 0x10, TEXT + 0x51};
	struct rec_script_code *code = make_record(REC_SCRIPT_CODE, has_sleeper, MS(10) - 1,
						   sizeof(*code), lines, sizeof(lines));
	struct rec_script *script =
		make_record(REC_SCRIPT, 0, MS(10) - 1, sizeof(*script), NULL, 0);

	code->id = SCRIPT_CODE_ID;
	code->language = script->language = SCRIPT_PYTHON;
	code->name_kind = code->path_kind = 1;
	code->name_bytes = code->path_bytes = 4;
	memcpy(code->name, "work", 4);
	memcpy(code->path, "a.py", 4);
	code->table_bytes = sizeof(lines);
	put(writer, code);
	script->tid = MAIN;
	script->stack = SCRIPT_STACK_ID;
	script->thread = script->holder = script->lock = TEXT;
	put(writer, script);
	put(writer, make_script_stack(MS(10) - 1, 0, SCRIPT_STACK_ID));
	put_task(writer, MS(0), 0, SLEEPER, "sleeper");
	put_snapshot(writer, MS(0), 0, SLEEPER);
	put(writer, make_stack(SLEEPER_ID, STACK_USER, MAIN, sleeping, ARRAY_LEN(sleeping)));
	put(writer, make_script_stack(MS(3), SCRIPT_SLEEPER, SLEEPER_ID));
}

static void put_meta(CaptureWriter *writer)
{
	static const char *const settings[] = {
		"version=1", "command=program x", "command_tid=100", "kernel=6.1.0",
		"cpus=2",    "frequency=1000",	  "cpu_model=x",     "kernel_stacks=blocked"};

	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		put_text(writer, REC_META, offsetof(struct rec_meta, text), settings[i]);
}

/* Two threads that run, sleep, read and end. */
static void put_process_events(CaptureWriter *writer)
{
	struct record *waking = make_waking(MS(30), MAIN, WORKER);
	struct rec_exit *exit = make_record(REC_EXIT, 0, MS(69), sizeof(*exit), NULL, 0);

	put_switch(writer, MS(0), (Switch){.next = MAIN, .next_seq = 1, .syscall = -1});
	put_sample(writer, MS(4), MAIN, SAMPLE_USER);
	put_sample(writer, MS(5), MAIN, 0);
	put_task(writer, MS(6), TASK_BIRTH, WORKER, "worker");
	put_switch(writer, MS(10), (Switch){MAIN, WORKER, 2, 0, SLEEP, 0, FUTEX, 0, FD_NONE, 0});
	put_sample(writer, MS(20), WORKER, SAMPLE_USER);
	put(writer, waking);
	put_switch(writer, MS(31), (Switch){WORKER, MAIN, 1, 2, 0, SWITCH_PREEMPT, -1, 0, 0, 0});
	put_switch(writer, MS(40),
		   (Switch){MAIN, WORKER, 3, 1, DISK, SWITCH_IOWAIT, READ, 0, FD_FILE, 0});
	put(writer, make_waking(MS(45), MAIN, NON_TARGET));
	put_switch(writer, MS(62), (Switch){0, MAIN, 0, 3, 0, 0, -1, 0, 0, 0});
	exit->tid = WORKER;
	exit->tgid = MAIN;
	put(writer, exit);
	put_stats(writer, MS(69), WORKER, 30 * NSEC_PER_MSEC);
	put_switch(writer, MS(69), (Switch){WORKER, 0, 2, 0, 0x80, 0, 231, 0, 0, 0});
}

static void write_capture(const char *name, bool attached, bool rounds, bool by_tables)
{
	int flags = attached ? WINDOW_ATTACHED : 0;
	CaptureWriter *writer;

	fuzz_require(capture_writer_new(open_seed("capture", name), 1, 1, &writer) == 0);
	put_meta(writer);
	put_task(writer, MS(0), 0, MAIN, "program");
	put_task(writer, MS(0), TASK_NON_TARGET, NON_TARGET, "other");
	put_window(writer, MS(0), WINDOW_START | flags);
	if (attached)
		put_snapshot(writer, MS(0), SNAPSHOT_QUEUED, MAIN);
	put_stats(writer, MS(0), MAIN, 0);
	put_space(writer);
	put_scripts(writer, attached);
	put_process_events(writer);
	fuzz_require(capture_flush(writer) == 0);
	put_losses(writer);
	put_snapshot(writer, MS(80), SNAPSHOT_END | SNAPSHOT_ON_CPU, MAIN);
	put_stats(writer, MS(80), MAIN, 40 * NSEC_PER_MSEC);
	if (rounds)
		put(writer,
		    make_record(REC_WATERMARK, 0, MS(5000), sizeof(struct rec_watermark), NULL, 0));
	put_window(writer, MS(80), WINDOW_END | flags);
	put_symbol(writer, 1, 0x1010, NULL);
	put_symbol(writer, 0, KERNEL, "[ext4]");
	if (by_tables && attached)
		put_deep_stack(writer);
	else if (by_tables)
		put_walked_stacks(writer);
	put_stacks(writer);
	if (!attached)
		put(writer,
		    make_record(REC_END, END_SYMBOLS, MS(81), sizeof(struct rec_end), NULL, 0));
	fuzz_require(capture_writer_close(writer) == 0);
}

static void put_fault(CaptureWriter *writer, uint64_t ns, uint64_t start_ns, uint8_t hook)
{
	struct rec_fault *fault =
		make_record(REC_FAULT, FAULT_USER | FAULT_SLEPT, ns, sizeof(*fault), NULL, 0);

	fault->tid = MAIN;
	fault->device = DISK_NUMBER;
	fault->inode = FILE_NUMBER;
	fault->start_ns = start_ns;
	fault->address = TEXT;
	fault->ustack = USER_ID;
	fault->memory = MEMORY_FILE;
	fault->page = PAGE_READ;
	fault->hook = hook;
	put(writer, fault);
}

static void put_inode(CaptureWriter *writer, int flags, const char *names, size_t size)
{
	struct rec_inode *inode =
		make_record(REC_INODE, flags, MS(41), sizeof(*inode), names, size);

	inode->device = DISK_NUMBER;
	inode->inode = FILE_NUMBER;
	inode->size = size;
	put(writer, inode);
}

static void put_request(CaptureWriter *writer, uint64_t ns, int flags, uint32_t operation)
{
	struct rec_request *request =
		make_record(REC_REQUEST, flags, ns, sizeof(*request), NULL, 0);

	request->device = request->file_device = DISK_NUMBER;
	request->opf = operation;
	request->bytes = 4096;
	request->tid = MAIN;
	request->submit_ns = MS(40);
	request->start_ns = MS(41);
	request->issue_ns = MS(42);
	request->ustack = USER_ID;
	request->inode = FILE_NUMBER;
	request->issues = 1;
	put(writer, request);
}

/* A thread that waits for a disk, directly and by a fault. */
static void write_disk(void)
{
	static const char device[] = "sda\0sdb, sdc\0/mnt";
	struct rec_device *named = make_record(
		REC_DEVICE, 0, MS(81), offsetof(struct rec_device, text), device, sizeof(device));
	CaptureWriter *writer;

	named->device = DISK_NUMBER;
	named->size = sizeof(device);
	fuzz_require(capture_writer_new(open_seed("capture", "disk"), 1, 1, &writer) == 0);
	put_meta(writer);
	put_task(writer, MS(0), 0, MAIN, "program");
	put_window(writer, MS(0), WINDOW_START);
	put_process_events(writer);
	put_fault(writer, MS(41), MS(39), FAULT_HOOK_SLEEP);
	put_fault(writer, MS(63), MS(39), FAULT_HOOK_EVENT);
	put_fault(writer, MS(65), MS(64), FAULT_HOOK_FUNCTION);
	put_inode(writer, INODE_MOUNT, "file\0folder", 12);
	put_inode(writer, INODE_FULL_PATH | INODE_DELETED, "file\0folder", 12);
	put_request(writer, MS(45), REQUEST_SUBMITTED | REQUEST_TARGET, 0);
	put_request(writer, MS(46), REQUEST_SUBMITTED | REQUEST_KTHREAD | REQUEST_MIXED, 1);
	put_request(writer, MS(47), REQUEST_BIO, 2);
	put_window(writer, MS(80), WINDOW_END);
	put(writer, named);
	put_stacks(writer);
	fuzz_require(capture_writer_close(writer) == 0);
}

static void put_socket(CaptureWriter *writer, uint64_t inode, uint16_t family, const char *path,
		       int flags)
{
	struct rec_socket *socket = make_record(
		REC_SOCKET, flags, MS(39), offsetof(struct rec_socket, text), path, strlen(path));

	socket->device = DISK_NUMBER;
	socket->inode = inode;
	socket->peer_inode = socket->peer_tgid = MAIN;
	socket->family = family;
	socket->local_port = 80;
	socket->remote_port = inode;
	socket->size = strlen(path);
	put(writer, socket);
}

static void put_watch(CaptureWriter *writer, uint64_t inode, uint32_t count)
{
	struct watched watched[WATCHED_MAX] = {
		{.inode = FILE_NUMBER, .device = DISK_NUMBER, .fd = 3, .kind = FD_INET}};
	struct rec_watch *watch =
		make_record(REC_WATCH, 0, MS(39), offsetof(struct rec_watch, watched), watched,
			    count * sizeof(*watched));

	watch->inode = inode;
	watch->device = DISK_NUMBER;
	watch->count = count;
	put(writer, watch);
}

static void put_futex(CaptureWriter *writer, uint8_t memory)
{
	struct rec_futex *futex = make_record(REC_FUTEX, 0, MS(39), sizeof(*futex), NULL, 0);

	futex->address = TEXT;
	futex->tgid = MAIN;
	futex->device = DISK_NUMBER;
	futex->inode = FILE_NUMBER;
	futex->memory = memory;
	put(writer, futex);
}

/* A thread that waits for all kinds of things. */
static void write_objects(void)
{
	static const Switch waits[] = {
		{MAIN, 0, 2, 0, SLEEP, 0, READ, 0, FD_INET, FILE_NUMBER},
		{MAIN, 0, 3, 0, SLEEP, 0, READ, 0, FD_UNIX, FILE_NUMBER + 1},
		{MAIN, 0, 4, 0, SLEEP, 0, 232, 0, FD_INET, FILE_NUMBER + 2}, /* epoll_wait */
		{MAIN, 0, 5, 0, SLEEP, 0, FUTEX, 0, FD_NONE, 0},
		{MAIN, 0, 6, 0, SLEEP, 0, 230, 1, FD_NONE, MS(90)}, /* clock_nanosleep */
		{MAIN, 0, 7, 0, SLEEP, 0, READ, 0, FD_PIPE, FILE_NUMBER + 3},
	};
	CaptureWriter *writer;
	uint64_t ns = MS(40);

	fuzz_require(capture_writer_new(open_seed("capture", "objects"), 1, 1, &writer) == 0);
	put_meta(writer);
	put_task(writer, MS(0), 0, MAIN, "program");
	put_window(writer, MS(0), WINDOW_START);
	put_switch(writer, MS(0), (Switch){.next = MAIN, .next_seq = 1, .syscall = -1});
	put_socket(writer, FILE_NUMBER, 2, "", SOCKET_LISTENS);
	put_socket(writer, FILE_NUMBER + 1, 1, "/run/x", SOCKET_PEER_PATH);
	put_watch(writer, FILE_NUMBER + 2, 6);
	put_futex(writer, MEMORY_SHARED);
	put_futex(writer, MEMORY_FILE);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++, ns += MS(4)) {
		put_switch(writer, ns, waits[i]);
		put(writer, make_waking(ns + MS(2), MAIN, NON_TARGET));
		put_switch(writer, ns + MS(3),
			   (Switch){0, MAIN, 0, waits[i].prev_seq, 0, 0, -1, 0, 0, 0});
	}
	put_window(writer, MS(80), WINDOW_END);
	put_stacks(writer);
	fuzz_require(capture_writer_close(writer) == 0);
}

/* Enough of them, in wild order, for the radix sort. */
static void write_shuffled(void)
{
	CaptureWriter *writer;
	unsigned int seed = 1;

	fuzz_require(capture_writer_new(open_seed("capture", "shuffled"), 1, 1, &writer) == 0);
	put_window(writer, MS(0), WINDOW_START);
	for (int i = 0; i < 100; i++)
		put_sample(writer, MS(fuzz_random(&seed, 3000)), MAIN, SAMPLE_USER);
	put(writer, make_record(REC_WATERMARK, 0, MS(4000), sizeof(struct rec_watermark), NULL, 0));
	for (int i = 0; i < 20; i++)
		put_sample(writer, MS(fuzz_random(&seed, 4000)), MAIN, SAMPLE_USER);
	fuzz_require(capture_writer_close(writer) == 0);
}

/* ---- the caches, and a child's messages -------------------------------------------- */

static const struct rec_symbol *make_answer(SymbolRecord *record, size_t i, bool named)
{
	struct rec_symbol *symbol;

	symbol_record_begin(record, SEED_ADDRESS(i));
	if (named) {
		symbol_record_add(record, "main", "/src/main.c", 10 + i);
		symbol_record_add(record, "inlined", "", 0);
	}
	symbol = symbol_record_finish(record, NULL);
	symbol->function = SEED_ADDRESS(0);
	symbol->function_size = 0x100;
	return symbol;
}

static void write_cache(void)
{
	const MappedFile file = {.build_id = SEED_BUILD_ID, .build_id_len = 20};
	static uint8_t plain[64 << 10];
	SymbolRecord record = {};
	CachedObject object = {.asked_debuginfod = true};
	void *data;
	size_t size, plain_size;

	for (size_t i = 4; i-- > 0;)
		cached_object_add(&object, make_answer(&record, i, i != 2));
	*vec_push(&object.tried) = (TriedFile){.path = xstrdup("/usr/lib/debug/x.debug")};
	*vec_push(&object.tried) =
		(TriedFile){.path = xstrdup("/x"), .size = 1, .mtime_ns = 2, .by_dwarf = true};
	object.note = xstrdup("of a file");
	fuzz_require(cached_object_write(&file, &object, &data, &size) == 0);
	write_seed("cache", "file", data, size);
	plain_size = ZSTD_decompress(plain, sizeof(plain), data, size);
	fuzz_require(!ZSTD_isError(plain_size));
	write_seed("cache", "plain", plain, plain_size);
	free(data);
	cached_object_free(&object);
	symbol_record_free(&record);
}

static void write_table(const char *name, TableKey key, size_t rows)
{
	UnwindTable table = make_table(/* seed= */ rows, rows);
	struct table_file_header header;
	FuzzBytes file = {};

	fuzz_require(table_file_header(&key, &table, "a.debug", &header) == 0);
	vec_append(&file, (const uint8_t *)&header, sizeof(header));
	vec_append(&file, (const uint8_t *)table.rules.items,
		   table.rules.count * sizeof(struct unwind_rule));
	vec_append(&file, (const uint8_t *)table.rows.items,
		   table.rows.count * sizeof(struct unwind_row));
	write_seed("table", name, file.items, file.count);
	vec_free(&file);
	unwind_table_free(&table);
}

static void write_tables(void)
{
	TableKey key = SEED_TABLE_KEY;

	write_table("small", key, 3);
	write_table("large", key, 2000);
	key.file.ctime_ns++;
	write_table("of-another", key, 3);
}

static void add_message(FuzzBytes *bytes, enum symbol_message type, const void *data, size_t size)
{
	struct symbol_message_head head = {.len = size, .type = type};

	vec_append(bytes, (const uint8_t *)&head, sizeof(head));
	vec_append(bytes, (const uint8_t *)data, size);
}

static void write_messages(void)
{
	Companion companion = {.kind = COMPANION_DEBUG, .name = "x.debug"};
	SymbolRecord record = {};
	const int64_t result = 0, failed = -ENOENT;
	FuzzBytes bytes = {};

	for (size_t i = 0; i < 6; i++) {
		const struct rec_symbol *symbol = make_answer(&record, i % 4, true);

		add_message(&bytes, SYMBOL_MESSAGE_SYMBOL, symbol, symbol->h.len);
	}
	write_seed("messages", "symbols", bytes.items, bytes.count);
	add_message(&bytes, SYMBOL_MESSAGE_FIND, &companion, sizeof(companion));
	for (size_t i = 0; i < DWARF_MISSING_KINDS; i++) {
		const ObjectMissing missing = {.kind = i, .count = i + 1, .name = "x.dwo"};

		add_message(&bytes, SYMBOL_MESSAGE_MISSING, &missing, sizeof(missing));
	}
	add_message(&bytes, SYMBOL_MESSAGE_END, &result, sizeof(result));
	write_seed("messages", "all", bytes.items, bytes.count);
	bytes.count = 0;
	for (int i = 0; i < 3 * COMPANION_CANDIDATES; i++) {
		companion.kind = COMPANION_DWZ + i % 3; /* and a .dwo or .dwp file */
		companion.candidate = i / 3;
		companion.tail = i % 3;
		add_message(&bytes, SYMBOL_MESSAGE_FIND, &companion, sizeof(companion));
	}
	add_message(&bytes, SYMBOL_MESSAGE_END, &failed, sizeof(failed));
	write_seed("messages", "finds", bytes.items, bytes.count);
	symbol_record_free(&record);
	vec_free(&bytes);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_seeds DIR\n");
		return 2;
	}
	folder = argv[1];
	write_capture("command", /* attached= */ false, /* rounds= */ true, /* by_tables= */ false);
	write_capture("attached", /* attached= */ true, /* rounds= */ false,
		      /* by_tables= */ false);
	write_capture("tables", /* attached= */ false, /* rounds= */ true, /* by_tables= */ true);
	write_capture("deep", /* attached= */ true, /* rounds= */ true, /* by_tables= */ true);
	write_objects();
	write_shuffled();
	write_disk();
	capture_values_write(folder);
	write_cache();
	write_tables();
	write_messages();
	return 0;
}
