/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_offsets.c - compares the offsets of one version of CPython with its own headers, by which
 * it is compiled. Prints each difference; the status is 1 if there is one.
 */
#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>

#include <internal/pycore_gil.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif

#include "python_layouts.h"
#include <stddef.h>
#include <stdio.h>

static int differences;

static void compare(const char *name, size_t known, size_t true_one)
{
	if (known == true_one)
		return;
	printf("%s: %zu, should be %zu\n", name, known, true_one);
	differences++;
}

#define COMPARE(member, type, field)                                                               \
	compare(#type "." #field, layout->member, offsetof(type, field))

static void compare_all(const struct python_layout *layout)
{
	COMPARE(interpreters, _PyRuntimeState, interpreters.head);
	COMPARE(next_interpreter, PyInterpreterState, next);
	COMPARE(next_thread, PyThreadState, next);
	COMPARE(thread_interpreter, PyThreadState, interp);
	COMPARE(lock_holder, struct _gil_runtime_state, last_holder);
	COMPARE(lock_held, struct _gil_runtime_state, locked);
#if PY_VERSION_HEX >= 0x030c0000
	COMPARE(lock, PyInterpreterState, ceval.gil);
#else
	COMPARE(lock, _PyRuntimeState, ceval.gil);
#endif
	COMPARE(thread_id, PyThreadState, thread_id);
	COMPARE(code_first_line, PyCodeObject, co_firstlineno);
	COMPARE(code_path, PyCodeObject, co_filename);
	compare("text", layout->text, sizeof(PyASCIIObject));
	compare("wide text", layout->wide_text, sizeof(PyCompactUnicodeObject));
#if PY_VERSION_HEX >= 0x030a0000
	COMPARE(code_table, PyCodeObject, co_linetable);
#else
	COMPARE(code_table, PyCodeObject, co_lnotab);
#endif
#if PY_VERSION_HEX >= 0x030b0000
	COMPARE(threads, PyInterpreterState, threads.head);
	COMPARE(thread_frame, PyThreadState, cframe);
	COMPARE(cframe_frame, _PyCFrame, current_frame);
	COMPARE(frame_code, _PyInterpreterFrame, f_code);
	COMPARE(frame_previous, _PyInterpreterFrame, previous);
	COMPARE(frame_instruction, _PyInterpreterFrame, prev_instr);
	COMPARE(code_name, PyCodeObject, co_qualname);
	COMPARE(code_instructions, PyCodeObject, co_code_adaptive);
#else
	COMPARE(threads, struct _is, tstate_head);
	COMPARE(thread_frame, PyThreadState, frame);
	COMPARE(frame_code, struct _frame, f_code);
	COMPARE(frame_previous, struct _frame, f_back);
	COMPARE(frame_instruction, struct _frame, f_lasti);
	COMPARE(code_name, PyCodeObject, co_name);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	COMPARE(frame_owner, _PyInterpreterFrame, owner);
#elif PY_VERSION_HEX >= 0x030b0000
	COMPARE(frame_owner, _PyInterpreterFrame, is_entry);
#endif
}

int main(void)
{
	for (size_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++)
		if (python_layouts[i].version == PY_VERSION_HEX >> 16) {
			compare_all(&python_layouts[i]);
			return differences > 0;
		}
	printf("no offsets of %x\n", PY_VERSION_HEX);
	return 1;
}
