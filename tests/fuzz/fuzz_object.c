/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ELF file, as the sandboxed child gets it, with the debug file and dwz's file that it may
 * ask for. All that the child would send is what its parent takes.
 *
 * libelf and libdw are not built for the fuzzer: it sees only which of our code is reached.
 */
#include "elf_file.h"
#include "elf_parts.h"
#include "fuzz.h"
#include "object_names.h"
#include "symbol_child.h"
#include "symbol_messages.h"
#include <errno.h>

#define ADDRESSES_PER_SEGMENT 48
#define SEGMENTS_MAX	      4

typedef struct Host {
	const ElfParts *parts;
	SymbolJob job;
} Host;

typedef VEC(uint64_t) Addresses;

static int find(void *user, const Companion *companion)
{
	const Host *host = user;
	/* A .dwo or .dwp file is the debug file of an input, too. */
	const ElfPart *part = companion->kind == COMPANION_DWZ
				      ? &host->parts->parts[ELF_PART_DWZ]
				      : &host->parts->parts[ELF_PART_DEBUG];

	fuzz_require(memchr(companion->name, '\0', sizeof(companion->name)));
	fuzz_require(companion->candidate < COMPANION_CANDIDATES);
	return part->size && companion->candidate == 0 ? fuzz_file(part->data, part->size)
						       : -ENOENT;
}

static int emit(void *user, const struct rec_symbol *symbol)
{
	static const SymbolJobsOptions options = {};
	struct symbol_message_head head = {.len = symbol->h.len, .type = SYMBOL_MESSAGE_SYMBOL};
	Host *host = user;

	if (head.len > SYMBOL_MESSAGE_MAX)
		return 0;
	vec_append(&host->job.received, (const uint8_t *)&head, sizeof(head));
	vec_append(&host->job.received, (const uint8_t *)symbol, head.len);
	fuzz_require(symbol_messages_consume(&host->job, &options));
	return 0;
}

static int missing(void *user, const ObjectMissing *missing)
{
	Host *host = user;
	static const SymbolJobsOptions options = {};
	struct symbol_message_head head = {.len = sizeof(*missing), .type = SYMBOL_MESSAGE_MISSING};

	vec_append(&host->job.received, (const uint8_t *)&head, sizeof(head));
	vec_append(&host->job.received, (const uint8_t *)missing, head.len);
	fuzz_require(symbol_messages_consume(&host->job, &options));
	return 0;
}

static int flush(void *user)
{
	(void)user;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Spread over what is executable, so that each function of a small file has some. */
static void choose_addresses(const ElfIdentity *identity, Addresses *addresses)
{
	size_t kept = 0, segments = 0;

	*vec_push(addresses) = 0;
	*vec_push(addresses) = UINT64_MAX;
	for (size_t i = 0; i < identity->loads.count && segments < SEGMENTS_MAX; i++) {
		const ElfSegment *load = &identity->loads.items[i];

		if (!load->exec)
			continue;
		segments++;
		for (uint64_t n = 0; n < ADDRESSES_PER_SEGMENT; n++)
			*vec_push(addresses) =
				load->vaddr + load->file_size / ADDRESSES_PER_SEGMENT * n;
	}
	qsort(addresses->items, addresses->count, sizeof(uint64_t), compare);
	for (size_t i = 0; i < addresses->count; i++)
		if (kept == 0 || addresses->items[kept - 1] != addresses->items[i])
			addresses->items[kept++] = addresses->items[i];
	addresses->count = kept;
}

static void find_names(const ElfParts *parts, int fd, int debug_fd, const ElfIdentity *identity,
		       const Addresses *addresses)
{
	Host host = {.parts = parts};
	ObjectHost object_host = {
		.find = find, .emit = emit, .flush = flush, .missing = missing, .user = &host};
	ObjectRequest request = {
		.fd = fd,
		.debug_fd = debug_fd,
		.build_id = identity->build_id,
		.build_id_len = identity->build_id_len,
		.base_svma = identity->base_svma,
		.addresses = addresses->items,
		.count = addresses->count,
	};

	host.job.request = request;
	for (size_t i = 0; i < addresses->count; i++)
		*vec_push(&host.job.offsets) = SYMBOL_NO_ANSWER;
	object_names_find(&request, &object_host);
	symbol_job_free(&host.job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ElfParts parts = elf_parts_of(data, size);
	const ElfPart *object = &parts.parts[ELF_PART_OBJECT];
	const ElfPart *debug = &parts.parts[ELF_PART_DEBUG];
	int fd = fuzz_file(object->data, object->size), debug_fd = -1;
	ElfIdentity identity = {};
	Addresses addresses = {};
	uint64_t bias;

	if (parts.debug_by_build_id)
		debug_fd = fuzz_file(debug->data, debug->size);
	if (elf_identify(fd, &identity) == 0) {
		elf_mapping_bias(&identity, 0x7f0000001000, 0x2000, 0x1000, &bias);
		choose_addresses(&identity, &addresses);
		find_names(&parts, fd, debug_fd, &identity, &addresses);
	}
	vec_free(&addresses);
	elf_identity_free(&identity);
	closep(&debug_fd);
	close(fd);
	return 0;
}
