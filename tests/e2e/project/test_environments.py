# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages where something is missing that is usually there: kernel files, rights, memory, disk space.

What is mounted is mounted in a mount namespace of the command's own, and goes with it.
"""
import os
import re
import shlex
import shutil
import stat
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import (GIVE_UP_S, WALLPROF, Profile, Skip, check, expect_failure, needs_command, needs_root,
                     read_report)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about what surrounds wallprof, not about the kernel")]
MANY_EVENTS = ("pingpong", {"rounds": 8000})
recorded = []  # bytes of a capture


def put_capture(context):
    """A capture c of a program that computes, without names: recorded once."""
    path = context.path("c")
    if not recorded:
        context.wallprof("record", "-q", "--defer-symbols", "-o", path, "--", *context.workload("burn", threads=2, ms=50))
        recorded.append(path.read_bytes())
    path.write_bytes(recorded[0])
    return path


def run_in(context, script, *arguments, options=("--mount",), environment=None):
    """A shell script in namespaces of its own; $1 and so on are the arguments."""
    needs_root()
    needs_command("unshare")
    tried = subprocess.run(["unshare", *options, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        raise Skip(f"no such namespace can be made here: {tried.stderr.strip()}")
    return subprocess.run(["unshare", *options, "sh", "-uc", script, "sh", *map(str, arguments)], cwd=context.folder,
                          capture_output=True, text=True, timeout=GIVE_UP_S, env=environment)


def check_said(text, words, others=()):
    """Each of the words is in the text, which is an error in one line or more, and none of the others is."""
    check(text.strip(), "nothing is said")
    for word in words:
        check(word in text, f"it does not say {word!r}: {text}")
    for word in others:
        check(word not in text, f"it says {word!r}: {text}")


def check_failed(done, words, others=()):
    """It failed itself, and each error has the usual form."""
    check(done.returncode == 125, f"status {done.returncode}: {done.stderr}")
    for line in done.stderr.splitlines():
        check("error" not in line or re.match(r"wallprof: error: .+ failed: .", line), f"not an error's form: {line!r}")
    check_said(done.stderr, words, others)


# ---- what the kernel offers --------------------------------------------------------------------------

RECORD = '"$1" -o p.json -- true'
DOCTOR = '"$1" doctor -v'
IN_NAMESPACE = ("CAP_BPF", "CAP_PERFMON", "initial user namespace", "host")
AS_OUTSIDE = ("run as root", "sysctl", "setcap", "--cap-add")


def test_user_namespace(context):
    """Root there has every capability, and none that counts: becoming root does not help."""
    new_user = ("--user", "--map-root-user")
    done = run_in(context, RECORD, WALLPROF, options=new_user)
    check_failed(done, IN_NAMESPACE, AS_OUTSIDE)
    doctor = run_in(context, DOCTOR, WALLPROF, options=new_user)
    check(doctor.returncode == 1, f"doctor: status {doctor.returncode}")
    check_said(doctor.stdout, [f"no   {name} in the initial user namespace" for name in ("CAP_BPF", "CAP_PERFMON")],
               ("run as root", "kernel.perf_event_paranoid", "Operation not permitted", "yes  CAP_"))
    needs_command("setpriv")
    outside = subprocess.run(["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all", WALLPROF, "doctor", "-v"],
                             capture_output=True, text=True, timeout=GIVE_UP_S)
    check_said(outside.stdout, ["no   CAP_BPF: ", "--cap-add"])
    expect_failure(check_said, outside.stdout, IN_NAMESPACE)


ONLY_BTF = """mkdir -p sys && mount -t tmpfs none sys && mkdir -p sys/kernel/btf && cp /sys/kernel/btf/vmlinux sys/kernel/btf &&
mount --move sys /sys || exit 99
"""
NO_SYS = "mount -t tmpfs none /sys || exit 99\n"
NO_PROC = "mount -t tmpfs none /proc || exit 99\n"
LOCKED = "mount -t tmpfs none /sys/kernel/security && echo 'none integrity [%s]' >/sys/kernel/security/lockdown || exit 99\n"
NO_TRACEFS = "for path in /sys/kernel/tracing /sys/kernel/debug; do mount -t tmpfs none $path || exit 99; done\n"
FIVE = ["recording", "stacks", "events", "names", "limits"]


def check_one_line(done, words):
    """One line says what failed, why, and what to do."""
    check(done.returncode == 125, f"status {done.returncode}: {done.stderr}")
    lines = done.stderr.splitlines()
    check(len(lines) == 1 and re.fullmatch(r"wallprof: error: recording failed: missing: [^;]+; .*[^.]", lines[0]), done.stderr)
    check_said(lines[0], words)


def check_five_lines(text, verdict, words=()):
    """For a person: what can be recorded, and the remedy of what cannot."""
    lines = [re.fullmatch(r"(\w+) +(yes|no|partly) +(\S.*)", line) for line in text.splitlines()]
    check(all(lines) and [line[1] for line in lines] == FIVE, text)
    check(lines[0][2] == verdict, text)
    check(all(line[2] == "no" for line in lines[1:3]) == (verdict == "no"), text)
    check(all(word in lines[0][3] for word in words), text)
    check(all(line[2] != "partly" or ";" in line[3] for line in lines), f"a remedy is missing: {text}")


def test_one_line(context):
    """Recording without rights, or where the kernel does not allow it, and what doctor says then."""
    needs_root()
    needs_command("setpriv")
    program = context.path("wallprof")
    shutil.copy(WALLPROF, program)
    context.folder.chmod(0o777)
    as_nobody = 'setpriv --reuid=65534 --regid=65534 --clear-groups %s "$1" '
    without_bpf = 'setpriv --bounding-set=-bpf,-sys_admin --inh-caps=-all "$1" '
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    before = paranoid.read_text()
    four = ",".join(["-all", *(f"+{c}" for c in ("bpf", "perfmon", "sys_ptrace", "dac_read_search"))])
    fake = 'mount --bind "$2" /proc/sys/kernel/perf_event_paranoid || exit 99\n'
    context.path("level").write_text("3\n")
    setcap = f"cap_syslog+ep {program}"
    cases = [("", as_nobody % "", ("missing: CAP_BPF and CAP_PERFMON;", "run as root", setcap)),
             (fake, as_nobody % "", (setcap, "&& sysctl kernel.perf_event_paranoid=2")),
             ("", without_bpf, ("missing: CAP_BPF;", "--cap-add BPF")),
             (LOCKED % "confidentiality", '"$1" ', ("lockdown", "boot without lockdown=confidentiality")),
             (NO_SYS, '"$1" ', ("/sys/kernel/btf/vmlinux", "mount -t sysfs sysfs /sys"))]
    for prepare, run, words in cases:
        check_one_line(run_in(context, f"{prepare}{run} -o p.json -- true", program, context.path("level")), words)
        done = run_in(context, f"{prepare}{run} doctor", program, context.path("level"))
        check(done.returncode == 1 and not done.stderr, f"{done}")
        check_five_lines(done.stdout, "no", words)
    with ExitStack() as left:
        left.callback(paranoid.write_text, before)
        paranoid.write_text("3")
        done = run_in(context, f"{as_nobody % f'--inh-caps={four} --ambient-caps={four}'} doctor", program)
        if done.returncode != 0:  # Debian's kernels; with others, only the capabilities count
            check_five_lines(done.stdout, "no", ("perf events", "sysctl kernel.perf_event_paranoid=2"))
    for prepare in (NO_TRACEFS, LOCKED % "none", LOCKED % "integrity"):
        done = run_in(context, f'{prepare}"$1" -q -o p.json -- true', program)
        check(done.returncode == 0 and not done.stderr, f"{prepare}: {done}")
    good = context.wallprof("doctor").stdout
    check_five_lines(good, "yes")
    for wrong in (good.replace("recording  yes", "recording  no "), good + "another\n", good.replace("limits", "names")):
        expect_failure(check_five_lines, wrong, "yes")
    expect_failure(check_one_line, run_in(context, f'{NO_SYS}"$1" -o p.json -- true; "$1" -o p.json -- true', program), ())


def test_missing_files(context):
    """Without these no program can be loaded, and libbpf has other words for that."""
    cases = ((ONLY_BTF, ("/sys/devices/system/cpu/possible", "mount -t sysfs"), "the kernel's list of CPUs"),
             (NO_SYS, ("/sys/kernel/btf/vmlinux", "mount -t sysfs"), "kernel type information"),
             (NO_PROC, ("/proc", "mount -t proc"), "/proc"))
    others = ("Argument list too long", "No such", "wallprof doctor")
    for missing, words, line in cases:
        check_failed(run_in(context, missing + RECORD, WALLPROF), words, others)
        doctor = run_in(context, missing + DOCTOR, WALLPROF)
        check(doctor.returncode == 1, f"doctor: status {doctor.returncode}")
        check_said(doctor.stdout, [f"no   {line}", *words], others[:1])
    expect_failure(check_failed, run_in(context, '"$1" --version', WALLPROF), ())
    check(not list(context.folder.glob("*.capture*")), "a capture is left behind")


def test_other_proc(context):
    """The /proc of another PID namespace is about other processes."""
    done = run_in(context, RECORD, WALLPROF, options=("--pid", "--fork"))
    check_failed(done, ("/proc of this PID namespace", "mount -t proc proc /proc"))
    done = run_in(context, "mount -t proc proc /proc && " + RECORD, WALLPROF, options=("--pid", "--fork", "--mount"))
    check(done.returncode == 0, done.stderr)


def test_reading_without_proc(context):
    """A capture can be read there; what needs /proc says so."""
    put_capture(context)
    done = run_in(context, NO_PROC + '"$1" report c', WALLPROF)
    check(done.returncode == 0, done.stderr)
    check_said(done.stdout, ["truth_burn (burn)"])
    context.wallprof("export", "-o", "p.json", "c")
    for command in ("open --no-browser p.json", "doctor --unwind 1"):
        done = run_in(context, f'{NO_PROC}"$1" {command}', WALLPROF)
        check(done.returncode == 1, f"{command}: status {done.returncode}")
        check_said(done.stderr, ["/proc", "mount -t proc proc /proc"])


def test_empty_dev(context):
    """Nothing of it is needed: programs have their unwind tables and their names."""
    command = shlex.join(context.workload("burn", threads=1, ms=100))
    for hidden in ("", "mount -t tmpfs none /dev || exit 99\n"):
        done = run_in(context, f'{hidden}exec "$1" -o p.json -- {command}', WALLPROF,
                      environment={**os.environ, "XDG_CACHE_HOME": str(context.path("cache"))})
        check(done.returncode == 0 and "could not be read" not in done.stderr, done.stderr)
        thread, = [t for t in Profile.load(context.path("p.json")).threads if t.name.startswith("burn")
                   and any("truth_burn" in t.frames_of(i) for i in range(len(t.times)))][:1]
        stacks = [names for i in range(len(thread.times)) for names in [thread.frames_of(i)] if "truth_burn" in names]
        check(stacks and not any("[truncated" in name for names in stacks for name in names), f"{stacks[:3]}")
        shutil.rmtree(context.path("cache"))  # or the second recording would find there what the first one has read


def test_kallsyms(context):
    """No names for the kernel's functions: that is said, and why."""
    for name, text in (("empty", ""), ("zero", "0000000000000000 T _text\n")):
        context.path(name).write_text(text)
    put_capture(context)
    def warnings(hidden, command):
        done = run_in(context, f'{hidden}"$1" {command} >printed', WALLPROF)
        check(done.returncode == 0, done.stderr)
        return [line for line in done.stderr.splitlines() if line.startswith("wallprof: warning: kernel functions")]
    empty, zero = (f"mount --bind {name} /proc/kallsyms || exit 99\n" for name in ("empty", "zero"))
    for hidden, command, word in ((empty, "-o p.json -- true", "empty"), (empty, "report c", "empty"),
                                  (zero, "report c", "kptr_restrict")):
        said = warnings(hidden, command)
        check(len(said) == 1 and "/proc/kallsyms" in said[0] and word in said[0], f"{command}: {said}")
    check(not warnings("", "report c"), "it is said where nothing is hidden, too")
    doctor = run_in(context, empty + NO_SYS + DOCTOR, WALLPROF).stdout  # which is done sooner
    check(re.search(r"^no +/proc/kallsyms .*empty", doctor, re.M), doctor)


