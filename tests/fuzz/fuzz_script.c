/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of lines of Python's code, which the program may have filled with anything: a line is
 * in range, and always the same. A byte for the version, four for the first line, four for the
 * instruction, then the table.
 */
#include "fuzz.h"
#include "script_language.h"

#define HEADER_BYTES 9
#define FIRST_MINOR  8
#define MINORS	     7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rec_script_code *code;
	int32_t at;
	uint32_t line;

	if (size < HEADER_BYTES || size - HEADER_BYTES > SCRIPT_TABLE_MAX)
		return 0;
	/* Exactly as long as it is: what is read behind its end is seen. */
	code = xcalloc(1, sizeof(*code) + size - HEADER_BYTES);
	code->version = 0x0300 + FIRST_MINOR + data[0] % MINORS;
	memcpy(&code->first_line, data + 1, sizeof(code->first_line));
	memcpy(&at, data + 5, sizeof(at));
	code->table_bytes = size - HEADER_BYTES;
	memcpy(code->table, data + HEADER_BYTES, code->table_bytes);
	line = script_python.line(code, at);
	fuzz_require(at < 0 || line <= INT32_MAX);
	fuzz_require(line == script_python.line(code, at));
	free(code);
	return 0;
}
