/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall.bpf.h - which system call a task is in, with its first arguments, and what
 * kind of descriptor it is about (x86-64).
 */
#ifndef WALLPROF_SYSCALL_BPF_H
#define WALLPROF_SYSCALL_BPF_H

#include "wallprof.bpf.h"

struct syscall_facts {
	u64 args[3];
	s16 number; /* -1 = none */
	u8 fd_kind;
	u8 fd_count;
	bool compat;
};

/* uapi: linux/stat.h, linux/socket.h, net/tcp_states.h */
#define S_IFMT	   00170000
#define S_IFSOCK   0140000
#define S_IFREG	   0100000
#define S_IFBLK	   0060000
#define S_IFDIR	   0040000
#define S_IFCHR	   0020000
#define S_IFIFO	   0010000
#define AF_UNIX	   1
#define AF_INET	   2
#define AF_INET6   10
#define TCP_LISTEN 10

struct pollfd {
	int fd;
	short events;
	short revents;
};
#define POLL_LOOKED_AT 4

/* pt_regs::cs became 16 bits wide, in a union with FRED's flags, in 6.9. */
static __always_inline u16 user_cs(struct pt_regs *regs)
{
	struct pt_regs___fred *fred = (void *)regs;

	if (bpf_core_field_size(regs->cs) == sizeof(u16))
		return BPF_CORE_READ(fred, cs);
	return BPF_CORE_READ(regs, cs);
}

/*
 * What descriptor fd of the current task is. A global function, so that the verifier walks
 * it once and not at each place of poll_kind's loop: 15,000 instructions instead of 96,000.
 */
extern int current_fd_kind(u32 fd);

/* x86-64 system calls whose first argument is the descriptor they may wait for. */
static __always_inline bool call_on_descriptor(u32 number)
{
	switch (number) {
	case 0:	  /* read */
	case 1:	  /* write */
	case 16:  /* ioctl */
	case 17:  /* pread64 */
	case 18:  /* pwrite64 */
	case 19:  /* readv */
	case 20:  /* writev */
	case 40:  /* sendfile: to */
	case 42:  /* connect */
	case 43:  /* accept */
	case 44:  /* sendto */
	case 45:  /* recvfrom */
	case 46:  /* sendmsg */
	case 47:  /* recvmsg */
	case 72:  /* fcntl */
	case 73:  /* flock */
	case 74:  /* fsync */
	case 75:  /* fdatasync */
	case 275: /* splice: from */
	case 288: /* accept4 */
	case 295: /* preadv */
	case 296: /* pwritev */
	case 299: /* recvmmsg */
	case 307: /* sendmmsg */
	case 327: /* preadv2 */
	case 328: /* pwritev2 */
		return true;
	}
	return false;
}

static __always_inline bool call_is_poll(u32 number)
{
	return number == 7 /* poll */ || number == 271 /* ppoll */;
}

/* Of several descriptors, an Internet socket tells most about what is waited for. */
static __always_inline u8 poll_kind(u64 user_fds, u32 count)
{
	u8 best = FD_NONE;

	for (u32 i = 0; i < POLL_LOOKED_AT; i++) {
		struct pollfd entry;
		u8 kind;

		if (i >= count)
			break;
		if (bpf_probe_read_user(&entry, sizeof(entry),
					(void *)user_fds + i * sizeof(entry)))
			break;
		kind = current_fd_kind(entry.fd);
		if (kind == FD_INET)
			return kind;
		if (best == FD_NONE)
			best = kind;
	}
	return best;
}

/*
 * Fills facts for a task that is off CPU or about to be. is_current: whether its
 * descriptors and memory may be looked at.
 */
static __always_inline void syscall_facts(struct task_struct *task, bool is_current,
					  struct syscall_facts *facts)
{
	struct pt_regs *regs;
	u64 number;

	__builtin_memset(facts, 0, sizeof(*facts));
	facts->number = -1;
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
	if (call_is_poll(number))
		facts->fd_count = facts->args[1] > 255 ? 255 : facts->args[1];
	if (!is_current)
		return;
	if (call_on_descriptor(number))
		facts->fd_kind = current_fd_kind(facts->args[0]);
	else if (call_is_poll(number))
		facts->fd_kind = poll_kind(facts->args[0], facts->fd_count);
}

#endif
