/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order of precedence is: stopped or frozen, then an uninterruptible or I/O wait (which is for
 * the kernel's own purpose, whatever the call waits for), then what the system call waits for.
 */
#include "reason.h"
#include "records.h"
#include "util.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>

/* The numbers are those of the C library's headers. */
#define CALL(NAME, name, number) _Static_assert((number) == __NR_##name, #name);
SYSCALLS(CALL)
#undef CALL

/* task_struct::__state, include/linux/sched.h */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED	     0x0004
#define TASK_TRACED	     0x0008
#define TASK_NOLOAD	     0x0400
#define TASK_FREEZABLE	     0x2000
#define TASK_FROZEN	     0x8000

const CategoryInfo category_info[CATEGORY_COUNT] = {
	[CATEGORY_OTHER] = {"Other", "grey", "grey",
			    "names of processes and threads, and markers of processes"},
	[CATEGORY_IDLE] = {"Idle", "transparent", "grey", "a thread that has nothing to do"},
	[CATEGORY_USER] = {"User", "yellow", "yellow", "running in user mode"},
	[CATEGORY_KERNEL] = {"Kernel", "orange", "yellow", "running in the kernel"},
	[CATEGORY_RECORDING] = {"Recording", "lightgreen", "yellow",
				"running time that wallprof itself spent"},
	[CATEGORY_DISK] = {"Disk I/O", "red", "red", "waiting for a block device"},
	[CATEGORY_FAULT] = {"Page-fault I/O", "magenta", "magenta",
			    "waiting for a page: from a file, or from swap"},
	[CATEGORY_LOCK] = {"Lock", "purple", "purple", "waiting for a lock"},
	[CATEGORY_THREAD] = {"Waiting for another thread", "lightblue", "teal",
			     "condition variables, semaphores, joins, child processes"},
	[CATEGORY_NETWORK] = {"Network", "blue", "blue", "waiting for the network"},
	[CATEGORY_PIPE] = {"Pipe/IPC", "green", "green",
			   "waiting for a pipe, a Unix socket or a message"},
	[CATEGORY_RUNNABLE] = {"Runnable", "lightred", "orange", "waiting for a CPU"},
	[CATEGORY_SLEEP] = {"Sleep (timer)", "darkgrey", "ink",
			    "a sleep that the program asked for"},
	[CATEGORY_JOBS] = {"Between jobs", "grey", "grey", "a worker waits for its next job"},
	[CATEGORY_OTHER_WAIT] = {"Other wait", "brown", "ink",
				 "a wait of another kind, or of an unknown one"},
	[CATEGORY_UNKNOWN] = {"Unknown", "grey", "grey", "not proven"},
};

const char *const reason_rule_text[RULE_COUNT] = {
	[RULE_NONE] = "none",
	[RULE_STATE] = "task state",
	[RULE_SYSCALL] = "system call",
	[RULE_ARGUMENTS] = "system call and arguments",
	[RULE_DESCRIPTOR] = "system call and kind of descriptor",
	[RULE_SCHEDULER] = "scheduler",
	[RULE_KERNEL] = "kernel stack",
	[RULE_KERNEL_AND_CALL] = "kernel stack and system call",
	[RULE_USER] = "user stack",
	[RULE_KERNEL_AND_USER] = "kernel stack and user stack",
	[RULE_INTERPRETER] = "lock of the interpreter",
	[RULE_FAULT] = "page fault",
	[RULE_REQUEST] = "the request that completed",
	[RULE_LOSS] = "events lost",
	[RULE_NUMBERS] = "switch counts",
};

const ReasonInfo reason_info[REASON_COUNT] = {
	[REASON_NONE] = {"[no reason]", "None", CATEGORY_OTHER},
	[REASON_PREEMPTED] = {"[runnable: preempted]", "Runnable (preempted)", CATEGORY_RUNNABLE},
	[REASON_YIELDED] = {"[runnable: yielded]", "Runnable (yielded)", CATEGORY_RUNNABLE},
	[REASON_THROTTLED] = {"[runnable: throttled]", "Runnable (throttled)", CATEGORY_RUNNABLE},
	[REASON_WOKEN] = {"[runnable: woken]", "Runnable (woken)", CATEGORY_RUNNABLE},
	[REASON_DISK_READ] = {"[disk read wait]", "Disk read wait", CATEGORY_DISK},
	[REASON_DISK_WRITE] = {"[disk write wait]", "Disk write wait", CATEGORY_DISK},
	[REASON_DISK_SYNC] = {"[fsync wait]", "fsync wait", CATEGORY_DISK},
	[REASON_DISK_OTHER] = {"[disk wait]", "Disk wait", CATEGORY_DISK},
	[REASON_DISCARD] = {"[disk discard wait]", "Disk discard wait", CATEGORY_DISK},
	[REASON_FAULT] = {"[page-fault I/O wait]", "Page-fault I/O wait", CATEGORY_FAULT},
	[REASON_MUTEX] = {"[mutex wait]", "Mutex wait", CATEGORY_LOCK},
	[REASON_RWLOCK] = {"[rwlock wait]", "Rwlock wait", CATEGORY_LOCK},
	[REASON_FILE_LOCK] = {"[file lock wait]", "File lock wait", CATEGORY_LOCK},
	[REASON_CONDVAR] = {"[condition variable wait]", "Condition variable wait",
			    CATEGORY_THREAD},
	[REASON_SEMAPHORE] = {"[semaphore wait]", "Semaphore wait", CATEGORY_THREAD},
	[REASON_CONDVAR_OR_SEMAPHORE] = {"[condition variable or semaphore wait]",
					 "Condition variable or semaphore wait", CATEGORY_THREAD},
	[REASON_BARRIER] = {"[barrier wait]", "Barrier wait", CATEGORY_THREAD},
	[REASON_JOIN] = {"[thread join wait]", "Thread join wait", CATEGORY_THREAD},
	[REASON_CHILD] = {"[child process wait]", "Child process wait", CATEGORY_THREAD},
	[REASON_VFORK] = {"[vfork wait]", "vfork wait", CATEGORY_THREAD},
	[REASON_FUTEX] = {"[futex wait]", "Futex wait", CATEGORY_THREAD},
	[REASON_ONCE] = {"[one-time initialization wait]", "One-time initialization wait",
			 CATEGORY_THREAD},
	[REASON_PARK] = {"[park wait]", "Park wait", CATEGORY_THREAD},
	[REASON_FUTURE] = {"[future wait]", "Future wait", CATEGORY_THREAD},
	[REASON_QUEUE] = {"[queue wait]", "Queue wait", CATEGORY_THREAD},
	[REASON_LOCK] = {"[lock wait]", "Lock wait", CATEGORY_LOCK},
	[REASON_CONDVAR_SIGNAL] = {"[condition variable signal wait]",
				   "Condition variable signal wait", CATEGORY_THREAD},
	[REASON_SAFEPOINT] = {"[JVM safepoint wait]", "JVM safepoint wait", CATEGORY_THREAD},
	[REASON_JVM_MONITOR] = {"[JVM monitor wait]", "JVM monitor wait", CATEGORY_LOCK},
	[REASON_GIL] = {"[Python GIL wait]", "Python GIL wait", CATEGORY_LOCK},
	[REASON_GIL_HANDOVER] = {"[Python GIL handover wait]", "Python GIL handover wait",
				 CATEGORY_THREAD},
	[REASON_GO_SCHEDULER] = {"[Go scheduler wait]", "Go scheduler wait", CATEGORY_THREAD},
	[REASON_GO_STOP] = {"[Go stop-the-world wait]", "Go stop-the-world wait", CATEGORY_THREAD},
	[REASON_POSIX_AIO] = {"[POSIX AIO wait]", "POSIX AIO wait", CATEGORY_THREAD},
	[REASON_NETWORK_RECEIVE] = {"[network receive wait]", "Network receive wait",
				    CATEGORY_NETWORK},
	[REASON_NETWORK_SEND] = {"[network send wait]", "Network send wait", CATEGORY_NETWORK},
	[REASON_NETWORK_CONNECT] = {"[network connection wait]", "Network connection wait",
				    CATEGORY_NETWORK},
	[REASON_NETWORK_POLL] = {"[network poll wait]", "Network poll wait", CATEGORY_NETWORK},
	[REASON_PIPE_READ] = {"[pipe read wait]", "Pipe read wait", CATEGORY_PIPE},
	[REASON_PIPE_WRITE] = {"[pipe write wait]", "Pipe write wait", CATEGORY_PIPE},
	[REASON_PIPE_POLL] = {"[pipe poll wait]", "Pipe poll wait", CATEGORY_PIPE},
	[REASON_UNIX_RECEIVE] = {"[unix socket receive wait]", "Unix socket receive wait",
				 CATEGORY_PIPE},
	[REASON_UNIX_SEND] = {"[unix socket send wait]", "Unix socket send wait", CATEGORY_PIPE},
	[REASON_UNIX_CONNECT] = {"[unix socket connection wait]", "Unix socket connection wait",
				 CATEGORY_PIPE},
	[REASON_UNIX_POLL] = {"[unix socket poll wait]", "Unix socket poll wait", CATEGORY_PIPE},
	[REASON_IPC] = {"[IPC wait]", "IPC wait", CATEGORY_PIPE},
	[REASON_SLEEP] = {"[sleep]", "Sleep", CATEGORY_SLEEP},
	[REASON_TIMER] = {"[timer wait]", "Timer wait", CATEGORY_SLEEP},
	[REASON_TERMINAL] = {"[terminal wait]", "Terminal wait", CATEGORY_OTHER_WAIT},
	[REASON_EVENT] = {"[event wait]", "Event wait", CATEGORY_THREAD},
	[REASON_POLL] = {"[poll wait]", "Poll wait", CATEGORY_OTHER_WAIT},
	[REASON_EPOLL] = {"[epoll wait]", "Epoll wait", CATEGORY_OTHER_WAIT},
	[REASON_ACCEPT] = {"[accept wait]", "Accept wait", CATEGORY_NETWORK},
	[REASON_IDLE_WORKER] = {"[idle: worker]", "Idle: worker", CATEGORY_IDLE},
	[REASON_IDLE_GUEST] = {"[idle: guest]", "Idle: guest", CATEGORY_IDLE},
	[REASON_IO_URING] = {"[io_uring wait]", "io_uring wait", CATEGORY_OTHER_WAIT},
	[REASON_AIO] = {"[aio wait]", "Aio wait", CATEGORY_OTHER_WAIT},
	[REASON_STOPPED] = {"[stopped]", "Stopped", CATEGORY_OTHER_WAIT},
	[REASON_TRACED] = {"[stopped by a tracer]", "Stopped by a tracer", CATEGORY_OTHER_WAIT},
	[REASON_FROZEN] = {"[frozen]", "Frozen", CATEGORY_OTHER_WAIT},
	[REASON_SIGNAL] = {"[signal wait]", "Signal wait", CATEGORY_OTHER_WAIT},
	[REASON_KERNEL_MUTEX] = {"[kernel mutex wait]", "Kernel mutex wait", CATEGORY_LOCK},
	[REASON_KERNEL_RWSEM] = {"[kernel rwsem wait]", "Kernel rwsem wait", CATEGORY_LOCK},
	[REASON_KERNEL_PERCPU_RWSEM] = {"[kernel percpu-rwsem wait]", "Kernel percpu-rwsem wait",
					CATEGORY_LOCK},
	[REASON_KERNEL_SEMAPHORE] = {"[kernel semaphore wait]", "Kernel semaphore wait",
				     CATEGORY_LOCK},
	[REASON_SOCKET_LOCK] = {"[socket lock wait]", "Socket lock wait", CATEGORY_LOCK},
	[REASON_INODE] = {"[inode wait]", "Inode wait", CATEGORY_LOCK},
	[REASON_RCU] = {"[RCU grace period wait]", "RCU grace period wait", CATEGORY_OTHER_WAIT},
	[REASON_JOURNAL] = {"[journal wait]", "Journal wait", CATEGORY_DISK},
	[REASON_DIRTY_THROTTLE] = {"[dirty-page throttling]", "Dirty-page throttling",
				   CATEGORY_DISK},
	[REASON_REQUEST_THROTTLE] = {"[writeback throttling]", "Writeback throttling",
				     CATEGORY_DISK},
	[REASON_REQUEST_SLOT] = {"[disk queue full]", "Disk queue full", CATEGORY_DISK},
	[REASON_RECLAIM] = {"[memory reclaim]", "Memory reclaim", CATEGORY_OTHER_WAIT},
	[REASON_MEMORY_THROTTLE] = {"[cgroup memory throttling]", "Cgroup memory throttling",
				    CATEGORY_OTHER_WAIT},
	[REASON_SWAP] = {"[swap wait]", "Swap wait", CATEGORY_FAULT},
	[REASON_PAGE_MIGRATION] = {"[page migration wait]", "Page migration wait", CATEGORY_FAULT},
	[REASON_USERFAULT] = {"[userfaultfd wait]", "Userfaultfd wait", CATEGORY_THREAD},
	[REASON_PIPE_OPEN] = {"[pipe open wait]", "Pipe open wait", CATEGORY_PIPE},
	[REASON_FILE_EVENT] = {"[file event wait]", "File event wait", CATEGORY_THREAD},
	[REASON_FILE_PERMISSION] = {"[file permission wait]", "File permission wait",
				    CATEGORY_THREAD},
	[REASON_SUPERVISOR] = {"[seccomp supervisor wait]", "Seccomp supervisor wait",
			       CATEGORY_THREAD},
	[REASON_FUSE] = {"[FUSE server wait]", "FUSE server wait", CATEGORY_THREAD},
	[REASON_NETWORK_FS] = {"[network file system wait]", "Network file system wait",
			       CATEGORY_NETWORK},
	[REASON_CORE_DUMP] = {"[core dump wait]", "Core dump wait", CATEGORY_OTHER_WAIT},
	[REASON_EXEC] = {"[exec wait]", "Exec wait", CATEGORY_THREAD},
	[REASON_EXIT] = {"[exit wait]", "Exit wait", CATEGORY_OTHER_WAIT},
	[REASON_DEVICE] = {"[device wait]", "Device wait", CATEGORY_OTHER_WAIT},
	[REASON_MODULE] = {"[module load wait]", "Module load wait", CATEGORY_OTHER_WAIT},
	[REASON_BPF] = {"[BPF wait]", "BPF wait", CATEGORY_OTHER_WAIT},
	[REASON_CPU_STOP] = {"[CPU stop wait]", "CPU stop wait", CATEGORY_OTHER_WAIT},
	[REASON_RANDOM] = {"[random number wait]", "Random number wait", CATEGORY_OTHER_WAIT},
	[REASON_KERNEL_TIMER] = {"[kernel timer wait]", "Kernel timer wait", CATEGORY_SLEEP},
	[REASON_KERNEL_WORK] = {"[kernel work wait]", "Kernel work wait", CATEGORY_OTHER_WAIT},
	[REASON_COMPLETION] = {"[kernel completion wait]", "Kernel completion wait",
			       CATEGORY_OTHER_WAIT},
	[REASON_ON_DEVICE] = {"[on the device]", "On the device", CATEGORY_DISK},
	[REASON_UNINTERRUPTIBLE] = {"[uninterruptible wait]", "Uninterruptible wait",
				    CATEGORY_OTHER_WAIT},
	[REASON_OTHER] = {"[other wait]", "Other wait", CATEGORY_OTHER_WAIT},
	[REASON_UNSEEN] = {"[asleep since before the recording]",
			   "Asleep since before the recording", CATEGORY_OTHER_WAIT},
	[REASON_LOST] = {"[unknown: events lost]", "Events lost", CATEGORY_UNKNOWN},
	[REASON_NOT_TRACED] = {"[unknown: a switch not seen]", "Context switch not traced",
			       CATEGORY_UNKNOWN},
#define HELD_INFO(kind, text, category)                                                            \
	[REASON_HELD_##kind] = {"[" text ": held back by a limit]", text ", held back by a limit", \
				CATEGORY_##category},
	HELD_KINDS(HELD_INFO)
#undef HELD_INFO
#define IDLE_INFO(kind, text)                                                                      \
	[REASON_IDLE_##kind] = {"[idle: " text "]", "Idle: " text, CATEGORY_IDLE},
#define JOBS_INFO(kind, text)                                                                      \
	[REASON_BETWEEN_JOBS_##                                                                    \
		kind] = {"[between jobs: " text "]", "Between jobs: " text, CATEGORY_JOBS},
		IDLE_KINDS(IDLE_INFO) END_KINDS(IDLE_INFO) IDLE_KINDS(JOBS_INFO)
#undef IDLE_INFO
#undef JOBS_INFO
};

enum reason reason_held(enum reason reason)
{
#define HELD_OF(kind, text, category) [REASON_##kind] = REASON_HELD_##kind,
	static const uint8_t held[REASON_COUNT] = {HELD_KINDS(HELD_OF)};

	return held[reason] ? held[reason] : reason;
}

enum reason reason_idle(enum reason reason)
{
#define IDLE_OF(kind, text) [REASON_##kind] = REASON_IDLE_##kind,
	static const uint8_t idle[REASON_COUNT] = {IDLE_KINDS(IDLE_OF) END_KINDS(IDLE_OF)};

	return idle[reason];
}

enum reason reason_between_jobs(enum reason reason)
{
#define JOBS_OF(kind, text) [REASON_##kind] = REASON_BETWEEN_JOBS_##kind,
	static const uint8_t between[REASON_COUNT] = {IDLE_KINDS(JOBS_OF)};

	return between[reason];
}

/* What a system call can wait for. */
enum call {
	CALL_OTHER = 0,
	CALL_READ,     /* of any descriptor */
	CALL_WRITE,    /* likewise */
	CALL_SENDFILE, /* reads a file, writes a descriptor; no user memory */
	CALL_SPLICE,   /* likewise, with a pipe at one end */
	CALL_RECEIVE,  /* of a socket */
	CALL_SEND,
	CALL_CONNECT,
	CALL_ACCEPT,
	CALL_SYNC,
	CALL_FUTEX,
	CALL_FUTEX_OTHER,
	CALL_CLOSE,
	CALL_POLL,
	CALL_SELECT,
	CALL_EPOLL,
	CALL_IO_URING,
	CALL_AIO,
	CALL_SLEEP,
	CALL_SIGNAL,
	CALL_CHILD,
	CALL_CLONE,
	CALL_FILE_LOCK,
	CALL_FCNTL,
	CALL_IPC,
};

static const uint8_t calls[] = {
	[SYSCALL_READ] = CALL_READ,
	[SYSCALL_READV] = CALL_READ,
	[SYSCALL_PREAD64] = CALL_READ,
	[SYSCALL_PREADV] = CALL_READ,
	[SYSCALL_PREADV2] = CALL_READ,
	[SYSCALL_SPLICE] = CALL_SPLICE,
	[SYSCALL_TEE] = CALL_SPLICE,
	[SYSCALL_FUTEX_WAIT] = CALL_FUTEX_OTHER,
	[SYSCALL_READAHEAD] = CALL_READ,
	[SYSCALL_WRITE] = CALL_WRITE,
	[SYSCALL_WRITEV] = CALL_WRITE,
	[SYSCALL_CLOSE] = CALL_CLOSE,
	[SYSCALL_PWRITE64] = CALL_WRITE,
	[SYSCALL_PWRITEV] = CALL_WRITE,
	[SYSCALL_PWRITEV2] = CALL_WRITE,
	[SYSCALL_SENDFILE] = CALL_SENDFILE,
	[SYSCALL_VMSPLICE] = CALL_WRITE,
	[SYSCALL_RECVFROM] = CALL_RECEIVE,
	[SYSCALL_RECVMSG] = CALL_RECEIVE,
	[SYSCALL_RECVMMSG] = CALL_RECEIVE,
	[SYSCALL_SENDTO] = CALL_SEND,
	[SYSCALL_SENDMSG] = CALL_SEND,
	[SYSCALL_SENDMMSG] = CALL_SEND,
	[SYSCALL_CONNECT] = CALL_CONNECT,
	[SYSCALL_ACCEPT] = CALL_ACCEPT,
	[SYSCALL_ACCEPT4] = CALL_ACCEPT,
	[SYSCALL_FSYNC] = CALL_SYNC,
	[SYSCALL_FDATASYNC] = CALL_SYNC,
	[SYSCALL_SYNC] = CALL_SYNC,
	[SYSCALL_SYNCFS] = CALL_SYNC,
	[SYSCALL_SYNC_FILE_RANGE] = CALL_SYNC,
	[SYSCALL_MSYNC] = CALL_SYNC,
	[SYSCALL_FUTEX] = CALL_FUTEX,
	[SYSCALL_FUTEX_WAITV] = CALL_FUTEX_OTHER,
	[SYSCALL_POLL] = CALL_POLL,
	[SYSCALL_PPOLL] = CALL_POLL,
	[SYSCALL_SELECT] = CALL_SELECT,
	[SYSCALL_PSELECT6] = CALL_SELECT,
	[SYSCALL_EPOLL_WAIT] = CALL_EPOLL,
	[SYSCALL_EPOLL_PWAIT] = CALL_EPOLL,
	[SYSCALL_EPOLL_PWAIT2] = CALL_EPOLL,
	[SYSCALL_IO_URING_ENTER] = CALL_IO_URING,
	[SYSCALL_IO_GETEVENTS] = CALL_AIO,
	[SYSCALL_IO_PGETEVENTS] = CALL_AIO,
	[SYSCALL_NANOSLEEP] = CALL_SLEEP,
	[SYSCALL_CLOCK_NANOSLEEP] = CALL_SLEEP,
	[SYSCALL_RT_SIGTIMEDWAIT] = CALL_SIGNAL,
	[SYSCALL_RT_SIGSUSPEND] = CALL_SIGNAL,
	[SYSCALL_PAUSE] = CALL_SIGNAL,
	[SYSCALL_WAIT4] = CALL_CHILD,
	[SYSCALL_WAITID] = CALL_CHILD,
	[SYSCALL_VFORK] = CALL_CLONE,
	[SYSCALL_CLONE] = CALL_CLONE,
	[SYSCALL_CLONE3] = CALL_CLONE,
	[SYSCALL_FLOCK] = CALL_FILE_LOCK,
	[SYSCALL_FCNTL] = CALL_FCNTL,
	[SYSCALL_MSGRCV] = CALL_IPC,
	[SYSCALL_MSGSND] = CALL_IPC,
	[SYSCALL_SEMOP] = CALL_IPC,
	[SYSCALL_SEMTIMEDOP] = CALL_IPC,
	[SYSCALL_MQ_TIMEDRECEIVE] = CALL_IPC,
	[SYSCALL_MQ_TIMEDSEND] = CALL_IPC,
};

static enum call call_of(int syscall)
{
	return syscall >= 0 && (size_t)syscall < ARRAY_LEN(calls) ? calls[syscall] : CALL_OTHER;
}

/*
 * What glibc and Rust's std pass (by strace): a lock waits for the word to change from 2 ("locked,
 * with waiters"), an rwlock from 3, a condition variable or a semaphore from 0, and a join for the
 * thread's tid, which the kernel clears and wakes as a shared futex. Other programs may use these
 * values for other things; names of functions are better (futex_kinds.h).
 */
static enum reason classify_futex(const ReasonInput *input)
{
	uint32_t word = input->args[2];
	bool shared = !(input->args[1] & FUTEX_PRIVATE_FLAG);

	switch (input->args[1] & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return REASON_MUTEX;
	case FUTEX_WAIT_REQUEUE_PI:
		return REASON_CONDVAR;
	case FUTEX_WAIT:
		if (word == 2)
			return REASON_MUTEX;
		break;
	case FUTEX_WAIT_BITSET:
		if (word == 0)
			return REASON_CONDVAR_OR_SEMAPHORE;
		if (word == 2)
			return REASON_MUTEX;
		if (word == 3)
			return REASON_RWLOCK;
		break;
	default:
		return REASON_FUTEX;
	}
	return shared && input->joins ? REASON_JOIN : REASON_FUTEX;
}

static enum reason classify_read(uint8_t fd_kind, enum reason otherwise)
{
	switch (fd_kind) {
	case FD_CHAR:
		return REASON_DEVICE;
	case FD_TTY:
		return REASON_TERMINAL;
	case FD_PIPE:
		return REASON_PIPE_READ;
	case FD_INET:
	case FD_SOCKET:
		return REASON_NETWORK_RECEIVE;
	case FD_UNIX:
		return REASON_UNIX_RECEIVE;
	case FD_ANON:
		return REASON_EVENT;
	}
	return otherwise;
}

static enum reason classify_write(uint8_t fd_kind, enum reason otherwise)
{
	switch (fd_kind) {
	case FD_CHAR:
		return REASON_DEVICE;
	case FD_TTY:
		return REASON_TERMINAL;
	case FD_PIPE:
		return REASON_PIPE_WRITE;
	case FD_INET:
	case FD_SOCKET:
		return REASON_NETWORK_SEND;
	case FD_UNIX:
		return REASON_UNIX_SEND;
	case FD_ANON:
		return REASON_EVENT;
	}
	return otherwise;
}

static enum reason classify_poll_one(uint8_t fd_kind)
{
	switch (fd_kind) {
	case FD_CHAR:
		return REASON_DEVICE;
	case FD_TTY:
		return REASON_TERMINAL;
	case FD_PIPE:
		return REASON_PIPE_POLL;
	case FD_INET:
		return REASON_NETWORK_POLL;
	case FD_UNIX:
		return REASON_UNIX_POLL;
	case FD_LISTEN:
		return REASON_ACCEPT;
	case FD_ANON:
		return REASON_EVENT;
	}
	return REASON_POLL;
}

static enum reason classify_poll_many(const ReasonInput *input, enum reason call)
{
	/* A command's only thread waits for nothing but the network here. */
	return input->only_thread && input->fd_kind == FD_INET ? REASON_NETWORK_POLL : call;
}

static enum reason classify_poll(const ReasonInput *input, enum reason_rule *rule)
{
	*rule = input->args[1] ? RULE_DESCRIPTOR : RULE_ARGUMENTS;
	if (input->fd_count == 0)
		return REASON_SLEEP;
	/* So few descriptors are all described. */
	if (input->fd_count == 1 || (input->only_thread && input->fd_count <= POLL_FDS_READ))
		return classify_poll_one(input->fd_kind);
	return classify_poll_many(input, REASON_POLL);
}

/* The arguments contain only the highest descriptor; BPF counts how many there are. */
static enum reason classify_select(const ReasonInput *input, enum reason_rule *rule)
{
	*rule = RULE_ARGUMENTS;
	if ((uint32_t)input->args[0] == 0 || input->fd_count == 0)
		return REASON_SLEEP;
	*rule = RULE_DESCRIPTOR;
	return input->fd_count == 1 ? classify_poll_one(input->fd_kind)
				    : classify_poll_many(input, REASON_POLL);
}

static enum reason classify_epoll(const ReasonInput *input, enum reason_rule *rule)
{
	*rule = RULE_DESCRIPTOR;
	if (input->fd_count == 0)
		return REASON_SLEEP;
	return input->fd_count == 1 ? classify_poll_one(input->fd_kind)
				    : classify_poll_many(input, REASON_EPOLL);
}

enum reason reason_of_epoll(uint32_t count, uint32_t kinds, bool only_thread)
{
	bool is_one_kind = kinds && !(kinds & (kinds - 1));

	if (count == 0)
		return REASON_SLEEP;
	if (is_one_kind && (count == 1 || only_thread))
		return classify_poll_one(__builtin_ctz(kinds));
	return only_thread && kinds & 1U << FD_INET ? REASON_NETWORK_POLL : REASON_EPOLL;
}

static enum reason classify_call(const ReasonInput *input, enum reason_rule *rule)
{
	uint64_t command = input->args[1];

	*rule = RULE_SYSCALL;
	switch (call_of(input->syscall)) {
	case CALL_SPLICE:
		*rule = RULE_DESCRIPTOR;
		return input->fd_count ? classify_write(input->fd_kind, REASON_OTHER)
				       : classify_read(input->fd_kind, REASON_OTHER);
	case CALL_READ:
		*rule = RULE_DESCRIPTOR;
		return classify_read(input->fd_kind, REASON_OTHER);
	case CALL_CLOSE: /* the kind is known only for a socket */
	case CALL_WRITE:
	case CALL_SENDFILE:
		*rule = RULE_DESCRIPTOR;
		return classify_write(input->fd_kind, REASON_OTHER);
	case CALL_RECEIVE:
		*rule = RULE_DESCRIPTOR;
		return classify_read(input->fd_kind, REASON_NETWORK_RECEIVE);
	case CALL_SEND:
		*rule = RULE_DESCRIPTOR;
		return classify_write(input->fd_kind, REASON_NETWORK_SEND);
	case CALL_CONNECT:
		*rule = RULE_DESCRIPTOR;
		return input->fd_kind == FD_UNIX ? REASON_UNIX_CONNECT : REASON_NETWORK_CONNECT;
	case CALL_ACCEPT:
		return REASON_ACCEPT;
	case CALL_FUTEX:
		*rule = RULE_ARGUMENTS;
		return classify_futex(input);
	case CALL_FUTEX_OTHER:
		return REASON_FUTEX;
	case CALL_POLL:
		return classify_poll(input, rule);
	case CALL_SELECT:
		return classify_select(input, rule);
	case CALL_EPOLL:
		return classify_epoll(input, rule);
	case CALL_IO_URING:
		return REASON_IO_URING;
	case CALL_AIO:
		return REASON_AIO;
	case CALL_SLEEP:
		return REASON_SLEEP;
	case CALL_SIGNAL:
		return REASON_SIGNAL;
	case CALL_CHILD:
		return REASON_CHILD;
	case CALL_CLONE:
		return REASON_OTHER;
	case CALL_FILE_LOCK:
		return REASON_FILE_LOCK;
	case CALL_FCNTL:
		*rule = RULE_ARGUMENTS;
		return command == F_SETLKW || command == F_OFD_SETLKW ? REASON_FILE_LOCK
								      : REASON_OTHER;
	case CALL_IPC:
		return REASON_IPC;
	case CALL_SYNC:
	case CALL_OTHER:
		break;
	}
	*rule = input->syscall < 0 ? RULE_STATE : RULE_SYSCALL;
	return REASON_OTHER;
}

/* A disk wait in a call on something that is not on a disk: the call's buffer was paged out. */
static bool is_diskless(uint8_t fd_kind)
{
	switch (fd_kind) {
	case FD_PIPE:
	case FD_INET:
	case FD_UNIX:
	case FD_SOCKET:
	case FD_ANON:
	case FD_TTY:
		return true;
	}
	return false;
}

static enum reason classify_uninterruptible(const ReasonInput *input, enum reason_rule *rule)
{
	enum call call = call_of(input->syscall);

	*rule = RULE_SYSCALL;
	/* ext4's wait for the journal's commit is not marked as one for I/O. */
	if (call == CALL_SYNC)
		return REASON_DISK_SYNC;
	/*
	 * Only the wait for a vfork child is freezable (since 6.1); clone may also wait for the
	 * lock of the address space it copies.
	 */
	if (call == CALL_CLONE && input->state & TASK_FREEZABLE)
		return REASON_VFORK;
	*rule = RULE_STATE;
	if (input->kernel_thread)
		return input->iowait ? REASON_DISK_OTHER : REASON_UNINTERRUPTIBLE;
	/* It may be a lock: of a mapping, a file, a journal. Kernel functions decide. */
	if (!input->iowait)
		return REASON_UNINTERRUPTIBLE;
	if (input->syscall == -1)
		return REASON_FAULT;
	*rule = RULE_SYSCALL;
	if (call == CALL_SENDFILE)
		return REASON_DISK_READ;
	if (call != CALL_READ && call != CALL_WRITE && call != CALL_RECEIVE && call != CALL_SEND)
		return REASON_DISK_OTHER;
	if (is_diskless(input->fd_kind)) {
		*rule = RULE_DESCRIPTOR;
		return REASON_FAULT;
	}
	return call == CALL_READ || call == CALL_RECEIVE ? REASON_DISK_READ : REASON_DISK_WRITE;
}

enum sleep_state reason_sleep_state(const ReasonInput *input)
{
	if (input->state & TASK_TRACED)
		return SLEEP_TRACED;
	if (input->state & TASK_STOPPED)
		return SLEEP_STOPPED;
	if (input->iowait)
		return SLEEP_FOR_DISK;
	if (!(input->state & TASK_UNINTERRUPTIBLE))
		return SLEEP_INTERRUPTIBLE;
	return input->state & TASK_NOLOAD ? SLEEP_IDLE : SLEEP_UNINTERRUPTIBLE;
}

enum reason reason_classify(const ReasonInput *input, enum reason_rule *ret_rule)
{
	bool idle = input->state & TASK_NOLOAD; /* TASK_IDLE: uninterruptible, but not busy */

	if (input->state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN)) {
		*ret_rule = RULE_STATE;
		return input->state & TASK_FROZEN   ? REASON_FROZEN
		       : input->state & TASK_TRACED ? REASON_TRACED
						    : REASON_STOPPED;
	}
	if ((input->state & TASK_UNINTERRUPTIBLE && !idle) ||
	    (input->iowait && input->syscall == -1))
		return classify_uninterruptible(input, ret_rule);
	return classify_call(input, ret_rule);
}
