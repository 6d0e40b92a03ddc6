/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_child.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* All files of an answer and the pieces of code. */
#define SHARED_SIZE (96u << 20)
#define MEMORY	    (512ULL << 20)

_Static_assert(JIT_CODE_MAX * sizeof(JitCode) < SHARED_SIZE, "all pieces have room");

/* The descriptor of the file, or of the memory, comes with it. */
struct question {
	uint32_t number, is_file;
	uint64_t pieces, code, known; /* of memory: how many there are, behind: */
	uint64_t size;		      /* of what was read */
};

/* ---- in the child -------------------------------------------------------------------- */

static void answer_file(int fd, JitAnswer *answer)
{
	_cleanup_(elf_map_close) ElfMap map = {};

	if (fd >= 0 && elf_map_open(fd, &map) == 0)
		elf_jit_find(map.elf, &answer->jit);
}

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	uint8_t *bytes = to;

	while (size > 0) {
		ssize_t got = pread(fd, bytes, size, offset);

		if (got <= 0)
			return false;
		bytes += got;
		size -= got;
		offset += got;
	}
	return true;
}

static int compare_memory(const void *a, const void *b)
{
	const JitMemory *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Fills *dump with what the recorder has written; bytes is all of what was read of the process. */
static bool read_dump(int fd, const struct question *question, uint8_t *bytes, JitDump *dump)
{
	uint64_t at = question->size;
	VEC(JitMemoryPiece) pieces = {};

	vec_reserve(&pieces, question->pieces);
	vec_reserve(&dump->code, question->code);
	vec_reserve(&dump->known, question->known);
	if (!read_at(fd, bytes, question->size, 0) ||
	    !read_at(fd, pieces.items, question->pieces * sizeof(JitMemoryPiece), at))
		return false;
	at += question->pieces * sizeof(JitMemoryPiece);
	if (!read_at(fd, dump->code.items, question->code * sizeof(JitRange), at))
		return false;
	at += question->code * sizeof(JitRange);
	if (!read_at(fd, dump->known.items, question->known * sizeof(JitCode), at))
		return false;
	dump->code.count = question->code;
	dump->known.count = question->known;
	for (size_t i = 0; i < question->pieces; i++) {
		const JitMemoryPiece *piece = &pieces.items[i];
		JitMemory memory = {piece->address, bytes + piece->offset, piece->size};

		if (piece->object)
			*vec_push(&dump->objects) = memory;
		else
			*vec_push(&dump->memory) = memory;
	}
	vec_free(&pieces);
	if (dump->memory.count > 1)
		qsort(dump->memory.items, dump->memory.count, sizeof(JitMemory), compare_memory);
	return true;
}

/* Removes the pieces of files that do not fit behind the pieces. */
static void drop_large(const JitShared *shared, JitImage *image)
{
	size_t at = image->code.count * sizeof(JitCode), kept = 0;

	for (uint32_t i = 0; i < JIT_FILES_MAX; i++) {
		if (image->files[i].elf.count > shared->size - at)
			vec_free(&image->files[i].elf);
		at += image->files[i].elf.count;
	}
	for (size_t i = 0; i < image->code.count; i++) {
		const JitCode *code = &image->code.items[i];

		if (code->file == JIT_KNOWN || image->files[code->file].elf.count)
			image->code.items[kept++] = *code;
		else
			image->counts.no_room++;
	}
	image->code.count = kept;
}

static void put_image(const JitShared *shared, JitImage *image, JitAnswer *answer)
{
	size_t at;

	drop_large(shared, image);
	at = image->code.count * sizeof(JitCode);
	if (at)
		memcpy(shared->base, image->code.items, at);
	answer->counts = image->counts;
	answer->symbols = image->symbols;
	answer->code_count = image->code.count;
	for (uint32_t i = 0; i < JIT_FILES_MAX; i++) {
		size_t size = image->files[i].elf.count;

		if (size)
			memcpy(shared->base + at, image->files[i].elf.items, size);
		answer->file_size[i] = size;
		at += size;
	}
}

static void answer_memory(const JitShared *shared, int fd, const struct question *question,
			  JitAnswer *answer)
{
	uint8_t *bytes = xmalloc(MAX(question->size, (uint64_t)1));
	JitDump dump = {};
	JitImage image;

	if (read_dump(fd, question, bytes, &dump)) {
		jit_image_make(&dump, &image);
		put_image(shared, &image, answer);
		jit_image_free(&image);
	}
	vec_free(&dump.code);
	vec_free(&dump.memory);
	vec_free(&dump.objects);
	vec_free(&dump.known);
	free(bytes);
}

static void child_main(int socket, const int *fds, const void *argument)
{
	struct question question;
	int r;

	(void)fds;
	do {
		JitAnswer answer;
		int fd = -1;

		r = sandbox_receive(socket, &question, sizeof(question), &fd);
		if (r < 0)
			break;
		memset(&answer, 0, sizeof(answer));
		answer.number = question.number;
		answer.is_file = question.is_file;
		if (question.is_file)
			answer_file(fd, &answer);
		else if (fd >= 0)
			answer_memory(argument, fd, &question, &answer);
		closep(&fd);
		r = sandbox_send(socket, &answer, sizeof(answer), -1);
	} while (r == 0);
}

/* ---- in the recorder ----------------------------------------------------------------- */

void jit_child_end(JitChild *child)
{
	sandbox_end(&child->sandbox);
	if (child->shared.base)
		munmap(child->shared.base, child->shared.size);
	child->shared = (JitShared){};
	child->received = 0;
}

uint64_t jit_child_cpu_ns(const JitChild *child)
{
	clockid_t clock;

	if (!child->sandbox.pid || clock_getcpuclockid(child->sandbox.pid, &clock))
		return 0;
	return clock_ns(clock);
}

static int start(JitChild *child)
{
	SandboxLimits limits = {.memory = MEMORY};
	void *base;
	int r;

	if (child->sandbox.pid)
		return 0;
	base = mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	child->shared = (JitShared){base, SHARED_SIZE};
	r = sandbox_start(child_main, NULL, 0, &child->shared, &limits, &child->sandbox);
	/* No other child has access to it. */
	if (r == 0 && madvise(base, SHARED_SIZE, MADV_DONTFORK))
		r = -errno;
	if (r < 0)
		jit_child_end(child);
	return r;
}

static int64_t send_question(JitChild *child, struct question *question, int fd)
{
	int r = start(child);

	if (r < 0)
		return r;
	question->number = ++child->number;
	r = sandbox_send(child->sandbox.socket, question, sizeof(*question), fd);
	return r < 0 ? (int64_t)r : question->number;
}

int64_t jit_child_ask_file(JitChild *child, int fd)
{
	return send_question(child, &(struct question){.is_file = 1}, fd);
}

int64_t jit_child_ask_memory(JitChild *child, JitMemoryReader *reader, const JitRanges *code,
			     const JitCode *known, size_t known_count)
{
	struct question question = {
		.pieces = reader->pieces.count,
		.code = code->count,
		.known = known_count,
		.size = reader->size,
	};
	int r = write_all(reader->fd, reader->pieces.items,
			  reader->pieces.count * sizeof(JitMemoryPiece));

	if (r == 0)
		r = write_all(reader->fd, code->items, code->count * sizeof(JitRange));
	if (r == 0)
		r = write_all(reader->fd, known, known_count * sizeof(*known));
	return r < 0 ? r : send_question(child, &question, reader->fd);
}

int jit_child_receive(JitChild *child)
{
	ssize_t got;

	if (!child->sandbox.pid)
		return -EPIPE;
	got = recv(child->sandbox.socket, (char *)&child->answer + child->received,
		   sizeof(child->answer) - child->received, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -EPIPE;
	child->received += got;
	if (child->received < sizeof(child->answer))
		return 0;
	child->received = 0;
	return 1;
}

static bool is_valid(const JitChild *child, const JitRanges *code, const JitCode *piece)
{
	return piece->start < piece->end &&
	       jit_ranges_contain(code, piece->start, piece->end - piece->start) &&
	       (piece->file == JIT_KNOWN ||
		(piece->file < JIT_FILES_MAX && child->answer.file_size[piece->file]));
}

bool jit_child_take_code(const JitChild *child, const JitRanges *code, JitImage *ret_image)
{
	uint64_t count = child->answer.code_count, end = 0;

	*ret_image = (JitImage){};
	if (count > JIT_CODE_MAX || count * sizeof(JitCode) > child->shared.size)
		return false;
	vec_append(&ret_image->code, (const JitCode *)child->shared.base, count);
	for (size_t i = 0; i < ret_image->code.count; i++) {
		const JitCode *piece = &ret_image->code.items[i];

		if (piece->start < end || !is_valid(child, code, piece))
			return false;
		end = piece->end;
	}
	return true;
}

int jit_child_take_file(const JitChild *child, uint32_t index)
{
	const JitAnswer *answer = &child->answer;
	uint64_t at = answer->code_count * sizeof(JitCode), size = answer->file_size[index];
	int fd, r;

	for (uint32_t i = 0; i < index; i++)
		if (__builtin_add_overflow(at, answer->file_size[i], &at))
			return -EBADMSG;
	if (at > child->shared.size || size > child->shared.size - at)
		return -EBADMSG;
	fd = memfd_create("wallprof-jit", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, child->shared.base + at, size);
	if (r < 0)
		closep(&fd);
	return r < 0 ? r : fd;
}
