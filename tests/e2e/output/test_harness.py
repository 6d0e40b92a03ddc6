# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness's own reading of a profile, on one that is small enough to do by hand."""
import gzip
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import harness
import cmocka
import idle_class
from untraced_tasks import broken_chains
from harness import (MS, ROOT, Profile, Viewer, by_category, by_leaf, by_state, check, check_close, expect_failure)

sys.path.append(str(ROOT / "tests" / "vm"))
import checks  # noqa: E402

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about the harness, not about a kernel")]


def profile(with_offsets=False):
    """0–4 ms running in main, 4–10 ms asleep; the window is 12 ms, the thread ends at 10."""
    stack = {"frame": [0, 1, 2], "length": 3}
    stack.update({"prefixOffset": [0, 1, 2]} if with_offsets else {"prefix": [None, 0, 0]})
    return {
        "meta": {"interval": 1, "startTime": 1700000000000.5, "preprocessedProfileVersion": 65,
                 "version": 27, "processType": 0, "stackwalk": 1, "product": "by hand",
                 "profilingStartTime": 0, "profilingEndTime": 12, "markerSchema": [],
                 "symbolicated": True, "usesOnlyOneStackType": True,
                 "sourceCodeIsNotOnSearchfox": True,
                 "categories": [{"name": n, "color": c, "subcategories": ["Other"]} for n, c in
                                (("Other", "grey"), ("User", "yellow"),
                                 ("Sleep (timer)", "darkgrey"))]},
        "libs": [], "pages": [], "counters": [],
        "shared": {
            "stringArray": ["main", "work", "[sleep]", "Sleep"],
            "stackTable": stack,
            "frameTable": {"address": [-1] * 3, "inlineDepth": [0] * 3, "category": [1, 1, 2],
                           "subcategory": [0] * 3, "func": [0, 1, 2], "nativeSymbol": [None] * 3,
                           "innerWindowID": [0] * 3, "line": [None] * 3, "column": [None] * 3,
                           "originalLocation": [None] * 3, "length": 3},
            "funcTable": {"name": [0, 1, 2], "isJS": [False] * 3, "relevantForJS": [False] * 3,
                          "resource": [-1] * 3, "source": [None] * 3, "lineNumber": [None] * 3,
                          "columnNumber": [None] * 3, "originalLocation": [None] * 3,
                          "length": 3},
            "resourceTable": {"lib": [], "name": [], "host": [], "type": [], "length": 0},
            "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [],
                              "length": 0},
            "sources": {"id": [], "filename": [], "startLine": [], "startColumn": [],
                        "sourceMapURL": [], "content": [], "length": 0},
            "sourceLocationTable": {"source": [], "line": [], "column": [], "length": 0},
        },
        "threads": [{
            "processType": "default", "processStartupTime": 0, "processShutdownTime": None,
            "registerTime": 0, "unregisterTime": 10, "pausedRanges": [], "name": "main",
            "isMainThread": True, "processName": "hand", "showMarkersInTimeline": False,
            "pid": "7", "tid": 7,
            "samples": {"stack": [1, 1, 2, 2, 2], "time": [0, 3.9995, 4.0005, 7, 9.9995],
                        "weight": [1, 3, 2, 2, 2], "weightType": "tracing-ms", "length": 5},
            "markers": {"name": [3], "startTime": [4], "endTime": [10], "phase": [1],
                        "category": [2], "data": [None], "length": 1},
        }],
    }


def check_profile(loaded):
    thread = loaded.thread(7)
    for sums in (thread.weight_by(by_state), thread.painted_by(by_state)):
        check_close("running", sums["running"], 4 * MS, 0, 1)
        check_close("blocked", sums["blocked"], 6 * MS, 0, 1)
    check_close("part", thread.painted_by(by_category, 3 * MS, 5 * MS)["Sleep (timer)"], MS, 0, 1)
    check_close("end", thread.painted_by(by_leaf, 6 * MS, 99 * MS)["[sleep]"], 4 * MS, 0, 1)
    check(thread.weight_by(by_leaf).keys() == {"running", "[sleep]"}, "leaves")
    check(thread.frames_of(0) == ["work", "main"] and thread.frames_of(4) == ["[sleep]", "main"],
          "frames")
    check(list(thread.samples_between(3 * MS, 4.1 * MS)) == [1, 2], "samples between")
    check(not thread.samples_between(5 * MS, 6.9 * MS), "nothing between")
    check([(m["name"], m["start"], m["end"]) for m in thread.markers()]
          == [("Sleep", 4 * MS, 10 * MS)], "markers")
    check(loaded.window_ns == 12 * MS and abs(loaded.start_ns - 1700000000000500000) < 500, "time")


