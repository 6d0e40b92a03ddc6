# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks by other users on root who records: each did harm before wallprof withstood it."""
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from capture_reader import INODE, INODE_TEXT, records
from harness import (IN_GUEST, SLOWNESS, WALLPROF, Failure, Profile, check, expect_failure, needs_command,
                     needs_root, wait_until)

pytestmark = pytest.mark.untimed
USER = 65534
SECRET = "what must stay\n"
PROTECTED = Path("/proc/sys/fs/protected_symlinks")


def run(*arguments, **settings):
    return subprocess.run([WALLPROF, *map(str, arguments)], capture_output=True, text=True, timeout=120, **settings)


class Victim:
    """A file of root's, and another user's folder with a link to it."""

    def __init__(self, work, mode=0o755, owner=USER):
        work.mkdir()
        self.path, self.folder = work / "victim", work / "theirs"
        self.folder.mkdir()
        os.chown(self.folder, owner, owner)
        os.chmod(self.folder, mode)
        self.path.write_text(SECRET)

    def link(self, name):
        link = self.folder / name
        link.symlink_to(self.path)
        os.lchown(link, USER, USER)
        return link

    def check_intact(self):
        check(self.path.read_text() == SECRET, "root's file was overwritten")
        check(not list(self.path.parent.glob("victim.*")), "a file was made beside root's")


def check_links(victim, capture):
    for arguments, status in ((["export", "-o", victim.link("e.json"), capture], 1),
                              (["record", "-o", victim.link("r.capture"), "--", "true"], 125),
                              (["-o", victim.link("p.json"), "--", "true"], 125),
                              (["--discard-capture", "-o", victim.folder / "q.json", "--", "true"], 125),
                              (["export", "--json-summary", victim.link("s.json"), "-o", victim.folder / "t.json",
                                capture], 1)):
        if "q.json" in str(arguments):
            victim.link("q.capture")
        done = run(*arguments)
        victim.check_intact()
        check(done.returncode == status, f"{arguments} ended with {done.returncode}: {done.stderr}")
        check("another user can have made" in done.stderr or "Permission denied" in done.stderr, done.stderr)


def test_output_through_links(context):
    """The kernel follows a link in its owner's folder, and in a folder that is not sticky, whatever
    fs.protected_symlinks says."""
    needs_root()
    capture = context.path("a.capture")
    check(run("record", "-o", capture, "--", "true").returncode == 0, "no recording")
    before = PROTECTED.read_text()
    try:
        for protected in ("0", "1") if IN_GUEST else (None,):
            if protected:
                PROTECTED.write_text(protected)
            for mode, owner in ((0o755, USER), (0o777, 0), (0o1777, 0), (0o1777, USER)):
                victim = Victim(context.path(f"{protected}-{mode:o}-{owner}"), mode, owner)
                check_links(victim, capture)
                victim.path.write_text("overwritten")
                expect_failure(victim.check_intact)
    finally:
        if IN_GUEST:
            PROTECTED.write_text(before)


# Makes code without a file, gives its rights up, and then lets its perf map be a link to a file of root's
# that has such lines. argv: "drop" or "keep", and how long to wait for wallprof to notice each step.
THIEF = """
import ctypes, mmap, os, sys, time
def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        function(30000000)
memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
memory.write(bytes.fromhex("55 48 89 e5 48 ff cf 75 fb 5d c3"))
function = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
with open("/tmp/roots.map", "w") as secret:
    os.chmod("/tmp/roots.map", 0o600)
    secret.write("1000 7ffffff00000 stolen_name\\n")
burn(0.2)
if sys.argv[1] == "drop":
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
os.symlink("/tmp/roots.map", f"/tmp/perf-{os.getpid()}.map")
burn(float(sys.argv[2]))
"""


def names_of_thief(context, *arguments):
    """Its /tmp is one where the kernel does not protect from links."""
    output = context.path("p.json")
    done = run("-q", "-o", output, "--", "unshare", "-m", "sh", "-c",
               'mount -t tmpfs -o mode=777 none /tmp && "$@"; exit $?', "sh", sys.executable, "-c", THIEF, *arguments)
    check(done.returncode == 0, done.stderr)
    return {name for t in Profile.load(output).threads for i in range(len(t.times)) for name in t.frames_of(i)}


def test_perf_map_of_dropped_rights(context):
    """A perf map is opened with the rights of that moment, not with those that the process had before."""
    needs_root()
    needs_command("unshare")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("no namespaces can be made here")

    def check_none(*arguments):
        names = names_of_thief(context, *arguments)
        check(not any("stolen_name" in name for name in names), "a file of root's was read for the process")
    check_none("drop", 0.6)
    check_none("drop", 0.0)  # it ends before it is looked at again
    expect_failure(check_none, "keep", 0.6)  # root's process may read it


