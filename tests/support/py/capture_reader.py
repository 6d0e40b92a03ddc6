# SPDX-License-Identifier: GPL-2.0-or-later
"""The records of a capture, read by nothing but its description (docs/reference/capture-format.md)."""
import struct
import subprocess

SWITCH, SAMPLE, STACK, INODE, META = 1, 16, 17, 20, 33
INODE_TEXT = 40
SWITCH_PREV, FROM_COPY = 1, 8
META, END = 33, 42
HEADER_LENGTH = 32
RECORD = struct.Struct("<IBBHQ")  # length, kind, flags, cpu, ns


def records(path, kinds):
    """(kind, flags, ns, record as bytes) of these kinds, in the order of the file."""
    raw = subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    at, view = 0, memoryview(raw)
    while at + RECORD.size <= len(raw):
        length, kind, flags, _, ns = RECORD.unpack_from(raw, at)
        if length < RECORD.size:
            raise ValueError("a record of no length")
        if kind in kinds:
            yield kind, flags, ns, view[at:at + length]
        at += length


def cpus_since(path, kind, since_ns):
    """The CPUs of which there are records of this kind after that time (CLOCK_MONOTONIC)."""
    return {RECORD.unpack_from(raw)[3] for _, _, ns, raw in records(path, {kind}) if ns > since_ns}


def keep(path, kinds, into):
    """Writes a capture of these kinds' records alone."""
    plain = into.with_suffix(".records")
    plain.write_bytes(b"".join(bytes(record) for *_, record in records(path, kinds)))
    frame = subprocess.run(["zstd", "-cq", plain], check=True, stdout=subprocess.PIPE).stdout
    into.write_bytes(path.read_bytes()[:HEADER_LENGTH] + frame)
    plain.unlink()
