# SPDX-License-Identifier: GPL-2.0-or-later
"""Which threads have records of script frames, that these invent no recording cost, and the ids of code.

Each such record belongs to an event with stacks of a target: a switch-out, a tick, or its wakeup of another thread.
The other threads of the same program, and another Python program, are no targets.
"""
import re
import struct

import pytest
from capture_reader import records

from harness import IN_GUEST, SLOWNESS, Skip, check, expect_failure, needs_root, wait_until
from slow_disk import Limited
from test_python import interpreter, system_python

pytestmark = pytest.mark.untimed
SWITCH, WAKING, SAMPLE, SCRIPT, SCRIPT_CODE = 1, 2, 16, 26, 28
HAS_STACKS, REQUEST = 1, 1
CODE_NAME = 48
PREV, UNSAMPLED = 1, 8
OWN_IN_NS, LONG_NS = 16, 500_000  # the unit of own_in; no program takes so long, unless the CPU was taken from it
PROGRAM = """import sys, threading, time

def sleep():
    while True:
        time.sleep(0.003)

def compute():
    while True:
        sum(range(2000))
        time.sleep(0.0005)

threads = [threading.Thread(target=target, daemon=True) for target in (sleep, compute, sleep, compute)]
for thread in threads:
    thread.start()
with open(sys.argv[1] + ".new", "w") as out:
    out.write(" ".join(str(thread.native_id) for thread in threads))
import os
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(1000)
"""


READER = """import mmap, os, sys, threading, time

def read():
    disk, block = os.open("/fast/data", os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
    while True:
        os.preadv(disk, [block], 0)
        time.sleep(0.005)

thread = threading.Thread(target=read, daemon=True)
thread.start()
with open(sys.argv[1] + ".new", "w") as out:
    out.write(f"{os.getpid()} {thread.native_id}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    time.sleep(0.003)
"""


def start(context, name, source=PROGRAM):
    """Starts the program; returns its process and the ids of its threads."""
    program, ids = context.path("threads.py"), context.path(name)
    program.write_text(source)
    process = context.start([system_python(), program, ids])
    wait_until(ids.exists, "the threads run")
    return process, [int(tid) for tid in ids.read_text().split()]


class Recorded:
    """The records of a capture: (tid, ns) of each, and what recording took at each switch."""

    def __init__(self, capture):
        self.scripts, self.sampled, self.unsampled, self.own_in = [], set(), set(), []
        self.requests = []
        for kind, flags, ns, raw in records(capture, {SWITCH, WAKING, SAMPLE, SCRIPT}):
            tid = struct.unpack_from("<I", raw, 16)[0]
            if kind == SCRIPT:
                (self.requests if flags & REQUEST else self.scripts).append((tid, ns + 1))
            elif kind == SAMPLE:
                self.sampled.add((tid, ns))
            elif kind == WAKING:
                _, waker, parts = struct.unpack_from("<IIH", raw, 16)
                if parts & HAS_STACKS:
                    self.sampled.add((waker, ns))
            else:
                parts, _, _, own_in = struct.unpack_from("<HBBH", raw, 32)
                self.own_in.append(own_in * OWN_IN_NS)
                if flags & PREV:
                    (self.unsampled if parts & UNSAMPLED else self.sampled).add((tid, ns))


def check_targets(recorded, targets):
    others = [script for script in recorded.scripts if script[0] not in targets]
    check(len(recorded.scripts) >= 100, f"only {len(recorded.scripts)} records of script frames")
    check(not others, f"{len(others)} of {len(recorded.scripts)} are of no target: {others[:3]}")
    strays = [script for script in recorded.scripts if script not in recorded.sampled]
    check(not strays, f"{len(strays)} of {len(recorded.scripts)} belong to no event: {strays[:3]}")


def check_cost(recorded, long_ns=LONG_NS):
    long = sum(ns >= long_ns for ns in recorded.own_in)
    check(long <= len(recorded.own_in) / 50, f"recording took {long_ns} ns and more in {long} of {len(recorded.own_in)}")


