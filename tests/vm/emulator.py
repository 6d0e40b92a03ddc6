# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU, at least 8.1.

An older one may translate an instruction while another CPU of the guest patches it, and go on
with what was there before: the kernel's breakpoint where a tracepoint is switched on or off. Of
kernels in which programs are attached all the time one in ten died of it, or hung ("accel/tcg:
Always lock pages before translation" mended it). Where this machine's own is older, one is taken
from its suite's backports; the libraries that it needs are those of the machine's own.
"""
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import packages
from harness import cache_folder

PROGRAM = "qemu-system-x86_64"
OLDEST = (8, 1)
PACKAGES = ("qemu-system-x86", "qemu-system-data", "seabios")
DATA = ("usr/share/qemu", "usr/share/seabios")


def _version(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"version (\d+)\.(\d+)", done.stdout)
    if not match:
        raise packages.Unavailable(f"{program}: {(done.stderr or done.stdout).strip()[-300:]}")
    return int(match[1]), int(match[2])


def _fetch(suite, folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        scratch = Path(scratch)
        found = packages.Suite(suite, scratch)
        tree = scratch / "tree"
        for package in PACKAGES:
            packages.unpack(found.download(package), tree)
        shutil.rmtree(folder, ignore_errors=True)  # one that is older, or not whole
        tree.rename(folder)


@functools.cache
def command():
    """The program with what it needs to find its own files. Raises packages.Unavailable."""
    program = shutil.which(PROGRAM)
    if program and _version(program) >= OLDEST:
        return [program]
    suite = packages.codename() + "-backports"
    folder = cache_folder() / "qemu" / suite
    program = folder / "usr/bin" / PROGRAM
    if not program.exists() or _version(program) < OLDEST:
        _fetch(suite, folder)
    if _version(program) < OLDEST:
        raise packages.Unavailable(f"{suite} has no {PROGRAM} of version {OLDEST[0]}.{OLDEST[1]}")
    return [program, *(word for data in DATA for word in ("-L", folder / data))]
