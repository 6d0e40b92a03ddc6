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
static bool makes_pointers(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 12);
}

/* Looks for what the programs attach to and call, and for the types that they read. */
static void add_type(KernelInfo *info, uint32_t id, struct kernel_type_ids *ids, size_t *missing)
{
	static const char trace[] = "btf_trace_";
	const struct btf_type *type = btf__type_by_id(info->types, id);
	const char *name = btf__name_by_offset(info->types, type->name_off);
	const struct {
		const char *name;
		u32 *id;
	} structs[] = {
		{"file", &ids->file},		{"files_struct", &ids->files_struct},
		{"inode", &ids->inode},		{"dentry", &ids->dentry},
		{"socket", &ids->socket},	{"sock", &ids->sock},
		{"eventpoll", &ids->eventpoll}, {"epitem", &ids->epitem},
		{"rb_node", &ids->rb_node},
	};

	if (btf_is_typedef(type) && !strncmp(name, trace, strlen(trace))) {
		*vec_push(&info->tracepoints) = (Tracepoint){name + strlen(trace), id};
	} else if (btf_is_func(type) && !strcmp(name, "bpf_iter_task")) {
		info->task_iterator_id = id;
	} else if (btf_is_func(type) && !strcmp(name, "bpf_rdonly_cast")) {
		info->rdonly_cast_id = id;
	} else if (btf_is_struct(type)) {
		for (size_t i = 0; i < ARRAY_LEN(structs); i++) {
			if (*structs[i].id || strcmp(name, structs[i].name))
				continue;
			*structs[i].id = id;
			(*missing)--;
		}
	}
}

static void find_types(KernelInfo *info)
{
	struct kernel_type_ids ids = {};
	size_t missing = sizeof(ids) / sizeof(u32);

	for (u32 id = 1; id < btf__type_cnt(info->types); id++)
		add_type(info, id, &ids, &missing);
	if (missing || !info->rdonly_cast_id || !makes_pointers()) {
		info->rdonly_cast_id = 0;
		log_verbose("the kernel's memory is read by helper calls only");
	} else {
		info->type_ids = ids;
	}
}

int kernel_info_tracepoint_id(const KernelInfo *info, const char *name)
{
	for (size_t i = 0; i < info->tracepoints.count; i++)
		if (!strcmp(info->tracepoints.items[i].name, name))
			return info->tracepoints.items[i].id;
	return -ENOENT;
}

int kernel_info_function_id(const KernelInfo *info, const char *name)
{
	if (info->types)
		return btf__find_by_name_kind(info->types, name, BTF_KIND_FUNC);
	for (size_t i = 0; i < info->functions.count; i++)
		if (!strcmp(info->functions.items[i].name, name))
			return info->functions.items[i].id;
	return -ENOENT;
}

void kernel_info_shrink(KernelInfo *info, const KeptHooks *kept)
{
	KernelInfo all = *info;

	info->types = NULL;
	memset(&info->tracepoints, 0, sizeof(info->tracepoints));
	for (size_t i = 0; i < kept->tracepoint_count; i++) {
		int id = kernel_info_tracepoint_id(&all, kept->tracepoints[i]);

		if (id >= 0)
			*vec_push(&info->tracepoints) = (Tracepoint){kept->tracepoints[i], id};
	}
	for (size_t i = 0; i < kept->function_count; i++) {
		int id = kernel_info_function_id(&all, kept->functions[i]);

		if (id >= 0)
			*vec_push(&info->functions) = (Tracepoint){kept->functions[i], id};
	}
	vec_free(&all.tracepoints);
	btf__free(all.types);
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
	find_types(info);
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
	vec_free(&info->tracepoints);
	vec_free(&info->functions);
	btf__free(info->types);
	info->types = NULL;
	if (info->needed_fd >= 0)
		close(info->needed_fd);
	info->needed_fd = -1;
}
