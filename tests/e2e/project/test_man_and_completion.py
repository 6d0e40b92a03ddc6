# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual pages, options from the environment, and the names of functions."""
import os
import re
import subprocess

import pytest

from harness import BUILD, WALLPROF, Profile, check, expect_failure, needs_command

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about no kernel")]

MANUAL = BUILD / "docs" / "user"
VERBS = ("record", "export", "report", "open", "doctor")
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "NOTES", "EXAMPLES",
            "SEE ALSO"]
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")


def options_of(text):
    return set(OPTION.findall(text))


def helped(context, *verb):
    return options_of(context.wallprof("help", *verb).stdout)


def check_reported(options, reported, where):
    check(options == reported, f"{where} lacks {sorted(options - reported)} and has {sorted(reported - options)}")


def options_section(manual):
    """Returns the options that have a paragraph in the page."""
    (section,) = re.findall(r"^\.SH OPTIONS\n(.*?)^\.SH ", manual, re.M | re.S)
    return options_of("\n".join(re.findall(r"^\.TP\n(.*)$", section, re.M)).replace("\\-", "-"))


def page_of(verb=None):
    return MANUAL / (f"wallprof-{verb}.1" if verb else "wallprof.1")


def test_all_are_documented(context):
    """A page has the options of its command and no others; wallprof(1) has those of a recording with a profile."""
    options = helped(context)
    check(len(options) > 20, f"--help has {sorted(options)}")
    of_a_profile = options_of(context.wallprof("--complete", "--").stdout)
    check(of_a_profile < options, f"--complete has {sorted(of_a_profile - options)}, too")
    for verb, accepted in ((None, of_a_profile), *((verb, helped(context, verb)) for verb in VERBS)):
        documented = options_section(page_of(verb).read_text())
        check_reported(accepted, documented, page_of(verb).name)
        expect_failure(check_reported, accepted - {"verbose"}, documented, "")


def check_well_formed(page):
    done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
    check(done.returncode == 0 and not done.stderr, f"{page.name}: man says {done.stderr!r}")


def test_manual_pages_are_well_formed(context):
    needs_command("man")
    names = {page_of(verb).stem for verb in (None, *VERBS)}
    for verb in (None, *VERBS):
        page = page_of(verb)
        check_well_formed(page)
        text = page.read_text()
        sections = re.findall(r"^\.SH (.*)$", text, re.M)
        check(sections == [s for s in SECTIONS if s in sections] and {*SECTIONS} - {*sections} <= {"NOTES"},
              f"{page.name} has the sections {sections}")
        other_pages = set(re.findall(r"^\.BR (wallprof\S*) \(1\)", text.replace("\\-", "-"), re.M))
        check(other_pages and other_pages <= names - {page.stem}, f"{page.name} refers to {sorted(other_pages)}")
    broken = context.path("broken.1")
    broken.write_text(page_of().read_text() + ".no_such_macro\n")
    expect_failure(check_well_formed, broken)


def defined(path, *options):
    """Names that a program or library has for others."""
    done = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True)
    return {line.split()[2].split("@")[0] for line in done.stdout.splitlines()
            if len(line.split()) == 3 and line.split()[1] in "TWi"}


def check_own_names(mine, libraries):
    """A function of a library's name would be called in its place, by the library too."""
    for library in libraries:
        shared = mine & defined(library, "-D")
        check(not shared, f"also in {library}: {sorted(shared)[:10]}")


def test_names_are_our_own():
    needs_command("nm")
    reported = subprocess.run(["ldd", WALLPROF], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", reported)
    check(any("libjansson" in library for library in libraries), f"{libraries}")
    mine = {name for name in defined(WALLPROF) if not name.startswith("_")}
    check(len(mine) > 500, f"only {len(mine)} names")
    check_own_names(mine, libraries)
    expect_failure(check_own_names, mine | {"json_string"}, libraries)


def with_options(context, text, *arguments, **settings):
    return context.wallprof(*arguments, env={**os.environ, "WALLPROF_OPTIONS": text}, **settings)


def test_environment(context):
    """They come first, so the command line has the last word; what another verb's are does no harm."""
    spaced = context.path("a b.json")
    with_options(context, f"-q -o '{spaced}' --json", "--", "true")
    check(Profile.load(spaced).threads, "nothing in the file that WALLPROF_OPTIONS names")
    with_options(context, "-q\t--output wrong.json -F 10", "-o", "right.json", "-F20", "--keep-capture", "--", "true")
    check(context.path("right.json").exists() and not context.path("wrong.json").exists(),
          "the command line has not the last word")
    report = with_options(context, "--frequency=7 --json", "report", "right.capture").stdout
    check(report.startswith("{"), f"no JSON: {report[:100]}")
    with_options(context, "-q -o p.json.gz --as-root", "record", "--", "true")
    check(context.path("wallprof.capture").exists() and not context.path("p.json.gz").exists(),
          "a capture where a profile is to be")
    for text, word in (("--no-such-option", "no-such-option"), ("-F x", "'x'"), ("true", "'true'"),
                       ("-F", "value"), ("-p 1", "--pid"), ("--help", "--help"), ("--licenses", "--licenses"),
                       ("-q -o 'p.json", "unclosed"), ("-o p.xml", "ends in")):
        done = with_options(context, text, "--", "true", status=125)
        check(word in done.stderr and "WALLPROF_OPTIONS" in done.stderr, f"{text}: {done.stderr!r}")
    done = with_options(context, "-F 10", "-F", "x", "--", "true", status=125)
    check("WALLPROF_OPTIONS" not in done.stderr, f"what the line has wrong: {done.stderr!r}")


def test_environment_has_no_meaning_here(context):
    """Habits that mean nothing for what is written are passed over; on the line they are mistakes."""
    context.wallprof("record", "-q", "-o", "c", "--", "true")
    for env_options, name in (("--cpu-graph", "p.trace.json"), ("--compression 15", "p.json.gz")):
        with_options(context, env_options, "export", "-q", "-o", name, "c")
        context.wallprof("export", *env_options.split(), "-o", name, "c", status=125)
    with_options(context, "--kthreads", "-q", "-t", os.getpid(), "-d", "1ms")
    for options in ("--hepl", "'", "--help"):
        for wanted in ("--help", "--version", "--licenses"):
            done = with_options(context, options, wanted)
            check("wallprof" in done.stdout and not done.stderr, f"{options} and {wanted}: {done.stderr!r}")
