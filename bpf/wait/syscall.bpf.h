/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall.bpf.h - the system call that a task is in, its first arguments, and the kind of its
 * descriptor (x86-64).
 */
#ifndef WALLPROF_SYSCALL_BPF_H
#define WALLPROF_SYSCALL_BPF_H

#include "fd.bpf.h"
#include "syscalls.h"
#include "user_side.bpf.h"

struct syscall_info {
	u64 args[3];
	u64 fifth_arg;
	u64 timeout_ns; /* see rec_switch; 0 = none; futex_waitv: the word's address */
	u32 owner;	/* holder of the waited-for lock; see rec_switch */
	s32 fd; /* the only descriptor that the call waits for, or the epoll descriptor; -1 = none
		 */
	s16 number; /* -1 = none */
	u8 fd_kind;
	u8 fd_count;
	bool compat;
};

struct pollfd {
	int fd;
	short events;
	short revents;
};

/* Returns a number, which bpf_probe_read_kernel gives and a plain load would not. */
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

/*
 * System calls that wait for descriptors listed in user memory, or watched by another descriptor.
 */
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
 * Which task's memory is read: at a switch the current task's, where pages are not faulted in; in
 * the (sleepable) iterator any task's.
 */
enum task_memory { CURRENT_TASK, ANY_TASK };

static __always_inline long read_user(struct task_struct *task, enum task_memory memory, void *to,
				      u32 size, u64 from)
{
	if (memory == ANY_TASK)
		return bpf_copy_from_user_task(to, size, (void *)from, task, 0);
	return bpf_probe_read_user(to, size, (void *)from);
}

/* The state of reading a poll's list. */
struct poll_scan {
	struct task_struct *task;
	u64 files, list;
	u32 listed, skipped; /* entries in the list; entries read whose descriptor is below 0 */
	u32 kinds;	     /* one bit for each kind among the other entries read */
	s32 fd;		     /* the last descriptor among these */
};

/*
 * The only branches are those that end the loop. Entries whose descriptor is below 0 are ignored.
 */
static __always_inline long poll_read_entry(u32 i, struct poll_scan *scan, enum task_memory memory)
{
	struct pollfd entry;
	s32 none;

	if (i >= scan->listed)
		return 1;
	if (read_user(scan->task, memory, &entry, sizeof(entry), scan->list + i * sizeof(entry))) {
		scan->kinds |= 1U << FD_NONE;
		return 1;
	}
	none = entry.fd >> 31; /* all ones if the entry is ignored, else 0 */
	scan->skipped -= none;
	scan->kinds |= (u32)(none + 1) << (fd_kind(scan->files, entry.fd) & 31);
	scan->fd = (scan->fd & none) | (entry.fd & ~none);
	return 0;
}

static long poll_read_entry_of_task(u32 i, void *scan)
{
	return poll_read_entry(i, scan, ANY_TASK);
}

/*
 * For another task the list is read by bpf_loop(), which the verifier follows once: the verifier of
 * 6.1 would follow each path through an open loop through the rest of the snapshot program.
 */
static __always_inline void poll_info(struct task_struct *task, enum task_memory memory,
				      struct syscall_info *info)
{
	struct poll_scan scan = {
		.task = task,
		.files = files_of(task),
		.list = info->args[0],
		.listed = info->args[1] > 255 ? 255 : info->args[1],
		.fd = -1,
	};
	u64 polled;

	if (memory == ANY_TASK)
		bpf_loop(POLL_FDS_READ, poll_read_entry_of_task, &scan, 0);
	else
		for (u32 i = 0; i < POLL_FDS_READ && !poll_read_entry(i, &scan, memory); i++)
			;
	polled = fd_polled(scan.listed, scan.skipped, scan.kinds, scan.fd);
	info->fd_kind = FD_POLLED_KIND(polled);
	info->fd_count = FD_POLLED_COUNT(polled);
	info->fd = FD_POLLED_FD(polled);
}

