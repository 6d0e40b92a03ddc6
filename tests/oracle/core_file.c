/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core_file.h"
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/procfs.h>
#include <sys/user.h>
#include <unistd.h>

/* ---- notes ------------------------------------------------------------------------------ */

static void add_thread(CoreFile *core, const void *data, size_t size)
{
	struct user_regs_struct r;
	prstatus_t status;

	if (size != sizeof(status))
		return;
	memcpy(&status, data, size);
	memcpy(&r, status.pr_reg, sizeof(r));
	*vec_push(&core->threads) = (CoreThread){
		.tid = status.pr_pid,
		.regs = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10,
			 r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
		.syscall = (int64_t)r.orig_rax,
	};
}

/* Count, size of a page, {start, end, offset in pages} for each, and then the paths. */
static void add_files(CoreFile *core, const char *data, size_t size)
{
	uint64_t head[2], range[3];
	const char *end = data + size, *path;

	if (size < sizeof(head))
		return;
	memcpy(head, data, sizeof(head));
	if (head[0] > (size - sizeof(head)) / sizeof(range) || end[-1])
		return;
	path = data + sizeof(head) + head[0] * sizeof(range);
	for (uint64_t i = 0; i < head[0] && path < end; i++, path += strlen(path) + 1) {
		memcpy(range, data + sizeof(head) + i * sizeof(range), sizeof(range));
		*vec_push(&core->mappings) = (CoreMapping){
			.start = range[0],
			.end = range[1],
			.offset = range[2] * head[1],
			.path = path,
			.fd = open(path, O_RDONLY | O_CLOEXEC),
		};
	}
}

static void read_notes(CoreFile *core, const GElf_Phdr *segment)
{
	Elf_Data *data = elf_getdata_rawchunk(core->elf, (int64_t)segment->p_offset,
					      segment->p_filesz, ELF_T_NHDR);
	size_t offset = 0, name, content;
	GElf_Nhdr note;

	while (data && (offset = gelf_getnote(data, offset, &note, &name, &content)) > 0) {
		const char *bytes = (char *)data->d_buf + content;

		if (note.n_type == NT_PRSTATUS)
			add_thread(core, bytes, note.n_descsz);
		else if (note.n_type == NT_FILE)
			add_files(core, bytes, note.n_descsz);
	}
}

/* ---- segments ----------------------------------------------------------------------------- */

static const CoreMapping *mapping_at(const CoreFile *core, uint64_t address)
{
	for (size_t i = 0; i < core->mappings.count; i++)
		if (address >= core->mappings.items[i].start &&
		    address < core->mappings.items[i].end)
			return &core->mappings.items[i];
	return NULL;
}

/* The vDSO, and code made at run time. */
static void add_fileless(CoreFile *core, const GElf_Phdr *segment)
{
	if (segment->p_flags & PF_X && !mapping_at(core, segment->p_vaddr))
		*vec_push(&core->mappings) = (CoreMapping){
			.start = segment->p_vaddr,
			.end = segment->p_vaddr + segment->p_memsz,
			.fd = -1,
		};
}

int core_file_open(const char *path, CoreFile *ret_core)
{
	CoreFile core = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	GElf_Phdr segment;
	size_t count = 0;
	int error = core.fd < 0 ? -errno : 0;

	elf_version(EV_CURRENT);
	if (!error && !(core.elf = elf_begin(core.fd, ELF_C_READ_MMAP, NULL)))
		error = -ENOEXEC;
	if (!error && elf_getphdrnum(core.elf, &count))
		error = -ENOEXEC;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(core.elf, (int)i, &segment) && segment.p_type == PT_NOTE)
			read_notes(&core, &segment);
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(core.elf, (int)i, &segment) && segment.p_type == PT_LOAD)
			add_fileless(&core, &segment);
	*ret_core = core;
	return error;
}

void core_file_close(CoreFile *core)
{
	for (size_t i = 0; i < core->mappings.count; i++)
		closep(&core->mappings.items[i].fd);
	vec_free(&core->threads);
	vec_free(&core->mappings);
	elf_end(core->elf);
	closep(&core->fd);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Reads at most size bytes that were dumped. Returns how many, 0 = none. */
static ssize_t read_dumped(const CoreFile *core, uint64_t address, void *to, size_t size)
{
	GElf_Phdr segment;
	size_t count = 0;

	elf_getphdrnum(core->elf, &count);
	for (size_t i = 0; i < count; i++) {
		uint64_t skipped;

		if (!gelf_getphdr(core->elf, (int)i, &segment) || segment.p_type != PT_LOAD)
			continue;
		skipped = address - segment.p_vaddr;
		if (address >= segment.p_vaddr && skipped < segment.p_filesz)
			return pread(core->fd, to, MIN(size, segment.p_filesz - skipped),
				     (off_t)(segment.p_offset + skipped));
	}
	return 0;
}

static ssize_t read_file(const CoreFile *core, uint64_t address, void *to, size_t size)
{
	const CoreMapping *mapping = mapping_at(core, address);

	return mapping && mapping->fd >= 0
		       ? pread(mapping->fd, to, MIN(size, mapping->end - address),
			       (off_t)(mapping->offset + (address - mapping->start)))
		       : 0;
}

bool core_file_read(const CoreFile *core, uint64_t address, void *to, size_t size)
{
	for (ssize_t got; size > 0; address += (size_t)got, size -= (size_t)got) {
		got = read_dumped(core, address, to, size);
		if (got <= 0)
			got = read_file(core, address, to, size);
		if (got <= 0)
			return false;
		to = (char *)to + got;
	}
	return true;
}