def record(context, *options):
    capture = context.path("p.wp")
    context.wallprof("record", "-q", "-d", "1.5", *options, "-o", capture)
    return Recorded(capture)


@pytest.mark.parametrize("kind", ["sleep", "compute"])
def test_thread(context, kind):
    """-t TID: other threads of the process, and of another one, are switched on the same CPUs."""
    needs_root()
    _, tids = start(context, "first")
    _, others = start(context, "second")
    tid = tids[kind == "compute"]
    recorded = record(context, "-t", tid)
    check_targets(recorded, {tid})
    expect_failure(check_targets, recorded, {others[0]})
    check_cost(recorded)
    expect_failure(check_cost, recorded, 0)


def check_requests(recorded, tid):
    found = {tid for tid, _ in recorded.requests}
    check(found == {tid} if tid else not found, f"threads with frames of requests: {found}, not {tid}")


def test_limited_reader(context):
    """Requests that a cgroup's limit lets through at once have their submitter's frames, if it is a target."""
    needs_root()
    if not IN_GUEST:
        raise Skip("submissions to a limited disk can be seen in the guests")
    with Limited(context, "/fast/data", size=1 << 40):
        _, (sleeper, reader) = start(context, "ids", READER)
        recorded = record(context, "-t", reader)
        check_requests(recorded, reader)
        expect_failure(check_requests, recorded, None)
        check_requests(record(context, "-t", sleeper), None)


def test_budget(context):
    """--budget: switch-outs without stacks have no script frames either, and cost nothing for them."""
    needs_root()
    process, tids = start(context, "first")
    start(context, "second")
    recorded = record(context, "--budget", "0.5%", "-p", process.pid)
    check(recorded.unsampled, "all switch-outs are sampled")
    check_targets(recorded, {process.pid, *tids})
    check_cost(recorded)


def check_ids(capture, least, most=1):
    """Each planted function has one id, however often it was called."""
    ids = {}
    for _, _, _, raw in records(capture, {SCRIPT_CODE}):
        number, length = struct.unpack_from("<Q", raw, 16)[0], struct.unpack_from("<H", raw, 38)[0]
        name = bytes(raw[CODE_NAME:CODE_NAME + length])
        if name.startswith(b"planted_"):
            ids.setdefault(name, set()).add(number)
    check(len(ids) >= least, f"only {len(ids)} functions have a record")
    several = {name: len(found) for name, found in ids.items() if len(found) > most}
    check(not several, f"{len(several)} of {len(ids)} functions have several ids: {list(several.items())[:3]}")


@pytest.mark.parametrize("version", ["3.8", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_ids_of_code(context, version):
    """Functions that are called often, and at first rarely: 3.11 counts their calls in the object itself."""
    needs_root()
    python = interpreter(version)
    if not python or not python.exists():
        raise Skip("that Python is not installed")
    program, capture = context.path("often.py"), context.path("p.wp")
    program.write_text(f"import time\n\nend, i = time.monotonic() + {3 * SLOWNESS}, 0\n"
                       "while time.monotonic() < end:\n    i += 1\n"
                       "    exec(f'def planted_{i}():\\n    time.sleep(0.0002)\\n')\n"
                       "    for _ in range(20):\n        globals()[f'planted_{i}']()\n    time.sleep(0.05)\n")
    context.wallprof("record", "-q", "-o", capture, "--", python, program)
    check_ids(capture, 5)
    expect_failure(check_ids, capture, 5, 0)


def test_cost(context):
    """--cost lists these programs; without an interpreter they are not loaded."""
    needs_root()

    def listed(*command):
        done = context.wallprof("record", "--cost", "-o", context.path("p.wp"), "--", *command)
        return set(re.findall(r"^(on_\w+_script) +\d+ +\d+ ", done.stderr, re.M))
    found = listed(system_python(), "-c", "import time\nfor _ in range(200): time.sleep(0.003)")
    check({"on_switch_script", "on_waking_script"} <= found, f"only {found} are listed")
    check(not listed("sleep", "0.3"), "they are loaded without an interpreter")
