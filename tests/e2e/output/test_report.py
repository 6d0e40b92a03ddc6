# SPDX-License-Identifier: GPL-2.0-or-later
"""The report: its page, its sections, the timeline of a thread, and parts of its JSON."""
import fcntl
import json
import os
import pty
import re
import struct
import termios
import unicodedata

import pytest

from harness import ROOT, WALLPROF, check, expect_failure
from json_schema import check_schema

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about files")]

WIDTHS = (60, 80, 132, 200)
PAGE_LINES = 40
SCHEMA = ROOT / "docs" / "reference" / "report.schema.json"


def captures(context):
    """Recordings of three kinds: many waits, sleeps of an old version, a convoy on a lock."""
    kept = ROOT / "tests" / "captures"
    return [kept / "7.3-waits.capture", kept / "6.1-sleeps.capture", ROOT / "tests" / "golden" / "golden.capture"]


def environment(**settings):
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", **settings}
    return {name: value for name, value in env.items() if value is not None}


def report(context, *arguments, status=0, **settings):
    return context.wallprof("report", *map(str, arguments), status=status, env=environment(**settings))


def part(context, *arguments):
    return json.loads(report(context, "--json", *arguments).stdout)


def columns(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def check_fits(text, width, most_lines):
    lines = text.splitlines()
    check(len(lines) <= most_lines, f"{len(lines)} lines, should be {most_lines} at most")
    wide = [line for line in lines if columns(line) > width]
    check(not wide, f"wider than {width}: {wide[:1]}")


# ---- the page ------------------------------------------------------------------------------------


def test_page_fits(context):
    for capture in captures(context):
        for width in WIDTHS:
            text = report(context, capture, COLUMNS=str(width)).stdout
            check_fits(text, width, PAGE_LINES)
            expect_failure(check_fits, text, max(map(columns, text.splitlines())) - 1, PAGE_LINES)
            expect_failure(check_fits, text, width, len(text.splitlines()) - 1)
            full = report(context, "--full", capture, COLUMNS=str(width)).stdout
            check_fits(full, width, len(full.splitlines()))
            check(len(full.splitlines()) > PAGE_LINES, "--full has no more than the page")


def check_answer_first(text):
    lines = text.splitlines()
    titles = [i for i, line in enumerate(lines) if re.match("critical path:|most waited for:|CPUs:", line)]
    tables = [i for i, line in enumerate(lines) if re.search(r"\bwaited .* waits by ", line)]
    check(titles and tables and max(titles) < min(tables), f"titles in lines {titles}, tables in {tables}")


def test_answer_first(context):
    for capture in captures(context):
        text = report(context, capture, COLUMNS="100").stdout
        check_answer_first(text)
        expect_failure(check_answer_first, "\n".join(reversed(text.splitlines())))


def test_pipe_loses_no_text(context):
    """Without COLUMNS lines are as long as their names."""
    capture = ROOT / "tests" / "golden" / "golden.capture"
    text = report(context, "--full", capture, COLUMNS=None).stdout
    check("…" not in text and max(map(columns, text.splitlines())) > max(WIDTHS) / 2, "something was cut")
    check("…" in report(context, "--full", capture, COLUMNS="60").stdout, "nothing is cut in 60 columns")


def test_ascii(context):
    for capture in captures(context):
        for arguments in ((), ("--full",), ("--timeline", part(context, capture)["threads"][0]["tid"])):
            text = report(context, *arguments, capture, LC_ALL="C", COLUMNS="120").stdout
            check(text.isascii(), f"not ASCII: {[line for line in text.splitlines() if not line.isascii()][:1]}")
    text = report(context, "--full", captures(context)[2], COLUMNS=None).stdout
    check(" ← " in text, "no arrow where there is UTF-8")
    check(" <- " in report(context, "--full", captures(context)[2], LC_ALL="C", COLUMNS=None).stdout, "no arrow")


# ---- sections ------------------------------------------------------------------------------------


def section_names(context):
    said = report(context, "--section", "none-of-them", captures(context)[0], status=125).stderr
    return said.partition("expected one of ")[2].strip().split(", ")


def test_sections(context):
    """Each section is there by itself and in the full report."""
    capture = captures(context)[2]
    full = report(context, "--full", capture, COLUMNS=None).stdout
    names = section_names(context)
    check(len(names) > 10, f"sections: {names}")
    for name in names:
        text = report(context, "--section", name, capture, COLUMNS=None).stdout
        check(text.strip(), f"--section {name} prints nothing")
        if "nothing of this kind" not in text:
            check(text.strip() in full, f"--section {name} is not in the full report")
    text = report(context, capture, COLUMNS="80").stdout
    named = re.sub(r"\s+", " ", text.rpartition("--section with one of ")[2]).split()
    check(named == names, f"the page names {named}")


def test_top(context):
    capture = captures(context)[0]
    for count in (1, 3):
        rows = report(context, "--section", "threads", "--top", count, capture).stdout.splitlines()
        check(len(rows) == 1 + count, f"--top {count}: {len(rows)} lines")
    two = context.path("two.capture")
    context.wallprof("record", "-q", "-o", two, "--", "sh", "-c", "sleep 0.02; env sleep 0.02; :")
    for words in (("--critical-path",), ("--function", "main")):
        every, first = (report(context, *words, *top, two).stdout.splitlines() for top in ((), ("--top", 1)))
        check(len(first) < len(every), f"{words} has {len(first)} lines with --top 1, {len(every)} without")
    for words, hint in ((("--section", "wait"), "did you mean waits?"), (("--section", "x"), "expected one of path"),
                        (("--top", "0"), "expected a number"), (("--timeline", "x"), "expected a thread ID"),
                        (("--limit", "x"), "expected a size"), (("--limit", "16K"), "--json"),
                        (("--full", "--section", "waits"), "mutually exclusive")):
        said = report(context, *words, capture, status=125).stderr
        check(hint in said and said.count("\n") == 1, f"{words}: {said}")


# ---- terminals -----------------------------------------------------------------------------------


def on_terminal(context, *arguments, width=90, **settings):
    """Returns what wallprof prints on a terminal of that width."""
    env = environment(**{"COLUMNS": None, "NO_COLOR": None, "WALLPROF_PAGER": None, "PAGER": None, **settings})
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 100, width, 0, 0))
    process = context.start([WALLPROF, "report", *arguments], stdout=slave, stderr=slave, stdin=slave, env=env)
    os.close(slave)
    text = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # nothing has the terminal open any more
            break
        if not data:
            break
        text += data
    process.wait()
    os.close(master)
    check(process.returncode == 0, f"status {process.returncode}: {text.decode()[-500:]}")
    return text.decode().replace("\r\n", "\n")


