/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "disassembly.h"
#include "sandbox.h"
#include "served_symbols.h"
#include <capstone/capstone.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CPU_SECONDS 5
#define TEXT_MAX    224 /* capstone's mnemonic, a blank and the operands */
#define ANSWER_MAX  (64u << 20)

/* The input of the child, in memory that it inherits from the parent. */
typedef struct Task {
	const uint8_t *bytes;
	uint32_t size;
	uint64_t relative; /* address of the first byte, relative to the library */
	bool is_32;
} Task;

/*
 * The child sends this header, followed by the text, for each instruction; the last one has length
 * 0.
 */
struct line {
	uint32_t offset;
	uint32_t length;
};

/* ---- in the child -------------------------------------------------------------------------- */

static int send_line(int socket, uint32_t offset, const char *text)
{
	char message[sizeof(struct line) + TEXT_MAX];
	struct line line = {.offset = offset, .length = strnlen(text, TEXT_MAX - 1)};

	memcpy(message, &line, sizeof(line));
	memcpy(message + sizeof(line), text, line.length);
	return sandbox_send(socket, message, sizeof(line) + line.length, -1);
}

static void disassemble(csh handle, int socket, const Task *task)
{
	cs_insn *instruction = cs_malloc(handle);
	uint64_t address = task->relative;
	const uint8_t *code = task->bytes;
	size_t left = task->size;

	if (!instruction)
		return;
	while (left > 0) {
		uint32_t offset = task->size - left;
		char text[TEXT_MAX];

		if (cs_disasm_iter(handle, &code, &left, &address, instruction)) {
			bool bare = !*instruction->op_str;

			snprintf(text, sizeof(text), "%s%s%s", instruction->mnemonic,
				 bare ? "" : " ", instruction->op_str);
		} else {
			snprintf(text, sizeof(text), ".byte 0x%02x", *code);
			code++;
			left--;
			address++;
		}
		if (send_line(socket, offset, text))
			return;
	}
	send_line(socket, task->size, "");
}

static void run_child(int socket, const int *fds, const void *argument)
{
	const Task *task = argument;
	csh handle;

	(void)fds;
	if (cs_open(CS_ARCH_X86, task->is_32 ? CS_MODE_32 : CS_MODE_64, &handle) != CS_ERR_OK)
		return;
	disassemble(handle, socket, argument);
	cs_close(&handle);
}

/* ---- in the parent ------------------------------------------------------------------------- */

/* Receives everything that the child sends until it ends or the deadline passes. */
static void receive(const Sandbox *sandbox, uint64_t deadline_ns, uint8_t **ret_bytes,
		    size_t *ret_count)
{
	VEC(uint8_t) bytes = {};

	while (bytes.count < ANSWER_MAX && now_ns() < deadline_ns) {
		struct pollfd fd = {.fd = sandbox->socket, .events = POLLIN};
		ssize_t got;

		if (poll(&fd, 1, 100) == 0)
			continue;
		vec_reserve(&bytes, bytes.count + (64u << 10));
		got = read(sandbox->socket, bytes.items + bytes.count,
			   bytes.capacity - bytes.count);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			break;
		bytes.count += got;
	}
	*ret_bytes = bytes.items;
	*ret_count = bytes.count;
}

/* The child is not trusted: a line that does not fit the previous ones is an error. */
static int read_lines(const uint8_t *bytes, size_t count, uint32_t size, Disassembly *code)
{
	uint32_t next = 0;

	for (size_t at = 0; count - at >= sizeof(struct line);) {
		struct line line;

		memcpy(&line, bytes + at, sizeof(line));
		at += sizeof(line);
		if (line.length == 0)
			return line.offset == size ? 0 : -EIO;
		if (line.offset < next || line.offset >= size || line.length > count - at ||
		    line.length >= TEXT_MAX)
			return -EIO;
		*vec_push(&code->list) = (ServedInstruction){line.offset, code->texts.count};
		vec_append(&code->texts, (const char *)bytes + at, line.length);
		*vec_push(&code->texts) = '\0';
		at += line.length;
		next = line.offset + 1;
	}
	return -EIO;
}

static int run_sandboxed(const Task *task, Disassembly *code)
{
	SandboxLimits limits = {.cpu_seconds = CPU_SECONDS};
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t count = 0;
	Sandbox sandbox;
	int error = sandbox_start(run_child, NULL, 0, task, &limits, &sandbox);

	if (error)
		return error;
	receive(&sandbox, now_ns() + 2 * CPU_SECONDS * NSEC_PER_SEC, &bytes, &count);
	sandbox_end(&sandbox);
	return read_lines(bytes, count, task->size, code);
}

/* Finds the file offset of the byte at svma, and how many bytes of executable code follow. */
static bool find_code(const ElfIdentity *identity, uint64_t svma, uint64_t *ret_offset,
		      uint64_t *ret_size)
{
	for (size_t i = 0; i < identity->loads.count; i++) {
		const ElfSegment *load = &identity->loads.items[i];

		if (!load->exec || svma < load->vaddr || svma - load->vaddr >= load->file_size)
			continue;
		*ret_offset = load->offset + (svma - load->vaddr);
		*ret_size = load->file_size - (svma - load->vaddr);
		return true;
	}
	return false;
}

int disassembly_read(ElfIdentifier *identifier, const ServedLib *lib, uint64_t relative,
		     uint32_t size, Disassembly *ret_code)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_close_ int fd = -1;
	ElfIdentity identity;
	uint64_t offset, available;
	ssize_t got;
	bool found, is_32;

	*ret_code = (Disassembly){};
	fd = served_symbols_open(identifier, lib, &identity);
	if (fd < 0)
		return fd;
	found = find_code(&identity, identity.base_svma + relative, &offset, &available);
	is_32 = identity.is_32;
	elf_identity_free(&identity);
	if (!found)
		return -ENOENT;
	size = MIN(MIN((uint64_t)size, available), SERVED_CODE_MAX);
	bytes = xmalloc(size + 1);
	got = pread(fd, bytes, size, offset);
	if (got <= 0)
		return got < 0 ? -errno : -ENOENT;
	ret_code->size = got;
	return run_sandboxed(
		&(Task){.bytes = bytes, .size = got, .relative = relative, .is_32 = is_32},
		ret_code);
}

void disassembly_free(Disassembly *code)
{
	vec_free(&code->list);
	vec_free(&code->texts);
}
