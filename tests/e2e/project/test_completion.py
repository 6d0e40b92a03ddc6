# SPDX-License-Identifier: GPL-2.0-or-later
"""What wallprof offers for a place of the command line, and what the shells make of it."""
import os
import re
import subprocess

import pytest

from harness import ROOT, WALLPROF, check, expect_failure, is_long, needs_command

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about no kernel")]

SCRIPTS = ROOT / "tools" / "completion"
VERBS = {"record", "export", "report", "open", "doctor"}
# Their values are numbers, times, sizes or names in a capture.
FREE = {"duration", "budget", "flight-recorder", "fault-threshold", "unwind-memory", "ring-size", "ring-cpus",
        "compression", "capture-compression", "from", "to", "process", "thread", "function", "critical-path",
        "port", "idle-timeout", "top", "timeline", "limit"}
# With compgen(1), but without what only works while a line is edited.
ASK_BASH = """. "$0"; compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wallprof; printf '%s\\n' "${COMPREPLY[@]}" """
ASK_FISH = "source $argv[1]; complete -C $argv[2]"
# What the functions of zsh's completion are called with.
ASK_ZSH = """file=$1; shift; words=("$@") CURRENT=$#
compset() { print compset }; _files() { print "files $*" }; _normal() { print "normal $words $CURRENT" }
_command_names() { print commands }; _describe() { print -l -- ${(P)3} }
. $file"""


def offered(context, *words):
    return context.wallprof("--complete", *words).stdout.splitlines()


def names(lines):
    return {line.split("\t")[0] for line in lines}


def check_equal(words, found, wanted):
    check(found == wanted, f"{words}: {found}, should be {wanted}")


def check_offered(context, words, wanted):
    check_equal(words, names(offered(context, *words)), wanted)


def test_places(context):
    every_file, captures, profiles = ":files", ":files .capture .json .json.gz .json.zst", ":files .json .json.gz .json.zst .capture"
    for words, wanted in (
            (("--fault-source", ""), {"auto", "fentry", "events", "off"}),
            (("--fault-source", "=", "e"), {"events"}),
            (("--fault-source=e",), {"--fault-source=events"}),
            (("--stacks", "="), {"dwarf", "fp", "none"}),
            (("export", "--state", "running,b"), {"running,blocked"}),
            (("export", "--state=running,b"), {"--state=running,blocked"}),
            (("report", "--j"), {"--json"}),
            (("report", "x", "--cr"), {"--critical-path"}),
            (("export", "--form"), {"--format"}),
            (("record", "--form"), set()),
            (("record", "--format="), set()),
            (("--no-such-option", "--form"), {"--format"}),
            (("",), {*VERBS, "help", ":commands"}),
            (("-q", "-F", "99", "rec"), {"record", ":commands"}),
            (("help", ""), VERBS),
            (("help", "report", ""), set()),
            (("record", "-o", "x", "l"), {":commands"}),
            (("--", "re"), {":commands"}),
            (("record", "--", ""), {":commands"}),
            (("-q", "ls", "-"), {":command 1"}),
            (("record", "--", "ls", "--co"), {":command 2"}),
            (("-o", "x", "record", "-F99", "ls", "record", ""), {":command 4"}),
            (("report", ""), {captures}), (("export", "-o", "x", "y"), {captures}),
            (("report", "x.capture", ""), set()),
            (("open", ""), {profiles}),
            (("doctor", ""), set()), (("doctor", "--un"), {"--unwind"}),
            (("export", "-o", ""), {every_file}), (("--output=",), {every_file}),
            (("--cgroup", ""), {":folders /sys/fs/cgroup"}), (("open", "--viewer", ""), {":folders"})):
        check_offered(context, words, wanted)
    expect_failure(check_offered, context, ("report", ""), {profiles})
    check(offered(context) == [], "without a word there is something to complete")


def test_processes(context):
    needs_command("sleep")
    name, program = "sleepy_process", context.path("sleepy_process")
    program.symlink_to(subprocess.run(["sh", "-c", "command -v sleep"], capture_output=True, text=True).stdout.strip())
    pid = context.start([program, "100"]).pid
    pids = offered(context, "-p", "")
    check(f"{pid}\t{name}" in pids, f"-p lacks {pid}: {pids}")
    check("2" not in names(pids), "kernel threads are offered")
    for words, wanted in ((("-p", name), f"{pid}"), (("--pid=1,sleepy",), f"--pid=1,{pid}"),
                          (("--tid", "=", name), f"{pid}"), (("doctor", "--unwind", name), f"{pid}")):
        pids = names(offered(context, *words))
        check(wanted in pids, f"{words}: {pids}")
    check(":files" in offered(context, "doctor", "--unwind", name), "--unwind offers no files")
    check(str(os.getpid()) in names(offered(context, "-t", "")), "-t lacks the threads of this process")


