# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that breaks the list of its own frames while it waits: corrupt.py WHAT (Python 3.11).

WHAT is "circle" (a frame's caller is that frame itself), "garbage" (its caller is nowhere), or "last" (its caller is at
the last addresses, so that its end is at the first ones).
"""
import ctypes
import sys
import time

FRAME_OF_OBJECT = 24  # PyFrameObject.f_frame
PREVIOUS = 48  # _PyInterpreterFrame.previous


def broken(what):
    frame = ctypes.c_uint64.from_address(id(sys._getframe()) + FRAME_OF_OBJECT).value
    previous = ctypes.c_uint64.from_address(frame + PREVIOUS)
    kept = previous.value
    for i in range(100):
        previous.value = {"circle": frame, "garbage": 0xdead0000, "last": 2**64 - 8 * (1 + i % 14)}[what]
        time.sleep(0.003)
        previous.value = kept


def whole():
    for _ in range(100):
        time.sleep(0.003)


time.sleep(0.3)
broken(sys.argv[1])
whole()
