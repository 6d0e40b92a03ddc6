# SPDX-License-Identifier: GPL-2.0-or-later
"""wallprof's walk, compiled for user space, against libdwfl and gdb on living processes and on core files."""
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import distro_programs
from gdb_oracle import ORACLE, check_gdb, run_gdb, stop_by_gdb
from harness import WORKLOADS, Skip, check, expect_failure, is_long, needs_root

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs the programs")]
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
        expect_failure(check_gdb, altered(found))
    print(f"# against gdb: {dict(total)}", flush=True)
    check(sum(total.values()) >= 200, f"{total}: too few stops")


# Kinds of code in which an oracle gets less far than the product, or the walk of these tests does: it does not
# guess in files that are not ELF, and that a fiber ends is found on export only. What all have
# must be the same there, too.
LOST = {
    "no-cfi": "the oracles guess in code without call frame information",
    "aligned": "the oracles guess in code without call frame information",
    "context": "all follow the planted return address, and find a frame that is none",
    "planted": "all follow the planted return address, and find a frame that is none",
    "raw-file": "this walk does not guess in files that are not ELF",
    "gmp": "the oracles guess in code without call frame information",
    "x264": "the oracles guess in code without call frame information",
}
GDB_LOST = {
    **LOST,
    "frame-pointers": "gdb analyses prologues where there is no call frame information",
    "gnutls": "its parent process, which gdb follows, does nothing",
}
OWN_KINDS = [name for name, kind in distro_programs.HARD.items() if kind.chain]


def hard_programs(context, others):
    """Yields the name and the command of each kind of hard code; of those that are no program of ours, as many as that."""
    names = [name for name in distro_programs.HARD if name not in OWN_KINDS]
    for name in OWN_KINDS + (names if is_long() else context.random.sample(names, others)):
        try:
            yield name, distro_programs.HARD[name].command(context)
        except Skip as skipped:
            print(f"# {name}: skipped, {skipped}", flush=True)


def check_share(name, equal, judged, least, lost):
    check(name in lost or equal >= least * judged, f"{name}: only {equal} of {judged} stacks are equal")


def test_hard_kinds_by_libdwfl(context):
    for name, command in hard_programs(context, 4):
        found, text = collect(lambda command=command: stop_by_libdwfl(context, command, 40, 6000), 20)
        print(f"# {name} against libdwfl: {dict(found)}{', ' + LOST[name] if name in LOST else ''}", flush=True)
        check(found["stops"] >= 15, f"{name}: hardly a stop")
        check_found(found, f"{name}: {text}", cut_share=1 if name in LOST else 0.05)
        check_share(name, found["equal"], found["stops"] - found["unread"], 0.75, LOST)
    found, text = stop_by_libdwfl(context, distro_programs.HARD["plain"].command(context), 20, 6000, alter=8)
    expect_failure(check_found, found, text)


def test_vsyscall_by_gdb(context):
    """The program counter is in the page that only the kernel carries out: a program is hardly ever stopped there."""
    if "[vsyscall]" not in Path("/proc/self/maps").read_text():
        raise Skip("this kernel has no vsyscall page")
    stops = run_gdb(context, "--args", WORKLOADS / "unwind-calls", "vsyscall", "600", stops=8, max_ms=30,
                    until="vsyscall", step_into="ffffffffff600400")
    check(len(stops) >= 5, f"only {len(stops)} stops came to the page")
    check(all(stop["gdb"][0][0] == stop["wallprof"][0] == 0xffffffffff600400 for stop in stops), "not in the page")
    counts = check_gdb(stops)
    check(counts["equal"] == len(stops), f"{counts}")
    expect_failure(check_gdb, altered(stops))


def altered(stops):
    """Of stops: wallprof's frames but for the innermost are one byte further."""
    return [{**stop, "wallprof": stop["wallprof"][:1] + [a + 1 for a in stop["wallprof"][1:]]} for stop in stops]


def test_hard_kinds_by_gdb(context):
    """The dynamic linker is omitted in programs of ours: gdb has not read their files then."""
    total = Counter()
    for name, command in hard_programs(context, 3):
        until = {"until": "main"} if name in OWN_KINDS else {}
        stops = run_gdb(context, "--args", *command, stops=6, max_ms=30, **until)
        counts = check_gdb(stops, cut_share=1 if name in GDB_LOST else 0.2)
        print(f"# {name} against gdb: {dict(counts)}{', ' + GDB_LOST[name] if name in GDB_LOST else ''}", flush=True)
        check_share(name, counts["equal"], len(stops) - counts["gdb is lost"], 0.8, GDB_LOST)
        if name not in GDB_LOST and counts["equal"]:
            expect_failure(check_gdb, altered(stops))
        total.update(counts)
    check(total["equal"] >= 15, f"{total}: too few stops")
