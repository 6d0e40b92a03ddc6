# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources are formatted, licensed, of limited length, in plain English, and name no machine."""
import io
import re
import shutil
import subprocess
import tokenize

import pytest

import time_table
from harness import ROOT, check, expect_failure, needs_command

FOLDERS = ("bpf", "src", "export", "tests", "tools", "docs", ".ci")
# Folders of one machine, and hosts that only one site has. The pattern is in two pieces, because
# it would match this file.
MACHINE = re.compile(r"(?<![\w.<])/(wor" r"k|op" r"t|hom" r"e/\w+|mn" r"t)/|\.interna" r"l\b")
MAX_LINES = 700

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about the sources")]


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


def test_licensed():
    for path in sources():
        check("SPDX-License-Identifier: GPL-2.0" in path.read_text().split("\n", 1)[0],
              f"{path.relative_to(ROOT)} has no licence in its first line")


def test_length():
    for path in sources():
        length = len(path.read_text().splitlines())
        check(length <= MAX_LINES, f"{path.relative_to(ROOT)} has {length} lines")


def test_lines_are_short():
    check_lines(sources(), lambda line: len(line.expandtabs(8)) > 120,
                "longer than 120 columns")


def test_reasons_table():
    """The document has the table that the code has."""
    table = subprocess.run([ROOT / "docs" / "gen-reasons-table"], capture_output=True, text=True,
                           check=True).stdout
    check(table.count("\n") > 60 and (ROOT / "docs" / "user" / "waits.md").read_text().endswith(table),
          "docs/user/waits.md has not what docs/gen-reasons-table prints")


def test_colours_table():
    """The guide has the legend of a profile: `| category | colour | marker | meaning |`."""
    source = (ROOT / "export" / "reason" / "reason.c").read_text()
    legend = re.findall(r'\[CATEGORY_\w+\] = \{"([^"]+)",\s*"([^"]+)",\s*"([^"]+)",\s*"([^"]+)"\}', source)
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in (ROOT / "docs" / "user" / "guide.md").read_text().splitlines() if line.count("|") == 5]
    check(len(legend) > 10, f"not found in reason.c: {legend}")
    for name, colour, marker, meaning in legend:
        colour = re.sub("^(light|dark)", r"\1 ", colour)
        check([name, colour, marker, meaning] in rows, f"docs/user/guide.md does not have {name}, {colour}, {marker}")


def check_headings(paths):
    """A formatter for C takes the `#` of a heading for a directive, and joins the lines of a list."""
    for path in paths:
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
        check(text.startswith(("# ", "<")), f"{path}: the first line is no heading: {text.splitlines()[:1]}")
        check(not re.search(r"^#+[^#\s]", text, re.M), f"{path}: a heading without a space after #")


def test_headings(context):
    check_headings([p for p in files() if p.suffix == ".md"])
    bad = context.path("bad.md")
    bad.write_text("#bpf / scripts : frames\n")
    expect_failure(check_headings, [bad])


def test_links():
    """The files that documents refer to exist."""
    documents = [p for p in files() if p.suffix == ".md"]
    check(documents, "no documents")
    for document in documents:
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in link:
                check((document.parent / link).exists(), f"{document.name}: no {link}")


# ---- language ------------------------------------------------------------------------------------

