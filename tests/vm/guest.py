# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtual machine that boots a kernel, runs a script and is gone.

What the script left in /results is read back from its disk; what it wrote to its second
serial port is there even if the guest hangs. Emulated (TCG), for KVM is not to be had everywhere.
"""
import os
import shutil
import subprocess

import image

# Programs that are needed, and the packages they are in.
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "debugfs": "e2fsprogs", "dpkg-deb": "dpkg",
          "apt-get": "apt", **image.NEEDED}


class Failed(Exception):
    """The machine could not be made or did not come to its end; the argument says why."""


def missing_packages():
    return sorted({package for program, package in NEEDED.items()
                   if not shutil.which(program, path=image.PATH)})


def _run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, "PATH": image.PATH})
    if done.returncode != 0:
        raise Failed(f"{command[0]}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def make_disk(folder, build, scripts, files):
    return image.make(folder, build, scripts, files, _run)


def run(kernel, disk, script, folder, seconds):
    """Boots the kernel on a copy of the disk; returns the folder of its results."""
    copy, log, told = folder / "run-disk", folder / "console", folder / "told"
    shutil.copy(disk, copy)
    told.unlink(missing_ok=True)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi",
               # Under qemu 7.2's TCG kernel 6.12 panics with cx16.
               "-cpu", "max,-cx16", "-smp", "2", "-m", "2G", "-nodefaults", "-display", "none",
               "-no-reboot", "-serial", "stdio", "-serial", f"file:{told}",
               "-kernel", kernel.path,
               "-drive", f"file={copy},format=raw,if=none,id=disk,cache=unsafe",
               "-device", "nvme,drive=disk,serial=1",
               # One guest in a dozen loses a CPU's timer and hangs: better that it panics, and ends.
               "-append", "console=ttyS0 panic=-1 softlockup_panic=1 watchdog_thresh=30 quiet "
                          "sysctl.kernel.panic_on_rcu_stall=1 rcupdate.rcu_cpu_stall_timeout=60 "
                          "root=/dev/nvme0n1 rw init=/init "
                          f"script=/{script}"]
    try:
        with open(log, "wb") as console:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=console,
                           stderr=subprocess.STDOUT, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"the guest did not end within {seconds} s\n{_tail(log)}"
                     f"\n{_tail(told)}") from None
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    _run(["debugfs", "-R", f"rdump /results {folder}", copy])
    copy.unlink()
    if not (results / "done").exists():
        raise Failed(f"the guest did not come to its end\n{_tail(log)}")
    return results


def _tail(log):
    text = log.read_text(errors="replace") if log.exists() else ""
    return "".join(c for c in text if c.isprintable() or c == "\n").strip()[-1500:]
