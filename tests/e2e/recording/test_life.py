# SPDX-License-Identifier: GPL-2.0-or-later
"""What processes map over their lifetimes, with more mappings than there is room for, and with lost events.

Whatever happens to tables and mappings, no stack differs from the one that the workload announced;
what cannot be known is cut, says so, and is counted.
"""
import json
import os
import platform
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from capture_reader import records
from chains import Announcements, check_reported
from harness import (GIVE_UP_S, MS, WALLPROF, WORKLOADS, Profile, Skip, check, expect_failure,
                     needs_command, needs_root, read_report, unless_stolen, wait_until)
from libraries import make_large, make_library
from stack_roots import Roots

TASK, TASK_BIRTH = 3, 1
ROWS = 200_000  # three such tables and those of libc find room in a chunk, four do not
SMALLEST = ("--unwind-memory", "8M")  # one chunk: 262,144 cells of four rows


def record_reported(context, *command, options=()):
    """Returns the profile and the announcements."""
    path, output = context.path("announced"), context.path("p.json.gz")
    path.unlink(missing_ok=True)
    context.wallprof("-q", "--keep-capture", *options, "-o", output, "--", *command,
                     env={**os.environ, "WALLPROF_ANNOUNCE": str(path)})
    return Profile.load(output), Announcements(path)


def matches_in_notes(context, what):
    """The number that a note of the report gives for it, as text and as JSON the same."""
    capture = context.path("p.capture")
    pattern = re.compile(r"unwind tables: (\d+) " + re.escape(what))
    found = [match[1] for match in map(pattern.match, read_report(context, capture)["notes"])
             if match]
    text = pattern.findall(context.wallprof("report", "--section", "losses", capture).stdout)
    check(len(found) <= 1 and text == found, f"{what}: {found} in JSON, {text} as text")
    return int(found[0]) if found else 0


DROPPED, NO_ROOM = "tables of files that are no longer mapped were evicted", "times a file's table found no room"


def longer(chain):
    first, _, rest = chain.partition(" ")
    return f"{first} other {rest}"


def check_all(profile, reported, marked_share, wanted=("tick", "switch")):
    roots = Roots(profile)
    verdict = check_reported(profile, reported, roots, marked_share, wanted)
    expect_failure(check_reported, profile, reported.altered(longer), roots, 1, wanted)
    return verdict


def check_repeated(context, command, marked_share):
    """The same of a command with the least memory, unless the recorder's CPU was stolen."""
    results_of_all = []
    unless_stolen(lambda: record_reported(context, *command, options=SMALLEST),
                  lambda found, _: results_of_all.append(check_all(*found, marked_share)))
    return results_of_all[-1]


def check_dropped(context, least, most):
    dropped = matches_in_notes(context, DROPPED)
    check(least <= dropped <= most, f"{dropped} tables were dropped, should be {least} to {most}")
    check(matches_in_notes(context, NO_ROOM) == 0, "for some there was no room all the same")


# ---- room -----------------------------------------------------------------------------------------

@pytest.mark.host_only("it needs a compiler")
def test_room_for_what_is_mapped(context):
    """Eight libraries, twice each, of which three find room: each has its table while it is used."""
    libraries = make_large(context.folder, context.random, 8, ROWS)
    command = [WORKLOADS / "unwind-dlopen", "-t", 80, 2, 0, *libraries]
    verdict = check_repeated(context, command, marked_share=0.05)
    check_dropped(context, 16 - 4, 40)  # those of wallprof itself, which was forked, among them
    expect_failure(check_dropped, context, 0, 16 - 5)
    expect_failure(check_dropped, context, 41, 99)
    print(f"# room for 3 of 8 tables: {sum(verdict.exact.values())} stacks whole, "
          f"{sum(verdict.marked.values())} cut, {matches_in_notes(context, DROPPED)} tables dropped",
          flush=True)


