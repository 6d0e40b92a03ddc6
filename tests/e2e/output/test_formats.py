# SPDX-License-Identifier: GPL-2.0-or-later
"""Formats that other tools read: they add up to the report's time by state, and these tools say so, too."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pprof_rules
from harness import GIVE_UP_S, MS, ROOT, WORKLOADS, check, check_close, expect_failure, needs_command

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("the same capture gives the same bytes anywhere")]

RUNNING = ("[running]", "[recording]")


def record(context):
    """A recording that has all states, and many stacks."""
    name, options = context.random.choice((("convoy", {"threads": 4}), ("sleeps", {"threads": 3, "ms": 8, "rounds": 6}),
                                           ("burn", {"threads": 3, "ms": 60})))
    return context.record(name, undisturbed=False, **options)


def export(context, recording, name, *arguments):
    context.wallprof("export", "-q", *arguments, "-o", name, recording.capture)
    return context.path(name)


def folded(path):
    """Reads folded stacks: [(frames, microseconds)]."""
    lines = [line.rsplit(" ", 1) for line in path.read_text().splitlines()]
    return [(stack.split(";"), int(us)) for stack, us in lines]


def ledger_of(recording, state=None):
    """Nanoseconds of all threads, in one state or in all."""
    return sum(ns for thread in recording.report["threads"] for s, ns in thread["states"].items() if state in (None, s))


def check_folded(stacks, recording):
    check_close("the sum", sum(us for _, us in stacks) * 1000, ledger_of(recording), 0.001, 2000)
    running = sum(us for frames, us in stacks if frames[-1] in RUNNING) * 1000
    check_close("running", running, ledger_of(recording, "running"), 0.001, 10000)
    reasons = {}
    for thread in recording.report["threads"]:
        for reason, ns in thread["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + ns
    for reason, ns in reasons.items():
        us = sum(us for frames, us in stacks if frames[-1] == reason)
        check_close(reason, us * 1000, ns, 0.001, 100000)


def test_folded(context):
    recording = record(context)
    stacks = folded(export(context, recording, "p.folded"))
    check_folded(stacks, recording)
    names = {thread["name"] for thread in recording.report["threads"]}
    check({frames[1] for frames, _ in stacks} == names, f"threads {names}")
    by_process = folded(export(context, recording, "q.folded", "--by", "process"))
    check_folded(by_process, recording)
    check(len(by_process) <= len(stacks) and by_process[0][0][1] not in names, f"{by_process[0]}")
    recording.report["threads"][0]["states"]["running"] += ledger_of(recording) // 500 + MS
    expect_failure(check_folded, stacks, recording)


def test_folded_selection(context):
    """Options that select a part hold, too."""
    recording = record(context)
    stacks = folded(export(context, recording, "r.folded", "--state", "running"))
    check({frames[-1] for frames, _ in stacks} <= set(RUNNING), "other states are there")
    half = recording.report["window_ns"] // 2
    parts = [folded(export(context, recording, "t.folded", *part)) for part in
             (["--to", f"{half}ns"], ["--from", f"{half}ns"])]
    check_folded(parts[0] + parts[1], recording)
    expect_failure(check_folded, parts[0], recording)


def test_capture_beside(context):
    """What only other programs read stands for its capture; without that, the message says what is missing."""
    for name in ("a.folded", "b.pb.gz", "c.svg"):
        context.wallprof("-q", "-o", name, "--", "true")
        capture = name.split(".")[0] + ".capture"
        check(context.path(name).exists() and context.path(capture).exists(), f"{name}: {os.listdir(context.folder)}")
        report = json.loads(context.wallprof("report", "--json", name).stdout)
        check([thread["name"] for thread in report["threads"]] == ["true"], f"{name}: {report['threads']}")
        context.path(capture).unlink()
        done = context.wallprof("report", name, status=None)
        check(done.returncode != 0 and capture in done.stderr, f"{name}: {done.returncode} {done.stderr}")


# ---- pprof --------------------------------------------------------------------------------


def pprof(path, *options):
    done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", *options, path], capture_output=True, text=True,
                          env={**os.environ, "PPROF_TMPDIR": str(path.parent), "HOME": str(path.parent)})
    check(done.returncode == 0, f"go tool pprof {options}: {done.stderr}")
    return done.stdout


def flat_times(path, sample_type):
    """Nanoseconds by function, as pprof -top adds them up."""
    text = pprof(path, "-top", f"-sample_index={sample_type}", "-unit=ns", "-nodecount=100000", "-nodefraction=0")
    lines = text[text.index("flat%"):].splitlines()[1:]
    rows = [line.split(None, 5) for line in lines]
    return {row[5].removesuffix(" (inline)").removesuffix(" (partial-inline)"): float(row[0].removesuffix("ns"))
            for row in rows}


def check_pprof(path, stacks, recording):
    """pprof's sums are those of the report, and of the folded stacks."""
    wall = flat_times(path, "wall")
    check_close("wall", sum(wall.values()), ledger_of(recording), 0.001, 1000)
    check_close("wall, and folded", sum(wall.values()), sum(us for _, us in stacks) * 1000, 0.001, 2000)
    check_close("cpu", sum(flat_times(path, "cpu").values()), ledger_of(recording, "running"), 0.001, 1000)
    check_close("off_cpu", sum(flat_times(path, "off_cpu").values()),
                ledger_of(recording, "runnable") + ledger_of(recording, "blocked"), 0.001, 1000)
    for reason in {reason for thread in recording.report["threads"] for reason in thread["reasons"]}:
        ns = sum(thread["reasons"].get(reason, 0) for thread in recording.report["threads"])
        check_close(reason, wall.get(reason, 0), ns, 0.001, 1000)