# ---- limits ----------------------------------------------------------------------------------------------

def limited(context, limit, value, *arguments):
    """wallprof with no more than that; its command writes nothing."""
    needs_command("prlimit")
    return subprocess.run(["prlimit", f"--{limit}={value}", WALLPROF, *map(str, arguments)], cwd=context.folder,
                          capture_output=True, text=True, timeout=GIVE_UP_S)


def test_address_space(context):
    """Wherever memory ends, the limit is named, and nothing is left behind."""
    put_capture(context)
    less = ("--unwind-memory", "8M")
    for kib, options in ((24000, ()), (40000, ()), (100000, ()), (300000, ()), (140000, less), (160000, less)):
        done = limited(context, "as", kib << 10, "-o", "p.json", *options, "--", "true")
        if done.returncode == 0:
            check(options, f"{kib} KiB were enough")
            context.path("p.json").unlink()
            context.path("p.capture").unlink()
        else:
            check_failed(done, ("Cannot allocate memory", "ulimit -v", f"{kib} KiB"), ("wallprof doctor", "No such"))
        check(os.listdir(context.folder) == ["c"], f"{kib} KiB: left behind: {os.listdir(context.folder)}")
    for kib in (16000, 17000, 18000):  # from the dynamic loader's own failure on
        done = limited(context, "as", kib << 10, "report", "c")
        check(done.returncode == 0 or "ulimit -v" in done.stderr or "shared" in done.stderr, f"{kib}: {done}")


