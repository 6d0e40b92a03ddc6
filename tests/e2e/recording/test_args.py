# SPDX-License-Identifier: GPL-2.0-or-later
"""Argument lists of processes against /proc/PID/cmdline, which each process copies itself."""
import json
import os
import signal
import struct
import sys

import pytest

from capture_reader import records
from harness import (WALLPROF, Profile, Recording, check, expect_failure, needs_command, needs_root, read_report, wait_until)

pytestmark = pytest.mark.untimed

ARGS, ARGS_MAX = 25, 4096
FROM_PROC, INHERITED = 1, 2
COPY = "cp /proc/$$/cmdline $0/$$"

# Runs shells one after another, each with a list from a file. The last process is only forked.
RUN = """
import os, sys
folder = sys.argv[1]
for name in sorted(os.listdir(folder + "/lists")):
    words = open(f"{folder}/lists/{name}", "rb").read().split(b"\\0")
    os.waitpid(os.posix_spawn("/bin/sh", [b"sh", b"-c", sys.argv[2].encode(), folder.encode() + b"/seen", *words],
                              os.environ), 0)
if os.fork() == 0:
    open(f"{folder}/forked", "w").write(str(os.getpid()))
    os._exit(0)
os.wait()
"""

# Writes a title over its list, another one at SIGUSR1, and says each time that it has.
TITLED = """
$| = 1; $SIG{USR1} = sub { $0 = $ARGV[1]; print "2\\n"; };
$0 = $ARGV[0]; print "1\\n"; sleep 60 while 1;
"""


def random_lists(random):
    """Short and long ones, of any bytes but NUL."""
    letters = [bytes([byte]) for byte in range(1, 256)]
    lists = []
    for longest in (1, 20, 300, ARGS_MAX + 500, 20000, 100000):
        size, words = random.randint(1, longest), []
        while size > 0:
            words.append(b"".join(random.choices(letters, k=random.randint(1, min(size, 90)))))
            size -= len(words[-1]) + 1
        lists.append(words)
    return lists


def recorded_lists(context, *arguments):
    """(recording, what each shell saw of its own list by pid)"""
    lists = context.path("lists")
    lists.mkdir()
    context.path("seen").mkdir()
    for number, words in enumerate(random_lists(context.random)):
        (lists / f"{number}").write_bytes(b"\0".join(words))
    context.wallprof("-q", "--keep-capture", *arguments, "-o", context.path("p.json.gz"), "--", sys.executable, "-c", RUN,
                     context.folder, COPY)
    seen = {int(path.name): path.read_bytes() for path in context.path("seen").iterdir()}
    check(len(seen) == 6, f"the lists of {len(seen)} shells were copied")
    return Recording(context, context.path("p.json.gz")), seen


def args_records(capture):
    """[(tgid, total, flags, text)] in the order of the file"""
    found = []
    for _, flags, _, record in records(capture, {ARGS}):
        tgid, _, total, size = struct.unpack_from("<IIIH", record, 16)
        found.append((tgid, total, flags, bytes(record[32:32 + size])))
    return found


def check_lists(found, seen):
    """The first 4096 bytes of each list are recorded, and its length."""
    by_pid = {tgid: (total, text) for tgid, total, _, text in found}
    for pid, cmdline in seen.items():
        check(pid in by_pid, f"no list of {pid}")
        total, text = by_pid[pid]
        check(total == len(cmdline), f"{pid}: {total} bytes, should be {len(cmdline)}")
        check(text == cmdline[:ARGS_MAX], f"{pid}: {text[:200]!r}, should be {cmdline[:200]!r}")


def test_lists(context):
    recording, seen = recorded_lists(context)
    found = args_records(recording.capture)
    check_lists(found, seen)
    changed = context.random.choice(sorted(seen))
    expect_failure(check_lists, found, {**seen, changed: b"x" + seen[changed][1:]})
    expect_failure(check_lists, found, {**seen, changed: seen[changed] + b"x"})
    totals = recording.report["totals"]
    check(totals["arguments"]["lost"] == totals["switch"]["lost"] == 0, f"{totals}")
    check(totals["arguments"]["received"] == totals["arguments"]["sent"] == totals["exec"]["received"], f"{totals}")
    # The report has the same, as text.
    processes = {process["pid"]: process for process in recording.report["processes"]}
    for pid, cmdline in seen.items():
        process = processes[pid]
        check(process["args"][:3] == ["sh", "-c", COPY] and not process["args_inherited"], f"{process}")
        check(process["args_cut"] == (len(cmdline) > ARGS_MAX), f"{pid}: {process['args_cut']}, {len(cmdline)} bytes")
    forked = processes[int(context.path("forked").read_text())]
    check(forked["args_inherited"] and forked["args"][0] == sys.executable, f"{forked}")


