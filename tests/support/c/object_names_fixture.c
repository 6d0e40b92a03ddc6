/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "object_names_fixture.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

static int naming_emit(void *user, const struct rec_symbol *symbol)
{
	Naming *naming = user;
	size_t i;

	naming->emitted++;
	i = partition_point(middle, naming->count, naming->addresses[middle] < symbol->address);
	if (i == naming->count || naming->addresses[i] != symbol->address)
		return -EINVAL;
	free(naming->answers[i]);
	naming->answers[i] = memcpy(xmalloc(symbol->h.len), symbol, symbol->h.len);
	return 0;
}

static int naming_find(void *user, const Companion *companion)
{
	Naming *naming = user;

	return naming->find ? naming->find(naming->user, companion) : -ENOENT;
}

int open_split_file(void *path, const Companion *companion)
{
	_cleanup_free_ char *dwp = xasprintf("%s.dwp", (const char *)path);
	bool is_dwp = companion->kind == COMPANION_DWP;

	if ((!is_dwp && companion->kind != COMPANION_DWO) || companion->candidate > 0)
		return -ENOENT;
	return open(is_dwp ? dwp : companion->name, O_RDONLY | O_CLOEXEC);
}

static int naming_missing(void *user, const ObjectMissing *missing)
{
	Naming *naming = user;

	naming->missing[missing->kind] += missing->count;
	return 0;
}

static int naming_flush(void *user)
{
	Naming *naming = user;

	naming->sent = naming->sent ? naming->sent : naming->emitted;
	return 0;
}

int name_objects(Naming *naming, const char *path, const char *debug_path)
{
	ObjectHost host = {.find = naming_find,
			   .emit = naming_emit,
			   .flush = naming_flush,
			   .missing = naming_missing,
			   .user = naming};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int debug_fd = debug_path ? open(debug_path, O_RDONLY | O_CLOEXEC) : -1;
	ElfIdentity identity;
	ObjectRequest request;
	int r;

	assert_int_equal(elf_identify(fd, &identity), 0);
	request = (ObjectRequest){
		.fd = fd,
		.debug_fd = debug_fd,
		.build_id = identity.build_id,
		.build_id_len = identity.build_id_len,
		.base_svma = identity.base_svma,
		.addresses = naming->addresses,
		.count = naming->count,
	};
	naming->answers = xcalloc(naming->count + 1, sizeof(*naming->answers));
	r = object_names_find(&request, &host);
	elf_identity_free(&identity);
	return r;
}

void free_naming(Naming *naming)
{
	for (size_t i = 0; i < naming->count; i++)
		free(naming->answers[i]);
	free(naming->answers);
	naming->answers = NULL;
}

NamedFrame frame_of(const struct rec_symbol *symbol, uint32_t n)
{
	const char *p = symbol->text;
	NamedFrame frame;

	do {
		memcpy(&frame.line, p, sizeof(frame.line));
		frame.name = p + sizeof(frame.line);
		frame.source = frame.name + strlen(frame.name) + 1;
		p = frame.source + strlen(frame.source) + 1;
	} while (n-- > 0);
	return frame;
}

/* ---- addresses -------------------------------------------------------------------------- */

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

size_t sort_addresses(uint64_t *addresses, size_t count)
{
	size_t kept = 0;

	qsort(addresses, count, sizeof(*addresses), compare_addresses);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || addresses[kept - 1] != addresses[i])
			addresses[kept++] = addresses[i];
	return kept;
}

bool find_section(const char *path, const char *name, uint64_t *ret_start, uint64_t *ret_size)
{
	_cleanup_free_ char *line =
		try_output("readelf -SW '%s' | sed -n 's/^ *\\[ *[0-9]*\\] *//p' | "
			   "awk '$1 == \"%s\" { print $3, $5 }'",
			   path, name);

	return line && sscanf(line, "%" SCNx64 " %" SCNx64, ret_start, ret_size) == 2;
}
