# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: results, errors, and the files that are left behind."""
import gzip
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

import capture_reader
from verifier_budget import check_programs
from harness import (ROOT, WALLPROF, Profile, capture_of, check, expect_failure, needs_command, needs_root,
                     read_report, wait_until)

pytestmark = pytest.mark.untimed


def run(context, *arguments, **settings):
    return context.wallprof(*arguments, status=None, **settings)


def check_refused(done, status, *words):
    """It failed with this status, and one line says why."""
    check(done.returncode == status, f"status {done.returncode}, should be {status}: {done.stderr}")
    check(done.stdout == "", f"an error goes to stderr, not to stdout: {done.stdout!r}")
    for word in words:
        check(word.lower() in done.stderr.lower(), f"it does not say {word!r}: {done.stderr!r}")


def check_remaining(context, *names):
    left = sorted(p.name for p in context.folder.iterdir())
    check(left == sorted(names), f"left behind: {left}, should be {sorted(names)}")


def test_help_and_version(context):
    done = run(context, "--help")
    check(done.returncode == 0 and "wallprof record" in done.stdout and not done.stderr, "--help")
    done = run(context, "--version")
    check(done.returncode == 0 and done.stdout.startswith("wallprof ") and not done.stderr,
          f"--version says {done.stdout!r}")
    done = run(context, "--licenses")
    check(done.returncode == 0 and "GNU General Public License" in done.stdout and not done.stderr, "--licenses")


def test_bad_arguments(context):
    for arguments in (["--no-such-option"], ["-F", "0", "--", "true"], ["-F", "x", "--", "true"],
                      ["-p", "x", "-d", "1"], ["-p", "0", "-d", "1"], ["-p", "1,", "-d", "1"],
                      ["-p", "1", "-d", "soon"], ["-p", "1", "-d", "0"], ["-p", "1", "-d", "-1"],
                      ["--ring-size", "1", "--", "true"], ["--unwind-memory", "7M", "--", "true"],
                      ["--unwind-memory", "513M", "--", "true"], ["--kernel-stacks", "some", "--", "true"],
                      ["export", "a", "b"], ["report", "a", "b"], []):
        check_refused(run(context, *arguments), 125)
    check_remaining(context)


def test_suggestions(context):
    """wallprof suggests the option or command that a wrong word is close to."""
    for arguments, status, words in ((["--ouptut", "p.json", "--", "true"], 125, "did you mean --output?"),
                                     (["--kep-capture", "--", "true"], 125, "did you mean --keep-capture?"),
                                     (["report", "--jsn", "c"], 125, "did you mean --json?"),
                                     (["--nothing-like-it", "--", "true"], 125, "lists all options"),
                                     (["-o"], 125, "'-o' needs a value"),
                                     (["--quiet=3", "--", "true"], 125, "'--quiet' takes no value"),
                                     (["--ke", "--", "true"], 125, "'--ke' is ambiguous"),
                                     (["-Q", "--", "true"], 125, "unknown option '-Q'"),
                                     (["exprot", "c"], 127, "did you mean `wallprof export`?"),
                                     (["help", "reprot"], 127, "did you mean `wallprof help report`?"),
                                     (["report", "a", "b"], 125, "usage: wallprof report [OPTIONS] [CAPTURE|PROFILE]")):
        done = run(context, *arguments)
        check(done.returncode == status and words in done.stderr, f"{arguments}: {done.stderr!r}, not {words!r}")
    for arguments in (["help"], ["--help"]):
        check("wallprof record" in run(context, *arguments).stdout, f"{arguments}")
    check(run(context, "help", "report").stdout == run(context, "report", "--help").stdout != "", "help report")


def test_process_by_name(context):
    """A name instead of a process ID: wallprof says which processes have it."""
    name = f"p{context.random.randint(10000, 99999)}"
    shutil.copy(shutil.which("sleep"), context.path(name))
    wanted = []
    for count in (0, 1, 2):
        if count:
            wanted.append(context.start([context.path(name), "60"]).pid)
            wait_until(lambda: Path(f"/proc/{wanted[-1]}/comm").read_text() == f"{name}\n", "it has its name")
        done = run(context, "-p", name, "-d", "1")
        words = ("expected process IDs separated by commas", f"-p $(pidof {name})",
                 f"-p {','.join(map(str, sorted(wanted)))}")[count]
        check(done.returncode == 125 and words in done.stderr, f"{count}: {done.stderr!r}, not {words!r}")


