# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks by other users on root who records: each did harm before wallprof withstood it."""
import os
import subprocess
from pathlib import Path

import pytest

from harness import IN_GUEST, WALLPROF, check, expect_failure, needs_root

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
