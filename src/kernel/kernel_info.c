/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel_info.h"
#include "btf_subset.h"
#include "util.h"
#include <bpf/btf.h>
#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static int write_all_types(const KernelInfo *info)
{
	uint32_t size;
	const void *bytes = btf__raw_data(info->types, &size);

	if (!bytes)
		return -ENOMEM;
	if (ftruncate(info->needed_fd, 0) || lseek(info->needed_fd, 0, SEEK_SET) < 0 ||
	    write(info->needed_fd, bytes, size) != (ssize_t)size)
		return errno ? -errno : -EIO;
	return 0;
}

/*
 * bpf_rdonly_cast() exists since 6.2, but until 6.5 the verifier refuses to load anything but the
 * first member of a union (33937607efa0). It is used from the oldest kernel on that was tested.
 */
static bool makes_pointers(const struct btf *types)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return false;
	return (major > 6 || (major == 6 && minor >= 12)) &&
	       btf__find_by_name_kind(types, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
}

/* Finds all of them or none. */
static void find_type_ids(const struct btf *types, struct kernel_type_ids *ret_ids)
{
	struct kernel_type_ids ids = {};
	const struct {
		const char *name;
		u32 *id;
	} wanted[] = {
		{"file", &ids.file},	       {"files_struct", &ids.files_struct},
		{"inode", &ids.inode},	       {"dentry", &ids.dentry},
		{"socket", &ids.socket},       {"sock", &ids.sock},
		{"eventpoll", &ids.eventpoll}, {"epitem", &ids.epitem},
		{"rb_node", &ids.rb_node},
	};
	size_t found = 0;

	for (u32 id = 1; id < btf__type_cnt(types) && found < ARRAY_LEN(wanted); id++) {
		const struct btf_type *type = btf__type_by_id(types, id);
		const char *name = btf__name_by_offset(types, type->name_off);

		for (size_t i = 0; btf_is_struct(type) && i < ARRAY_LEN(wanted); i++) {
			if (*wanted[i].id || strcmp(name, wanted[i].name))
				continue;
			*wanted[i].id = id;
			found++;
		}
	}
	if (found == ARRAY_LEN(wanted) && makes_pointers(types))
		*ret_ids = ids;
	else
		log_verbose("the kernel's memory is read by helper calls only");
}

/*
 * The limit on file sizes applies to a memfd, too. Without the file libbpf reads all types per
 * object.
 */
static bool may_write(const struct btf *types)
{
	struct rlimit limit;
	uint32_t size;

	return btf__raw_data(types, &size) && !getrlimit(RLIMIT_FSIZE, &limit) &&
	       size <= limit.rlim_cur;
}

/*
 * If vm.memfd_noexec asks for it, files in memory must not be executable; before 6.3 the flag is
 * unknown.
 */
static void open_needed(KernelInfo *info)
{
	info->needed_fd = memfd_create("kernel-types", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (info->needed_fd < 0 && errno == EINVAL)
		info->needed_fd = memfd_create("kernel-types", MFD_CLOEXEC);
	if (info->needed_fd < 0)
		return;
	snprintf(info->needed_room, sizeof(info->needed_room), "/proc/self/fd/%d", info->needed_fd);
	info->needed_path = info->needed_room;
}

/*
 * btf__load_vmlinux_btf() returns -ESRCH whatever fails with the files that it tries. If the types
 * can be read after all, memory was short.
 */
static int load_error(void)
{
	struct btf *types = btf__parse("/sys/kernel/btf/vmlinux", NULL);
	int error = types ? -ENOMEM : -errno;

	btf__free(types);
	return error;
}

/* Hypervisors set this CPUID bit, and processors leave it 0. */
static bool has_hypervisor(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & 1u << 31;
}

/* Returns whether a struct of the kernel has such a member; nested structs are not searched. */
static bool has_member(const struct btf *types, const char *name, const char *member)
{
	int id = btf__find_by_name_kind(types, name, BTF_KIND_STRUCT);
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(types, id);

	for (int i = 0; type && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(types, btf_members(type)[i].name_off), member))
			return true;
	return false;
}

int kernel_info_read(KernelInfo *ret_info)
{
	KernelInfo *info = ret_info;

	*info = (KernelInfo){.needed_fd = -1};
	info->types = btf__load_vmlinux_btf();
	if (!info->types)
		return load_error();
	if (may_write(info->types))
		open_needed(info);
	find_type_ids(info->types, &info->type_ids);
	info->offsets_known = percpu_offsets(info->types, &info->offsets);
	if (!info->offsets_known)
		log_verbose("this kernel does not distinguish interrupts and tasks as wakers");
	info->names_known = !access("/proc/kallsyms", F_OK);
	if (!info->offsets_known || !info->offsets.irq_stack_known || !info->names_known)
		log_verbose("packets that a task sends cannot be distinguished from network "
			    "interrupts");
	info->subtracts_time = has_hypervisor() || has_member(info->types, "rq", "prev_irq_time");
	return 0;
}

int kernel_info_write_needed(KernelInfo *info, const struct btf *program)
{
	int error;

	if (info->needed_written || !info->needed_path)
		return 0;
	error = btf_subset_write(info->types, program, info->needed_fd);
	if (error) {
		log_verbose("selecting the kernel's types failed: %s; all are used",
			    strerror(-error));
		error = write_all_types(info);
	}
	info->needed_written = !error;
	return error;
}

void kernel_info_close(KernelInfo *info)
{
	btf__free(info->types);
	info->types = NULL;
	if (info->needed_fd >= 0)
		close(info->needed_fd);
	info->needed_fd = -1;
}