def test_no_such_process(context):
    gone = subprocess.Popen(["true"])
    gone.wait()
    check_refused(run(context, "-p", gone.pid, "-d", "1"), 125, str(gone.pid))
    check_remaining(context)


def test_output_cannot_be_written(context):
    """Said before the command runs."""
    witness = context.path("witness")
    for output in (context.path("no/such/folder/p.json"), "/proc/p.json", context.folder):
        check_refused(run(context, "-o", output, "--", "touch", witness), 125, str(output).removesuffix(".json"))
        check(not witness.exists(), "the command ran all the same")


def test_output_device_is_full(context):
    done = run(context, "-o", "/dev/full", "--", "true")
    check(done.returncode != 0, "a full disk is no success")


def identity(path):
    st = path.lstat()
    return st.st_ino, st.st_mode, st.st_uid, st.st_size


def test_output_is_no_file(context):
    """A device or a pipe stays what it is; a capture needs a file."""
    needs_root()
    device, pipe = context.path("null"), context.path("pipe")
    os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.mkfifo(pipe)
    for path in (device, pipe):
        before = identity(path)
        check_refused(run(context, "record", "-o", path, "--", "touch", context.path("witness")), 125,
                      "not a regular file")
        check(identity(path) == before, f"{path} is another")
    check_remaining(context, "null", "pipe")


