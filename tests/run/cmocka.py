# SPDX-License-Identifier: GPL-2.0-or-later
"""Unit tests as pytest's items: unit.PROGRAM.TEST of the folder build, and unit-asan.… under the sanitizers.

A whole run that is not --long has only the second: the first are run by the release matrix on Debian 13.

The names of the tests are those in the source, for a cmocka program does not list them. It runs all of them at once.
"""
import functools
import json
import os
import re
import subprocess

import pytest

from harness import ROOT, Failure, Skip

LIST = re.compile(r"struct CMUnitTest \w+\[\] = \{(.*?)\n\t?\};", re.DOTALL)
ENTRY = re.compile(r"\b\w+\((\w+)")  # cmocka_unit_test(NAME), or a macro of the file for one with a fixture
# cmocka 1 writes "ok 1 # SKIP name", cmocka 2 "ok 1 - name # SKIP".
TAP = re.compile(r"^(ok|not ok) \d+ (?:# SKIP (\S+)|- (\S+)( # SKIP.*)?)$")


def tap_results(text):
    """(name, ok | not ok | skip) of each test in what a cmocka program prints."""
    for match in filter(None, map(TAP.match, text.splitlines())):
        yield match[2] or match[3], "skip" if match[2] or match[4] else match[1]


@functools.cache
def registered(build):
    """{program: what meson knows of it} of the unit tests in this build folder."""
    done = subprocess.run(["meson", "introspect", ROOT / build, "--tests"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(done.stderr or f"{build} is no build folder")
    return {test["name"]: test for test in json.loads(done.stdout)
            if any(suite.split(":")[-1] == "unit" for suite in test["suite"])}


class Program:
    def __init__(self, build, name, seed):
        self.build, self.short_name, self.seed = build, name, seed
        self.name = f"{build.replace('build', 'unit')}.{name}"

    @property
    def priority(self):
        """Those that take long begin first."""
        try:
            return registered(self.build)[self.short_name]["priority"]
        except (Failure, KeyError):
            return 0

    @functools.cached_property
    def done(self):
        """({test: result}, what it printed and how it ended)"""
        test = registered(self.build).get(self.short_name)
        if not test:
            raise Failure(f"meson knows of no such test in {self.build}")
        environment = {**os.environ, **test["env"], "CMOCKA_MESSAGE_OUTPUT": "TAP", "WALLPROF_SEED": str(self.seed),
                       "UBSAN_OPTIONS": "halt_on_error=1"}
        try:
            done = subprocess.run(test["cmd"], capture_output=True, text=True, errors="replace", env=environment,
                                  timeout=max(test["timeout"], 30) * 4, cwd=test["workdir"] or ROOT)
        except (OSError, subprocess.TimeoutExpired) as error:
            return {}, str(error)
        results = dict(tap_results(done.stdout))
        said = f"status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        if done.returncode != 0 and "not ok" not in results.values():
            results = {}  # it found something outside of its tests
        return results, said


class CmockaTest(pytest.Item):
    def __init__(self, *, program, **settings):
        super().__init__(**settings)
        self.cause = self.program = program

    def is_meant_by(self, word):
        """A part of the program's name means all tests in it."""
        return word in self.program.name or self.name.startswith(word)

    def runtest(self):
        results, said = self.program.done
        result = results.get(self.name.removeprefix(f"{self.program.name}."))
        if result == "skip":
            raise Skip("skipped by the test itself")
        if result != "ok":
            raise Failure(said if result else f"no result: {said}")

    def reportinfo(self):
        return self.path, None, self.name


class Source(pytest.File):
    def builds(self):
        if self.config.option.root:
            return ("build",)
        if self.config.names or self.config.option.long or "WALLPROF_SKIP_ROOTS" in os.environ:
            return "build", "build-asan"
        return ("build-asan",)

    def collect(self):
        names = [name for tests in LIST.findall(self.path.read_text()) for name in ENTRY.findall(tests)]
        for build in self.builds():
            program = Program(build, self.path.stem.removeprefix("test_"), self.config.seed)
            for name in names:
                yield CmockaTest.from_parent(self, name=f"{program.name}.{name}", program=program)


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.name.startswith("test_"):
        return Source.from_parent(parent, path=file_path)
    return None
