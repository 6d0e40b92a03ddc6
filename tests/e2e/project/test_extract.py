# SPDX-License-Identifier: GPL-2.0-or-later
"""The example, tools/tar-extract, on a slow disk: what it waits for is what it reads and writes."""
import os
import subprocess

import pytest

from harness import BUILD, ROOT, Profile, check, expect_failure, needs_command, read_report
from slow_disk import LimitedMount, LittleDirty

PROGRAM = BUILD / "tools" / "tar-extract"
pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it makes loop devices")]
# A wait for a lock that another writer of the file holds while it waits for the disk is a lock wait.
DISK = {"[disk read wait]", "[disk write wait]", "[disk wait]", "[page-fault I/O wait]",
        "[dirty-page throttling]", "[writeback throttling]", "[disk queue full]", "[journal wait]",
        "[kernel rwsem wait]", "[kernel mutex wait]", "[uninterruptible wait]"}


def check_named(report, archive, folder):
    """Nearly all waits for the disk are for the archive or for a file that is written."""
    waited = sum(ns for thread in report["threads"] for reason, ns in thread["reasons"].items()
                 if reason in DISK)
    of = {True: 0, False: 0}
    for wait in report["waited_objects"]:
        if wait["reason"] in DISK:
            if wait["object"] == archive:
                of[True] += wait["ns"]
            elif wait["object"].startswith(folder + "/"):
                of[False] += wait["ns"]
    check(of[True] > 0, "no wait for the archive")
    check(of[False] > 0, "no wait for what is written")
    check(0.95 * waited <= sum(of.values()) <= waited,
          f"{of} of {waited} ns name a file of either kind: {report['waited_objects'][:20]}")


def outermost(profile, thread):
    """Names of the functions that the thread's stacks begin with."""
    shared, found = profile.data["shared"], set()
    stacks, frames, functions = (shared[t] for t in ("stackTable", "frameTable", "funcTable"))
    for stack in {s for s in thread.data["samples"]["stack"] if s is not None}:
        while stacks["prefix"][stack] is not None:
            stack = stacks["prefix"][stack]
        found.add(shared["stringArray"][functions["name"][frames["func"][stacks["frame"][stack]]]])
    return found


def check_workers(profile, report, name, root):
    """Threads of that name are never somewhere unknown. Of one that has not run yet there is nothing, nor
    of one whose switches this machine hides (tests/support/py/untraced_tasks.py), reported as a missed switch; and
    one that has just been made, and has not touched its stack, says that this could not be read, one that
    ends that its process does. Of a worker of the kernel that no tick hit no more is known than that it ran
    in the kernel, where it always does; and out of a retpoline the kernel itself does not unwind
    (arch/x86/lib/retpoline.S: UNWIND_HINT_UNDEFINED)."""
    in_kernel = root == "ret_from_fork"
    nowhere = ("[runnable: ", "[unknown: ", "[recording]", "[truncated: unreadable stack]",
               "[truncated: process is ending]", *(("[kernel]",) if in_kernel else ()),
               "__x86_indirect_thunk_", "__pi___x86_indirect_thunk_",
               *(("[no stack]",) if report["contradictions"] and not in_kernel else ()))
    workers = [t for t in profile.threads if t.name.startswith(name)]
    check(workers, f"no thread is called {name}")
    for worker in workers:
        found = {n for n in outermost(profile, worker) if not n.startswith(nowhere)}
        check(found and all(n.startswith(root) for n in found), f"{worker.name} begins in {found}")


def extract(context, options):
    needs_command("zstd")
    with LimitedMount(context, 96 << 20) as disk, LittleDirty():
        archive, folder = disk.path / "a.tar.zst", disk.path / "out"
        subprocess.run([ROOT / "tools" / "demo" / "make-archive", archive, "24M"], check=True)
        with open(archive, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.sync()
        disk.limit(context.random.randint(8_000_000, 12_000_000))
        context.wallprof("-q", "--keep-capture", "-o", context.path("p.json"), "--", PROGRAM, *options,
                         archive, folder)
        disk.limit(0)
        paths = str(archive), str(folder)
    report = read_report(context, context.path("p.capture"))
    check_named(report, *paths)
    expect_failure(check_named, report, paths[0], paths[0])
    return Profile.load(context.path("p.json")), report


def test_plain(context):
    extract(context, [])


def test_threads(context):
    recording = extract(context, ["--threads", "4"])
    check_workers(*recording, "writer", "clone3")
    expect_failure(check_workers, *recording, "writer", "main")


def test_io_uring(context):
    check_workers(*extract(context, ["--io-uring"]), "iou-wrk-", "ret_from_fork")


def test_mmap(context):
    extract(context, ["--mmap"])