def test_reading(context):
    for with_offsets in (False, True):
        check_profile(Profile(profile(with_offsets)))
    path = context.path("p.json.gz")
    path.write_bytes(gzip.compress(json.dumps(profile()).encode()))
    check_profile(Profile.load(path))


def test_viewer_agrees(context):
    path = context.path("p.json")
    path.write_text(json.dumps(profile()))
    with Viewer() as viewer:
        viewer.load(path)
        sums = viewer.categories(viewer.thread_handles()[7])
    check_close("User", sums["User"], 4 * MS, 0, 1)
    check_close("Sleep", sums["Sleep (timer)"], 6 * MS, 0, 1)


def test_profiles_are_opened(context):
    """All kept profiles are opened after the tests' own files are gone; a bad one is reported with its test's name."""
    kept = harness.ToOpen()
    kept.open_folder()
    for name, text in (("good", json.dumps(profile())), ("bad", json.dumps(profile())[:-40])):
        path = context.path(f"{name}.json")
        path.write_text(text)
        kept.keep(name, path)
        path.unlink()
    reported = dict(kept.open_all())
    check(reported.pop("good") is None and "does not load" in reported.pop("bad") and not reported, f"{reported}")
    check(not kept.folder.exists(), "something is left")


def test_hidden_switches():
    """Found in a trace that has some, not found in one that is whole."""
    lines = [f"  x-1 [{cpu:03}] d..2. 1.0{i}: sched_switch: prev_comm=a prev_pid={prev} prev_prio=1 "
             f"prev_state=S ==> next_comm=agent next_pid={following} next_prio=1"
             for i, (cpu, prev, following) in enumerate(((0, 1, 2), (1, 5, 6), (0, 2, 3), (1, 6, 7),
                                                         (0, 3, 1)))]
    check(broken_chains(lines) == set(), "a whole trace")
    check(broken_chains(lines[:2] + lines[3:]) == {"agent 2"}, "one switch is missing")
    check(broken_chains(lines[:2] + ["CPU:0 [LOST 3 EVENTS]"] + lines[3:]) == set(), "ftrace lost it")


def test_guest_results():
    """No test that a guest was to run gets lost: one without a result has failed."""
    reported = ("seed: WALLPROF_SEED=1\r\nplan a.x a.y a.z b.x\r\n# left to the host\r\nok a.x (0.1 s)"
                "\r\nnot ok a.y\r\n    too\r\n    late\r\nskip a.z: why\r\nfailed: a.y\r\n")
    found = {name: (result, why) for name, result, why in checks.suite_results(reported)}
    check(found.pop("b.x")[0] == "not ok", "a test that was not run has passed")
    check(found == {"a.x": ("ok", ""), "a.y": ("not ok", "too\nlate\n"), "a.z": ("skip", "why")},
          f"results: {found}")
    for nothing in ("", "plan \n", "Traceback: no module named harness\n"):
        expect_failure(lambda: list(checks.suite_results(nothing)))


def test_negative():
    altered = profile()
    altered["threads"][0]["samples"]["time"][2] = 4.5
    expect_failure(check_profile, Profile(altered))
    altered = profile()
    altered["threads"][0]["samples"]["stack"][0] = 2
    expect_failure(check_profile, Profile(altered))


def attempts(fails_below, stolen_each, before=0, hidden=0):
    """Returns, for a check that needs so much allowed, what each attempt was allowed and whether one passed."""
    clock, allowed, kept = itertools.count(before, step=stolen_each), [], harness.stolen_ns
    recording = harness.Recording.__new__(harness.Recording)
    recording.report = {"contradictions": hidden}

    def checks(_, allowed_ns):
        allowed.append(allowed_ns)
        check(allowed_ns >= fails_below, "wrong")

    harness.stolen_ns = lambda: next(clock)
    try:
        harness.unless_stolen(lambda: recording, checks)
    except harness.Failure:
        return allowed, False
    finally:
        harness.stolen_ns = kept
    return allowed, True


