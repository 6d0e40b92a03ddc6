/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall.bpf.h - which system call a task is in, with its first arguments, and what
 * kind of descriptor it is about (x86-64).
 */
#ifndef WALLPROF_SYSCALL_BPF_H
#define WALLPROF_SYSCALL_BPF_H

#include "fd.bpf.h"
#include "syscalls.h"
#include "user_side.bpf.h"

struct syscall_info {
	u64 args[3];
	u64 fifth;	/* argument */
	u64 timeout_ns; /* see rec_switch; 0 = none; of futex_waitv the word */
	u32 owner;	/* of the lock that is waited for; see rec_switch */
	s32 fd;		/* the one descriptor that the call is about, or that epoll waits for; -1 */
	s16 number;	/* -1 = none */
	u8 fd_kind;
	u8 fd_count;
	bool compat;
};

struct pollfd {
	int fd;
	short events;
	short revents;
};

/* As a number, which bpf_probe_read_kernel gives and a plain load would not. */
static __always_inline u64 files_of(struct task_struct *task)
{
	return (u64)BPF_CORE_READ(task, files);
}

/* System calls whose first argument is the descriptor they may wait for. */
static __always_inline bool syscall_takes_fd(u32 number)
{
	switch (number) {
	case SYSCALL_READ:
	case SYSCALL_WRITE:
	case SYSCALL_IOCTL:
	case SYSCALL_PREAD64:
	case SYSCALL_PWRITE64:
	case SYSCALL_READV:
	case SYSCALL_WRITEV:
	case SYSCALL_SENDFILE:
	case SYSCALL_CONNECT:
	case SYSCALL_ACCEPT:
	case SYSCALL_SENDTO:
	case SYSCALL_RECVFROM:
	case SYSCALL_SENDMSG:
	case SYSCALL_RECVMSG:
	case SYSCALL_SHUTDOWN:
	case SYSCALL_SETSOCKOPT:
	case SYSCALL_GETSOCKOPT:
	case SYSCALL_FCNTL:
	case SYSCALL_FLOCK:
	case SYSCALL_FSYNC:
	case SYSCALL_FDATASYNC:
	case SYSCALL_FTRUNCATE:
	case SYSCALL_READAHEAD:
	case SYSCALL_GETDENTS64:
	case SYSCALL_SYNC_FILE_RANGE:
	case SYSCALL_VMSPLICE:
	case SYSCALL_FALLOCATE:
	case SYSCALL_ACCEPT4:
	case SYSCALL_PREADV:
	case SYSCALL_PWRITEV:
	case SYSCALL_RECVMMSG:
	case SYSCALL_SYNCFS:
	case SYSCALL_SENDMMSG:
	case SYSCALL_COPY_FILE_RANGE:
	case SYSCALL_PREADV2:
	case SYSCALL_PWRITEV2:
		return true;
	}
	return false;
}

/* System calls that may close a descriptor, and with it a socket. */
static __always_inline bool syscall_closes_fd(s32 number)
{
	switch (number) {
	case SYSCALL_CLOSE:
	case SYSCALL_DUP2:
	case SYSCALL_EXIT:
	case SYSCALL_EXIT_GROUP:
	case SYSCALL_DUP3:
	case SYSCALL_CLOSE_RANGE:
		return true;
	}
	return false;
}

/* The calls that wait for descriptors listed in user memory, or watched by another descriptor. */
enum multi_fd_call { MULTI_FD_NONE, MULTI_FD_POLL, MULTI_FD_SELECT, MULTI_FD_EPOLL };

static __always_inline enum multi_fd_call syscall_multi_fd(u32 number)
{
	switch (number) {
	case SYSCALL_POLL:
	case SYSCALL_PPOLL:
		return MULTI_FD_POLL;
	case SYSCALL_SELECT:
	case SYSCALL_PSELECT6:
		return MULTI_FD_SELECT;
	case SYSCALL_EPOLL_WAIT:
	case SYSCALL_EPOLL_PWAIT:
	case SYSCALL_EPOLL_PWAIT2:
		return MULTI_FD_EPOLL;
	}
	return MULTI_FD_NONE;
}

/*
 * Whose memory is read: at a switch the current task's, which does not fault pages in; in the
 * (sleepable) iterator any task's.
 */
enum whose { CURRENT_TASK, ANY_TASK };

static __always_inline long read_user(struct task_struct *task, enum whose whose, void *to,
				      u32 size, u64 from)
{
	if (whose == ANY_TASK)
		return bpf_copy_from_user_task(to, size, (void *)from, task, 0);
	return bpf_probe_read_user(to, size, (void *)from);
}

/* A poll's list, as far as it was gone through. */
struct polling {
	struct task_struct *task;
	u64 files, list;
	u32 listed, skipped; /* how long it is; how many of those that were looked at are none */
	u32 kinds;	     /* the bits of the kinds of the others, */
	s32 fd;		     /* and the last one of them */
};