def tags(path):
    """{key: {value: nanoseconds}} of the labels, as pprof -tags prints them."""
    found, key = {}, None
    for line in pprof(path, "-tags", "-unit=ns").splitlines():
        if match := re.fullmatch(r"\s*(\S+): Total .*", line):
            key = found.setdefault(match[1], {})
        elif key is not None and (match := re.fullmatch(r"\s*([\d.]+)ns \(.*?\): (.*)", line)):
            key[match[2]] = float(match[1])
    return found


def test_pprof(context):
    recording = record(context)
    path = export(context, recording, "p.pb.gz")
    stacks = folded(export(context, recording, "p.folded"))
    check_pprof(path, stacks, recording)
    labels = tags(path)
    check({"process", "thread", "pid", "tid", "state"} <= set(labels), f"labels {set(labels)}")
    check_close("state: running", labels["state"].get("running", 0), ledger_of(recording, "running"), 0.001, 1000)
    names = {thread["name"] for thread in recording.report["threads"]}
    check(set(labels["thread"]) == names, f"{labels['thread']}")
    recording.report["threads"][0]["states"]["blocked"] += ledger_of(recording) // 500 + MS
    expect_failure(check_pprof, path, stacks, recording)


def test_pprof_lines(context):
    """A function's source lines have its time, and a location has its address, build ID and file."""
    recording = context.record("burn", undisturbed=False, threads=1, ms=80)
    path = export(context, recording, "p.pb.gz")
    program = Path(WORKLOADS, "burn")
    raw = pprof(path, "-raw")
    mapping = re.search(rf"^\d+: 0x(\w+)/0x(\w+)/0x(\w+) \S*/{program.name} (\w+)", raw, re.M)
    check(mapping is not None, raw[-2000:])
    notes = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
    check(mapping[4] in notes, f"{mapping[4]}: {notes}")
    check(raw[raw.index("Mappings\n"):].splitlines()[1].split()[2].endswith(f"/{program.name}"), "it is not the first")
    segments = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    loads = [[int(word, 16) for word in line.split()[1:3]] for line in segments.splitlines() if line.split()[:1] == ["LOAD"]]
    start, offset = int(mapping[1], 16), int(mapping[3], 16)
    check(start - offset in {address - at for at, address in loads}, f"{mapping[0]}: {segments}")
    listed = pprof(path, "-list=main", "-unit=ns", f"-source_path={ROOT}")
    check("ROUTINE ======" in listed and "burn.c" in listed, listed[:1000])