def test_link_as_output(context):
    """A link stays a link, and under sudo no file of another user is written through it."""
    needs_root()
    as_nobody = {"env": {**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody"}}
    context.folder.chmod(0o1777)  # without the sticky bit any user could have made the links, and none is followed
    theirs, link, ours = context.path("theirs"), context.path("link.capture"), context.path("ours.capture")
    theirs.write_text("precious")
    link.symlink_to("theirs")
    check_refused(run(context, "record", "-o", link, "--", "true", **as_nobody), 125, "not permitted")
    check(theirs.read_text() == "precious", "it was written over")
    planted = 'for i in $(seq 0 9); do ln -s theirs "ours.capture.tmp-$$-$i"; done; exec "$0" "$@"'
    done = subprocess.run(["sh", "-c", planted, WALLPROF, "record", "-q", "-o", ours, "--", "true"],
                          cwd=context.folder, **as_nobody)
    check(done.returncode == 0 and ours.stat().st_uid == 65534, f"{done.returncode}, of {ours.stat().st_uid}")
    check(theirs.read_text() == "precious" and theirs.stat().st_uid == 0, "a link that was planted was followed")
    ours.rename(context.path("moved.capture"))
    ours.symlink_to("moved.capture")
    run(context, "record", "-q", "-o", ours, "--", "true")
    check(ours.is_symlink() and context.path("moved.capture").stat().st_mode & 0o777 == 0o600, "not in its place")


def test_outputs_are_distinct(context):
    capture, profile = context.path("c.capture.json"), context.path("p.json")
    run(context, "record", "-q", "-o", capture, "--", "true")
    before = capture.read_bytes()
    for arguments in (["-o", capture], ["-o", profile, "--json-summary", capture],
                      ["-o", profile, "--json-summary", f"{context.folder}/./p.json"]):
        check_refused(run(context, "export", *arguments, capture), 1)
    check_refused(run(context, "--keep-capture", "-o", profile, "--json-summary", capture_of(profile), "--", "true"),
                  125, "p.capture")
    check(capture.read_bytes() == before, "the capture was written over")
    check_remaining(context, "c.capture.json")


def test_capture_with_any_name(context):
    """A capture is read whatever its name is, also if it is that of a profile for another program."""
    for name in ("c.folded", "c.pb", "c.svg", "c.speedscope.json"):
        capture = context.path(name)
        run(context, "record", "-q", "-o", capture, "--", "true")
        check(read_report(context, capture)["command"] == "true", f"{name}: another capture")
        capture.unlink()


def test_old_results(context):
    """Files that exist already become NAME.old, but only when the new ones are there; none is made of a failure."""
    capture, profile = context.path("p.capture"), context.path("p.json")
    capture.write_text("precious")
    profile.write_text("profile")
    check(run(context, "-q", "-o", profile, "--", "/no/such/command").returncode == 127, "the command ran")
    check((capture.read_text(), profile.read_text()) == ("precious", "profile"), "a failure wrote over them")
    check_remaining(context, "p.json", "p.capture")
    check(run(context, "-q", "-o", profile, "--", "true").returncode == 0, "it failed")
    old = [context.path(f"p.{suffix}.old") for suffix in ("capture", "json")]
    check([path.read_text() for path in old] == ["precious", "profile"], "the old files are others")
    check(read_report(context, capture)["command"] == "true", "no new capture")
    run(context, "-q", "--discard-capture", "-o", profile, "--", "true")
    check_remaining(context, "p.json", "p.json.old", "p.capture.old")
    check(old[1].read_text()[0] == "{", "the oldest profile is still there")
    for name in ("p.json.old", "p.capture.old"):
        shutil.move(context.path(name), context.path("moved"))
        context.path(name).mkdir()
        for arguments in (["-o", profile], ["record", "-o", context.path(name.removesuffix(".old"))]):
            check_refused(run(context, *arguments, "--", "touch", "witness"), 125, name, "folder")
        context.path(name).rmdir()
    check(not context.path("witness").exists(), "the command ran all the same")
    context.path("e.json").write_text("")
    run(context, "-q", "--discard-capture", "-o", context.path("e.json"), "--", "true")
    check(not context.path("e.json.old").exists(), "an empty file was kept")


def test_hangup(context):
    """The terminal goes: what was recorded until then is written, but not if nohup(1) asks to go on."""
    for ignored, least_s in ((False, 0), (True, 3)):
        output, begin = context.path(f"p{ignored}.json"), time.monotonic()
        recorder = context.start([WALLPROF, "-q", "-o", output, "--", "sleep", "3"], start_new_session=True,
                                 preexec_fn=lambda how=ignored: signal.signal(
                                     signal.SIGHUP, signal.SIG_IGN if how else signal.SIG_DFL))
        wait_until(lambda at=output: capture_of(at).exists(), "the recording has begun")
        recorder.send_signal(signal.SIGHUP)
        status = recorder.wait(timeout=context.timeout_s)
        check(status == (0 if ignored else 130), f"status {status}")
        check(time.monotonic() - begin >= least_s, "it did not go on")
        check(len(Profile.load(output).threads) > 0, "nothing was recorded")


def test_stdout_is_full(context):
    """Standard output belongs to the command, or to a report: nothing else is written to it."""
    capture = context.path("c.capture")
    run(context, "record", "-q", "-o", capture, "--", "true")
    with open("/dev/full", "w") as full:
        for arguments, status in ((["export", "-o", context.path("p.json")], 0), (["report"], 1)):
            done = subprocess.run([WALLPROF, *arguments, capture], stdout=full, stderr=subprocess.PIPE, text=True)
            check(done.returncode == status and ("stdout" in done.stderr) == bool(status), f"{arguments}: {done.stderr}")


def test_disk_full_while_the_command_runs(context):
    """The recording and its profile fail; the command is waited for, and its status is the answer."""
    needs_root()
    disk = context.path("disk")
    disk.mkdir()
    check(subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk]).returncode == 0, "no tmpfs")
    try:
        begin = time.monotonic()
        done = run(context, "-o", disk / "p.json", "--", "sh", "-c",
                   f"{' '.join(context.workload('pingpong', rounds=300000))}; sleep 2; exit 7")
        took = time.monotonic() - begin
        print(f"# {took:.1f} s, status {done.returncode}: {done.stderr.strip()[-200:]}", flush=True)
        check(done.returncode == 7 and took > 2, f"status {done.returncode} after {took} s")
        check("No space left" in done.stderr and "no longer recorded" in done.stderr, done.stderr)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_missing_privilege(context):
    """A user without rights gets the message before the command runs."""
    needs_root()
    program, witness = context.path("wallprof"), context.path("witness")
    shutil.copy(WALLPROF, program)
    context.folder.chmod(0o777)
    done = subprocess.run([program, "--", "touch", witness], capture_output=True, text=True,
                          user="nobody", group="nogroup", extra_groups=[], cwd=context.folder)
    check_refused(done, 125, "root")
    check(not witness.exists(), "the command ran all the same")


def test_exit_status(context):
    for arguments, status in ((["--status", "7"], 7), (["--status", "0"], 0),
                              (["--signal", "6"], 128 + 6), (["--signal", "9"], 128 + 9),
                              (["--signal", "15"], 128 + 15)):
        output = context.path("p.json.gz")
        done = run(context, "-q", "-o", output, "--", *context.workload("die"), *arguments)
        check(done.returncode == status, f"{arguments}: status {done.returncode}, not {status}")
        check(len(Profile.load(output).threads) >= 2, f"{arguments}: a thread is missing")
        output.unlink()


def test_command_cannot_be_run(context):
    plain = context.path("plain")
    plain.write_text("no program\n")
    check_refused(run(context, "-o", context.path("p.json"), "--", "/no/such/program"), 127,
                  "/no/such/program")
    check_refused(run(context, "-o", context.path("p.json"), "--", plain), 126, str(plain))
    check_remaining(context, "plain")


