# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kinds of records, flags and values of enums occur in captures, by bpf/abi and the offsets of the fields.

The fuzzer hardly finds a value that no seed has (tests/fuzz/capture_values.c)."""
import re
import struct

from capture_reader import records
from harness import ROOT

ABI = ROOT / "bpf" / "abi"
KIND = re.compile(r"KIND\((\w+), (\d+),")
ENUM = re.compile(r"enum (\w+) \{(.*?)\};", re.S)
MEMBER = re.compile(r"(\w+) = (?:1 << )?(\d+)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
FLAGS_AT = 5  # in each record
# Of records that have a mask of bits, and of those that have one of the values: enum -> (kind of record, offset, format).
BITS = {name: (kind, FLAGS_AT, "B") for kind, name in (
    (1, "switch_flags"), (2, "waking_flags"), (3, "task_flags"), (5, "exit_flags"), (7, "snapshot_flags"),
    (16, "sample_flags"), (17, "stack_flags"), (19, "fault_flags"), (20, "inode_flags"), (21, "request_flags"),
    (22, "socket_flags"), (23, "watch_flags"), (25, "args_flags"), (34, "window_flags"), (36, "file_flags"),
    (37, "mapping_flags"), (38, "space_flags"), (39, "symbol_flags"), (42, "end_flags"))}
BITS |= {"switch_parts": (1, 32, "H"), "waking_parts": (2, 24, "H"), "exit_parts": (5, 28, "H"),
         "stats_parts": (6, 20, "H"), "snapshot_parts": (7, 78, "H")}
VALUES = {"fd_kind": (1, 34, "B"), "switch_lock": (1, 100, "B"), "stack_result": (17, 30, "H"),
          "fault_memory": (19, 64, "B"), "fault_page": (19, 65, "B"), "fault_hook": (19, 66, "B"),
          "request_via": (21, 103, "B"), "script_language": (26, 20, "B"), "script_result": (27, 30, "B"),
          "loss_cause": (40, 20, "I")}
NEVER = {"STACK_COPY"}  # a kind that is in no capture
NO_FIELD = {"record_kind_flags"}


def abi_text():
    return COMMENT.sub("", "".join(path.read_text() for path in sorted(ABI.glob("*.h"))))


def enums():
    """Name of each enum -> {name: number} of its members that have one."""
    return {name: {member: 1 << int(number) if f"{member} = 1 << {number}" in body else int(number)
                   for member, number in MEMBER.findall(body)}
            for name, body in ENUM.findall(abi_text())}


def seen_in(paths):
    """(kinds of records, {enum: all its bits, or its values})"""
    kinds, bits, values = set(), dict.fromkeys(BITS, 0), {name: set() for name in VALUES}
    for path in paths:
        for kind, _, _, raw in records(path, set(range(256))):
            kinds.add(kind)
            for fields in (BITS, VALUES):
                for name, (of, at, letter) in fields.items():
                    if of != kind or at + struct.calcsize(letter) > len(raw):
                        continue
                    value, = struct.unpack_from("<" + letter, raw, at)
                    if fields is BITS:
                        bits[name] |= value
                    else:
                        values[name].add(value)
    return kinds, bits, values


def missing_values(paths):
    """The names of what occurs in none of the captures, and of masks that are not looked at here."""
    kinds, bits, values = seen_in(paths)
    known = enums()
    missing = [f"REC_{name}" for name, number in KIND.findall(abi_text()) if int(number) not in kinds and name not in NEVER]
    missing += [member for name, all_bits in bits.items() for member, bit in known[name].items() if not all_bits & bit]
    missing += [member for name, found in values.items() for member, number in known[name].items() if number not in found]
    return missing + [name for name in known
                      if name.endswith(("_flags", "_parts")) and name not in BITS and name not in NO_FIELD]
