/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "privileges.h"
#include "util.h"
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct __user_cap_data_struct Words[_LINUX_CAPABILITY_U32S_3];

static int get(Words words)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &header, words) ? -errno : 0;
}

uint64_t privileges_effective(void)
{
	Words words = {};

	if (get(words))
		return 0;
	return (uint64_t)words[1].effective << 32 | words[0].effective;
}

/* The inode number is fixed since Linux 3.8; include/uapi/linux/nsfs.h has it since 6.18. */
#define FIRST_USER_NAMESPACE 0xeffffffdU

bool privileges_in_user_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino != FIRST_USER_NAMESPACE;
}

int privileges_keep(uint64_t kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	Words words = {};
	int error;

	if (geteuid() == 0)
		return 0;
	error = get(words);
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t mask = kept >> 32 * i;

		words[i].permitted &= mask;
		words[i].effective = words[i].permitted;
		words[i].inheritable = 0; /* this clears the ambient ones as well */
	}
	if (!error && syscall(SYS_capset, &header, words))
		error = -errno;
	if (error)
		log_error("dropping privileges failed: %s", strerror(-error));
	return error;
}

bool privileges_of_file(void)
{
	return getauxval(AT_SECURE);
}