def test_stdout_is_the_commands(context):
    """A pipeline with wallprof in it carries the same bytes as without."""
    def digest(command):
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=context.folder) as process:
            return hashlib.file_digest(process.stdout, "sha256").hexdigest()

    tar = ["tar", "cf", "-", "-C", str(ROOT), "src", "export", "bpf"]
    output = context.path("p.json")
    plain = digest(tar)
    check(digest([WALLPROF, "-q", "-o", output, "--", *tar]) == plain, "stdout was changed")
    check(len(Profile.load(output).threads) >= 1, "and there is no profile")
    expect_failure(lambda: check(digest([*tar, "tests"]) == plain, "differs"))


def test_stdin_is_the_commands(context):
    done = run(context, "-q", "-o", context.path("p.json"), "--", "cat", input="for the command\n")
    check(done.stdout == "for the command\n", f"cat gave {done.stdout!r}")


def test_quiet_says_nothing(context):
    done = run(context, "-q", "-o", context.path("p.json"), "--", "true")
    check(done.stderr == "" and done.stdout == "", f"-q: {done.stdout!r} {done.stderr!r}")


def test_summary(context):
    done = run(context, "-o", context.path("p.json.gz"), "--",
               *context.workload("sleeps", truth=context.path("t")))
    for word in ("critical path of sleeps", "wallprof open", "p.json.gz", "wallprof report", "p.capture"):
        check(word in done.stderr, f"the summary does not say {word!r}: {done.stderr}")
    check(done.stdout == "" and "time by state" not in done.stderr, f"{done.stdout}{done.stderr}")
    done = run(context, "-v", "-o", context.path("v.json"), "--", "true")
    check("time by state" in done.stderr and "kernel accounting" in done.stderr, f"-v: {done.stderr}")


def test_json_summary(context):
    """The summary as JSON is the same with the profile and from the capture."""
    output, summary = context.path("p.json.gz"), context.path("s.json")
    done = run(context, "-q", "--keep-capture", "--json-summary", summary, "-o", output, "--", "true")
    check(done.returncode == 0 and done.stdout == "", f"{done.returncode}: {done.stdout}{done.stderr}")
    said = run(context, "report", "--json", capture_of(output)).stdout
    check(summary.read_text() == said and said.startswith("{"), "it is not what the report says")
    packed = context.path("s.json.gz")
    run(context, "export", "--json-summary", packed, "-o", output, capture_of(output))
    check(gzip.decompress(packed.read_bytes()).decode() == said, "the export's is another one")
    witness = context.path("witness")
    check_refused(run(context, "--json-summary", "/no/such/folder/s.json", "-o", output, "--", "touch", witness), 125,
                  "/no/such/folder/s.json")
    check(not witness.exists(), "the command ran all the same")


def test_summary_is_not_packed_so(context):
    """A level that only the profile's packing has is refused before anything is written."""
    context.wallprof("record", "-q", "-o", "c", "--", "true")
    done = run(context, "export", "--compression", "15", "-o", "p.json.zst", "--json-summary", "s.json.gz", "c")
    check_refused(done, 125, "s.json.gz", "1 to 9")
    check_remaining(context, "c")
    context.wallprof("export", "--compression", "15", "-o", "p.json.zst", "--json-summary", "s.json.zst", "c")
    check_remaining(context, "c", "p.json.zst", "s.json.zst")


