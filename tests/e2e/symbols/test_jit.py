# SPDX-License-Identifier: GPL-2.0-or-later
"""Code made at run time has its names, its times and, from a jitdump, its lines."""
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chains import RECORDING
from harness import (ABSOLUTE, MS, SHARE, WALLPROF, WORKLOADS, Profile, Skip, by_state, check, check_close, check_timed,
                     check_unexplained, expect_failure, fewer, needs_command, needs_root, unless_stolen,
                     without_stolen)

pytestmark = pytest.mark.untimed
NAMES = ("jit_first", "jit_second", "jit_third")

# Burns CPU time in one function and says how much; argv: file of the truth, milliseconds. The sum of user and system
# time is exact, its parts are what ticks happened to hit (kernel/sched/cputime.c: cputime_adjust()).
HOT = """
function hotFunction(n) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 1000003;
    return sum;
}
function used() {
    const usage = process.cpuUsage();
    return usage.user + usage.system;
}
const [truth, ms] = process.argv.slice(-2), begin = used();
let now = begin, sum = 0;
for (; now - begin < ms * 1000; now = used()) sum += hotFunction(100000);
require("fs").writeFileSync(truth, JSON.stringify({pid: process.pid, us: now - begin, sum}));
"""


ALLOWED = ABSOLUTE or 5 * MS


def running_rows(profile, pid):
    for thread in profile.threads:
        if pid is not None and thread.pid != str(pid):
            continue
        for i, weight in enumerate(thread.weights):
            if by_state(thread.sample_categories[i], thread.leaves[i]) == "running":
                yield thread, i, weight


def running_in(profile, is_wanted, pid=None):
    """Time on a CPU with a wanted function on the stack."""
    return sum(weight for thread, i, weight in running_rows(profile, pid) if any(map(is_wanted, thread.frames_of(i))))


def allowed_in(profile):
    """By how much a time may be off. The programs count what the interrupts of ticks take. A row of it is of many
    ticks, and may lie in a later function."""
    return ALLOWED + sum(weight for thread, i, weight in running_rows(profile, None) if thread.leaves[i] == RECORDING)


def less_stolen(profile, got, wanted):
    return without_stolen(got, wanted, profile.allowed_ns)


def check_times(profile, truth, with_pids=True):
    for name in NAMES:
        wanted = truth[name]
        got = running_in(profile, lambda frame: frame == name,
                         wanted["pid"] if with_pids else None)
        check_timed(name, less_stolen(profile, got, wanted["cpu_ns"]), wanted["cpu_ns"], 0.03,
                    allowed_in(profile))
        # In no other process.
        check_close(f"{name} anywhere", running_in(profile, lambda frame: frame == name),
                    got, 0, 0)


def altered(profile, truth, name):
    changed = json.loads(json.dumps(truth))
    changed[name]["cpu_ns"] = changed[name]["cpu_ns"] * (1.1 + 2 * SHARE) + 3 * allowed_in(profile)
    return changed


def check_allowing(record, checks):
    """Profile and truth of record() when the checks of them held; see unless_stolen()."""
    def checks_allowing(found, allowed_ns):
        found[0].allowed_ns = allowed_ns
        checks(*found)

    return unless_stolen(record, checks_allowing)


def run_jit(context, checks, wrap=lambda command: command, **options):
    """Records the workload with random times, again if a hypervisor took a CPU meanwhile."""
    times = {name: context.random.randint(60, 250) for name in ("first", "second", "third")}
    shutil.copy(WORKLOADS / "jit", context.path("jit"))
    command = ["./jit", "--truth", "truth.json"]
    for option, value in {**times, **options}.items():
        command += [f"--{option}", str(value)]

    def record():
        for _ in range(3):  # or until no switch is hidden from it
            context.wallprof("-q", "-F", "999", "-o", "p.json.gz", "--json-summary", "p.report.json", "--",
                             *wrap(command))
            truth = json.loads(context.path("truth.json").read_text())
            Path(f"/tmp/perf-{truth['jit_first']['pid']}.map").unlink(missing_ok=True)
            report = json.loads(context.path("p.report.json").read_text())
            check_unexplained(report)
            if report["contradictions"] == 0:
                break
        return Profile.load(context.path("p.json.gz")), truth

    check_allowing(record, checks)


def check_all(profile, truth):
    check_times(profile, truth)
    for name in NAMES:
        expect_failure(check_times, profile, altered(profile, truth, name))
    swapped = {**truth, "jit_first": truth["jit_third"], "jit_third": truth["jit_first"]}
    if abs(truth["jit_first"]["cpu_ns"] - truth["jit_third"]["cpu_ns"]) > 5 * allowed_in(profile):
        expect_failure(check_times, profile, swapped)


