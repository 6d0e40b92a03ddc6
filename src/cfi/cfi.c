/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cfi.h"
#include <dwarf.h>
#include <errno.h>

#define LENGTH_64	0xffffffffu
#define LENGTH_MAX_32	0xfffffff0u /* above: reserved */
#define ADDRESS_SIZE	8
#define FORMAT_BITS	0x0f
#define APPLY_BITS	0x70
#define CIE_VERSIONS	(1u << 1 | 1u << 3 | 1u << 4)
#define CIE_VERSION_4	4
#define CIE_VERSION_1	1
#define CIE_VERSION_TOP 4

/* ---- pointers --------------------------------------------------------------- */

/* Reads the number itself, without its base. */
static int read_format(CfiBytes *bytes, uint8_t encoding, uint64_t *ret_value)
{
	switch (encoding & FORMAT_BITS) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*ret_value = cfi_fixed(bytes, 8);
		break;
	case DW_EH_PE_uleb128:
		*ret_value = cfi_uleb(bytes);
		break;
	case DW_EH_PE_sleb128:
		*ret_value = cfi_sleb(bytes);
		break;
	case DW_EH_PE_udata2:
		*ret_value = cfi_fixed(bytes, 2);
		break;
	case DW_EH_PE_sdata2:
		*ret_value = cfi_fixed_signed(bytes, 2);
		break;
	case DW_EH_PE_udata4:
		*ret_value = cfi_fixed(bytes, 4);
		break;
	case DW_EH_PE_sdata4:
		*ret_value = cfi_fixed_signed(bytes, 4);
		break;
	default:
		return -ENOTSUP;
	}
	return bytes->bad ? -EBADMSG : 0;
}

/* Only whole addresses are aligned; the gap before one is skipped. */
static int read_aligned(const CfiSection *section, CfiBytes *bytes, uint64_t *ret_value)
{
	uint64_t address = section->address + (bytes->at - section->data);

	cfi_consume(bytes, -address % ADDRESS_SIZE);
	*ret_value = cfi_fixed(bytes, ADDRESS_SIZE);
	return bytes->bad ? -EBADMSG : 0;
}

int cfi_pointer(const CfiSection *section, CfiBytes *bytes, uint8_t encoding, uint64_t data_base,
		uint64_t *ret_value)
{
	uint64_t offset = section->address + (bytes->at - section->data), value;
	int r;

	if (encoding == DW_EH_PE_aligned)
		return read_aligned(section, bytes, ret_value);
	r = read_format(bytes, encoding, &value);
	if (r < 0)
		return r;
	switch (encoding & (APPLY_BITS | DW_EH_PE_indirect)) {
	case 0:
		break;
	case DW_EH_PE_pcrel:
		value += offset;
		break;
	case DW_EH_PE_datarel:
		if (!data_base)
			return -ENOTSUP;
		value += data_base;
		break;
	default: /* x86-64 has no base for the others; only ld.so can read what an indirect one
		    points to */
		return -ENOTSUP;
	}
	*ret_value = value;
	return 0;
}

/* ---- entries ---------------------------------------------------------------- */

/* An entry that is too short for an id has no CIE. */
static void read_identity(const CfiSection *section, CfiBytes *content, bool is_64,
			  CfiEntry *ret_entry)
{
	uint64_t offset = content->at - section->data;
	uint64_t id = cfi_fixed(content, is_64 ? 8 : 4);
	uint64_t cie_id = section->eh_frame ? 0 : is_64 ? UINT64_MAX : UINT32_MAX;

	ret_entry->is_cie = id == cie_id && !content->bad;
	/* A distance that points before the section leads to no CIE. */
	ret_entry->cie = section->eh_frame ? offset - id : id;
	if (content->bad)
		ret_entry->cie = UINT64_MAX;
}

