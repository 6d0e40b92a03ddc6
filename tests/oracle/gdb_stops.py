# SPDX-License-Identifier: GPL-2.0-or-later
"""Within gdb: stops a program at random instants and compares its stack with wallprof's walk.

gdb -batch -x gdb_stops.py --args COMMAND…; the environment has WALLPROF_ORACLE (unwind-oracle),
WALLPROF_SEED, WALLPROF_STOPS, WALLPROF_MAX_MS, and WALLPROF_RESULT, the file to which goes, as a
line of JSON for each stop, what both have.
"""
import json
import os
import random
import subprocess

import gdb

REGISTERS = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
             "r12", "r13", "r14", "r15", "rip")


def value(register):
    return int(gdb.parse_and_eval(f"(long)${register}")) & (1 << 64) - 1


def frames():
    """(pc, name) of the selected thread's real frames, leaf first: what was inlined or left has none."""
    frame, found = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            found.append((frame.pc(), frame.name()))
        reason = frame.unwind_stop_reason()
        frame = frame.older()
    return found, gdb.frame_stop_reason_string(reason)


def is_in_syscall():
    """After exec, and where a signal's handler begins, the call's number is still there."""
    number, pc = int(gdb.parse_and_eval("(long)$orig_rax")), value("rip")
    return number >= 0 and bytes(gdb.selected_inferior().read_memory(pc - 2, 2)) == b"\x0f\x05"


def walk(thread):
    done = subprocess.run([os.environ["WALLPROF_ORACLE"], "--walk", str(thread.ptid[1]),
                           str(int(is_in_syscall())), *(str(value(r)) for r in REGISTERS)],
                          capture_output=True, text=True, check=True)
    result, *addresses = done.stdout.split()
    return int(result), [int(a, 16) for a in addresses]


def interrupt_later(pid, seconds):
    """By another process: while gdb waits for the program, none of its threads runs Python."""
    return subprocess.Popen(["sh", "-c", f"sleep {seconds:.6f}; kill -INT {pid}"])


def one_stop(rng, out):
    pid = gdb.selected_inferior().pid
    interrupt = interrupt_later(pid, rng.random() * float(os.environ["WALLPROF_MAX_MS"]) / 1000)
    gdb.execute("continue", to_string=True)
    interrupt.wait()
    if gdb.selected_inferior().pid == 0:
        return False
    rng.choice(gdb.selected_inferior().threads()).switch()
    theirs, reason = frames()
    result, ours = walk(gdb.selected_thread())
    out.write(json.dumps({"gdb": theirs, "reason": reason, "result": result, "wallprof": ours})
              + "\n")
    return True


def main():
    rng = random.Random(os.environ["WALLPROF_SEED"])
    for setting in ("pagination off", "confirm off", "debuginfod enabled off",
                    "inferior-tty /dev/null", "backtrace past-main on",
                    "detach-on-fork on"):
        gdb.execute(f"set {setting}")
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    gdb.execute("starti", to_string=True)
    with open(os.environ["WALLPROF_RESULT"], "w") as out:
        for _ in range(int(os.environ["WALLPROF_STOPS"])):
            if not one_stop(rng, out):
                break
    if gdb.selected_inferior().pid:
        gdb.execute("kill")


main()