STYLE = re.compile(r"\033\[\d*m")


def test_colours(context):
    """A page as wide as the terminal, with colours unless they are not wanted."""
    capture = captures(context)[2]
    text = on_terminal(context, "--no-pager", capture)
    check(STYLE.search(text), "no colours on a terminal")
    check_fits(STYLE.sub("", text), 90, PAGE_LINES)
    for settings in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        check(not STYLE.search(on_terminal(context, "--no-pager", capture, **settings)), f"colours with {settings}")
    check(not STYLE.search(report(context, capture).stdout), "colours in a pipe")


def test_pager(context):
    """A terminal has a pager, which the user chooses; a pipe has none."""
    capture, paged = captures(context)[2], "sed 's/^/paged: /'"

    def lines(**settings):
        return on_terminal(context, capture, **settings).splitlines()

    for settings in ({"WALLPROF_PAGER": paged}, {"PAGER": paged}, {"WALLPROF_PAGER": paged, "PAGER": "false"}):
        check(all(line.startswith("paged: ") for line in lines(**settings)), f"no pager with {settings}")
    for settings in ({"WALLPROF_PAGER": ""}, {"PAGER": "cat"}, {"WALLPROF_PAGER": "cat", "PAGER": paged},
                     {"PAGER": "/no/such/pager"}):
        check(not any(line.startswith("paged: ") for line in lines(**settings)), f"a pager with {settings}")
        check(len(lines(**settings)) > 20, f"nothing is printed with {settings}")
    check(lines(PAGER="echo $LESS; cat >/dev/null") == ["FRX"], "LESS is not set")
    check(lines(PAGER="echo $LESS; cat >/dev/null", LESS="Q") == ["Q"], "the user's LESS is not kept")
    check(lines(PAGER="true") == [], "a pager that reads nothing")
    check(not any(line.startswith("paged: ") for line in lines(PAGER=paged, TERM="dumb")), "a dumb terminal has a pager")
    check(lines(PAGER="kill -INT $PPID; cat >/dev/null; echo alive") == ["alive"], "Ctrl-C ends more than the pager's text")
    check("paged: " not in on_terminal(context, "--no-pager", capture, PAGER=paged), "--no-pager has a pager")
    check("paged: " not in report(context, capture, PAGER=paged, WALLPROF_PAGER=paged).stdout, "a pager in a pipe")


