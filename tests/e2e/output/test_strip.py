# SPDX-License-Identifier: GPL-2.0-or-later
"""The strip that a person sees, the weights, the ledger and the workload's truth agree."""
import copy

from harness import (CALL_NS, CATEGORY_OF, IN_GUEST, LOAD_NS, MS, STATES, Failure, Profile, Recording, TimingFailure,
                     Truth, by_category, by_leaf, by_state, check, check_close, check_timed, current, expect_failure,
                     fewer, ledger_by_category, noise, noticeable, unless_stolen)


RUNNING = ("User", "Kernel", "Recording")


def check_categories(thread, ledger):
    """Per category: every wait as the ledger has it; user and kernel as the weights have."""
    weights, painted = thread.weight_by(by_category), thread.painted_by(by_category)
    for category, reported in ledger_by_category(thread, ledger).items():
        what = f"{thread.name} {thread.tid}, {category}"
        check_close(f"{what}: weights against ledger", weights.get(category, 0), reported, 0.005, MS)
        check_close(f"{what}: track against ledger", painted.get(category, 0), reported, 0.005, MS)
    for category in RUNNING:
        # The time of a change between the two within a stretch is only known to a tick.
        check_close(f"{thread.name} {thread.tid}, {category}: strip against weights",
                    painted.get(category, 0), weights.get(category, 0), 0.05,
                    max(2 * MS, 0.05 * ledger["states"].get("running", 0)))


def check_ledger(recording, tid):
    """Painted strip = sum of weights = ledger, per state and per reason."""
    thread, ledger = recording.profile.thread(tid), recording.ledger(tid)
    weights, painted = thread.weight_by(by_state), thread.painted_by(by_state)
    for state in STATES:
        reported = ledger["states"].get(state, 0)
        what = f"{thread.name} {tid}, {state}"
        check_close(f"{what}: weights against ledger", weights.get(state, 0), reported, 0.005, MS)
        check_close(f"{what}: track against ledger", painted.get(state, 0), reported, 0.005, MS)
    check_categories(thread, ledger)
    leaves = thread.weight_by(by_leaf)
    for leaf, reported in ledger["reasons"].items():
        check_close(f"{thread.name} {tid}, {leaf}", leaves.get(leaf, 0), reported, 0.005, MS)
    check_close(f"{thread.name} {tid}: states against lifetime", sum(ledger["states"].values()),
                ledger["lifetime_ns"], 0, 0)
    check_close(f"{thread.name} {tid}: weights against lifetime", sum(weights.values()),
                ledger["lifetime_ns"], 0, 1000)


# A wait for a condition variable ends with taking its mutex again.
PART_OF = {"condvar": "Lock"}


def category_of(thread, kind):
    """On a busy machine a thread may run for long on its way to its only wait. Then it cannot be decided that this is one
    between jobs, and it counts."""
    if kind == "between jobs" and current.test.startswith("busy.") and CATEGORY_OF[kind] not in thread.sample_categories:
        return CATEGORY_OF["condvar"]
    return CATEGORY_OF[kind]


def check_waits(recording, truth):
    """The waits that the thread itself timed are painted as what they were.

    A wait ends, by the thread's own clock, when it runs again, so the time that
    it was woken and waited for a CPU belongs to it.
    """
    thread = recording.profile.thread(truth["tid"])
    for kind in {k for k, _, _ in truth["waits"]}:
        category = category_of(thread, kind)
        inside, waited, runnable, others = 0, 0, 0, 0
        waits = [w for w in truth["waits"] if w[0] == kind]
        for _, begin, end in waits:
            painted = thread.painted_by(by_category, recording.at(begin), recording.at(end))
            inside += painted.get(category, 0)
            others += painted.get(PART_OF.get(kind), 0)
            runnable += painted.get("Runnable", 0)
            waited += end - begin
        check_timed(f"{truth['name']}: {kind}", inside + others + runnable, waited, 0.02,
                    MS + CALL_NS * len(waits))
        check(others <= max(inside, noise(0)),
              f"{truth['name']}: {kind} is mostly painted as {PART_OF.get(kind)}")
        others = sum(end - begin if CATEGORY_OF[k] == category else
                     thread.painted_by(by_category, recording.at(begin),
                                       recording.at(end)).get(category, 0)
                     for k, begin, end in truth["waits"]
                     if k != kind and category in (CATEGORY_OF[k], PART_OF.get(k)))
        # The thread itself does not measure its waits before its account begins.
        everywhere = thread.painted_by(by_category, recording.at(truth["begin_ns"]),
                                       recording.at(truth["end_ns"]))
        check_timed(f"{truth['name']}: {category} outside of its waits",
                    everywhere.get(category, 0), inside + others, 0.02, 2 * MS)


