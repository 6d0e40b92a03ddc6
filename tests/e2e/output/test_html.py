# SPDX-License-Identifier: GPL-2.0-or-later
"""The page has the times of the report, asks for nothing, and works in a browser."""
import gzip
import os
import re
import shutil
import subprocess

import pytest

from harness import BUILD, MS, ROOT, WALLPROF, check, check_close, expect_failure, needs_root, read_report
from html_page import READY, Browser, Page, as_text

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("the same capture gives the same page anywhere")]

RECORDED = (("sleeps", {"threads": 3, "ms": 12, "rounds": 5}), ("convoy", {"threads": 4}),
            ("pingpong", {"rounds": 2000}), ("burn", {"threads": 3, "ms": 100}))


def export(context, capture, name="p.html"):
    context.wallprof("export", "-q", "-o", name, capture)
    return context.path(name)


def check_sums(page, report):
    """Per thread and state: what the segments add up to is what the report has, to the nanosecond."""
    sums = page.ns_by_state()
    check(len(sums) == len(report["threads"]), f"{len(sums)} threads, should be {len(report['threads'])}")
    found = {tid: states for (tid, _), states in sums.items()}
    for thread in report["threads"]:
        states = found[thread["tid"]]
        for state, ns in thread["states"].items():
            check(states[state] == ns, f"{thread['name']} {thread['tid']}: {state} {states[state]}, should be {ns}")


def check_order(page):
    """Segments of a thread follow each other, from its start to its end."""
    for thread, segments in page.segments():
        for (_, end, _, _), (start, _, _, _) in zip(segments, segments[1:]):
            check(end == start, "a gap between segments")
        if thread and segments:
            check(segments[0][0] == thread["start"] and segments[-1][1] == thread["end"], f"{thread['name']}: not its lifetime")


def test_sums(context):
    for name, options in RECORDED:
        recording = context.record(name, undisturbed=False, **options)
        page = Page(export(context, recording.capture))
        check_sums(page, recording.report)
        check_order(page)
        check(page.data["folded"]["intervals"] == 0, "a short recording is folded")
        check(page.data["waits"]["detailed"] == page.data["waits"]["all"] == len(page.columns["waitThread"]), "waits")
    recording.report["threads"][0]["states"]["running"] += 1
    expect_failure(check_sums, page, recording.report)


def check_golden(page):
    wanted = gzip.decompress((ROOT / "tests/golden/golden.html.json.gz").read_bytes()).decode().splitlines()
    for got, line in zip(as_text(page).splitlines(), wanted):
        check(got == line, f"another {got[:300]}, was {line[:300]} (if that is right: tests/golden/update)")
    check(len(as_text(page).splitlines()) == len(wanted), "more or fewer members")


def test_golden(context):
    """The data of the canned capture are what they were."""
    shutil.copy(ROOT / "tests/golden/golden.capture", context.path("golden.capture"))
    page = Page(export(context, "golden.capture"))
    check_golden(page)
    page.columns["segmentWeight"][5] += 1
    expect_failure(check_golden, page)


def check_waits(page, recording, least_ns):
    """In each wait that the workload made there is one of the page. Its end is the wakeup: on a busy machine the thread
    runs later, and its own clock has the whole."""
    for truth in recording.truth.named("sleeper"):
        waits = [(page.data["threads"][thread]["start"] + start, ns) for thread, start, ns in
                 zip(page.columns["waitThread"], page.columns["waitStart"], page.columns["waitLength"])
                 if page.data["threads"][thread]["tid"] == truth["tid"]]
        for _, begin, end in truth["waits"]:
            begin, end = recording.at(begin), recording.at(end)
            check(any(begin - MS <= start and start + ns <= end + MS and ns >= least_ns for start, ns in waits),
                  f"{truth['name']}: no wait between {begin} and {end} ns")


