# SPDX-License-Identifier: GPL-2.0-or-later
"""wallprof's walk, compiled for user space, against libdwfl and gdb on living processes and on core files."""
import bisect
import json
import os
import re
import subprocess
from collections import Counter
from functools import lru_cache

import pytest

import distro_programs
from harness import (BUILD, ROOT, WORKLOADS, check, expect_failure, is_long, needs_command, needs_root)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs the programs")]
ORACLE = BUILD / "tests" / "oracle" / "unwind-oracle"
FRAME_ADDRESS, FRAME_GUESSED = (1 << 62) - 1, 1 << 62
COMPLETE, END_ZERO = 0, 4  # enum stack_result
FIXTURES = (("unwind-calls", "recursion", "60", "20"), ("unwind-calls", "recursion", "60", "200"),
            ("unwind-calls", "realignment", "60"), ("unwind-calls", "dynamic", "60"),
            ("unwind-calls", "plt", "120"), ("unwind-calls", "vdso", "120"),
            ("unwind-signal", "10", "20"), ("unwind-static", "callback", "60"),
            ("unwind-tasks", "threads", "20", "20"), ("unwind-tasks", "cloned", "10", "10"),
            ("unwind-tasks", "vforks", "5", "20"), ("unwind-tasks", "storm", "5", "20"),
            ("unwind-tasks", "execs", "5", "20"))


def stop_by_libdwfl(context, command, stops, max_us, alter=0):
    needs_root()
    done = subprocess.run([str(w) for w in (ORACLE, context.random.randrange(1 << 31), stops,
                                            max_us, alter, *command)],
                          capture_output=True, text=True, errors="replace", timeout=300,
                          cwd=context.folder,
                          env={**os.environ, "WALLPROF_ANNOUNCE": str(context.path("announced"))})
    check(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), done.stderr


def check_found(found, text, cut_share=0.0):
    """No difference that nothing explains, and not more of ours cut short than that."""
    judged = found["stops"] - found["unread"]
    check(found["different"] == 0, f"{found}: {text}")
    check(judged > 0 and found["equal"] + found["both_cut"] + found["libdwfl_cut"]
          + found["libdwfl_guesses"] + found["births"]
          >= (1 - cut_share) * judged, f"too few reach their end: {found}: {text}")


def collect(stop, wanted, runs=10):
    """Returns what stop() finds, in as many runs as needed: some programs end very soon."""
    total, texts = Counter(), []
    for _ in range(runs):
        found, text = stop()
        total.update({key: n for key, n in found.items() if key != "cuts"})
        texts.append(text)
        if total["stops"] >= wanted:
            break
    return total, "".join(texts)


def test_fixtures_by_libdwfl(context):
    everything = Counter()
    for fixture in FIXTURES:
        command = [WORKLOADS / fixture[0], *fixture[1:]]
        found, text = collect(lambda: stop_by_libdwfl(context, command, 40, 4000), 20)
        check(found["stops"] >= 10, f"{fixture}: hardly a stop")
        check_found(found, f"{fixture}: {text}")
        everything.update(found)
    print(f"# fixtures against libdwfl: {dict(everything)}", flush=True)


def test_stock_by_libdwfl(context):
    """1,000 stops and more over the programs of test_complete. A short run uses half of the programs, and needs 500 stops."""
    stops, programs = 0, sorted(distro_programs.ALL.items())
    if not is_long():
        programs = context.random.sample(programs, (len(programs) + 1) // 2)
    for name, make in programs:
        found, text = collect(
            lambda: stop_by_libdwfl(context, make(context), 150, 6000), 150)
        print(f"# {name} against libdwfl: {dict(found)}", flush=True)
        # Code that node makes at run time has no tables; a few frames of other programs need a register
        # that only the leaf has. How many are cut short in all is test_complete's.
        check_found(found, f"{name}: {text}", cut_share=1 if name == "node" else 0.03)
        stops += found["stops"]
    check(stops >= (1000 if is_long() else 500), f"{stops} stops only")


def test_altered_by_libdwfl(context):
    """From a stack pointer that is 8 too high, the walk must differ."""
    found, text = collect(lambda: stop_by_libdwfl(context, distro_programs.python_threads(context), 40, 10000, alter=8), 5)
    check(found["stops"] >= 5 and found["different"] > found["stops"] / 2, f"{found}")
    expect_failure(check_found, found, text)


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


def has_tables(path, offset):
    """Returns whether call frame information covers the code at this offset of the file; also True if that is unknown."""
    loads, ranges = read_tables(path)
    address = next((offset - start + at for start, at, _, size, _ in loads if start <= offset < start + size), None)
    if address is None:
        return True
    after = bisect.bisect_right(ranges, (address, 1 << 64))
    return after > 0 and address < ranges[after - 1][1]


def compare_with_gdb(stop):
    """"equal", or what explains that it is not; None if nothing does."""
    theirs = [pc for pc, _ in stop["gdb"]]
    # A return address of 0, which gdb shows and follows no further, is where ours ends, too.
    if stop["result"] == END_ZERO and theirs[-1] == 0:
        theirs.pop()
    guess = next((i for i, pc in enumerate(stop["wallprof"]) if pc & FRAME_GUESSED), None)
    ours = [pc & FRAME_ADDRESS for pc in stop["wallprof"]]
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
    if place and not has_tables(place[0], place[1] - (same > 1)):
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


def test_by_gdb(context):
    """200 stops and more."""
    total = Counter()
    for command, wanted in (([WORKLOADS / "unwind-calls", "recursion", "300"], 40),
                            ([WORKLOADS / "unwind-registers", "60"], 20),
                            ([WORKLOADS / "unwind-signal", "30", "20"], 40),
                            (distro_programs.python_threads(context), 60),
                            (distro_programs.openssl_speed(context), 50), (distro_programs.sqlite(context), 50)):
        found = []
        for _ in range(10):
            found += stop_by_gdb(context, command, wanted - len(found), 10)
            if len(found) >= wanted:
                break
        total.update(check_gdb(found))
        expect_failure(check_gdb, [{**stop, "wallprof": stop["wallprof"][:1]
                                    + [a + 1 for a in stop["wallprof"][1:]]} for stop in found])
    print(f"# against gdb: {dict(total)}", flush=True)
    check(sum(total.values()) >= 200, f"{total}: too few stops")