def check_ranges(recording, truth, rng):
    """No range of 5 % of a wait of 10 ms or more is empty.

    What the thread timed ends with a time on the run queue, which is another interval.
    """
    thread = recording.profile.thread(truth["tid"])
    for kind, begin, end in truth["waits"]:
        times = [thread.times[i]
                 for i in thread.samples_between(recording.at(begin), recording.at(end))
                 if thread.sample_categories[i] == CATEGORY_OF[kind]]
        length = times[-1] - times[0] if times else 0
        if length < 10 * MS:
            continue
        for _ in range(50):
            left = times[0] + rng.random() * 0.95 * length
            if thread.samples_between(left, left + 0.05 * length):
                continue
            # A thread with a spurious wakeup runs in between. A guest's CPU that its host lets wait has no ticks then.
            raise (TimingFailure if IN_GUEST else Failure)(
                f"{truth['name']}: nothing in 5 % of a wait of {length / MS:.1f} ms, "
                f"{(left - times[0]) / MS:.3f} ms after its start")


def check_all(context, recording):
    check(recording.truth is not None, "the workload wrote no truth")
    for truth in recording.truth.threads:
        check_ledger(recording, truth["tid"])
        check_waits(recording, truth)
        check_ranges(recording, truth, context.random)
    check(recording.report["contradictions"] == 0, "the timeline found missed switches")
    return recording


def test_sleeps(context):
    rng = context.random
    check_all(context, context.record("sleeps", threads=rng.randint(2, 6), ms=rng.randint(11, 90),
                                      rounds=rng.randint(2, 5)))


def test_threads_asleep(context):
    recording = check_all(context, context.record("sleeps", threads=300, rounds=1, step_us=0,
                                                  ms=context.random.randint(300, 600)))
    check(len(recording.truth.threads) == 301, "not 301 threads")


def test_convoy(context):
    rng = context.random
    recording = check_all(context, context.record("convoy", threads=rng.randint(3, 8),
                                                  hold_ms=rng.randint(5, 30), rounds=2))
    check(any(k == "mutex" for t in recording.truth.threads for k, _, _ in t["waits"]), "no convoy")


def test_convoy_with_busy_holder(context):
    check_all(context, context.record("convoy", threads=3, rounds=2, burn=1,
                                      hold_ms=context.random.randint(10, 40)))


def check_first_screen(recording, hold_ns):
    """The tracks that are visible first have the convoy, in purple, and no idle pool."""
    profile = recording.profile
    visible = [profile.rows[i] for i in profile.meta["initialVisibleThreads"]]
    convoy = [t for t in visible if t.weight_by(by_category).get("Lock", 0) >= 0.9 * hold_ns]
    check(len(convoy) >= 8, f"only {len(convoy)} threads of the convoy are visible")
    check(profile.color_of("Lock") == "purple", "a lock is not purple")
    check(not any(t.name.startswith("idle") for t in visible), "the idle pool is visible")


def test_pool_with_one_convoy(context):
    rng = context.random
    hold_ms = 400
    recording = context.record("pool", threads=20, idle=20, hold_ms=hold_ms, total_ms=1500,
                               convoy_at_ms=rng.randint(100, 900))
    check_all(context, recording)
    check_first_screen(recording, hold_ms * MS)
    expect_failure(check_first_screen, recording, 2 * hold_ms * MS)
    worker = recording.truth.named("worker")[0]
    thread = recording.profile.thread(worker["tid"])
    thread.sample_categories = ["Lock" if c == CATEGORY_OF["condvar"] else c
                                for c in thread.sample_categories]
    expect_failure(check_waits, recording, worker)


def test_many_short_intervals(context):
    recording = context.record("pingpong", rounds=fewer(context.random.randint(20000, 60000)),
                               undisturbed=False)
    for truth in recording.truth.threads:
        check_ledger(recording, truth["tid"])


def test_pipe(context):
    pause_us = context.random.randint(11000, 20000)
    unless_stolen(lambda: context.record("pingpong", rounds=20, pause_us=pause_us),
                  lambda recording, _allowed_ns: check_all(context, recording))


def test_late_answer(context):
    check_all(context, context.record("latepoll", rounds=3,
                                      delay_ms=context.random.randint(15, 120)))