# Words that comments, docstrings, messages and documents do not have, by the folder in which they are not allowed
# ("": all). docs/reference/glossary.md has the terms to use instead.
OLD_WORDS = {
    "": (r"everybody", r"untold", r"crowded", r"deeds?", r"thereby", r"therein", r"thereof", r"hitherto",
         r"henceforth", r"homeless", r"told(?! (?:apart|from))", r"telling", r"nobody(?:'s)?", r"somebody(?:'s)?", r"anybody",
         r"whom", r"whoever", r"anew", r"strangers?", r"under way", r"who (?:ends|ended|has|had|was)", r"in vain",
         r"had a say", r"for want of"),
}
# Texts of lines in which the words have another meaning, by file: the user `nobody`, names of file formats, quotations.
ALLOWED = {
    "export/anonymize/anon_meta.c": ('"strangers"',),
    "src/recorder/metadata.c": ('"strangers"',),
    "src/os/safe_open.c": ("user `nobody`",),
    "src/os/sandbox.h": ("user (nobody",),
    "tests/e2e/output/test_export_options.py": ('"nobody"',),
    "tests/e2e/project/test_cli.py": ('"nobody"',),
    "tests/e2e/project/test_package.py": ('"nobody',),
    "tests/e2e/recording/test_life.py": ("the kernel did not tell of an exec",),
    "tests/e2e/recording/test_privileges.py": ("a user who has",),
    "tests/e2e/waits/test_block.py": ("still under way",),
    "tests/roots/builds.py": ("an ordinary user who has", "user `nobody`"),
    "tests/unit/debuginfo/test_sources.c": ("user `nobody`",),
    "tests/unit/firefox/test_firefox.c": ("a switch that nobody told",),
    "tests/unit/timeline/test_timeline_filter.c": ("f*,nobody",),
    "tests/vm/image.py": ("nobody:x:65534",),
}
C_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)


def texts_of(path):
    """(line number, line) of all comments and strings; of all text in files that are no C or Python."""
    text = path.read_text(errors="replace")
    if path.suffix in (".c", ".h"):
        found = [(text.count("\n", 0, m.start()) + 1, m[0]) for m in C_TEXT.finditer(text)]
    elif path.suffix == ".py":
        found = [(token.start[0], token.string) for token in tokenize.generate_tokens(io.StringIO(text).readline)
                 if token.type in (tokenize.COMMENT, tokenize.STRING)]
    elif path.suffix == ".md":
        found = [(1, re.sub(r"`[^`\n]*`", "``", text))]
    else:
        found = [(1, text)]
    return [(first + i, line) for first, part in found for i, line in enumerate(part.split("\n"))]


def check_words(paths, allowed):
    wrong = []
    for path in paths:
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else "tests/" + path.name
        words = [w for folder, of_folder in OLD_WORDS.items() if name.startswith(folder) for w in of_folder]
        # Names of constants are in capitals, and are no words.
        words += [word[0].upper() + word[1:] for word in words]
        pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(words)})(?!\w)")
        wrong += [f"{name}:{number}: {line.strip()}" for number, line in texts_of(path)
                  if pattern.search(line) and not any(text in line for text in allowed.get(name, ()))]
    check(not wrong, f"{len(wrong)} lines have words that are not in plain English:\n" + "\n".join(wrong[:40]))


def worded_files():
    """Without this file, data, the licence and the changelog."""
    return [p for p in files() if p.name not in ("test_style.py", "COPYING", "changelog.md")
            and p.suffix not in (".capture", ".json", ".svg")]


def test_old_words(context):
    paths = worded_files()
    check_words(paths, ALLOWED)
    bad = context.path("bad.c")
    bad.write_text("/* It is " "told by the kernel. */\n")
    expect_failure(check_words, [bad], ALLOWED)
    bad.write_text("int told;\n")
    check_words([bad], ALLOWED)


def long_lines(path):
    """(number, line) of the prose of a document that is longer than 100 columns: no tables, code, headings, images."""
    in_code, found = False, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if len(line) > 100 and not in_code and not line.startswith(("    ", "|", "#", "![")):
            found.append((number, line))
    return found


def check_prose(paths):
    wrong = [f"{path.name}:{number}: {line}" for path in paths for number, line in long_lines(path)]
    check(not wrong, "longer than 100 columns:\n" + "\n".join(wrong[:20]))


def test_prose_is_wrapped(context):
    check_prose([p for p in files() if p.suffix == ".md"])
    bad = context.path("bad.md")
    bad.write_text("| " + "x" * 101 + " |\n```\n" + "x" * 101 + "\n```\n")
    check_prose([bad])
    bad.write_text("x" * 101 + "\n")
    expect_failure(check_prose, [bad])


# ---- comments ------------------------------------------------------------------------------------------

