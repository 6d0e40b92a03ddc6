/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_values.c - captures in which each kind of record, each flag and each value of an enum
 * occurs. The fuzzer hardly finds a value that is in none of its seeds, so the code behind it would
 * be checked by chance. tests/run/fuzz.py looks for them.
 */
#include "capture_values.h"
#include "capture_format.h"
#include "fuzz.h"
#include "make_record.h"
#include "syscalls.h"
#include <fcntl.h>
#include <sys/socket.h>

#define MS(n)	  (20 * NSEC_PER_SEC + (n) * (uint64_t)NSEC_PER_MSEC)
#define MAIN	  100
#define OTHER	  101
#define USER_ID	  0x1111
#define KERN_ID	  0x2222
#define STACK_IDS 0x3000
#define SCRIPTS	  0x4000
#define CODES	  0x5000
#define TEXT	  0x7f0000001000
#define KERNEL	  0xffffffff81000000
#define DISK	  (8u << 20)
#define INODES	  20 /* their numbers */

static const uint64_t user_frames[] = {TEXT + 0x10, TEXT + 0x21, TEXT + 0x41};
static const uint64_t kernel_frames[] = {KERNEL, KERNEL + 0x11};

/* ---- what all have ---------------------------------------------------------------- */

/* Takes over the record. */
static void put(CaptureWriter *writer, void *record)
{
	fuzz_require(capture_check(record) == CAPTURE_RECORD_GOOD &&
		     capture_write(writer, record) == 0);
	free(record);
}

static void put_meta(CaptureWriter *writer, const char *text)
{
	put(writer, make_record(REC_META, 0, 0, sizeof(struct rec_meta), text, strlen(text) + 1));
}

static void put_task(CaptureWriter *writer, uint64_t ns, int flags, uint32_t tid, uint32_t tgid)
{
	struct rec_task *task = (struct rec_task *)make_task(tid, tgid, tid);

	task->h.ns = ns;
	task->h.flags = flags;
	task->parent_tgid = 1;
	task->creator_tid = MAIN;
	task->own_tid = tid;
	task->start_boottime = tid;
	put(writer, task);
}

static void put_window(CaptureWriter *writer, uint64_t ns, int flags)
{
	put(writer, make_record(REC_WINDOW, flags, ns, sizeof(struct rec_window), NULL, 0));
}

