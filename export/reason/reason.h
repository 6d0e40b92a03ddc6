/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reason.h - why a thread was not running, and the category that it is drawn in.
 *
 * Rules here use the task state, the system call and its arguments, and the kind of its descriptor;
 * those of kernel_rules.h use the kernel functions that the thread sleeps in. Each result names its
 * rule (enum reason_rule), so that a wait always shows what its reason rests on.
 */
#ifndef WALLPROF_REASON_H
#define WALLPROF_REASON_H

#include "syscalls.h"
#include <stdbool.h>
#include <stdint.h>

/* Index into the profile's categories; the order is that of the profile. */
enum category {
	CATEGORY_OTHER =
		/* The viewer's default, grey; "Unknown" shares the colour. */
	0,
	CATEGORY_IDLE,
	CATEGORY_USER,
	CATEGORY_KERNEL,
	CATEGORY_RECORDING, /* running, in wallprof itself */
	CATEGORY_DISK,
	CATEGORY_FAULT,
	CATEGORY_LOCK,
	CATEGORY_THREAD, /* waiting for another thread */
	CATEGORY_NETWORK,
	CATEGORY_PIPE,
	CATEGORY_RUNNABLE,
	CATEGORY_SLEEP,
	CATEGORY_JOBS, /* between two jobs, waiting for the next */
	CATEGORY_OTHER_WAIT,
	CATEGORY_UNKNOWN,
	CATEGORY_COUNT,
};

typedef struct CategoryInfo {
	const char *name;
	/* The viewer's names: of the colours of a track, and of those of a marker, which are fewer.
	 */
	const char *color, *marker_color;
	const char *meaning;
} CategoryInfo;
extern const CategoryInfo category_info[CATEGORY_COUNT];

/* The kinds of waits that can be idle (idle.h). */
#define IDLE_KINDS(KIND)                                                                           \
	KIND(POLL, "poll")                                                                         \
	KIND(EPOLL, "epoll")                                                                       \
	KIND(NETWORK_POLL, "network poll")                                                         \
	KIND(UNIX_POLL, "unix socket poll")                                                        \
	KIND(PIPE_POLL, "pipe poll")                                                               \
	KIND(ACCEPT, "accept")                                                                     \
	KIND(SIGNAL, "signal")                                                                     \
	KIND(EVENT, "event")                                                                       \
	KIND(IO_URING, "io_uring")                                                                 \
	KIND(AIO, "aio")                                                                           \
	KIND(CONDVAR, "condition variable")                                                        \
	KIND(SEMAPHORE, "semaphore")                                                               \
	KIND(CONDVAR_OR_SEMAPHORE, "condition variable or semaphore")                              \
	KIND(PARK, "park")                                                                         \
	KIND(FUTURE, "future")                                                                     \
	KIND(QUEUE, "queue")                                                                       \
	KIND(FUTEX, "futex")                                                                       \
	KIND(GO_SCHEDULER, "Go scheduler")

/* Likewise, but they are idle only if they do not end, and never between jobs. */
#define END_KINDS(END)                                                                             \
	END(JOIN, "thread join")                                                                   \
	END(CHILD, "child process")

/* The kinds of waits for a disk that a cgroup's limit can hold back. */
#define HELD_KINDS(KIND)                                                                           \
	KIND(DISK_READ, "disk read wait", DISK)                                                    \
	KIND(DISK_WRITE, "disk write wait", DISK)                                                  \
	KIND(DISK_SYNC, "fsync wait", DISK)                                                        \
	KIND(DISK_OTHER, "disk wait", DISK)                                                        \
	KIND(FAULT, "page-fault I/O wait", FAULT)