# Puts another capture in the place of its own recording's, as the owner of the folder could.
EXCHANGE = """while [ ! -e "$1" ]; do sleep 0.01; done; mv "$2" "$1" """


def test_exchanged_capture(context):
    """What is read at the end is the file that was written, not what its name leads to by then."""
    needs_root()
    folder = Victim(context.path("v"), 0o777).folder
    other, output = folder / "other.capture", folder / "p.json"
    check(run("record", "-q", "-o", other, "--", "true").returncode == 0, "no recording")
    done = run("-q", "-o", output, "--", "sh", "-c", EXCHANGE, "sh", folder / "p.capture", other)
    check(done.returncode == 0 and not other.exists(), done.stderr)

    def check_command(name):
        programs = {thread.process for thread in Profile.load(output).threads}
        check(any(p.startswith(name) for p in programs), f"the profile is one of {programs}")
    check_command("sh")
    expect_failure(check_command, "true")


# Writes a file, says so, and ends when its standard input does.
WRITER = """import sys
open(sys.argv[1], "wb").write(b"x" * 300000)
print("written", flush=True)
sys.stdin.read()
"""


def names_of_written_files(context, *options):
    """The last names of the paths in the capture of a program that writes `ours`, while another one writes
    `theirs`. The kernel's threads write both to the disk."""
    ours, theirs, capture = context.path("ours"), context.path("theirs"), context.path("names.capture")
    os.sync()
    process = subprocess.Popen([WALLPROF, "record", "-q", *options, "-o", capture, "--", sys.executable, "-c", WRITER,
                                ours], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "written\n", "the program did not start")
    theirs.write_bytes(b"y" * 300000)
    os.sync()
    process.communicate(timeout=120)
    check(process.returncode == 0, "no recording")
    names = {bytes(record[INODE_TEXT:]).split(b"\0")[0].decode() for *_, record in records(capture, {INODE})}
    return names, json.loads(context.wallprof("report", "--json", capture).stdout)


def test_names_of_other_files(context):
    """A profile is given to others: it has no names of files that only other programs use."""
    needs_root()

    def check_names(*options):
        names, report = names_of_written_files(context, *options)
        written = {file["path"] for file in report["io_files"] if file["written_bytes"]}
        if not written:
            pytest.skip("the test's folder is not on a disk")
        check("ours" in names and str(context.path("ours")) in written, f"its own file has no name: {names} {written}")
        check("theirs" not in names, "there is the name of a file that another program wrote")
        check(any("unnamed files of device" in name for name in written), f"their requests are missing: {written}")
        check(any("--all-files" in note for note in report["notes"]), f"{report['notes']}")
    check_names()
    expect_failure(check_names, "--all-files")


# Describes its code in a jitdump that only root may read, maps it, as programs do to announce it, and may give up
# its rights then. argv: a folder; "drop" or "keep"; what else is in the dump; the size to which it grows.
DUMPER = """
import ctypes, mmap, os, struct, sys, time
code = bytes.fromhex("55 48 89 e5 48 ff cf 75 fb 5d c3")
memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
memory.write(code)
address, pid = ctypes.addressof(ctypes.c_char.from_buffer(memory)), os.getpid()
function = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(address)
def record(kind, body, size=None):
    return struct.pack("<IIQ", kind, size if size is not None else 16 + len(body), time.monotonic_ns()) + body
def load(at, name, index):
    return record(0, struct.pack("<IIQQQQ", pid, pid, at, at, len(code), index) + name + b"\\0" + code)
os.umask(0o077)
dump = open(os.path.join(sys.argv[1], f"jit-{pid}.dump"), "w+b", buffering=0)
dump.write(struct.pack("<6IQQ", 0x4a695444, 1, 40, 62, 0, pid, time.monotonic_ns(), 0) + load(address, b"stolen_name", 1))
mapped = mmap.mmap(dump.fileno(), 40, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
if sys.argv[2] == "drop":
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
dump.write({"plain": b"", "endless": record(0, b"", 0xffffffff),
            "lines": record(2, struct.pack("<QQ", address, 2**63) + b"x" * 64),
            "others": b"".join(load(address + 4096 * i, b"n%d" % i, i) for i in range(1, 100000))}[sys.argv[3]])
if int(sys.argv[4]):
    dump.truncate(int(sys.argv[4]))
print("ready", flush=True)
while True:
    function(30000000)
"""


