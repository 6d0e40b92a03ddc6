# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python programs at every wait and tick.

tests/workloads/scripts/chains.py notes the interpreter's own frames before each wait and each loop.
"""
import bisect
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chains import events_of
from harness import (MS, ROOT, Profile, Skip, capture_of, check, expect_failure, needs_command, needs_root, read_report,
                     wait_until)

pytestmark = pytest.mark.untimed
WORKLOAD = ROOT / "tests/workloads/scripts/chains.py"
# Versions that are installed beside the system's, if any are.
OTHERS = Path(os.environ.get("WALLPROF_PYTHONS", Path.home() / ".pyenv/versions"))
LEAST = 0.99


def interpreter(version):
    """The path of an interpreter, or None."""
    found = sorted(OTHERS.glob(f"{version}.*/bin/python{version}"))
    if found:
        return found[0]
    path = shutil.which(f"python{version}", path="/usr/bin")
    return Path(path) if path else None


def system_python():
    """A guest has the interpreter that runs this alone, under its own name."""
    path = Path("/usr/bin/python3")
    return path if path.exists() else Path(sys.executable).resolve()


class Scripts:
    """The frames of Python in a profile's stacks."""

    def __init__(self, profile):
        self.shared = profile.data["shared"]
        self.known = {None: ()}

    def _frame(self, index):
        frames, functions = self.shared["frameTable"], self.shared["funcTable"]
        function, strings = frames["func"][index], self.shared["stringArray"]
        name = strings[functions["name"][function]]
        if not functions["isJS"][function]:
            return None
        source = functions["source"][function]
        path = strings[self.shared["sources"]["filename"][source]] if source is not None else None
        return (name, path, frames["line"][index])

    def of(self, stack):
        """(name, file, line) of each frame, from the outermost one."""
        if stack not in self.known:
            table = self.shared["stackTable"]
            frame = self._frame(table["frame"][stack])
            self.known[stack] = self.of(table["prefix"][stack]) + ((frame,) if frame else ())
        return self.known[stack]

    def names(self, stack):
        """All names, also those of functions of C."""
        table, strings, out = self.shared["stackTable"], self.shared["stringArray"], []
        while stack is not None:
            function = self.shared["frameTable"]["func"][table["frame"][stack]]
            out.append(strings[self.shared["funcTable"]["name"][function]])
            stack = table["prefix"][stack]
        return out[::-1]


class Run:
    """One recording of the workload."""

    def __init__(self, context, python, *options, arguments=()):
        truth, output = context.path("truth.json"), context.path("p.json.gz")
        context.wallprof("-q", "--all-frames", *options, "-o", output, "--", python, WORKLOAD,
                         context.random.randint(1, 1 << 30), truth, *arguments)
        self.output = output
        self.profile = Profile.load(output)
        self.truth = json.loads(truth.read_text())
        self.scripts = Scripts(self.profile)

    def read_from_ns(self):
        """When the first functions of Python were read: the reader is loaded when an interpreter is mapped."""
        return min(start for waits in stacks_of_waits_of(self.profile).values() for start, stack in waits
                   if self.scripts.of(stack))

    def at(self, monotonic_ns):
        return monotonic_ns + self.truth["realtime_offset_ns"] - self.profile.start_ns


# Of a stack with more frames, so many outermost and innermost ones are recorded.
ROOT_FRAMES, LEAF_FRAMES = 64, 128


def as_chain(frames):
    chain = tuple((name, path, line) for name, path, line in frames)
    return chain if len(chain) <= ROOT_FRAMES + LEAF_FRAMES else chain[:ROOT_FRAMES] + chain[-LEAF_FRAMES:]


def stacks_of_waits_of(profile):
    """{tid: [(start, stack)]} of all waits."""
    found = {}
    for thread in profile.threads:
        found[thread.tid] = sorted(
            (marker["start"], marker["data"]["cause"]["stack"]) for marker in thread.markers()
            if marker["data"].get("type") == "Wait" and marker["data"].get("cause"))
    return found


