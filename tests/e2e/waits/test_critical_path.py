# SPDX-License-Identifier: GPL-2.0-or-later
"""The critical path, of runs whose longest chain is known."""
import bisect
import copy

from harness import (IN_GUEST, MS, HostBusy, TimingFailure, check, check_timed, current, expect_failure, fewer, hit,
                     noise, unless_stolen)


HAND_OVER_NS = 100_000
SLEPT_NS = 50_000  # a thread that waited for a mutex longer than that was asleep


def path_of(recording):
    path = recording.report["critical_path"]
    check(path, "there is no critical path")
    return path


def part_of(path, tid):
    return next((t["ns"] for t in path["threads"] if t["tid"] == tid), 0)


def check_whole(recording):
    """It is as long as the run, and its parts add up to it."""
    path = path_of(recording)
    check(sum(t["ns"] for t in path["threads"]) == path["length_ns"], f"parts of {path}")
    check_timed("the path", path["length_ns"], recording.report["window_ns"], 0.01, MS)
    lost = path["lost_ns"] + path["unknown_waker_ns"]
    if lost > 0.01 * path["length_ns"]:
        raise TimingFailure(f"{lost / MS:.1f} ms of the path are lost")


def expected_parts(recording):
    """Returns {tid: ns} of the longest chain, from the runners' own accounts.

    It goes backwards from the last hold: a runner that waited for the mutex got it from the holder before; one that
    did not wait came from its own pause, and the hold before that.
    """
    holds = holds_of(recording)
    own, slept = {}, {}
    for runner in recording.truth.named("runner"):
        own[runner["tid"]] = [h for h in holds if h[2] == runner["tid"]]
        slept[runner["tid"]] = [kind == "mutex" for kind, _, _ in runner["waits"] if kind in ("mutex", "free")]
    parts, to, (begin, _, tid, _) = dict.fromkeys(own, 0), holds[-1][1], holds[-1]
    while True:
        parts[tid] += to - begin
        to, number = begin, [h[0] for h in own[tid]].index(begin)
        if slept[tid][number]:
            before = [h for h in holds if h[1] <= begin]
        else:
            before = own[tid][:number]
        if not before:
            return parts
        begin, end, other, _ = max(before, key=lambda h: h[1])
        parts[tid] += to - end
        to, tid = end, other


def check_relay(recording):
    """The holder of the mutex, and no other thread, is on the path while it holds it."""
    check_whole(recording)
    check_holders(recording)
    path, window = path_of(recording), recording.report["window_ns"]
    for tid, ns in expected_parts(recording).items():
        check_timed(f"{tid} on the path", part_of(path, tid), ns, 0.02, 0.01 * window)


def test_relay(context):
    rng = context.random
    options = {"threads": 8, "rounds": fewer(20), "hold_us": rng.randint(1500, 3000),
               "seed": rng.randint(1, 1 << 30)}
    # Behind a broken chain the path stays in the same thread, for a hold or two.
    unless_stolen(lambda: context.record("relay", **options),
                  lambda recording, _allowed_ns: check_relay(recording))


def holds_of(recording):
    """(begin, end, tid, name) of each time that a runner had the mutex."""
    return sorted((recording.at(begin), recording.at(end), t["tid"], t["name"])
                  for t in recording.truth.named("runner")
                  for kind, begin, end in t["waits"] if kind == "hold")


def check_holders(recording):
    """A wait for the mutex names its holder at the start of the wait."""
    holds, right, wrong = holds_of(recording), 0, []
    begins = [hold[0] for hold in holds]
    for runner in recording.truth.named("runner"):
        thread = recording.profile.thread(runner["tid"])
        for marker in thread.markers():
            hold = holds[bisect.bisect_right(begins, marker["start"]) - 1]
            # While it changes hands the clocks of three threads do not say whose it is.
            if marker["name"] != "Mutex wait" or not (
                    hold[0] + HAND_OVER_NS < marker["start"] < hold[1] - HAND_OVER_NS):
                continue
            reported = (thread.text(marker["data"].get("heldBy")), marker["data"].get("holder"))
            if reported == (hold[3], hold[2]):
                right += 1
            else:
                wrong.append(f"{runner['name']} waits for {reported}, should be {hold[3]}")
    check(right >= 0.4 * len(holds), f"only {right} waits of {len(holds)} name the holder: {wrong[:3]}")
    check(len(wrong) <= 0.01 * right, f"{len(wrong)} of {right + len(wrong)}: {wrong[:3]}")