# Forms of verbs that are no nouns, and those that are verbs unless a word of BEFORE_NOUNS precedes them.
VERBS = set("""
accepts adds agree aligns allows am applies apply are arrive asks be became become becomes been began begin begins
belong belongs breaks brings came can cannot closes come comes compares compresses computes contain contains
continues copies corresponds could decides defines depend depends describes did differ differs divides do does emits
encode encodes ended exceeds exist exists expects fails falls fell fills finds fits follow follows forgets found
frees gave get gets give gives go goes got grows had happen happened happens has have helps holds identifies imply is
keep keeps kept knew know knows lacks lasts leads leave leaves left lets lie lies loses lost make makes may mean
means merges might misses must need needs occur opens owns paints pass precede precedes prevents proves publishes
puts reaches receives recognizes refer refers rejects remain remains removes repeats replace replaces requires
reserves resets returns said saves saw say says see sees sends serves shall should shows sits skips sleeps slept
sorts splits stands stays strip strips submits take takes tells took touches tries wakes want wants was went were
will woke would wraps write writes wrote
""".split())
NOUNS_TOO = set("""
build call calls changes checks compress costs counts covers decide drains drops ends limits load loads look looks
maps marks moves names passes points prints reads records reports requests rests return runs sets shares sleep stacks
starts states stops stores turns uses wait waits walks works
""".split())
BEFORE_NOUNS = set("""
a all an and any both by each few for from in its last many more most no of on or other own per same since such the
their these those to two until which with without
""".split())
COMMENT = re.compile(r"^([ \t]*)/\*((?:(?!\*/).)*)\*/\n(?=([^\n]*))", re.M | re.S)
FUNCTION = re.compile(r"(?!typedef\b|struct \w+ \{|enum\b|union\b)[A-Za-z_][^=;]*\(")


def has_verb(sentence):
    words = re.findall(r"[A-Za-z_'-]+", sentence)
    return any(word.lower() in VERBS or (word.lower() in NOUNS_TOO and before.lower() not in BEFORE_NOUNS)
               for before, word in zip([""] + words, words)) \
        or bool(re.match(r"[A-Z][a-z-]+s(?! (?:of|that|in|with|from|for|by|to|and|or|without)\b)\b", sentence))


def comments_without_verb(path):
    """(number, text) of comments of two lines or more, and of functions, that are no sentences; in the latter the first
    sentence counts. A file's title and what a section is about need no verb; nor does the name of a callback's type."""
    text = path.read_text()
    for match in COMMENT.finditer(text):
        indent, comment, code = match.groups()
        about = re.sub(r"\s+", " ", re.sub(r"\n\s*\*", "\n", comment)).strip()
        of_function = not indent and FUNCTION.match(code)
        if not (of_function or "\n" in comment.strip()) or re.match(r"-{4}|SPDX|[\w.]+ - |An? [A-Z]\w+\b", about):
            continue
        if not has_verb(re.split(r"(?<=[.!?])\s+(?=[A-Z_])", about)[0] if of_function else about):
            yield text.count("\n", 0, match.start()) + 1, about


def check_sentences(paths):
    wrong = [f"{path.name}:{number}: {about[:100]}" for path in paths for number, about in comments_without_verb(path)]
    check(not wrong, "comments without a verb (or with one that VERBS lacks):\n" + "\n".join(wrong[:40]))


def test_comments_are_sentences(context):
    check_sentences([p for top in ("bpf", "src", "export") for p in (ROOT / top).rglob("*.[ch]")])
    file = context.path("file.c")
    file.write_text("/* file.c - a title. */\n\n/* Returns the time. */\nint f(void);\n"
                    "/* A Reader. */\nint g(void)\n{\n}\n"
                    "/* A mapping. */\nstruct mapping {\n\tint x; /* of the file */\n};\n")
    check_sentences([file])
    for text in ("/* The time of X. */\nint f(void);\n", "/* All calls of a thread. */\nstatic int f(void)\n{\n",
                 "\t/*\n\t * The names of the threads,\n\t * in order.\n\t */\n\tint i;\n"):
        file.write_text(text)
        expect_failure(check_sentences, [file])


