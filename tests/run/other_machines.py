# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel matrix (vm) and the release matrix (roots), each an item of pytest that has many results."""
import os
import re
import subprocess
import sys

import pytest

from harness import ROOT, Failure, Skip

RESULT = re.compile(r"^(ok|not ok|skip) ((?:vm|roots)\S*)(?: # (.*))?$")
OUTCOMES = {"ok": "passed", "not ok": "failed", "skip": "skipped"}


class Matrix(pytest.Item):
    def __init__(self, *, tool, **settings):
        super().__init__(**settings)
        self.tool = tool
        self.add_marker("untimed")
        self.add_marker("tried_once")

    def is_meant_by(self, word):
        """The names of its tests are only known when it runs."""
        return word.startswith(self.name)

    def runtest(self):
        why = os.environ.get(f"WALLPROF_SKIP_{self.name.upper()}")
        if why:
            raise Skip(why)
        command = [sys.executable, "-B", ROOT / self.tool, *(["--long"] if self.config.option.long else [])]
        results, failed = 0, False
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                              env={**os.environ, "WALLPROF_SEED": str(self.config.seed)}) as matrix:
            for line in map(str.rstrip, matrix.stdout):
                match = RESULT.match(line)
                if match:
                    self.report(OUTCOMES[match[1]], match[2], match[3] or "no reason given")
                    results += match[1] != "skip"
                    failed |= match[1] == "not ok"
                elif line.startswith("#"):
                    self.config.scheduler.note(line[1:].strip())
        if results == 0 or matrix.returncode != int(failed):
            raise Failure(f"{self.tool} did not run (status {matrix.returncode})")

    def report(self, outcome, name, why):
        reason = {"passed": None, "failed": why, "skipped": (str(self.path), 0, why)}[outcome]
        report = pytest.TestReport(name, (str(self.path), None, name), {}, outcome, reason, "call")
        self.config.scheduler.take([report])

    def reportinfo(self):
        return self.path, None, self.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session, config, items):
    if config.option.guest or config.option.root:
        return
    for name, tool in (("vm", "tests/vm/kernel-matrix"), ("roots", "tests/roots/release-matrix")):
        items.append(Matrix.from_parent(session, name=name, tool=tool))
        config.hook.pytest_itemcollected(item=items[-1])