@pytest.mark.host_only("it needs a compiler")
def test_room_of_ended_processes(context):
    """The same, each in a process of its own."""
    libraries = make_large(context.folder, context.random, 8, ROWS)
    script = 'for l in "$@"; do "$0" -t 80 1 1 "$l"; done'
    check_repeated(context, ["sh", "-c", script, WORKLOADS / "unwind-dlopen", *libraries],
                   marked_share=0.05)
    check_dropped(context, 8 - 4, 30)


@pytest.mark.host_only("it needs a compiler")
def test_no_room(context):
    """Seven at once: those that find no room are marked, and counted; none is wrong."""
    libraries = make_large(context.folder, context.random, 7, ROWS)
    profile, reported = record_reported(context, WORKLOADS / "unwind-dlopen", "-t", 40, 1, 1, *libraries,
                                        options=SMALLEST)
    verdict = check_all(profile, reported, marked_share=0.8)
    check(matches_in_notes(context, NO_ROOM) == 3, f"{matches_in_notes(context, NO_ROOM)} of 7 - 4 found no room")
    check(matches_in_notes(context, DROPPED) == 0, "tables that are in use were dropped")
    marked = sum(verdict.marked.values())
    said = sum(n for stack, n in verdict.cut.items() if "[truncated: no unwind table]" in stack)
    check(said > 0.9 * marked > 0, f"{said} of {marked} say that there is no table: {verdict.cut}")


@pytest.mark.host_only("it needs a compiler")
def test_room_later(context):
    """A table that found no room is made again when others end."""
    libraries = make_large(context.folder, context.random, 5, ROWS)
    script = ('"$0" -t 300 1 1 "$2" "$3" "$4" "$5" & '
              'until [ "$(grep -c address "$WALLPROF_ANNOUNCE")" = 4 ]; do sleep 0.02; done; '
              '"$0" -t 1500 1 1 "$1"; wait')
    profile, reported = record_reported(context, "sh", "-c", script, WORKLOADS / "unwind-dlopen",
                                        *libraries, options=SMALLEST)
    check(matches_in_notes(context, NO_ROOM) >= 1, "there was room for all")
    long = reported.altered(lambda chain: chain)
    long.intervals = [max(reported.intervals, key=lambda i: i["end_ns"] - i["begin_ns"])]
    verdict = check_all(profile, long, marked_share=0.6, wanted=("tick",))
    check(sum(verdict.marked.values()) > 0, "nothing was cut before there was room")


# ---- a birth that is not reported --------------------------------------------------------------------

def was_born(capture, pid):
    return any(flags & TASK_BIRTH and struct.unpack_from("<I", record, 16)[0] == pid
               for _, flags, _, record in records(capture, {TASK}))


@pytest.mark.host_only("it needs a compiler")
def test_child_of_lost_birth(context):
    """It has the mappings that its parent had, which are long replaced: none is taken for them."""
    names = ["first", *(f"other{i}" for i in range(6))]
    libraries = [make_library(context.folder, name, context.random.randrange(100, 3000, 16))
                 for name in names]
    for _ in range(10):
        profile, reported = record_reported(context, WORKLOADS / "unwind-orphan", 2500, *libraries,
                                            options=("--ring-size", "4K"))
        child = reported.values["child"][0]
        if not was_born(context.path("p.capture"), child):
            break
    else:
        raise Skip("no birth was lost")
    verdict = check_all(profile, reported, marked_share=1, wanted=("tick",))
    exact, marked = sum(verdict.exact.values()), sum(verdict.marked.values())
    check(exact > marked, f"{exact} of {exact + marked} stacks are whole: {verdict.cut}")
    print(f"# a child of a lost birth: {exact} stacks whole, {marked} cut, none wrong", flush=True)


# ---- mappings that are not reported --------------------------------------------------------------------

# Each CPU that the workload comes to has room for some 2,040 mappings before some are lost.
FLOOD = min(6000 + 2200 * os.cpu_count(), 60000)


# Between them the recorder stands still, however long that takes on a busy machine.
INTERVALS_WITHIN = 10


def intervals_in(path):
    return path.read_text().count('"chain"')


