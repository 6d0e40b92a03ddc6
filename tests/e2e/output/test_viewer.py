# SPDX-License-Identifier: GPL-2.0-or-later
"""Against another reader of the file."""
import pytest

from harness import (MS, STATES, Viewer, by_state, check, check_close, expect_failure,
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
