/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_decode.h"

/* The operand bytes that follow an opcode. */
enum {
	MODRM = 1 << 0,
	BYTE = 1 << 1, /* an immediate of one byte */
	WORD = 1 << 2, /* an immediate of two bytes */
	FULL = 1 << 3, /* an immediate of four bytes, or two with an operand size prefix */
	NEAR = 1 << 4, /* an immediate of four bytes with any prefix */
	NONE = 1 << 7, /* the opcode is invalid in 64-bit mode, or only a prefix */
};

#define TIMES4(x)  x, x, x, x
#define TIMES8(x)  TIMES4(x), TIMES4(x)
#define TIMES16(x) TIMES8(x), TIMES8(x)
#define ARITHMETIC TIMES4(MODRM), BYTE, FULL, NONE, NONE

/* The opcode maps of the SDM, appendix A: each line is half a row or a whole one. */
/* clang-format off */
static const uint8_t one_byte[256] = {
	/* 00 */ ARITHMETIC, ARITHMETIC,
	/* 10 */ ARITHMETIC, ARITHMETIC,
	/* 20 */ ARITHMETIC, ARITHMETIC,
	/* 30 */ ARITHMETIC, ARITHMETIC,
	/* 40: REX */ TIMES16(NONE),
	/* 50: push, pop */ TIMES16(0),
	/* 60 */ NONE, NONE, NONE, MODRM, TIMES4(NONE),
	/* 68 */ FULL, MODRM | FULL, BYTE, MODRM | BYTE, TIMES4(0),
	/* 70: jcc */ TIMES16(BYTE),
	/* 80 */ MODRM | BYTE, MODRM | FULL, NONE, MODRM | BYTE, TIMES4(MODRM),
	/* 88 */ TIMES8(MODRM),
	/* 90 */ TIMES8(0), 0, 0, NONE, 0, TIMES4(0),
	/* a0: addresses, see read_immediate() */ TIMES8(0), BYTE, FULL, 0, 0, TIMES4(0),
	/* b0 */ TIMES8(BYTE), TIMES8(FULL),
	/* c0 */ MODRM | BYTE, MODRM | BYTE, WORD, 0, NONE, NONE, MODRM | BYTE, MODRM | FULL,
	/* c8 */ WORD | BYTE, 0, WORD, 0, 0, BYTE, NONE, 0,
	/* d0 */ TIMES4(MODRM), NONE, NONE, NONE, 0, TIMES8(MODRM),
	/* e0 */ TIMES8(BYTE), NEAR, NEAR, NONE, BYTE, TIMES4(0),
	/* f0 */ NONE, 0, NONE, NONE, 0, 0, MODRM, MODRM, TIMES4(0), 0, 0, MODRM, MODRM,
};

static const uint8_t two_bytes[256] = {
	/* 00 */ TIMES4(MODRM), NONE, 0, 0, 0,
	/* 08 */ 0, 0, NONE, 0, NONE, MODRM, 0, MODRM | BYTE,
	/* 10 */ TIMES16(MODRM),
	/* 20 */ TIMES4(MODRM), TIMES4(NONE), TIMES8(MODRM),
	/* 30 */ TIMES4(0), 0, 0, NONE, 0, TIMES8(NONE),
	/* 40: cmov */ TIMES16(MODRM),
	/* 50 */ TIMES16(MODRM),
	/* 60 */ TIMES16(MODRM),
	/* 70 */ TIMES4(MODRM | BYTE), MODRM, MODRM, MODRM, 0, TIMES8(MODRM),
	/* 80: jcc */ TIMES16(NEAR),
	/* 90: setcc */ TIMES16(MODRM),
	/* a0 */ 0, 0, 0, MODRM, MODRM | BYTE, MODRM, MODRM, MODRM,
	/* a8 */ 0, 0, 0, MODRM, MODRM | BYTE, MODRM, MODRM, MODRM,
	/* b0 */ TIMES8(MODRM), MODRM, MODRM, MODRM | BYTE, MODRM, TIMES4(MODRM),
	/* c0 */ MODRM, MODRM, MODRM | BYTE, MODRM, MODRM | BYTE, MODRM | BYTE, MODRM | BYTE, MODRM,
	/* c8: bswap */ TIMES8(0),
	/* d0 */ TIMES16(MODRM),
	/* e0 */ TIMES16(MODRM),
	/* f0 */ TIMES16(MODRM),
};
/* clang-format on */

