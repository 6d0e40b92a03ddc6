/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debug_link.h"
#include "elf_symbols.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define CRC_CHUNK (64u << 10)
/* A file of holes is as long as a program likes, and a second's work for each 2 GiB. */
#define CRC_SIZE_MAX (2LL << 30)

/* ---- what an object says -------------------------------------------------------------- */

/* The text of a section that begins with a name; *ret_rest is what follows the name. */
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

/* "name", padding to 4 bytes, crc32. */
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

/* "path", build id. */
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

static bool crc_fits(int fd, uint32_t wanted)
{
	_cleanup_free_ uint8_t *chunk = xmalloc(CRC_CHUNK);
	uLong crc = crc32(0, NULL, 0);
	off_t place = 0;
	struct stat st;
	ssize_t got;

	if (fstat(fd, &st) || st.st_size > CRC_SIZE_MAX)
		return false;
	while ((got = pread(fd, chunk, CRC_CHUNK, place)) > 0) {
		crc = crc32(crc, chunk, got);
		place += got;
	}
	return got == 0 && crc == wanted;
}

bool debug_link_fits(Elf *elf, Elf *debug, int debug_fd)
{
	_cleanup_free_ Companion *companion = NULL;
	ElfIdentity identity;
	uint32_t crc;
	bool fits;

	if (elf_file_identify(elf, &identity))
		return false;
	if (identity.build_id_len) {
		fits = debug_link_same_build_id(debug, identity.build_id, identity.build_id_len);
	} else {
		companion = xcalloc(1, sizeof(*companion));
		fits = read_debuglink(elf, companion, &crc) && crc_fits(debug_fd, crc);
	}
	elf_identity_free(&identity);
	return fits;
}