def test_export_to_stdout(context):
    """Nothing but the profile is there, in the format that is asked for; and any name will do then."""
    context.wallprof("record", "-q", "-o", "c", "--", "true")
    for arguments, suffix in (([], "json"), (["--format", "firefox"], "json"), (["--format", "chrome"], "trace.json"),
                              (["--format", "html"], "html"), (["--format", "folded"], "folded")):
        context.wallprof("export", "-o", f"p.{suffix}", "c")
        wanted = context.path(f"p.{suffix}").read_text()
        done = run(context, "export", *arguments, "-o", "-", "c")
        check(done.returncode == 0 and done.stdout == wanted, f"{arguments}: {done.stdout[:80]!r} {done.stderr!r}")
        if arguments:
            context.wallprof("export", *arguments, "-o", "any.name", "c")
            check(context.path("any.name").read_text() == wanted, f"{arguments}: any.name is another one")
            context.wallprof("export", *arguments, "-o", "any.gz", "c")
            check(gzip.decompress(context.path("any.gz").read_bytes()).decode() == wanted, f"{arguments}: any.gz")
    check_refused(run(context, "export", "-o", "any.name", "c"), 125, "any.name", "--format")
    check_refused(run(context, "-o", "-", "--", "true"), 125, "'-'")
    check_remaining(context, "c", "p.json", "p.trace.json", "p.html", "p.folded", "any.name", "any.gz")
    with open("/dev/full", "w") as full:
        done = subprocess.run([WALLPROF, "export", "-o", "-", "c"], cwd=context.folder, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    check(done.returncode == 1 and "stdout" in done.stderr, f"to a full disk: {done.returncode} {done.stderr!r}")


def test_default_output(context):
    run(context, "-q", "--", "true")
    check_remaining(context, "wallprof.json.gz", "wallprof.capture")
    run(context, "record", "-q", "--", "true")
    check_remaining(context, "wallprof.json.gz", "wallprof.capture", "wallprof.capture.old")


def test_suffix_chooses_compression(context):
    run(context, "-q", "-o", context.path("p.json"), "--", "true")
    run(context, "-q", "-o", context.path("p.json.gz"), "--", "true")
    check(context.path("p.json").read_bytes()[:1] == b"{", "p.json is not JSON")
    check(gzip.decompress(context.path("p.json.gz").read_bytes())[:1] == b"{", "p.json.gz")
    check_remaining(context, "p.json", "p.json.gz", "p.capture", "p.capture.old")


def test_record_export_report(context):
    capture = context.path("c")
    context.wallprof("record", "-q", "-o", capture, "--", *context.workload("brief", truth="t"))
    text = context.wallprof("report", capture).stdout
    check("brief" in text and "running" in text, f"the report says: {text}")
    check(read_report(context, capture)["threads"], "the report has no threads")
    for name in ("a.json", "b.json"):
        context.wallprof("export", "-q", capture, "-o", context.path(name))
    check(context.path("a.json").read_bytes() == context.path("b.json").read_bytes(),
          "two exports of one capture differ")


def test_captures_that_are_none(context):
    random = context.path("random")
    for content in (b"", b"x", context.random.randbytes(5000), b"\x50\x2a\x4d\x18" + bytes(100)):
        random.write_bytes(content)
        for verb in (["export", "-o", context.path("p.json")], ["report"]):
            check_refused(run(context, *verb, random), 1, "random")
    check_refused(run(context, "report", context.path("missing")), 1, "missing")
    check_remaining(context, "random")


def test_nothing_recorded(context):
    """There is no report if the recorder was killed before it wrote a record."""
    needs_command("zstd")
    whole, begun, ended = (context.path(f"{name}.capture") for name in ("whole", "begun", "ended"))
    context.wallprof("record", "-q", "-o", whole, "--", "true")
    report = read_report(context, whole)
    check(report["complete"] and report["command"] == "true", f"{report['complete']}: {report['command']}")
    capture_reader.keep(whole, {capture_reader.META}, begun)
    for verb in (["export", "-o", context.path("p.json")], ["report"], ["report", "--json"]):
        check_refused(run(context, *verb, begun), 1, "begun", "cut off")
    check_remaining(context, "whole.capture", "begun.capture")
    # The events are there and the END record is missing: that is reported.
    capture_reader.keep(whole, set(range(128)) - {capture_reader.END}, ended)
    check(not read_report(context, ended)["complete"], "it is not whole")
    check("cut off" in run(context, "report", ended).stdout, "the report does not say so")


def test_doctor(context):
    needs_root()
    done = run(context, "doctor", "-v")
    check(done.returncode == 0 and done.stdout.strip(), f"doctor: {done.stdout}{done.stderr}")
    check_programs(done.stdout, trampolines=False)
    for truth, other in ((" instructions verified,", "00 instructions verified,"),
                         (" instructions verified)", "0 instructions verified)"), ("all programs", "some programs"),
                         ("yes  tp_btf", "no   tp_btf")):
        expect_failure(check_programs, done.stdout.replace(truth, other), trampolines=False)
    check("verified" not in run(context, "doctor").stdout, "doctor says it without -v, too")


def test_signal_dispositions(context):
    """The command's signals are those it would have without wallprof."""
    text = "import signal; print([signal.getsignal(s) for s in (2, 3, 13, 15)])"
    def dispositions(command):
        return subprocess.run(command, capture_output=True, text=True, restore_signals=True,
                              cwd=context.folder).stdout
    plain = dispositions(["python3", "-c", text])
    check(plain != "" and dispositions([WALLPROF, "-q", "--", "python3", "-c", text]) == plain,
          "wallprof changes what signals do to the command")
