/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_code.h"
#include "elf_symbols.h"

static const uint8_t sigreturn[UNWIND_SIGRETURN_SIZE] = {0x48, 0xc7, 0xc0, 0x0f, 0,
							 0,    0,    0x0f, 0x05};

/* Most gaps are short alignment: memmem() would take longer to prepare than this takes. */
const uint8_t *unwind_code_sigreturn(const uint8_t *bytes, size_t size)
{
	if (size >= 64)
		return memmem(bytes, size, sigreturn, sizeof(sigreturn));
	for (; size >= sizeof(sigreturn); bytes++, size--)
		if (!memcmp(bytes, sigreturn, sizeof(sigreturn)))
			return bytes;
	return NULL;
}

bool unwind_code_filling(const uint8_t *bytes, size_t size)
{
	const size_t samples = 64, sample = 16;
	size_t filled = 0;

	if (size < samples * sample)
		return elf_is_padding(bytes, size);
	for (size_t i = 0; i < samples; i++)
		filled += elf_is_padding(bytes + size / samples * i, sample);
	return filled > samples / 2;
}

/* Returns whether FF /2 (a call by a register or memory), in one of its lengths, ends there. */
static bool may_end_indirect_call(const uint8_t *bytes, const uint8_t *end)
{
	for (ptrdiff_t length = 2; length <= 7 && length <= end - bytes; length++)
		if (end[-length] == 0xff && (end[1 - length] >> 3 & 7) == 2)
			return true;
	return false;
}

bool unwind_code_may_be_frame(const uint8_t *bytes, const uint8_t *end)
{
	/* A function can end with one of these single bytes: ret, retf, iret, hlt. */
	static const uint8_t ends[] = {0xc3, 0xcb, 0xcf, 0xf4};

	return end <= bytes || memchr(ends, end[-1], sizeof(ends)) ||
	       (end - bytes >= 5 && end[-5] == 0xe8) || may_end_indirect_call(bytes, end);
}
