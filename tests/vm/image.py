# SPDX-License-Identifier: GPL-2.0-or-later
"""The disk of a guest: wallprof, its workloads, its end-to-end tests and what those call.

An ext4 file system made without root's help. Programs and libraries are this machine's
own, at the same paths; the tests are where they are in the tree, under /wallprof.
"""
import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
APPLETS = ("cat", "date", "ifconfig", "insmod", "kill", "mkdir", "mkfifo", "mount", "poweroff", "rm",
           "rmdir", "sh", "sleep", "tar", "taskset", "touch", "true", "umount", "uname")
# Further programs that the end-to-end tests call, and their packages.
TOOLS = {"bpftool": "bpftool", "curl": "curl", "dmsetup": "dmsetup", "perf": "linux-perf", "setpriv": "util-linux",
         "redis-server": "redis-server", "sync": "coreutils", "unshare": "util-linux", "zstd": "zstd"}
SOURCES = ("bpf", "src", "export", "tests/conftest.py", "tests/e2e", "tests/pytest.ini", "tests/run",
           "tests/support/browser", "tests/support/py", "tests/vm", "tests/workloads/scripts", "tools")
# pytest and what it needs; some of these only some versions of it.
PYTHON_PACKAGES = ("_pytest", "attr", "exceptiongroup", "iniconfig", "packaging", "pluggy", "py", "pygments", "pytest",
                   "tomli")
# Parts of Python's library that are large and that no test imports.
OMITTED = ("site-packages", "dist-packages", "test", "tests", "idlelib", "ensurepip", "lib2to3",
           "tkinter", "turtledemo", "config-*", "*.opt-?.pyc", "*.a")
USERS = {"passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
         "group": "root:x:0:\nnogroup:x:65534:\n"}
DISK_SIZE = 384 << 20
# The order in which the kernel finds the disks is chance, so the system's disk has a partition that the kernel
# finds by its number: the disk's signature and 01.
PARTITION_AT, SIGNATURE = 1 << 20, 0x77616c6c
PARTITION = f"{SIGNATURE:08x}-01"
SECTOR = 512
DATA_SIZE, DATA_BYTES = "64M", 8 << 20
# Programs that are needed here, and the packages they are in.
NEEDED = {"busybox": "busybox-static", "mke2fs": "e2fsprogs", "ldd": "libc-bin", **TOOLS}
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _which(program):
    return Path(shutil.which(program, path=PATH)).resolve()


def _install_libraries(program, root):
    """Returns the libraries that the dynamic loader maps for it."""
    maps = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    for path in re.findall(r"(/\S+) \(0x", maps):
        target = root / path.lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def _install(program, folder, root, name=None):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, folder / (name or program.name))
    _install_libraries(program, root)


def _install_python(root):
    """The interpreter that runs this, and its library with what its modules link."""
    program = Path(sys.executable).resolve()
    _install(program, root / str(program.parent).lstrip("/"), root)
    (root / "bin/python3").symlink_to(program)
    for name in ("stdlib", "platstdlib"):
        library = Path(sysconfig.get_path(name))
        target = root / str(library).lstrip("/")
        if not target.exists():
            shutil.copytree(library, target, symlinks=True,
                            ignore=shutil.ignore_patterns(*OMITTED))
            for module in (target / "lib-dynload").glob("*.so"):
                _install_libraries(library / "lib-dynload" / module.name, root)
    for name in PYTHON_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            (folder,) = spec.submodule_search_locations
            shutil.copytree(folder, root / folder.lstrip("/"))
        elif spec:
            shutil.copy(spec.origin, root / spec.origin.lstrip("/"))


def _install_wallprof(build, root):
    tree = root / "wallprof"
    for name in SOURCES:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)
    _install(build / "wallprof", tree / "build", root)
    example = build / "tools" / "tar-extract"
    if example.exists():
        _install(example, tree / "build" / "tools", root)
    for workload in (build / "tests" / "workloads").iterdir():
        if workload.is_file() and os.access(workload, os.X_OK):
            _install(workload, tree / "build" / "tests" / "workloads", root)


def make_data(folder, disk, name, modules, run):
    """A file system of that name with a journal, and in it the file `data`, of random bytes, and
    the kernel's modules if that folder is given."""
    root = folder / f"root-{name}"
    root.mkdir(exist_ok=True)
    (root / "data").write_bytes(os.urandom(DATA_BYTES))
    if modules and modules.exists():
        shutil.copytree(modules, root / "modules")
    disk.unlink(missing_ok=True)
    run(["mke2fs", "-q", "-t", "ext4", "-L", name, "-E", "root_owner=0:0", "-d", root, disk,
         DATA_SIZE])
    shutil.rmtree(root)


def make(folder, build, scripts, files, run):
    """An image with all that these scripts ({name: text}) and files in it; `run` runs a command."""
    root, image = folder / "root", folder / "disk"
    for name in ("bin", "dev", "etc", "fast", "proc", "slow", "sys", "tmp", "var/tmp"):
        (root / name).mkdir(parents=True)
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    for program in ("busybox", *TOOLS):
        _install(_which(program), root / "bin", root, program)
    _install_python(root)
    _install_wallprof(build, root)
    shutil.copy(HERE / "init", root / "init")
    for name, text in {**scripts, **{f"etc/{n}": t for n, t in USERS.items()}}.items():
        (root / name).write_text(text)
    for path in files:
        shutil.copy(path, root)
    image.write_bytes(partition_table())
    os.truncate(image, PARTITION_AT + DISK_SIZE)
    run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-E",
         f"root_owner=0:0,offset={PARTITION_AT}", "-d", root, image, f"{DISK_SIZE >> 10}k"])
    shutil.rmtree(root)
    return image


def partition_table():
    """A master boot record with one partition, of Linux."""
    entry = struct.pack("<B3sB3sII", 0, b"", 0x83, b"", PARTITION_AT // SECTOR,
                        DISK_SIZE // SECTOR)
    return (b"".ljust(440, b"\0") + struct.pack("<IH", SIGNATURE, 0) + entry).ljust(
        510, b"\0") + b"\x55\xaa"
