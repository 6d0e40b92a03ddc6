# SPDX-License-Identifier: GPL-2.0-or-later
"""The messages in the source: their formats, and which of them a line that was printed has."""
import functools
import re

from harness import ROOT

LEVELS = {"error": "error: ", "warn": "warning: ", "info": "", "verbose": ""}
LITERAL = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(rf"\blog_(error|warn|info|verbose)\(\s*((?:{LITERAL}\s*|[A-Z]\w*\s*)+)[,)]")
ANY_CALL = re.compile(r"(?<!void )\blog_(?:error|warn|info|verbose)\(")
# option_table.c: bad("output", text, "expected a file")
BAD = re.compile(rf'\bbad\("([\w-]+)",\s*\w+,\s*((?:{LITERAL}\s*)+)\)')
COMPOSED = "--%s '%s': %s"  # what bad() logs
CONVERSIONS = {"PRIu64": "lu", "PRId64": "ld", "PRIu32": "u", "PRIx64": "lx"}
CONVERSION = re.compile(r"%[-+ 0#]*[\d.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z]")  # without groups


@functools.cache
def sources():
    return {path.relative_to(ROOT): path.read_text()
            for folder in ("src", "export") for path in sorted((ROOT / folder).rglob("*.[ch]"))}


@functools.cache
def macros():
    found = {}
    for text in sources().values():
        found.update(re.findall(rf"^#define (\w+)[ \t]+\\?\s*({LITERAL})", text, re.M))
    return found


def text_of(literals):
    """The string of adjacent literals and macros, as C joins them."""
    parts = []
    for part in re.findall(rf"{LITERAL}|\w+", literals):
        part = part if part.startswith('"') else macros().get(part, f'"{CONVERSIONS.get(part)}"')
        parts.append(part[1:-1].replace('\\"', '"'))
    return "".join(parts)


def literals():
    """All strings in the source, as C joins them."""
    for text in sources().values():
        text = re.sub(r"'(?:\\.|[^'\\])'", "0", text)  # '"' begins no string
        yield from (text_of(found) for found in re.findall(rf"(?:{LITERAL}\s*|[A-Z]\w+\s*)+", text) if '"' in found)


@functools.cache
def formats():
    """{(level, format): file} of all messages."""
    found = {}
    for path, text in sources().items():
        if path.name in ("util.c", "util.h"):
            found.update({(m[1], text_of(m[2])): path for m in CALL.finditer(text) if m[2].startswith('"getting')})
            continue
        calls = list(CALL.finditer(text))
        if len(calls) != len(ANY_CALL.findall(text)):
            raise AssertionError(f"{path}: a message whose format is no literal")
        found.update({(m[1], text_of(m[2])): path for m in calls})
        found.update({("error", f"--{m[1]} '%s': {text_of(m[2])}"): path for m in BAD.finditer(text)})
    found.pop(("error", COMPOSED))
    return found


@functools.cache
def pattern(text):
    parts = re.split(f"({CONVERSION.pattern})", text)
    return re.compile("".join(("." if part[-1:] == "c" else ".*") if i % 2 else re.escape(part)
                              for i, part in enumerate(parts)), re.S)


def literal_length(text):
    return len(CONVERSION.sub("", text))


def precision(text):
    """The more of its own a format begins with, and the more it has in all, the more exact it is."""
    return len(CONVERSION.split(text)[0]), literal_length(text)


def formats_of(line):
    """The set of (level, format) that a line "wallprof: …" may have: the most exact ones."""
    line = line.removeprefix("wallprof: ")
    level = next((prefix for prefix in ("error: ", "warning: ") if line.startswith(prefix)), "")
    line = line.removeprefix(level).removeprefix("WALLPROF_OPTIONS: ")
    found = {(name, text): precision(text) for name, text in formats()
             if LEVELS[name] == level and literal_length(text) > 2 and pattern(text).fullmatch(line)}
    return {one for one, exact in found.items() if exact == max(found.values())}
