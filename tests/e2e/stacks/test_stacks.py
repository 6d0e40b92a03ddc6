# SPDX-License-Identifier: GPL-2.0-or-later
"""The report's ends of user stacks are those of the capture's records."""
import json
import struct
import subprocess
from collections import Counter

from harness import MS, WORKLOADS, Profile, Skip, by_state, check, expect_failure, needs_command

SWITCH, SAMPLE, STACK, WINDOW = 1, 16, 17, 34  # docs/reference/capture-format.md
SWITCH_PREV, WINDOW_START, WINDOW_END, STACK_USER = 1, 1, 2, 1
FRAME_POINTERS, TRUNCATED = 1, 2


def records(capture):
    """(kind, flags, ns, bytes) of each, without wallprof's reader."""
    plain = subprocess.run(["zstd", "-dcq", capture], capture_output=True, check=True).stdout
    at = 0
    while at < len(plain):
        length, kind, flags, _cpu, ns = struct.unpack_from("<IBBHQ", plain, at)
        yield kind, flags, ns, plain[at:at + length]
        at += length


def count_references(capture):
    """Counts the ends of the user stacks that the window's ticks and switch-outs refer to."""
    window, references, results = {}, [], {}
    for kind, flags, ns, data in records(capture):
        if kind == WINDOW:
            window[flags & (WINDOW_START | WINDOW_END)] = ns
        elif kind == SAMPLE:
            references.append((ns, struct.unpack_from("<Q", data, 32)[0]))
        elif kind == SWITCH and flags & SWITCH_PREV:
            references.append((ns, struct.unpack_from("<Q", data, 64)[0]))
        elif kind == STACK and flags & STACK_USER:
            stack, result = struct.unpack_from("<Q6xH", data, 16)
            results.setdefault(stack, result)
    return Counter(results.get(stack, "lost") for ns, stack in references
                   if stack and window[WINDOW_START] <= ns <= window[WINDOW_END])


def extra(profile, label):
    return [entry["value"] for section in profile.meta["extra"] for entry in section["entries"]
            if entry["label"] == label]


def check_counts(stacks, counts, orphans):
    """orphans: so many ticks have no place in the timeline; they are not counted."""
    reported = stacks["results"]
    check(0 <= sum(counts.values()) - stacks["walked"] <= orphans,
          f"{stacks['walked']} stacks walked; the capture refers to {sum(counts.values())}")
    for name, result in (("frame_pointers", FRAME_POINTERS), ("too_deep", TRUNCATED),
                         ("lost", "lost")):
        check(0 <= counts[result] - reported[name] <= orphans,
              f"{reported[name]} {name}; there are {counts[result]}")
    check(sum(reported.values()) == stacks["walked"], "results that are not those of the stacks")
    by_object = Counter()
    for part in stacks["objects"]:
        by_object.update(part["results"])
    check({k: n for k, n in reported.items() if n} == dict(by_object),
          "the objects' results do not add up to all")


def check_line(profile, stacks):
    lines = extra(profile, "user stacks")
    check(len(lines) == 1 and lines[0].startswith(f"{stacks['walked']} walked"),
          f"the profile says {lines} of {stacks['walked']} stacks")


def test_references(context):
    needs_command("zstd")
    recording = context.record("pingpong", "--stacks", "fp",
                               rounds=context.random.randrange(200, 400))
    stacks, counts = recording.report["stacks"], count_references(recording.capture)
    check(counts[FRAME_POINTERS] > 200, f"nothing to count: {counts}")
    orphans, = extra(recording.profile, "ticks outside any running interval")
    check_counts(stacks, counts, orphans)
    check_line(recording.profile, stacks)
    counts[FRAME_POINTERS] -= 1
    expect_failure(check_counts, stacks, counts, orphans)
    counts[TRUNCATED] += 1
    expect_failure(check_counts, stacks, counts, orphans)
    stacks["walked"] += 1
    expect_failure(check_line, recording.profile, stacks)


def check_32_bit(report, rounds):
    """Every sleep and every tick in the program is 32-bit code, and says so; and so is its exec."""
    found = [part["results"] for part in report["stacks"]["objects"]
             if part["name"] in ("code-32", None)]
    check(all(list(results) == ["code_32_bit"] for results in found)
          and sum(results["code_32_bit"] for results in found) >= rounds, f"{rounds} sleeps of 32-bit code: {found}")


def check_functions(profile, names):
    """Where it runs and where it sleeps, by the functions that its table of symbols has."""
    time = Counter()
    for thread in profile.threads:
        for i, weight in enumerate(thread.weights):
            state = by_state(thread.sample_categories[i], thread.leaves[i])
            time.update({name: weight for name in thread.frames_of(i) if state == "running" and name in names})
    check(time["work"] > 10 * MS and time["_start"] < time["work"] / 5, f"32-bit functions: {time}")


def test_32_bit_code(context):
    """Stacks that are not walked are counted separately, by first frame and reason. That frame has a name."""
    program, capture, output = WORKLOADS / "code-32", context.path("capture"), context.path("p.json.gz")
    rounds = context.random.randint(20, 40)
    if not program.exists():
        raise Skip("the compiler makes no 32-bit code")
    try:
        subprocess.run([program], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skip(f"this kernel runs no 32-bit code: {error}") from None
    context.wallprof("record", "-q", "-o", capture, "--", program, *["more"] * (rounds - 1))
    report = json.loads(context.wallprof("report", "--json", capture).stdout)
    check_32_bit(report, rounds)
    context.wallprof("export", "-q", "-o", output, capture)
    check_functions(Profile.load(output), ("_start", "work"))
    expect_failure(check_functions, Profile.load(output), ("_start", "other"))
    expect_failure(check_32_bit, report, report["stacks"]["walked"] + 1)
    for part in report["stacks"]["objects"]:
        part["results"]["complete"] = 1
    expect_failure(check_32_bit, report, rounds)