def test_waits(context):
    least = context.random.randint(30, 60)
    recording = context.record("sleeps", threads=2, ms=least, rounds=4)
    page = Page(export(context, recording.capture))
    check_waits(page, recording, 0.9 * least * MS)
    wait = recording.truth.named("sleeper")[0]["waits"][0]
    wait[1:] = [ns - 3600 * 1000 * MS for ns in wait[1:]]
    expect_failure(check_waits, page, recording, 0.9 * least * MS)


def test_report_and_tables(context):
    """The tables' data are the report's, and the critical path is there with its threads."""
    recording = context.record("convoy", threads=3)
    page, report = Page(export(context, recording.capture)), recording.report
    for member in ("blocked_ns", "answer", "window_ns", "totals"):
        check(page.data["report"][member] == report[member], f"another {member}")
    length = sum(page.columns["pathLength"])
    check_close("the critical path", length, report["critical_path"]["length_ns"], 0.001, 1000)
    text = "".join(page.parts.text)
    check(report["answer"]["parts"][0]["who"] in text and "critical path" in text, "the answer is not in the page's text")


def check_policy(page):
    """It allows its own script and style by their hashes, and nothing else."""
    check(len(page.parts.policies) == 1, f"{len(page.parts.policies)} policies")
    policy = page.parts.policies[0]
    check("default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy, policy)
    check(len(re.findall(r"(script|style)-src 'sha256-[A-Za-z0-9+/=]{44}'", policy)) == 2, policy)
    for tag, attributes in page.parts.tags:
        loads = [name for name in attributes if name in ("src", "srcset", "poster", "data", "action")]
        check(not loads and not (tag == "link"), f"<{tag} {attributes}>")


def check_quiet(seen):
    check(not seen["requests"], f"requests: {seen['requests']}")
    check(not seen["refused"] and not seen["errors"] and not seen["dialogs"], f"{seen}")


def in_browser(browser, path, *steps, **wanted):
    seen = browser.open(path, READY, *steps, **wanted)
    check_quiet(seen)
    return seen["results"][1:]


def test_no_request(context):
    """Nothing is asked for; a page that asks is refused by its own policy; without a network it is the same page."""
    browser = Browser()
    path = export(context, context.record("convoy", threads=3, undisturbed=False).capture)
    check_policy(Page(path))
    rows = {"evaluate": "wallprof.model.rows.length"}
    count, = in_browser(browser, path, rows)
    text = path.read_text()
    asking = context.path("asking.html")
    asking.write_text(text.replace("<main", '<img src="http://127.0.0.1:9/x.png"><main', 1))
    seen = browser.open(asking, READY)
    check(seen["refused"] and not seen["requests"], f"the policy lets a picture through: {seen}")
    expect_failure(check_quiet, seen)
    expect_failure(check_policy, Page(asking))
    asking.write_text(re.sub("<meta http-equiv[^>]*>", "", text).replace("<main", '<img src="http://127.0.0.1:9/x.png"><main', 1))
    seen = browser.open(asking, READY)
    check(len(seen["requests"]) == 1, f"the interception sees nothing: {seen}")
    expect_failure(check_quiet, seen)
    if os.geteuid() == 0:
        seen = browser.open(path, READY, rows, before=["unshare", "--net"])
        check_quiet(seen)
        check(seen["results"][-1] == count, "another page without a network")


# The sums of ranges of 10 ns, in which two segments of 3 and 2 ns are folded to points: at 5, and at the end.
PARTS = """(() => {
    const model = {start: [0, 5, 5, 10], weight: [5, 3, 5, 2], stack: [0, 0, 0, 0], category: [0], categories: [{}]};
    const series = {first: 0, last: 4, start: 0, end: 10};
    return [[0, 5], [5, 10 - 1e-9], [20, 30], [0, 10 - 1e-9], [6, 10], [0, 10], [10, 20]].map(([from, to]) =>
        Math.round(wallprof.sumRange.call({model}, series, from, to)));
})()"""


def test_sums_in_browser(context):
    """What the page's own script adds up is the same; whole, and in two halves of the window."""
    browser = Browser()
    recording = context.record("pingpong", rounds=1500, undisturbed=False)
    path = export(context, recording.capture)
    sums, halves, parts = in_browser(browser, path, {"evaluate": """wallprof.model.ofThread.map((series, i) =>
        [wallprof.model.threads[i].tid, wallprof.timesByState(wallprof.model, series)])"""},
        {"evaluate": """wallprof.model.ofThread.map((series) => [0, 1].map((half) => wallprof.sumRange(series,
        half * wallprof.model.window_ns / 2, (half + 1) * wallprof.model.window_ns / 2)))"""}, {"evaluate": PARTS})
    check(parts == [5, 8, 0, 13, 4 + 2, 15, 0], f"segments without a length, on the borders of ranges: {parts}")

    def check_browser(report):
        for tid, states in sums:
            wanted = next(thread["states"] for thread in report["threads"] if thread["tid"] == tid)
            for state, ns in wanted.items():
                check(abs(states[state] - ns) < 1, f"{tid}: {state} {states[state]}, should be {ns}")

    check_browser(recording.report)
    for (first, second), (_, states) in zip(halves, sums):
        check_close("two halves", first + second, sum(states.values()), 1e-9, 2)
    recording.report["threads"][0]["states"]["blocked"] += 1000
    expect_failure(check_browser, recording.report)


HOSTILE = "</script><img src=x onerror=alert(1)><!--&amp;\u202e"


def hostile_capture(context):
    """Names of a program, its thread, arguments, a file that is waited for, and bytes that are not UTF-8."""
    folder = context.path("hostile")
    folder.mkdir()
    program = folder / "</script><b>"
    os.makedirs(program.parent, exist_ok=True)
    script = context.path("hostile.py")
    script.write_text(f"""
import ctypes, os, sys, threading, time
name = {HOSTILE!r}
ctypes.CDLL(None).prctl(15, b"<b>\\xff\\x01'\\"</b>", 0, 0, 0)
path = os.path.join({str(folder)!r}.encode(), b"<img onerror=x>\\x1b[31m\\xfe.fifo")
os.mkfifo(path)
def write():
    time.sleep(0.05)
    os.write(os.open(path, os.O_WRONLY), b"x" * 10)
thread = threading.Thread(target=write)
thread.start()
os.read(os.open(path, os.O_RDONLY), 10)
thread.join()
""")
    context.wallprof("record", "-q", "-o", "h.capture", "--", "/usr/bin/python3", script, HOSTILE)
    return context.path("h.capture")


def check_harmless(seen):
    check_quiet(seen)
    ran, markup = seen["results"][-2:]
    check(not ran and markup == 0, f"a name became markup: {seen['results']}")


def test_hostile_names(context):
    """Whatever names hold, they are text: in the file as a parser sees it, and in the browser."""
    path = export(context, hostile_capture(context))
    page = Page(path)
    tags = {tag for tag, _ in page.parts.tags}
    check("img" not in tags and "b" not in tags, f"names are elements: {tags}")
    check(len(page.parts.scripts) == 2, f"{len(page.parts.scripts)} scripts")
    check("<img src=x onerror=alert(1)>" in "".join(page.parts.text), "the arguments are not in the text")
    check(not set("".join(page.parts.text)) & set(map(chr, [*range(9), *range(11, 32), 127])), "control characters")
    browser = Browser()
    look = [{"evaluate": "window.hacked === true"}, {"evaluate": "document.querySelectorAll('img, [onerror]').length"}]
    steps = [READY, {"type": "/"}, {"type": "onerror"}, {"press": "Enter"}, *look]
    check_harmless(browser.open(path, *steps))
    marked = context.path("marked.html")
    marked.write_text(path.read_text().replace("<h1>", "<h1><img onerror=x>", 1))
    expect_failure(check_harmless, browser.open(marked, *steps))


def test_old_browser(context):
    """Without DecompressionStream or without scripts the answer and the report are there, and it is said why."""
    browser = Browser()
    path = export(context, context.record("convoy", threads=3, undisturbed=False).capture)
    look = {"evaluate": "[document.getElementById('problem').innerText, document.getElementById('answer').innerText, "
                        "document.getElementById('text-report').open, document.getElementById('page').hidden]"}
    seen = browser.open(path, {"wait": "#problem:not([hidden])"}, look, script="delete window.DecompressionStream")
    problem, answer, report_open, hidden = seen["results"][-1]
    check("no DecompressionStream" in problem and "critical path" in answer and report_open and hidden, f"{seen}")
    # The oldest browsers that the page names do not know this function.
    focus = {"evaluate": "document.getElementById('flame-canvas').focus()"}
    in_browser(browser, path, focus, {"press": "ArrowDown"}, {"press": "ArrowLeft"}, script="delete Array.prototype.findLastIndex")
    seen = browser.open(path, {"wait": "#text-report[open]"}, context={"javaScriptEnabled": False})
    check(not seen["errors"] and not seen["requests"], f"{seen}")


def test_damaged(context):
    """Data that are cut are said to be, and the rest of the page stays."""
    browser = Browser()
    path = export(context, context.record("burn", threads=1, ms=50, undisturbed=False).capture)
    text, cut = path.read_text(), context.path("cut.html")
    start = text.index('id="data">') + 10
    cut.write_text(text[:start] + text[start:start + 4000] + text[text.index("</script>", start):])
    seen = browser.open(cut, {"wait": "#problem:not([hidden])"}, {"evaluate": "document.getElementById('problem').innerText"})
    check("cannot be shown" in seen["results"][-1], f"{seen}")


def test_keys_and_mouse(context):
    """Zoom, move, selection, search, a link of a table, and Esc do what the page says."""
    browser = Browser()
    path = export(context, context.record("convoy", threads=3, undisturbed=False).capture)
    view = {"evaluate": "(() => { const s = wallprof.state; return [s.from, s.to, s.selection, s.chosen.size, s.marks !== null]; })()"}
    window = {"evaluate": "wallprof.model.window_ns"}
    steps = [window, {"press": "+"}, view, {"press": "d"}, view, {"press": "ArrowLeft"}, view, {"press": "0"}, view,
             {"drag": ["#strips", 400, 10, 600, 14]}, view, {"press": "z"}, view, {"press": "/"}, {"type": "mutex"}, {"press": "Enter"},
             view, {"press": "Escape"}, {"press": "Escape"}, view, {"click": "#table-waits td button"}, view,
             {"click": "#labels button"}, view]
    results = in_browser(browser, path, *steps)
    all_ns = results[0]
    zoomed, moved, back, whole, selected, inside, found, undone, marked, chosen = [r for r in results[1:] if isinstance(r, list)]
    check(zoomed[1] - zoomed[0] < 0.7 * all_ns, f"+: {zoomed}")
    check(moved[0] > zoomed[0] and back[0] == pytest.approx(zoomed[0], abs=2), f"d, left: {moved} {back}")
    check(whole[:2] == [0, all_ns] and selected[2] and not whole[2], f"0, drag: {whole} {selected}")
    check(inside[:2] == pytest.approx(selected[2], abs=300), f"z: {inside}, should be {selected[2]}")
    check(found[4] and not undone[4] and marked[4] and chosen[3] == 1, f"search, Esc, link, choice: {found} {undone} {marked} {chosen}")
    check(found[1] - found[0] < all_ns, f"a match is not gone to: {found}")


def test_flame_graph(context):
    """Its sums are those of the chosen threads and range, in each form; idle waits are left out unless wanted."""
    browser = Browser()
    recording = context.record("burn", threads=2, ms=80, undisturbed=False)
    path = export(context, recording.capture)
    sums = {"evaluate": """(() => { const {model, makeFlameTree} = wallprof; return ['merged', 'threads', 'inverted'].map((mode) =>
        makeFlameTree(model, model.ofThread, 0, model.window_ns, mode, true).total); })()"""}
    leaves = {"evaluate": """(() => { const {model, makeFlameTree} = wallprof, sum = (node) => node.self + [...node.children.values()]
        .reduce((ns, child) => ns + sum(child), 0); return sum(makeFlameTree(model, model.ofThread, 0, model.window_ns, 'merged', true)); })()"""}
    totals, total = in_browser(browser, path, sums, leaves)
    wanted = sum(thread["lifetime_ns"] for thread in recording.report["threads"])
    for got in [*totals, total]:
        check_close("the flame graph", got, wanted, 1e-9, 10)
    expect_failure(check_close, "the flame graph", totals[0], wanted + MS, 1e-9, 10)


MANY = """(() => {
    const {model, makeFlameTree} = wallprof, Own = Float64Array;
    let numbers = 0;
    window.Float64Array = class extends Own { constructor(count) { super(count); numbers += count > 100 ? count : 0; } };
    const {total} = makeFlameTree(model, model.ofThread, 0, model.window_ns, 'threads', true);
    window.Float64Array = Own;
    return [numbers, model.category.length, total];
})()"""


def check_cost(seen):
    numbers, stacks, _ = seen
    check(stacks > 100 and numbers <= stacks, f"by thread: sums of {numbers} stacks, where there are {stacks}")


def test_flame_graph_by_thread(context):
    """Its cost does not grow as threads by stacks: sums of all stacks are not made again for each thread."""
    path = export(context, context.record("convoy", threads=8, undisturbed=False).capture)
    seen, again = in_browser(Browser(), path, {"evaluate": MANY}, {"evaluate": MANY})
    check_cost(seen)
    check(seen == again and seen[2] > 0, f"other sums the second time: {seen} {again}")
    expect_failure(check_cost, [seen[1] * 9, *seen[1:]])


EVENTS = 1_000_000
FRAME_MS = 1000 / 30
ZOOM = """(async () => {
    const {tracks} = wallprof.state, times = [];
    for (let i = 0; i < 40; i++) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const before = performance.now();
        tracks.zoom(i < 20 ? 0.8 : 1 / 0.8);
        tracks.draw();
        times.push(performance.now() - before);
    }
    return times.sort((one, other) => one - other);
})()"""


def check_fast(seen):
    """The median does not depend on what else the machine does. Reading is CPU time of the page's main thread."""
    times = seen["results"][-1]
    check(times[len(times) // 2] < FRAME_MS, f"a picture takes {times[len(times) // 2]:.1f} ms")
    return times[len(times) // 2]


# When the frame with the timeline begins, and when all is there.
CLOCK = """new MutationObserver(() => requestAnimationFrame(() => {
    (window.seenAt ||= {})[document.documentElement.dataset.ready] ??= performance.now();
})).observe(document, {attributes: true, subtree: true, attributeFilter: ['data-ready']});"""
TIMES = """new Promise((resolve) => setTimeout(() => resolve([
    performance.getEntriesByName('first-contentful-paint')[0].startTime, seenAt.data, seenAt.all]), 300))"""


def test_large(context):
    """A capture of a million events: the file's size, its sums, and how fast it is read and zoomed."""
    context.wallprof("record", "-q", "-o", "short.capture", "--", *context.workload("pingpong", cpus=2, rounds=20000))
    subprocess.run([BUILD / "tools" / "bench-repeat", context.path("short.capture"), context.path("long.capture"), str(EVENTS)],
                   check=True, capture_output=True)
    path = export(context, "long.capture")
    page, size = Page(path), path.stat().st_size
    check(size <= 3_000_000, f"{size} bytes")
    check_sums(page, read_report(context, context.path("long.capture")))
    check(page.data["folded"]["intervals"] > 0, "nothing is folded")
    browser = Browser()
    opened = browser.open(path, READY)
    check_quiet(opened)
    check(opened["cpu_s"] < 3, f"the page takes {opened['cpu_s']} s of CPU time to open")  # 1 s on an idle machine
    seen = browser.open(path, READY, {"evaluate": ZOOM})
    median = check_fast(seen)
    print(f"#   {size} bytes, opened in {opened['cpu_s']:.2f} s of CPU time, a picture in {median:.1f} ms")
    answer, timeline, everything = in_browser(browser, path, {"evaluate": TIMES}, script=CLOCK)[0]
    check(answer > 0 and 0 < timeline <= everything, f"answer {answer}, timeline {timeline}, all {everything} ms")
    print(f"#   by the clock: the answer after {answer:.0f} ms, the timeline after {timeline:.0f}, all after {everything:.0f}")
    seen["results"][-1] = [ms + FRAME_MS for ms in seen["results"][-1]]
    expect_failure(check_fast, seen)


def test_forms(context):
    """A phone, a small laptop, dark colours and paper: nothing is wider than the page, and all tables are tables."""
    browser = Browser()
    path = export(context, context.record("convoy", threads=3, undisturbed=False).capture)
    width = {"evaluate": "[document.scrollingElement.scrollWidth, innerWidth, getComputedStyle(document.body).backgroundColor, "
                         "document.querySelectorAll('table').length, document.querySelectorAll('table:not(:has(caption))').length, "
                         "document.querySelectorAll('canvas:not([aria-label]):not([aria-hidden])').length]"}
    light = in_browser(browser, path, width, context={"viewport": {"width": 1280, "height": 720}})[0]
    phone = in_browser(browser, path, width, context={"viewport": {"width": 390, "height": 844}, "isMobile": True, "hasTouch": True})[0]
    paper = context.path("p.pdf")
    dark = in_browser(browser, path, width, {"pdf": str(paper)}, context={"colorScheme": "dark"})[0]
    for seen in (light, phone, dark):
        check(seen[0] <= seen[1] and seen[3] > 5 and seen[4] == 0 and seen[5] == 0, f"{seen}")
    check(light[2] != dark[2], f"one background in both modes: {light[2]}")
    check(phone[1] == 390 and paper.read_bytes().startswith(b"%PDF"), f"{phone}")


def check_first_screen(seen):
    bottom, height, length = seen
    check(length > 10000, f"the command is cut: {length} characters")
    check(bottom < height, f"the answer's table ends at {bottom} px, below the first screen of {height}")


def test_long_command(context):
    """A script of many lines as an argument is there in whole, but does not push the answer off the first screen."""
    script = "\n".join(f": line {i} of a long script" for i in range(context.random.randint(600, 900)))
    context.wallprof("record", "-q", "-o", "l.capture", "--", "sh", "-c", script + "\nsleep 0.02")
    path = export(context, context.path("l.capture"))
    look = {"evaluate": "[document.getElementById('answer-parts').getBoundingClientRect().bottom, innerHeight, "
                        "document.querySelector('h1').textContent.length]"}
    browser, screen = Browser(), {"viewport": {"width": 1280, "height": 720}}
    check_first_screen(in_browser(browser, path, look, context=screen)[0])
    tall = {"evaluate": "document.querySelector('h1').style.maxHeight = 'none'"}
    expect_failure(check_first_screen, in_browser(browser, path, tall, look, context=screen)[-1])


def test_output_option(context):
    """A command is recorded into a page at once; the next step that is named is one that works."""
    needs_root()
    done = context.wallprof("-o", "now.html", "--", "sleep", "0.05")
    check("next: open now.html in a browser" in done.stderr + done.stdout, done.stderr)
    check(context.path("now.capture").exists(), "no capture")
    check_sums(Page(context.path("now.html")), read_report(context, context.path("now.capture")))
    reports = [context.wallprof("report", "--json", context.path(name)).stdout for name in ("now.html", "now.capture")]
    check(reports[0] == reports[1], "the report of a page is not that of the capture beside it")
    whole = context.path("now.html").read_bytes()
    done = subprocess.run(["sh", "-c", '"$0" export -q --format html -o - now.capture', WALLPROF],
                          cwd=context.folder, capture_output=True)
    check(done.returncode == 0 and done.stdout == whole, f"another page on standard output: {done.stderr[-300:]}")