def test_stolen_time():
    """Exactly the steal time is allowed for in the last of six attempts; if there was none,
    there is one."""
    for fails_below, stolen, wanted in ((0, 10, ([0], True)), (1, 0, ([0], False)),
                                        (10, 10, ([0] * 5 + [10], True)),
                                        (11, 10, ([0] * 5 + [10], False))):
        found = attempts(fails_below * MS, stolen * MS)
        wanted = ([ns * MS for ns in wanted[0]], wanted[1])
        check(found == wanted, f"{stolen} ms stolen, {fails_below} needed: {found}")
    check(attempts(1, 0, before=10 * MS) == ([0, 0], False), "less than a tick may have been stolen")
    check(attempts(1, 0, hidden=1) == ([0] * 6, False), "what is missing may be the switch that was hidden")
    check(harness.without_stolen(15, 10, 3) == 12 and harness.without_stolen(11, 10, 3) == 10
          and harness.without_stolen(9, 10, 3) == 9, "more than what was stolen is taken off")
    harness.repeated.clear()  # no recording was made


SUITES = {"test_a": """
import os, pathlib, pytest, harness

pytestmark = pytest.mark.untimed
harness.is_disturbed = lambda: harness.IN_GUEST

def fails_at_first(context):
    if not os.path.exists(f"{RUNS}/{context.name}"):
        pathlib.Path(f"{RUNS}/{context.name}").touch()
        harness.check(False, "not yet")

def test_good(context):
    harness.check(isinstance(context.random.random(), float), "no random numbers")
def test_wrong():
    harness.check(False, "is wrong\\nand why")
def test_absent():
    raise harness.Skip("it is absent")
@pytest.mark.parametrize("name", ["p", "q", "r"])
def test_once(context, name):
    fails_at_first(context)
""", "test_b": """
import os, pytest, harness
from test_a import fails_at_first

def test_in_main(context):
    fails_at_first(context)
def test_late(context):
    raise harness.TimingFailure("is late\\nand why")
def test_host():
    raise harness.HostBusy("is busy")
@pytest.mark.host_only("it ends its process")
def test_error():
    raise KeyError("x")
""", "test_c": """
import os, pytest

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it ends its process")]

def test_ends():
    os._exit(3)
"""}


