# SPDX-License-Identifier: GPL-2.0-or-later
"""The critical path, of runs whose longest chain is known."""
import copy

from harness import MS, Untimely, check, check_timed, expect_failure, fewer, noise


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
        raise Untimely(f"{lost / MS:.1f} ms of the path are lost")


def check_relay(recording):
    """Whoever has the mutex is on the path for as long, and nobody else."""
    check_whole(recording)
    path, window = path_of(recording), recording.report["window_ns"]
    for runner in recording.truth.named("runner"):
        held = sum(end - begin for kind, begin, end in runner["waits"] if kind == "sleep")
        check_timed(f"{runner['name']} on the path", part_of(path, runner["tid"]), held, 0.02,
                    0.01 * window)


def test_relay(context):
    rng = context.random
    context.record_and_check("relay", check_relay, threads=8, rounds=fewer(20),
                             hold_us=rng.randint(1500, 3000), seed=rng.randint(1, 1 << 30))


def wall(recording):
    return sum(end - begin for _, begin, end in recording.truth.named("pipeline")[0]["waits"])


def check_pipeline(slow, fast):
    """The middle one is the path, and without its delay the run is shorter by what that took."""
    check_whole(slow)
    path = path_of(slow)
    middle = sum(t["ns"] for t in path["threads"] if t["name"] == "middle")
    check(middle >= 0.95 * path["length_ns"] - noise(path["length_ns"]),
          f"middle has {middle / MS:.1f} of {path['length_ns'] / MS:.1f} ms")
    check_timed("shorter by", wall(slow) - wall(fast), path["reasons"].get("[sleep]", 0), 0.05, MS)


def pipelines(context):
    blocks, delay_us = fewer(150), context.random.randint(2000, 4000)
    return [context.record("pipeline", undisturbed=False, blocks=blocks, delay_us=us)
            for us in (delay_us, 0)]


def test_pipeline(context):
    check_pipeline(*pipelines(context))


def test_negative(context):
    slow, fast = pipelines(context)
    altered = copy.copy(slow)
    altered.report = copy.deepcopy(slow.report)
    for thread in altered.report["critical_path"]["threads"]:
        thread["name"] = {"middle": "tail", "tail": "middle"}.get(thread["name"], thread["name"])
    expect_failure(check_pipeline, altered, fast)
    expect_failure(check_pipeline, slow, slow)