def wall(recording):
    return sum(end - begin for _, begin, end in recording.truth.named("pipeline")[0]["waits"])


def check_pipeline(slow, fast):
    """The middle one is the path, and without its delay the run is shorter by what that took."""
    check_whole(slow)
    path = path_of(slow)
    middle = sum(t["ns"] for t in path["threads"] if t["name"] == "middle")
    # Its sleeps are on the path while those that wait for it do, and these when they do not yet.
    awake = sum(t["running_ns"] + t["runnable_ns"] for t in path["threads"] if t["name"] != "middle")
    check(middle + awake >= 0.95 * path["length_ns"] - noise(path["length_ns"]),
          f"middle has {middle / MS:.1f} of {path['length_ns'] / MS:.1f} ms, and {awake / MS:.1f} others awake")
    check_timed("middle on the path", middle, path["length_ns"], 0.15, 0)
    # To go to sleep and on again takes time, too, which is saved; an emulated CPU takes milliseconds.
    check_timed("shorter by", wall(slow) - wall(fast), path["reasons"].get("[sleep]", 0),
                0.25 if IN_GUEST else 0.05, BLOCKS * MS / 4)


# In a guest to begin takes a tenth of a second, which is not the middle's.
BLOCKS = 100 if IN_GUEST else 150


def pipelines(context):
    delay_us = hit(context.random.randint(2000, 4000))
    return [context.record("pipeline", blocks=BLOCKS, delay_us=us)
            for us in (delay_us, 0)]


def test_pipeline(context):
    check_pipeline(*pipelines(context))


def taken_by_tickers(recording, main):
    """ns that main waited for tickers that had the mutex, each time from when they took it, and for their end."""
    holds = sorted((begin, end) for t in recording.truth.named("ticker ")
                   for kind, begin, end in t["waits"] if kind == "hold")
    taken = contended = 0
    for kind, since, end in main["waits"]:
        within = [hold for hold in holds if since - HAND_OVER_NS <= hold[1] <= end]
        if kind == "condvar":
            taken += end - since
        elif kind == "mutex" and end - since >= SLEPT_NS and within:
            begin = within[-1][0]
            for hold in reversed(holds):
                if begin - HAND_OVER_NS < hold[1] <= begin:
                    begin = hold[0]
            taken, contended = taken + end - begin, contended + 1
    if not contended:
        raise TimingFailure("main never waited for a ticker")
    return taken


def check_tickers(recording):
    """Main is on the path while no ticker makes it wait, whatever the tickers sleep for."""
    check_whole(recording)
    path, (main,) = path_of(recording), recording.truth.named("tickers")
    # Behind its last wait it checks whether all are asleep, and which thread ends the path is chance.
    tail = recording.report["window_ns"] - recording.at(max(end for _, _, end in main["waits"]))
    # A thread that waits for a CPU may be on the path instead of main.
    late = sum(t["schedstat_delay_ns"] for t in recording.truth.threads)
    if late + tail > 0.1 * path["length_ns"]:
        # On a machine that the tests keep busy this may happen each time.
        kind = HostBusy if current.test.startswith("busy.") else TimingFailure
        raise kind(f"its threads waited {late / MS:.1f} ms for a CPU")
    check_timed("main on the path", part_of(path, main["tid"]),
                path["length_ns"] - taken_by_tickers(recording, main) - tail, 0.02, 8 * MS + tail + late)


def test_tickers(context):
    rng = context.random
    options = {"threads": rng.randint(1, 3), "ms": fewer(400), "period_us": rng.randint(20000, 45000),
               "hold_us": rng.randint(2000, 5000), "seed": rng.randint(1, 1 << 30)}
    recording = context.record("tickers", undisturbed=False, **options)
    check_tickers(recording)
    altered = copy.copy(recording)
    altered.report = copy.deepcopy(recording.report)
    main, *others = sorted(altered.report["critical_path"]["threads"], key=lambda t: -t["ns"])
    others[0]["ns"] += main["ns"] // 2
    main["ns"] -= main["ns"] // 2
    expect_failure(check_tickers, altered)


def test_negative(context):
    slow, fast = pipelines(context)
    altered = copy.copy(slow)
    altered.report = copy.deepcopy(slow.report)
    for thread in altered.report["critical_path"]["threads"]:
        thread["name"] = {"middle": "tail", "tail": "middle"}.get(thread["name"], thread["name"])
    expect_failure(check_pipeline, altered, fast)
    expect_failure(check_pipeline, slow, slow)