enum reason {
	REASON_NONE = 0,
	/* runnable */
	REASON_PREEMPTED,
	REASON_YIELDED,
	REASON_THROTTLED, /* its cgroup has used up its CPU time */
	REASON_WOKEN,
	/* blocked */
	REASON_DISK_READ,
	REASON_DISK_WRITE,
	REASON_DISK_SYNC,
	REASON_DISK_OTHER, /* metadata: open, stat, exec, … */
	REASON_DISCARD,	   /* discard: the disk learns which blocks are free */
	REASON_FAULT,	   /* page-fault I/O */
	REASON_MUTEX,
	REASON_RWLOCK,
	REASON_FILE_LOCK,
	REASON_CONDVAR,
	REASON_SEMAPHORE,
	REASON_CONDVAR_OR_SEMAPHORE, /* by the value alone */
	REASON_BARRIER,
	REASON_JOIN,
	REASON_CHILD, /* wait4, waitid */
	REASON_VFORK,
	REASON_FUTEX, /* another futex operation */
	/* shown by functions of the program and its libraries */
	REASON_ONCE,   /* an initialization that another thread does */
	REASON_PARK,   /* until another thread releases this one */
	REASON_FUTURE, /* another thread's result */
	REASON_QUEUE,  /* an item of a queue, or room in it; of a language with queues */
	REASON_LOCK,   /* a lock of a language that does not say which kind it is */
	/* To signal a condition variable: threads that it woke earlier have not left it yet. */
	REASON_CONDVAR_SIGNAL,
	REASON_SAFEPOINT,    /* of the JVM */
	REASON_JVM_MONITOR,  /* synchronized */
	REASON_GIL,	     /* Python's lock, which lets one thread at a time interpret */
	REASON_GIL_HANDOVER, /* until another thread has taken the GIL that this one released */
	REASON_GO_SCHEDULER, /* Go has no goroutine for the thread to run */
	REASON_GO_STOP,	     /* all goroutines are stopped, or about to be */
	REASON_POSIX_AIO,
	REASON_NETWORK_RECEIVE,
	REASON_NETWORK_SEND,
	REASON_NETWORK_CONNECT,
	REASON_NETWORK_POLL,
	REASON_PIPE_READ,
	REASON_PIPE_WRITE,
	REASON_PIPE_POLL,
	REASON_UNIX_RECEIVE,
	REASON_UNIX_SEND,
	REASON_UNIX_CONNECT,
	REASON_UNIX_POLL,
	REASON_IPC, /* System V and POSIX messages and semaphores */
	REASON_SLEEP,
	REASON_TIMER, /* timerfd */
	REASON_TERMINAL,
	REASON_EVENT, /* eventfd, signalfd, … */
	REASON_POLL,  /* several descriptors */
	REASON_EPOLL,
	REASON_ACCEPT,	    /* a connection to a listening socket */
	REASON_IDLE_WORKER, /* a kernel worker without work */
	REASON_IDLE_GUEST,  /* a virtual CPU that has nothing to do */
	REASON_IO_URING,
	REASON_AIO,	/* io_getevents */
	REASON_STOPPED, /* by a signal */
	REASON_TRACED,	/* by a debugger */
	REASON_FROZEN,	/* by a cgroup's freezer */
	REASON_SIGNAL,
	/* shown by the kernel's functions (kernel_rules.h) */
	REASON_KERNEL_MUTEX,
	REASON_KERNEL_RWSEM,
	REASON_KERNEL_PERCPU_RWSEM,
	REASON_KERNEL_SEMAPHORE,
	REASON_SOCKET_LOCK,
	/* Another thread is working on it. */
	REASON_INODE,
	REASON_RCU, /* a grace period */
	REASON_JOURNAL,
	REASON_DIRTY_THROTTLE,	 /* too many dirty pages */
	REASON_REQUEST_THROTTLE, /* too many requests for the device's quality of service */
	REASON_REQUEST_SLOT,	 /* the device's queue is full */
	REASON_RECLAIM,
	REASON_MEMORY_THROTTLE, /* by a cgroup's limit */
	REASON_SWAP,
	REASON_PAGE_MIGRATION,
	REASON_USERFAULT,
	REASON_PIPE_OPEN, /* until the other end is opened */
	REASON_FILE_EVENT,
	REASON_FILE_PERMISSION,
	REASON_SUPERVISOR, /* of seccomp */
	REASON_FUSE,
	REASON_NETWORK_FS,
	REASON_CORE_DUMP,
	REASON_EXEC,
	REASON_EXIT,
	REASON_DEVICE,
	REASON_MODULE,
	REASON_BPF,
	REASON_CPU_STOP,
	REASON_RANDOM,
	REASON_KERNEL_TIMER,
	REASON_KERNEL_WORK,
	REASON_COMPLETION,
	/*
	 * on the critical path only: a request is in flight, and its thread not yet asleep for it
	 */
	REASON_ON_DEVICE,
	/* only the state is known */
	REASON_UNINTERRUPTIBLE, /* D without a better rule */
	REASON_OTHER,
	/* The sleep began before the thread was recorded. */
	REASON_UNSEEN,
/* REASON_HELD_DISK_READ, …: a limit held the request back for most of the wait. */
#define HELD_REASON(kind, text, category) REASON_HELD_##kind,
	HELD_KINDS(HELD_REASON)
#undef HELD_REASON
/* For each kind: REASON_IDLE_POLL, …, with nothing to do, and REASON_BETWEEN_JOBS_POLL, …. */
#define IDLE_REASON(kind, text) REASON_IDLE_##kind,
#define JOBS_REASON(kind, text) REASON_BETWEEN_JOBS_##kind,
		IDLE_KINDS(IDLE_REASON) END_KINDS(IDLE_REASON) IDLE_KINDS(JOBS_REASON)
#undef IDLE_REASON
#undef JOBS_REASON
	/* unknown */
	REASON_LOST,
	REASON_NOT_TRACED, /* switch counts show that the kernel did not trace a switch */
	REASON_COUNT,
};

