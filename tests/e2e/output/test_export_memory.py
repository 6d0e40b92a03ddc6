# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory and the temporary files of the export of a long recording, at 1/90 of ten minutes' size.

The capture has a short recording's switches again and again (tools/bench/repeat.c).
"""
import os
import re
import shutil
import subprocess
from contextlib import ExitStack

import pytest

import cgroups
from harness import BUILD, Skip, check, expect_failure, needs_command, needs_root

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about files")]

EVENTS = 600_000
LIMIT = 64 << 20  # of the memory; the arrays of this capture are about 57 MB
kept = []  # the capture's bytes


def long_capture(context):
    path = context.path("long.capture")
    if not kept:
        short = context.path("short.capture")
        context.wallprof("record", "-q", "-o", short, "--",
                         *context.workload("pingpong", cpus=1, per_ms=24, rounds=12000))
        subprocess.run([BUILD / "tools" / "bench-repeat", short, path, str(EVENTS)], check=True, capture_output=True)
        kept.append(path.read_bytes())
    path.write_bytes(kept[0])
    return path


def with_limit():
    needs_command("prlimit")
    return ["prlimit", f"--data={LIMIT}"]


def check_need_told(said):
    check("temporary files may need 0." in said, f"the need is not reported: {said}")


def test_limited(context):
    """With little memory the same profile and the same report come, byte for byte."""
    capture = long_capture(context)
    whole = context.wallprof("export", "-o", "whole.json", capture)
    done = context.wallprof("export", "-o", "p.json", capture, before=with_limit())
    check_need_told(done.stderr)
    expect_failure(check_need_told, whole.stderr)  # it fits into memory
    check(context.path("p.json").read_bytes() == context.path("whole.json").read_bytes(), "another profile")
    reports = [context.wallprof("report", "--json", capture, before=before).stdout for before in ([], with_limit())]
    check(reports[0] == reports[1], "another report")
    left = {path.name for path in context.folder.iterdir()}
    check(left <= {"short.capture", "long.capture", "p.json", "whole.json"}, f"left over: {left}")


def test_no_file(context):
    """Where no temporary file can be made, the limit is too low: so the tests above are about it."""
    needs_root()
    capture, folder = long_capture(context), context.path("fixed")
    folder.mkdir()
    shutil.copy(capture, folder)
    script = f'mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec "$@"'
    done = context.wallprof("report", "--json", folder / capture.name, status=1,
                            before=["unshare", "--mount", "sh", "-c", script, "sh", *with_limit()])
    check("Cannot allocate memory; raise the limit on data" in done.stderr, done.stderr)
    said = re.search(r"up to 0\.\d GB will be in memory, because making a temporary file in (\S+) failed: Read-only file system; "
                     "copy the capture to another place", done.stderr)
    check(said and said[1] == str(folder), f"the consequence is not said: {done.stderr}")


def test_address_space(context):
    """With a limit on address space, the file has a smaller part of it; if none is left, that is said."""
    needs_command("prlimit")
    capture = long_capture(context)
    whole = context.wallprof("report", "--json", capture).stdout

    def limited(gib):
        return context.wallprof("report", "--json", capture, before=["prlimit", f"--as={gib << 30}", *with_limit()])

    done = limited(64)
    check("will be in memory" not in done.stderr, done.stderr)
    check(done.stdout == whole, "another report")
    done = context.wallprof("report", "--json", capture, before=["prlimit", f"--as={1 << 30}", "prlimit", f"--data={112 << 20}"])
    check("failed: Cannot allocate memory; raise the limit on address space (ulimit -v, now 1048576 KiB)" in done.stderr,
          done.stderr)
    check(done.stdout == whole, "another report")


def test_cgroup(context):
    """In a cgroup with little memory, which the file's pages share, the export comes to its end."""
    needs_root()
    capture = long_capture(context)
    with ExitStack() as left:
        root, file = cgroups.old("memory"), "memory.limit_in_bytes"
        if not root:
            root, file = cgroups.unified(context, left, "memory"), "memory.max"
        group = root / f"wallprof-test-{os.getpid()}"
        group.mkdir()
        left.callback(group.rmdir)
        (group / file).write_text(str(LIMIT))
        enter = f'echo $$ >{group}/cgroup.procs && exec "$@"'
        done = context.wallprof("export", "-o", "p.json", capture, before=["sh", "-c", enter, "sh"])
    check_need_told(done.stderr)
    check(context.path("p.json").stat().st_size > 0, "no profile")


def test_full_disk(context):
    """A disk that is too small is reported before, and when it is full; nothing is left on it."""
    needs_root()
    capture, disk = long_capture(context), context.path("disk")
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "small", disk], capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"no tmpfs: {done.stderr.strip()}")
    try:
        done = context.wallprof("export", "-o", disk / "p.json", capture, status=1, before=with_limit())
        left = list(disk.iterdir())
        free = shutil.disk_usage(disk).free
    finally:
        subprocess.run(["umount", disk], check=True)
    lines = done.stderr.splitlines()
    check(len(lines) == 2, f"{lines}")
    check("are available; choose another place with -o" in lines[0], f"{lines}")
    check(lines[1] == f"wallprof: error: writing temporary files in {disk} failed: No space left on device; choose "
          "another place with -o", f"{lines}")
    check(not left and free > 19 << 20, f"left over: {left}, {free} bytes free")
