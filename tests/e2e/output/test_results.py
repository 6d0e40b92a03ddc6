# SPDX-License-Identifier: GPL-2.0-or-later
"""Which files belong to a recording, and which of them a command takes: either, or the last one made here."""
import gzip
import json
import os
import signal
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from harness import GIVE_UP_S, WALLPROF, capture_of, check, expect_failure

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about no kernel")]


def record(context, name, seconds=0):
    """Records a command, which tells the recordings apart. It has the time of `seconds` after a round one."""
    output = context.path(name)
    context.wallprof("-q", "-o", output, "--", "sh", "-c", f": {name}")
    for path in (output, capture_of(output)):
        os.utime(path, (1_700_000_000 + seconds,) * 2)
    return output


def command_of(context, *arguments):
    return json.loads(context.wallprof("report", "--json", *arguments, cwd=context.folder).stdout)["command"]


def check_taken(context, name, *arguments):
    taken = command_of(context, *arguments)
    check(taken == f"sh -c ': {name}'", f"{arguments}: {taken!r}, should be {name}")


def opened_name(context, *arguments):
    """Returns the name of the profile that `wallprof open` serves."""
    process = context.start([WALLPROF, "open", "--no-browser", *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, cwd=context.folder)
    page = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=GIVE_UP_S)
    return unquote(unquote(page.partition("/from-url/")[2].partition("/?")[0])).rpartition("/")[2]


def test_either_file(context):
    profile = record(context, "first.json.gz")
    trace = record(context, "second.trace.json")
    for path, name in ((profile, "first.json.gz"), (capture_of(profile), "first.json.gz"), (trace, "second.trace.json"),
                       (capture_of(trace), "second.trace.json")):
        check_taken(context, name, path)
        check(opened_name(context, path) == name, f"{path} is opened as {opened_name(context, path)}")
    context.wallprof("export", "-o", context.path("again.json"), profile)
    check(json.loads(context.path("again.json").read_text())["meta"]["product"]
          == json.loads(gzip.decompress(profile.read_bytes()))["meta"]["product"], "the export is of another one")
    check_taken(context, "first.json.gz", f"{profile}.capture")  # the name that earlier versions gave
    context.wallprof("report", context.path("third.json.gz.capture"), status=1)
    expect_failure(lambda: check_taken(context, "first.json.gz", trace))
    for path in (profile, capture_of(profile)):
        path.rename(f"{path}.old")
    for path in (profile, capture_of(profile)):
        check_taken(context, "first.json.gz", f"{path}.old")
        check(opened_name(context, f"{path}.old") == "first.json.gz.old", f"of {path}.old another one is opened")


def test_last_one(context):
    """Without an argument it is the one that was made last, whatever else lies there."""
    (context.folder / "package.json").write_text("{}")
    (context.folder / "notes.capture").write_text("none of wallprof's")
    for command in ("report", "open", "export"):
        done = context.wallprof(command, status=1, cwd=context.folder)
        check("in the working directory" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)
    names = [f"{word}.json.gz" for word in context.random.sample(["a", "b", "c", "d"], 4)]
    for number, name in enumerate(names):
        record(context, name, number)
        check_taken(context, name)
        check(opened_name(context) == name, f"{opened_name(context)} is opened, not {name}")
    done = context.wallprof("report", "--json", cwd=context.folder)
    check(f"{names[-1].removesuffix('.json.gz')}.capture is the last" in done.stderr, done.stderr)
    os.utime(capture_of(context.path(names[0])), (1_700_000_100,) * 2)
    check_taken(context, names[0])
    expect_failure(lambda: check_taken(context, names[-1]))


def test_open_a_capture(context):
    """A capture without a profile, or with one of an older recording, gets one."""
    capture = context.path("c.capture")
    context.wallprof("record", "-q", "-o", capture, "--", "true")
    check(opened_name(context, capture) == "c.json.gz" and context.path("c.json.gz").exists(), "no profile")
    stale = context.path("c.json.gz")
    stale.write_bytes(gzip.compress(b"{}"))
    os.utime(stale, (1_700_000_000,) * 2)
    check(opened_name(context, capture) == "c.json.gz", "not opened")
    check("meta" in json.loads(gzip.decompress(stale.read_bytes())), "the old profile was opened")


def test_discarded(context):
    output = context.path("p.json.gz")
    context.wallprof("-q", "--discard-capture", "-o", output, "--", "true")
    check(sorted(path.name for path in context.folder.iterdir()) == ["p.json.gz"], "more is left")
    done = context.wallprof("report", output, status=1)
    check("--discard-capture" in done.stderr, done.stderr)
    context.wallprof("-q", "-o", output, "--", "true", env=dict(os.environ, WALLPROF_OPTIONS="--discard-capture"))
    check(not capture_of(output).exists(), "the environment did not count")
    context.wallprof("-q", "--keep-capture", "-o", output, "--", "true",
                     env=dict(os.environ, WALLPROF_OPTIONS="--discard-capture"))
    check(capture_of(output).exists(), "the command line did not count")


def test_open_when_done(context):
    """--open serves the profile when the command has ended; what the command printed is all that is on stdout."""
    process = context.start([WALLPROF, "--open", "--no-browser", "-o", context.path("p.json.gz"), "--", "sh", "-c",
                             "echo out; exit 3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "/from-url/" in line:
            break
    check("p.json.gz" in unquote(unquote(lines[-1])), f"{lines}")
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=GIVE_UP_S) == 3, f"status {process.returncode}")
    check(process.stdout.read() == "out\n", "there is more on stdout")


def test_nothing_on_stdout(context):
    folder = Path(context.folder)
    for arguments in (["-o", folder / "a.json", "-a", "-d", "50ms"], ["record", "-o", folder / "b.capture", "-a", "-d", "50ms"],
                      ["export", "-o", folder / "c.json", folder / "b.capture"]):
        done = context.wallprof(*arguments)
        check(done.stdout == "" and done.stderr, f"{arguments}: {done.stdout!r} {done.stderr!r}")