def run_suites(context, *arguments, **environment):
    """Returns the status of a run of these suites, and its lines without times and the names of folders."""
    folder = Path(tempfile.mkdtemp(dir=context.folder))
    for name, text in SUITES.items():
        (folder / "e2e").mkdir(exist_ok=True)
        (folder / "e2e" / f"{name}.py").write_text(text.replace("{RUNS}", str(folder)))
    settings = (ROOT / "tests" / "pytest.ini").read_text()
    folders = f"pythonpath = {ROOT}/tests/run {ROOT}/tests/support/py"
    (folder / "pytest.ini").write_text(re.sub(r"pythonpath = .*", folders, settings))
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", *arguments], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "TMPDIR": str(folder), **environment})
    text = re.sub(r"\n +\(files: [^)]*\)| \(files: [^)]*\)| \([\d.]+ s\)", "", done.stdout)
    check("passed, " in text, f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.returncode, text.splitlines()


def check_lines(lines, beginnings, wanted):
    found = [line for line in lines if line.startswith(beginnings)]
    check(sorted(found) == sorted(wanted), f"{found}, should be {wanted}, in:\n" + "\n".join(lines))


def test_results(context):
    """What fails once is tried again when all is over, and fails if it does so twice; no more than a few are tried. A skip
    says why, and a test that ends its process is no pass."""
    xml = context.path("junit.xml")
    status, lines = run_suites(context, "a.", "b.", "c.", f"--junitxml={xml}", WALLPROF_SECOND_TRIES="5")
    check_lines(lines, "ok ", ["ok a.good", "ok a.p", "ok a.q", "ok a.r", "ok b.in_main"])
    check_lines(lines, "skip ", ["skip a.absent: it is absent", "skip b.host: its host was too busy: is busy"])
    check_lines(lines, "not ok ", ["not ok a.wrong", "not ok b.error", "not ok b.late", "not ok c.ends"])
    check_lines(lines, ("# a.", "# b."), [f"# {name} failed, and is tried once more at the end:"
                                          for name in ("a.wrong", "a.p", "a.q", "a.r", "b.in_main")])
    check_lines(lines, "# failed once", [f"# failed once, and not again alone: {name}: not yet"
                                         for name in ("a.p", "a.q", "a.r", "b.in_main")])
    check([line for line in lines if line.startswith("failed: ") and "b.error" not in line] == [
        "failed: c.ends: its process ended with status 3", "failed: b.late: is late and why", "failed: a.wrong: is wrong and why"],
        "\n".join(lines))
    at = lines.index("not ok b.late")
    check(lines[at + 1:at + 3] == ["    is late", "    and why"], "\n".join(lines))
    check(status == 1 and lines[-1] == "5 passed, 4 failed, 2 skipped", f"status {status}, {lines[-1]}")
    names = set(re.findall(r'<testcase classname="" name="([^"]*)"', xml.read_text()))
    check(names == {f"a.{name}" for name in ("good", "wrong", "absent", "p", "q", "r")}
          | {f"b.{name}" for name in ("in_main", "late", "host", "error")}, f"the junit file has {names}")


def test_results_in_guests(context):
    """A wrong time fails at the last attempt there, and a host that was too busy is no pass. Five are tried again at the
    end, and all names come first."""
    status, lines = run_suites(context, "--guest", "a.", "b.", "c.", WALLPROF_GUEST="1", WALLPROF_SECOND_TRIES="5")
    check_lines(lines, "plan ", ["plan a.good a.wrong a.absent a.p a.q a.r b.in_main b.late b.host"])
    check_lines(lines, ("# left", "# b."), ["# left to the host, 2 tests: it ends its process",
                                            "# b.in_main failed, and is tried once more at the end:"]
                + ["# b.late: once more, for is late", "# b.host: once more, for is busy"] * (harness.ATTEMPTS - 1))
    check_lines(lines, "not ok ", ["not ok b.late", "not ok a.wrong"])
    check_lines(lines, "skip ", ["skip a.absent: it is absent", "skip b.host: its host was too busy: is busy"])
    check(status == 1 and lines[-1] == "5 passed, 2 failed, 2 skipped", f"status {status}, {lines[-1]}")


def test_selection(context):
    """By parts of names, by pytest's own -k, or both. Nothing at all is no pass."""
    for arguments, wanted, last in ((("a.", "-k", "good"), 0, "1 passed, 0 failed, 0 skipped"),
                                    (("a.go", "--without", "wrong"), 0, "1 passed, 0 failed, 0 skipped"),
                                    (("none.",), 1, "0 passed, 0 failed, 0 skipped")):
        status, lines = run_suites(context, *arguments)
        check((status, lines[-1]) == (wanted, last), f"{arguments}: status {status}, {lines[-1]}")


def test_skipped_units():
    """A unit test that skips itself is no pass, whichever version of cmocka says so."""
    for text in ("1..3\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP c\n# ok - tests\n",
                 "TAP version 14\n1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP\n# ok - tests\n"):
        results = list(cmocka.tap_results(text))
        check(results == [("a", "ok"), ("b", "not ok"), ("c", "skip")], f"{text!r}: {results}")


def test_idle_class_is_left(context):
    """A process and all that it started leave SCHED_IDLE; what is started in it stays there."""
    def start():
        return context.start(["chrt", "-i", "0", "sh", "-c", "sleep 60 & wait"], start_new_session=True)

    def policies(pids):
        return {os.sched_getscheduler(pid) for pid in pids}

    harness.needs_command("chrt")
    ours, parent = start(), context.start(["sleep", "60"])
    harness.wait_until(lambda: len(idle_class.children_of(ours.pid)) == 1, "the shell has a child")
    tree = [ours.pid, *idle_class.children_of(ours.pid)]
    check(policies(tree) == {os.SCHED_IDLE}, f"it began as {policies(tree)}")
    check(set(tree) <= set(idle_class.children_of(os.getpid())), "children of ours are missing")
    check(idle_class.children_of(parent.pid) == [], "a process without children has some")
    idle_class.leave_idle_class(ours.pid)
    check(policies(tree) == {os.SCHED_OTHER}, f"they went on as {policies(tree)}")
    before = os.sched_getscheduler(0)
    with idle_class.idle_class():
        inherits = context.start(["sleep", "60"])
    check(policies([inherits.pid]) == {os.SCHED_IDLE}, "a process that was started in the class is not in it")
    check(os.sched_getscheduler(0) == before, "this process stayed in the class")
    os.killpg(ours.pid, signal.SIGKILL)