# ---- names and folders -------------------------------------------------------------------------------

# Further beginnings of exported functions, by header: the few that are used everywhere, parts of a module that are
# declared in one private header, and functions on one element of what the header is about.
BEGINNINGS = {
    "src/base/util.h": ("log_", "x", "map_", "strings_", "parse_", "mask_controls", "error_text", "shell_word", "text_ends_with",
                        "touch_memory", "closep", "open_null", "write_all", "hash_mix", "clock_ns", "now_ns",
                        "realtime_offset_ns", "remedy_"),
    "src/recorder/cpus.h": ("online_cpus_", "idle_cpus_"),
    "src/kernel/software_events.h": ("bpf_links_destroy",),
    "src/os/launch.h": ("invoker_",),
    "src/recorder/recorder_private.h": ("recording_",),
    "export/firefox/firefox_parts.h": ("profile_", "marker_plan_", "track_rows_"),
    "export/output/compressor.h": ("compression_",),
    "export/output/json_writer.h": ("utf8_",),
    "export/reason/futex_kinds.h": ("user_",),
    "export/rows/row_plan.h": ("row_",),
    "export/stacks/labels.h": ("loss_cause_", "stack_code_", "stack_end_", "syscall_"),
    "export/timeline/timeline.h": ("thread_", "process_"),
    "export/timeline/timeline_builder_private.h": ("tasks_", "chain_", "stack_reference", "cpus_", "faults_", "losses_",
                                                   "waits_", "spans_", "resolve_", "filter_", "unsampled_", "scripts_"),
    "export/waits/wait_fields.h": ("request_stack", "tick_stack", "task_name", "interrupt_label", "chain_add_user",
                                   "process_end_text"),
}
PROTOTYPE = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][\w \t*]*?\b(\w+)\([^;{}]*\)[\w\s(),]*;", re.M)


def functions_of(header):
    """Functions that a header declares, without static inline ones."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.S)
    return PROTOTYPE.findall(re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M))


def check_beginnings(headers, further):
    """Each begins with the header's name, its first word (or the singular of it), or the name of a .c file there."""
    wrong, count = [], 0
    for header in headers:
        name = str(header.relative_to(ROOT)) if header.is_relative_to(ROOT) else header.name
        first = header.stem.split("_")[0]
        stems = {c.stem for c in header.parent.glob("*.c")} | {header.stem, first}
        stems |= {header.stem.removesuffix("s"), first.removesuffix("s")}
        for function in functions_of(header):
            count += 1
            if not (any(function == s or function.startswith(s + "_") for s in stems)
                    or function.startswith(further.get(name, ("?",)))):
                wrong.append(f"{name}: {function}()")
    check(not wrong, "exported functions whose names do not begin with their module's:\n" + "\n".join(wrong))
    return count


def test_exported_names(context):
    headers = [h for top in ("src", "export") for h in (ROOT / top).rglob("*.h")]
    check(check_beginnings(headers, BEGINNINGS) > 700, "hardly a function was found")
    bad = context.path("module.h")
    bad.write_text("/* x(); */\nint module_open(const char *path,\n\t\tint flags);\nstatic inline int f(void);\n")
    check(check_beginnings([bad], {}) == 1, f"found {functions_of(bad)}")
    bad.write_text("int open_module(void);\n")
    expect_failure(check_beginnings, [bad], {})


def code_folders():
    return [d for top in ("bpf", "src", "export") for d in (ROOT / top).iterdir() if d.is_dir()]


def check_sizes(folders, most):
    """Files are those of C: each folder has its meson.build and README.md besides."""
    for folder in folders:
        count = len([p for p in folder.iterdir() if p.suffix in (".c", ".h")])
        check(count <= most, f"{folder.relative_to(ROOT)} has {count} files")


def test_folders_are_small():
    check_sizes(code_folders(), 25)
    expect_failure(check_sizes, code_folders(), 20)


def check_readmes(folders):
    for folder in folders:
        path = folder / "README.md"
        check(path.exists(), f"{folder} has no README.md")
        length = len(path.read_text().splitlines())
        check(length <= 15, f"{path} has {length} lines")