def test_perf_map(context):
    run_jit(context, check_all, map=1)


def check_lines(profile, truth):
    """Every frame of a function has its line and source from the dump."""
    shared, seen = profile.data["shared"], set()
    frames, functions = shared["frameTable"], shared["funcTable"]
    for line, function in zip(frames["line"], frames["func"]):
        name = shared["stringArray"][functions["name"][function]]
        if name not in truth:
            continue
        check(line == truth[name]["line"], f"{name} is in line {line}")
        source = functions["source"][function]
        check(source is not None, f"{name} has no source")
        source = shared["stringArray"][shared["sources"]["filename"][source]]
        check(source == "made-up.jit", f"{name} is from {source}")
        seen.add(name)
    check(seen == set(truth), f"frames of {seen} only")


def test_jitdump(context):
    def checks(profile, truth):
        check_all(profile, truth)
        check_lines(profile, truth)
        wrong = {**truth, "jit_second": {**truth["jit_second"], "line": 21}}
        expect_failure(check_lines, profile, wrong)
    run_jit(context, checks, dump=1)


def test_jitdump_times(context):
    """Two functions at one address."""
    run_jit(context, check_all, dump=1, reuse=1)


def test_perf_map_knows_the_last(context):
    """It has no times: the second function's name stands for what was there before, too."""
    def checks(profile, truth):
        truth["jit_second"]["cpu_ns"] += truth["jit_first"]["cpu_ns"]
        truth["jit_first"]["cpu_ns"] = 0
        check_times(profile, truth)
        expect_failure(check_times, profile, altered(profile, truth, "jit_second"))
    run_jit(context, checks, map=1, reuse=1)


def test_forked(context):
    """A child runs what its parent made, and names nothing itself."""
    for options in ({"map": 1}, {"dump": 1, "reuse": 1}):
        def checks(profile, truth):
            check(truth["jit_second"]["pid"] != truth["jit_first"]["pid"], "there was no child")
            check_all(profile, truth)
        run_jit(context, checks, fork=1, **options)


def in_container(command):
    """A PID namespace, and a /tmp that is gone with it; the current folder stays."""
    return ["unshare", "-mpf", "--mount-proc", "sh", "-c",
            'mount -t tmpfs none /tmp && exec "$@"', "sh", *command]


def needs_containers():
    needs_root()
    needs_command("unshare")
    tried = subprocess.run(in_container(["true"]), capture_output=True, text=True)
    if tried.returncode != 0:
        raise Skip(f"no namespaces can be made here: {tried.stderr.strip()}")


def test_container(context):
    needs_containers()
    def checks(profile, truth):
        check(truth["jit_first"]["pid"] == 1, "this is no namespace")
        check_times(profile, truth, with_pids=False)
        expect_failure(check_times, profile, altered(profile, truth, "jit_third"), False)
    late = context.random.randint(100, 300)
    for options in ({"map": 1}, {"map": 1, "late": late}, {"dump": 1, "reuse": 1}):
        run_jit(context, checks, in_container, **options)


def with_map_of(seconds):
    """A container whose first process finds a map, written at a time from now, of all memory."""
    return lambda command: [
        "unshare", "-mpf", "--mount-proc", "sh", "-c", "mount -t tmpfs none /tmp && "
        'echo "1000 7ffffff00000 stale" > /tmp/perf-1.map && touch -d "$0" /tmp/perf-1.map && '
        'exec "$@"', f"@{time.time() + seconds:.0f}", *command]


def check_not_stale(profile, truth):
    total = sum(truth[name]["cpu_ns"] for name in NAMES)
    check_close("stale", running_in(profile, lambda name: name == "stale"), 0, 0, 0)
    got = running_in(profile, lambda name: name.endswith("([anon])"))
    check_timed("the functions", less_stolen(profile, got, total), total, 0.03, allowed_in(profile))


def test_map_of_a_former_process(context):
    """A map that was last changed before the process began is of another of its number."""
    needs_containers()
    run_jit(context, check_not_stale, with_map_of(-5))
    # Well ahead: before the process begins, an emulated machine may take seconds.
    run_jit(context, lambda *found: expect_failure(check_not_stale, *found), with_map_of(60))


def check_hot(profile, truth):
    """All but what ran before V8 compiled the function, in its interpreter."""
    got = running_in(profile, lambda name: name.startswith("JS:") and "hotFunction" in name)
    wanted = truth["us"] * 1000
    check_timed("hotFunction", less_stolen(profile, got, wanted), wanted, 0.05, 35 * MS + allowed_in(profile))


