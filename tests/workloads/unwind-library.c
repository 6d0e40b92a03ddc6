/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What unwind-dlopen loads, as often as a test likes, with -DNAME=… -DROOM=…: functions of the
 * same size and place in each, with frames of ROOM bytes and more.
 */
#include <string.h>

#define JOIN(a, b)  a##b
#define NAMED(a, b) JOIN(a, b)
#define ENTER	    NAMED(enter_, NAME)
#define WITHIN	    NAMED(within_, NAME)

__attribute__((noipa)) void WITHIN(void (*callback)(void));
void ENTER(void (*callback)(void));

__attribute__((noipa)) void WITHIN(void (*callback)(void))
{
	char room[ROOM];

	memset(room, 0, sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory", "rbx", "r12");
	callback();
	__asm__ volatile("" ::"r"(room) : "memory");
}

void ENTER(void (*callback)(void))
{
	char room[ROOM * 2];

	memset(room, 0, sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory", "r13", "r14", "r15");
	WITHIN(callback);
	__asm__ volatile("" ::"r"(room) : "memory");
}
