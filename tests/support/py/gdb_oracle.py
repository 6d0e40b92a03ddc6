# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of a program at random instants, by gdb, beside those of wallprof's walk (tests/oracle/gdb_stops.py)."""
import bisect
import json
import os
import re
import subprocess
from collections import Counter
from functools import lru_cache

from harness import BUILD, ROOT, check, needs_command, needs_root

ORACLE = BUILD / "tests" / "oracle" / "unwind-oracle"
FRAME_ADDRESS, FRAME_GUESSED = (1 << 62) - 1, 1 << 62
VSYSCALL_PAGE = 0xffffffffff600
COMPLETE, END_ZERO = 0, 4  # enum stack_result
FDE = re.compile(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)")


@lru_cache(maxsize=None)
def read_tables(path):
    """Returns the segments of a file, and the ranges of code that its call frame information covers, sorted."""
    def lines(what):
        return subprocess.run(["readelf", "-W", what, path], capture_output=True, text=True).stdout.splitlines()

    needs_command("readelf")
    loads = [[int(word, 16) for word in line.split()[1:6]] for line in lines("-l") if line.startswith("  LOAD")]
    ranges = (match.groups() for match in map(FDE.search, lines("--debug-dump=frames")) if match)
    return loads, sorted((int(begin, 16), int(end, 16)) for begin, end in ranges)


def function_at(path, offset):
    """Returns the range of addresses of the function at this offset of the file, by its call frame information; None if it
    has none there, and (0, 0) if the offset has no address."""
    loads, ranges = read_tables(path)
    address = next((offset - start + at for start, at, _, size, _ in loads if start <= offset < start + size), None)
    if address is None:
        return 0, 0
    after = bisect.bisect_right(ranges, (address, 1 << 64))
    return ranges[after - 1] if after > 0 and address < ranges[after - 1][1] else None


def address_of(frame):
    """A frame of wallprof's walk without its marks; addresses in the page of vsyscalls have all upper bits, and no marks."""
    return frame if frame >> 12 == VSYSCALL_PAGE else frame & FRAME_ADDRESS


def compare_with_gdb(stop):
    """"equal", or what explains that it is not; None if nothing does."""
    theirs = [pc for pc, _ in stop["gdb"]]
    # A return address of 0, which gdb shows and follows no further, is where ours ends, too.
    if stop["result"] == END_ZERO and theirs[-1] == 0:
        theirs.pop()
    guess = next((i for i, pc in enumerate(stop["wallprof"]) if pc != address_of(pc) and pc & FRAME_GUESSED), None)
    ours = [address_of(pc) for pc in stop["wallprof"]]
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
                min(len(ours), len(theirs)))
    if guess is not None and same >= guess:
        return "guessed"
    if same == len(ours) == len(theirs):
        return "equal" if stop["result"] in (COMPLETE, END_ZERO) else "cut"
    if same == len(ours) and stop["result"] != COMPLETE:
        return "cut"
    # In code without call frame information, such as _init(), gdb analyses the prologue, and may take any word of the
    # stack for the return address. A return address can lie behind the end of its function.
    place = stop["places"][same - 1] if same > 0 and "places" in stop else None
    if place and not function_at(place[0], place[1] - (same > 1)):
        return "gdb is lost"
    if same > 0 and not stop.get("known", [True] * same)[same - 1]:
        return "gdb is lost"
    # gdb analyses the prologue of an outermost frame, too, and finds a caller.
    if same == len(ours) and (stop["gdb"][same - 1][1] or "_start") in ("_start", "clone", "clone3"):
        return "gdb goes on"
    return None


def check_gdb(stops, cut_share=0.03):
    """Like check_found(); test_complete checks how many are truncated in all."""
    results = [compare_with_gdb(stop) for stop in stops]
    wrong = [stop for stop, result in zip(stops, results) if result is None]
    check(not wrong, f"{len(wrong)} of {len(stops)} differ: " + "\n".join(map(describe, wrong[:3])))
    counts = Counter(results)
    check(stops and counts["cut"] + counts["guessed"] <= cut_share * len(stops),
          f"too few reach their end: {counts}: "
          + "\n".join(describe(s) for s, r in zip(stops, results) if r == "cut"))
    return counts


def describe(stop):
    return (f"gdb ({stop['reason']}): " + " ".join(f"{pc:#x}({name})" for pc, name in stop["gdb"])
            + f"\nwallprof ({stop['result']}): " + " ".join(map(hex, stop["wallprof"])))


def run_gdb(context, *arguments, **settings):
    """gdb_stops.py: what it has to say of each stop, or of each thread of a core.

    libthread_db would believe the C library in vfork's child, too, that its parent is a thread.
    """
    needs_root()
    needs_command("gdb")
    result = context.path("stops")
    environment = {**os.environ, "WALLPROF_ORACLE": str(ORACLE), "WALLPROF_RESULT": str(result),
                   "WALLPROF_SEED": str(context.random.random()), "SHELL": "/bin/sh",
                   "WALLPROF_ANNOUNCE": str(context.path("announced")),
                   **{f"WALLPROF_{key.upper()}": str(value) for key, value in settings.items()}}
    done = subprocess.run(["gdb", "-q", "-batch", "-nx", "-iex", "set libthread-db-search-path /",
                           "-x", ROOT / "tests/oracle/gdb_stops.py", *map(str, arguments)],
                          capture_output=True, text=True, env=environment, cwd=context.folder,
                          timeout=300)
    check(done.returncode == 0 and result.exists(), f"gdb: {done.stderr[-1000:]}")
    return [json.loads(line) for line in result.read_text().splitlines()]


def stop_by_gdb(context, command, stops, max_ms):
    return run_gdb(context, "--args", *command, stops=stops, max_ms=max_ms)


def fiber_beginnings(context, command, stops=20):
    """Returns a function that says whether a frame is in one of the functions in which, by gdb, stacks end with a return
    address of 0: where fibers begin."""
    found = set()
    for stop in stop_by_gdb(context, command, stops, 20):
        if stop["result"] == END_ZERO and stop["gdb"][-1][0] == 0 and compare_with_gdb(stop) == "equal":
            path, offset = stop["places"][-2]
            found.add((os.path.basename(path), function_at(path, offset - 1)))
    check(found, "gdb has found no fiber")
    return lambda frame: any(frame.library == name and function[0] <= frame.address < function[1]
                             for name, function in found if function)
