/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "labels.h"
#include "util.h"
#include <stddef.h>
#include <string.h>

const char *loss_cause_label(uint32_t cause)
{
	static const char *const labels[LOSS_CAUSE_MAX] = {
		[LOSS_RING_FULL] = "ring full",
		[LOSS_SCRATCH_BUSY] = "scratch memory busy",
		[LOSS_SIDEBAND] = "perf side-band full",
		[LOSS_RECURSION] = "hook already running on that CPU",
		[LOSS_UNWALKED] = "no room, or program unknown",
	};

	return cause < ARRAY_LEN(labels) && labels[cause] ? labels[cause] : "unknown cause";
}

static const struct {
	const char *key, *words;
} stack_ends[STACK_ENDS] = {
	[STACK_COMPLETE] = {"complete", NULL},
	/* The reason why these are truncated depends on where they end: see frames_stacks.c. */
	[STACK_FRAME_POINTERS] = {"frame_pointers", NULL},
	[STACK_TRUNCATED] = {"too_deep", "too deep"},
	[STACK_FAULT] = {"unreadable", "unreadable stack"},
	[STACK_END_ZERO] = {"end_zero", "return address is 0"},
	[STACK_NO_MAPPING] = {"no_mapping", "no mapping known"},
	[STACK_NO_TABLE] = {"table_not_ready", "unwind table not ready"},
	[STACK_NO_CFI] = {"no_table", "no unwind table"},
	[STACK_GAP] = {"gap", "gap in unwind table"},
	[STACK_UNSUPPORTED] = {"unsupported_rule", "unsupported unwind rule"},
	[STACK_REGISTER] = {"register_not_known", "register not known"},
	[STACK_BAD_CFA] = {"frame_below_caller", "frame below its caller"},
	[STACK_BAD_PC] = {"bad_return_address", "bad return address"},
	[STACK_COMPAT] = {"code_32_bit", "32-bit code"},
	[STACK_EXEC] = {"in_exec", "in exec"},
	[STACK_COPY_SHORT] = {"copy_too_short", "copy of stack too short"},
	[STACK_NO_MM] = {"process_ending", "process is ending"},
	[STACK_END_STALE] = {"table_out_of_date", "table out of date"},
	[STACK_END_LOST] = {"lost", "stack lost"},
	[STACK_END_UNKNOWN] = {"unknown", "unknown reason"},
};

const char *stack_end_words(enum stack_end end)
{
	return stack_ends[end].words;
}

const char *stack_end_key(enum stack_end end)
{
	return stack_ends[end].key;
}

static const struct {
	const char *key, *words;
} code_kinds[CODE_KINDS] = {
	[CODE_FILE] = {"file", "programs and libraries"},
	[CODE_MADE] = {"made_at_run_time", "code made at run time"},
	[CODE_UNREAD] = {"unread_file", "files of other formats, or not readable"},
	[CODE_32_BIT] = {"code_32_bit", "32-bit code"},
	[CODE_NOWHERE] = {"nowhere", "no known mapping"},
};

const char *stack_code_words(enum code_kind kind)
{
	return code_kinds[kind].words;
}

const char *stack_code_key(enum code_kind kind)
{
	return code_kinds[kind].key;
}

/*
 * Numbers of the x86-64 table, written out: captures are also read on other machines, whose own
 * numbers may differ.
 */
