/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What unwind-dlopen loads, as often as a test likes, with -DNAME=… -DROOM=…: functions of the
 * same size and place in each, with frames of ROOM bytes and more. -DROWS=…: and with an unwind
 * table of so many rows more, two for each two bytes of code that is never run. -DUNTOUCHED: no
 * memory of the frames is used, so pages of large ones are absent.
 */
#include "../common/frame.h"
#include <string.h>

#define JOIN(a, b)  a##b
#define NAMED(a, b) JOIN(a, b)
#define ENTER	    NAMED(enter_, NAME)
#define WITHIN	    NAMED(within_, NAME)

#ifdef UNTOUCHED
#define USE(room) (void)(room)
#else
#define USE(room) memset(room, 0, sizeof(room))
#endif

#ifdef ROWS
#define TEXT(a)	   #a
#define TEXT_OF(a) TEXT(a)
__asm__(".text\n"
	".cfi_startproc\n"
	".rept " TEXT_OF(ROWS) " / 2\n"
			       "nop\n.cfi_def_cfa_offset 16\nnop\n.cfi_def_cfa_offset 8\n"
			       ".endr\n"
			       "ret\n"
			       ".cfi_endproc\n");
#endif

FRAME void WITHIN(void (*callback)(void));
void ENTER(void (*callback)(void));

FRAME void WITHIN(void (*callback)(void))
{
	char room[ROOM];

	USE(room);
	__asm__ volatile("" ::"r"(room) : "memory", "rbx", "r12");
	callback();
	__asm__ volatile("" ::"r"(room) : "memory");
}

void ENTER(void (*callback)(void))
{
	char room[ROOM * 2];

	USE(room);
	__asm__ volatile("" ::"r"(room) : "memory", "r13", "r14", "r15");
	WITHIN(callback);
	__asm__ volatile("" ::"r"(room) : "memory");
}