def check_waits(run, waits, least=LEAST):
    """A share of all planted waits have exactly the frames that the interpreter had.

    A thread sleeps after it has noted so, and before it notes anything else. Until it sleeps it may lose its CPU, or
    wait for the global lock in the same function and line.
    """
    found, bad, first_ns = stacks_of_waits_of(run.profile), [], run.read_from_ns()
    check(sum(run.at(ns) < first_ns for _, ns, _ in waits) < len(waits) / 4,
          f"functions are read from {first_ns / MS:.0f} ms on, which is late")
    waits = [wait for wait in waits if run.at(wait[1]) > first_ns]
    noted = sorted((tid, ns) for tid, ns, *_ in run.truth["waits"] + run.truth["spins"])
    for tid, ns, frames in waits:
        after = bisect.bisect_right(noted, (tid, ns))
        end = run.at(noted[after][1]) if after < len(noted) and noted[after][0] == tid else float("inf")
        list_ = found.get(tid, [])
        at = bisect.bisect_left(list_, (run.at(ns) - 1000,))
        chains = {run.scripts.of(stack) for start, stack in list_[at:at + 9] if start < end}
        if as_chain(frames) not in chains:
            bad.append((as_chain(frames), chains))
    share = 1 - len(bad) / len(waits)
    print(f"# {len(waits)} waits, {100 * share:.2f} % with exactly the planted frames", flush=True)
    check(share >= least, f"{len(bad)} of {len(waits)} waits have other frames: {bad[:1]}")


def check_ticks(run, spins, least=LEAST):
    """A share of the ticks within the loops have the planted functions."""
    good = total = 0
    bad, first_ns = [], run.read_from_ns()
    for thread in run.profile.threads:
        of_thread = [s for s in spins if s[0] == thread.tid]
        for sample, kind, ns in events_of(thread):
            inside = [s for s in of_thread if run.at(s[1]) < ns < run.at(s[2])]
            if kind != "tick" or not inside or ns < first_ns:
                continue
            names = [f[0] for f in run.scripts.of(thread.data["samples"]["stack"][sample])]
            total += 1
            if names == [f[0] for f in inside[0][3]]:
                good += 1
            else:
                bad.append((names, run.scripts.names(thread.data["samples"]["stack"][sample])))
    print(f"# {total} ticks, {100 * good / max(total, 1):.2f} % with the planted functions", flush=True)
    check(total >= 100, f"only {total} ticks")
    check(good >= least * total, f"{total - good} of {total} ticks have other functions: {bad[:1]}")


# Beside functions, which have a name in the text.
UNNAMED = {"<module>", "<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"}


def names_in_program():
    return set(re.findall(r"(?:def|class) (\w+)", WORKLOAD.read_text())) | UNNAMED


def check_nothing_else(run, names):
    """Each function is in the program's text, was made by it, or is of the interpreter's library."""
    shared, strings = run.profile.data["shared"], run.profile.data["shared"]["stringArray"]
    table = shared["funcTable"]
    for function, is_script in enumerate(table["isJS"]):
        if not is_script:
            continue
        path, name = strings[shared["sources"]["filename"][table["source"][function]]], strings[table["name"][function]]
        known = (name.rpartition(".")[2] in names if path == str(WORKLOAD)
                 else path.startswith("<") or "/python3" in path or path.endswith(".zip"))
        check(known, f"{name} in {path} is not in the program")


def altered_waits(truth):
    return [[tid, ns, frames[:-1] + [[frames[-1][0], frames[-1][1], frames[-1][2] + 1]]]
            for tid, ns, frames in truth["waits"]]


def altered_spins(truth):
    return [[tid, begin, end, frames[:-2] + frames[-1:]] for tid, begin, end, frames in truth["spins"]]


def record(context, python, *options, arguments=()):
    if not python or not python.exists():
        raise Skip("that Python is not installed")
    run = Run(context, python, *options, arguments=arguments)
    check_waits(run, run.truth["waits"])
    check_nothing_else(run, names_in_program())
    expect_failure(check_nothing_else, run, names_in_program() - {"wait"})
    expect_failure(check_waits, run, altered_waits(run.truth))
    return run


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_chains(context, version):
    needs_root()
    run = record(context, interpreter(version))
    check_ticks(run, run.truth["spins"])
    expect_failure(check_ticks, run, altered_spins(run.truth))