static __always_inline u32 count_bits(u64 word)
{
	word -= word >> 1 & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + (word >> 2 & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return word * 0x0101010101010101ULL >> 56;
}

#define SELECT_WORDS 4 /* descriptors below 256; programs with more descriptors use poll */

/* Returns the bits of a word that stand for descriptors below limit. */
static __always_inline u64 select_mask(u32 limit, u32 word)
{
	u32 left = limit > word * 64 ? limit - word * 64 : 0;

	return left >= 64 ? ~0ULL : (1ULL << left) - 1;
}

/*
 * Reads the sets for reading and writing; the set for exceptions is the fourth argument, which is
 * not recorded. There are no branches on the bits, because the verifier would follow each of them.
 */
static __always_inline void select_info(struct task_struct *task, enum task_memory memory,
					struct syscall_info *info)
{
	u64 read_set[SELECT_WORDS] = {}, write_set[SELECT_WORDS] = {}, all = 0;
	u32 limit = info->args[0], count = 0, word = 0;

	info->fd_count = 255;
	if (limit > SELECT_WORDS * 64)
		return;
	if (info->args[1] && read_user(task, memory, read_set, sizeof(read_set), info->args[1]))
		return;
	if (info->args[2] && read_user(task, memory, write_set, sizeof(write_set), info->args[2]))
		return;
	for (u32 i = 0; i < SELECT_WORDS; i++) {
		u64 both = (read_set[i] | write_set[i]) & select_mask(limit, i);
		u32 bits = count_bits(both);

		all |= both;
		count += bits;
		word += i * bits; /* the word with the descriptor, if there is only one */
	}
	info->fd_count = count > 255 ? 255 : count;
	/* The position of a single bit is the number of ones in `all - 1`. */
	if (count != 1)
		return;
	info->fd = word * 64 + count_bits(all - 1);
	info->fd_kind = fd_kind(files_of(task), info->fd);
}

#define LONG_TIME_S (1ULL << 33) /* centuries */

/*
 * The address of the time that a call which only sleeps has as an argument, or of the only entry of
 * futex_waitv. Two numbers are read there: seconds and the rest, or the word's expected value and
 * its address. 0: any other call. If futex_waitv has several entries, it is not known which one
 * will end the wait.
 */
static __always_inline u64 timeout_address(const struct syscall_info *info)
{
	switch (info->number) {
	case SYSCALL_NANOSLEEP:
		return info->args[0];
	case SYSCALL_CLOCK_NANOSLEEP:
		return info->args[2];
	case SYSCALL_SELECT:
	case SYSCALL_PSELECT6:
		return info->args[0] == 0 ? info->fifth_arg : 0;
	case SYSCALL_FUTEX_WAITV:
		return (u32)info->args[1] == 1 ? info->args[0] : 0;
	case SYSCALL_PPOLL:
		return info->args[1] == 0 ? info->args[2] : 0;
	}
	return 0;
}

static __always_inline void timeout_info(struct task_struct *task, enum task_memory memory,
					 struct syscall_info *info)
{
	u64 from = timeout_address(info), time[2]; /* s, and ns or (select) us */

	if (from && !read_user(task, memory, time, sizeof(time), from) && time[0] < LONG_TIME_S)
		info->timeout_ns =
			time[0] * (info->number == SYSCALL_FUTEX_WAITV ? 0 : 1000000000ULL) +
			time[1] * (info->number == SYSCALL_SELECT ? 1000 : 1);
}

static __always_inline void epoll_info(struct task_struct *task, struct syscall_info *info)
{
	int watches = fd_watches(files_of(task), info->args[0]);

	info->fd = info->args[0];
	info->fd_count = FD_WATCHES_COUNT(watches);
	info->fd_kind = FD_WATCHES_KIND(watches);
}

/*
 * splice and tee: finds which of the two descriptors the call waits for. Either the pipe that it
 * reads is empty, or the pipe that it writes is full. The input is checked last, because the kernel
 * reads it only when the output pipe has space (fs/splice.c).
 */
static __always_inline void splice_info(struct task_struct *task, struct syscall_info *info)
{
	u64 files = files_of(task);
	u32 to = info->args[info->number == SYSCALL_SPLICE ? 2 : 1];
	u64 spliced = fd_spliced(files, info->args[0], to);

	info->fd = FD_SPLICED_FD(spliced);
	info->fd_count = FD_SPLICED_TO(spliced);
	info->fd_kind = fd_kind(files, info->fd);
}

/* uapi: linux/futex.h */
#define FUTEX_WAIT	  0
#define FUTEX_LOCK_PI	  6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2	  13
#define FUTEX_COMMAND	  0x7f /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define FUTEX_TID	  0x3fffffff
/*
 * glibc: the futex of a mutex that is locked and has waiters is 2; the owner's tid is 8 bytes after
 * it.
 */
#define MUTEX_WAITED	   2
#define MUTEX_OWNER_OFFSET 8

/*
 * The address of the lock holder's tid (its low bits, FUTEX_TID), which is in the word or beside
 * it. The reader of the capture decides whether that is a thread. 0: no lock.
 */
static __always_inline u64 lock_owner_address(const struct syscall_info *info)
{
	u32 command = info->args[1] & FUTEX_COMMAND;

	if ((command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) &&
	    (u32)info->args[2] == MUTEX_WAITED)
		return info->args[0] + MUTEX_OWNER_OFFSET;
	return command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 ? info->args[0] : 0;
}

/* Reads the owner of the lock that the current task waits for. */
static __always_inline void lock_info(struct syscall_info *info)
{
	u64 address = lock_owner_address(info);

	if (address && !bpf_probe_read_user(&info->owner, sizeof(info->owner), (void *)address))
		info->owner &= FUTEX_TID;
}

/*
 * The address of the word that a call waits for; timeout_ns is syscall_info::timeout_ns. 0: none.
 */
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

static __always_inline void descriptor_info(struct task_struct *task, enum task_memory memory,
					    struct syscall_info *info)
{
	if (syscall_takes_fd(info->number)) {
		/* sendfile reads from its second argument. */
		info->fd = info->args[info->number == SYSCALL_SENDFILE];
		info->fd_kind = fd_kind(files_of(task), info->args[0]);
		return;
	}
	if (info->number == SYSCALL_SPLICE || info->number == SYSCALL_TEE) {
		splice_info(task, info);
		return;
	}
	timeout_info(task, memory, info);
	switch (syscall_multi_fd(info->number)) {
	case MULTI_FD_POLL:
		poll_info(task, memory, info);
		return;
	case MULTI_FD_SELECT:
		select_info(task, memory, info);
		return;
	case MULTI_FD_EPOLL:
		epoll_info(task, info);
		return;
	case MULTI_FD_NONE:
		return;
	}
}

/* Reads the system call that a task is in; descriptor_info() adds what it waits for. */
static __always_inline void syscall_info(struct task_struct *task, struct syscall_info *info)
{
	struct pt_regs *regs;
	u64 number;

	__builtin_memset(info, 0, sizeof(*info));
	info->number = -1;
	info->fd = -1;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	number = regs->orig_ax;
	if (number > 0x7fff) /* -1: not in a call; calls of the x32 ABI (bit 30) are not recorded */
		return;
	if (user_cs(regs) == USER32_CS) {
		info->compat = true;
		return;
	}
	info->number = number;
	info->args[0] = regs->di;
	info->args[1] = regs->si;
	info->args[2] = regs->dx;
	info->fifth_arg = regs->r8;
}

#endif
