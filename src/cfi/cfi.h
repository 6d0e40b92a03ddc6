/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi.h - parses the entries of a .eh_frame or .debug_frame section: common ones (CIE), and one for
 * each function (FDE), which refers to a common one. Follows the DWARF 5 standard, section 6.4.1,
 * and the LSB 5, chapter 10.6 (.eh_frame and its pointer encodings); 64-bit lengths as binutils and
 * elfutils read them. All is untrusted: what is returned lies within the section.
 *
 * Addresses are SVMA.
 */
#ifndef WALLPROF_CFI_H
#define WALLPROF_CFI_H

#include "util.h"

/*
 * Numbers are read from a piece of memory and never beyond it: what is missing reads as 0 and sets
 * `bad`. LEB128 as in the DWARF 5 standard, section 7.6.
 */

typedef struct CfiBytes {
	const uint8_t *at, *end;
	bool bad; /* something was missing, or did not fit into 64 bits */
} CfiBytes;

static inline size_t cfi_left(const CfiBytes *bytes)
{
	return bytes->end - bytes->at;
}

/* Consumes size bytes and returns them, or NULL. */
static inline const uint8_t *cfi_consume(CfiBytes *bytes, uint64_t size)
{
	const uint8_t *taken = bytes->at;

	if (size > cfi_left(bytes)) {
		bytes->bad = true;
		bytes->at = bytes->end;
		return NULL;
	}
	bytes->at += size;
	return taken;
}

static inline uint8_t cfi_u8(CfiBytes *bytes)
{
	if (bytes->at == bytes->end) {
		bytes->bad = true;
		return 0;
	}
	return *bytes->at++;
}

/* Reads a little-endian number of 1 to 8 bytes. */
static inline uint64_t cfi_fixed(CfiBytes *bytes, unsigned size)
{
	const uint8_t *p = cfi_consume(bytes, size);
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, size);
	return value;
}

static inline int64_t cfi_fixed_signed(CfiBytes *bytes, unsigned size)
{
	unsigned unused = 64 - 8 * size;

	return (int64_t)(cfi_fixed(bytes, size) << unused) >> unused;
}

/* Linkers pad numbers: any number of bytes without a value may follow. */
static inline uint64_t cfi_uleb_of_many(CfiBytes *bytes)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		uint64_t bits;

		byte = cfi_u8(bytes);
		bits = byte & 0x7f;
		if (shift >= 64 || bits << shift >> shift != bits)
			bytes->bad |= bits != 0;
		else
			value |= bits << shift;
		shift = MIN(shift + 7, 64u);
	} while (byte & 0x80);
	return value;
}

/* Nearly all numbers take one byte. */
static inline uint64_t cfi_uleb(CfiBytes *bytes)
{
	CfiBytes rest;
	uint64_t value;

	if (bytes->at != bytes->end && *bytes->at < 0x80)
		return *bytes->at++;
	rest = (CfiBytes){.at = bytes->at, .end = bytes->end};
	value = cfi_uleb_of_many(&rest);
	bytes->at = rest.at;
	bytes->bad |= rest.bad;
	return value;
}

static inline int64_t cfi_sleb(CfiBytes *bytes)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = cfi_u8(bytes);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift = MIN(shift + 7, 64u);
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}

typedef struct CfiSection {
	const uint8_t *data; /* not owned */
	size_t size;	     /* 0 = there is none */
	uint64_t address;    /* of data; .debug_frame: meaningless */
	bool eh_frame;	     /* .eh_frame, not .debug_frame */
	bool open_ended;     /* size is an upper bound: a length of 0 ends it */
} CfiSection;

typedef struct CfiEntry {
	uint64_t offset; /* in the section */
	bool is_cie;
	uint64_t cie; /* FDE: its CIE's offset; there need not be a CIE */
	/* What follows the CIE's id, or the FDE's pointer to its CIE. */
	const uint8_t *at, *end;
} CfiEntry;

typedef struct CfiCie {
	const CfiSection *section;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t encoding; /* of the pointers in its FDEs */
	bool sized;	  /* its FDEs state the length of their augmentation data */
	bool signal;	  /* its FDEs describe returns from signal handlers */
	CfiBytes program;
} CfiCie;

typedef struct CfiFde {
	uint64_t pc, size;
	const uint8_t *program, *end;
} CfiFde;

/*
 * Reads the entry at *offset, and sets *offset to the next one. Returns 1, 0 at the end, or
 * -EBADMSG: the entry exceeds the section, so the start of a next one is not known.
 */
int cfi_next(const CfiSection *section, uint64_t *offset, CfiEntry *ret_entry);

/*
 * Return 0, -EBADMSG (malformed), or -ENOTSUP (a version, augmentation or encoding that x86-64 does
 * not have); after an error *ret_… must not be used.
 */
int cfi_read_cie(const CfiSection *section, const CfiEntry *entry, CfiCie *ret_cie);
int cfi_read_fde(const CfiEntry *entry, const CfiCie *cie, CfiFde *ret_fde);

/*
 * Reads a pointer that is encoded as DW_EH_PE_… says; bytes lies in the section's data. data_base
 * is the base of DW_EH_PE_datarel; 0 = such pointers have no meaning here, as in .eh_frame. Returns
 * 0, -EBADMSG or -ENOTSUP.
 */
int cfi_pointer(const CfiSection *section, CfiBytes *bytes, uint8_t encoding, uint64_t data_base,
		uint64_t *ret_value);

#endif