def test_static_interpreter(context):
    """The system's interpreter is linked statically. The text of the program is in the profile."""
    needs_root()
    run = record(context, system_python())
    check_ticks(run, run.truth["spins"])
    sources = run.scripts.shared["sources"]
    texts = {run.scripts.shared["stringArray"][name]: text for name, text in zip(sources["filename"], sources["content"])}
    check(texts[str(WORKLOAD)] == WORKLOAD.read_text(), "the program's text is not in the profile")


def test_other_name(context, monkeypatch):
    """A program that is linked with the interpreter statically need not have a name that says so."""
    needs_root()
    program = context.path("renderer")
    shutil.copy(system_python(), program)
    monkeypatch.setenv("PYTHONHOME", sys.prefix)
    run = record(context, program)
    check_ticks(run, run.truth["spins"])
    expect_failure(check_ticks, run, altered_spins(run.truth))


def test_deep_recursion(context):
    """Both ends of a recursion of up to 900 calls are there."""
    needs_root()
    run = record(context, system_python(), arguments=(120, 20, 880))
    depth = max(len(frames) for _, _, frames in run.truth["waits"])
    check(depth > ROOT_FRAMES + LEAF_FRAMES, f"the deepest stack has {depth} frames")


def test_native_frames(context):
    """The interpreter's functions are left out by default, and shown on request."""
    needs_root()
    run = record(context, system_python(), "--native-frames", arguments=(40, 20))

    def count(profile):
        return sum("_PyEval_EvalFrameDefault" == profile.shared["stringArray"][name]
                   for name in profile.shared["funcTable"]["name"])
    check(count(run.scripts) > 0, "the interpreter's functions are not shown")
    context.wallprof("export", "-q", "-o", context.path("folded.json"), capture_of(run.output))
    folded = Scripts(Profile.load(context.path("folded.json")))
    evaluated = [names for stack in range(folded.shared["stackTable"]["length"])
                 if folded.of(stack) and "_PyEval_EvalFrameDefault" in (names := folded.names(stack))]
    check(len(evaluated) <= 0.02 * folded.shared["stackTable"]["length"],
          f"{len(evaluated)} stacks have the interpreter's function: {evaluated[:1]}")


UNREADABLE = "[unreadable script function]"