/* Without branches but those that end it. Descriptors below 0 are none. */
static __always_inline long poll_read_entry(u32 i, struct polling *polling, enum whose whose)
{
	struct pollfd entry;
	s32 none;

	if (i >= polling->listed)
		return 1;
	if (read_user(polling->task, whose, &entry, sizeof(entry),
		      polling->list + i * sizeof(entry))) {
		polling->kinds |= 1U << FD_NONE;
		return 1;
	}
	none = entry.fd >> 31; /* all ones, or 0 */
	polling->skipped -= none;
	polling->kinds |= (u32)(none + 1) << (fd_kind(polling->files, entry.fd) & 31);
	polling->fd = (polling->fd & none) | (entry.fd & ~none);
	return 0;
}

static long poll_read_entry_of_task(u32 i, void *polling)
{
	return poll_read_entry(i, polling, ANY_TASK);
}

/*
 * Of another task in a loop that the verifier goes through once: that of 6.1 would follow each way
 * through it through all of a snapshot's program.
 */
static __always_inline void poll_info(struct task_struct *task, enum whose whose,
				      struct syscall_info *facts)
{
	struct polling polling = {
		.task = task,
		.files = files_of(task),
		.list = facts->args[0],
		.listed = facts->args[1] > 255 ? 255 : facts->args[1],
		.fd = -1,
	};
	u64 polled;

	if (whose == ANY_TASK)
		bpf_loop(POLL_FDS_READ, poll_read_entry_of_task, &polling, 0);
	else
		for (u32 i = 0; i < POLL_FDS_READ && !poll_read_entry(i, &polling, whose); i++)
			;
	polled = fd_polled(polling.listed, polling.skipped, polling.kinds, polling.fd);
	facts->fd_kind = FD_POLLED_KIND(polled);
	facts->fd_count = FD_POLLED_COUNT(polled);
	facts->fd = FD_POLLED_FD(polled);
}