def test_burn(context):
    check_all(context, context.record("burn", threads=1, ms=context.random.randint(100, 300)))


def test_burn_more_threads_than_cpus(context):
    recording = check_all(context, context.record("burn", threads=4, cpus=2,
                                                  ms=context.random.randint(150, 300)))
    runnable = sum(recording.ledger(t["tid"])["states"]["runnable"]
                   for t in recording.truth.named("burner"))
    check(runnable > 50 * MS, "four burners on two CPUs, and no thread waited for a CPU")


def test_brief_program(context):
    recording = check_all(context, context.record("brief", ms=20))
    main = recording.truth.threads[0]
    thread = recording.profile.thread(main["tid"])
    begin, end = recording.at(main["begin_ns"]), recording.at(main["end_ns"])
    born, died = thread.lifetime()
    # Loading and exiting are part of its time, too; waiting for a CPU then is no error.
    for what, outside in (("loading", thread.painted_by(by_state, born, begin)),
                          ("exiting", thread.painted_by(by_state, end, died))):
        busy = sum(ns for state, ns in outside.items() if state != "runnable")
        check_close(what, busy, 0, 0, 50 * MS + LOAD_NS, TimingFailure)
    check_timed("its lifetime", sum(thread.painted_by(by_state, begin, end).values()),
                main["end_ns"] - main["begin_ns"], 0.02, MS)


def test_fork_and_exec(context):
    depth = context.random.randint(2, 5)
    recording = context.record("chain", depth=depth, ms=context.random.randint(5, 20))
    for level in range(1, depth + 1):
        recording.truth = Truth(context.path(f"truth.json.{level}"))
        check_all(context, recording)
        check(recording.ledger(recording.truth.pid)["process"], "a process without a name")


def check_last_thread(recording, _allowed_ns):
    lifetimes = sorted(t["lifetime_ns"] for t in recording.report["threads"])
    check_timed("the main thread", lifetimes[0], 100 * MS, 0, 20 * MS + 2 * LOAD_NS)
    check_timed("the other thread", lifetimes[1], 400 * MS, 0, 20 * MS)
    loading = lifetimes[0] - 100 * MS  # until the other thread was made
    check_timed("the window", recording.report["window_ns"], loading + 400 * MS, 0, 20 * MS)


def test_main_thread_ends_first(context):
    """A process ends with its last thread."""
    output = context.path("p.json.gz")

    def record():
        context.wallprof("-q", "--keep-capture", "-o", output, "--",
                         *context.workload("die", ms=100, linger_ms=300))
        return Recording(context, output)

    unless_stolen(record, check_last_thread)


def test_curl_waits_for_the_network(context):
    delay = context.random.randint(200, 500)
    server = context.start(context.workload("late-server", delay_ms=delay), stdout=-1, text=True)
    port = int(server.stdout.readline())
    output = context.path("p.json")
    done = context.wallprof("-q", "-o", output, "--", "curl", "-s", f"http://127.0.0.1:{port}/")
    check(done.stdout == "late\n", f"curl said {done.stdout!r}")
    threads = [t for t in Profile.load(output).threads if t.process == "curl" or t.name == "curl"]
    network = max((t.painted_by(by_category).get("Network", 0) for t in threads), default=0)
    check_timed("curl's wait for the answer", network, delay * MS, 0.02, 5 * MS)


def test_negative(context):
    """Each check above notices a truth that is off by 10 %, or a hole in the strip."""
    recording = check_all(context, context.record("sleeps", threads=1, ms=60, rounds=3))
    truth = recording.truth.named("sleeper")[0]
    altered = copy.deepcopy(truth)
    altered["waits"][0][2] += noticeable((altered["waits"][0][2] - altered["waits"][0][1]) // 10)
    expect_failure(check_waits, recording, altered)
    altered = copy.deepcopy(truth)
    altered["waits"] = [["mutex", *w[1:]] for w in altered["waits"]]
    expect_failure(check_waits, recording, altered)
    thread, ledger = recording.profile.thread(truth["tid"]), recording.ledger(truth["tid"])
    ledger["states"]["blocked"] += 5 * MS
    expect_failure(check_ledger, recording, truth["tid"])
    keep = [i for i, t in enumerate(thread.times)
            if not recording.at(truth["waits"][1][1]) + 20 * MS < t
            < recording.at(truth["waits"][1][1]) + 40 * MS]
    thread.times = [thread.times[i] for i in keep]
    thread.sample_categories = [thread.sample_categories[i] for i in keep]
    expect_failure(check_ranges, recording, truth, context.random)
