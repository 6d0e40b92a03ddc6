/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscalls_x86_64.h - numbers of system calls (arch/x86/entry/syscalls/syscall_64.tbl). Included by
 * syscalls.h alone.
 */
#ifndef WALLPROF_SYSCALLS_X86_64_H
#define WALLPROF_SYSCALLS_X86_64_H

/* System calls that the headers of the oldest supported C library have as well. */
#define SYSCALLS(CALL)                                                                             \
	CALL(READ, read, 0)                                                                        \
	CALL(WRITE, write, 1)                                                                      \
	CALL(CLOSE, close, 3)                                                                      \
	CALL(POLL, poll, 7)                                                                        \
	CALL(IOCTL, ioctl, 16)                                                                     \
	CALL(PREAD64, pread64, 17)                                                                 \
	CALL(PWRITE64, pwrite64, 18)                                                               \
	CALL(READV, readv, 19)                                                                     \
	CALL(WRITEV, writev, 20)                                                                   \
	CALL(SELECT, select, 23)                                                                   \
	CALL(SCHED_YIELD, sched_yield, 24)                                                         \
	CALL(MSYNC, msync, 26)                                                                     \
	CALL(DUP2, dup2, 33)                                                                       \
	CALL(PAUSE, pause, 34)                                                                     \
	CALL(NANOSLEEP, nanosleep, 35)                                                             \
	CALL(SENDFILE, sendfile, 40)                                                               \
	CALL(CONNECT, connect, 42)                                                                 \
	CALL(ACCEPT, accept, 43)                                                                   \
	CALL(SENDTO, sendto, 44)                                                                   \
	CALL(RECVFROM, recvfrom, 45)                                                               \
	CALL(SENDMSG, sendmsg, 46)                                                                 \
	CALL(RECVMSG, recvmsg, 47)                                                                 \
	CALL(SHUTDOWN, shutdown, 48)                                                               \
	CALL(SETSOCKOPT, setsockopt, 54)                                                           \
	CALL(GETSOCKOPT, getsockopt, 55)                                                           \
	CALL(CLONE, clone, 56)                                                                     \
	CALL(VFORK, vfork, 58)                                                                     \
	CALL(EXIT, exit, 60)                                                                       \
	CALL(WAIT4, wait4, 61)                                                                     \
	CALL(SEMOP, semop, 65)                                                                     \
	CALL(MSGSND, msgsnd, 69)                                                                   \
	CALL(MSGRCV, msgrcv, 70)                                                                   \
	CALL(FCNTL, fcntl, 72)                                                                     \
	CALL(FLOCK, flock, 73)                                                                     \
	CALL(FSYNC, fsync, 74)                                                                     \
	CALL(FDATASYNC, fdatasync, 75)                                                             \
	CALL(FTRUNCATE, ftruncate, 77)                                                             \
	CALL(RT_SIGTIMEDWAIT, rt_sigtimedwait, 128)                                                \
	CALL(RT_SIGSUSPEND, rt_sigsuspend, 130)                                                    \
	CALL(SYNC, sync, 162)                                                                      \
	CALL(READAHEAD, readahead, 187)                                                            \
	CALL(FUTEX, futex, 202)                                                                    \
	CALL(IO_GETEVENTS, io_getevents, 208)                                                      \
	CALL(GETDENTS64, getdents64, 217)                                                          \
	CALL(RESTART_SYSCALL, restart_syscall, 219)                                                \
	CALL(SEMTIMEDOP, semtimedop, 220)                                                          \
	CALL(CLOCK_NANOSLEEP, clock_nanosleep, 230)                                                \
	CALL(EXIT_GROUP, exit_group, 231)                                                          \
	CALL(EPOLL_WAIT, epoll_wait, 232)                                                          \
	CALL(MQ_TIMEDSEND, mq_timedsend, 242)                                                      \
	CALL(MQ_TIMEDRECEIVE, mq_timedreceive, 243)                                                \
	CALL(WAITID, waitid, 247)                                                                  \
	CALL(PSELECT6, pselect6, 270)                                                              \
	CALL(PPOLL, ppoll, 271)                                                                    \
	CALL(SPLICE, splice, 275)                                                                  \
	CALL(TEE, tee, 276)                                                                        \
	CALL(SYNC_FILE_RANGE, sync_file_range, 277)                                                \
	CALL(VMSPLICE, vmsplice, 278)                                                              \
	CALL(EPOLL_PWAIT, epoll_pwait, 281)                                                        \
	CALL(FALLOCATE, fallocate, 285)                                                            \
	CALL(ACCEPT4, accept4, 288)                                                                \
	CALL(DUP3, dup3, 292)                                                                      \
	CALL(PREADV, preadv, 295)                                                                  \
	CALL(PWRITEV, pwritev, 296)                                                                \
	CALL(RECVMMSG, recvmmsg, 299)                                                              \
	CALL(SYNCFS, syncfs, 306)                                                                  \
	CALL(SENDMMSG, sendmmsg, 307)                                                              \
	CALL(COPY_FILE_RANGE, copy_file_range, 326)                                                \
	CALL(PREADV2, preadv2, 327)                                                                \
	CALL(PWRITEV2, pwritev2, 328)                                                              \
	CALL(IO_PGETEVENTS, io_pgetevents, 333)                                                    \
	CALL(IO_URING_ENTER, io_uring_enter, 426)                                                  \
	CALL(CLONE3, clone3, 435)                                                                  \
	CALL(CLOSE_RANGE, close_range, 436)                                                        \
	CALL(EPOLL_PWAIT2, epoll_pwait2, 441)                                                      \
	CALL(FUTEX_WAITV, futex_waitv, 449)

/* Newer ones: CALL(name, number). */
#define SYSCALL_NUMBER_FUTEX_WAIT 455 /* Linux 6.7 */

#endif