static __always_inline u32 count_bits(u64 word)
{
	word -= word >> 1 & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + (word >> 2 & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return word * 0x0101010101010101ULL >> 56;
}

#define SELECT_WORDS 4 /* descriptors below 256; programs with more use poll */

/* The bits of a word that stand for descriptors below limit. */
static __always_inline u64 select_mask(u32 limit, u32 word)
{
	u32 left = limit > word * 64 ? limit - word * 64 : 0;

	return left >= 64 ? ~0ULL : (1ULL << left) - 1;
}

/*
 * The sets for reading and writing; that for exceptions is the fourth argument, not told.
 * Without branches on the bits: the verifier would follow each of them.
 */
static __always_inline void select_info(struct task_struct *task, enum whose whose,
					struct syscall_info *facts)
{
	u64 read_set[SELECT_WORDS] = {}, write_set[SELECT_WORDS] = {}, all = 0;
	u32 limit = facts->args[0], count = 0, word = 0;

	facts->fd_count = 255;
	if (limit > SELECT_WORDS * 64)
		return;
	if (facts->args[1] && read_user(task, whose, read_set, sizeof(read_set), facts->args[1]))
		return;
	if (facts->args[2] && read_user(task, whose, write_set, sizeof(write_set), facts->args[2]))
		return;
	for (u32 i = 0; i < SELECT_WORDS; i++) {
		u64 both = (read_set[i] | write_set[i]) & select_mask(limit, i);
		u32 bits = count_bits(both);

		all |= both;
		count += bits;
		word += i * bits; /* which one, if it is one descriptor */
	}
	facts->fd_count = count > 255 ? 255 : count;
	/* A bit's place in its word is the number of ones below it. */
	if (count != 1)
		return;
	facts->fd = word * 64 + count_bits(all - 1);
	facts->fd_kind = fd_kind(files_of(task), facts->fd);
}

#define LONG_TIME_S (1ULL << 33) /* centuries */

/*
 * The address of the time that a call which only sleeps is given, or of the only word that
 * futex_waitv is given; both are the second of two numbers. 0: any other call. If futex_waitv is
 * given several words, it is not known which one will end the wait.
 */
static __always_inline u64 timeout_address(const struct syscall_info *facts)
{
	switch (facts->number) {
	case SYSCALL_NANOSLEEP:
		return facts->args[0];
	case SYSCALL_CLOCK_NANOSLEEP:
		return facts->args[2];
	case SYSCALL_SELECT:
	case SYSCALL_PSELECT6:
		return facts->args[0] == 0 ? facts->fifth : 0;
	case SYSCALL_FUTEX_WAITV:
		return (u32)facts->args[1] == 1 ? facts->args[0] : 0;
	case SYSCALL_PPOLL:
		return facts->args[1] == 0 ? facts->args[2] : 0;
	}
	return 0;
}

static __always_inline void timeout_info(struct task_struct *task, enum whose whose,
					 struct syscall_info *facts)
{
	u64 from = timeout_address(facts), time[2]; /* s, and ns or (select) us */

	if (from && !read_user(task, whose, time, sizeof(time), from) && time[0] < LONG_TIME_S)
		facts->timeout_ns =
			time[0] * (facts->number == SYSCALL_FUTEX_WAITV ? 0 : 1000000000ULL) +
			time[1] * (facts->number == SYSCALL_SELECT ? 1000 : 1);
}

static __always_inline void epoll_info(struct task_struct *task, struct syscall_info *facts)
{
	int watches = fd_watches(files_of(task), facts->args[0]);

	facts->fd = facts->args[0];
	facts->fd_count = FD_WATCHES_COUNT(watches);
	facts->fd_kind = FD_WATCHES_KIND(watches);
}

/*
 * splice and tee: the one of the two descriptors that the call waits for. Either the pipe that is
 * read is empty, or what is written to is full. The input is checked last, because the kernel reads
 * it only when the output pipe has room (fs/splice.c).
 */
static __always_inline void splice_info(struct task_struct *task, struct syscall_info *facts)
{
	u64 files = files_of(task);
	u32 to = facts->args[facts->number == SYSCALL_SPLICE ? 2 : 1];
	u64 spliced = fd_spliced(files, facts->args[0], to);

	facts->fd = FD_SPLICED_FD(spliced);
	facts->fd_count = FD_SPLICED_TO(spliced);
	facts->fd_kind = fd_kind(files, facts->fd);
}

/* uapi: linux/futex.h */
#define FUTEX_WAIT	  0
#define FUTEX_LOCK_PI	  6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2	  13
#define FUTEX_COMMAND	  0x7f /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define FUTEX_TID	  0x3fffffff
/* glibc: the futex of a mutex that is locked and waited for is 2; its owner stands 8 bytes on. */
#define MUTEX_WAITED	   2
#define MUTEX_OWNER_OFFSET 8

/*
 * Where whoever has what is waited for is written, in the low bits (FUTEX_TID): beside the word, or
 * in it. It is up to the reader whether that is a thread. 0: nowhere.
 */
static __always_inline u64 lock_owner_address(const struct syscall_info *facts)
{
	u32 command = facts->args[1] & FUTEX_COMMAND;

	if ((command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) &&
	    (u32)facts->args[2] == MUTEX_WAITED)
		return facts->args[0] + MUTEX_OWNER_OFFSET;
	return command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 ? facts->args[0] : 0;
}

/* Of the current task. */
static __always_inline void lock_info(struct syscall_info *facts)
{
	u64 address = lock_owner_address(facts);

	if (address && !bpf_probe_read_user(&facts->owner, sizeof(facts->owner), (void *)address))
		facts->owner &= FUTEX_TID;
}

/* The word that a call waits for, given the value in the place of its timeout; 0: none. */
static __always_inline u64 futex_word(s32 number, u64 first_argument, u64 timeout_ns)
{
	switch (number) {
	case SYSCALL_FUTEX:
	case SYSCALL_FUTEX_WAIT:
		return first_argument;
	case SYSCALL_FUTEX_WAITV:
		return timeout_ns;
	}
	return 0;
}

static __always_inline void descriptor_info(struct task_struct *task, enum whose whose,
					    struct syscall_info *facts)
{
	if (syscall_takes_fd(facts->number)) {
		/* sendfile reads from its second argument. */
		facts->fd = facts->args[facts->number == SYSCALL_SENDFILE];
		facts->fd_kind = fd_kind(files_of(task), facts->args[0]);
		return;
	}
	if (facts->number == SYSCALL_SPLICE || facts->number == SYSCALL_TEE) {
		splice_info(task, facts);
		return;
	}
	timeout_info(task, whose, facts);
	switch (syscall_multi_fd(facts->number)) {
	case MULTI_FD_POLL:
		poll_info(task, whose, facts);
		return;
	case MULTI_FD_SELECT:
		select_info(task, whose, facts);
		return;
	case MULTI_FD_EPOLL:
		epoll_info(task, facts);
		return;
	case MULTI_FD_NONE:
		return;
	}
}

/* The call that a task is in; descriptor_info adds what it is about. */
static __always_inline void syscall_info(struct task_struct *task, struct syscall_info *facts)
{
	struct pt_regs *regs;
	u64 number;

	__builtin_memset(facts, 0, sizeof(*facts));
	facts->number = -1;
	facts->fd = -1;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	number = regs->orig_ax;
	if (number > 0x7fff) /* -1: not in a call; the x32 ABI's bit 30 is not told either */
		return;
	if (user_cs(regs) == USER32_CS) {
		facts->compat = true;
		return;
	}
	facts->number = number;
	facts->args[0] = regs->di;
	facts->args[1] = regs->si;
	facts->args[2] = regs->dx;
	facts->fifth = regs->r8;
}

#endif