static const struct {
	int number;
	const char *name;
} syscalls[] = {
	{0, "read"},
	{1, "write"},
	{2, "open"},
	{3, "close"},
	{4, "stat"},
	{5, "fstat"},
	{6, "lstat"},
	{7, "poll"},
	{9, "mmap"},
	{10, "mprotect"},
	{11, "munmap"},
	{12, "brk"},
	{16, "ioctl"},
	{17, "pread64"},
	{18, "pwrite64"},
	{19, "readv"},
	{20, "writev"},
	{21, "access"},
	{22, "pipe"},
	{23, "select"},
	{24, "sched_yield"},
	{25, "mremap"},
	{26, "msync"},
	{28, "madvise"},
	{34, "pause"},
	{35, "nanosleep"},
	{40, "sendfile"},
	{42, "connect"},
	{43, "accept"},
	{44, "sendto"},
	{45, "recvfrom"},
	{46, "sendmsg"},
	{47, "recvmsg"},
	{56, "clone"},
	{57, "fork"},
	{58, "vfork"},
	{59, "execve"},
	{60, "exit"},
	{61, "wait4"},
	{65, "semop"},
	{69, "msgsnd"},
	{70, "msgrcv"},
	{72, "fcntl"},
	{73, "flock"},
	{74, "fsync"},
	{75, "fdatasync"},
	{76, "truncate"},
	{77, "ftruncate"},
	{78, "getdents"},
	{80, "chdir"},
	{82, "rename"},
	{83, "mkdir"},
	{84, "rmdir"},
	{85, "creat"},
	{86, "link"},
	{87, "unlink"},
	{88, "symlink"},
	{89, "readlink"},
	{90, "chmod"},
	{91, "fchmod"},
	{92, "chown"},
	{93, "fchown"},
	{94, "lchown"},
	{128, "rt_sigtimedwait"},
	{130, "rt_sigsuspend"},
	{132, "utime"},
	{133, "mknod"},
	{137, "statfs"},
	{138, "fstatfs"},
	{161, "chroot"},
	{162, "sync"},
	{165, "mount"},
	{166, "umount2"},
	{187, "readahead"},
	{188, "setxattr"},
	{189, "lsetxattr"},
	{190, "fsetxattr"},
	{191, "getxattr"},
	{192, "lgetxattr"},
	{193, "fgetxattr"},
	{194, "listxattr"},
	{195, "llistxattr"},
	{196, "flistxattr"},
	{197, "removexattr"},
	{202, "futex"},
	{208, "io_getevents"},
	{217, "getdents64"},
	{219, "restart_syscall"},
	{220, "semtimedop"},
	{221, "fadvise64"},
	{230, "clock_nanosleep"},
	{231, "exit_group"},
	{232, "epoll_wait"},
	{235, "utimes"},
	{242, "mq_timedsend"},
	{243, "mq_timedreceive"},
	{247, "waitid"},
	{257, "openat"},
	{258, "mkdirat"},
	{259, "mknodat"},
	{260, "fchownat"},
	{261, "futimesat"},
	{262, "newfstatat"},
	{263, "unlinkat"},
	{264, "renameat"},
	{265, "linkat"},
	{266, "symlinkat"},
	{267, "readlinkat"},
	{268, "fchmodat"},
	{269, "faccessat"},
	{270, "pselect6"},
	{271, "ppoll"},
	{275, "splice"},
	{276, "tee"},
	{277, "sync_file_range"},
	{278, "vmsplice"},
	{280, "utimensat"},
	{281, "epoll_pwait"},
	{285, "fallocate"},
	{288, "accept4"},
	{293, "pipe2"},
	{295, "preadv"},
	{296, "pwritev"},
	{299, "recvmmsg"},
	{306, "syncfs"},
	{307, "sendmmsg"},
	{316, "renameat2"},
	{322, "execveat"},
	{326, "copy_file_range"},
	{327, "preadv2"},
	{328, "pwritev2"},
	{332, "statx"},
	{333, "io_pgetevents"},
	{426, "io_uring_enter"},
	{435, "clone3"},
	{437, "openat2"},
	{439, "faccessat2"},
	{441, "epoll_pwait2"},
	{449, "futex_waitv"},
	{452, "fchmodat2"},
	{454, "futex_wake"},
	{455, "futex_wait"},
	{456, "futex_requeue"},
};

bool syscall_is_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(syscalls); i++)
		if (!strcmp(syscalls[i].name, name))
			return true;
	return false;
}

const char *syscall_label(int syscall)
{
	size_t at = partition_point(middle, ARRAY_LEN(syscalls), syscalls[middle].number < syscall);

	return at < ARRAY_LEN(syscalls) && syscalls[at].number == syscall ? syscalls[at].name
									  : NULL;
}