def test_shown(context):
    """Row names tell processes of one name apart; the whole list is in both formats."""
    names = [f"{context.random.randint(1000, 9999)}-{number}" for number in range(2)]
    script = "; ".join(f"sleep 0.05 {name[0]}e-3 & wait; sh -c 'sleep 0.0{number + 1}; : {name}'"
                       for number, name in enumerate(names))
    context.wallprof("-q", "--keep-capture", "-o", context.path("p.json.gz"), "--", "sh", "-c", script)
    recording = Recording(context, context.path("p.json.gz"))
    rows = [thread.row for thread in recording.profile.threads]
    for number, name in enumerate(names):
        wanted = f"sh -c sleep 0.0{number + 1}; : {name}"
        check(rows.count(wanted) == 1, f"{wanted} is not among the rows: {rows}")
    context.wallprof("export", "-q", "--format", "chrome", "-o", context.path("t.json"), recording.capture)
    labels = [event["args"]["labels"] for event in json.loads(context.path("t.json").read_text())["traceEvents"]
              if event["name"] == "process_labels"]
    for number, name in enumerate(names):
        wanted = f"sh -c 'sleep 0.0{number + 1}; : {name}'"
        check(labels.count(wanted) == 1, f"{wanted} is not among the labels: {labels}")
    text = context.wallprof("report", "--full", recording.capture).stdout
    check(all(f": {name}" in text for name in names), "the report does not show the arguments")


def check_title(report, pid, title):
    process, = (process for process in report["processes"] if process["pid"] == pid)
    check(process["args"] == [title], f"{process['args']}, should be {title}")


def test_titles(context):
    """A title that a process had when it was attached to, and one that it got later."""
    needs_command("perl")
    needs_root()
    titles = [f"mailer: queue {context.random.randint(10, 99)} {word}" for word in ("idle", "sending")]
    process = context.start(["perl", "-e", TITLED, *titles], stdout=-1, text=True)
    check(process.stdout.readline() == "1\n", "no title was set")
    context.wallprof("record", "-q", "-o", context.path("before"), "-p", process.pid, "-d", "50ms")
    check_title(read_report(context, context.path("before")), process.pid, titles[0])
    recorder = context.start([WALLPROF, "record", "-o", context.path("after"), "-p", process.pid])
    wait_until(lambda: context.path("after").exists(), "the window has begun")
    process.send_signal(signal.SIGUSR1)
    check(process.stdout.readline() == "2\n", "no other title was set")
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    report = read_report(context, context.path("after"))
    check_title(report, process.pid, titles[1])
    expect_failure(check_title, report, process.pid, titles[0])
    found = args_records(context.path("after"))
    check([flags for _, _, flags, _ in found] == [FROM_PROC] * 2, f"{found}")


# Starts a shell of its own for each name; the last one has forked another, which executes nothing more.
BEFORE = """
import os, subprocess, sys, time
for script in sys.argv[1:]:
    subprocess.Popen(["sh", "-c", script])
time.sleep(1.5)
os.killpg(0, 9)
"""


def test_flight_recorder(context):
    """The lists of processes that were executed, or forked, before what is kept."""
    names = [f"{context.random.randint(1000, 9999)}-{number}" for number in range(2)]
    scripts = [f"sleep 60; : {names[0]}", f"(sleep 60; : x) & sleep 60; : {names[1]}"]
    context.wallprof("record", "-q", "--flight-recorder", "100ms", "-o", context.path("c"), "--", "setsid", "-w",
                     sys.executable, "-c", BEFORE, *scripts, status=None)
    shells = [process for process in read_report(context, context.path("c"))["processes"]
              if process["args"] and process["args"][0] == "sh"]
    for script, inherited in ((scripts[0], False), (scripts[1], False), (scripts[1], True)):
        check(any(process["args"][-1] == script and process["args_inherited"] == inherited for process in shells),
              f"{script}, {inherited}: {[(process['args'], process['args_inherited']) for process in shells]}")


def test_no_args(context):
    recording, seen = recorded_lists(context, "--no-args")
    check(args_records(recording.capture) == [], "lists were recorded")
    processes = {process["pid"]: process for process in recording.report["processes"]}
    check(all(processes[pid]["args"] is None for pid in seen), "the report has a list")
    check({thread.row for thread in recording.profile.threads if thread.tid in seen} == {"sh"}, "a row has one")


# Takes a name that is not the program's, as daemons do.
RENAMED = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
time.sleep(0.1)
"""


def test_renamed(context):
    """The main thread has renamed itself: what its program was started with is in the label, all of it in the profile."""
    script, name = context.path("renames.py"), f"mail{context.random.randint(100, 999)}"
    script.write_text(RENAMED)
    output, queue = context.path("p.json.gz"), f"--queue={context.random.randint(1000, 9999)}"
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, name, queue)
    text = context.wallprof("report", context.path("p.capture")).stdout
    profile = Profile.load(output)

    def check_label(words):
        label = f"{name} ({words})"
        check(label in text, f"no {label!r} in {text}")
        check(label in profile.data["shared"]["stringArray"] and
              any(label in thread["name"] for thread in profile.data["threads"]), f"no {label!r} in the profile")

    check_label(f"{os.path.basename(sys.executable)} renames.py {name} {queue}")
    expect_failure(check_label, f"renames.py {name}")