# ---- the timeline of a thread --------------------------------------------------------------------


def events_of(text):
    """[(start, duration, state)] in ns."""
    def ns(seconds):
        whole, _, rest = seconds.partition(".")
        return int(whole) * 10 ** 9 + int(rest)
    rows = [re.split("  +", line) for line in text.splitlines()[1:]]
    check(all(len(row) >= 7 for row in rows), f"columns are missing: {[row for row in rows if len(row) < 7][:1]}")
    return [(ns(row[0]), ns(row[1]), row[2]) for row in rows]


def check_timeline(events, thread):
    check(sum(duration for _, duration, _ in events) == thread["lifetime_ns"], "not as long as the thread lived")
    for (start, duration, _), (following, _, _) in zip(events, events[1:]):
        check(start + duration == following, f"a gap at {start + duration}")
    for state, wanted in thread["states"].items():
        check(sum(d for _, d, s in events if s == state) == wanted, f"another time {state}")


def test_timeline(context):
    """Text and JSON of a thread's events; their sum is the thread's lifetime."""
    for capture in captures(context):
        for thread in part(context, capture)["threads"][:5]:
            events = events_of(report(context, "--timeline", thread["tid"], capture, COLUMNS=None).stdout)
            check_timeline(events, thread)
            longer = [(start, duration + 1, state) for start, duration, state in events]
            expect_failure(check_timeline, longer, thread)
            timeline = part(context, "--timeline", thread["tid"], capture)["timeline"]
            check([(i["start_ns"], i["duration_ns"], i["state"]) for i in timeline["intervals"]] == events,
                  "the JSON has other events")
    said = report(context, "--timeline", 1, captures(context)[2], status=1).stderr
    check("no such thread in this recording: 1" in said, said)


def test_part_of_timeline(context):
    capture = captures(context)[2]
    thread = max(part(context, capture)["threads"], key=lambda t: t["switch_outs"])
    window = ("--from", "50ms", "--to", "150ms")
    events = events_of(report(context, "--timeline", thread["tid"], *window, capture, COLUMNS=None).stdout)
    check(events[0][0] == 0 and sum(e[1] for e in events) == 10 ** 8, f"from {events[0]} to {events[-1]}")
    whole = events_of(report(context, "--timeline", thread["tid"], capture, COLUMNS=None).stdout)
    longest = events_of(report(context, "--timeline", thread["tid"], "--top", 3, capture, COLUMNS=None).stdout)
    check(sorted(longest) == longest and sorted(e[1] for e in longest) == sorted(e[1] for e in whole)[-3:],
          f"the longest are {longest}")


# ---- parts of the JSON ---------------------------------------------------------------------------