enum reason_rule {
	RULE_NONE = 0,
	RULE_STATE,	      /* the task state alone */
	RULE_SYSCALL,	      /* the system call */
	RULE_ARGUMENTS,	      /* the system call and its arguments */
	RULE_DESCRIPTOR,      /* the kind of its descriptor */
	RULE_SCHEDULER,	      /* runnable: preempted, yielded, woken */
	RULE_KERNEL,	      /* functions of the kernel */
	RULE_KERNEL_AND_CALL, /* functions show the kind; call and arguments show which one */
	RULE_USER,	      /* functions of the program and its libraries */
	RULE_KERNEL_AND_USER, /* kernel functions show the kind; these show which one */
	RULE_INTERPRETER,     /* the word lies in the lock of an interpreter */
	RULE_FAULT,
	RULE_REQUEST,
	RULE_LOSS,
	RULE_NUMBERS,
	RULE_COUNT,
};
extern const char *const reason_rule_text[RULE_COUNT]; /* "system call and arguments" */

typedef struct ReasonInfo {
	const char *leaf;   /* the pseudo frame: "[mutex wait]" */
	const char *marker; /* the marker's name: "Mutex wait" */
	enum category category;
} ReasonInfo;
extern const ReasonInfo reason_info[REASON_COUNT];

/*
 * Returns the reason of a wait that a cgroup's limit holds back; the reason itself if that makes no
 * difference.
 */
enum reason reason_held(enum reason reason);

/*
 * Returns the reason of such a wait if it is idle, or between jobs (idle.h); REASON_NONE: it never
 * is.
 */
enum reason reason_idle(enum reason reason);
enum reason reason_between_jobs(enum reason reason);

/* Returns whether a category is not counted among a thread's waits: idle, or between jobs. */
static inline bool category_is_idle(enum category category)
{
	return category == CATEGORY_IDLE || category == CATEGORY_JOBS;
}

/* Returns whether a system call waits for the descriptors that an epoll descriptor watches. */
static inline bool reason_is_epoll_call(int syscall)
{
	return syscall == SYSCALL_EPOLL_WAIT || syscall == SYSCALL_EPOLL_PWAIT ||
	       syscall == SYSCALL_EPOLL_PWAIT2;
}

typedef struct ReasonInput {
	uint16_t state; /* TASK_* of the switch-out */
	bool iowait;
	int16_t syscall; /* -1 = none; the last real one if it was restart_syscall */
	uint64_t args[3];
	uint8_t fd_kind, fd_count;
	bool joins;	    /* args[2] is the tid of another thread of its process */
	bool only_thread;   /* the only one of a process of a launched command */
	bool kernel_thread; /* kernel thread or io_uring worker: no calls and no page faults */
} ReasonInput;

/* In a 32-bit system call, whose number has another meaning here. */
#define SYSCALL_UNKNOWN (-2)

/* The source of an interrupt that ended a wait, by the kernel functions that it ran. */
enum interrupt_source {
	INTERRUPT_UNKNOWN = 0,
	INTERRUPT_TIMER,
	INTERRUPT_NETWORK,
	INTERRUPT_BLOCK, /* a request to a block device completed */
	INTERRUPT_IPI,	 /* another CPU requested it */
	INTERRUPT_RCU,
	INTERRUPT_DEVICE, /* another device */
	INTERRUPT_SOURCES
};

/* How the kernel has a thread sleep (include/linux/sched.h: TASK_…), with the letters of ps. */
enum sleep_state {
	SLEEP_INTERRUPTIBLE,   /* S */
	SLEEP_UNINTERRUPTIBLE, /* D */
	SLEEP_FOR_DISK,	       /* D, and counted among those that wait for a disk (iowait) */
	SLEEP_IDLE,	       /* I: not woken by signals, and not busy */
	SLEEP_STOPPED,	       /* T */
	SLEEP_TRACED,	       /* t */
};

/* Returns the sleep state of a thread that switched out like this. */
enum sleep_state reason_sleep_state(const ReasonInput *input);

/*
 * Returns the reason of a wait for epoll, by the number and kinds (1 << enum fd_kind) of what it
 * watches.
 */
enum reason reason_of_epoll(uint32_t count, uint32_t kinds, bool only_thread);

/* Returns why a thread is blocked that switched out like this. */
enum reason reason_classify(const ReasonInput *input, enum reason_rule *ret_rule);

#endif
