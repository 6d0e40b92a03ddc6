# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions in which stacks begin: by name, or by address in a stripped file.

An entry point is what the ELF header says; clone3 and clone are the functions around the system
calls of these numbers, found by their machine code, for libc's table of symbols may name neither.
"""
import re
import struct
from functools import lru_cache
from pathlib import Path

from chains import ROOTS

ENTRY_LENGTH = 0x80  # of a _start, at most
# mov $NR, %eax; syscall. A new thread's first instruction is the one after.
CLONES = (b"\xb8\xb3\x01\x00\x00\x0f\x05", b"\xb8\x38\x00\x00\x00\x0f\x05")
CLONE_LENGTH = 0x20


class Places:
    """Returns the relative addresses of an ELF file at which stacks may begin."""

    def __init__(self, path):
        self.ranges = []
        data = Path(path).read_bytes()
        if data[:5] != b"\x7fELF\x02":
            return
        entry, offset = struct.unpack_from("<QQ", data, 24)
        size, count = struct.unpack_from("<HH", data, 54)
        segments = []
        for i in range(count):
            kind, flags, at, address, _, length, _, _ = struct.unpack_from(
                "<IIQQQQQQ", data, offset + i * size)
            if kind == 1:
                segments.append((flags, at, address, length))
        base = min((s[2] for s in segments), default=0) & ~0xfff
        if entry:
            self.ranges.append((entry - base, entry - base + ENTRY_LENGTH, "_start"))
        for flags, at, address, length in segments:
            if flags & 1:
                self._find_clones(data[at:at + length], address - base)

    def _find_clones(self, code, address):
        for bytes_, name in zip(CLONES, ("clone3", "clone")):
            for match in re.finditer(re.escape(bytes_), code):
                end = address + match.end()
                self.ranges.append((end, end + CLONE_LENGTH, name))

    def name(self, address):
        return next((name for low, high, name in self.ranges if low - 1 <= address < high), None)


@lru_cache(maxsize=None)
def places_of(path):
    return Places(path)


class Roots:
    """The roots of one profile's stacks."""

    def __init__(self, profile):
        self.paths = {lib["name"]: lib["path"] for lib in profile.data["libs"]}

    def name(self, frame):
        """The outermost function that this frame is in, or None if it is none."""
        if frame.pseudo:
            return None
        if frame.name in ROOTS:
            return frame.name
        path = self.paths.get(frame.library)
        if not path or not Path(path).is_file():
            return None
        return places_of(path).name(frame.address)

    def __call__(self, frame):
        return self.name(frame) is not None
