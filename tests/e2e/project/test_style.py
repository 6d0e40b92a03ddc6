# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources are formatted, licensed, of bearable length, and name no one's machine."""
import re
import subprocess

import time_table
from harness import ROOT, check, expect_failure, needs_command

FOLDERS = ("bpf", "src", "export", "tests", "tools", "docs", ".ci")
# Folders of one machine, and hosts that only one site has. In two pieces, or this file would
# be found.
MACHINE = re.compile(r"(?<![\w.<])/(wor" r"k|op" r"t|hom" r"e/\w+|mn" r"t)/|\.interna" r"l\b")
MAX_LINES = 700

HOST_ONLY = "it is about the sources"
UNTIMED = True


def files():
    found = [p for f in FOLDERS for p in (ROOT / f).rglob("*") if p.is_file()]
    found += [p for p in ROOT.iterdir() if p.is_file() and p.name != ".git"]
    return [p for p in found if "__pycache__" not in p.parts and p.suffix not in (".png", ".gz")]


def sources():
    return [p for p in files() if p.suffix in (".c", ".h")]


def check_lines(paths, is_wrong, what):
    wrong = [f"{p.relative_to(ROOT) if p.is_relative_to(ROOT) else p}:{number}: {line.strip()}"
             for p in paths
             for number, line in enumerate(p.read_text(errors="replace").splitlines(), 1)
             if is_wrong(line)]
    check(not wrong, f"{what}:\n" + "\n".join(wrong[:20]))


def test_formatted(context):
    needs_command("clang-format")
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *sources()],
                          capture_output=True, text=True, cwd=ROOT)
    check(done.returncode == 0, f"clang-format would change sources:\n{done.stderr[:2000]}")
    bad = context.path("bad.c")
    bad.write_text("int  x ;\n")
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", bad], capture_output=True)
    check(done.returncode != 0, "clang-format would leave anything as it is")


def test_names_no_machine(context):
    check_lines(files(), MACHINE.search, "names a folder or host of one machine")
    bad = context.path("bad")
    bad.write_text("see /wor" "k/main\n")
    expect_failure(check_lines, [bad], MACHINE.search, "")


def test_licensed(_context):
    for path in sources():
        check("SPDX-License-Identifier: GPL-2.0" in path.read_text().split("\n", 1)[0],
              f"{path.relative_to(ROOT)} has no licence in its first line")


def test_length(_context):
    for path in sources():
        length = len(path.read_text().splitlines())
        check(length <= MAX_LINES, f"{path.relative_to(ROOT)} has {length} lines")


def test_lines_are_short(_context):
    check_lines(sources(), lambda line: len(line.expandtabs(8)) > 120,
                "longer than 120 columns")


def test_reasons_table(_context):
    """The document has the table that the code has."""
    table = subprocess.run([ROOT / "docs" / "gen-reasons-table"], capture_output=True, text=True,
                           check=True).stdout
    check(table.count("\n") > 60 and (ROOT / "docs" / "user" / "waits.md").read_text().endswith(table),
          "docs/user/waits.md has not what docs/gen-reasons-table prints")


def test_links(_context):
    """What the documents refer to is there."""
    documents = [p for p in files() if p.suffix == ".md"]
    check(documents, "no documents")
    for document in documents:
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in link:
                check((document.parent / link).exists(), f"{document.name}: no {link}")


# What a run does besides the suites that run alone.
PHASES = ("installing and building", "unit tests", "what holds no times to account", "busy",
          "opening profiles")


def check_shares(shares, alone):
    """Every suite that runs alone has a share of the 15 minutes, no other has, and all of them fit."""
    check(alone <= set(shares), f"no share for {sorted(alone - set(shares))}")
    others = set(shares) - alone
    check(others == set(PHASES), f"the shares that are of no suite that runs alone: {sorted(others)}")
    check(sum(shares.values()) <= 15 * 60, f"the shares are {sum(shares.values())} s")


def test_shares(_context):
    shares = time_table.shares()
    alone = {path.stem[5:] for path in (ROOT / "tests" / "e2e").glob("*/test_*.py") if "\nUNTIMED = True" not in path.read_text()}
    check_shares(shares, alone)
    expect_failure(check_shares, shares, alone | {"another"})
    expect_failure(check_shares, {**shares, "another": 1}, alone)
    expect_failure(check_shares, {**shares, "attached": 1000}, alone)


# A kernel of one file: two functions without a rule, one of them called by a function that has one; a function with
# its own rule; and one that sleeps in a primitive that names the reason.
KERNEL = """
static void inner(struct page *page)
{
	/* wait_event(queue, unused(")")); */
	schedule();
}
void filemap_fault(void)
{
	inner(page);
}
void lonely(void)
{
	%s;
}
void timed(void)
{
	msleep(20);
}
"""


def check_kernel(context, sleeps_in, wanted):
    folder = context.path("kernel") / "fs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "file.c").write_text(KERNEL % sleeps_in)
    done = subprocess.run([ROOT / "tools" / "blocking-functions", folder.parent, "fs"], capture_output=True, text=True)
    named = dict(re.findall(r"^\| fs/file\.c \| `(\w+)` \|.*\| (.*) \|$", done.stdout, re.M))
    check((done.returncode, named) == wanted, f"{done.returncode}, {named}, should be {wanted}: {done.stderr}")


def test_blocking_functions(context):
    """The list of functions that block has a rule or a reason for each; one without either is reported."""
    known = {"inner": "`filemap_fault`", "timed": "`msleep`"}
    check_kernel(context, "wait_event(queue, done)", (1, {**known, "lonely": "none"}))
    check_kernel(context, "io_schedule()", (0, {**known, "lonely": "`io_schedule`"}))
    check_kernel(context, "return", (0, known))
    expect_failure(check_kernel, context, "schedule_timeout(1)", (0, {**known, "lonely": "none"}))


def test_blocking_functions_document(_context):
    """The rules that the document names exist, and each of its functions has a rule or a reason."""
    document = (ROOT / "docs" / "reference" / "blocking-functions.md").read_text()
    rules = set(re.findall(r'\{"(\w+)", REASON_', (ROOT / "export" / "reason" / "kernel_rules.c").read_text())) | {"kthread"}
    rows = re.findall(r"^\| \S+(?:, \S+)* \| `(\w+)` \| [^|]+ \| ([^|]+) \|$", document, re.M)
    reasons = document.partition("## The functions")[0]
    check(len(rows) > 400, f"{len(rows)} functions")
    for function, rule in rows:
        if rule.startswith("–"):
            check(f"`{function}`" in reasons, f"{function} has no reason")
        else:
            missing = set(re.findall(r"`(\w+)`", rule)) - rules
            check("`" in rule and not missing, f"{function}: no rule {missing or rule}")