static CaptureWriter *begin(const char *folder, const char *name, int flags)
{
	_cleanup_free_ char *path = xasprintf("%s/capture/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	CaptureWriter *writer;

	fuzz_require(fd >= 0 && capture_writer_new(fd, 1, 1, &writer) == 0);
	put_meta(writer, "version=1");
	put_meta(writer, "command_tid=100");
	put_meta(writer, "waking-context=vectors");
	put_task(writer, MS(0), 0, MAIN, MAIN);
	put_window(writer, MS(0), WINDOW_START | flags);
	return writer;
}

static void end(CaptureWriter *writer, uint64_t ns)
{
	put_window(writer, ns, WINDOW_END);
	put(writer, make_stack(USER_ID, STACK_USER, MAIN, user_frames, ARRAY_LEN(user_frames)));
	put(writer, make_stack(KERN_ID, 0, 0, kernel_frames, ARRAY_LEN(kernel_frames)));
	put(writer, make_record(REC_END, END_SYMBOLS, ns, sizeof(struct rec_end), NULL, 0));
	fuzz_require(capture_writer_close(writer) == 0);
}

/* The thread gets the CPU; its sequence number is that of its last switch-out. */
static void put_in(CaptureWriter *writer, uint64_t ns, uint16_t seq)
{
	struct rec_switch *in = make_record(REC_SWITCH, SWITCH_NEXT, ns, SWITCH_SHORT_LEN, NULL, 0);

	in->next_tid = MAIN;
	in->next_seq = seq;
	in->syscall = -1;
	in->moved_before = seq % 3 ? 0 : 5;
	in->parts |= seq % 2 ? SWITCH_MOVED_REPEATEDLY : 0;
	put(writer, in);
}

static struct rec_switch *make_out(uint64_t ns, uint16_t seq, int flags)
{
	struct rec_switch *out =
		make_record(REC_SWITCH, SWITCH_PREV | flags, ns, sizeof(*out), NULL, 0);

	out->prev_tid = MAIN;
	out->prev_seq = seq;
	out->prev_state = 1;
	out->kstack = KERN_ID;
	out->ustack = USER_ID;
	return out;
}

static void put_sample(CaptureWriter *writer, uint64_t ns, uint64_t user, uint64_t kernel)
{
	struct rec_sample *sample =
		make_record(REC_SAMPLE, kernel ? 0 : SAMPLE_USER, ns, sizeof(*sample), NULL, 0);

	sample->tid = MAIN;
	sample->ustack = user;
	sample->kstack = kernel;
	put(writer, sample);
}

/* ---- switches and wakeups ------------------------------------------------------------- */

static const int16_t calls[] = {
#define CALL(NAME, name, number) number,
	SYSCALLS(CALL)
#undef CALL
		SYSCALL_NUMBER_FUTEX_WAIT,
	-1};

/* A wait in each system call; all other fields go through their values beside it. */
static void write_switches(const char *folder)
{
	CaptureWriter *writer = begin(folder, "values-switches", 0);
	uint32_t count = ARRAY_LEN(calls);

	put_meta(writer, "budget=0.01");
	put_in(writer, MS(0), 1);
	for (uint32_t i = 0; i < count; i++) {
		static const uint16_t states[] = {1, 2, 0x2001, 0x402, 4, 8, 0x100, 0};
		int flags = i % 3 ? 0 : SWITCH_PREEMPT << i / 3 % 6;
		struct rec_switch *out = make_out(MS(4 * i + 1), i + 2, flags);
		struct rec_waking *waking =
			(struct rec_waking *)make_waking(MS(4 * i + 2), MAIN, i % 7 ? OTHER : 0);

		out->syscall = calls[i % ARRAY_LEN(calls)];
		out->prev_state = states[i % ARRAY_LEN(states)];
		out->fd_kind = i % (FD_LAST + 1);
		out->fd_count = i % 4;
		out->lock = i % 3;
		out->owner = i % 5 ? 0 : OTHER;
		out->args[0] = TEXT + i;
		out->args[1] = i % 16;
		out->args[2] = i;
		out->inode = INODES + i % 10;
		out->file_device = DISK;
		out->place = i;
		out->parts |= (i % 4 ? 0 : SWITCH_UNSAMPLED) | (i % 2 ? 0x80 << CHANCE_SHIFT : 0);
		out->own_in = out->own_run = out->interrupts_ns = out->stolen_ns = i;
		out->complete_for = i;
		put(writer, out);
		waking->h.flags = i % 2 ? 0 : 1 << i / 2 % 4;
		waking->vector = i % 12;
		waking->kstack = KERN_ID;
		waking->ustack = USER_ID;
		waking->parts |= i % 3 ? 0 : WAKING_UNSAMPLED;
		put(writer, waking);
		put_in(writer, MS(4 * i + 3), i + 2);
		put_sample(writer, MS(4 * i + 4) - 1, USER_ID, i % 2 ? KERN_ID : 0);
	}
	end(writer, MS(4 * count + 10));
}

/* ---- tasks of a whole system ------------------------------------------------------------ */

static void put_snapshot(CaptureWriter *writer, uint64_t ns, int flags, uint32_t tid)
{
	struct rec_snapshot *snapshot =
		make_record(REC_SNAPSHOT, flags, ns, sizeof(*snapshot), NULL, 0);

	snapshot->tid = tid;
	snapshot->state = flags & (SNAPSHOT_ON_CPU | SNAPSHOT_QUEUED) ? 0 : 1;
	snapshot->ns_after = ns + 10;
	snapshot->syscall = SYSCALL_FUTEX;
	snapshot->kstack = KERN_ID;
	snapshot->ustack = USER_ID;
	snapshot->task_cpu = tid % 4;
	snapshot->owner = MAIN;
	put(writer, snapshot);
}

static void put_args(CaptureWriter *writer, uint64_t ns, int flags)
{
	struct rec_args *args = make_record(REC_ARGS, flags, ns, offsetof(struct rec_args, text),
					    "program\0--host=example.org\0", 27);

	args->tgid = MAIN;
	args->size = 27;
	args->total = 30;
	put(writer, args);
}

static void put_exit(CaptureWriter *writer, uint64_t ns, int flags, uint32_t tid)
{
	struct rec_exit *exit = make_record(REC_EXIT, flags, ns, sizeof(*exit), NULL, 0);

	exit->tid = tid;
	exit->tgid = MAIN;
	exit->exit_code = 0x8b;
	exit->start_boottime = tid;
	put(writer, exit);
}

static void put_exec(CaptureWriter *writer, uint64_t ns, uint32_t old_tid)
{
	struct rec_exec *exec = make_record(REC_EXEC, 0, ns, sizeof(*exec), NULL, 0);

	exec->tid = exec->tgid = MAIN;
	exec->old_tid = old_tid;
	strcpy(exec->comm, "program");
	strcpy(exec->path, "/usr/bin/program");
	put(writer, exec);
}

static void put_losses(CaptureWriter *writer)
{
	for (uint32_t i = 0; i < REC_BPF_MAX; i++) {
		struct rec_loss *loss = make_record(REC_LOSS, 0, MS(80), sizeof(*loss), NULL, 0);
		struct rec_total *total =
			make_record(REC_TOTAL, 0, MS(90), sizeof(*total), NULL, 0);

		loss->lost_kind = total->counted_kind = i;
		loss->cause = i % LOSS_CAUSE_MAX;
		loss->count = i % 4;
		loss->from_ns = MS(60 + i % 3);
		loss->to_ns = MS(62 + i % 5);
		total->sent = 100;
		total->lost = i;
		put(writer, loss);
		put(writer, total);
	}
}

static void write_system(const char *folder)
{
	static const char *const metas[] = {"command=program --x",
					    "recorder_pid=9",
					    "attached_pids=100",
					    "attached_tids=101",
					    "cgroup=/a/b",
					    "kernel_threads=1",
					    "kernel=6.12.1",
					    "machine=x86_64",
					    "hostname=host",
					    "boot_id=0-0",
					    "cpus=4",
					    "cpus_online=0-3",
					    "cpus_idle=3",
					    "cpu_model=x",
					    "memory=1000",
					    "clock=tsc",
					    "stolen_at_start_ns=1",
					    "stolen_at_end_ns=900000000",
					    "hooks=x",
					    "recording-cost=1",
					    "own-code=ffffffff81000000+100",
					    "args=1",
					    "file-names=targets",
					    "frequency=1000",
					    "frequency_share=0.01",
					    "frequency_changes=20010000000:100",
					    "ticks=100",
					    "tick_interrupt_ns=900",
					    "fault_source=event",
					    "stacks=tables",
					    "fault_threshold_ns=1",
					    "waker_threshold_ns=1",
					    "kernel_stacks=all",
					    "ring_size=1",
					    "ring_cpus=1",
					    "ring_groups=1",
					    "cpu_limit_cgroup=/a",
					    "cpu_limit_quota_us=50000",
					    "unwind_memory=1",
					    "cpu_limit_period_us=100000",
					    "cpu_limit_throttled_ns=5",
					    "flight_recorder_ns=1"};
	CaptureWriter *writer = begin(folder, "values-system", WINDOW_ATTACHED | WINDOW_SYSTEM);

	for (size_t i = 0; i < ARRAY_LEN(metas); i++)
		put_meta(writer, metas[i]);
	for (uint32_t i = 0; i < 6; i++) {
		put_task(writer, MS(i), 1 << i, OTHER + i, i % 2 ? MAIN : OTHER + i);
		put_snapshot(writer, MS(i), i ? 1 << (i - 1) : 0, OTHER + i);
	}
	put_snapshot(writer, MS(1), 0, MAIN);
	for (int flags = 0; flags <= (ARGS_FROM_PROC | ARGS_INHERITED); flags++)
		put_args(writer, MS(7), flags);
	for (uint32_t i = 0; i < 30; i++) {
		struct rec_switch *other =
			make_record(REC_SWITCH, 0, MS(10 + i), SWITCH_SHORT_LEN, NULL, 0);

		other->h.cpu = i % 3;
		other->prev_tid = i % 4 ? OTHER + i % 6 : 0;
		other->next_tid = i % 5 ? OTHER + (i + 3) % 6 : 0;
		other->interrupts_ns = 100;
		other->stolen_ns = 1000 * i;
		put(writer, other);
	}
	put_exec(writer, MS(45), OTHER + 1);
	put_in(writer, MS(50), 1);
	put_exit(writer, MS(54), 0, OTHER + 3);
	put_exit(writer, MS(55), EXIT_GROUP_DEAD, MAIN);
	put_losses(writer);
	put(writer, make_record(REC_WATERMARK, 0, MS(5000), sizeof(struct rec_watermark), NULL, 0));
	end(writer, MS(100));
}

/* ---- stacks and their names ----------------------------------------------------------------- */

static void put_files(CaptureWriter *writer)
{
	static const char *const paths[] = {"[vdso]",	 "//anon",	    "/usr/bin/old",
					    "/dev/zero", "/tmp/jit-1.dump", "jit code of 1"};

	for (uint32_t i = 0; i < ARRAY_LEN(paths); i++) {
		uint64_t start = TEXT + 0x10000 * i;

		put(writer, make_file(i + 1, 1 << i, paths[i], 0));
		put(writer, make_mapping(MS(i), MAPPING_EXEC | (i % 2 ? MAPPING_INITIAL : 0), MAIN,
					 i + 1, start, start + 0x10000, start));
		put(writer, make_symbol(i % 2 ? 1 << i / 2 : 0, i + 1, 0x10, 0x10, "name", NULL));
		put(writer,
		    make_code(i % 3 ? MS(i) : 0, MAIN, i + 1, start + 0x100, start + 0x200, start));
	}
	put(writer, make_space(MS(7), SPACE_READ, MAIN, 0));
	put(writer, make_source("/src/a.c", "int a;\nint b;\n", 14));
	put(writer, make_record(REC_NOTE, 0, 0, offsetof(struct rec_note, text), "of a file", 10));
}

static void write_frames(const char *folder)
{
	static const uint64_t marked[] = {TEXT + 0x10, FRAME_EXACT | (TEXT + 0x10110),
					  FRAME_GUESSED | (TEXT + 0x20120),
					  VSYSCALL_PAGE << VSYSCALL_SHIFT, 1};
	CaptureWriter *writer = begin(folder, "values-frames", 0);

	put_files(writer);
	put_in(writer, MS(8), 1);
	for (uint32_t i = 0; i <= STACK_RESULTS; i++) {
		int flags = STACK_USER | (i % 3 ? STACK_SYSCALL_PC << i % 5 : 0);
		struct rec_stack *stack = (struct rec_stack *)make_stack(STACK_IDS + i, flags, MAIN,
									 marked, ARRAY_LEN(marked));

		stack->result = i;
		stack->tables_ns = i % 4 ? MS(1) : 0;
		if (flags & STACK_DEEP) {
			stack->frames[--stack->count] = 1ULL << 32 | 70; /* struct stack_gap */
		}
		put(writer, stack);
		put_sample(writer, MS(10 + i), STACK_IDS + i, i % 2 ? KERN_ID : 0);
	}
	end(writer, MS(60));
}

/* ---- faults and requests ----------------------------------------------------------------- */

static void put_inode(CaptureWriter *writer, int flags, uint64_t number)
{
	static const char names[] = "file\0folder\0usr";
	struct rec_inode *inode =
		make_record(REC_INODE, flags, MS(1), sizeof(*inode), names, sizeof(names));

	inode->device = DISK;
	inode->inode = number;
	inode->size = sizeof(names);
	put(writer, inode);
}

static void put_device(CaptureWriter *writer, uint32_t number, const char *text, size_t size)
{
	struct rec_device *device =
		make_record(REC_DEVICE, 0, MS(1), offsetof(struct rec_device, text), text, size);

	device->device = number;
	device->disk = DISK;
	device->size = size;
	put(writer, device);
}

static void put_fault(CaptureWriter *writer, uint32_t i)
{
	struct rec_fault *fault = make_record(REC_FAULT, 1 << i % 8 | FAULT_SLEPT, MS(4 * i + 3),
					      sizeof(*fault), NULL, 0);

	fault->tid = MAIN;
	fault->device = DISK;
	fault->inode = INODES + i % 7;
	fault->start_ns = MS(4 * i);
	fault->address = TEXT + i;
	fault->ustack = USER_ID;
	fault->memory = i % (MEMORY_COUNT + 1);
	fault->page = i % (PAGE_COUNT + 1);
	fault->hook = i % 3;
	put(writer, fault);
}

static void put_request(CaptureWriter *writer, uint32_t i)
{
	static const uint8_t operations[] = {0, 1, 2, 3, 5, 7, 9, 34, 35, 99};
	struct rec_request *request = make_record(
		REC_REQUEST, 1 << i % 8 | (i % 3 ? REQUEST_SUBMITTED | REQUEST_TARGET : 0),
		MS(4 * i + 2), sizeof(*request), NULL, 0);

	request->device = DISK + i % 3;
	request->opf = operations[i % ARRAY_LEN(operations)] | 1u << (11 + i % 11);
	request->bytes = 4096 * (i % 5);
	request->tid = i % 4 ? MAIN : OTHER;
	request->submit_ns = MS(4 * i);
	request->start_ns = i % 4 ? MS(4 * i) + 1000 : 0;
	request->issue_ns = i % 5 ? MS(4 * i) + 2000 : 0;
	request->ustack = USER_ID;
	request->inode = INODES + i % 7;
	request->offset = i % 6 ? 4096 * i : UINT64_MAX;
	request->file_device = DISK;
	request->over_device = i % 7 ? 0 : DISK + 1;
	request->issues = request->partials = request->merges = i % 3;
	request->status = i % 9 ? 0 : 10;
	request->via = i % VIA_COUNT;
	request->held_us = i % 8 ? 0 : 500;
	put(writer, request);
}

static void write_io(const char *folder)
{
	CaptureWriter *writer = begin(folder, "values-io", 0);

	for (int i = 0; i < 7; i++)
		put_inode(writer, 1 << i, INODES + i);
	put_device(writer, DISK, "sda\0\0/", 6);
	put_device(writer, DISK + 1, "md0\0sda, sdb\0/home", 18);
	put_device(writer, DISK + 2, "loop0\0/srv/image\0", 17);
	put_in(writer, MS(0), 1);
	for (uint32_t i = 0; i < 30; i++) {
		struct rec_switch *out =
			make_out(MS(4 * i) + 500, i + 2, i % 2 ? SWITCH_IOWAIT : 0);
		struct rec_waking *waking =
			(struct rec_waking *)make_waking(MS(4 * i + 2) + 10, MAIN, 0);

		out->prev_state = 2;
		out->syscall = i % 3 ? SYSCALL_READ : -1;
		out->fd_kind = FD_FILE;
		out->inode = INODES + i % 7;
		out->file_device = DISK;
		waking->h.flags = WAKING_HARDIRQ;
		put(writer, out);
		put_request(writer, i);
		put(writer, waking);
		put_in(writer, MS(4 * i + 2) + 20, i + 2);
		put_fault(writer, i);
	}
	end(writer, MS(200));
}

/* ---- sockets, epoll, futexes ---------------------------------------------------------------- */

static void put_socket(CaptureWriter *writer, uint32_t i)
{
	static const uint16_t families[] = {AF_UNIX,	AF_INET,   AF_INET6,
					    AF_NETLINK, AF_PACKET, AF_VSOCK};
	static const uint16_t protocols[] = {0, 6, 17, 132, 255};
	const char *text = i % 3 ? "/run/socket" : "";
	struct rec_socket *socket =
		make_record(REC_SOCKET, i % 2 ? 1 << i / 2 % 3 : 0, MS(1),
			    offsetof(struct rec_socket, text), text, strlen(text));

	socket->device = DISK;
	socket->inode = INODES + i;
	socket->peer_inode = INODES + (i + 1) % 12;
	socket->peer_tgid = MAIN;
	socket->family = families[i % ARRAY_LEN(families)];
	socket->type = 1 + i % 5;
	socket->protocol = protocols[i % ARRAY_LEN(protocols)];
	socket->local_port = 80;
	socket->remote_port = i % 4 ? 1000 + i : 0;
	socket->local[15] = socket->remote[0] = i;
	socket->size = strlen(text);
	put(writer, socket);
}

/* Each kind of descriptor; every third one is watched through the one before it. */
static void put_watch(CaptureWriter *writer, uint64_t inode, int flags)
{
	struct watched watched[WATCHED_MAX] = {};
	struct rec_watch *watch;

	for (uint32_t i = 0; i < WATCHED_MAX; i++)
		watched[i] = (struct watched){.inode = INODES + i,
					      .device = DISK,
					      .fd = i,
					      .kind = i % (FD_LAST + 1),
					      .via = i % 3 ? 0 : i};
	watch = make_record(REC_WATCH, flags, MS(1), offsetof(struct rec_watch, watched), watched,
			    sizeof(watched));
	watch->inode = inode;
	watch->device = DISK;
	watch->count = WATCHED_MAX;
	watch->more = flags;
	put(writer, watch);
}

static void write_peers(const char *folder)
{
	CaptureWriter *writer = begin(folder, "values-peers", 0);

	for (uint32_t i = 0; i < 12; i++)
		put_socket(writer, i);
	put_watch(writer, INODES + 20, 0);
	put_watch(writer, INODES + 21, WATCH_RING);
	for (uint32_t i = 0; i <= MEMORY_COUNT; i++) {
		struct rec_futex *futex = make_record(REC_FUTEX, 0, MS(1), sizeof(*futex), NULL, 0);

		futex->address = TEXT + i;
		futex->tgid = MAIN;
		futex->device = DISK;
		futex->inode = INODES + i;
		futex->memory = i;
		put(writer, futex);
	}
	put_in(writer, MS(2), 1);
	for (uint32_t i = 0; i < 24; i++) {
		static const int16_t of[] = {SYSCALL_READ, SYSCALL_EPOLL_WAIT, SYSCALL_FUTEX,
					     SYSCALL_IO_URING_ENTER};
		struct rec_switch *out = make_out(MS(4 * i + 3), i + 2, 0);

		out->syscall = of[i % ARRAY_LEN(of)];
		out->fd_kind = i % (FD_LAST + 1);
		out->fd_count = i % 3;
		out->args[0] = TEXT + i % 8;
		out->inode = INODES + i % 22;
		out->file_device = DISK;
		put(writer, out);
		put(writer, make_waking(MS(4 * i + 4), MAIN, OTHER));
		put_in(writer, MS(4 * i + 5), i + 2);
	}
	end(writer, MS(200));
}

/* ---- functions of an interpreter ----------------------------------------------------------------
 */

#define FIRST_VERSION 0x0308
#define VERSIONS      7

static void put_script_code(CaptureWriter *writer, uint32_t i)
{
	static const uint8_t lines[] = {6, 1, 50, 2, 4, 0xff, 0x80 | 10 << 3, 1, 2, 0x80 | 15 << 3};
	struct rec_script_code *code = make_record(REC_SCRIPT_CODE, i % 3 ? 0 : SCRIPT_SLEEPER,
						   MS(5), sizeof(*code), lines, sizeof(lines));

	code->id = CODES + i;
	code->version = FIRST_VERSION + i;
	code->language = SCRIPT_PYTHON;
	code->name_kind = code->path_kind = 1 << i % 3;
	code->name_bytes = code->path_bytes = 8;
	for (uint32_t k = 0; k < 8; k++) {
		code->name[k] = "work\0\0ab"[k];
		code->path[k] = "/a/b.py"[k];
	}
	code->first_line = 10;
	code->table_bytes = sizeof(lines);
	put(writer, code);
}

static void put_script_stack(CaptureWriter *writer, uint32_t i)
{
	struct script_frame frames[SCRIPT_FRAMES] = {};
	bool is_deep = i % 6 == 1;
	uint16_t count = is_deep ? SCRIPT_FRAMES : i;
	struct rec_script_stack *stack;

	for (uint32_t k = 0; k < count; k++)
		frames[k] = (struct script_frame){CODES + k % (VERSIONS + 1), (int32_t)(k % 9) - 1,
						  k % 4 ? 0 : SCRIPT_FRAME_ENTRY};
	stack = make_record(REC_SCRIPT_STACK, i % 5 ? 0 : SCRIPT_SLEEPER, MS(5), sizeof(*stack),
			    frames, count * sizeof(*frames));
	stack->id = i % 5 ? SCRIPTS + i : USER_ID;
	stack->count = count;
	stack->result = i % (SCRIPT_RESULTS + 1);
	stack->language = i % (SCRIPT_LANGUAGES + 1);
	stack->left_out = is_deep ? 70 + i : 0;
	put(writer, stack);
}

static void write_scripts(const char *folder)
{
	CaptureWriter *writer = begin(folder, "values-scripts", 0);

	put(writer, make_file(1, 0, "/usr/bin/python3.13", 0));
	put(writer, make_mapping(MS(0), MAPPING_EXEC, MAIN, 1, TEXT, TEXT + 0x1000, TEXT));
	put(writer, make_symbol(0, 1, 0x10, 0x10, "_PyEval_EvalFrameDefault", NULL));
	put(writer, make_symbol(0, 1, 0x20, 0x20, "take_gil", NULL));
	for (uint32_t i = 0; i < VERSIONS; i++)
		put_script_code(writer, i);
	for (uint32_t i = 0; i < 15; i++)
		put_script_stack(writer, i);
	put_in(writer, MS(6), 1);
	for (uint32_t i = 0; i < 20; i++) {
		struct rec_script *script =
			make_record(REC_SCRIPT, i % 5 ? 0 : SCRIPT_REQUEST, MS(4 * i + 7) - 1,
				    sizeof(*script), NULL, 0);
		struct rec_switch *out = make_out(MS(4 * i + 7), i + 2, 0);

		script->tid = MAIN;
		script->language = i % (SCRIPT_LANGUAGES + 1);
		script->flags = i % 2 ? SCRIPT_LOCK_HELD : 0;
		script->stack = i % 4 ? SCRIPTS + i % 15 : 0;
		script->thread = TEXT;
		script->lock = i % 3 ? TEXT : 0;
		script->holder = TEXT + i % 2;
		put(writer, script);
		out->syscall = SYSCALL_FUTEX;
		out->args[0] = TEXT + i % 4;
		put(writer, out);
		put(writer, make_waking(MS(4 * i + 8), MAIN, OTHER));
		put_in(writer, MS(4 * i + 9), i + 2);
	}
	end(writer, MS(200));
}

void capture_values_write(const char *folder)
{
	write_switches(folder);
	write_system(folder);
	write_frames(folder);
	write_io(folder);
	write_peers(folder);
	write_scripts(folder);
}