def check_part(text, whole, limit):
    """A part is valid, not too large, a part of the whole, and counts what it lacks."""
    check(len(text.encode()) <= limit, f"{len(text.encode())} bytes, should be {limit}")
    got = json.loads(text)
    omitted = got.pop("omitted")
    for member, value in whole.items():
        kept = got.get(member)
        if isinstance(value, list):
            check(all(element in value for element in kept or []), f"{member} has other elements")
            check(len(kept or []) + omitted.get(member, 0) == len(value), f"of {member} some are not counted")
        elif isinstance(value, dict) and kept is not None:
            for inner, elements in value.items():
                if isinstance(elements, list):
                    count = len(kept.get(inner, [])) + omitted.get(f"{member}.{inner}", 0)
                    check(count == len(elements), f"of {member}.{inner} some are not counted")
        elif kept != value:
            check(kept is None, f"{member} is {kept}")


def test_limit(context):
    for capture in captures(context):
        whole = part(context, capture)
        for limit in (1500, 4 << 10, 16 << 10, 64 << 10, 1 << 24):
            text = report(context, "--json", "--limit", limit, capture).stdout
            check_part(text, whole, limit)
            expect_failure(check_part, text, whole, len(text.encode()) - 1)
            for member in ("waits", "threads", "running_functions"):
                expect_failure(check_part, text, {**whole, member: whole[member] + [{}]}, limit)
            check(json.loads(text)["answer"]["parts"][0] == whole["answer"]["parts"][0], "the answer is missing")
        check(json.loads(text)["omitted"] == {}, "all would have fitted")
        check(len(report(context, "--json", "--limit", "16K", capture).stdout) > 12 << 10, "much room is left")


def test_smallest_limit(context):
    for capture in captures(context):
        said = report(context, "--json", "--limit", 10, capture, status=1).stderr
        least = int(re.search(r"expected (\d+) or more", said)[1])
        check_part(report(context, "--json", "--limit", least, capture).stdout, part(context, capture), least)
        report(context, "--json", "--limit", least - 1, capture, status=1)
        tid = part(context, capture)["threads"][0]["tid"]
        text = report(context, "--json", "--timeline", tid, "--limit", "2K", capture).stdout
        check(len(text) <= 2048 and json.loads(text)["timeline"]["intervals"], "no timeline in 2 KiB")


def test_json_selection(context):
    capture = captures(context)[0]
    whole = part(context, capture)
    head = {"format", "wallprof", "kernel", "command", "start_time", "complete", "window_ns", "omitted"}
    waits = part(context, "--section", "waits", capture)
    check(set(waits) == head | {"waits", "blocked_ns", "other_ns"}, f"--section waits has {set(waits)}")
    by_path = sorted(whole["waits"], key=lambda wait: (-wait["path_ns"], -wait["total_ns"]))
    check(waits["waits"] == by_path, "--section waits has other waits")
    for name in section_names(context):
        check(set(part(context, "--section", name, capture)) - head, f"--section {name} has no member")
    top = part(context, "--top", 2, capture)
    check(top["waits"] == by_path[:2] and top["omitted"]["waits"] == len(whole["waits"]) - 2, "--top 2")
    on_path = {thread["tid"]: thread["ns"] for thread in (whole["critical_path"] or {"threads": []})["threads"]}
    times = [(on_path.get(t["tid"], 0), t["states"]["running"]) for t in part(context, "--limit", "1G", capture)["threads"]]
    check(times == sorted(times, reverse=True), f"threads are not in order of importance: {times[:5]}")


def test_schema(context):
    """The documented schema holds for every report, and is not so wide that it holds for anything."""
    schema = json.loads(SCHEMA.read_text())
    for capture in captures(context):
        tid = part(context, capture)["threads"][0]["tid"]
        whole = part(context, capture)
        for arguments in ((), ("--limit", "16K"), ("--section", "io"), ("--timeline", tid)):
            check_schema(part(context, *arguments, capture), schema)
        for change in ({"format": "2"}, {"window_ns": -1}, {"unheard_of": 1}, {"threads": [{}]}):
            expect_failure(check_schema, {**whole, **change}, schema)
