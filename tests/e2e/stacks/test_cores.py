# SPDX-License-Identifier: GPL-2.0-or-later
"""wallprof's walk over core files, against libdwfl and gdb on the same cores.

The programs of test_walk, which gdb stops at random instants to make cores of. Code is not dumped: it is
read in the files that the core names.
"""
import json
import subprocess
from collections import Counter, namedtuple

import pytest

from harness import GIVE_UP_S, WORKLOADS, Failure, check, expect_failure, is_long
from libraries import make_thrower
from object_files import run
from gdb_oracle import ORACLE, check_gdb, run_gdb
from test_walk import check_found

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it needs gdb")]
CORES = 3  # of the first run of a program
MOST_CORES = 4 * CORES  # of a later one: to start gdb takes as long as a core does
SOME = 5  # programs, drawn at random, but for the long run
WANTED = 3  # threads that are where they should be, of each program
ROUNDS = 20  # at most; a stub of two instructions is seldom met

# wanted: a function that is on the stack there. until: one that the program has come to when cores begin
# to be made. settings: gdb's, before it starts.
Fixture = namedtuple("Fixture", "command wanted until settings cut_share",
                     defaults=("main", "", 0.0))

FIXTURES = (
    Fixture(("unwind-calls", "recursion", "300", "20"), "recurse"),
    Fixture(("unwind-calls", "recursion", "300", "200"), "recurse"),
    Fixture(("unwind-calls", "noreturn", "300"), "never_returns"),
    Fixture(("unwind-calls", "callback", "300"), "compare"),
    Fixture(("unwind-calls", "dynamic", "300"), "allocates"),
    Fixture(("unwind-calls", "realignment", "300"), "realigned"),
    Fixture(("unwind-calls", "plt", "300"), "insque@plt"),
    Fixture(("unwind-calls", "vdso", "300"), "clock_gettime"),
    Fixture(("unwind-signal", "20", "20"), "handler"),
    Fixture(("unwind-static", "recursion", "300", "20"), "recurse"),
    # A thread at its birth is in clone's wrapper: see test_walk.
    Fixture(("unwind-tasks", "threads", "100", "4"), "thread_calls", cut_share=0.2),
    Fixture(("unwind-tasks", "cloned", "50", "10"), "cloned_main"),
    # The parent while it waits for its child, its return address in a register; and the child.
    Fixture(("unwind-tasks", "vforks", "20", "20"), "vfork_once", settings="catch vfork"),
    Fixture(("unwind-tasks", "vforks", "100", "5"), "vfork_child", until="announce_spin",
            settings="set follow-fork-mode child"),
    # The program's file is gone: wallprof's walk finds the tables in its memory, the others are given
    # of the file that it is a copy of.
    Fixture(("unwind-tasks", "deleted", "300", "1", "cores/copy"), "deleted", until="announce_spin"),
)


def make_cores(context, fixture, command, count=CORES):
    folder = context.path("cores")
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    run_gdb(context, "--args", *command, stops=count, max_ms=30, cores=folder,
            until=fixture.until, settings=fixture.settings)
    return sorted(folder.glob("core-*"))


