/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debug_link.h"
#include "elf_symbols.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define CRC_CHUNK (64u << 10)

/* ---- what an object says -------------------------------------------------------------- */

/* Reads a section that begins with a name; *ret_rest is what follows the name. */
static bool read_link(Elf *elf, const char *section_name, Companion *companion,
		      const uint8_t **ret_rest, size_t *ret_size)
{
	GElf_Shdr header;
	Elf_Scn *section = elf ? elf_section_by_name(elf, section_name, &header) : NULL;
	const char *end;
	Elf_Data *data;

	if (!elf_section_data(section, &data))
		return false;
	end = memchr(data->d_buf, '\0', MIN(data->d_size, (size_t)COMPANION_NAME_MAX));
	if (!end || end == data->d_buf)
		return false;
	memcpy(companion->name, data->d_buf, end - (char *)data->d_buf + 1);
	*ret_rest = (const uint8_t *)end + 1;
	*ret_size = data->d_size - (end + 1 - (char *)data->d_buf);
	return true;
}

/* The section holds "name", padding to 4 bytes, and a crc32. */
static bool read_debuglink(Elf *elf, Companion *companion, uint32_t *ret_crc)
{
	const uint8_t *rest;
	size_t size, padding;

	companion->kind = COMPANION_DEBUG;
	if (!read_link(elf, ".gnu_debuglink", companion, &rest, &size))
		return false;
	padding = -(strlen(companion->name) + 1) & 3;
	if (size < padding + sizeof(*ret_crc) || strchr(companion->name, '/'))
		return false;
	memcpy(ret_crc, rest + padding, sizeof(*ret_crc));
	return true;
}

bool debug_link_read(Elf *elf, Companion *ret_companion)
{
	uint32_t crc;

	return read_debuglink(elf, ret_companion, &crc);
}

/* The section holds "path" and a build id. */
bool debug_link_read_dwz(Elf *elf, Companion *ret_companion)
{
	const uint8_t *rest;
	size_t size;

	ret_companion->kind = COMPANION_DWZ;
	if (!read_link(elf, ".gnu_debugaltlink", ret_companion, &rest, &size) ||
	    size > sizeof(ret_companion->build_id))
		return false;
	memcpy(ret_companion->build_id, rest, size);
	ret_companion->build_id_len = size;
	return true;
}

/* ---- whether a file is the one -------------------------------------------------------- */

bool debug_link_same_build_id(Elf *elf, const uint8_t *build_id, uint8_t length)
{
	ElfIdentity identity;
	bool same;

	if (elf_file_identify(elf, &identity))
		return false;
	same = identity.build_id_len == length && !memcmp(identity.build_id, build_id, length);
	elf_identity_free(&identity);
	return same;
}

static int check_crc(int fd, uint32_t wanted, int64_t size_max)
{
	_cleanup_free_ uint8_t *chunk = NULL;
	uLong crc = crc32(0, NULL, 0);
	off_t offset = 0;
	struct stat st;
	ssize_t got;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size > size_max)
		return -EOVERFLOW;
	chunk = xmalloc(CRC_CHUNK);
	while ((got = pread(fd, chunk, CRC_CHUNK, offset)) > 0) {
		crc = crc32(crc, chunk, got);
		offset += got;
	}
	if (got < 0)
		return -errno;
	return crc == wanted ? 0 : -ESTALE;
}

int debug_link_check(Elf *elf, Elf *debug, int debug_fd, int64_t size_max)
{
	_cleanup_free_ Companion *companion = NULL;
	ElfIdentity identity;
	int r = -ESTALE;
	uint32_t crc;

	if (elf_file_identify(elf, &identity))
		return -ENOEXEC;
	if (identity.build_id_len) {
		if (debug_link_same_build_id(debug, identity.build_id, identity.build_id_len))
			r = 0;
	} else {
		companion = xcalloc(1, sizeof(*companion));
		if (read_debuglink(elf, companion, &crc))
			r = check_crc(debug_fd, crc, size_max);
	}
	elf_identity_free(&identity);
	return r;
}
