# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of the unwind tables, as the kernel has it: nothing in it is slow, nothing is left."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from harness import (WALLPROF, check, expect_failure, needs_command, needs_root, wait_until)

BPFTOOL = "/usr/sbin/bpftool"
# The memory that the walk reads for each frame, without the calls of helpers in between.
WALK = ("unwind_walk", "unwind_step", "find_in_list", "find_in_seeds", "find_rule", "read_word")
MISS = "find_by_vma"
# Calls of helpers that look something up in a map, as the kernel prints what it runs.
LOOKUP = re.compile(r"call [a-z0-9_]*map_lookup_elem")


def bpftool(*arguments):
    done = subprocess.run([BPFTOOL, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def recorder_of(context, *arguments):
    """A recorder that has begun to record."""
    capture = context.path("capture")
    recorder = context.start([WALLPROF, "record", "-q", "--defer-symbols", "-o", capture,
                              *map(str, arguments)])
    wait_until(capture.exists, "the recording begins")
    return recorder


def ids_of(pid, what):
    """Returns {name: id} of the programs or maps that a process holds, from its descriptors."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            text = Path(f"/proc/{pid}/fdinfo/{fd}").read_text(encoding="ascii")
        except FileNotFoundError:
            continue  # closed meanwhile
        match = re.search(rf"^{what}_id:\s*(\d+)$", text, re.M)
        if match:
            kind = {"prog": "prog", "map": "map"}[what]
            described = json.loads(bpftool("-j", kind, "show", "id", match[1]))
            found[described.get("name", "")] = int(match[1])
    return found


def functions_of(program):
    """{name: lines} of a program's translated code."""
    functions, name = {}, None
    for line in bpftool("prog", "dump", "xlated", "id", str(program)).splitlines():
        match = re.match(r"(?:\w[\w ]*[ *])(\w+)\(.*\):$", line)
        if match:
            name = match[1]
        functions.setdefault(name, []).append(line)
    return functions


def check_inlined(functions, names):
    for name in names:
        check(name in functions, f"no function {name} in {sorted(map(str, functions))}")
        calls = [line for line in functions[name] if LOOKUP.search(line)]
        check(not calls, f"{name} calls: {calls}")


@pytest.mark.host_only("bpftool is not in the guests")
def test_lookups_are_code_in_line(context):
    """The walk's loop has no call to a map's lookup: tables are read by code in line."""
    needs_root()
    sleeper = context.start(["sleep", "100"])
    recorder = recorder_of(context, "-p", sleeper.pid)
    programs = ids_of(recorder.pid, "prog")
    for program in ("on_switch", "on_tick"):
        functions = functions_of(programs[program])
        check_inlined(functions, WALK)
        expect_failure(check_inlined, functions, (MISS,))


def updates_of_outer_map(trace):
    """Updates of the map of maps: (before the last program was loaded, after it)."""
    outer, updates, loaded = None, [], 0
    for number, line in enumerate(trace.splitlines()):
        if "BPF_MAP_CREATE" in line and "BPF_MAP_TYPE_ARRAY_OF_MAPS" in line:
            outer = re.search(r"= (\d+)$", line)[1]
        elif "BPF_PROG_LOAD" in line:
            loaded = number
        elif outer and "BPF_MAP_UPDATE_ELEM" in line and f"map_fd={outer}," in line:
            updates.append(number)
    check(outer is not None, "no map of maps was made")
    return sum(n < loaded for n in updates), sum(n > loaded for n in updates)


def check_updates(before, after):
    """One chunk is put in place beforehand, and none is added: each would take 10 to 20 ms."""
    check(before == 1, f"{before} chunks are there before the programs are")
    check(after == 0, f"{after} chunks were added while it recorded")


@pytest.mark.host_only("strace is not in the guests")
def test_no_chunk_is_added(context):
    needs_root()
    needs_command("strace")
    trace = context.path("trace")
    subprocess.run(["strace", "-f", "-e", "trace=bpf", "-o", trace, WALLPROF, "record", "-q",
                    "--defer-symbols", "-o", context.path("capture"), "--", "python3", "-c",
                    "import json, sqlite3, ssl, threading, xml.dom.minidom"],
                   check=True, stdout=subprocess.DEVNULL)
    before, after = updates_of_outer_map(trace.read_text())
    check_updates(before, after)
    expect_failure(check_updates, before + after, before)


def tgids_in(recorder):
    number = ids_of(recorder.pid, "map")["processes"]
    return {entry["formatted"]["key"] for entry in
            json.loads(bpftool("-j", "map", "dump", "id", str(number)))}


def check_processes(recorder, wanted):
    found = tgids_in(recorder)
    check(found == wanted, f"processes in the map: {found}, should be {wanted}")


@pytest.mark.host_only("bpftool is not in the guests")
def test_nothing_is_left_of_processes(context):
    """Processes that were forked, executed and ended leave nothing in the BPF maps."""
    needs_root()
    rounds = context.random.randint(50, 100)
    script = f'read go; for i in $(seq {rounds}); do /bin/true; (:); done; echo over; read go; exec sleep 100'
    shell = context.start(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sleeper = context.start(["sleep", "100"])
    recorder = recorder_of(context, "-p", f"{shell.pid},{sleeper.pid}")
    wait_until(lambda: len(tgids_in(recorder)) == 2, "both are known")
    shell.stdin.write(b"go\n")
    shell.stdin.flush()
    check(shell.stdout.readline() == b"over\n", "the shell has ended")
    wait_until(lambda: tgids_in(recorder) == {shell.pid, sleeper.pid}, "only they are left")
    shell.kill()
    shell.wait()
    wait_until(lambda: tgids_in(recorder) == {sleeper.pid}, "the shell's entry goes")
    expect_failure(check_processes, recorder, {shell.pid, sleeper.pid})
