/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_record.h"
#include <string.h>

static size_t append(SymbolRecord *record, const void *data, size_t size)
{
	size_t offset = record->bytes.count;

	vec_append(&record->bytes, (const uint8_t *)data, size);
	return offset;
}

static void append_text(SymbolRecord *record, const char *text)
{
	static const char ellipsis[] = "…";
	size_t length = strnlen(text, SYMBOL_TEXT_MAX);

	/* Not in the middle of a character: bytes 0x80 to 0xbf continue one (UTF-8). */
	while (length > 0 && text[length] && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	append(record, text, length);
	if (text[length])
		append(record, ellipsis, sizeof(ellipsis));
	else
		append(record, "", 1);
}

void symbol_record_begin(SymbolRecord *record, uint64_t address)
{
	struct rec_symbol symbol = {.h.kind = REC_SYMBOL, .address = address};

	record->bytes.count = 0;
	append(record, &symbol, offsetof(struct rec_symbol, text));
}

void symbol_record_add(SymbolRecord *record, const char *name, const char *source, uint32_t line)
{
	append(record, &line, sizeof(line));
	append_text(record, name);
	append_text(record, source);
	((struct rec_symbol *)record->bytes.items)->count++;
}

struct rec_symbol *symbol_record_finish(SymbolRecord *record, const char *module)
{
	static const uint8_t zeros[8];
	struct rec_symbol *symbol;
	size_t offset = 0;

	if (module)
		offset = append(record, module, strlen(module) + 1);
	append(record, zeros, -record->bytes.count & 7);
	symbol = (struct rec_symbol *)record->bytes.items;
	symbol->h.len = record->bytes.count;
	symbol->lib = module ? offset - offsetof(struct rec_symbol, text) : 0;
	return symbol;
}

void symbol_record_free(SymbolRecord *record)
{
	vec_free(&record->bytes);
}