def test_pprof_program(context):
    """The program's mapping is the first one, also of a program that is called nearly as a library is."""
    for name in ("app", "a.sorter", "x.so.d/app", "app.so"):
        program = context.path(name)
        program.parent.mkdir(exist_ok=True)
        shutil.copy(Path(WORKLOADS, "burn"), program)
        context.wallprof("-q", "-o", "p.pb.gz", "--", program, "--threads", "1", "--ms", "60")
        file = pprof_rules.File(context.path("p.pb.gz").read_bytes())
        check(file.text(file.profile["mapping"][0]["filename"]) == str(program), f"{file.profile['mapping'][0]}, {program}")


def test_pprof_rules(context):
    """What pprof, Parca and Pyroscope require holds of a file, and of none of the altered ones."""
    program = context.path(os.fsdecode(b"caf\xe9 \xc2\x9b-\n" + "ä".encode() * 90))
    shutil.copy(Path(WORKLOADS, "sleeps"), program)
    context.wallprof("-q", "-o", "odd.pb.gz", "--", program, "--threads", "2", "--rounds", "2", "--ms", "3")
    pprof_rules.check_rules(context.path("odd.pb.gz").read_bytes())
    recording = record(context)
    data = export(context, recording, "p.pb.gz").read_bytes()
    pprof_rules.check_rules(data)
    file = pprof_rules.File(data)
    again = pprof_rules.File(file.altered(lambda profile, random: None, context.random))
    check(again.profile == file.profile, "what is decoded and encoded is another file")
    expect_failure(pprof_rules.check_rules, file.raw)
    for rule, refused_by_pprof, alterations in pprof_rules.RULES:
        for number, alteration in enumerate(alterations):
            check_refused(context, file.altered(alteration, context.random), rule, number, refused_by_pprof)


def check_refused(context, data, rule, number, refused_by_pprof):
    """The rule that an alteration breaks says so, and so does pprof, where it knows that rule."""
    check(list(rule(pprof_rules.File(data))), f"{rule.__name__} accepts its alteration {number}")
    if refused_by_pprof:
        path = context.path("altered.pb.gz")
        path.write_bytes(data)
        expect_failure(pprof, path, "-top")


# ---- speedscope ---------------------------------------------------------------------------


def leaf_times(profile, frames):
    """Nanoseconds by innermost frame. Events are in order, and each closes the frame that was opened last."""
    times, stack, last = {}, [], profile["startValue"]
    for event in profile["events"]:
        check(last <= event["at"] <= profile["endValue"], f"{profile['name']}: {event} after {last}")
        if stack and event["at"] > last:
            leaf = frames[stack[-1]]["name"]
            times[leaf] = times.get(leaf, 0) + event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            check(stack and stack.pop() == event["frame"], f"{profile['name']}: {event} closes another frame")
    check(not stack, f"{profile['name']}: {stack} is still open")
    return times


def check_speedscope(data, recording):
    """Each thread has its time by state and by reason."""
    check(set(data) == {"$schema", "exporter", "name", "activeProfileIndex", "profiles", "shared"}, f"{set(data)}")
    check(data["$schema"] == "https://www.speedscope.app/file-format-schema.json", data["$schema"])
    check(len(data["profiles"]) == len(recording.report["threads"]), f"{len(data['profiles'])} threads")
    for thread in recording.report["threads"]:
        found = [p for p in data["profiles"] if p["name"].endswith(f"({thread['tid']})")]
        check(len(found) == 1 and (found[0]["type"], found[0]["unit"]) == ("evented", "nanoseconds"), f"{thread['name']}")
        check_close("the window", found[0]["endValue"] - found[0]["startValue"], recording.report["window_ns"], 0, 1000)
        times = leaf_times(found[0], data["shared"]["frames"])
        check_close(f"{thread['name']}: running", sum(times.get(leaf, 0) for leaf in RUNNING),
                    thread["states"].get("running", 0), 0.001, 10)
        for reason, ns in thread["reasons"].items():
            check_close(f"{thread['name']}: {reason}", times.get(reason, 0), ns, 0.001, 10)
        check_close(f"{thread['name']}: all", sum(times.values()), sum(thread["states"].values()), 0.001, 10)


def test_speedscope(context):
    recording = record(context)
    data = json.loads(export(context, recording, "p.speedscope.json").read_text())
    check_speedscope(data, recording)
    reasons = recording.report["threads"][-1]["reasons"]
    reasons[max(reasons, key=reasons.get)] += MS
    expect_failure(check_speedscope, data, recording)