def test_status_without_memory(context):
    """It is the one of the manual page: 1 where files are read, the command's own where that had failed."""
    output = context.path("p.json")
    many = "for i in $(seq 200); do /bin/true; done; exit 3"
    check(subprocess.run([WALLPROF, "record", "-q", "-o", "many", "--", "sh", "-c", many], cwd=context.folder,
                         timeout=GIVE_UP_S).returncode == 3, "the command's status is not that of the recording")
    failed = 0
    for arguments in (("export", "-o", output, "many"), ("report", "many")):
        for kib in range(16000, 34000, 1000):
            done = limited(context, "as", kib << 10, *arguments)
            if "bytes of memory failed" in done.stderr:
                failed += 1
                check(done.returncode == 1, f"{arguments} with {kib} KiB: status {done.returncode}: {done.stderr}")
    check(failed > 2, "memory did not run out")


def check_capture(context, capture, most):
    """It has something of the command's, and no more bytes than there was room for."""
    check(capture.stat().st_size <= most, f"{capture.stat().st_size} bytes, should be {most} at most")
    threads = [t["name"] for t in read_report(context, capture)["threads"]]
    check(threads, "there is no thread in the capture")


def paste(context, text, other):
    """Runs the command that the last line of an error ends with, with a folder that there is."""
    commands = re.findall(r"; (wallprof export -o /other/prof.json .*)$", text, re.M)
    check(commands, f"no command: {text}")
    command = commands[-1]
    done = subprocess.run(["sh", "-c", command.replace("/other/", f"{shlex.quote(str(other))}/")], cwd=context.folder,
                          env={**os.environ, "PATH": f"{WALLPROF.parent}:{os.environ['PATH']}"}, capture_output=True,
                          text=True, timeout=GIVE_UP_S)
    check(done.returncode == 0, f"{command}: {done.stderr}")
    check(Profile.load(other / "prof.json").threads, f"{command}: no thread")