def run_node(context, option, wrap=lambda command: command):
    needs_command("node")
    ms = context.random.randint(500, 900)
    command = ["node", option, "-e", HOT, "--", "truth.json", str(ms)]

    def record():
        context.wallprof("-q", "-F", "999", "--keep-capture", "-o", "p.json.gz", "--", *wrap(command))
        truth = json.loads(context.path("truth.json").read_text())
        Path(f"/tmp/perf-{truth['pid']}.map").unlink(missing_ok=True)
        return Profile.load(context.path("p.json.gz")), truth

    profile, truth = check_allowing(record, check_hot)
    expect_failure(check_hot, profile, {"us": truth["us"] * 1.1 + (35 * MS + 2 * allowed_in(profile)) / 1000})
    return truth


@pytest.mark.host_only("it needs Node.js")
def test_node_perf_map(context):
    run_node(context, "--perf-basic-prof")


@pytest.mark.host_only("it needs Node.js")
def test_node_jitdump(context):
    run_node(context, "--perf-prof")


@pytest.mark.host_only("it needs Node.js")
def test_node_in_a_container(context):
    """Its map is /tmp/perf-1.map, below a root that is gone when names are looked up."""
    needs_containers()
    truth = run_node(context, "--perf-basic-prof", in_container)
    check(truth["pid"] == 1, "this is no namespace")


# Burns in code without a file, and has a perf map of so many lines, of which the last one names the code.
LARGE = """
import ctypes, mmap, os, sys, time
memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
memory.write(bytes.fromhex("55 48 89 e5 48 ff cf 75 fb 5d c3"))
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
with open(f"/tmp/perf-{os.getpid()}.map", "w") as file:
    for i in range(int(sys.argv[1])):
        file.write("%x 40 function_%d\\n" % (0x10000 + i * 64, i))
    file.write("%x 40 the_last_one\\n" % address)
function, end = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(address), time.monotonic() + 0.3
while time.monotonic() < end:
    function(10000000)
print(os.getpid())
"""


def test_large_perf_map(context):
    """Millions of lines cost no memory: only those of recorded addresses are kept."""
    lines = fewer(3000000)
    process = subprocess.Popen([WALLPROF, "-q", "-o", context.path("p.json"), "--", sys.executable, "-c", LARGE, str(lines)],
                               stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    perf_map = Path(f"/tmp/perf-{pid}.map")
    size = perf_map.stat().st_size
    perf_map.unlink()
    check(process.returncode == 0, f"status {process.returncode}")
    check(running_in(Profile.load(context.path("p.json")), lambda name: name == "the_last_one") > 0,
          "the last line's name is missing")
    check(usage.ru_maxrss << 10 < (250 << 20), f"{usage.ru_maxrss} KiB for a map of {size >> 20} MB")


# Runs code that it makes, and describes it in a jitdump that it maps for a moment. argv: a folder; "delete" or "keep".
MOMENT = """
import ctypes, mmap, os, struct, sys, time
code = bytes.fromhex("55 48 89 e5 48 ff cf 75 fb 5d c3")
memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
memory.write(code)
address, pid = ctypes.addressof(ctypes.c_char.from_buffer(memory)), os.getpid()
function = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(address)
path = os.path.join(sys.argv[1], f"jit-{pid}.dump")
with open(path, "w+b", buffering=0) as dump:
    dump.write(struct.pack("<6IQQ", 0x4a695444, 1, 40, 62, 0, pid, time.monotonic_ns(), 0))
    name = b"momentary\\0"
    dump.write(struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + len(code), time.monotonic_ns(), pid, pid, address, address,
                           len(code), 1) + name + code)
    if sys.argv[2] == "delete":
        os.unlink(path)
    mmap.mmap(dump.fileno(), 40, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
end = time.monotonic() + 0.3
while time.monotonic() < end:
    function(3000000)
"""


def test_deleted_dump(context):
    """A dump that is gone when the recorder looks for it: its names are missing, and a note says so."""
    def check_missing(what):
        context.wallprof("record", "-q", "-o", "c.wp", "--", sys.executable, "-c", MOMENT, context.folder, what)
        report = json.loads(context.wallprof("report", "--json", "c.wp").stdout)
        notes = [note for note in report["notes"] if "jitdump was deleted or cannot be opened" in note]
        named = any(function["function"] == "momentary" for function in report["running_functions"])
        check(len(notes) == 1 and "/jit-" in notes[0] and not named, f"{report['notes']}, named: {named}")
        return named

    check_missing("delete")
    expect_failure(check_missing, "keep")