def walk_core(program, core, other=None):
    """Returns what libdwfl's walk and wallprof's (of another core) have in common; the walks; and what differs."""
    done = subprocess.run([ORACLE, "--core", program, core, other or core], capture_output=True, text=True,
                          errors="replace", timeout=GIVE_UP_S)
    check(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
    *lines, found = done.stdout.splitlines()
    walks = {}
    for line in lines:
        tid, result, *addresses = line.split()
        walks[int(tid)] = {"result": int(result), "wallprof": [int(a, 16) for a in addresses]}
    return json.loads(found), walks, done.stderr


def read_by_gdb(context, program, walks):
    """Returns gdb's stack and wallprof's of each thread, in the form of run_gdb(). walks: {core: wallprof's of its threads}."""
    read = run_gdb(context, program, read="\n".join(map(str, walks)))
    check({(thread["core"], thread["tid"]) for thread in read} == {(str(core), tid) for core in walks for tid in walks[core]},
          f"gdb has other threads: {read}")
    ours = {str(core): threads for core, threads in walks.items()}
    return [{**thread, **ours[thread["core"]][thread["tid"]]} for thread in read]


def names_in(stop):
    return {name for _, name in stop["gdb"]}


def compare_cores(context, fixture, command):
    """(what libdwfl has in common, and gdb), of cores until so many threads are where they should be."""
    total, stops, texts = Counter(), [], []
    for round_number in range(ROUNDS):
        walks = {}
        for core in make_cores(context, fixture, command, min(CORES << round_number, MOST_CORES)):
            found, walks[core], text = walk_core(command[0], core)
            total.update({key: n for key, n in found.items() if key != "cuts"}, cores=1)
            texts.append(text)
        stops += read_by_gdb(context, command[0], walks)
        if sum(fixture.wanted in names_in(stop) for stop in stops) >= WANTED:
            break
    else:
        raise Failure(f"{command}: {fixture.wanted} is on hardly a stack of {total['cores']} cores")
    check_found(total, f"{command}: {''.join(texts)}", cut_share=fixture.cut_share)
    return total, check_gdb(stops, cut_share=fixture.cut_share)


def test_fixtures(context):
    by_libdwfl, by_gdb = Counter(), Counter()
    fixtures = [(f, (WORKLOADS / f.command[0], *f.command[1:])) for f in FIXTURES]
    # Within libgcc's unwinder a few instructions' rules are wrong: see test_unwind.
    thrown = Fixture((), "dive", cut_share=0.3)
    fixtures.append((thrown, (make_thrower(context.folder), "300", "20")))
    if not is_long():
        fixtures = context.random.sample(fixtures, SOME)
    for fixture, command in fixtures:
        libdwfl, gdb = compare_cores(context, fixture, command)
        print(f"# cores of {' '.join(map(str, command))}: libdwfl {dict(libdwfl)}, gdb {dict(gdb)}",
              flush=True)
        by_libdwfl.update(libdwfl)
        by_gdb.update(gdb)
    print(f"# cores: libdwfl {dict(by_libdwfl)}, gdb {dict(by_gdb)}", flush=True)


def alter(core, word):
    """A copy in which a return address, wherever it is on the stack, is one more."""
    data, other = core.read_bytes(), core.with_name("altered")
    check(word.to_bytes(8, "little") in data, f"{word:#x} is not in the core")
    other.write_bytes(data.replace(word.to_bytes(8, "little"), (word + 1).to_bytes(8, "little")))
    return other


def one_core(context, mode):
    """A program, and a core of it where it should be, in which all agree."""
    fixture = next(f for f in FIXTURES if mode in f.command)
    program, *arguments = fixture.command
    program = WORKLOADS / program
    core = make_cores(context, fixture, (program, *arguments))[-1]
    found, walks, text = walk_core(program, core)
    check_found(found, text)
    stop, = read_by_gdb(context, program, {core: walks})
    check_gdb([stop])
    check(fixture.wanted in names_in(stop), f"not where it should be: {stop}")
    return program, core, walks, stop


def test_altered(context):
    """With one word of the stack altered in the core that only one of both reads, each check fails."""
    program, core, walks, stop = one_core(context, "recursion")
    other = alter(core, next(pc for pc, name in stop["gdb"] if name == "recursion"))
    found, altered, text = walk_core(program, core, other)
    check(found["different"] == 1, f"{found}: {text}")
    expect_failure(check_found, found, text)
    expect_failure(check_gdb, read_by_gdb(context, program, {core: altered}))
    expect_failure(check_gdb, read_by_gdb(context, program, {other: walks}))
    found, altered, text = walk_core(program, other)
    check_found(found, text)
    check_gdb(read_by_gdb(context, program, {other: altered}))


def test_tables_in_memory(context):
    """The tables of a program that is gone are made of what the core has of it, and nothing else."""
    program, core, _, _ = one_core(context, "deleted")
    data, section, code = core.read_bytes(), context.path("eh_frame"), context.path("text")
    check(b"/cores/copy (deleted)\0" in data, "it is not gone")
    run("objcopy", f"--dump-section=.eh_frame={section}", f"--dump-section=.text={code}", program,
        context.path("whole"))
    tables, text = section.read_bytes(), code.read_bytes()
    check(tables in data and text in data, "its tables or its code are not in the core")
    other = core.with_name("altered")
    # Neither tables nor code that could be followed: no byte of it is an instruction.
    other.write_bytes(data.replace(tables, bytes(len(tables))).replace(text, b"\x06" * len(text)))
    found, _, text = walk_core(program, core, other)
    check(found["cut"] == 1, f"{found}: {text}")
    expect_failure(check_found, found, text)