static bool next_byte(Decoder *decoder, uint8_t *ret)
{
	if (decoder->at >= decoder->size)
		return false;
	*ret = decoder->bytes[decoder->at++];
	return true;
}

/* Reads a signed number of 1, 2, 4 or 8 bytes; of 8 bytes, only the lower four. */
static bool next_number(Decoder *decoder, size_t bytes, int32_t *ret)
{
	const uint8_t *from = decoder->bytes + decoder->at;
	int16_t word;

	if (bytes > decoder->size - decoder->at)
		return false;
	decoder->at += bytes;
	if (bytes == 1) {
		*ret = *(const int8_t *)from; /* NOLINT: its sign is wanted */
	} else if (bytes == 2) {
		memcpy(&word, from, sizeof(word));
		*ret = word;
	} else {
		memcpy(ret, from, sizeof(*ret));
	}
	return true;
}

/* ---- prefixes and opcode -------------------------------------------------------------- */

/* VEX and EVEX encode the prefixes 66, F3 and F2 in two bits (pp). */
static void apply_prefix(Decoder *decoder, uint8_t byte)
{
	decoder->narrow = (byte & 3) == 1;
	decoder->repeats = (byte & 3) == 2;
}

static bool read_vex2(Decoder *decoder)
{
	uint8_t byte;

	if (!next_byte(decoder, &byte))
		return false;
	decoder->rex = byte & 0x80 ? 0 : REX_R;
	decoder->vex_reg = ~byte >> 3 & 15;
	apply_prefix(decoder, byte);
	decoder->map = MAP_0F;
	decoder->vex = true;
	return next_byte(decoder, &decoder->op);
}

static bool read_vex3(Decoder *decoder)
{
	uint8_t first, second;

	if (!next_byte(decoder, &first) || !next_byte(decoder, &second))
		return false;
	decoder->rex = (~first >> 5 & 7) | (second & 0x80 ? REX_W : 0);
	decoder->vex_reg = ~second >> 3 & 15;
	apply_prefix(decoder, second);
	decoder->map = first & 0x1f;
	decoder->vex = true;
	return decoder->map >= MAP_0F && decoder->map <= MAP_0F3A &&
	       next_byte(decoder, &decoder->op);
}

static bool read_evex(Decoder *decoder)
{
	uint8_t first, second, third;

	if (!next_byte(decoder, &first) || !next_byte(decoder, &second) ||
	    !next_byte(decoder, &third))
		return false;
	decoder->rex = (~first >> 5 & 7) | (second & 0x80 ? REX_W : 0);
	/* vvvv is a vector register here. The EVEX instructions that write a general register
	 * name it by ModRM. */
	decoder->vex_reg = X86_NONE;
	apply_prefix(decoder, second);
	decoder->vex = true;
	switch (first & 7) {
	case MAP_0F ... MAP_0F3A:
		decoder->map = first & 7;
		break;
	case 5: /* half-precision numbers */
	case 6:
		decoder->map = MAPS_OTHER;
		break;
	default: /* APX, which can change rsp, and reserved maps */
		return false;
	}
	return next_byte(decoder, &decoder->op);
}

/* The opcode after 0F, which may be another escape (38, 3A). */
static bool read_long_opcode(Decoder *decoder)
{
	if (!next_byte(decoder, &decoder->op))
		return false;
	decoder->map = MAP_0F;
	if (decoder->op != 0x38 && decoder->op != 0x3a)
		return true;
	decoder->map = decoder->op == 0x38 ? MAP_0F38 : MAP_0F3A;
	return next_byte(decoder, &decoder->op);
}

