# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages that wallprof writes: their data, read without the page's own script, and what they do in a browser."""
import base64
import gzip
import json
import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

from harness import GIVE_UP_S, ROOT, Skip, check

READY = {"wait": "html[data-ready=all]"}
STATES = ("unknown", "running", "runnable", "blocked")  # in the order of the data


class Parts(HTMLParser):
    """Its elements as a parser of HTML sees them: scripts with their attributes, the policy, and the text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.scripts, self.policies, self.tags, self.text = [], [], [], []
        self.inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "meta" and dict(attributes).get("http-equiv") == "Content-Security-Policy":
            self.policies.append(dict(attributes)["content"])
        if tag in ("script", "style"):
            self.inside = [dict(attributes), ""]
            if tag == "script":
                self.scripts.append(self.inside)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.inside[1] += data
        else:
            self.text.append(data)


def numbers(data):
    """LEB128: 7 bits in a byte, the lowest first."""
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def signed(value):
    return -(value + 1) // 2 if value % 2 else value // 2


class Page:
    """The data of a page."""

    def __init__(self, path):
        self.path = Path(path)
        self.parts = Parts(self.path.read_text(encoding="utf-8"))
        packed = [text for attributes, text in self.parts.scripts if attributes.get("id") == "data"]
        check(len(packed) == 1, f"{len(packed)} elements with data")
        data = gzip.decompress(base64.b64decode("".join(packed[0].split()), validate=True))
        size = int.from_bytes(data[:4], "little")
        self.data = json.loads(data[4:4 + size].decode())
        rest = data[4 + size:]
        self.columns = {name: list(numbers(rest[at:at + length])) for name, (at, length) in self.data["columns"].items()}
        self.category = [self.data["categories"][self.columns["frameCategory"][frame]]["state"]
                         for frame in self.columns["stackFrame"]]

    def segments(self):
        """Yields (thread, its segments (start, end, weight, state)); of the path and the CPUs the thread is None."""
        at, threads = 0, self.data["threads"]
        path, window = self.data["path"], self.data["window_ns"]
        tracks = [(thread["start"], thread["end"], thread["segments"], thread) for thread in threads]
        tracks += [(path["start"], path["end"], path["segments"], None)] if path else []
        tracks += [(0, window, count, None) for count in self.data["cpus"]]
        for start, end, count, thread in tracks:
            starts = []
            for step in self.columns["segmentStart"][at:at + count]:
                starts.append(step + (starts[-1] if starts else start))
            ends = starts[1:] + [end]
            yield thread, [(s, e, max(0, e - s) + signed(self.columns["segmentWeight"][at + i]),
                            self.category[self.columns["segmentStack"][at + i]])
                           for i, (s, e) in enumerate(zip(starts, ends))]
            at += count
        check(at == len(self.columns["segmentStart"]), "segments of no track")

    def ns_by_state(self):
        """Of each thread: by tid and start."""
        sums = {}
        for thread, segments in self.segments():
            if thread is None:
                continue
            states = sums.setdefault((thread["tid"], thread["start"]), dict.fromkeys(STATES, 0))
            for _, _, weight, state in segments:
                states[state] += weight
        return sums


def as_text(page):
    """All data, in a form that shows differences; without where the columns are."""
    data = {**page.data, "columns": page.columns}
    return "".join(f"{json.dumps(name)}: {json.dumps(value)}\n" for name, value in data.items())


class Browser:
    """Chromium, by Playwright."""

    def __init__(self):
        self.chromium, self.playwright = shutil.which("chromium"), os.environ.get("WALLPROF_PLAYWRIGHT", "")
        if not self.chromium:
            raise Skip("chromium is not installed")
        if not self.playwright or not Path(self.playwright).exists():
            raise Skip("playwright-core is not installed (tools/test installs it with npm)")

    def open(self, path, *steps, before=(), **wanted):
        """Follows the steps on the page, below the command line `before`; returns what page.mjs prints."""
        done = subprocess.run([*before, os.environ.get("WALLPROF_NODE", "node"), ROOT / "tests/support/browser/page.mjs",
                               self.playwright, self.chromium, path],
                              input=json.dumps({**wanted, "steps": steps}), capture_output=True, text=True, timeout=GIVE_UP_S)
        check(done.returncode == 0, f"the browser, {path}: {done.stderr[-1500:]}")
        return json.loads(done.stdout)
