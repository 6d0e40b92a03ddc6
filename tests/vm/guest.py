# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtual machine that boots a kernel, runs a script and is gone.

What the script left in /results is read back from its disk; what it wrote to its second
serial port is there even if the guest hangs. By the third each of its CPUs says now and then that it
is alive. Emulated (TCG), for KVM is not to be had everywhere.
"""
import os
import random
import re
import shutil
import socket
import subprocess
import time
from collections import Counter

import emulator
import image

# Programs that are needed, and the packages they are in.
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "debugfs": "e2fsprogs", "dpkg-deb": "dpkg",
          "apt-get": "apt", **image.NEEDED}


CPUS = 2
# For each CPU more: memory; and where many CPUs share few, the kernel finds its timers and clocks too slow to be right.
MEMORY_MIB, MEMORY_OF_CPU_MIB = 2048, 32
TRUSTED_CLOCKS = "no_timer_check tsc=reliable"
# Two more disks, of which the first is slow by a known amount: bytes and operations a second are
# drawn at random, and the guest finds them on its kernel's command line.
# So slow that what an emulated CPU takes for a request is little beside what the disk takes.
SLOW_BYTES, SLOW_OPERATIONS = (1_000_000, 2_000_000), (20, 40)
KERNEL_WARNING = re.compile(r"^.*\b(Oops|BUG|WARNING|panic|lockup|stall)\b", re.MULTILINE)
# Seconds without a word from one of its CPUs, and it is given up. Many CPUs share this machine's few.
HOPELESS, HOPELESS_OF_CPU = 45, 8
# Seconds without a word until it is woken, in case it is suspended and the alarm of its clock was too early.
ASLEEP = 15


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


def _data_drives(folder, chance, modules):
    """QEMU's arguments for the slow disk and the fast one, with modules, and the kernel's about them."""
    rate, operations = chance.randint(*SLOW_BYTES), chance.randint(*SLOW_OPERATIONS)
    arguments = []
    for name, throttle in (("slow", f",throttling.bps-total={rate}"
                                    f",throttling.iops-total={operations}"), ("fast", "")):
        disk = folder / f"disk-{name}"
        image.make_data(folder, disk, name, modules if name == "fast" else None, _run)
        arguments += ["-drive", f"file={disk},format=raw,if=none,id={name},cache=unsafe{throttle}",
                      "-device", f"nvme,drive={name},serial={name}"]
    return arguments, f"slow_bytes={rate} slow_operations={operations}"


def run(kernel, disk, script, folder, seconds, seed=0, cpus=CPUS):
    """Boots the kernel on a copy of the disk; returns the folder of its results."""
    drives, about_drives = _data_drives(folder, random.Random(seed), kernel.modules)
    copy, log, reported = folder / "run-disk", folder / "console", folder / "announced"
    beats, monitor = folder / "beats", folder / "monitor"
    shutil.copy(disk, copy)
    for old in (reported, beats):
        old.unlink(missing_ok=True)
    command = [*emulator.command(), "-accel", "tcg,thread=multi",
               # Without what takes an emulated CPU time, and changes nothing that is tested. Where a CPU says that it
               # copies bytes fast (erms, fsrm), kernels do so byte by byte, which this one does slowly.
               "-cpu", "max,-la57,-smap,-erms,-fsrm", "-smp", str(cpus),
               "-m", f"{MEMORY_MIB + MEMORY_OF_CPU_MIB * (cpus - CPUS)}M", "-nodefaults",
               "-display", "none", "-no-reboot", "-serial", "stdio", "-serial", f"file:{reported}",
               "-serial", f"file:{beats}", "-monitor", f"unix:{monitor},server=on,wait=off",
               "-kernel", kernel.path,
               "-drive", f"file={copy},format=raw,if=none,id=disk,cache=unsafe",
               # Requests of a disk with one queue end in soft interrupts, those of one with a queue for each CPU in
               # hard ones.
               "-device", "nvme,drive=disk,serial=1,max_ioqpairs=1", *drives,
               # A guest that hangs gets an NMI, and prints where it is.
               "-append", "console=ttyS0 panic=-1 softlockup_panic=1 watchdog_thresh=30 quiet "
                          "nokaslr unknown_nmi_panic panic_print=0x40 "
                          "mitigations=off "
                          f"{TRUSTED_CLOCKS if cpus > CPUS else ''} "
                          f"root=PARTUUID={image.PARTITION} rw init=/init "
                          f"script=/{script} {about_drives}"]
    with open(log, "wb") as console, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT) as machine:
        why = _watch(machine, beats, monitor, seconds, cpus)
        if why:
            said = _ask(monitor, machine)
            machine.kill()
            raise Failed(f"{why}\n{_tail(log)}\n{_tail(reported)}\n{said}")
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    _run(["debugfs", "-R", f"rdump /results {folder}", f"{copy}?offset={image.PARTITION_AT}"])
    copy.unlink()
    if not (results / "done").exists():
        raise Failed(f"the guest did not come to its end\n{_kernel_warning(log)}\n{_tail(log)}")
    return results


def _watch(machine, beats, monitor, seconds, cpus):
    """Until it ends: None; or why it was not waited for any longer."""
    end, counts, woken = time.monotonic() + seconds, {}, 0
    hopeless = HOPELESS + HOPELESS_OF_CPU * (cpus - CPUS)
    while machine.poll() is None:
        now = time.monotonic()
        reported = Counter(beats.read_text().split() if beats.exists() else ())
        for cpu in range(cpus):
            count = reported[str(cpu)]
            if count != counts.setdefault(cpu, (count, now))[0]:
                counts[cpu] = (count, now)
        cpu, since = min(((cpu, since) for cpu, (_, since) in counts.items()),
                         key=lambda pair: pair[1])
        if now - max(since, woken) > ASLEEP:
            _wake(monitor)
            woken = now
        if now - since > hopeless:
            return f"CPU {cpu} of the guest has said nothing for {hopeless} s"
        if now > end:
            return f"the guest did not end within {seconds} s"
        time.sleep(0.5)  # the guest needs the CPUs
    return None


def _wake(monitor):
    """Does nothing to a machine that is not suspended."""
    try:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(3)
            channel.connect(str(monitor))
            channel.sendall(b"system_wakeup\n")
            time.sleep(0.5)  # nothing marks the end of an answer
            channel.recv(1 << 16)
    except OSError:
        pass


def _ask(monitor, machine):
    """Returns the state of its CPUs and their timers; the console has the rest."""
    said = ""
    try:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(3)
            channel.connect(str(monitor))
            for question in ("info registers -a", "info lapic 0", "info lapic 1", "nmi"):
                channel.sendall(question.encode() + b"\n")
                time.sleep(0.5)  # nothing marks the end of an answer
                said += channel.recv(1 << 16).decode(errors="replace")
        machine.wait(20)  # the panic that this leads to ends it
    except (OSError, subprocess.TimeoutExpired):
        pass
    return "".join(line + "\n" for line in said.splitlines()
                   if line.startswith(("CPU#", "RIP", "LVTT", "TIMER", "ISR", "IRR")))


def _text(log):
    text = log.read_text(errors="replace") if log.exists() else ""
    return "".join(c for c in text if c.isprintable() or c == "\n").strip()


def _tail(log):
    return _text(log)[-1500:]


def _kernel_warning(log):
    """From where the kernel first says that something is wrong."""
    match = KERNEL_WARNING.search(_text(log))
    return match.string[match.start():][:1500] if match else ""