def record_flood(context, count, pace, ms, libraries, stopped):
    """A process that maps so much; stopped: the recorder stands still meanwhile, for INTERVALS_WITHIN and 0.2 s more.

    The profile, what the process has announced, and when the recorder went on (CLOCK_MONOTONIC, ns)."""
    reported, gate, output = context.path("announced"), context.path("gate"), context.path("p.json.gz")
    process = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "--",
                             WORKLOADS / "unwind-flood", str(count), str(pace), str(ms), gate,
                             *libraries],
                            cwd=context.folder, env={**os.environ, "WALLPROF_ANNOUNCE": str(reported)})

    def said(word):
        return reported.exists() and f'"{word}"' in reported.read_text()
    wait_until(lambda: said("ready"), "the workload has begun")
    if stopped:
        process.send_signal(signal.SIGSTOP)
    gate.touch()
    wait_until(lambda: said("mapped"), "all is mapped")
    if stopped:
        time.sleep(0.2)  # so long the recorder misses what happens
        wait_until(lambda: intervals_in(reported) > INTERVALS_WITHIN, "something has happened meanwhile")
    went_on_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if stopped:
        process.send_signal(signal.SIGCONT)
    check(process.wait(timeout=GIVE_UP_S) == 0, "wallprof failed")
    return Profile.load(output), Announcements(reported), went_on_ns


def since(reported, ns):
    later = reported.altered(lambda chain: chain)
    later.intervals = [i for i in reported.intervals if i["begin_ns"] > ns]
    return later


def lost_mappings(context):
    report = read_report(context, context.path("p.capture"))
    return sum(loss["count"] for loss in report["losses"] if loss["kind"] == "mapping")


@pytest.mark.host_only("it needs a compiler")
def test_lost_mappings(context):
    """More is mapped than perf has room for: it is counted, and read from /proc."""
    library = make_library(context.folder, "lost", context.random.randrange(100, 3000, 16))
    profile, reported, went_on_ns = record_flood(context, FLOOD, 0, 1500, [library], stopped=True)
    lost = lost_mappings(context)
    check(4000 < lost < FLOOD + 100, f"{lost} of {FLOOD} mappings were lost")
    verdict = check_all(profile, since(reported, went_on_ns + 100 * MS), marked_share=0.01)
    print(f"# {lost} mappings lost; of those read again {sum(verdict.exact.values())} stacks whole, "
          f"{sum(verdict.marked.values())} cut", flush=True)


@pytest.mark.host_only("it needs a compiler")
def test_within_a_loss(context):
    """The mapping that replaces a library is lost: until it is read, no stack through it is recorded."""
    libraries = [make_library(context.folder, name, room) for name, room in
                 (("lost", 200 + context.random.randrange(0, 800, 16)),
                  ("before", 2000 + context.random.randrange(0, 800, 16)))]
    profile, reported, went_on_ns = record_flood(context, FLOOD, 0, 1500, libraries, stopped=True)
    check(lost_mappings(context) > 4000, f"only {lost_mappings(context)} mappings were lost")
    before, after = reported.values["address"]
    check(before == after, "the one was not mapped where the other was")
    within = since(reported, reported.values["mapped"][0])
    within.intervals = [i for i in within.intervals if i["end_ns"] < went_on_ns]
    check(len(within.intervals) > 5, f"only {len(within.intervals)} intervals within the loss")
    roots = Roots(profile)
    verdict = check_reported(profile, within, roots, 1, ())
    expect_failure(check_reported, profile, within.altered(lambda chain: chain + " other"), roots, 1,
                   ())
    check(sum(verdict.marked.values()) > 50, f"{verdict.marked} are marked")
    print(f"# within a loss {sum(verdict.exact.values())} stacks whole, "
          f"{sum(verdict.marked.values())} cut, none wrong", flush=True)
    check_all(profile, since(reported, went_on_ns + 300 * MS), marked_share=0.01)