static bool read_opcode(Decoder *decoder)
{
	uint8_t byte;

	for (;;) {
		if (!next_byte(decoder, &byte))
			return false;
		switch (byte) {
		case 0x66:
			decoder->narrow = true;
			continue;
		case 0x67:
			decoder->short_address = true;
			continue;
		case 0xf3:
			decoder->repeats = true;
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
		case 0xf2:
			continue;
		}
		break;
	}
	if ((byte & 0xf0) == 0x40) {
		decoder->rex = byte & 0x0f;
		decoder->has_rex = true;
		if (!next_byte(decoder, &byte))
			return false;
	}
	switch (byte) {
	case 0x0f:
		return read_long_opcode(decoder);
	case 0xc5:
		return read_vex2(decoder);
	case 0xc4:
		return read_vex3(decoder);
	case 0x62:
		return read_evex(decoder);
	}
	decoder->op = byte;
	return true;
}

/* ---- operands ------------------------------------------------------------------------- */

static bool read_memory(Decoder *decoder)
{
	uint8_t sib = 0, low = decoder->rm & 7;
	bool no_base;

	if (low == X86_RSP) {
		if (!next_byte(decoder, &sib))
			return false;
		low = sib & 7;
		decoder->indexed = (sib >> 3 & 7) != X86_RSP || decoder->rex & REX_X;
	}
	no_base = decoder->mod == 0 && low == X86_RBP;
	decoder->relative = no_base && (decoder->rm & 7) != X86_RSP;
	if (!no_base)
		decoder->base = low | (decoder->rex & REX_B ? 8 : 0);
	if (decoder->mod == 1)
		return next_number(decoder, 1, &decoder->displacement);
	if (decoder->mod == 2 || no_base)
		return next_number(decoder, 4, &decoder->displacement);
	return true;
}

static bool read_modrm(Decoder *decoder)
{
	uint8_t byte;

	if (!next_byte(decoder, &byte))
		return false;
	decoder->mod = byte >> 6;
	decoder->reg = (byte >> 3 & 7) | (decoder->rex & REX_R ? 8 : 0);
	decoder->rm = (byte & 7) | (decoder->rex & REX_B ? 8 : 0);
	return decoder->mod == MOD_DIRECT || read_memory(decoder);
}

/* Returns the operands that the opcode has; NONE: it is invalid. */
static uint8_t form_of(const Decoder *decoder)
{
	uint8_t form;

	switch (decoder->map) {
	case MAP_ONE:
		return one_byte[decoder->op];
	case MAP_0F:
		form = two_bytes[decoder->op];
		/* In this map, only vzeroupper and vzeroall have no operands. */
		if (decoder->vex && decoder->op != 0x77)
			form = (form & BYTE) | MODRM;
		return form;
	case MAP_0F3A:
		return MODRM | BYTE;
	case MAP_0F38:
	case MAPS_OTHER:
		return MODRM;
	}
	return NONE;
}

static bool read_immediate(Decoder *decoder, uint8_t form)
{
	size_t full = decoder->narrow && !(decoder->rex & REX_W) ? 2 : 4;

	if (decoder->map == MAP_ONE) {
		/* In group 3, only test has an immediate. */
		if ((decoder->op & 0xfe) == 0xf6 && (decoder->reg & 7) < 2)
			form |= decoder->op == 0xf6 ? BYTE : FULL;
		if ((decoder->op & 0xf8) == 0xb8 && decoder->rex & REX_W)
			full = 8;
		if ((decoder->op & 0xfc) == 0xa0)
			return next_number(decoder, decoder->short_address ? 4 : 8,
					   &decoder->immediate);
	}
	return (!(form & WORD) || next_number(decoder, 2, &decoder->immediate)) &&
	       (!(form & BYTE) || next_number(decoder, 1, &decoder->immediate)) &&
	       (!(form & FULL) || next_number(decoder, full, &decoder->immediate)) &&
	       (!(form & NEAR) || next_number(decoder, 4, &decoder->immediate));
}

bool unwind_decode(Decoder *decoder)
{
	uint8_t form;

	if (!read_opcode(decoder))
		return false;
	form = form_of(decoder);
	return !(form & NONE) && (!(form & MODRM) || read_modrm(decoder)) &&
	       read_immediate(decoder, form);
}