# ---- flame graph --------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
TITLE = re.compile(r"(.*) \(([\d.]+) (ns|us|ms|s), ([\d.]+) %\)", re.S)
UNITS = {"ns": 1, "us": 1000, "ms": MS, "s": 1000 * MS}


def graph_frames(text):
    """[(name, ns, x, width, y)] of the frames of a flame graph."""
    frames = []
    for group in ElementTree.fromstring(text).iter(f"{SVG}g"):
        title, rect = TITLE.fullmatch(group.find(f"{SVG}title").text), group.find(f"{SVG}rect")
        check(title is not None, f"{group.find(f'{SVG}title').text!r}")
        frames.append((title[1], float(title[2]) * UNITS[title[3]],
                       *(float(rect.get(key)) for key in ("x", "width", "y"))))
    return frames


def check_graph(text, recording):
    """Frames lie on others, are as wide as their time, and those at the bottom are all the time."""
    frames, all_ns = graph_frames(text), ledger_of(recording)
    bottom = max(y for *_, y in frames)
    rows = {}
    for name, ns, x, width, y in frames:
        check_close(f"the width of {name}", width / 1180, ns / all_ns, 0.01, 0.001)
        rows.setdefault(y, []).append((x, x + width))
    for name, _, x, width, y in frames:
        below = rows.get(y + 16, [])
        check(y == bottom or any(a - 0.01 <= x and x + width <= b + 0.01 for a, b in below), f"{name} lies on nothing")
    check_close("the processes", sum(ns for _, ns, *_, y in frames if y == bottom), all_ns, 0.001, 1000)
    leaves = sum(ns for name, ns, *_ in frames if name in RUNNING)
    check_close("running", leaves, ledger_of(recording, "running"), 0.01, all_ns * 0.002)
    check("http" not in text.replace("http://www.w3.org/2000/svg", ""), "it refers to another place")


def after_script(context, text, script):
    """What the picture is after a browser ran its script and another one."""
    needs_command("chromium")
    path = context.path("scripted.svg")
    path.write_text(text.replace("</svg>", f"<script><![CDATA[{script}]]></script></svg>"))
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                           f"--user-data-dir={context.path('browser')}", f"file://{path}"],
                          capture_output=True, text=True, timeout=GIVE_UP_S)
    check("<svg" in done.stdout, f"chromium: {done.stderr[-500:]}")
    return done.stdout


def test_flamegraph(context):
    recording = record(context)
    text = export(context, recording, "p.svg").read_text()
    check_graph(text, recording)
    for thread in recording.report["threads"]:
        thread["states"] = {state: ns * 2 for state, ns in thread["states"].items()}
    expect_failure(check_graph, text, recording)


def test_flamegraph_script(context):
    """Zooming makes a frame as wide as the picture and hides those beside it; searching says how much was found."""
    recording = record(context)
    text = export(context, recording, "p.svg").read_text()
    name, _, _, width, _ = max((f for f in graph_frames(text) if f[0].startswith("[") and f[3] < 1000), key=lambda f: f[3])
    select = f"const g = document.documentElement.flamegraph, f = g.frames.filter(f => f.name === '{name}')" \
             ".sort((a, b) => b.w - a.w)[0];"
    report = "document.getElementById('details').textContent = [f.rect.getAttribute('width')," \
             " g.frames.filter(f => f.g.style.display === 'none').length > 0," \
             " document.getElementById('matched').textContent].join('|');"
    search = f"g.search('^' + {json.dumps(re.escape(name))} + '$');"
    for script, wanted in (("g.zoom(f);", r"1180\|true\|"), ("g.zoom(f); g.reset();", rf"{width:g}\d*\|false\|"),
                           (search, r"[\d.]+\|false\|matched: [\d.]+ %"), (f"g.zoom(f); {search}", r"1180\|true\|matched: 100.0 %")):
        found = re.search(r'id="details"[^>]*>([^<]*)<', after_script(context, text, select + script + report))
        check(found and re.fullmatch(wanted, found[1]), f"{script}: {found and found[1]}, not {wanted}")
