# SPDX-License-Identifier: GPL-2.0-or-later
"""What tools/run and tools/test share: configure and build when, and only when, needed."""
import os
import subprocess

from harness import ROOT, check

# They write down what they are asked for.
MESON = """#!/bin/sh
echo "meson $*" >>"$LOG"
[ "$1" != setup ] || touch "$2/build.ninja"
"""
NINJA = """#!/bin/sh
echo "ninja" >>"$LOG"
"""

HOST_ONLY = "it is about building"


def called(context, *options):
    """Which of the two `build build OPTIONS` calls, and how; of meson, its verb."""
    log = context.path("log")
    log.write_text("")
    done = subprocess.run(
        ["sh", "-euc", f'. {ROOT}/tools/setup.sh; build build "$@"', "sh", *options],
        env={**os.environ, "LOG": str(log), "root": str(context.path("tree")),
             "PATH": f"{context.path('bin')}:{os.environ['PATH']}"}, capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout == "", f"{done.returncode} {done.stdout}{done.stderr}")
    return [" ".join(line.split()[:2]) for line in log.read_text().splitlines()]


def test_options_are_remembered(context):
    for name, text in (("meson", MESON), ("ninja", NINJA)):
        path = context.path("bin") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    for folder in ("bpf", "src", "export", "tests", "tools"):
        (context.path("tree") / folder).mkdir(parents=True)
    for file in ("meson.build", "meson_options.txt"):
        (context.path("tree") / file).touch()
    for options, wanted in (
            (["-Dtests=disabled"], ["meson setup", "ninja"]),      # tools/run in a fresh tree
            ([], []),                                           # and once more
            (["-Dtests=enabled"], ["meson configure", "ninja"]),   # then tools/test
            (["-Dtests=enabled"], []),
            ([], [])):                                          # tools/run after it
        check(called(context, *options) == wanted, f"{options}: not {wanted}")
    source = context.path("tree/src/new.c")
    source.touch()
    built = context.path("tree/build/built").stat().st_mtime
    os.utime(source, (built + 1, built + 1))
    check(called(context) == ["ninja"], "a newer source is not built")
