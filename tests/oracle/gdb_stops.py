# SPDX-License-Identifier: GPL-2.0-or-later
"""Within gdb: stops a program at random instants and has its stack, and wallprof's walk of it.

gdb -batch -x gdb_stops.py --args COMMAND…; the environment has WALLPROF_ORACLE (unwind-oracle),
WALLPROF_SEED, WALLPROF_STOPS, WALLPROF_MAX_MS, and WALLPROF_RESULT, the file to which goes, as a
line of JSON for each stop, what both have. With WALLPROF_CORES, a folder, each stop makes a core file
there instead. WALLPROF_STEP_INTO: an address (hexadecimal, without marks) to which the program is stepped
from where it was stopped; a stop from which that takes too many instructions is left out. WALLPROF_SETTINGS: commands of gdb for before it starts, a line each. WALLPROF_UNTIL: a
function that it is to have come to before the first stop.

gdb -batch -x gdb_stops.py PROGRAM, with WALLPROF_READ, the paths of core files, a line each: to WALLPROF_RESULT go the
stacks of all threads in them, one core after the other. To start gdb and read symbols takes longer than a core does.
"""
import functools
import json
import os
import random
import subprocess

import gdb

REGISTERS = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
             "r12", "r13", "r14", "r15", "rip")
STEPS_MAX = 100


@functools.cache
def oracle():
    """wallprof's walk, which makes the tables of a file once for all stops."""
    return subprocess.Popen([os.environ["WALLPROF_ORACLE"], "--walks"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def value(register):
    """An expression would be evaluated in the program's language, for which gdb reads debug information."""
    return int(gdb.newest_frame().read_register(register)) & (1 << 64) - 1


def frames():
    """(pc, name) of the selected thread's real frames, leaf first: what was inlined or left has none."""
    frame, found = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            found.append((frame.pc(), frame.name()))
        reason = frame.unwind_stop_reason()
        frame = frame.older()
    return found, gdb.frame_stop_reason_string(reason)


def places(found):
    """Returns [file, offset in it] for the code of each frame, or None where no file is mapped."""
    with open(f"/proc/{gdb.selected_inferior().pid}/maps") as maps:
        mappings = [line.rstrip("\n").split(maxsplit=5) for line in maps]
    files = [(*(int(end, 16) for end in addresses.split("-")), int(offset, 16), path[0])
             for addresses, _, offset, _, inode, *path in mappings if inode != "0"]
    return [next(([path, offset + pc - start] for start, end, offset, path in files if start <= pc < end), None)
            for pc, _ in found]


def known(where):
    """Returns whether gdb has read the file of each of these places. It has not while the dynamic linker relocates the file."""
    names = {os.path.realpath(objfile.filename) for objfile in gdb.objfiles() if objfile.filename}
    return [place is None or place[0] in names for place in where]


def is_in_syscall():
    """After exec, and where a signal's handler begins, the call's number is still there."""
    number, pc = value("orig_rax"), value("rip")
    return number < 1 << 63 and bytes(gdb.selected_inferior().read_memory(pc - 2, 2)) == b"\x0f\x05"


def walk(thread):
    print(thread.ptid[1], int(is_in_syscall()), *map(value, REGISTERS), file=oracle().stdin, flush=True)
    result, *addresses = oracle().stdout.readline().split()
    return int(result), [int(a, 16) for a in addresses]


def interrupt_later(pid, seconds):
    """By another process: while gdb waits for the program, none of its threads runs Python."""
    return subprocess.Popen(["sh", "-c", f"sleep {seconds:.6f}; kill -INT {pid}"])


def write(out, **stop):
    out.write(json.dumps(stop) + "\n")


def take_walk(out):
    result, ours = walk(gdb.selected_thread())
    found, reason = frames()
    where = places(found)
    write(out, gdb=found, reason=reason, places=where, known=known(where), result=result, wallprof=ours)


def take_core(number):
    path = os.path.join(os.environ["WALLPROF_CORES"], f"core-{number}")
    gdb.execute(f"generate-core-file {path}", to_string=True)


def one_stop(rng):
    """Returns whether there still is a program."""
    pid = gdb.selected_inferior().pid
    interrupt = interrupt_later(pid, rng.random() * float(os.environ["WALLPROF_MAX_MS"]) / 1000)
    gdb.execute("continue", to_string=True)
    interrupt.wait()
    if gdb.selected_inferior().pid == 0:
        return False
    rng.choice(gdb.selected_inferior().threads()).switch()
    return True


def step_into(address):
    """Returns whether the program is there."""
    for _ in range(STEPS_MAX):
        if value("rip") == address:
            return True
        gdb.execute("stepi", to_string=True)
    return False


def run(out):
    rng = random.Random(os.environ["WALLPROF_SEED"])
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    gdb.execute("starti", to_string=True)
    if "WALLPROF_UNTIL" in os.environ:
        gdb.execute(f"tbreak {os.environ['WALLPROF_UNTIL']}", to_string=True)
        gdb.execute("continue", to_string=True)
    for number in range(int(os.environ["WALLPROF_STOPS"])):
        if not one_stop(rng):
            break
        if "WALLPROF_STEP_INTO" in os.environ and not step_into(int(os.environ["WALLPROF_STEP_INTO"], 16)):
            continue
        if "WALLPROF_CORES" in os.environ:
            take_core(number)
        else:
            take_walk(out)
    if gdb.selected_inferior().pid:
        gdb.execute("kill")


def read_cores(out):
    for path in os.environ["WALLPROF_READ"].splitlines():
        gdb.execute(f"core-file {path}", to_string=True)
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            found, reason = frames()
            write(out, gdb=found, reason=reason, tid=thread.ptid[1], core=path)
        gdb.execute("core-file", to_string=True)


def main():
    for setting in ("pagination off", "confirm off", "debuginfod enabled off",
                    "inferior-tty /dev/null", "backtrace past-main on",
                    "detach-on-fork on"):
        gdb.execute(f"set {setting}")
    for command in os.environ.get("WALLPROF_SETTINGS", "").splitlines():
        gdb.execute(command, to_string=True)
    with open(os.environ["WALLPROF_RESULT"], "w") as out:
        if "WALLPROF_READ" in os.environ:
            read_cores(out)
        else:
            run(out)


main()