int cfi_next(const CfiSection *section, uint64_t *offset, CfiEntry *ret_entry)
{
	CfiBytes bytes = {.at = section->data + *offset, .end = section->data + section->size};
	CfiBytes content;
	uint64_t length;
	bool is_64;

	/*
	 * Linkers put a 0 at the end; one in the middle is left over from a file that was linked
	 * in.
	 */
	do {
		if (cfi_left(&bytes) == 0)
			return 0;
		*offset = bytes.at - section->data;
		length = cfi_fixed(&bytes, 4);
		if (length == 0 && section->open_ended)
			return 0;
	} while (length == 0 && !bytes.bad);
	if (length > LENGTH_MAX_32 && length != LENGTH_64)
		return -EBADMSG;
	is_64 = length == LENGTH_64;
	if (is_64)
		length = cfi_fixed(&bytes, 8);
	content = (CfiBytes){.at = cfi_consume(&bytes, length)};
	content.end = bytes.at;
	if (bytes.bad)
		return -EBADMSG;
	ret_entry->offset = *offset;
	*offset = bytes.at - section->data;
	read_identity(section, &content, is_64, ret_entry);
	ret_entry->at = content.at;
	ret_entry->end = content.end;
	return 1;
}

/* Parses the letters of the augmentation; data is what follows its length. */
static int read_augmentation(const CfiSection *section, const char *letters, CfiBytes *data,
			     CfiCie *cie)
{
	uint64_t ignored;

	for (; *letters; letters++) {
		uint8_t encoding;
		int r;

		switch (*letters) {
		case 'R':
			cie->encoding = cfi_u8(data);
			break;
		case 'P': /* the personality routine: it is only skipped */
			encoding = cfi_u8(data);
			if (encoding == DW_EH_PE_omit)
				break;
			r = encoding == DW_EH_PE_aligned ? read_aligned(section, data, &ignored)
							 : read_format(data, encoding, &ignored);
			if (r < 0)
				return r;
			break;
		case 'L':
			cfi_u8(data);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* signed return addresses, of another machine */
			break;
		default:
			return -ENOTSUP;
		}
	}
	return data->bad ? -EBADMSG : 0;
}

/* Only version 4 has it. */
static int read_address_size(CfiBytes *bytes)
{
	uint8_t address_size = cfi_u8(bytes), segment_size = cfi_u8(bytes);

	return address_size == ADDRESS_SIZE && segment_size == 0 ? 0 : -ENOTSUP;
}

int cfi_read_cie(const CfiSection *section, const CfiEntry *entry, CfiCie *ret_cie)
{
	CfiCie cie = {.section = section, .encoding = DW_EH_PE_absptr};
	CfiBytes bytes = {.at = entry->at, .end = entry->end}, data;
	uint8_t version = cfi_u8(&bytes);
	const char *letters = (const char *)bytes.at;
	uint64_t length;
	int r;

	if (!memchr(letters, '\0', cfi_left(&bytes)))
		return -EBADMSG;
	if (version > CIE_VERSION_TOP || !(CIE_VERSIONS >> version & 1))
		return -ENOTSUP;
	cfi_consume(&bytes, strlen(letters) + 1);
	if (version == CIE_VERSION_4 && read_address_size(&bytes) < 0)
		return -ENOTSUP;
	cie.code_align = cfi_uleb(&bytes);
	cie.data_align = cfi_sleb(&bytes);
	cie.return_register = version == CIE_VERSION_1 ? cfi_u8(&bytes) : cfi_uleb(&bytes);
	data = (CfiBytes){.at = bytes.at, .end = bytes.at};
	cie.sized = *letters == 'z';
	if (cie.sized) {
		length = cfi_uleb(&bytes);
		data.at = cfi_consume(&bytes, length);
		data.end = bytes.at;
		letters++;
	}
	if (bytes.bad)
		return -EBADMSG;
	r = read_augmentation(section, letters, &data, &cie);
	if (r < 0)
		return r;
	cie.program = bytes;
	*ret_cie = cie;
	return 0;
}

int cfi_read_fde(const CfiEntry *entry, const CfiCie *cie, CfiFde *ret_fde)
{
	CfiBytes bytes = {.at = entry->at, .end = entry->end};
	int r = cfi_pointer(cie->section, &bytes, cie->encoding, /* data_base= */ 0, &ret_fde->pc);

	if (r < 0)
		return r;
	r = read_format(&bytes, cie->encoding, &ret_fde->size);
	if (r < 0)
		return r;
	if (cie->sized)
		cfi_consume(&bytes, cfi_uleb(&bytes));
	if (bytes.bad)
		return -EBADMSG;
	ret_fde->program = bytes.at;
	ret_fde->end = bytes.end;
	return 0;
}
