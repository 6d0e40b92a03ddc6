# SPDX-License-Identifier: GPL-2.0-or-later
"""wallprof with BPF programs of other versions of clang than that of the build.

Each compiler leaves out other checks and uses the stack otherwise, and the verifiers of older kernels know less. A
program that one kernel takes from one clang may be refused elsewhere: distributions build with theirs, and their
packages run on any kernel.
"""
import os
import re
import shlex
import subprocess
from pathlib import Path

from harness import ROOT, Failure, Skip, check, expect_failure

OLDEST = 14
# A script has a program of its own, which is loaded for it.
SCRIPT = "import time; [time.sleep(0.01) for _ in range(20)]"
REFUSED = re.compile(r"^(no |libbpf: |\w+ +no )", re.MULTILINE)


def _version(command):
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"clang version (\d+)", done.stdout)
    return int(found[1]) if found else 0


def commands():
    """[(version, path)] of the clangs of this machine, the one of the build left out."""
    found = {int(path.name[len("clang-"):]): path for folder in os.environ["PATH"].split(":")
             for path in Path(folder).glob("clang-[0-9][0-9]")}
    return [(version, path) for version, path in sorted(found.items()) if OLDEST <= version != _version("clang")]


def _run(*command, environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=environment)
    check(done.returncode == 0, f"{command[0]} {command[1]}: {(done.stdout + done.stderr).strip()[-600:]}")


class OtherClangs:
    def __init__(self, folder, clangs):
        """Builds one wallprof in `folder` for each of these clangs: (version, path)."""
        self.programs, self.failures = {}, {}
        for version, command in clangs:
            name = f"clang_{version}"
            try:
                self.programs[name] = self._build(folder / name, command, folder / f"wallprof_{name}")
            except Failure as failure:
                self.failures[name] = failure

    @staticmethod
    def _build(folder, clang, program):
        links = folder / "bin"
        links.mkdir(parents=True)
        (links / "clang").symlink_to(clang)
        environment = {**os.environ, "PATH": f"{links}:{os.environ['PATH']}", "CCACHE_NOHASHDIR": "1"}
        _run("meson", "setup", folder / "build", ROOT, "-Dtests=disabled", "-Dopen=disabled", "-Dexample=disabled",
             environment=environment)
        _run("nice", "ninja", "-C", folder / "build", "wallprof", environment=environment)
        (folder / "build" / "wallprof").rename(program)
        return program

    def script(self):
        """What a guest runs, see init."""
        return "".join(f"plain {name} sh -c " + shlex.quote(
            f"/{program.name} record -q -o /tmp/x.capture -- python3 -c '{SCRIPT}' && /{program.name} doctor -v") + "\n"
            for name, program in self.programs.items())

    def tests(self, case_of):
        """{name: function without arguments} of each test on what a guest left; case_of(name) has its results."""
        return {f"load.{name}": lambda name=name: self._check(name, case_of) for name in [*self.programs, *self.failures]} or {
            "load.other_clang": _skip}

    def _check(self, name, case_of):
        if name in self.failures:
            raise self.failures[name]
        case = case_of(name)
        check_loads(case)
        log, case.log = case.log, "no   tp_btf/sched_switch              context switches: Permission denied\n"
        expect_failure(check_loads, case)
        case.log = log


def _skip():
    raise Skip("no other version of clang is installed")


def check_loads(case):
    """All programs are loaded, those for scripts, too."""
    case.check_status(0)
    refused = REFUSED.search(case.log)
    check(not refused, f"the kernel refuses a program: {case.log[refused.start():][:600] if refused else ''}")
    check("are not recorded" not in case.log, f"the program for scripts is not loaded: {case.log[:300]}")
    check("instructions verified" in case.log, f"no program is named: {case.log[:300]}")
