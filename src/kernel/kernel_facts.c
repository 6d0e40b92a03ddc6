/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel_facts.h"
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

/* Where vm.memfd_noexec asks for it, files in memory must not be executable; before 6.3 nobody
 * does. */
static int make_file(void)
{
	int fd = memfd_create("kernel-types", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create("kernel-types", MFD_CLOEXEC) : fd;
}

static int write_all_types(const KernelInfo *facts)
{
	uint32_t size;
	const void *bytes = btf__raw_data(facts->types, &size);

	if (!bytes)
		return -ENOMEM;
	if (ftruncate(facts->needed_fd, 0) || lseek(facts->needed_fd, 0, SEEK_SET) < 0 ||
	    write(facts->needed_fd, bytes, size) != (ssize_t)size)
		return errno ? -errno : -EIO;
	return 0;
}

/*
 * bpf_rdonly_cast() is there since 6.2, but until 6.5 the verifier refuses loads of what is not the
 * first in a union (33937607efa0): it is used from the oldest kernel on that it is tested with.
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

/* All or none. */
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
		log_verbose("this kernel's memory is read by calls only");
}

/* The limit on file sizes applies to a memfd, too. Without it libbpf reads all types per object. */
static bool may_write(const struct btf *types)
{
	struct rlimit limit;
	uint32_t size;

	return btf__raw_data(types, &size) && !getrlimit(RLIMIT_FSIZE, &limit) &&
	       size <= limit.rlim_cur;
}

static void open_needed(KernelInfo *facts)
{
	facts->needed_fd = make_file();
	if (facts->needed_fd < 0)
		return;
	snprintf(facts->needed_room, sizeof(facts->needed_room), "/proc/self/fd/%d",
		 facts->needed_fd);
	facts->needed_path = facts->needed_room;
}

/*
 * btf__load_vmlinux_btf() returns -ESRCH whatever is wrong with the files that it tries. If the
 * types can be read after all, memory was short.
 */
static int load_error(void)
{
	struct btf *types = btf__parse("/sys/kernel/btf/vmlinux", NULL);
	int error = types ? -ENOMEM : -errno;

	btf__free(types);
	return error;
}

static void find_softirq_callers(KernelInfo *facts)
{
	static const char *const names[] = {"do_softirq", "__local_bh_enable_ip"};

	if (!facts->offsets_known || !facts->offsets.irq_stack_known ||
	    kallsyms_ranges_of("/proc/kallsyms", names, ARRAY_LEN(names), facts->softirq_callers,
			       SOFTIRQ_CALLERS) < 0)
		log_verbose("packets that a task sends cannot be distinguished from network "
			    "interrupts");
}

/* By a CPUID bit that hypervisors set and processors leave 0. */
static bool has_hypervisor(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & 1u << 31;
}

/* Whether a struct of the kernel has a member of that name; nested structs are not searched. */
static bool has_member(const struct btf *types, const char *name, const char *member)
{
	int id = btf__find_by_name_kind(types, name, BTF_KIND_STRUCT);
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(types, id);

	for (int i = 0; type && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(types, btf_members(type)[i].name_off), member))
			return true;
	return false;
}

int kernel_info_read(KernelInfo *ret_facts)
{
	KernelInfo *facts = ret_facts;

	*facts = (KernelInfo){.needed_fd = -1};
	facts->types = btf__load_vmlinux_btf();
	if (!facts->types)
		return load_error();
	if (may_write(facts->types))
		open_needed(facts);
	find_type_ids(facts->types, &facts->type_ids);
	facts->offsets_known = percpu_offsets(facts->types, &facts->offsets);
	if (!facts->offsets_known)
		log_verbose("this kernel does not tell interrupts from tasks as wakers");
	find_softirq_callers(facts);
	facts->subtracts_time = has_hypervisor() || has_member(facts->types, "rq", "prev_irq_time");
	return 0;
}

int kernel_info_write_needed(KernelInfo *facts, const struct btf *program)
{
	int error;

	if (facts->needed_written || !facts->needed_path)
		return 0;
	error = btf_subset_write(facts->types, program, facts->needed_fd);
	if (error) {
		log_verbose("the kernel's types are used as a whole: %s", strerror(-error));
		error = write_all_types(facts);
	}
	facts->needed_written = !error;
	return error;
}

void kernel_info_close(KernelInfo *facts)
{
	btf__free(facts->types);
	facts->types = NULL;
	if (facts->needed_fd >= 0)
		close(facts->needed_fd);
	facts->needed_fd = -1;
}
