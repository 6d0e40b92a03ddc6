# SPDX-License-Identifier: GPL-2.0-or-later
"""Root folders of Debian releases: made by mmdebstrap, kept in the user's cache folder, entered by chroot.

Bare ones have what every Debian has. Those to build in have what tools/packages lists besides, installed by the
code that tools/run and tools/test use. Nothing is changed in a root once it is made: what is done there is done in
a layer in memory, in a mount namespace of its own, which is gone when its last process is. Several runs may share
the folder: a root that one of them uses is not replaced.
"""
import fcntl
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import packages
from harness import cache_folder
from packages import Unavailable

ROOT = Path(__file__).resolve().parents[2]
SUITES = {"12": "bookworm", "13": "trixie", "sid": "sid"}
OLDEST_S = 7 * 24 * 3600
# The packages of a root for building; a root that was made with another list is made again.
INSTALL = 'root=/wallprof; . tools/setup.sh; install_packages run part test deb bundle'
INSTALLED_BY = ("tools/packages", "tools/setup.sh")
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
               "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
LAYER = """mount -t tmpfs -o mode=755 layer {scratch}
mkdir {scratch}/upper {scratch}/work {scratch}/root
mount -t overlay overlay -o lowerdir={root},upperdir={scratch}/upper,workdir={scratch}/work {scratch}/root
cd {scratch}/root
"""
MOUNTS = """for folder in proc sys dev; do mount --rbind /$folder $folder; done
mount -t tmpfs -o mode=1777 tmp tmp
[ ! -e /etc/resolv.conf ] || cp --remove-destination /etc/resolv.conf etc/resolv.conf
"""


def ccache_folder(name, purpose="ccache"):
    """The compilers' results of that root are cached, too, for each user separately."""
    path = _folder() / f"{SUITES[name]}-{purpose}"
    path.mkdir(parents=True, exist_ok=True)
    return path


class Failed(Exception):
    """A command failed; the argument is the end of what it said."""


def _folder():
    return cache_folder() / "roots"


def _enter(root, command, binds, layered):
    """The command line that runs a shell command in that root. binds: {path in the root: folder outside}."""
    scratch = tempfile.mkdtemp(prefix="wp-root-") if layered else None
    script = "set -e\n" + (LAYER.format(scratch=scratch, root=root) if layered else f"cd {root}\n") + MOUNTS
    for inside, outside in binds.items():
        inside = shlex.quote("." + inside)
        script += f"mkdir -p {inside}\nmount --bind {shlex.quote(str(outside))} {inside}\n"
    script += f"exec chroot . /bin/sh -c {shlex.quote(command)}\n"
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script], scratch


class Root:
    def __init__(self, path):
        self.path = path

    def start(self, command, binds=None, environment=None):
        """A process whose output can be read line by line; once it has ended, leave() it."""
        words, scratch = _enter(self.path, command, binds or {}, layered=True)
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env={**ENVIRONMENT, **(environment or {})})
        process.scratch = scratch
        return process

    @staticmethod
    def leave(process):
        """Its mounts are gone with it; what they lay on goes, too."""
        os.rmdir(process.scratch)

    def run(self, command, binds=None, environment=None):
        """Returns its output. Raises Failed."""
        process = self.start(command, binds, environment)
        said, _ = process.communicate()
        self.leave(process)
        if process.returncode != 0:
            raise Failed(f"status {process.returncode}: {said.strip()[-2500:]}")
        return said


def _is_kept(path, wanted):
    """Whether there is a root that is young enough and was made as it is wanted."""
    stamp = path / "wallprof-root"
    try:
        return stamp.read_text() == wanted and time.time() - stamp.stat().st_mtime < OLDEST_S
    except OSError:
        return False


_held = {}  # path: the open file with the lock that keeps other runs from replacing that root
_locks, _finding_locks = {}, threading.Lock()  # {path: the lock of the thread that makes that root}


def _obtain(path, wanted, refresh, make):
    """The root at that path. make(new) fills the folder of a new one if there is none like it, or with refresh."""
    with _finding_locks:
        lock = _locks.setdefault(path, threading.Lock())
    with lock:
        if path not in _held:
            _held[path] = _lock_kept(path, wanted, refresh, make)
    return Root(path)


def _lock_kept(path, wanted, refresh, make):
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = open(path.with_suffix(".lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_SH)
    if refresh or not _is_kept(path, wanted):
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another run may have made it while this one waited for the lock.
        if refresh or not _is_kept(path, wanted):
            new = path.with_suffix(".new")
            make(new)
            (new / "wallprof-root").write_text(wanted)
            shutil.rmtree(path, ignore_errors=True)
            new.rename(path)
        fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def _bootstrap(suite, new):
    """Raises Unavailable. An archive whose index is out of date is used all the same, and note() says so."""
    # With --quiet the messages of apt-get would be missing.
    command = ["mmdebstrap", "--variant=minbase", "--include=ca-certificates", suite, new, packages.mirror()]
    for late in (False, True):
        shutil.rmtree(new, ignore_errors=True)  # what a failure left there
        done = subprocess.run(
            [*map(str, command), *(['--aptopt=Acquire::Check-Valid-Until "false"'] if late else [])],
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            return late
        if "is expired" not in done.stderr:
            break
    raise Unavailable(f"mmdebstrap {suite}: {done.stderr.strip()[-600:]}")


def bare(name, note, refresh=False):
    """The bare root of a release in SUITES. Raises Unavailable."""
    def make(new):
        begin = time.monotonic()
        if _bootstrap(SUITES[name], new):
            note(f"the archive of {name} is out of date: its index is no longer valid")
        note(f"root of {name}: made in {time.monotonic() - begin:.0f} s")

    return _obtain(_folder() / f"{SUITES[name]}-bare", SUITES[name], refresh, make)


def full(name, note, refresh=False):
    """The root of a release to build in. Raises Unavailable."""
    origin = bare(name, note, refresh)

    def make(new):
        begin = time.monotonic()
        shutil.rmtree(new, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", origin.path, new], check=True)
        words, _ = _enter(new, f"cd /wallprof && {INSTALL}", {"/wallprof": ROOT}, layered=False)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=ENVIRONMENT)
        if done.returncode != 0:
            raise Unavailable(f"packages of {name}: {done.stderr.strip()[-1500:]}")
        note(f"root of {name} to build in: made in {time.monotonic() - begin:.0f} s")

    made = (origin.path / "wallprof-root").stat().st_mtime
    wanted = f"{made}\n{INSTALL}\n" + "".join((ROOT / file).read_text() for file in INSTALLED_BY)
    return _obtain(_folder() / SUITES[name], wanted, refresh, make)