def executed(process, arguments):
    """A child of the process runs with these arguments."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return any(arguments in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
               for pid in children)


def check_corrected(context, count):
    found = matches_in_notes(context, "times the kernel did not report an exec")
    check(found == count, f"{found} execs are said to be lost, should be {count}")


@pytest.mark.host_only("it needs a compiler")
def test_lost_exec(context):
    """perf loses an exec with its mappings: BPF has reported it, and /proc is read."""
    needs_command("taskset")
    library = make_library(context.folder, "lost", context.random.randrange(100, 3000, 16))
    reported, gate, output = context.path("announced"), context.path("gate"), context.path("p.json.gz")
    # The mappings fill one ring of that CPU, births and ends of processes the other one.
    script = ('"$0" 8000 0 0 "$1" "$2"; i=0; while [ $i -lt 1500 ]; do (:); i=$((i + 1)); done; '
              'exec "$0" 1 0 2500 "$1" "$2"')
    process = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "--", "taskset", "-c",
                             "0", "sh", "-c", script, WORKLOADS / "unwind-flood", gate, library],
                            cwd=context.folder, env={**os.environ, "WALLPROF_ANNOUNCE": str(reported)})
    wait_until(lambda: reported.exists() and "ready" in reported.read_text(), "the workload has begun")
    process.send_signal(signal.SIGSTOP)
    gate.touch()
    wait_until(lambda: executed(process, "unwind-flood 1 0 2500"), "the second program runs")
    process.send_signal(signal.SIGCONT)
    check(process.wait(timeout=GIVE_UP_S) == 0, "wallprof failed")
    profile, said = Profile.load(output), Announcements(reported)
    check_corrected(context, 1)
    expect_failure(check_corrected, context, 0)
    check_all(profile, since(said, max(said.values["mapped"]) + 500 * MS), marked_share=0.01)


@pytest.mark.host_only("it needs a compiler")
def test_many_mappings(context):
    """One process makes 30,000 mappings, and each of them is reported."""
    library = make_library(context.folder, "many", context.random.randrange(100, 3000, 16))
    profile, reported, _ = record_flood(context, 30000, 100, 1000, [library], stopped=False)
    mapped = reported.values["mapped"][0]
    check(lost_mappings(context) == 0, f"{lost_mappings(context)} were lost")
    check_all(profile, since(reported, mapped + 300 * MS), marked_share=0.01)


# ---- more processes than there is room for -------------------------------------------------------------

NAMESPACE = r"""
mount -t proc proc /proc
i=0
while [ $i -lt 460 ]; do sleep 100 & i=$((i + 1)); done
for i in $(seq 300 349); do kill "$i"; done
for i in $(seq 300 349); do wait "$i"; done
echo 350 >/proc/sys/kernel/pid_max
"$1" record -q --defer-symbols -o "$2" -p $$ -d 1s
"""


def check_full(notes, processes):
    found = [match for match in (re.match(r"unwind tables: (\d+) (?:new )?processes found no room", note)
                                 for note in notes) if match]
    lost = int(found[0][1]) if found else 0
    check(processes - 350 <= lost < processes, f"{lost} of {processes} processes had no room")


@pytest.mark.host_only("it needs unshare")
def test_more_processes_than_numbers(context):
    """As many processes have room as there are slots; the rest is counted."""
    needs_root()
    needs_command("unshare")
    release = tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups()))
    if release < (6, 14):
        raise Skip("pid_max is the whole machine's before 6.14")
    capture = context.path("capture")
    outside = open("/proc/sys/kernel/pid_max", encoding="ascii").read()
    subprocess.run(["unshare", "--pid", "--fork", "--mount", "--kill-child", "sh", "-c", NAMESPACE,
                    "sh", WALLPROF, capture], check=True, cwd=context.folder, timeout=GIVE_UP_S)
    check(open("/proc/sys/kernel/pid_max", encoding="ascii").read() == outside,
          "pid_max of the machine was changed")
    report = json.loads(context.wallprof("report", "--json", capture).stdout)
    check_full(report["notes"], 411)
    expect_failure(check_full, report["notes"], 411 + 350)
    expect_failure(check_full, [], 411)
