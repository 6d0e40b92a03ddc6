# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtual machine that boots a kernel, runs a script and is gone.

Its disk is an ext4 file system made without root's help; what the script left in
/results is read back from it. Emulated (TCG), for KVM is not to be had everywhere.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
APPLETS = ("ifconfig", "kill", "mkdir", "mount", "poweroff", "sh", "sleep", "sync", "touch",
           "true", "uname")
DISK_SIZE = "96M"
# Programs that are needed, and the packages they are in.
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static",
          "mke2fs": "e2fsprogs", "debugfs": "e2fsprogs", "dpkg-deb": "dpkg", "apt-get": "apt",
          "ldd": "libc-bin"}
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Failed(Exception):
    """The machine could not be made or did not come to its end; the argument says why."""


def missing_packages():
    return sorted({package for program, package in NEEDED.items()
                   if not shutil.which(program, path=PATH)})


def _run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, "PATH": PATH})
    if done.returncode != 0:
        raise Failed(f"{command[0]}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def _install(program, root):
    """In /bin, with what the dynamic loader maps for it, if anything, at the same paths."""
    shutil.copy(program, root / "bin")
    maps = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    for path in re.findall(r"(/\S+) \(0x", maps):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def make_disk(folder, build, scripts):
    """An image with wallprof, the workloads and these scripts ({name: text}) in it."""
    root, image = folder / "root", folder / "disk"
    for name in ("bin", "dev", "proc", "sys", "tmp"):
        (root / name).mkdir(parents=True)
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    workloads = [p for p in (build / "tests" / "workloads").iterdir()
                 if p.is_file() and os.access(p, os.X_OK)]
    for program in [shutil.which("busybox", path=PATH), build / "wallprof", *workloads]:
        _install(program, root)
    shutil.copy(HERE / "init", root / "init")
    for name, text in scripts.items():
        (root / name).write_text(text)
    _run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0", "-d", root,
          image, DISK_SIZE])
    shutil.rmtree(root)
    return image


def run(kernel, disk, script, folder, seconds):
    """Boots the kernel on a copy of the disk; returns the folder of its results."""
    image, log = folder / "run-disk", folder / "console"
    shutil.copy(disk, image)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi",
               # Under qemu 7.2's TCG kernel 6.12 panics with cx16.
               "-cpu", "max,-cx16", "-smp", "2", "-m", "1G", "-nodefaults", "-display", "none",
               "-no-reboot", "-serial", "stdio", "-kernel", kernel.path,
               "-drive", f"file={image},format=raw,if=none,id=disk,cache=unsafe",
               "-device", "nvme,drive=disk,serial=1",
               "-append", "console=ttyS0 panic=-1 quiet root=/dev/nvme0n1 rw init=/init "
                          f"script=/{script}"]
    try:
        with open(log, "wb") as console:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=console,
                           stderr=subprocess.STDOUT, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"the guest did not end within {seconds} s\n{_tail(log)}") from None
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    _run(["debugfs", "-R", f"rdump /results {folder}", image])
    image.unlink()
    if not (results / "done").exists():
        raise Failed(f"the guest did not come to its end\n{_tail(log)}")
    return results


def _tail(log):
    text = log.read_text(errors="replace")
    return "".join(c for c in text if c.isprintable() or c == "\n").strip()[-1500:]
