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

#include "cfi_bytes.h"

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