def test_all_options(context):
    """An option that takes a value has values to offer, or it is one of those whose values are free."""
    for verb in (None, *sorted(VERBS)):
        given = [verb] if verb else []
        help_text = context.wallprof("help", *given).stdout
        options = names(offered(context, *given, "--"))
        if verb:
            check(options == set(re.findall(r"--[a-z][a-z-]+", help_text)), f"{verb}: {sorted(options)}")
        for option in options:
            takes_value = re.search(rf"{option}(?: |\[=)(?=[A-Z])", help_text)
            values = offered(context, *given, f"{option}=")
            check(bool(values) == (takes_value is not None and option[2:] not in FREE), f"{verb} {option}: {values}")


def test_values_are_accepted(context):
    """What is offered is what the option takes: with another value it names itself. An option of several commands has one
    row in the table: outside of a long run it is tried with one of them."""
    count, tried = 0, set()
    for verb in context.random.sample([None, *sorted(VERBS)], 1 + len(VERBS)):
        given = [verb] if verb else []
        for option in names(offered(context, *given, "--")) - (set() if is_long() else tried):
            tried.add(option)
            for given_value in names(offered(context, *given, f"{option}=")):
                if given_value.startswith(":") or given_value[-1].isdigit():
                    continue
                count += 1
                context.wallprof(*given, given_value, "--help")
                wrong = context.wallprof(*given, f"{given_value}x", "--help", status=125)
                check(option[2:] in wrong.stderr, f"{given_value}x: {wrong.stderr}")
    check(count > 20, f"only {count} values")


# ---- shells --------------------------------------------------------------------------


@pytest.fixture
def folder(context):
    for name in ("one.capture", "two.json.gz", "three four.json", "other"):
        context.path(name).touch()
    context.path("below").mkdir()
    return context.folder


def asked(folder, command, *words):
    needs_command(command[0])
    done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "HOME": str(folder), "PATH": f"{WALLPROF.parent}:{os.environ['PATH']}"})
    check(done.returncode == 0 and not done.stderr, f"{command[0]} {words}: {done.stderr}")
    return set(done.stdout.splitlines()) - {""}


def test_bash(folder):
    def ask(*words):
        return asked(folder, ["bash", "-c", ASK_BASH, str(SCRIPTS / "wallprof.bash")], "wallprof", *words)
    for words, wanted in ((("--fault-source", "=", "e"), {"events"}), (("--stacks", "="), {"dwarf", "fp", "none"}),
                          (("report", "--js"), {"--json"}), (("report", "o"), {"one.capture"}), (("report", ""), {"one.capture", "two.json.gz", "three four.json", "below"}),
                          (("open", "t"), {"two.json.gz", "three four.json"}), (("open", "oth"), {"other"}),
                          (("open", "--viewer", ""), {"below"}), (("ls", "oth"), {"other"})):
        check_equal(words, ask(*words), wanted)
    for words, wanted in ((("",), {"record", "help", "ls"}), (("--", "l"), {"ls"}), (("-o", "x", "rec"), {"record"}),
                          (("-o", ""), {"one.capture", "other", "below"})):
        check(ask(*words) >= wanted, f"{words}: not all of {wanted}")


def test_fish(folder):
    def ask(line):
        lines = asked(folder, ["fish", "-c", ASK_FISH, str(SCRIPTS / "wallprof.fish")], f"wallprof {line}")
        return names(lines)
    for line, wanted in (("--fault-source=e", {"--fault-source=events"}), ("--stacks ", {"dwarf", "fp", "none"}),
                         ("report --js", {"--json"}), ("report ", {"one.capture", "two.json.gz", "three four.json", "below/"}),
                         ("open t", {"two.json.gz", "three four.json"}), ("open --viewer ", {"below/"}),
                         ("export -o oth", {"other"}), ("--output=oth", {"--output=other"})):
        check_equal(line, ask(line), wanted)
    check(ask("") >= {"record", "help", "ls"}, "no commands")


def test_zsh(folder):
    def ask(*words):
        return asked(folder, ["zsh", "-f", "-c", ASK_ZSH, "zsh", str(SCRIPTS / "_wallprof")], "wallprof", *words)
    for words, wanted in ((("--fault-source=e",), {"--fault-source=events"}), (("--stacks", "f"), {"fp"}),
                          (("report", "--js"), {"--json:print the report as JSON"}),
                          (("report", ""), {"files -g *(.capture|.json|.json.gz|.json.zst)(-.)"}),
                          (("open", "t"), {"files -g *(.json|.json.gz|.json.zst|.capture)(-.)"}),
                          (("--output=x",), {"compset", "files "}), (("open", "--viewer", ""), {"files -/"}),
                          (("record", "--", "ls", "-l"), {"normal ls -l 2"})):
        check_equal(words, ask(*words), wanted)
    check_equal("rec", ask("rec"), {"record:Records a command, processes or the system, and writes a capture.", "commands"})