@pytest.mark.parametrize("what", ["circle", "garbage", "last"])
def test_corrupt_frames(context, what):
    """Frames that lead nowhere, or in a circle, end the walk and are marked; later stacks are whole."""
    needs_root()
    python, output = system_python(), context.path("p.json.gz")
    version = subprocess.run([python, "--version"], capture_output=True, text=True).stdout
    if "3.11." not in version:
        raise Skip(f"the offsets are those of 3.11, not of {version}")
    context.wallprof("-q", "--all-frames", "-o", output, "--", python, WORKLOAD.with_name("corrupt.py"), what)
    profile = Profile.load(output)
    scripts, marked, whole = Scripts(profile), 0, 0
    for found in stacks_of_waits_of(profile).values():
        for _, stack in found:
            frames, names = scripts.of(stack), scripts.names(stack)
            check(len(frames) <= ROOT_FRAMES + LEAF_FRAMES, f"{len(frames)} frames")
            is_marked = any(name.startswith(("[script frames:", "[at least")) for name in names)
            invented = what != "circle" and UNREADABLE in names
            marked += is_marked and not invented and frames[-1][0] == "broken"
            whole += not is_marked and [f[0] for f in frames] == ["<module>", "whole"]
    check(marked >= 90 and whole >= 90, f"{marked} stacks are marked, {whole} are whole")


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12"])
def test_offsets(context, version):
    """The table of offsets is that of Python's headers."""
    needs_command("gcc")
    python = interpreter(version)
    folders = [python.parents[1] / "include" / f"python{version}"] if python else []
    headers = [f for f in folders + [Path(f"/usr/include/python{version}")] if (f / "internal").is_dir()]
    if not headers:
        raise Skip(f"the headers of Python {version} are not installed")
    program = context.path("offsets")
    subprocess.run(["gcc", "-w", "-I", headers[0], "-I", headers[0] / "internal", "-I", ROOT / "bpf/abi",
                    "-I", ROOT / "src/interpreters", "-o", program, ROOT / "tests/support/c/python_offsets.c"], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    check(done.returncode == 0, done.stdout)


@pytest.mark.parametrize("case", ["unknown", "free-threaded"])
def test_not_read(context, case):
    """An interpreter that cannot be read is named, and nothing of it is guessed."""
    needs_root()
    needs_command("gcc")
    version = {"unknown": 0x0363, "free-threaded": 0x030d}[case] << 16
    source, program = context.path("x.c"), context.path("python3.99")
    # 3.13 and later begin with offsets for debuggers: "xdebugpy", the version, and whether it is free-threaded.
    source.write_text("#include <unistd.h>\nlong PyCode_Type, "
                      f"_PyRuntime[999] = {{0x7970677562656478, {version}, {int(case == 'free-threaded')}}};\n"
                      f"const unsigned long Py_Version = {version};\n"
                      "int _PyEval_EvalFrameDefault(void) { return usleep(1000); }\n"
                      "int main(void) { for (int i = 0; i < 300; i++) _PyEval_EvalFrameDefault(); }\n")
    subprocess.run(["gcc", "-rdynamic", "-o", program, source], check=True)
    done = context.wallprof("-o", context.path("p.json"), "--", program)
    named = {"unknown": f"Python 3.99 (not supported: {program})", "free-threaded": f"free-threaded Python 3.13 ({program})"}
    check(f"functions of this interpreter are not recorded: {named[case]}" in done.stderr,
          f"the interpreter is not named: {done.stderr}")
    check(not any(Profile.load(context.path("p.json")).data["shared"]["funcTable"]["isJS"]), "a frame is guessed")


def test_forked_worker(context):
    """A child that was forked has its functions from its first wait on."""
    needs_root()
    program = context.path("forks.py")
    program.write_text("import os, time\n\n\ndef in_child():\n    time.sleep(0.004)\n\n\ntime.sleep(0.4)\n"
                       "for _ in range(30):\n    pid = os.fork()\n    if not pid:\n        in_child()\n"
                       "        os._exit(0)\n    os.waitpid(pid, 0)\n")
    context.wallprof("-q", "-o", context.path("p.json.gz"), "--", system_python(), program)
    profile = Profile.load(context.path("p.json.gz"))
    scripts = Scripts(profile)

    def check_children(chain):
        good = sum([f[0] for f in scripts.of(stack)] == chain
                   for found in stacks_of_waits_of(profile).values() for _, stack in found)
        check(good >= 29, f"{good} of 30 children wait in {chain}")
    check_children(["<module>", "in_child"])
    expect_failure(check_children, ["<module>", "in_parent"])


def test_import(context):
    """One frame stands for Python's own functions between an import and the module."""
    needs_root()
    program = context.path("imports.py")
    context.path("imported.py").write_text("import time\n\nfor _ in range(50):\n    time.sleep(0.004)\n")
    program.write_text("import time\n\n\ndef load():\n    import imported\n\n\ntime.sleep(0.6)\nload()\n")
    output = context.path("p.json.gz")
    context.wallprof("-q", "-o", output, "--", system_python(), program)

    def check_chain(chain, *options):
        context.wallprof("export", "-q", *options, "-o", output, capture_of(output))
        profile = Profile.load(output)
        scripts = Scripts(profile)
        found = [scripts.names(stack) for waits in stacks_of_waits_of(profile).values() for _, stack in waits]
        good = sum(any(names[i:i + len(chain)] == chain for i in range(len(names))) for names in found)
        check(good >= 49, f"{good} waits of 50 have {chain}: {found[-1:]}")
    folded, whole = ["<module>", "load", "[importlib]", "<module>"], ["_find_and_load", "_find_and_load_unlocked"]
    check_chain(folded)
    expect_failure(check_chain, whole)
    expect_failure(check_chain, folded, "--native-frames")
    context.wallprof("export", "-q", "--native-frames", "-o", output, capture_of(output))
    profile = Profile.load(output)
    scripts = Scripts(profile)
    names = {name for waits in stacks_of_waits_of(profile).values() for _, stack in waits for name in scripts.names(stack)}
    check(set(whole) <= names and "[importlib]" not in names, f"not all are shown: {names}")


def check_chain(chains, planted):
    """The planted functions are there, and none of them without those that called it."""
    check(planted in chains, f"the chain is missing: {chains}")
    check(all(chain == planted[:len(chain)] for chain in chains if set(planted[1:]) & set(chain)),
          f"a chain is not whole: {chains}")


def test_attached(context):
    """Recording with -p, in the middle; the report and the summary name the functions."""
    needs_root()
    program = context.path("busy.py")
    program.write_text("import time\n\n\ndef handler(end):\n    x = 0\n    while time.monotonic() < end:\n"
                       "        x += 1\n\n\ndef serve():\n    for _ in range(1000):\n"
                       "        handler(time.monotonic() + 0.02)\n        time.sleep(0.005)\n\n\nserve()\n")
    process = context.start([system_python(), program])
    output = context.path("p.json.gz")
    done = context.wallprof("-d", "1.5", "-p", process.pid, "-o", output)
    process.kill()
    # Beside other work the path may be waits for a CPU and for the timer, in the same program.
    check("(busy.py)" in done.stderr, f"the summary lacks the program's functions: {done.stderr}")
    functions = context.wallprof("report", "--section", "functions", output).stdout
    check("handler (busy.py)" in functions, f"the report lacks the function: {functions}")
    scripts = Scripts(Profile.load(output))
    chains = {tuple(f[0] for f in scripts.of(stack)) for stack in range(scripts.shared["stackTable"]["length"])}
    check_chain(chains, ("<module>", "serve", "handler"))
    expect_failure(check_chain, chains, ("<module>", "handler"))
    expect_failure(check_chain, chains | {("serve", "handler")}, ("<module>", "serve", "handler"))
    check(read_report(context, capture_of(output))["totals"]["script frames"]["lost"] == 0, "records are lost")


def check_sleepers(profile, planted):
    """Each thread waits in its functions; below them are those of the library in which it sleeps."""
    scripts, found = Scripts(profile), stacks_of_waits_of(profile)
    for tid, _, frames in planted:
        chain = as_chain(frames)
        chains = {scripts.of(stack) for _, stack in found.get(tid, [])}
        check(chains and all(c[:len(chain)] == chain for c in chains), f"thread {tid} is not in {chain}: {chains}")
        check(all("threading" in f[1] or "queue" in f[1] for c in chains for f in c[len(chain):]),
              f"more functions than {chain}: {chains}")


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_sleepers(context, version):
    """Threads that sleep when the recording begins, and go on, have their functions."""
    needs_root()
    python, truth, output = interpreter(version), context.path("truth.json"), context.path("p.json.gz")
    if not python or not python.exists():
        raise Skip("that Python is not installed")
    process = context.start([python, WORKLOAD.with_name("sleepers.py"), context.random.randint(1, 1 << 30), truth])
    wait_until(truth.exists, "the threads sleep")
    context.wallprof("-q", "--all-frames", "-d", "1", "-p", process.pid, "-o", output)
    process.kill()
    planted, profile = json.loads(truth.read_text()), Profile.load(output)
    check_sleepers(profile, planted)
    expect_failure(check_sleepers, profile, altered_waits({"waits": planted}))
    expect_failure(check_sleepers, profile, planted[:1] + [planted[1][:2] + [planted[1][2][:-2]]])
    totals = read_report(context, capture_of(output))["totals"]
    check(all(totals[kind]["received"] == totals[kind]["sent"] for kind in ("script frames", "script stack", "script function")),
          f"what the recorder read counts as sent: {totals}")


def test_hung(context):
    """Where nothing goes on, the first line says in which of the program's functions it hangs."""
    needs_root()
    program = context.path("hung.py")
    program.write_text("import queue\nimport threading\n\njobs = queue.Queue()\n\n\ndef next_job():\n    return jobs.get()\n\n\n"
                       "def collect():\n    next_job()\n\n\nfor _ in range(7):\n    threading.Thread(target=collect).start()\n"
                       f"open({str(context.path('ready'))!r}, 'w').close()\nthreading.Event().wait()\n")
    process = context.start([system_python(), program])
    wait_until(context.path("ready").exists, "the threads are there")
    time.sleep(0.3)  # until they wait
    done = context.wallprof("-d", "0.5", "-p", process.pid, "-o", context.path("p.json"))
    process.kill()

    def check_first(function):
        lines = done.stderr.splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("recorded "))
        check("100 % idle); idle waits of" in lines[at] and f"(7 threads): [idle: queue] in {function} " in lines[at + 1],
              f"not the first line: {done.stderr}")
    check_first("next_job (hung.py)")
    expect_failure(check_first, "get (queue.py)")
