# SPDX-License-Identifier: GPL-2.0-or-later
"""A capture made here and exported there: the guests have none of the files that it is about.

What the host makes of it, before the program, its debug file and its source are deleted, must
be what every guest makes of it, to the byte.
"""
import os
import re
import shutil
import subprocess

from harness import ROOT, Failure, check

SOURCE = ROOT / "tests" / "workloads" / "symbols" / "inlines.cc"


def _run(*command, **settings):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **settings)
    check(done.returncode == 0, f"{command[0]}: {done.stderr.strip()[-600:]}")


class Carried:
    def __init__(self, folder, build):
        """Records in `folder`. Raises Failure if that does not go."""
        self.wallprof, self.capture = build / "wallprof", folder / "carried.capture"
        self.profile = folder / "carried.json"
        project = folder / "project"
        project.mkdir()
        shutil.copy(SOURCE, project)
        _run("g++", "-g", "-O2", "-fno-omit-frame-pointer", SOURCE.name, "-o", "carried",
             cwd=project)
        _run("objcopy", "--only-keep-debug", "carried", "carried.debug", cwd=project)
        _run("strip", "carried", cwd=project)
        _run("objcopy", "--add-gnu-debuglink=carried.debug", "carried", cwd=project)
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        _run(self.wallprof, "record", "-q", "-o", self.capture, "--", project / "carried", "200",
             env=environment)
        self.export(self.profile, environment)
        text = self.profile.read_text()
        check(re.search(r'"hashing::Digest::add\(', text) and "Compiled by the" in text,
              "the profile lacks an inlined function or the text of its source")
        shutil.rmtree(project)
        shutil.rmtree(folder / "cache")

    def export(self, output, environment=None):
        _run(self.wallprof, "export", "-q", "-o", output, self.capture, env=environment)

    def check_same(self, case):
        """Returns the guest's profile and report of the capture."""
        case.check_status(0)
        here, there = self.profile.read_bytes(), (case.folder / "profile.json").read_bytes()
        if here != there:
            at = next((i for i, (a, b) in enumerate(zip(here, there)) if a != b),
                      min(len(here), len(there)))
            raise Failure(f"{len(here)} bytes here, {len(there)} there, other ones from {at} on: "
                          f"{here[at - 100:at + 50]} and {there[at - 100:at + 50]}")
