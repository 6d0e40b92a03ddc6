# SPDX-License-Identifier: GPL-2.0-or-later
"""Against another reader of the file."""
import pytest

from harness import (MS, STATES, Recording, Viewer, by_state, check, check_close, expect_failure,
                     is_long, ledger_by_category)

pytestmark = pytest.mark.untimed


def check_viewer(recording):
    """profiler-cli loads the file, and its sums per thread are the ledger."""
    with Viewer() as viewer:
        viewer.load(recording.output)
        handles = viewer.thread_handles()
        for ledger in recording.report["threads"][:20]:
            check(ledger["tid"] in handles, f"profiler-cli does not show thread {ledger['tid']}")
            sums, thread = dict.fromkeys(STATES, 0), recording.profile.thread(ledger["tid"])
            categories = viewer.categories(handles[ledger["tid"]])
            for category, ns in categories.items():
                sums[by_state(category, "")] += ns
            for category, ns in ledger_by_category(thread, ledger).items():
                check_close(f"profiler-cli, {ledger['name']}: {category}",
                            categories.get(category, 0), ns, 0.005, MS)
            for state in STATES:
                check_close(f"profiler-cli, {ledger['name']}: {state}", sums[state],
                            ledger["states"].get(state, 0), 0.005, MS)


@pytest.mark.host_only("profiler-cli reads the same bytes anywhere")
def test_profiler_cli(context):
    recorded = (("sleeps", {"threads": 5}), ("convoy", {}), ("latepoll", {}), ("pingpong", {"rounds": 5000}),
                ("burn", {"threads": 3}), ("brief", {}))
    for name, options in recorded if is_long() else context.random.sample(recorded, 3):
        check_viewer(context.record(name, **options))
    recording = context.record("burn", threads=1, ms=100)
    recording.ledger(recording.truth.named("burner")[0]["tid"])["states"]["running"] += 10 * MS
    expect_failure(check_viewer, recording)


def main_rows(recording):
    """The first visible processes in the profile's order, each with the number of rows that the viewer sorts them by."""
    profile, rows, seen = recording.profile, [], set()
    for number in profile.meta["initialVisibleThreads"]:
        row = profile.rows[number]
        mains = [r for r in profile.rows if r.pid == row.pid and r.data["isMainThread"]]
        if mains and row.pid not in seen:
            seen.add(row.pid)
            rows.append((mains[0], sum(c != "Idle" for c in mains[0].sample_categories)))
    return rows


def check_order(rows):
    """The viewer puts processes of the type "default" first, and sorts by the number of rows; its sort is stable."""
    keys = [(row.data["processType"] != "default", -count) for row, count in rows]
    check(keys == sorted(keys), f"the viewer changes the order of {[(row.row, count) for row, count in rows]}")


def check_first_screen(viewer, script):
    """The selected row is the path; its call tree begins with the process and the state that it waited in."""
    tree = viewer.query("thread", "samples-top-down", "--thread", "t-0", "--include-idle")
    check(tree["friendlyThreadName"] == "critical path", tree["friendlyThreadName"])
    process = tree["regularCallTree"]["children"][0]
    state = process["children"][0]
    check((process["name"], state["name"]) == (script, "Sleep (timer)") and process["totalPercentage"] > 50,
          f"the path begins with {process['name']}, {state['name']}")


@pytest.mark.host_only("profiler-cli reads the same bytes anywhere")
def test_first_screen(context):
    """Of three sleepers that the shell waits for, the longest is the first line; rows keep their order."""
    output = context.path("p.json.gz")
    context.wallprof("-q", "--keep-capture", "-o", output, "--", "sh", "-c",
                     "sleep 0.03 & sleep 0.05 & i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 0.6; wait")
    recording = Recording(context, output)
    profile = recording.profile
    check(profile.meta["initialSelectedThreads"] == [0], profile.meta["initialSelectedThreads"])
    rows = main_rows(recording)
    check(rows[0][0].row == "critical path" and rows[1][0].row.startswith("sh -c "), [row.row for row, _ in rows])
    check_order(rows)
    expect_failure(check_order, rows[::-1])
    shown = [row.pid for row, _ in rows]  # as PIDs; the viewer does not show 0
    check(all(pid.isdigit() for pid in shown) and shown[0] == "0", f"PIDs on the first screen: {shown}")
    with Viewer() as viewer:
        viewer.load(output)
        check_first_screen(viewer, "sleep 0.6")
        expect_failure(check_first_screen, viewer, "sleep 0.05")
        colours = viewer.query("profile", "meta")["extra"][0]
        check(colours["label"] == "Colours" and [e["label"] for e in colours["entries"]] == profile.categories,
              f"the legend: {colours}")