def test_file_size(context):
    """SIGXFSZ ends nothing: an error names the limit, and all is kept that there was room for."""
    name, options = MANY_EVENTS
    plain = subprocess.run(["grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True).stdout
    witness, other = context.path("witness"), context.path("other folder")
    other.mkdir()
    for most in (0, 1024):
        done = limited(context, "fsize", most, "-o", "p.json", "--", "mkdir", witness)
        check_failed(done, ("File too large", "ulimit -f", f"{most >> 10} KiB"))
        check(not witness.exists() and os.listdir(context.folder) == [other.name], "it was begun")
    for most in (16 << 10, 64 << 10):
        command = f"grep SigIgn /proc/self/status >ignored; exec {shlex.join(context.workload(name, **options))}"
        done = limited(context, "fsize", most, "-o", "p.json", "--", "sh", "-c", command)
        check_failed(done, ("recording failed", "writing p.json failed", "File too large", "ulimit -f", f"{most >> 10} KiB"))
        # The command's own output, and its status, do not matter here.
        check(context.path("ignored").read_text() == plain, f"its signals are not {plain}")
        check(sorted(os.listdir(context.folder)) == ["ignored", other.name, "p.capture"], f"{os.listdir(context.folder)}")
        capture = context.path("p.capture")
        check_capture(context, capture, most)
        check(capture.stat().st_size > most * 3 // 4, f"{capture.stat().st_size} of {most} bytes are used")
        paste(context, done.stderr, other)
        capture.unlink()
    expect_failure(paste, context, done.stderr.replace("export", "exports"), other)


def test_export_file_size(context):
    put_capture(context)
    done = limited(context, "fsize", 4096, "export", "-o", "p.json", "c")
    check(done.returncode == 1, f"status {done.returncode}")
    check_said(done.stderr, ("writing p.json failed: File too large", "ulimit -f", "4 KiB", "wallprof export"))
    check(os.listdir(context.folder) == ["c"], f"left behind: {os.listdir(context.folder)}")


# ---- room ------------------------------------------------------------------------------------------------

# What is said goes outside of the disk, and so does what the disk has in the end.
ON_DISK = """mkdir "a disk" && mount -t tmpfs -o "size=$2" none "a disk" || exit 99
wallprof=$1; shift 2
"$wallprof" "$@" 2>said >printed
status=$?
cp -r "a disk" left
exit $status
"""


def on_disk(context, size, *arguments):
    """Returns the status, what is said, and the folder with what the disk has afterwards; p.capture is pasteable."""
    shutil.rmtree(context.path("left"), ignore_errors=True)
    shutil.rmtree(context.path("a disk"), ignore_errors=True)
    done = run_in(context, ON_DISK, WALLPROF, size, *arguments)
    check(done.returncode != 99 and not done.stderr, f"{done}")
    shutil.rmtree(context.path("a disk"))
    context.path("left").rename(context.path("a disk"))  # where the command that is to be pasted looks
    return done.returncode, context.path("said").read_text(), context.path("a disk")


def check_consistent(said, capture):
    """It is either said to be there, and how to use it, or it is not there."""
    nothing, command = "nothing was recorded" in said, "wallprof export -o /other/prof.json" in said
    check(nothing != command, f"both or neither: {said}")
    check(capture.exists() == command, f"{capture.exists()}: {said}")
    check("kept" not in said or command, said)


def test_full_disk(context):
    """What is said of the recording is true, and the disk has room for its beginning, which is 3 KiB and more."""
    name, options = MANY_EVENTS
    other = context.path("other")
    other.mkdir()
    for kib, arguments in ((12, ("-o", "a disk/p.json")), (64, ("record", "-o", "a disk/p.capture"))):
        status, said, disk = on_disk(context, f"{kib}k", *arguments, "--", *context.workload(name, **options))
        capture = disk / "p.capture"
        check(status == 125 and "recording failed: No space left on device" in said, f"{status}: {said}")
        check_consistent(said, capture)
        check(not list(disk.glob("*.tmp*")) and not (disk / "p.json").exists(), f"{os.listdir(disk)}")
        check_capture(context, capture, kib << 10)
        paste(context, said, other)
    expect_failure(check_consistent, said + "nothing was recorded", capture)
    expect_failure(check_consistent, said, disk / "no.capture")


def test_full_disk_of_a_flight_recorder(context):
    """It writes all at its end: where there is no room for that, there is no capture."""
    name, options = MANY_EVENTS
    status, said, disk = on_disk(context, "64k", "--flight-recorder", "30s", "-o", "a disk/p.json", "--",
                                 *context.workload(name, **options))
    check(status == 125, f"{status}: {said}")
    check_said(said, ["nothing was recorded", "No space left on device", "-o"], ["wallprof export"])
    check_consistent(said, disk / "p.capture")
    check(os.listdir(disk) == [], f"{os.listdir(disk)}")


def test_full_disk_for_the_profile(context):
    """The capture lies elsewhere, or has found room; the profile has not."""
    other = context.path("other")
    other.mkdir()
    burn = context.workload("burn", threads=2, ms=50)
    put_capture(context)
    status, said, disk = on_disk(context, "4k", "export", "-o", "a disk/p.json", "c")
    check(status == 1 and "writing a disk/p.json failed: No space left on device" in said, f"{status}: {said}")
    paste(context, said, other)
    check(os.listdir(disk) == [], f"{os.listdir(disk)}")
    status, said, disk = on_disk(context, "4k", "export", "-o", "p.json", "--json-summary", "a disk/s.json", "c")
    check(status == 1, f"{status}: {said}")
    check_said(said, ["writing a disk/s.json failed: No space left on device", "wallprof report --json c >"])
    status, said, disk = on_disk(context, "64k", "-o", "a disk/p.json", "--", *burn)
    check(status == 125, f"{status}: {said}")
    check_consistent(said, disk / "p.capture")
    paste(context, said, other)


def test_home_that_does_not_exist(context):
    """Nothing is made there; where it does, the cache is."""
    put_capture(context)
    def made(*arguments, **variables):
        environment = {name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "HOME")}
        context.wallprof(*arguments, env={**environment, **variables})
        return sorted(str(path.relative_to(context.folder)) for path in context.folder.rglob("*") if path.is_dir())
    check(made("-q", "-o", "p.json", "--", "true", HOME=str(context.path("no/such/home"))) == [], "something was made")
    check(made("report", "c", HOME=str(context.path("home"))) == [], "something was made")
    check(made("report", "c", HOME="/proc/none", XDG_CACHE_HOME=str(context.path("no/cache"))) == [], "something was made")
    check("cache/wallprof/symbols" in made("report", "c", HOME="/proc/none", XDG_CACHE_HOME=str(context.path("cache"))),
          "no cache where one is named")
    context.path("home").mkdir()
    check("home/.cache/wallprof/symbols" in made("report", "c", HOME=str(context.path("home"))),
          "no cache where there is a home")


def test_stdout_is_full(context):
    """Output that cannot be written is an error of every command."""
    put_capture(context)
    def status(arguments, path):
        with open(path, "w") as out:
            done = subprocess.run([WALLPROF, *arguments], stdout=out, stderr=subprocess.PIPE, text=True,
                                  timeout=GIVE_UP_S, cwd=context.folder)
        return done.returncode, done.stderr
    for arguments in (["--help"], ["--version"], ["--licenses"], ["doctor"], ["doctor", "--unwind", WALLPROF], ["report", "c"],
                      ["report", "--json", "c"], ["report", "--critical-path", "c"],
                      ["export", "-o", "-", "c"]):
        code, said = status(arguments, "/dev/full")
        check(code not in (0, -13), f"{arguments}: status {code}")
        check(len(re.findall("writing to stdout failed: No space left on device", said)) == 1, f"{arguments}: {said}")
    check(status(["--version"], context.path("version")) == (0, ""), "it fails without a full device, too")
    check(stat.S_ISCHR(os.stat("/dev/full").st_mode), "/dev/full is no device any more")