def test_folders_have_readmes(context):
    folders = code_folders() + [ROOT / "tools"] + [d for d in (ROOT / "tests").iterdir() if d.is_dir()]
    check_readmes([d for d in folders if d.name != "__pycache__"])
    expect_failure(check_readmes, [context.folder])
    (context.folder / "README.md").write_text("x\n" * 16)
    expect_failure(check_readmes, [context.folder])


def check_folder_graph(tree):
    done = subprocess.run([tree / "tools" / "folder-graph"], capture_output=True, text=True)
    check(done.returncode == 0, f"{done.stderr}")


def test_folder_graph(context):
    """No include points upward, and no files include each other in a circle without a reason."""
    check_folder_graph(ROOT)
    tree = context.path("tree")
    for name in ("bpf", "src", "export"):
        shutil.copytree(ROOT / name, tree / name)
    (tree / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "folder-graph", tree / "tools")
    check_folder_graph(tree)
    util = tree / "src" / "base" / "util.h"
    old = util.read_text()
    util.write_text(old + '#include "elf_file.h"\n')
    expect_failure(check_folder_graph, tree)
    util.write_text(old)
    (tree / "src" / "base" / "first.h").write_text('#include "second.h"\n')
    (tree / "src" / "base" / "second.h").write_text('#include "first.h"\n')
    expect_failure(check_folder_graph, tree)


# ---- tests ---------------------------------------------------------------------------------------------

def sleeps_without_reason(path):
    """(number, line) of each sleep that no comment on its line or on the line above explains. Sleeps in programs that
    are recorded, which are strings, are what these programs do."""
    lines = path.read_text().splitlines()
    tokens = list(tokenize.generate_tokens(io.StringIO(path.read_text()).readline))
    comments = {t.start[0] for t in tokens if t.type == tokenize.COMMENT}
    comments |= {number + 1 for number in comments if lines[number - 1].lstrip().startswith("#")}
    return [(t.start[0], lines[t.start[0] - 1].strip()) for before, t in zip(tokens, tokens[1:])
            if t.string == "sleep" and before.string in (".", "import") and t.start[0] not in comments]


def check_sleeps(paths):
    found = [(path, sleeps_without_reason(path)) for path in paths]
    wrong = [f"{path.name}:{number}: {line}" for path, sleeps in found for number, line in sleeps]
    check(not wrong, "sleeps where wait_until() would do, or whose reason is not said:\n" + "\n".join(wrong))


def test_sleeps(context):
    """A test waits for a condition, and not for a time, if it can."""
    check_sleeps([p for folder in ("e2e", "support", "vm", "roots") for p in (ROOT / "tests" / folder).rglob("*.py")])
    good = context.path("good.py")
    good.write_text("time.sleep(1)  # the window\n# As long as it runs.\ntime.sleep(\n1)\nX = 'time.sleep(1)'\n")
    check_sleeps([good])
    bad = context.path("bad.py")
    for text in ("time.sleep(1)\n", "from time import sleep\n", "x()  # another line\ntime.sleep(1)\n"):
        bad.write_text(text)
        expect_failure(check_sleeps, [bad])


# ---- the time of a run ---------------------------------------------------------------------------------

# The phases of a run besides the suites that run alone.
PHASES = ("installing and building", "unit tests", "what holds no times to account", "busy",
          "opening profiles")


def check_shares(shares, alone):
    """Every suite that runs alone has a share of the 15 minutes, no other has, and all of them fit."""
    check(alone <= set(shares), f"no share for {sorted(alone - set(shares))}")
    others = set(shares) - alone
    check(others == set(PHASES), f"the shares that are of no suite that runs alone: {sorted(others)}")
    check(sum(shares.values()) <= 15 * 60, f"the shares are {sum(shares.values())} s")


def test_shares():
    shares = time_table.shares()
    alone = {path.stem[5:] for path in (ROOT / "tests" / "e2e").glob("*/test_*.py")
             if "pytest.mark.untimed" not in path.read_text()}
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


def test_blocking_functions_document():
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
