# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtual machine that boots a kernel, runs a script and is gone.

What the script left in /results is read back from its disk; what it wrote to its second
serial port is there even if the guest hangs. By the third each of its CPUs says every second that it
is alive. Emulated (TCG), for KVM is not to be had everywhere.

Once in some ten runs QEMU 7.2 goes on with a translation of an instruction that the kernel has
patched since (a tracepoint's, when the last program on it is detached): the breakpoint that stood
there meanwhile, which traps for ever, as the kernel finds none in memory and tries again. A CPU that is
silent has its kernel's code written anew, byte for byte, from outside, which drops all translations.
"""
import os
import re
import shutil
import socket
import subprocess
import time

import image

# Programs that are needed, and the packages they are in.
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "debugfs": "e2fsprogs", "dpkg-deb": "dpkg",
          "apt-get": "apt", **image.NEEDED}


CPUS = 2
SILENCE, HOPELESS = 10, 45  # seconds without a word from one of its CPUs: revived, given up
TEXT, TEXT_SIZE = 0xffffffff81000000, 24 << 20  # of a kernel that is not randomized, and more
PACKET = 1920  # bytes of memory in a packet of gdb's protocol


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
    beats, monitor, debugger = folder / "beats", folder / "monitor", folder / "debugger"
    shutil.copy(disk, copy)
    for old in (told, beats):
        old.unlink(missing_ok=True)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi",
               # Under qemu 7.2's TCG kernel 6.12 panics with cx16.
               "-cpu", "max,-cx16", "-smp", str(CPUS), "-m", "2G", "-nodefaults",
               "-display", "none", "-no-reboot", "-serial", "stdio", "-serial", f"file:{told}",
               "-serial", f"file:{beats}", "-monitor", f"unix:{monitor},server=on,wait=off",
               "-gdb", f"unix:{debugger},server=on,wait=off",
               "-kernel", kernel.path,
               "-drive", f"file={copy},format=raw,if=none,id=disk,cache=unsafe",
               "-device", "nvme,drive=disk,serial=1",
               # Who hangs gets an interrupt that can't be masked, and tells where it is.
               "-append", "console=ttyS0 panic=-1 softlockup_panic=1 watchdog_thresh=30 quiet "
                          "nokaslr unknown_nmi_panic panic_print=0x40 "
                          "root=/dev/nvme0n1 rw init=/init "
                          f"script=/{script}"]
    with open(log, "wb") as console, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT) as machine:
        why = _watch(machine, beats, debugger, seconds)
        if why:
            said = _ask(monitor, machine)
            machine.kill()
            raise Failed(f"{why}\n{_tail(log)}\n{_tail(told)}\n{said}")
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    _run(["debugfs", "-R", f"rdump /results {folder}", copy])
    copy.unlink()
    if not (results / "done").exists():
        raise Failed(f"the guest did not come to its end\n{_tail(log)}")
    return results


def _watch(machine, beats, debugger, seconds):
    """Until it ends: None; or why it was not waited for any longer."""
    end, counts = time.monotonic() + seconds, {}
    revive_at = time.monotonic() + HOPELESS  # it has to boot first
    while machine.poll() is None:
        now = time.monotonic()
        told = beats.read_bytes() if beats.exists() else b""
        for cpu in range(CPUS):
            count = told.count(b"%d" % cpu)
            if count != counts.setdefault(cpu, (count, now))[0]:
                counts[cpu] = (count, now)
        cpu, since = min(((cpu, since) for cpu, (_, since) in counts.items()),
                         key=lambda pair: pair[1])
        if now - since > HOPELESS:
            return f"CPU {cpu} of the guest has said nothing for {HOPELESS} s"
        if told and now - since > SILENCE and now > revive_at:
            print(f"# CPU {cpu} of the guest was silent: {_revive(debugger)}", flush=True)
            revive_at = time.monotonic() + SILENCE
        if now > end:
            return f"the guest did not end within {seconds} s"
        time.sleep(0.5)
    return None


class Debugger:
    """QEMU's end of gdb's remote protocol; while it is connected, the machine stands still."""

    def __init__(self, path):
        self.channel, self.unread = socket.socket(socket.AF_UNIX), b""
        self.channel.settimeout(10)
        self.channel.connect(str(path))

    def ask(self, text):
        data = text.encode()
        self.channel.sendall(b"$%s#%02x" % (data, sum(data) & 255))
        while (answer := self._packet()).startswith("T"):
            pass  # that the machine stopped, for we connected, it tells unasked
        return answer

    def _packet(self):
        while not (match := re.search(rb"\$([^#]*)#..", self.unread)):
            got = self.channel.recv(1 << 16)
            if not got:
                raise OSError("QEMU hung up")
            self.unread += got
        self.unread = self.unread[match.end():]
        self.channel.sendall(b"+")
        return match[1].decode()


def _revive(path):
    """Writes the kernel's code as it is, and tells how much that was."""
    address = TEXT
    try:
        debugger = Debugger(path)
        with debugger.channel:
            while address < TEXT + TEXT_SIZE:
                code = debugger.ask(f"m{address:x},{PACKET:x}")
                if (code.startswith("E")
                        or debugger.ask(f"M{address:x},{PACKET:x}:{code}") != "OK"):
                    break
                address += PACKET
            debugger.ask("D")
    except OSError as error:
        return f"it could not be revived: {error}"
    return f"{(address - TEXT) >> 10} KiB of its code were written anew"


def _ask(monitor, machine):
    """Where its CPUs and their timers are; the console has the rest."""
    said = ""
    try:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(3)
            channel.connect(str(monitor))
            for question in ("info registers -a", "info lapic 0", "info lapic 1", "nmi"):
                channel.sendall(question.encode() + b"\n")
                time.sleep(0.5)
                said += channel.recv(1 << 16).decode(errors="replace")
        machine.wait(20)  # the panic that this leads to ends it
    except (OSError, subprocess.TimeoutExpired):
        pass
    return "".join(line + "\n" for line in said.splitlines()
                   if line.startswith(("CPU#", "RIP", "LVTT", "TIMER", "ISR", "IRR")))


def _tail(log):
    text = log.read_text(errors="replace") if log.exists() else ""
    return "".join(c for c in text if c.isprintable() or c == "\n").strip()[-1500:]
