/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_layouts.h - where objects of CPython 3.8 to 3.12 have what is read. It is included by
 * python_find.c alone, and by a program of the tests that compares it with Python's headers.
 */
#ifndef WALLPROF_PYTHON_LAYOUTS_H
#define WALLPROF_PYTHON_LAYOUTS_H

#include "script_maps.h"

/* Python 3.8 to 3.10, which differ in what an instruction's index counts and where a frame has it.
 */
#define LAYOUT_3_8(minor, lasti, unit, gil)                                                        \
	{                                                                                          \
		.version = 0x0300 + (minor), .frames = PYTHON_FRAMES_C, .code_unit = (unit),       \
		.interpreters = 32, .next_interpreter = 0, .threads = 8, .next_thread = 8,         \
		.thread_id = 176, .thread_frame = 24, .cframe_frame = PYTHON_NO_OFFSET,            \
		.frame_code = 32, .frame_previous = 24, .frame_instruction = (lasti),              \
		.code_first_line = 40, .code_path = 104, .code_name = 112, .code_table = 120,      \
		.text = 48, .wide_text = 72, .thread_interpreter = 16, .lock = (gil),              \
		.lock_holder = 8, .lock_held = 16,                                                 \
	}

static const struct python_layout python_layouts[] = {
	LAYOUT_3_8(8, 104, 1, 1152),
	LAYOUT_3_8(9, 104, 1, 352),
	LAYOUT_3_8(10, 96, 2, 352),
	{
		.version = 0x030b,
		.frames = PYTHON_FRAMES_ENTRY,
		.interpreters = 40,
		.next_interpreter = 0,
		.threads = 16,
		.next_thread = 8,
		.thread_id = 152,
		.thread_frame = 56,
		.cframe_frame = 8,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_instruction = 56,
		.frame_owner = 68,
		.code_first_line = 72,
		.code_path = 112,
		.code_name = 128,
		.code_table = 136,
		.code_instructions = 184,
		.text = 48,
		.wide_text = 72,
		.thread_interpreter = 16,
		.lock = 360,
		.lock_holder = 8,
		.lock_held = 16,
	},
	{
		.version = 0x030c,
		.frames = PYTHON_FRAMES_SHIM,
		.interpreters = 40,
		.next_interpreter = 0,
		.threads = 72,
		.next_thread = 8,
		.thread_id = 136,
		.thread_frame = 56,
		.cframe_frame = 0,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instruction = 56,
		.frame_owner = 70,
		.code_first_line = 68,
		.code_path = 112,
		.code_name = 128,
		.code_table = 136,
		.code_instructions = 192,
		.text = 40,
		.wide_text = 56,
		.version_is_unique = 1,
		.thread_interpreter = 16,
		.lock_is_pointer = 1,
		.lock = 384,
		.lock_holder = 8,
		.lock_held = 16,
	},
};

#endif