def names_by_dump(context, *arguments):
    """The names in a profile of that program, the messages, and the memory of the recorder's largest process."""
    folder, output = context.path("dumps"), context.path("dump.json")
    folder.mkdir(exist_ok=True)
    target = context.start([sys.executable, "-c", DUMPER, folder, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    check(target.stdout.readline() == "ready\n", "the program did not start")
    recorder = subprocess.Popen([WALLPROF, "-q", "-o", output, "-p", str(target.pid), "-d", "300ms"],
                                stderr=subprocess.PIPE, text=True)
    try:
        messages = recorder.stderr.read()
        _, status, usage = os.wait4(recorder.pid, 0)
        recorder.returncode = os.waitstatus_to_exitcode(status)
    finally:
        target.kill()
        target.wait()
        for dump in folder.iterdir():
            dump.unlink()
    check(recorder.returncode == 0, messages)
    return ({name for t in Profile.load(output).threads for i in range(len(t.times)) for name in t.frames_of(i)},
            messages, usage.ru_maxrss << 10)


def test_jitdump_of_dropped_rights(context):
    """A jitdump that a process mapped when it was root is not read for it when it is root no more."""
    needs_root()

    def check_none(rights):
        names, *_ = names_by_dump(context, rights, "plain", 0)
        check(not any("stolen_name" in name for name in names), "a file of root's was read for the process")
    check_none("drop")
    expect_failure(check_none, "keep")


def test_hostile_jitdumps(context):
    """What a dump says of its own size does not keep the names of its good records away, and a very large one does not
    take memory."""
    needs_root()

    def check_memory(used):
        check(used <= 400 << 20, f"a process had {used >> 20} MB")

    for content, size in (("endless", 1 << 30), ("others", 0), ("lines", 1 << 29)):
        names, messages, memory = names_by_dump(context, "keep", content, size)
        check(any("stolen_name" in name for name in names), f"{content}: no name; {messages}")
        check_memory(memory)
    expect_failure(check_memory, 1 << 30)


def start_silent_server(context):
    """A server of debug information that takes questions and never answers."""
    server = socket.create_server(("127.0.0.1", 0))
    context.silent = server  # closed with the test
    return f"http://127.0.0.1:{server.getsockname()[1]}/"


def interrupted_lookup(context, *arguments, output):
    """Ends the lookup of names by a signal as soon as it waits for a server. Returns how long the rest took."""
    url = start_silent_server(context)
    environment = {**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_TIMEOUT": "300", "no_proxy": "*",
                   "DEBUGINFOD_CACHE_PATH": str(context.path(f"debug-{output.name}")),
                   "XDG_CACHE_HOME": str(context.path(f"cache-{output.name}"))}
    process = subprocess.Popen([WALLPROF, *map(str, arguments)], env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if "requesting the debug information" in line:
                break
        time.sleep(1)  # two signals within half a second would be one
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise Failure("an interrupt does not end the lookup") from error
    check("no more names are looked up" in rest, rest)
    check(process.returncode == 0, f"status {process.returncode}: {rest}")
    check(output.exists(), "there is no profile")
    return time.monotonic() - begin


def test_interrupt_ends_the_lookup_of_names(context):
    """What is there is written; a further interrupt would abort."""
    needs_root()
    if not list(Path("/usr/lib").glob("*/libdebuginfod.so.1")):
        pytest.skip("no libdebuginfod.so.1")
    profile, again = context.path("p.json"), context.path("q.json")
    took = interrupted_lookup(context, "-o", profile, "--", *context.workload("burn", threads=1, ms=100), output=profile)
    check(took < 10 * SLOWNESS, f"it took {took:.1f} s")
    check(Profile.load(profile).threads, "the profile has no threads")
    context.wallprof("record", "-q", "--defer-symbols", "-o", context.path("late.capture"), "--",
                     *context.workload("burn", threads=1, ms=100))
    took = interrupted_lookup(context, "export", "-o", again, context.path("late.capture"), output=again)
    check(took < 10 * SLOWNESS, f"it took {took:.1f} s")


def test_files_of_a_killed_run(context):
    """The next run finds and removes them; those of a run that lives stay."""
    needs_root()
    output = context.path("p.json")

    def start():
        process = context.start([WALLPROF, "-q", "-o", output, "--delay", "60s", "--", "sleep", "100"])
        wait_until(lambda: list(context.folder.glob(f"p.capture.tmp-{process.pid}-*")), "the temporary file is there")
        return process
    killed, living = start(), start()
    killed.kill()
    killed.wait()
    done = context.wallprof("-o", output, "--discard-capture", "--", "true")
    check("which a killed run left" in done.stderr, done.stderr)
    check(not list(context.folder.glob(f"*.tmp-{killed.pid}-*")), "the file is still there")
    check(list(context.folder.glob(f"*.tmp-{living.pid}-*")), "the file of a living run is gone")
